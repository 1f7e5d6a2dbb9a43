//! Reads the settings again when their file, or a script that it names, changes.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::{ConfigError, Environment, Scripts, Settings, task_config};

/// Rereads settings. The environment stays the one of the start.
#[derive(Debug, Clone)]
pub struct Reload {
    file: PathBuf,
    env: Environment,
    listen: SocketAddr,
    /// The scripts that the file last named.
    scripts: Scripts,
}

impl Reload {
    /// Rereads this file for a program that listens on `listen`.
    pub fn new(file: &Path, env: Environment, listen: SocketAddr) -> Self {
        Self { file: file.to_owned(), env, listen, scripts: Scripts::default() }
    }

    /// The file, that of the workflows, and the scripts that it last named, whether it was accepted or not.
    pub fn files(&self) -> Vec<PathBuf> {
        let task_config = task_config::file(&self.env);
        std::iter::once(self.file.clone()).chain(task_config).chain(self.scripts.files()).collect()
    }

    /// Reads the settings that follow these; `None` if they are the same. Unless the spec is rendered, each new content
    /// is a new epoch.
    ///
    /// # Errors
    /// As those of [`Settings::load`] and [`Settings::check_addresses`], and when a script is new or changed and cannot
    /// be used.
    pub fn after(&mut self, before: &Settings) -> Result<Option<Settings>, ConfigError> {
        let mut settings = Settings::load(Some(&self.file), self.env.clone())?;
        self.scripts = settings.scripts.clone();
        settings.check_addresses(self.listen)?;
        settings.scripts.check_since(&before.scripts)?;
        let same = settings.spec.hash == before.spec.hash && settings.scripts == before.scripts;
        if same && (!settings.rendered || settings.spec.epoch == before.spec.epoch) {
            return Ok(None);
        }
        if !settings.rendered {
            settings.spec.epoch = before.spec.epoch + 1;
        }
        Ok(Some(settings))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn resource(agents: &str) -> String {
        format!(
            "apiVersion: caipe.io/v1alpha1\nkind: CaipeSupervisor\nmetadata: {{ name: here }}\n\
             spec: {{ agents: [{agents}] }}\n"
        )
    }

    #[test]
    fn a_changed_script_is_an_epoch_and_a_broken_one_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let (file, script) = (path("spec"), path("script.yaml"));
        let answer = |text: &str| format!("turns: [{{ reply: {{ text: {text} }} }}]");
        let write = |text: &str| std::fs::write(&script, text).unwrap();
        let model = "spec: { model: { provider: scripted, script: { path: script.yaml } },";
        std::fs::write(&file, resource("").replace("spec: {", model)).unwrap();
        write(&answer("one"));
        let mut reload = Reload::new(&file, Arc::default(), "127.0.0.1:8000".parse().unwrap());
        let first = Settings::load(Some(&file), Arc::default()).unwrap();
        assert!(reload.after(&first).unwrap().is_none());
        assert_eq!(reload.files(), [file.clone(), script.clone()]);

        write(&answer("two"));
        let Some(second) = reload.after(&first).unwrap() else { panic!("the script is another") };
        assert_eq!((second.spec.epoch, &second.spec.hash), (1, &first.spec.hash));
        write("turns: 5");
        assert!(reload.after(&second).unwrap_err().to_string().contains("script.yaml"));
        std::fs::remove_file(&script).unwrap();
        assert!(reload.after(&second).unwrap_err().to_string().contains("failed to read"));
        write(&answer("two"));
        assert!(reload.after(&second).unwrap().is_none());
    }

    fn rendered(epoch: u64) -> String {
        let mut settings = Settings::load(None, Arc::default()).unwrap();
        settings.spec.epoch = epoch;
        serde_json::to_string(&settings.spec).unwrap()
    }

    #[test]
    fn each_new_content_is_an_epoch_and_what_is_wrong_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("spec");
        let write = |text: &str| std::fs::write(&file, text).unwrap();
        let mut reload = Reload::new(&file, Arc::default(), "127.0.0.1:8000".parse().unwrap());
        write(&resource("{ name: jira }"));
        let first = Settings::load(Some(&file), Arc::default()).unwrap();
        assert!(reload.after(&first).unwrap().is_none());

        write(&resource("{ name: jira }, { name: github }"));
        let Some(second) = reload.after(&first).unwrap() else { panic!("there is another agent") };
        assert_eq!((second.spec.epoch, second.spec.agents.len()), (1, 2));

        write(&resource("{ name: jira, colour: red }"));
        assert!(reload.after(&second).unwrap_err().to_string().contains("colour"));
        write(&resource("{ name: x, external: { url: 'http://localhost:8000' } }"));
        assert!(reload.after(&second).unwrap_err().to_string().contains("own address"));
        std::fs::remove_file(&file).unwrap();
        assert!(reload.after(&second).unwrap_err().to_string().contains("failed to read"));

        // The operator counts for itself, and may count on without a change.
        for (epoch, text) in [(7, rendered(7)), (8, rendered(8)), (3, rendered(3))] {
            write(&text);
            let Some(next) = reload.after(&second).unwrap() else { panic!("epoch {epoch}") };
            assert_eq!(next.spec.epoch, epoch);
        }
    }
}
