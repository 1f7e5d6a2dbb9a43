//! The sources of skills.

use crate::rendered::{SkillLocation, SkillSource, Skills};
use crate::resource::common::SecretKeyRef;
use crate::resource::skills as declared;

use super::{Context, SKILLS_ROOT, SKILLS_SECRETS, Target};

pub(super) fn skills(cx: &mut Context<'_>) -> Option<Skills> {
    let declared = cx.resource.spec.skills.as_ref()?;
    let source = |(at, source)| {
        let from = location(cx, &format!("spec.skills.sources[{at}]"), source)?;
        Some(SkillSource { name: source.name.clone(), from })
    };
    let sources = declared.sources.iter().enumerate().filter_map(source).collect();
    Some(Skills { sources, supervisor: declared.supervisor.clone() })
}

/// Where a source is; none if it has a fault.
fn location(cx: &mut Context<'_>, path: &str, source: &declared::SkillSource) -> Option<SkillLocation> {
    if let Some(map) = &source.config_map_ref {
        has_config_map(cx, &format!("{path}.configMapRef"), &map.name)
            .then(|| SkillLocation::Directory { path: format!("{SKILLS_ROOT}/{}", source.name) })
    } else if let Some(directory) = &source.path {
        Some(SkillLocation::Directory { path: directory.clone() })
    } else {
        let github = source.github.as_ref()?;
        let token = github.secret_ref.as_ref().map(|token| SecretKeyRef::from(token).variable());
        let owner = format!("{SKILLS_SECRETS}/{}", source.name);
        Some(SkillLocation::Github {
            repository: github.repository.clone(),
            commit: github.commit.clone(),
            folder: github.folder.clone(),
            api_url: github.api_url.clone(),
            secrets_dir: cx.secrets_dir(&owner, token.is_some()),
            token: token.map(|variable| format!("${{{variable}}}")),
        })
    }
}

/// Whether the pod can have the `ConfigMap`; a fault if not.
fn has_config_map(cx: &mut Context<'_>, path: &str, name: &str) -> bool {
    cx.note_unread(path, name);
    let message = match cx.target {
        Target::Cluster { config_maps, .. } if !config_maps.contains_key(name) => {
            format!("there is no ConfigMap `{name}`: create it, or correct the name")
        }
        Target::Local => "a ConfigMap can only be read in a cluster: set path to a directory".to_owned(),
        Target::Cluster { .. } | Target::ClusterUnread => return true,
    };
    cx.fault(path, message);
    false
}

#[cfg(test)]
#[path = "skills_tests.rs"]
mod tests;
