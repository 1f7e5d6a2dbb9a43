//! The file of self-service workflows that `TASK_CONFIG_PATH` names.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use caipe_crds::resolve::read_task_config;
use caipe_crds::resource::workflow::Workflows;
use caipe_crds::{CaipeSupervisor, Fault, Faults};

use super::read_bounded;

/// The variable with the path of the file, as in upstream.
const VARIABLE: &str = "TASK_CONFIG_PATH";

/// The path of the file, if the variable is set.
pub(super) fn file(env: &BTreeMap<String, String>) -> Option<PathBuf> {
    let path = env.get(VARIABLE).map(|path| path.trim()).filter(|path| !path.is_empty());
    path.map(PathBuf::from)
}

/// The resource with the workflows of the file in place of its own, if there is a file.
pub(super) fn applied<'a>(
    resource: &'a CaipeSupervisor,
    env: &BTreeMap<String, String>,
) -> Result<Cow<'a, CaipeSupervisor>, Faults> {
    let Some(path) = file(env) else { return Ok(Cow::Borrowed(resource)) };
    let mut resource = resource.clone();
    resource.spec.workflows = Some(read(&path)?);
    Ok(Cow::Owned(resource))
}

fn read(path: &Path) -> Result<Workflows, Fault> {
    let fault = |reason: String| Fault::new(format!("${VARIABLE}"), reason);
    let text = read_bounded(path).map_err(|error| fault(error.to_string()))?;
    let workflows = read_task_config(&text).map_err(|error| fault(format!("{}: {error}", path.display())))?;
    Ok(Workflows { inline: Some(workflows), config_map_ref: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASKS: &str = "Ask Jira: { tasks: [{ display_text: Look, subagent: jira, llm_prompt: Look. }] }";

    fn applied_to(text: &str) -> Result<CaipeSupervisor, Faults> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("task_config.yaml");
        std::fs::write(&path, text).unwrap();
        let env = BTreeMap::from([(VARIABLE.to_owned(), format!(" {} ", path.display()))]);
        assert_eq!(file(&env), Some(path));
        applied(&caipe_crds::default_resource(), &env).map(Cow::into_owned)
    }

    #[test]
    fn the_workflows_of_the_file_replace_those_of_the_resource() {
        let workflows = applied_to(TASKS).unwrap().spec.workflows.unwrap().inline.unwrap();
        assert_eq!((workflows.len(), workflows[0].name.as_str()), (1, "Ask Jira"));
        let fault = applied_to("Ask Jira: { tasks: [{}] }").unwrap_err().to_string();
        assert!(
            fault.starts_with("$TASK_CONFIG_PATH: ") && fault.contains("Ask Jira.tasks[0]: missing field"),
            "{fault}"
        );
        let missing = BTreeMap::from([(VARIABLE.to_owned(), "/no/such/file".to_owned())]);
        let fault = applied(&caipe_crds::default_resource(), &missing).unwrap_err().to_string();
        assert!(fault.starts_with("$TASK_CONFIG_PATH: failed to read /no/such/file"), "{fault}");
        assert!(matches!(applied(&caipe_crds::default_resource(), &BTreeMap::new()), Ok(Cow::Borrowed(_))));
    }
}
