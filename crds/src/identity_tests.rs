use proptest::prelude::*;

use super::*;

const PAGE: &str = "# Data **Pipeline** Agent

Runs and watches [pipelines](https://example.com/p)
of the data team.

Second paragraph.

## Find a run

Looks for runs by `name` or day.

```
## not a heading
```

## Retry

- failed steps only
- never twice

### Details
More.

## Empty

## Retry
Again.
";

fn parsed(identity: &str) -> Document {
    parse("pipeline", identity, None).unwrap_or_else(|faults| panic!("{faults}"))
}

fn refused(identity: &str, context: Option<&str>) -> String {
    parse("pipeline", identity, context).unwrap_err().to_string()
}

fn skills(identity: &str) -> Vec<(String, String, String)> {
    parsed(identity).skills.into_iter().map(|it| (it.id, it.name, it.description)).collect()
}

fn owned(list: &[(&str, &str, &str)]) -> Vec<(String, String, String)> {
    list.iter().map(|(a, b, c)| ((*a).to_owned(), (*b).to_owned(), (*c).to_owned())).collect()
}

#[test]
fn heading_paragraph_and_sections_say_who_the_agent_is() {
    let page = parsed(PAGE);
    assert_eq!(page.title.as_deref(), Some("Data Pipeline Agent"));
    assert_eq!(page.description, "Runs and watches pipelines of the data team.");
    assert_eq!(page.system_prompt, PAGE.trim());
    let expected = [
        ("find-a-run", "Find a run", "Looks for runs by name or day."),
        ("retry", "Retry", "failed steps only never twice"),
        ("retry-2", "Retry", "Again."),
    ];
    assert_eq!(skills(PAGE), owned(&expected), "the empty section is none");
    assert_eq!(parsed(&PAGE.replace('\n', "\r\n")), page, "whatever its line ends");
    assert_eq!(parsed(&format!("\u{feff}{PAGE}")), page);
}

#[test]
fn a_section_of_skills_names_them_all() {
    let listed = "# A\n\nDoes.\n\n## Skills\n\n- **Deploy**: rolls out.\n- Roll back — the last one\n  - nested: not one\n1. `watch`\n\n## Other\ntext\n";
    let expected = [
        ("deploy", "Deploy", "rolls out."),
        ("roll-back", "Roll back", "the last one"),
        ("watch", "watch", "watch"),
    ];
    assert_eq!(skills(listed), owned(&expected));
    let headed = "# A\n\n## skills\n\n- of no interest: here\n\n### Über prüfen\nLooks.\n\n#### Deep\nx\n\n### Nur dies\n\n## B\ntext";
    assert_eq!(
        skills(headed),
        owned(&[("über-prüfen", "Über prüfen", "Looks."), ("nur-dies", "Nur dies", "Nur dies")])
    );
    assert_eq!(
        skills("# A\n\n## Skills\n\n## B\ntext"),
        owned(&[("b", "B", "text")]),
        "an empty one counts for nothing"
    );
}

#[test]
fn what_is_missing_is_made_of_what_there_is() {
    let cases = [
        ("Just words.", None, "Just words."),
        ("# Only a title", Some("Only a title"), "Only a title"),
        ("- a list", None, "pipeline"),
        ("## Second level\n\n- item\n\nWords.", Some("Second level"), "Words."),
        ("# T #\n<!-- note -->\nWords\non two lines\n\nmore", Some("T"), "Words on two lines"),
    ];
    for (identity, title, description) in cases {
        let page = parsed(identity);
        assert_eq!((page.title.as_deref(), page.description.as_str()), (title, description), "{identity}");
        assert!(page.skills.is_empty(), "{identity}");
    }
    let long = parsed(&format!("# {}\n\n{}", "t".repeat(100), "word ".repeat(400)));
    assert_eq!(long.title.unwrap().chars().count(), 64);
    assert!(long.description.chars().count() <= 1024 && long.description.ends_with('…'));
}

#[test]
fn context_comes_after_the_identity() {
    let page = parse("pipeline", "# A\n\nDoes.\n", Some("\nThe team is in Berlin.\r\nYes.\n")).unwrap();
    assert_eq!(page.system_prompt, "# A\n\nDoes.\n\nThe team is in Berlin.\nYes.");
    assert_eq!(parse("pipeline", "# A", Some(" \n")).unwrap().system_prompt, "# A");
}

#[test]
fn front_matter_says_what_the_agent_runs_with() {
    let page = parsed(
        "---\nname: Pipeline\ntitle: Pipes\nroutingHint: for pipes\ntools: [get_*]\nrequireApproval: ['*delete*']\nmcp:\n  - name: search\n    http: { url: 'http://rag:9446/mcp' }\n---\n# Ignored title\n\nWords.\n",
    );
    assert_eq!(
        (page.title.as_deref(), page.system_prompt.as_str()),
        (Some("Pipes"), "# Ignored title\n\nWords.")
    );
    let agent = page.agent("pipeline", None).unwrap();
    assert_eq!((agent.name.as_str(), agent.enabled), ("pipeline", true));
    assert_eq!(
        (agent.tools, agent.require_approval),
        (vec!["get_*".to_owned()], vec!["*delete*".to_owned()])
    );
    assert_eq!(agent.mcp[0].http.as_ref().unwrap().url, "http://rag:9446/mcp");
    let inline = agent.identity.unwrap().inline.unwrap();
    assert_eq!(inline.system_prompt, "# Ignored title\n\nWords.");
    assert_eq!((inline.description.as_str(), inline.routing_hint.as_deref()), ("Words.", Some("for pipes")));
    assert_eq!(parsed("---\n---\nWords.").description, "Words.");
}

#[test]
fn what_front_matter_leaves_out_is_as_the_resource_has_it() {
    let yaml = "apiVersion: caipe.io/v1alpha1\nkind: CaipeSupervisor\nmetadata: { name: t }\nspec:\n  agents: [{ name: pipeline, identity: { inline: { description: old, systemPrompt: old } }, tools: [a], requireApproval: [b] }]\n";
    let declared = crate::read_resource(yaml).unwrap().spec.agents.unwrap().remove(0);
    let agent = parsed("---\ntools: [c]\n---\nWords.").agent("pipeline", Some(&declared)).unwrap();
    assert_eq!((agent.tools, agent.require_approval), (vec!["c".to_owned()], vec!["b".to_owned()]));
    let agent = parsed("---\nrequireApproval: [d]\n---\nWords.").agent("pipeline", Some(&declared)).unwrap();
    assert_eq!(agent.require_approval, ["d", "b"], "a document takes no approval away");
    assert_eq!(agent.identity.unwrap().inline.unwrap().description, "Words.");
}

#[test]
fn a_document_that_cannot_be_taken_is_refused_with_what_to_do() {
    let large = "x".repeat(MAX_BYTES + 1);
    let many: String = std::iter::once("# A\n".to_owned())
        .chain((0..=MAX_SKILLS).map(|place| format!("## S{place}\ntext\n")))
        .collect();
    let cases = [
        ("", None, "IDENTITY.md: is empty"),
        ("---\ntools: []\n---\n\n", None, "IDENTITY.md: is empty"),
        (&large, None, "IDENTITY.md: it has 65537 bytes; at most 65536 are read"),
        ("# A", Some(large.as_str()), "CONTEXT.md: it has 65537 bytes"),
        ("---\ntools: []\n# A", None, "IDENTITY.md: the front matter has no end"),
        ("---\na: [\n---\n# A", None, "IDENTITY.md: failed to read the front matter as YAML"),
        ("---\n- a\n---\n# A", None, "IDENTITY.md: the front matter must be keys and values"),
        ("---\ntool: []\n---\n# A", None, "IDENTITY.md: tool: unknown key: use one of name, title"),
        ("---\ntitle: 3\n---\n# A", None, "IDENTITY.md: title: must be a text"),
        (
            "---\nname: other\n---\n# A",
            None,
            "IDENTITY.md: name: is `other`, and the agent that was asked for is `pipeline`",
        ),
        (&many, None, "IDENTITY.md: it has 65 skills; at most 64 are allowed"),
    ];
    for (identity, context, says) in cases {
        let refused = refused(identity, context);
        assert!(refused.starts_with(says), "{says}: {refused}");
    }
}

#[test]
fn faults_of_the_front_matter_have_their_place_in_it() {
    let page = parsed("---\nmcp: [{ name: a }]\ntools: 3\n---\n# A");
    let refused = page.agent("pipeline", None).unwrap_err().to_string();
    assert!(refused.contains("IDENTITY.md: tools: expected"), "{refused}");
    let page = parsed("# A");
    let refused = page.agent("Not A Name", None).unwrap_err().to_string();
    assert!(refused.contains("IDENTITY.md: name: "), "{refused}");
}

#[test]
fn a_paragraph_of_signs_alone_describes_nothing() {
    assert_eq!(parsed(":\n").description, "pipeline");
    assert_eq!(parsed("# Pipelines\n\n**").description, "Pipelines");
}

proptest! {
    #[test]
    fn no_document_brings_it_down(text in "[-#*`~ \\[\\]():a-zü\n]{0,200}", front in "[-a-z: \n]{0,40}") {
        for identity in [text.clone(), format!("---\n{front}\n---\n{text}")] {
            if let Ok(page) = parse("pipeline", &identity, Some(&text)) {
                prop_assert!(!page.description.is_empty() && page.description.chars().count() <= DESCRIPTION_CHARS);
                let ids: std::collections::BTreeSet<_> = page.skills.iter().map(|skill| &skill.id).collect();
                prop_assert_eq!(ids.len(), page.skills.len(), "an id is there twice");
                prop_assert!(page.skills.iter().all(|skill| !skill.name.is_empty() && !skill.description.is_empty()));
            }
        }
    }
}
