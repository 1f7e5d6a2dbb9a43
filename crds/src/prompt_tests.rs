use std::collections::BTreeMap;

use super::*;
use crate::{default_resource, resolve};

fn spec(variables: &[(&str, &str)]) -> RenderedSpec {
    let env: BTreeMap<String, String> =
        variables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    resolve(&default_resource(), &env).unwrap().spec
}

#[test]
fn the_built_in_prompt_has_every_placeholder_once_and_none_is_left() {
    for placeholder in PLACEHOLDERS {
        assert_eq!(DEFAULT_TEMPLATE.matches(placeholder).count(), 1, "{placeholder}");
    }
    let spec = spec(&[]);
    let prompt = system_prompt(&spec, &agent_lines(&spec));
    for placeholder in PLACEHOLDERS {
        assert!(!prompt.contains(placeholder), "{placeholder}");
    }
    for agent in &spec.agents {
        assert!(
            prompt.contains(&format!("- `{}` (plan prefix `[{}]`): ", agent.name, agent.title)),
            "{}",
            agent.name
        );
    }
}

#[test]
fn the_prompt_follows_the_answer_mode() {
    let cases = [
        (vec![], "PlatformEngineerResponse", "[FINAL ANSWER]"),
        (vec![("USE_STRUCTURED_RESPONSE", "false")], "[FINAL ANSWER]", "PlatformEngineerResponse"),
        (vec![], "No knowledge base", "`fetch_document`"),
        (vec![("ENABLE_RAG", "true")], "`fetch_document`", "No knowledge base"),
    ];
    for (variables, present, absent) in cases {
        let prompt = system_prompt(&spec(&variables), &[]);
        assert!(prompt.contains(present) && !prompt.contains(absent), "{variables:?}");
    }
}

#[test]
fn a_text_that_is_put_in_is_never_a_placeholder_itself() {
    let cases = [
        ("{tool_instructions}|{rag_instructions}", "{rag_instructions}|r"),
        ("{rag_instructions}{final_answer_instructions}", "ra"),
        ("{tool_instructions", "{tool_instructions"),
        ("{unknown} {tool_instructions}", "{unknown} {rag_instructions}"),
        ("", ""),
    ];
    for (template, expected) in cases {
        assert_eq!(fill(template, "{rag_instructions}", "r\n", "a"), expected);
    }
}

#[test]
fn a_template_of_ones_own_replaces_the_built_in_one() {
    let mut spec = spec(&[]);
    spec.supervisor.system_prompt = Some("Agents:\n{tool_instructions}".to_owned());
    let line = AgentLine { name: "jira", title: "Jira", routing_hint: "tickets ", shares_files: false };
    assert_eq!(system_prompt(&spec, &[line]), "Agents:\n- `jira` (plan prefix `[Jira]`): tickets");
    assert_eq!(system_prompt(&spec, &[]), "Agents:\nNo agent is available. Say so when a request needs one.");
}

#[test]
fn sections_replace_remove_and_add() {
    let section = |title: &str, text: &str| PromptSection { title: title.to_owned(), text: text.to_owned() };
    let template = "Intro.\n\n# One\n\n1\n\n# Two\n\n2\n\n# End\n\nlast\n";
    let sections = [section("one", "uno\n"), section("Two", " "), section("Three", "3"), section("None", "")];
    assert_eq!(
        with_sections(template, &sections),
        "Intro.\n\n# one\n\nuno\n\n# Three\n\n3\n\n# End\n\nlast\n"
    );
    assert_eq!(with_sections(template, &[]), template);
    let [first, second] = [section("A", "a"), section("B", "b")];
    assert_eq!(
        with_sections("You are an agent.\n", std::slice::from_ref(&first)),
        "You are an agent.\n\n# A\n\na\n\n"
    );
    let both = with_sections("You are an agent.", &[first, second]);
    assert_eq!(both, "You are an agent.\n\n# B\n\nb\n\n# A\n\na\n\n");
    let own = with_sections(DEFAULT_TEMPLATE, &[section("Changes and risk", "Never delete anything.")]);
    assert!(own.contains("# Changes and risk\n\nNever delete anything.\n\n# Input from the user\n"));
    assert_eq!(own.matches("# Changes and risk").count(), 1);
}
