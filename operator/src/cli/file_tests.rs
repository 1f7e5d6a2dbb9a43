use super::*;

const RESOURCE: &str = "apiVersion: caipe.io/v1alpha1
kind: CaipeSupervisor
metadata: { name: platform, namespace: team }
spec:
  distributedAgents: [jira]
  agents:
    - name: jira
    - name: runbooks
      identity: { configMapRef: { name: runbooks } }
";

const CONFIG_MAP: &str = "apiVersion: v1
kind: ConfigMap
metadata: { name: runbooks }
data: { description: Reads runbooks., systemPrompt: You read runbooks. }
";

#[test]
fn a_resource_is_rendered_with_the_config_maps_beside_it() {
    for text in
        [format!("{RESOURCE}---\n{CONFIG_MAP}"), format!("# first\n---\n{CONFIG_MAP}--- \n{RESOURCE}---\n")]
    {
        let checked = Checked::read(&text).unwrap_or_else(|faults| panic!("{faults}"));
        let spec = checked.resolved.spec;
        let prompt = |name: &str| spec.agent(name).map(|agent| agent.system_prompt.as_str());
        assert_eq!(prompt("runbooks"), Some("You read runbooks."));
        assert_ne!(prompt("jira"), Some(""), "the remote agent's own pod reads this spec too");
        let yaml = serde_saphyr::to_string(&spec).unwrap();
        assert!(yaml.contains("http://platform-jira.team.svc:8000"), "{yaml}");
    }
}

#[test]
fn a_missing_config_map_is_a_fault_with_its_name() {
    let faults = Checked::read(RESOURCE).unwrap_err().to_string();
    assert!(faults.contains("ConfigMap `runbooks`"), "{faults}");
}

#[test]
fn one_resource_at_a_time() {
    let faults = Checked::read(&format!("{RESOURCE}---\n{RESOURCE}")).unwrap_err().to_string();
    assert!(faults.contains("more than one resource"), "{faults}");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = documents::read(Path::new("/nowhere/at-all.yaml")).unwrap_err();
    assert!(format!("{error:#}").contains("/nowhere/at-all.yaml"));
}
