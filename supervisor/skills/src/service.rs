//! Reads the sources in the background, and publishes the catalogue.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use tokio::sync::{Notify, watch};
use tokio::task::spawn_blocking;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::added::{AddError, AddedSkills, NewSkill};
use crate::catalog::Catalog;
use crate::content_check::Gate;
use crate::directory::{fingerprint, read_folder};
use crate::fault::Fault;
use crate::github::{GitHub, Location, Repository};
use crate::skill::{Origin, Skill, SourceKind, Visibility};

/// The time between two reads of directories, whose unchanged files are not read again.
const INTERVAL: Duration = Duration::from_secs(30);
/// The time until a repository that failed is read again.
const RETRY: Duration = Duration::from_mins(5);

/// What a source is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceSettings {
    /// The skills that the program contains.
    BuiltIn,
    /// A directory, or a mounted `ConfigMap`.
    Directory { path: PathBuf },
    /// A commit of a GitHub repository.
    GitHub(Location),
}

/// A source of skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Unique.
    pub name: String,
    pub settings: SourceSettings,
}

/// Why a source cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SourceError(String);

/// The state of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceState {
    pub name: String,
    pub kind: SourceKind,
    /// How many skills it has; those of the last successful read.
    pub skills: usize,
    /// Why the last read failed.
    pub error: Option<String>,
    /// The skills that are left out.
    pub faults: Vec<Fault>,
}

/// What a refresh did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refreshed {
    pub generation: u64,
    pub skills: usize,
    /// How many sources failed.
    pub failed: usize,
}

/// Counts for metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub skills: usize,
    pub failed_sources: usize,
}

/// A source with its last successful read.
#[derive(Debug)]
struct Entry {
    source: Source,
    skills: Vec<Arc<Skill>>,
    error: Option<String>,
    faults: Vec<Fault>,
    /// Of the directory as it was read.
    fingerprint: Option<u64>,
    has_read: bool,
    retry_at: Option<Instant>,
}

/// The skills of this process.
#[derive(Debug)]
pub struct SkillService {
    github: GitHub,
    gate: Gate,
    catalog: ArcSwap<Catalog>,
    /// When the newest catalogue was made.
    merged_at: Mutex<Option<Timestamp>>,
    entries: Mutex<Vec<Entry>>,
    added: OnceLock<AddedSkills>,
    added_skills: Mutex<Vec<Arc<Skill>>>,
    /// One refresh, or one change of the added skills, at a time.
    turn: tokio::sync::Mutex<()>,
    wake: Notify,
    generation: watch::Sender<u64>,
}

impl SkillService {
    /// A service without sources.
    pub fn new(github: GitHub, gate: Gate) -> Arc<Self> {
        Arc::new(Self {
            github,
            gate,
            catalog: ArcSwap::default(),
            merged_at: Mutex::default(),
            entries: Mutex::default(),
            added: OnceLock::new(),
            added_skills: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            wake: Notify::new(),
            generation: watch::Sender::new(0),
        })
    }

    /// The newest catalogue.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// When the newest catalogue was made; none before the first one.
    pub fn merged_at(&self) -> Option<Timestamp> {
        *lock(&self.merged_at)
    }

    /// The client of GitHub.
    pub const fn github(&self) -> &GitHub {
        &self.github
    }

    /// What happens to skills with findings.
    pub const fn gate(&self) -> Gate {
        self.gate
    }

    /// Replaces the sources. The next refresh, which is woken, reads the new and the changed ones. A changed source keeps the
    /// skills of its last read until then.
    pub fn set_sources(&self, sources: Vec<Source>) {
        let mut entries = lock(&self.entries);
        let mut old = std::mem::take(&mut *entries);
        for source in sources {
            let known = old.iter().position(|entry| entry.source.name == source.name);
            entries.push(match known.map(|at| old.swap_remove(at)) {
                Some(same) if same.source == source => same,
                Some(changed) => Entry { skills: changed.skills, ..Entry::new(source) },
                None => Entry::new(source),
            });
        }
        drop(entries);
        self.publish();
        self.wake.notify_one();
    }

    /// Opens the directory of added skills, once.
    pub async fn open_added(&self, directory: PathBuf) {
        let added = AddedSkills::new(directory, self.gate);
        if self.added.set(added.clone()).is_ok() {
            self.load_added(added).await;
        }
    }

    async fn load_added(&self, added: AddedSkills) {
        let Ok((skills, faults)) = spawn_blocking(move || added.load()).await else { return };
        for fault in faults {
            tracing::warn!("an added skill is left out: {fault}");
        }
        *lock(&self.added_skills) = skills.into_iter().map(Arc::new).collect();
        self.publish();
    }

    /// Refreshes in the background until it is cancelled.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        loop {
            self.refresh_where(false, true).await;
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.wake.notified() => {}
                () = tokio::time::sleep(INTERVAL) => {}
            }
        }
    }

    /// Reads all sources again; repositories only if `include_hubs`.
    pub async fn refresh(self: &Arc<Self>, include_hubs: bool) -> Refreshed {
        self.refresh_where(true, include_hubs).await
    }

    /// Reads the directories that were not read yet, so that they are usable at once.
    pub async fn refresh_local(self: &Arc<Self>) -> Refreshed {
        self.refresh_where(false, false).await
    }

    async fn refresh_where(self: &Arc<Self>, is_forced: bool, include_hubs: bool) -> Refreshed {
        let _turn = self.turn.lock().await;
        let now = Instant::now();
        let due: Vec<(Source, Option<u64>)> = {
            let entries = lock(&self.entries);
            let is_due = |entry: &&Entry| {
                let is_hub = matches!(entry.source.settings, SourceSettings::GitHub(_));
                (!is_hub || include_hubs) && (is_forced || entry.is_due(now))
            };
            let known = |entry: &Entry| entry.fingerprint.filter(|_| !is_forced && entry.error.is_none());
            entries.iter().filter(is_due).map(|entry| (entry.source.clone(), known(entry))).collect()
        };
        for (source, known) in due {
            let read = self.read(&source, known).await;
            self.in_background(move |service| service.store(&source, read)).await;
        }
        self.in_background(Self::publish).await;
        let catalog = self.catalog();
        let failed = self.counts().failed_sources;
        Refreshed { generation: catalog.generation, skills: catalog.len(), failed }
    }

    /// Runs a step off the threads of requests, because thousands of skills take some milliseconds.
    async fn in_background(self: &Arc<Self>, step: impl FnOnce(&Self) + Send + 'static) {
        let service = self.clone();
        // A step does not panic, and only the end of the process cancels it.
        drop(spawn_blocking(move || step(&service)).await);
    }

    /// Reads a source; `None` if its directory has the known fingerprint.
    async fn read(&self, source: &Source, known: Option<u64>) -> Result<Option<Read>, SourceError> {
        let origin = source.origin();
        match &source.settings {
            SourceSettings::BuiltIn => {
                let skills = crate::built_in::skills(&origin);
                let skills =
                    skills.map_err(|faults| SourceError(faults.iter().map(ToString::to_string).collect()))?;
                Ok(Some(Read { skills, ..Read::default() }))
            }
            SourceSettings::Directory { path } => {
                let path = path.clone();
                let read = spawn_blocking(move || {
                    let fingerprint = fingerprint(&path);
                    if fingerprint.is_some() && fingerprint == known {
                        return Ok(None);
                    }
                    let found = read_folder(&path, &origin)?;
                    Ok(Some(Read { skills: found.skills, faults: found.faults, fingerprint }))
                });
                read.await.unwrap_or_else(|_| Err("its reader stopped".to_owned())).map_err(SourceError)
            }
            SourceSettings::GitHub(Location { repository, commit, folder, api, token }) => {
                let failed = |error: crate::github::CrawlError| SourceError(error.to_string());
                let repository = Repository::parse(repository).map_err(failed)?;
                let github = self.github.with(api.as_deref(), token.as_ref()).map_err(failed)?;
                let read = github.skills(&repository, (commit, folder), &origin).await;
                let (skills, faults) = read.map_err(failed)?;
                Ok(Some(Read { skills, faults, fingerprint: None }))
            }
        }
    }

    fn store(&self, source: &Source, read: Result<Option<Read>, SourceError>) {
        let mut entries = lock(&self.entries);
        let Some(entry) = entries.iter_mut().find(|entry| entry.source == *source) else { return };
        match read {
            Ok(None) => {}
            Ok(Some(read)) => entry.replace(read, self.gate),
            Err(error) => entry.fail(&error),
        }
    }

    /// Adds a skill, and publishes it.
    ///
    /// # Errors
    /// See [`AddError`].
    pub async fn add(self: &Arc<Self>, new: NewSkill) -> Result<Arc<Skill>, AddError> {
        let added = self.added.get().cloned().ok_or(AddError::NoDirectory)?;
        let _turn = self.turn.lock().await;
        let name = crate::document::parse(&new.content, None).map_err(AddError::Faulty)?.name;
        let replaces = |old: &Skill| {
            let is_global = new.visibility == Visibility::Global;
            is_global && old.origin.kind == SourceKind::AgentSkills && old.owner == new.owner
        };
        if self.catalog().global(&name).is_some_and(|old| !replaces(old)) {
            return Err(AddError::Exists(name));
        }
        let others = lock(&self.added_skills).clone();
        let work = spawn_blocking(move || added.add(&new, &others));
        let skill = Arc::new(work.await.map_err(|_| AddError::Stopped)??);
        {
            let mut skills = lock(&self.added_skills);
            skills.retain(|it| it.id != skill.id);
            skills.push(skill.clone());
        }
        self.in_background(Self::publish).await;
        Ok(skill)
    }

    /// Removes an added skill. Returns whether there was one.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub async fn remove(self: &Arc<Self>, id: &str) -> Result<bool, AddError> {
        let added = self.added.get().cloned().ok_or(AddError::NoDirectory)?;
        let _turn = self.turn.lock().await;
        if !lock(&self.added_skills).iter().any(|it| it.id == id) {
            return Ok(false);
        }
        let removed = id.to_owned();
        let work = spawn_blocking(move || added.remove(&removed));
        work.await.map_err(|_| AddError::Stopped)??;
        lock(&self.added_skills).retain(|it| it.id != id);
        self.in_background(Self::publish).await;
        Ok(true)
    }

    /// The state of each source, those of the resource first.
    pub fn states(&self) -> Vec<SourceState> {
        let entries = lock(&self.entries);
        let state = |entry: &Entry| SourceState {
            name: entry.source.name.clone(),
            kind: entry.source.kind(),
            skills: entry.skills.len(),
            error: entry.error.clone(),
            faults: entry.faults.clone(),
        };
        let mut states: Vec<SourceState> = entries.iter().map(state).collect();
        let skills = lock(&self.added_skills).len();
        if skills > 0 {
            let (name, kind) = ("agent_skills".to_owned(), SourceKind::AgentSkills);
            states.push(SourceState { name, kind, skills, error: None, faults: Vec::new() });
        }
        states
    }

    /// Counts for metrics.
    pub fn counts(&self) -> Counts {
        let failed_sources = lock(&self.entries).iter().filter(|entry| entry.error.is_some()).count();
        Counts { skills: self.catalog.load().len(), failed_sources }
    }

    /// The generation of the newest catalogue, and each later one.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    /// Makes the catalogue of what was read, if that has changed.
    fn publish(&self) {
        let mut merged_at = lock(&self.merged_at);
        let mut skills: Vec<Arc<Skill>> =
            lock(&self.entries).iter().flat_map(|entry| entry.skills.iter().cloned()).collect();
        skills.extend(lock(&self.added_skills).iter().cloned());
        let old = self.catalog.load();
        let next = Catalog::new(old.generation + 1, skills);
        if old.generation > 0 && next.is_same(&old) {
            return;
        }
        let generation = next.generation;
        self.catalog.store(Arc::new(next));
        *merged_at = Some(Timestamp::now());
        self.generation.send_replace(generation);
    }
}

/// What a read found.
#[derive(Debug, Default)]
struct Read {
    skills: Vec<Skill>,
    faults: Vec<Fault>,
    fingerprint: Option<u64>,
}

impl Source {
    fn kind(&self) -> SourceKind {
        match self.settings {
            SourceSettings::GitHub(_) => SourceKind::Hub,
            SourceSettings::BuiltIn | SourceSettings::Directory { .. } => SourceKind::Default,
        }
    }

    fn origin(&self) -> Origin {
        let is_built_in = self.settings == SourceSettings::BuiltIn;
        Origin { kind: self.kind(), id: self.name.as_str().into(), is_built_in }
    }
}

impl Entry {
    fn new(source: Source) -> Self {
        let (skills, faults) = (Vec::new(), Vec::new());
        Self { source, skills, error: None, faults, fingerprint: None, has_read: false, retry_at: None }
    }

    /// Whether it is read again. The program's own skills and a commit never change.
    fn is_due(&self, now: Instant) -> bool {
        match self.source.settings {
            SourceSettings::Directory { .. } => true,
            SourceSettings::BuiltIn => !self.has_read,
            SourceSettings::GitHub(_) => !self.has_read && self.retry_at.is_none_or(|at| at <= now),
        }
    }

    fn replace(&mut self, read: Read, gate: Gate) {
        let Read { skills, mut faults, fingerprint } = read;
        let mut accepted = Vec::with_capacity(skills.len());
        let known: HashMap<&str, &Arc<Skill>> =
            self.skills.iter().map(|skill| (skill.name.as_str(), skill)).collect();
        for skill in skills {
            if gate.refuses(&skill.findings) {
                let place = skill.findings.first().map(|it| format!("{}/{}", skill.name, it.place));
                faults.push(Fault::new(place.unwrap_or_default(), "is refused by the content check"));
                continue;
            }
            // An equal skill keeps its place in memory, so that an unchanged catalogue is recognized.
            let known = known.get(skill.name.as_str()).filter(|known| ****known == skill);
            accepted.push(known.map_or_else(|| Arc::new(skill), |known| (*known).clone()));
        }
        for fault in &faults {
            tracing::warn!(source = self.source.name, "a skill is left out: {fault}");
        }
        (self.skills, self.faults, self.fingerprint) = (accepted, faults, fingerprint);
        (self.error, self.has_read, self.retry_at) = (None, true, None);
    }

    fn fail(&mut self, error: &SourceError) {
        if self.error.as_ref() != Some(&error.0) {
            tracing::warn!(source = self.source.name, %error, "failed to read a source of skills");
        }
        self.error = Some(error.0.clone());
        self.has_read &= !matches!(self.source.settings, SourceSettings::GitHub(_));
        self.retry_at = Some(Instant::now() + RETRY);
    }
}

/// No code that panics runs under these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "service_tests.rs"]
mod tests;
