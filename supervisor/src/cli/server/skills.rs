//! The skills of a server: their directory, the keys of their catalogue, and the refresh in the background.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use axum::http::HeaderName;
use caipe_crds::rendered::Store as StoreChoice;
use caipe_skills::{ApiKeys, SkillService};
use tokio_util::sync::CancellationToken;

use crate::config::Environment;
use crate::http::SkillsApi;

/// The default header of a key of the catalogue.
const KEY_HEADER: &str = "x-caipe-catalog-key";

/// The directory of added skills and of keys, beside the file of the store; none with a store that leaves the directory of the
/// process empty at each start.
pub(super) fn directory(store: &StoreChoice, file: &Path) -> Option<PathBuf> {
    matches!(store, StoreChoice::Sqlite {}).then(|| file.with_extension("skills"))
}

/// The keys of the catalogue. `CAIPE_CATALOG_API_KEY_PEPPER` is a secret that is part of each hash.
pub(super) fn open_keys(directory: Option<&Path>, env: &Environment) -> anyhow::Result<Option<Arc<ApiKeys>>> {
    let Some(directory) = directory else { return Ok(None) };
    std::fs::create_dir_all(directory)
        .with_context(|| format!("failed to make the directory {}", directory.display()))?;
    let set = |name: &str| env.get(name).filter(|value| !value.is_empty()).cloned();
    let pepper =
        set("CAIPE_CATALOG_API_KEY_PEPPER").or_else(|| set("SKILLS_API_KEY_PEPPER")).unwrap_or_default();
    let keys = ApiKeys::open(directory.join("api-keys.json"), pepper.into())?;
    Ok(Some(Arc::new(keys)))
}

/// The state of the routes.
pub(super) fn api(
    service: Arc<SkillService>,
    keys: Option<Arc<ApiKeys>>,
    env: &Environment,
) -> anyhow::Result<SkillsApi> {
    let header =
        env.get("CAIPE_CATALOG_API_KEY_HEADER").map(|name| name.trim()).filter(|name| !name.is_empty());
    let header: HeaderName = header
        .unwrap_or(KEY_HEADER)
        .parse()
        .context("CAIPE_CATALOG_API_KEY_HEADER is not the name of a header")?;
    Ok(SkillsApi::new(service, keys, header, env.clone()))
}

/// Reads the skills of this machine, and the others in the background.
pub(super) async fn start(service: &Arc<SkillService>, directory: Option<PathBuf>, stop: CancellationToken) {
    if let Some(directory) = directory {
        service.open_added(directory.join("added")).await;
    }
    service.refresh_local().await;
    tokio::spawn(service.clone().run(stop));
}
