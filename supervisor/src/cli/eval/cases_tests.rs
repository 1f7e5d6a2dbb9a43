use super::*;

fn case(agents: &[&str]) -> Case {
    Case { agents: Some(agents.iter().map(|&agent| agent.to_owned()).collect()), ..Case::default() }
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

fn result(agents: &[&str]) -> TrialResult {
    let task = |agent: &&str| ((*agent).to_owned(), format!("Task for {agent}"));
    TrialResult { delegations: agents.iter().map(task).collect(), ..TrialResult::default() }
}

fn routing(case: &Case, result: &TrialResult) -> Vec<String> {
    case.faults(result, false)
}

#[test]
fn each_expectation_is_checked() {
    assert!(routing(&case(&["jira"]), &result(&["jira", "jira"])).is_empty());
    assert!(routing(&case(&[]), &result(&[])).is_empty());
    assert_eq!(
        routing(&case(&["jira", "argocd"]), &result(&["jira", "github"])),
        ["not asked: argocd", "asked as well: github"]
    );
    let also = Case { also: texts(&["github"]), ..case(&["jira"]) };
    assert!(routing(&also, &result(&["jira", "github"])).is_empty());
    assert!(routing(&Case::default(), &result(&["jira"])).is_empty(), "without a list, any agent");
    let words = Case { words: texts(&["TASK FOR", "x"]), ..case(&["jira"]) };
    assert_eq!(routing(&words, &result(&["jira"])), ["not said: x"]);
    assert_eq!(words.faults(&result(&["jira"]), true), ["not said: TASK FOR", "not said: x"]);
    let failed = TrialResult { failure: Some("no model".to_owned()), ..TrialResult::default() };
    assert_eq!(routing(&case(&[]), &failed), ["no model"]);
}

#[test]
fn a_tool_is_one_of_the_supervisor_or_of_an_agent() {
    let called = TrialResult { tools: texts(&["search", "jira/get_issue"]), ..TrialResult::default() };
    let faults = |tools: &[&str]| Case { tools: texts(tools), ..Case::default() }.faults(&called, true);
    assert!(faults(&["sear*", "jira/get_*", "*/get_issue"]).is_empty());
    assert_eq!(
        faults(&["get_issue", "*issue", "jira/search", "github/*"]),
        ["not called: get_issue", "not called: *issue", "not called: jira/search", "not called: github/*"]
    );
}

#[test]
fn a_tool_that_no_agent_has_is_found() {
    let tools = |names: &[&str]| Some(texts(names).into_iter().collect());
    let known = KnownTools::from([
        (String::new(), tools(&["search"])),
        ("jira".to_owned(), tools(&["get_issue"])),
        ("far".to_owned(), None),
    ]);
    let unknown = |tool: &str| {
        let case = Case { tools: texts(&[tool]), ..Case::default() };
        case.unknown_tool(&known).map(|(tool, agent, names)| format!("{tool} of {agent}: {names}"))
    };
    for tool in ["search", "jira/get_*", "*/get_issue", "far/anything"] {
        assert_eq!(unknown(tool), None, "{tool}");
    }
    assert_eq!(unknown("jira/get"), Some("jira/get of jira: get_issue".to_owned()));
    assert_eq!(unknown("fetch"), Some("fetch of : search".to_owned()));
}

#[test]
fn a_file_that_makes_no_sense_is_refused() {
    let fault = |text: &str, are_runs| read(&format!("cases: [{text}]"), are_runs).unwrap_err().to_string();
    for (text, expected) in [
        ("{ agents: [] }", "cases[0]: give prompt"),
        ("{ prompt: a, prompts: [b], agents: [] }", "cases[0]: give prompt"),
        ("{ prompt: a }", "cases[0]: it demands nothing"),
        ("{ prompt: a, also: [jira], words: [x] }", "also: give agents too"),
        ("{ prompt: a, judge: It is polite. }", "judge: there is no answer to judge without --run"),
        ("{ prompt: a, tools: [jira/get] }", "tools: no agent calls jira/get without --run"),
    ] {
        assert!(fault(text, false).contains(expected), "{text}: {}", fault(text, false));
    }
    assert!(fault("{ prompt: a, word: [x] }", true).contains("word"));
    let cases = read("cases: [{ prompts: [a, b], agents: [' Jira '], judge: c }]", true).unwrap();
    assert_eq!((cases[0].request().as_str(), &cases[0].agents), ("a\n\nb", &Some(texts(&["jira"]))));
}

#[test]
fn agents_of_the_catalogue_are_known() {
    let (enabled, case) = (BTreeSet::from(["jira"]), case(&["jira", "github", "jirra"]));
    assert_eq!(case.unknown_agents(&enabled), ["jirra"]);
    let tools = Case { tools: texts(&["hub/list", "*/list", "search"]), ..Case::default() };
    assert_eq!(tools.unknown_agents(&enabled), ["hub"]);
    assert!(!tools.fits(&enabled));
}

#[test]
fn the_set_of_the_program_covers_its_catalogue() {
    let cases = read(ROUTING, false).unwrap();
    assert!(cases.len() >= 100, "{}", cases.len());
    let prompts: BTreeSet<&Vec<String>> = cases.iter().map(|case| &case.prompts).collect();
    assert_eq!(prompts.len(), cases.len(), "each prompt once");
    for case in &cases {
        assert_eq!(case.unknown_agents(&BTreeSet::new()), [""; 0], "{:?}", case.prompts);
    }
    for agent in catalogue::names() {
        let is_for = |case: &&Case| case.agents.iter().flatten().any(|it| it == agent);
        let count = cases.iter().filter(is_for).count();
        assert!(count >= 4, "{agent}: {count} cases");
    }
}
