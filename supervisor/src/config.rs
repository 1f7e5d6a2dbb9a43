//! Reads the settings from a file and the environment, and again when the file or one of its scripts changes.

mod models;
mod own_address;
mod reload;
mod scripts;
mod single_agent;
mod task_config;
mod watch;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use caipe_crds::resolve::DATA_DIR;
use caipe_crds::{
    CaipeSupervisor, Document, Fault, Faults, Partial, RenderedSpec, Resolved, Target, default_resource,
    read_partially, resolve, resolve_for,
};
use caipe_model::ScriptError;
use caipe_net::{AllowList, AllowListError, Screen};

pub(crate) use models::{
    ModelChoiceError, has_model_variables, inferred_model, model_settings, split_provider,
};
pub use reload::Reload;
pub use scripts::Scripts;
pub use single_agent::SingleAgent;
pub use watch::FileWatch;

pub use crate::secrets::Environment;

/// The largest specification that is read, in bytes; etcd stores no larger object either.
const MAX_FILE: u64 = 1_500_000;

/// The entry of an allow list that allows every public address.
const PUBLIC: &str = "*";

/// The configuration of a process.
#[derive(Clone)]
pub struct Settings {
    pub spec: RenderedSpec,
    /// Faults that do not prevent a start.
    pub warnings: Vec<Fault>,
    /// The directory that paths in the specification are relative to.
    pub base: PathBuf,
    pub env: Environment,
    /// Whether the operator has rendered the spec and counts its epochs.
    pub rendered: bool,
    /// The files of scripted models.
    pub scripts: Scripts,
    /// The model that takes the place of the supervisor's models, as `NAME` or `PROVIDER/NAME`, if an evaluation chooses one.
    pub model: Option<String>,
}

/// Why settings cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("failed to read {path}: {reason}")]
    Unreadable {
        /// The file.
        path: String,
        reason: String,
    },
    /// The file, or the environment, is wrong; one line a fault.
    #[error("{}", located(.source_name, .faults))]
    Faulty {
        /// The file's name, or "the environment".
        source_name: String,
        /// What is wrong, and where.
        faults: Faults,
    },
    /// The file of a scripted model is not a script.
    #[error(transparent)]
    Script(#[from] ScriptError),
}

impl ConfigError {
    /// The faults of a file, or of the environment if there is no file.
    fn faulty(file: Option<&Path>, faults: Faults) -> Self {
        let source_name =
            file.map_or_else(|| "the environment".to_owned(), |path| path.display().to_string());
        Self::Faulty { source_name, faults }
    }
}

/// Each fault on a line, after the name of the file that has it.
fn located(source: &str, faults: &Faults) -> String {
    let lines: Vec<String> = faults.as_slice().iter().map(|fault| format!("{source}: {fault}")).collect();
    lines.join("\n")
}

/// Shows the names of environment variables, never their values, because some are secrets.
impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("spec", &self.spec)
            .field("warnings", &self.warnings)
            .field("base", &self.base)
            .field("env", &self.env.keys())
            .field("rendered", &self.rendered)
            .field("scripts", &self.scripts)
            .field("model", &self.model)
            .finish()
    }
}

impl Settings {
    /// Reads the file, a resource or a rendered spec; without a file, the core agents run. The environment overrides a
    /// resource.
    ///
    /// # Errors
    /// When the file cannot be read, or when the file or a variable is wrong; the error has every fault.
    pub fn load(file: Option<&Path>, env: Environment) -> Result<Self, ConfigError> {
        let (resolved, rendered) = resolved(file, |resource| {
            let resource = task_config::applied(resource, &env)?;
            resolve(&resource, &env)
        })?;
        let base = file.and_then(Path::parent).map(Path::to_path_buf).unwrap_or_default();
        Ok(Self::new(resolved, base, env, rendered))
    }

    /// Checks a file as for a pod of a cluster, without the cluster and without this machine's environment.
    ///
    /// # Errors
    /// As those of [`Settings::load`].
    pub fn check_for_cluster(file: &Path) -> Result<Resolved, ConfigError> {
        let (resolved, _) =
            resolved(Some(file), |resource| resolve_for(resource, &BTreeMap::new(), &Target::ClusterUnread))?;
        Ok(resolved)
    }

    /// The settings of a specification, with the scripts that it names.
    pub(crate) fn new(resolved: Resolved, base: PathBuf, env: Environment, rendered: bool) -> Self {
        let Resolved { spec, warnings } = resolved;
        let (scripts, model) = (Scripts::default(), None);
        let mut settings = Self { spec, warnings, base, env, rendered, scripts, model };
        settings.scripts = Scripts::read(models::script_files(&settings));
        settings
    }

    /// Refuses agents whose address is the one on which this program listens.
    ///
    /// # Errors
    /// With every such agent.
    pub fn check_addresses(&self, listen: SocketAddr) -> Result<(), ConfigError> {
        Faults::check(own_address::faults(&self.spec, listen))
            .map_err(|faults| ConfigError::Faulty { source_name: "the agents' addresses".to_owned(), faults })
    }
}

/// The resolved content of a file, and whether the operator rendered it.
fn resolved(
    file: Option<&Path>,
    resolve: impl FnOnce(&CaipeSupervisor) -> Result<Resolved, Faults>,
) -> Result<(Resolved, bool), ConfigError> {
    let faulty = |faults| ConfigError::faulty(file, faults);
    let partial = match file {
        Some(path) => read_partially(&read_bounded(path)?).map_err(faulty)?,
        None => Partial::from(default_resource()),
    };
    let rendered = matches!(partial.document, Document::Rendered(_));
    let resolved = match &partial.document {
        Document::Resource(resource) => resolve(resource),
        Document::Rendered(resolved) => Ok(resolved.as_ref().clone()),
    };
    let found = resolved.as_ref().err().cloned().into_iter().flatten().collect::<Vec<_>>();
    Faults::check(partial.with(found)).map_err(faulty)?;
    let resolved = resolved.map_err(faulty)?;
    Faults::check(allow_fault(&resolved.spec).into_iter().collect()).map_err(faulty)?;
    Ok((resolved, rendered))
}

/// The fault of the list of addresses that the tools for other A2A agents may call.
fn allow_fault(spec: &RenderedSpec) -> Option<Fault> {
    let error = a2a_screen(&spec.a2a.as_ref()?.allow).err()?;
    Some(Fault::new("spec.a2a.allow", error.to_string()))
}

/// The addresses that the tools for other A2A agents may call. `*` allows every public address; without it, only the
/// listed ones are allowed.
///
/// # Errors
/// When an entry cannot be read.
pub fn a2a_screen(allow: &[String]) -> Result<Screen, AllowListError> {
    let (public, listed): (Vec<&str>, Vec<&str>) =
        allow.iter().map(String::as_str).partition(|entry| *entry == PUBLIC);
    let screen = Screen::new(listed.join(",").parse::<AllowList>()?);
    Ok(if public.is_empty() { screen.only_listed() } else { screen })
}

fn read_bounded(path: &Path) -> Result<String, ConfigError> {
    let unreadable = |reason: String| ConfigError::Unreadable { path: path.display().to_string(), reason };
    let metadata = std::fs::metadata(path).map_err(|error| unreadable(error.to_string()))?;
    // To open a pipe blocks until another process writes to it.
    if !metadata.is_file() {
        return Err(unreadable("it is not a regular file".to_owned()));
    }
    let size = metadata.len();
    if size > MAX_FILE {
        return Err(unreadable(format!("it has {size} bytes; at most {MAX_FILE} are read")));
    }
    std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))
}

/// The process environment; variables that are not UTF-8 are left out.
pub fn environment() -> Environment {
    variables().into()
}

/// The same for a program that has its data in this directory, whatever says so.
pub fn environment_with_data(directory: &Path) -> Environment {
    let mut variables = variables();
    variables.insert(DATA_DIR.to_owned(), directory.to_string_lossy().into_owned());
    variables.into()
}

fn variables() -> BTreeMap<String, String> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text).collect()
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
