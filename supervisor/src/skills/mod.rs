//! The skills of this process: the sources that variables name, and the tools by which agents use them.

mod tool_source;

use std::sync::Arc;

use caipe_crds::rendered::{SkillLocation, SkillSource};
use caipe_skills::{
    CrawlError, Gate, GitHub, Location, Repository, Severity, SkillService, Source, SourceSettings, Token,
    check_commit,
};
use secrecy::SecretString;

use crate::config::{Environment, Settings};
use crate::mcp::fill;
use crate::secrets::with_secrets;

pub use tool_source::SkillTools;

/// The variable with the directory of skills.
const DIRECTORY: &str = "SKILLS_DIR";
/// The variable with the repositories of skills.
const REPOSITORIES: &str = "CAIPE_SKILLS_GITHUB";

/// Why the skills cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SkillsError {
    #[error(transparent)]
    GitHub(#[from] CrawlError),
    #[error("failed to read {name}: {value:?} is none of {expected}")]
    Variable { name: &'static str, value: String, expected: &'static str },
}

/// A service with the sources of these settings. It reads none of them yet.
///
/// # Errors
/// A variable is wrong.
pub fn service(settings: &Settings) -> Result<Arc<SkillService>, SkillsError> {
    let github = github(&settings.env, "GITHUB_TOKEN")?;
    let service = SkillService::new(github, gate(&settings.env)?);
    service.set_sources(sources(settings)?);
    Ok(service)
}

/// A client of GitHub's API (`GITHUB_API_URL`) with the token in a variable.
///
/// # Errors
/// The URL is wrong.
pub(crate) fn github(env: &Environment, token: &str) -> Result<GitHub, CrawlError> {
    let set = |name: &str| env.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
    GitHub::new(set("GITHUB_API_URL"), set(token).map(SecretString::from))
}

/// What happens to skills with findings (`SKILL_SCANNER_GATE`, `SKILL_SCANNER_FAIL_ON`).
fn gate(env: &Environment) -> Result<Gate, SkillsError> {
    let set = |name: &str| env.get(name).map(|value| value.trim().to_lowercase()).filter(|it| !it.is_empty());
    let wrong = |name, value, expected| SkillsError::Variable { name, value, expected };
    let is_strict = match set("SKILL_SCANNER_GATE").as_deref() {
        None | Some("warn") => false,
        Some("strict") => true,
        Some(other) => return Err(wrong("SKILL_SCANNER_GATE", other.to_owned(), "warn, strict")),
    };
    let least = match set("SKILL_SCANNER_FAIL_ON") {
        None => Severity::High,
        Some(text) => Severity::parse(&text)
            .ok_or_else(|| wrong("SKILL_SCANNER_FAIL_ON", text, "low, medium, high, critical"))?,
    };
    Ok(Gate { refuse: is_strict.then_some(least) })
}

/// Whether agents use skills: the spec has some, or one of the variables names a source.
pub(crate) fn are_used(settings: &Settings) -> bool {
    let is_set = |name: &str| settings.env.get(name).is_some_and(|value| !value.trim().is_empty());
    settings.spec.skills.is_some() || [DIRECTORY, REPOSITORIES].into_iter().any(is_set)
}

/// The sources that the variables name, those of the spec, and the skills that the program contains. Secrets are read now.
///
/// # Errors
/// A variable is wrong.
pub(crate) fn sources(settings: &Settings) -> Result<Vec<Source>, SkillsError> {
    let mut sources = named_by_variables(&settings.env)?;
    let declared = settings.spec.skills.iter().flat_map(|skills| &skills.sources);
    sources.extend(declared.map(|source| declared_source(source, &settings.env)));
    sources.push(source("built-in", SourceSettings::BuiltIn));
    Ok(sources)
}

/// A source of the spec. Without its token, it is read as a public repository.
fn declared_source(declared: &SkillSource, env: &Environment) -> Source {
    let settings = match &declared.from {
        SkillLocation::Directory { path } => SourceSettings::Directory { path: path.into() },
        SkillLocation::Github { repository, commit, folder, api_url, token, secrets_dir } => {
            let env = with_secrets(env, secrets_dir.as_deref());
            let token = token.as_ref().and_then(|template| match fill(template, &env) {
                Ok(token) => Some(Token(token.into())),
                Err(error) => {
                    tracing::warn!(source = declared.name, %error, "a source of skills has no token");
                    None
                }
            });
            SourceSettings::GitHub(Location {
                repository: repository.clone(),
                commit: commit.clone(),
                folder: folder.clone().unwrap_or_default(),
                api: api_url.clone(),
                token,
            })
        }
    };
    source(&declared.name, settings)
}

fn named_by_variables(env: &Environment) -> Result<Vec<Source>, SkillsError> {
    let set = |name: &str| env.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
    let directory = set(DIRECTORY).map(|path| SourceSettings::Directory { path: path.into() });
    let mut sources: Vec<Source> =
        directory.into_iter().map(|settings| source("default", settings)).collect();
    for text in set(REPOSITORIES).into_iter().flat_map(|text| text.split(',')).map(str::trim) {
        let wrong = || SkillsError::Variable {
            name: REPOSITORIES,
            value: text.to_owned(),
            expected: "OWNER/NAME@COMMIT and OWNER/NAME@COMMIT/FOLDER, separated by commas",
        };
        let (repository, rest) = text.split_once('@').ok_or_else(wrong)?;
        let (commit, folder) = rest.split_once('/').unwrap_or((rest, ""));
        check_commit(commit).map_err(|_| wrong())?;
        Repository::parse(repository).map_err(|_| wrong())?;
        let (repository, commit, folder) = (repository.to_owned(), commit.to_owned(), folder.to_owned());
        let location = Location { repository, commit, folder, ..Location::default() };
        sources.push(source(text, SourceSettings::GitHub(location)));
    }
    Ok(sources)
}

fn source(name: &str, settings: SourceSettings) -> Source {
    Source { name: name.to_owned(), settings }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn variables_name_the_sources() {
        let commit = "0123456789abcdef0123456789abcdef01234567";
        let of = |directory: &str, repositories: &str| {
            let variables = [(DIRECTORY, directory), (REPOSITORIES, repositories)];
            let env = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
            let env: Environment = Arc::new(BTreeMap::from(env));
            named_by_variables(&env).map(|sources| sources.len()).map_err(|error| error.to_string())
        };
        assert_eq!(of(" ", ""), Ok(0));
        assert_eq!(of("/skills", ""), Ok(1));
        assert_eq!(of("", &format!("o/r@{commit}, o/s@{commit}/skills/sre")), Ok(2));
        for bad in ["o/r", "o/r@main", &format!("o@{commit}"), &format!("o/r@{commit},")] {
            assert!(of("", bad).unwrap_err().contains("OWNER/NAME@COMMIT"), "{bad}");
        }
    }
}
