use super::*;
use crate::text::Text;

fn skill(id: &str, name: &str, kind: SourceKind) -> Skill {
    Skill {
        id: id.to_owned(),
        name: name.to_owned(),
        description: format!("About {name}. Use for Größe."),
        origin: Origin { kind, id: "test".into(), is_built_in: false },
        content: Text::from(""),
        instructions_at: 0,
        metadata: serde_json::Map::new(),
        resources: Vec::new(),
        visibility: Visibility::Global,
        team_ids: Vec::new(),
        owner: None,
        findings: Vec::new(),
    }
}

fn catalog(skills: impl IntoIterator<Item = Skill>) -> Catalog {
    Catalog::new(1, skills.into_iter().map(Arc::new))
}

fn ids(catalog: &Catalog, reader: &Reader, filter: &Filter) -> Vec<String> {
    catalog.list(reader, filter, 0, 100).skills.iter().map(|skill| skill.id.clone()).collect()
}

#[test]
fn the_first_kind_of_source_wins_a_name() {
    use SourceKind::{AgentSkills, Default, Hub};
    let all = [
        skill("hub", "a", Hub),
        skill("added", "a", AgentSkills),
        skill("default", "a", Default),
        skill("b", "b", Hub),
    ];
    let catalog = catalog(all);
    assert_eq!(ids(&catalog, &Reader::default(), &Filter::default()), ["default", "b"]);
}

#[test]
fn a_reader_sees_what_it_may_read() {
    let own = |id: &str, visibility, owner: &str, teams: &[&str]| Skill {
        visibility,
        owner: Some(owner.to_owned()),
        team_ids: teams.iter().map(|team| (*team).to_owned()).collect(),
        ..skill(id, id, SourceKind::AgentSkills)
    };
    let catalog = catalog([
        skill("g", "g", SourceKind::Default),
        own("pa", Visibility::Personal, "anna", &[]),
        own("pb", Visibility::Personal, "bob", &[]),
        own("t", Visibility::Team, "bob", &["sre"]),
        // A global skill has this name already.
        Skill { name: "g".to_owned(), ..own("x", Visibility::Personal, "anna", &[]) },
    ]);
    let reader = |name: Option<&str>, teams: &[&str]| Reader {
        reads_all: false,
        principal: name.map(str::to_owned),
        teams: teams.iter().map(|team| (*team).to_owned()).collect(),
    };
    for (reader, expected) in [
        (reader(None, &[]), vec!["g"]),
        (reader(Some("anna"), &[]), vec!["g", "pa"]),
        (reader(Some("anna"), &["sre"]), vec!["g", "pa", "t"]),
        (reader(Some("bob"), &[]), vec!["g", "pb", "t"]),
        (reader(None, &["sre"]), vec!["g", "t"]),
        (Reader { reads_all: true, ..Reader::default() }, vec!["g", "pa", "pb", "t"]),
    ] {
        assert_eq!(ids(&catalog, &reader, &Filter::default()), expected, "{reader:?}");
        assert_eq!(catalog.skill(&reader, "pb").is_some(), expected.contains(&"pb"));
    }
    let personal = Filter { visibility: Some(Visibility::Personal), ..Filter::default() };
    assert_eq!(ids(&catalog, &reader(Some("anna"), &[]), &personal), ["pa"]);
    let usable: Vec<&str> = catalog.all_global().map(|skill| skill.id.as_str()).collect();
    assert_eq!(usable, ["g"]);
}

#[test]
fn filters_and_pages() {
    let mut tagged = skill("c", "c", SourceKind::Hub);
    tagged.metadata.insert("tags".to_owned(), serde_json::json!(["x", "y"]));
    let catalog =
        catalog([skill("a", "a", SourceKind::Default), skill("b", "b", SourceKind::Default), tagged]);
    let filter = |text: &str| Filter { text: Some(text.to_owned()), ..Filter::default() };
    let reader = Reader::default();
    assert_eq!(ids(&catalog, &reader, &filter("ABOUT B")), ["b"]);
    assert_eq!(ids(&catalog, &reader, &filter("GRÖSSE")), Vec::<String>::new());
    assert_eq!(ids(&catalog, &reader, &filter("GRÖßE")).len(), 3);
    let tags = Filter { tags: vec!["z".to_owned(), "y".to_owned()], ..Filter::default() };
    assert_eq!(ids(&catalog, &reader, &tags), ["c"]);
    let hub = Filter { source: Some(SourceKind::Hub), ..Filter::default() };
    assert_eq!(ids(&catalog, &reader, &hub), ["c"]);
    let page = catalog.list(&reader, &Filter::default(), 1, 1);
    assert_eq!((page.skills[0].id.as_str(), page.total), ("b", 3));
    assert_eq!(catalog.list(&reader, &Filter::default(), 9, 1).skills.len(), 0);
}

#[test]
fn words_find_skills_that_the_agent_may_use() {
    let limited = skill("argocd-rollback", "argocd-rollback", SourceKind::Default);
    let catalog = catalog([limited, skill("postmortem", "postmortem", SourceKind::Default)]);
    let found = |agent: &str, query: &str| {
        catalog
            .find(query, |name| agent == "argocd" || name != "argocd-rollback")
            .iter()
            .map(|it| it.name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(found("argocd", "roll back: a rollback in ArgoCD!"), ["argocd-rollback"]);
    assert_eq!(found("jira", "a rollback"), Vec::<String>::new());
    assert_eq!(found("jira", "about"), ["postmortem"]);
    assert!(catalog.global("argocd-rollback").is_some());
    assert!(catalog.global("argocd").is_none());
}
