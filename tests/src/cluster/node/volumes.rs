//! The volumes of a pod, as directories.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{KeyToPath, ProjectedVolumeSource, Volume, VolumeProjection};
use kube::ResourceExt;
use rustix::fs::{Gid, chown};

use super::sources::Sources;
use crate::supervisor::unique;

type Files = BTreeMap<String, Vec<u8>>;

/// Where the volumes of a pod are, and where those that outlive it.
pub(super) struct Place<'a> {
    pub(super) pod: &'a Path,
    pub(super) claims: &'a Path,
}

impl Place<'_> {
    /// The directory of a volume.
    pub(super) fn of(&self, volume: &Volume, namespace: &str) -> PathBuf {
        let claim = volume.persistent_volume_claim.as_ref();
        claim.map_or_else(
            || self.pod.join("volumes").join(&volume.name),
            |claim| self.claims.join(namespace).join(&claim.claim_name),
        )
    }
}

/// Makes all volumes as they should be now. What is not there and must be is an error.
pub(super) async fn write(place: &Place<'_>, sources: &Sources<'_>) -> Result<(), String> {
    let Some(spec) = &sources.pod.spec else { return Ok(()) };
    let namespace = sources.pod.namespace().unwrap_or_default();
    let group = spec.security_context.as_ref().and_then(|context| context.fs_group);
    for volume in spec.volumes.iter().flatten() {
        let dir = place.of(volume, &namespace);
        let content = content(volume, sources).await?;
        let written = match content {
            Some((files, mode)) => replace(&dir, &files, mode.unwrap_or(0o644), group),
            None => shared(&dir),
        };
        written.map_err(|error| format!("volume {}: {error}", volume.name))?;
    }
    Ok(())
}

/// The files of a volume that shows something, and their mode; nothing for one that is written to.
async fn content(volume: &Volume, sources: &Sources<'_>) -> Result<Option<(Files, Option<i32>)>, String> {
    if let Some(map) = &volume.config_map {
        let files = sources.config_map(&map.name, map.optional).await?;
        return Ok(Some((chosen(files, map.items.as_deref()), map.default_mode)));
    }
    if let Some(secret) = &volume.secret {
        let name = secret.secret_name.as_deref().unwrap_or_default();
        let files = sources.secret(name, secret.optional).await?;
        return Ok(Some((chosen(files, secret.items.as_deref()), secret.default_mode)));
    }
    if let Some(projected) = &volume.projected {
        return Ok(Some((together(projected, sources).await?, projected.default_mode)));
    }
    let known = volume.empty_dir.is_some() || volume.persistent_volume_claim.is_some();
    if known { Ok(None) } else { Err(format!("volume {} is of a kind that this node has not", volume.name)) }
}

async fn together(projected: &ProjectedVolumeSource, sources: &Sources<'_>) -> Result<Files, String> {
    let mut files = Files::new();
    for source in projected.sources.iter().flatten() {
        files.extend(projection(source, sources).await?);
    }
    Ok(files)
}

async fn projection(source: &VolumeProjection, sources: &Sources<'_>) -> Result<Files, String> {
    if let Some(map) = &source.config_map {
        return Ok(chosen(sources.config_map(&map.name, map.optional).await?, map.items.as_deref()));
    }
    if let Some(secret) = &source.secret {
        return Ok(chosen(sources.secret(&secret.name, secret.optional).await?, secret.items.as_deref()));
    }
    if let Some(token) = &source.service_account_token {
        let text = sources.token(token.audience.as_deref(), token.expiration_seconds).await?;
        return Ok(Files::from([(token.path.clone(), text.into_bytes())]));
    }
    let fields = source.downward_api.iter().flat_map(|api| api.items.iter().flatten());
    let file = |(path, field): (&String, Option<String>)| Some((path.clone(), field?.into_bytes()));
    let fields = fields
        .map(|item| (&item.path, item.field_ref.as_ref().and_then(|field| sources.field(&field.field_path))));
    Ok(fields.filter_map(file).collect())
}

/// The files that `items` choose; all without it.
fn chosen(files: Files, items: Option<&[KeyToPath]>) -> Files {
    let Some(items) = items.filter(|items| !items.is_empty()) else { return files };
    items.iter().filter_map(|item| Some((item.path.clone(), files.get(&item.key)?.clone()))).collect()
}

/// A directory that everybody may write to.
fn shared(dir: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(dir)?;
    std::fs::set_permissions(dir, PermissionsExt::from_mode(0o777))
}

/// Shows these files all at once, as the kubelet does: `..data` leads to a directory of one state, and each file leads
/// through it. A state that is shown already is left alone.
fn replace(dir: &Path, files: &Files, mode: i32, group: Option<i64>) -> std::io::Result<()> {
    std::fs::create_dir_all(dir)?;
    let data = dir.join("..data");
    if data.exists() && read(&data)? == *files {
        return Ok(());
    }
    let state = unique("..state");
    let inside = dir.join(&state);
    std::fs::create_dir(&inside)?;
    let group = group.and_then(|group| u32::try_from(group).ok()).map(Gid::from_raw);
    for (name, content) in files {
        let path = inside.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(&inside))?;
        std::fs::write(&path, content)?;
        std::fs::set_permissions(&path, PermissionsExt::from_mode(u32::try_from(mode).unwrap_or(0o644)))?;
        chown(&path, None, group)?;
    }
    let before = std::fs::read_link(&data).ok();
    symlink(&state, dir.join("..next"))?;
    std::fs::rename(dir.join("..next"), &data)?;
    link_files(dir, files)?;
    before.map_or(Ok(()), |before| std::fs::remove_dir_all(dir.join(before)))
}

/// Links for what is new, none for what is gone.
fn link_files(dir: &Path, files: &Files) -> std::io::Result<()> {
    let first = |name: &str| name.split('/').next().unwrap_or_default().to_owned();
    let wanted: Vec<String> = files.keys().map(|name| first(name)).collect();
    for entry in std::fs::read_dir(dir)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with("..") && !wanted.contains(&name) {
            std::fs::remove_file(entry.path())?;
        }
    }
    for name in wanted {
        if !dir.join(&name).is_symlink() {
            symlink(Path::new("..data").join(&name), dir.join(&name))?;
        }
    }
    Ok(())
}

fn read(dir: &Path) -> std::io::Result<Files> {
    let mut files = Files::new();
    for entry in std::fs::read_dir(dir)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() {
            let below = read(&entry.path())?;
            files.extend(below.into_iter().map(|(path, content)| (format!("{name}/{path}"), content)));
        } else {
            files.insert(name, std::fs::read(entry.path())?);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_replaced_at_once_and_only_if_it_differs() {
        let dir = tempfile::tempdir().unwrap();
        let files = |pairs: &[(&str, &str)]| -> Files {
            pairs.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect()
        };
        let show = |pairs| replace(dir.path(), &files(pairs), 0o640, None).unwrap();
        let state = || std::fs::read_link(dir.path().join("..data")).unwrap();
        show(&[("a", "1"), ("b", "2")]);
        let first = state();
        assert_eq!(std::fs::read_to_string(dir.path().join("a")).unwrap(), "1");
        show(&[("a", "1"), ("b", "2")]);
        assert_eq!(state(), first);
        show(&[("a", "3"), ("c/d", "4")]);
        assert_ne!(state(), first);
        assert_eq!(std::fs::read_to_string(dir.path().join("a")).unwrap(), "3");
        assert_eq!(std::fs::read_to_string(dir.path().join("c/d")).unwrap(), "4");
        assert!(!dir.path().join("b").exists() && !dir.path().join(first).exists());
    }
}
