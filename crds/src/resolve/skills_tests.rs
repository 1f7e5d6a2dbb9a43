use std::collections::BTreeMap;

use crate::rendered::SkillLocation;
use crate::{Resolved, Target, read_resource, resolve_for};

fn resolved(skills: &str, target: &Target) -> Result<Resolved, String> {
    let text = format!(
        "apiVersion: caipe.io/v1alpha1\nkind: CaipeSupervisor\nmetadata: {{ name: a }}\nspec: {{ agents: [], skills: {skills} }}"
    );
    let resource = read_resource(&text).unwrap();
    resolve_for(&resource, &BTreeMap::new(), target).map_err(|faults| faults.to_string())
}

const TEAM: &str = "{ sources: [{ name: team, configMapRef: { name: skills } }] }";

#[test]
fn a_config_map_is_a_directory_of_the_pod() {
    let cluster = |names: &[&str]| Target::Cluster {
        namespace: "ns".to_owned(),
        config_maps: names.iter().map(|name| ((*name).to_owned(), BTreeMap::new())).collect(),
    };
    let skills = resolved(TEAM, &cluster(&["skills"])).unwrap().spec.skills.unwrap();
    assert_eq!(
        skills.sources[0].from,
        SkillLocation::Directory { path: "/etc/caipe/skills/team".to_owned() }
    );
    let missing = resolved(TEAM, &cluster(&["other"])).unwrap_err();
    assert_eq!(
        missing,
        "spec.skills.sources[0].configMapRef: there is no ConfigMap `skills`: create it, or correct the name"
    );
    assert!(resolved(TEAM, &Target::Local).unwrap_err().contains("set path to a directory"));
    let unread = resolved(TEAM, &Target::ClusterUnread).unwrap().warnings;
    assert!(unread.iter().any(|it| it.path == "spec.skills.sources[0].configMapRef"), "{unread:?}");
}

#[test]
fn the_token_of_a_repository_is_never_in_the_spec() {
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let skills = format!(
        "{{ sources: [{{ name: hub, github: {{ repository: o/r, commit: {commit}, secretRef: {{ name: s, key: hub-token }} }} }}] }}"
    );
    let of = |target: &Target| match resolved(&skills, target)
        .unwrap()
        .spec
        .skills
        .unwrap()
        .sources
        .remove(0)
        .from
    {
        SkillLocation::Github { token, secrets_dir, .. } => (token, secrets_dir),
        SkillLocation::Directory { path } => panic!("{path}"),
    };
    let token = Some("${hub_token}".to_owned());
    assert_eq!(of(&Target::Local), (token.clone(), None));
    assert_eq!(of(&Target::ClusterUnread), (token, Some("/var/run/caipe/secrets/skills/hub".to_owned())));
}
