use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use caipe_skills::{Gate, GitHub, Source, SourceSettings};
use tokio::sync::mpsc;

use super::*;
use crate::delegation::RunInfo;

/// A service that reads these skills from a directory.
async fn service(dir: &std::path::Path, skills: &[(&str, &str)]) -> Arc<SkillService> {
    for (name, description) in skills {
        let folder = dir.join(name);
        fs::create_dir_all(folder.join("references")).unwrap();
        let document = format!("---\nname: {name}\ndescription: {description}\n---\nSteps of {name}.\n");
        fs::write(folder.join("SKILL.md"), document).unwrap();
        fs::write(folder.join("references/a.md"), "A reference.").unwrap();
        fs::write(folder.join("logo.png"), [0x89, 0, 1]).unwrap();
    }
    let service = SkillService::new(GitHub::new(None, None).unwrap(), Gate::default());
    let settings = SourceSettings::Directory { path: dir.to_owned() };
    service.set_sources(vec![Source { name: "dir".to_owned(), settings }]);
    service.refresh_local().await;
    service
}

/// Calls a tool: its output, and the progress that the person sees.
async fn call(tools: &SkillTools, tool: &str, arguments: Value) -> (ToolOutput, Vec<String>) {
    let (progress, mut received) = mpsc::channel(4);
    let (call, run, files) = ("c".to_owned(), RunInfo::default(), Arc::default());
    let caller = Caller { call, run, files, progress, status: None };
    let Value::Object(arguments) = arguments else { panic!() };
    let output = tools.call(tool, arguments, caller, CancellationToken::new()).await;
    let mut seen = Vec::new();
    while let Some(progress) = received.recv().await {
        let Progress::Line { text, .. } = progress else { panic!("{progress:?}") };
        seen.push(text);
    }
    (output, seen)
}

#[tokio::test]
async fn an_agent_finds_uses_and_reads_the_skills_that_it_may_use() {
    let dir = tempfile::tempdir().unwrap();
    let service = service(dir.path(), &[("triage", "Rates incidents."), ("release", "Writes notes.")]).await;
    let tools = SkillTools::new(service.clone(), AgentName::new("jira"), None);
    let offered = tools.list();
    let names: BTreeSet<&str> = offered.iter().map(|tool| tool.spec.name.as_str()).collect();
    assert_eq!(names, BTreeSet::from([FIND, READ, USE]));
    assert!(
        offered
            .iter()
            .all(|tool| tool.class == ToolClass::Read && crate::builtin::is_builtin(&tool.spec.name))
    );
    let listed = &offered[1].spec.description;
    assert!(listed.ends_with("\n- release: Writes notes.\n- triage: Rates incidents."), "{listed}");
    assert!(Arc::ptr_eq(&offered, &tools.list()));

    let (found, _) = call(&tools, FIND, json!({"query": "rate this incident"})).await;
    assert_eq!(found.content, "- triage: Rates incidents.");
    let (used, seen) = call(&tools, USE, json!({"name": "triage"})).await;
    assert_eq!(seen, ["📚 Using skill triage"]);
    assert!(used.content.contains("Steps of triage.") && !used.content.contains("description:"), "{used:?}");
    assert!(
        used.content.contains("references/a.md (12 bytes)")
            && used.content.contains("logo.png (3 bytes, no text)")
    );
    let (read, seen) = call(&tools, READ, json!({"name": "triage", "path": "references/a.md"})).await;
    assert_eq!((read.content.as_str(), seen.len()), ("A reference.", 0));
    for (tool, arguments) in [
        (USE, json!({"name": "other"})),
        (USE, json!({})),
        (FIND, json!({"query": 7})),
        (READ, json!({"name": "triage", "path": "../../etc/passwd"})),
        (READ, json!({"name": "triage", "path": "logo.png"})),
        ("none", json!({})),
    ] {
        let (output, seen) = call(&tools, tool, arguments.clone()).await;
        assert!(output.is_error && seen.is_empty(), "{tool} {arguments}: {output:?}");
    }

    let limited = |patterns: &[&str]| {
        let patterns = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        SkillTools::new(service.clone(), AgentName::new("argocd"), Some(patterns))
    };
    assert!(limited(&[]).list().is_empty());
    let other = limited(&["rel*", "none"]);
    let listed = &other.list()[1].spec.description;
    assert!(listed.contains("- release:") && !listed.contains("triage"), "{listed}");
    assert!(!call(&other, USE, json!({"name": "release"})).await.0.is_error);
    for (tool, arguments) in
        [(USE, json!({"name": "triage"})), (READ, json!({"name": "triage", "path": "references/a.md"}))]
    {
        assert!(call(&other, tool, arguments).await.0.is_error, "{tool}");
    }
    let (found, _) = call(&other, FIND, json!({"query": "rate incidents"})).await;
    assert!(found.content.contains("No skill matches"), "{found:?}");
    fs::remove_dir_all(dir.path().join("release")).unwrap();
    service.refresh(true).await;
    assert!(!tools.list()[1].spec.description.contains("release"));
}

#[test]
fn the_list_of_skills_has_a_limit() {
    let lines: Vec<String> = (0..1000).map(|at| format!("- skill-{at}: {}", "d".repeat(100))).collect();
    let text = description(lines.into_iter());
    assert!(text.len() < LIST_BYTES + 100, "{}", text.len());
    let listed = text.matches("\n- skill-").count();
    assert!(
        listed > 50
            && text.ends_with(&format!("\n{} more skills: find them with `find_skills`.", 1000 - listed))
    );
}
