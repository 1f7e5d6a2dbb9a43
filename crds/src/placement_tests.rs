use proptest::prelude::*;

use super::AgentPlacement::{InProcess, Remote};
use super::SupportedPlacements::{Both, InProcessOnly, RemoteOnly};
use super::*;

const AGENTS: [&str; 4] = ["argocd", "aws", "jira", "github"];

fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(',')
}

/// The requests of a list in the resource and a default.
fn requests(list: &str, default: AgentPlacement) -> Requests {
    Requests::new([], names(list), default)
}

fn remote(requests: &Requests) -> Vec<&'static str> {
    let is_remote = |name: &&str| place(name, true, Both, requests.of(name, None)).unwrap() == Some(Remote);
    AGENTS.into_iter().filter(is_remote).collect()
}

#[test]
fn a_list_or_the_default_decides() {
    let all = AGENTS.to_vec();
    let cases: &[(&str, AgentPlacement, Vec<&str>)] = &[
        // neither set
        ("", InProcess, vec![]),
        ("   ", InProcess, vec![]),
        (",,", InProcess, vec![]),
        (" , ,\t", InProcess, vec![]),
        // one and many, in any case, with white space and blanks
        ("argocd", InProcess, vec!["argocd"]),
        ("argocd,aws", InProcess, vec!["argocd", "aws"]),
        ("ArgoCD,AWS", InProcess, vec!["argocd", "aws"]),
        ("  argocd ,\taws\n", InProcess, vec!["argocd", "aws"]),
        (",argocd,,aws,", InProcess, vec!["argocd", "aws"]),
        ("argocd,argocd", InProcess, vec!["argocd"]),
        ("argocd aws", InProcess, vec![]),
        // all, in any case and beside others
        ("all", InProcess, all.clone()),
        ("ALL", InProcess, all.clone()),
        (" All ", InProcess, all.clone()),
        ("argocd,all", InProcess, all.clone()),
        ("all,nobody", InProcess, all.clone()),
        ("allx", InProcess, vec![]),
        // unknown names
        ("nobody", InProcess, vec![]),
        ("nobody,jira", InProcess, vec!["jira"]),
        ("argo", InProcess, vec![]),
        // the default
        ("", Remote, all.clone()),
        // precedence: a non-empty list decides alone, an empty one falls through
        ("argocd", Remote, vec!["argocd"]),
        ("nobody", Remote, vec![]),
        (" , ", Remote, all.clone()),
    ];
    for (list, default, expected) in cases {
        assert_eq!(&remote(&requests(list, *default)), expected, "{list:?} {default:?}");
        // The environment's list is read in the same way, and its default is the resource's.
        let environment = Requests::new(names(list), [], *default);
        assert_eq!(&remote(&environment), expected, "{list:?} {default:?}");
    }
}

#[test]
fn the_strongest_source_decides() {
    use Source::{Agent, Default, Environment, List};
    let cases = [
        // environment, own placement, list, default
        ("", None, "", InProcess, (InProcess, Default)),
        ("", None, "", Remote, (Remote, Default)),
        ("", None, "jira", InProcess, (Remote, List)),
        ("", None, "aws", Remote, (InProcess, List)),
        ("", None, "all", InProcess, (Remote, List)),
        ("", Some(InProcess), "jira", Remote, (InProcess, Agent)),
        ("", Some(InProcess), "all", Remote, (InProcess, Agent)),
        ("", Some(Remote), "", InProcess, (Remote, Agent)),
        ("", Some(Remote), "aws", InProcess, (Remote, Agent)),
        (" , ", Some(Remote), "aws", InProcess, (Remote, Agent)),
        ("aws", Some(Remote), "jira", Remote, (InProcess, Environment)),
        ("jira", Some(InProcess), "aws", InProcess, (Remote, Environment)),
        ("ALL", Some(InProcess), "", InProcess, (Remote, Environment)),
    ];
    for (environment, own, list, default, expected) in cases {
        let request = Requests::new(names(environment), names(list), default).of(" Jira", own);
        assert_eq!(
            (request.placement, request.source),
            expected,
            "{environment:?} {own:?} {list:?} {default:?}"
        );
    }
}

#[test]
fn a_disabled_agent_has_no_placement_and_others_one_that_they_support() {
    let refused = Err(InProcessOnlyError { name: "aigateway".to_owned() });
    let cases = [
        (false, Both, "aigateway", Ok(None)),
        (false, Both, "all", Ok(None)),
        (false, Both, "", Ok(None)),
        (false, RemoteOnly, "aigateway", Ok(None)),
        (false, InProcessOnly, "aigateway", Ok(None)),
        (true, RemoteOnly, "", Ok(Some(Remote))),
        (true, RemoteOnly, "other", Ok(Some(Remote))),
        (true, RemoteOnly, "all", Ok(Some(Remote))),
        (true, InProcessOnly, "", Ok(Some(InProcess))),
        (true, InProcessOnly, "other", Ok(Some(InProcess))),
        (true, InProcessOnly, "all", Ok(Some(InProcess))),
        (true, InProcessOnly, "AIGateway , jira", refused),
    ];
    for (enabled, supported, list, expected) in cases {
        let request = requests(list, InProcess).of("aigateway", None);
        let placed = place("aigateway", enabled, supported, request);
        assert_eq!(placed, expected, "enabled={enabled} {supported:?} {list:?}");
    }
    let by_default = requests("", Remote).of("aigateway", None);
    assert_eq!(place("aigateway", true, InProcessOnly, by_default), Ok(Some(InProcess)));
    let own = requests("aigateway", InProcess).of("aigateway", Some(InProcess));
    assert_eq!(place("aigateway", true, InProcessOnly, own), Ok(Some(InProcess)));
}

#[test]
fn a_refusal_names_the_agent_and_what_to_do() {
    let request = requests("AIGateway", InProcess).of("aigateway ", None);
    let error = place(" AIGateway ", true, InProcessOnly, request).unwrap_err().to_string();
    assert!(error.contains("`aigateway`") && error.contains("disable it"), "{error}");
}

#[test]
fn a_thousand_names() {
    let listed: Vec<String> = (0..1000).map(|n| format!("Agent-{n}")).collect();
    let requests = Requests::new(listed.iter().map(String::as_str), [], InProcess);
    for name in &listed {
        assert_eq!(requests.of(name, None).placement, Remote);
    }
    assert_eq!(requests.of("agent-1000", None).placement, InProcess);
    assert!(requests.unknown(listed.iter().map(String::as_str)).1.is_empty());
}

#[test]
fn unknown_names_of_the_list_that_counts_are_reported() {
    let unknown = |environment: &'static str, list: &'static str| {
        let requests = Requests::new(names(environment), names(list), InProcess);
        let (source, found) = requests.unknown(["jira", "argocd"]);
        (source, found.join(","))
    };
    assert_eq!(unknown("", "jira,Jria,all-of-them"), (Source::List, "all-of-them,jria".to_owned()));
    assert_eq!(unknown("ghost", "Jria"), (Source::Environment, "ghost".to_owned()));
    assert_eq!(unknown("", "all,nobody"), (Source::List, String::new()));
    assert_eq!(unknown("", ""), (Source::List, String::new()));
}

fn placement() -> impl Strategy<Value = AgentPlacement> {
    prop_oneof![Just(InProcess), Just(Remote)]
}

proptest! {
    #[test]
    fn only_the_set_of_trimmed_lower_case_names_matters(
        mut listed in prop::collection::vec("[a-zA-Z][a-zA-Z0-9-]{0,8}", 0..8),
        default in placement(),
        blanks in 0_usize..3,
    ) {
        let plain = Requests::new([], listed.iter().map(String::as_str), default);
        listed.reverse();
        let shouted: Vec<String> = listed.iter().map(|name| format!(" {}\t", name.to_uppercase())).collect();
        let list = format!("{}{}", ",".repeat(blanks), shouted.join(","));
        prop_assert_eq!(&plain, &requests(&list, default));
        for name in &listed {
            prop_assert_eq!(plain.of(name, None).placement, Remote);
        }
    }

    #[test]
    fn any_text_is_a_list_and_the_rule_is_the_one_of_the_documentation(
        environment in ".{0,60}",
        list in ".{0,60}",
        default in placement(),
        own in prop::option::of(placement()),
        name in ".{0,20}",
    ) {
        let requests = Requests::new(names(&environment), names(&list), default);
        let request = requests.of(&name, own);
        let by_list = |list: &str| {
            let listed: Vec<String> = names(list).map(normal).filter(|name| !name.is_empty()).collect();
            let is_remote = listed.iter().any(|listed| listed == "all" || *listed == normal(&name));
            (!listed.is_empty()).then_some(if is_remote { Remote } else { InProcess })
        };
        let expected = by_list(&environment).or(own).or_else(|| by_list(&list)).unwrap_or(default);
        prop_assert_eq!(request.placement, expected);
        prop_assert_eq!(place(&name, true, Both, request).unwrap(), Some(expected));
        prop_assert_eq!(place(&name, true, RemoteOnly, request).unwrap(), Some(Remote));
        prop_assert_eq!(place(&name, false, Both, request).unwrap(), None);
    }
}
