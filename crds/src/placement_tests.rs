use proptest::prelude::*;

use super::AgentPlacement::{InProcess, Remote};
use super::SupportedPlacements::{Both, InProcessOnly, RemoteOnly};
use super::*;

const BOTH: [&str; 4] = ["argocd", "aws", "jira", "github"];

fn distribution(agents: &str, legacy_mode: bool) -> Distribution {
    Distribution::new(agents.split(','), legacy_mode)
}

fn remote(agents: &str, legacy_mode: bool) -> Vec<&'static str> {
    let distribution = distribution(agents, legacy_mode);
    let is_remote = |name: &&str| place(name, true, Both, &distribution).unwrap() == Some(Remote);
    BOTH.into_iter().filter(is_remote).collect()
}

#[test]
fn a_list_or_the_legacy_mode_decides() {
    let all = BOTH.to_vec();
    let cases: &[(&str, bool, Vec<&str>)] = &[
        // neither set
        ("", false, vec![]),
        ("   ", false, vec![]),
        (",,", false, vec![]),
        (" , ,\t", false, vec![]),
        // one and many, in any case, with white space and blanks
        ("argocd", false, vec!["argocd"]),
        ("argocd,aws", false, vec!["argocd", "aws"]),
        ("ArgoCD,AWS", false, vec!["argocd", "aws"]),
        ("  argocd ,\taws\n", false, vec!["argocd", "aws"]),
        (",argocd,,aws,", false, vec!["argocd", "aws"]),
        ("argocd,argocd", false, vec!["argocd"]),
        ("argocd aws", false, vec![]),
        // all, in any case and beside others
        ("all", false, all.clone()),
        ("ALL", false, all.clone()),
        (" All ", false, all.clone()),
        ("argocd,all", false, all.clone()),
        ("all,nobody", false, all.clone()),
        ("allx", false, vec![]),
        // unknown names
        ("nobody", false, vec![]),
        ("nobody,jira", false, vec!["jira"]),
        ("argo", false, vec![]),
        // the legacy mode
        ("", true, all.clone()),
        // precedence: a non-empty list decides alone, an empty one falls through
        ("argocd", true, vec!["argocd"]),
        ("nobody", true, vec![]),
        (" , ", true, all.clone()),
    ];
    for (agents, mode, expected) in cases {
        assert_eq!(&remote(agents, *mode), expected, "{agents:?} {mode}");
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
    for (enabled, supported, agents, expected) in cases {
        let distribution = distribution(agents, false);
        let placed = place("aigateway", enabled, supported, &distribution);
        assert_eq!(placed, expected, "enabled={enabled} {supported:?} {agents:?}");
    }
}

#[test]
fn a_refusal_names_the_agent_and_what_to_do() {
    let distribution = Distribution::new(["AIGateway"], false);
    let error = place(" AIGateway ", true, InProcessOnly, &distribution).unwrap_err().to_string();
    assert!(error.contains("`aigateway`") && error.contains("disable it"), "{error}");
}

#[test]
fn a_thousand_names() {
    let names: Vec<String> = (0..1000).map(|n| format!("Agent-{n}")).collect();
    let distribution = distribution(&names.join(" , "), false);
    for name in &names {
        assert_eq!(place(name, true, Both, &distribution), Ok(Some(Remote)));
    }
    assert_eq!(place("agent-1000", true, Both, &distribution), Ok(Some(InProcess)));
    assert!(distribution.unknown(names.iter().map(String::as_str)).is_empty());
}

#[test]
fn unknown_names_are_reported() {
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
        let other = distribution(&list, legacy);
        prop_assert_eq!(&plain, &other);
        for name in &names {
            prop_assert!(plain.includes(name));
        }
    }

    #[test]
    fn any_text_is_a_distribution(agents in ".{0,200}", mode in any::<bool>(), name in ".{0,20}") {
        let distribution = distribution(&agents, mode);
        let placed = place(&name, true, Both, &distribution).unwrap();
        prop_assert_eq!(placed == Some(Remote), distribution.includes(&name));
        prop_assert_eq!(place(&name, false, Both, &distribution).unwrap(), None);
    }
}
