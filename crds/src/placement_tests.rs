use proptest::prelude::*;

use super::*;

const BOTH: [&str; 4] = ["argocd", "aws", "jira", "github"];

fn remote(agents: Option<&str>, mode: Option<&str>) -> Vec<&'static str> {
    let distribution = Distribution::from_variables(agents, mode);
    let is_remote = |name: &&str| place(name, true, Forms::Both, &distribution).unwrap() == Placement::Remote;
    BOTH.into_iter().filter(is_remote).collect()
}

#[test]
fn the_seeds_rule() {
    let all = BOTH.to_vec();
    let cases: &[(Option<&str>, Option<&str>, Vec<&str>)] = &[
        // neither set
        (None, None, vec![]),
        (Some(""), None, vec![]),
        (Some("   "), None, vec![]),
        (Some(",,"), None, vec![]),
        (Some(" , ,\t"), None, vec![]),
        // one and many, in any case, with white space and blanks
        (Some("argocd"), None, vec!["argocd"]),
        (Some("argocd,aws"), None, vec!["argocd", "aws"]),
        (Some("ArgoCD,AWS"), None, vec!["argocd", "aws"]),
        (Some("  argocd ,\taws\n"), None, vec!["argocd", "aws"]),
        (Some(",argocd,,aws,"), None, vec!["argocd", "aws"]),
        (Some("argocd,argocd"), None, vec!["argocd"]),
        (Some("argocd aws"), None, vec![]),
        // all, in any case and beside others
        (Some("all"), None, all.clone()),
        (Some("ALL"), None, all.clone()),
        (Some(" All "), None, all.clone()),
        (Some("argocd,all"), None, all.clone()),
        (Some("all,nobody"), None, all.clone()),
        (Some("allx"), None, vec![]),
        // names that no agent has
        (Some("nobody"), None, vec![]),
        (Some("nobody,jira"), None, vec!["jira"]),
        (Some("argo"), None, vec![]),
        // the legacy mode
        (None, Some("true"), all.clone()),
        (None, Some("TRUE"), all.clone()),
        (None, Some("1"), all.clone()),
        (None, Some("yes"), all.clone()),
        (None, Some(" Yes "), all.clone()),
        (None, Some("false"), vec![]),
        (None, Some("0"), vec![]),
        (None, Some("no"), vec![]),
        (None, Some(""), vec![]),
        (None, Some("on"), vec![]),
        (None, Some("truely"), vec![]),
        // precedence: a non-empty list decides alone, an empty one falls through
        (Some("argocd"), Some("true"), vec!["argocd"]),
        (Some("nobody"), Some("true"), vec![]),
        (Some("argocd"), Some("false"), vec!["argocd"]),
        (Some("all"), Some("false"), all.clone()),
        (Some(""), Some("true"), all.clone()),
        (Some(" , "), Some("1"), all.clone()),
    ];
    for (agents, mode, expected) in cases {
        assert_eq!(
            &remote(*agents, *mode),
            expected,
            "DISTRIBUTED_AGENTS={agents:?} DISTRIBUTED_MODE={mode:?}"
        );
    }
}

#[test]
fn disabled_and_the_forms_of_an_agent() {
    use Forms::{Both, LocalOnly, RemoteOnly};
    use Placement::{Absent, InProcess, Remote};
    let refused = Err(LocalOnlyError { name: "aigateway".to_owned() });
    let cases = [
        (false, Both, Some("aigateway"), Ok(Absent)),
        (false, Both, Some("all"), Ok(Absent)),
        (false, Both, None, Ok(Absent)),
        (false, RemoteOnly, Some("aigateway"), Ok(Absent)),
        (false, LocalOnly, Some("aigateway"), Ok(Absent)),
        (true, RemoteOnly, None, Ok(Remote)),
        (true, RemoteOnly, Some("other"), Ok(Remote)),
        (true, RemoteOnly, Some("all"), Ok(Remote)),
        (true, LocalOnly, None, Ok(InProcess)),
        (true, LocalOnly, Some("other"), Ok(InProcess)),
        (true, LocalOnly, Some("all"), Ok(InProcess)),
        (true, LocalOnly, Some("AIGateway , jira"), refused),
    ];
    for (enabled, forms, agents, expected) in cases {
        let distribution = Distribution::from_variables(agents, None);
        let placed = place("aigateway", enabled, forms, &distribution);
        assert_eq!(placed, expected, "enabled={enabled} {forms:?} DISTRIBUTED_AGENTS={agents:?}");
    }
}

#[test]
fn a_refusal_names_the_agent_and_what_to_do() {
    let distribution = Distribution::new(["AIGateway"], false);
    let error = place(" AIGateway ", true, Forms::LocalOnly, &distribution).unwrap_err().to_string();
    assert!(error.contains("`aigateway`") && error.contains("disable it"), "{error}");
}

#[test]
fn a_thousand_names() {
    let names: Vec<String> = (0..1000).map(|n| format!("Agent-{n}")).collect();
    let distribution = Distribution::from_variables(Some(&names.join(" , ")), Some("false"));
    for name in &names {
        assert_eq!(place(name, true, Forms::Both, &distribution), Ok(Placement::Remote));
    }
    assert_eq!(place("agent-1000", true, Forms::Both, &distribution), Ok(Placement::InProcess));
    assert!(distribution.unknown(names.iter().map(String::as_str)).is_empty());
}

#[test]
fn unknown_names_are_told() {
    let distribution = Distribution::new(["jira", "Jria", "all-of-them"], false);
    assert_eq!(distribution.unknown(["jira", "argocd"]), ["all-of-them", "jria"]);
    assert!(Distribution::new(["all", "nobody"], false).unknown(["jira"]).is_empty());
}

proptest! {
    #[test]
    fn only_the_set_of_trimmed_lower_case_names_matters(
        mut names in prop::collection::vec("[a-zA-Z][a-zA-Z0-9-]{0,8}", 0..8),
        legacy in any::<bool>(),
        blanks in 0_usize..3,
    ) {
        let plain = Distribution::new(names.iter().map(String::as_str), legacy);
        names.reverse();
        let shouted: Vec<String> = names.iter().map(|name| format!(" {}\t", name.to_uppercase())).collect();
        let list = format!("{}{}", ",".repeat(blanks), shouted.join(","));
        let other = Distribution::from_variables(Some(&list), Some(if legacy { "YES" } else { "no" }));
        prop_assert_eq!(&plain, &other);
        for name in &names {
            prop_assert!(plain.asks(name));
        }
    }

    #[test]
    fn any_text_is_a_distribution(agents in ".{0,200}", mode in ".{0,10}", name in ".{0,20}") {
        let distribution = Distribution::from_variables(Some(&agents), Some(&mode));
        let placed = place(&name, true, Forms::Both, &distribution).unwrap();
        prop_assert_eq!(placed == Placement::Remote, distribution.asks(&name));
        prop_assert_eq!(place(&name, false, Forms::Both, &distribution).unwrap(), Placement::Absent);
    }
}
