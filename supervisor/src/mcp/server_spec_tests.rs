use std::collections::BTreeMap;

use super::{ServerSpec, Transport};

fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn stdio(args: &[&str], env: &[(&str, &str)]) -> Transport {
    let args = args.iter().map(ToString::to_string).collect();
    Transport::Stdio {
        command: "${BIN:-server}".to_owned(),
        args,
        env: map(env),
        cwd: Some("${DIR}".to_owned()),
    }
}

#[test]
fn fills_in_every_member() {
    let env = map(&[("DIR", "/srv"), ("SITE", "https://example.com")]);
    let resolved = stdio(&["--url=${SITE}"], &[("A", "${DIR}/a")]).resolve(&env).unwrap();
    let expected = Transport::Stdio {
        command: "server".to_owned(),
        args: vec!["--url=https://example.com".to_owned()],
        env: map(&[("A", "/srv/a")]),
        cwd: Some("/srv".to_owned()),
    };
    assert_eq!(resolved.transport, expected);
}

#[test]
fn names_the_member_that_cannot_be_filled_in() {
    let env = map(&[("DIR", "/srv"), ("API_TOKEN", "s3cr3t-value")]);
    let error = stdio(&[], &[("A", "${API_TOKEN}"), ("B", "${API_TOKEN}${GONE}")])
        .resolve(&env)
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "failed to fill in env.B: the environment variable GONE is not set; set it, or give a default with ${GONE:-default}"
    );
    let headers = map(&[("X-Key", "${GONE}")]);
    let error = Transport::Http { url: "http://x".to_owned(), headers }.resolve(&env).unwrap_err();
    assert_eq!(error.field, "headers.X-Key");
}

#[test]
fn hides_secrets_from_results_and_all_but_plain_urls_from_logs() {
    let env = map(&[
        ("DIR", "/srv/data"),
        ("LOGIN", "hunter2hunter2"),
        ("SITE", "https://example.com"),
        ("DSN", "https://me:mypassword@example.com"),
    ]);
    let own = [("JIRA_TOKEN", "${LOGIN}"), ("PASSWORD", "literal-secret"), ("A", "${SITE}"), ("B", "${DSN}")];
    let resolved = stdio(&[], &own).resolve(&env).unwrap();
    let text =
        "hunter2hunter2 literal-secret https://example.com https://me:mypassword@example.com".to_owned();
    let for_model = "[redacted] [redacted] https://example.com https://me:mypassword@example.com";
    assert_eq!(resolved.results.redact(text.clone()), for_model);
    assert_eq!(resolved.logs.redact(text), "[redacted] [redacted] https://example.com [redacted]");
}

#[test]
fn hides_what_a_url_holds() {
    let url = "https://me:mypassword@example.com/mcp?api_key=abcdefgh&tenant=tenant-1";
    let resolved = Transport::http(url).resolve(&map(&[])).unwrap();
    assert_eq!(
        resolved.logs.redact(format!("error sending request for url ({url})")),
        "error sending request for url (https://me:[redacted]@example.com/mcp?api_key=[redacted]&tenant=[redacted])"
    );
}

#[test]
fn shows_no_value_when_debugged() {
    let headers = map(&[("Authorization", "Bearer s3cr3t")]);
    let http = Transport::Http { url: "http://user:s3cr3t@x".to_owned(), headers };
    for transport in [http, stdio(&["--token=s3cr3t"], &[("TOKEN", "s3cr3t")])] {
        let shown = format!("{:?}", ServerSpec::new("x", transport));
        assert!(!shown.contains("s3cr3t"), "{shown}");
    }
}

#[test]
fn denies_even_what_is_allowed() {
    let mut spec = ServerSpec::new("x", Transport::http("http://x"));
    assert!(spec.offers("anything"));
    spec.deny = vec!["delete_*".into()];
    assert!(spec.offers("get_issue") && !spec.offers("delete_issue"));
    spec.allow = vec!["*_issue".into()];
    assert!(spec.offers("get_issue") && !spec.offers("delete_issue") && !spec.offers("get_user"));
}

/// An empty `AWS_PROFILE` is a profile without a name for the AWS tools.
#[test]
fn a_variable_that_is_empty_only_for_want_of_another_one_is_not_set() {
    let server = stdio(&[], &[("PROFILE", "${NOWHERE:-}"), ("EMPTY", ""), ("HOST", "${NOWHERE:-x}")]);
    let resolved = server.resolve(&map(&[("DIR", "/srv")])).unwrap().transport;
    let Transport::Stdio { env, .. } = resolved else { panic!("{resolved:?}") };
    assert_eq!(env, map(&[("EMPTY", ""), ("HOST", "x")]));
}
