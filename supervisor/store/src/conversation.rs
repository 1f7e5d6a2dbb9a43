//! The stored form of a conversation: the run as one value, and lists of messages and files that grow.
//!
//! A commit writes the run, which is small, and only the messages and files that are new. So a turn costs what it adds, however
//! long the conversation is.

use std::collections::BTreeMap;
use std::sync::Arc;

use caipe_engine::{Input, RunState, decide};
use caipe_model::Message;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::json::{decode, encode, sized};

/// The version of a stored run.
const VERSION: u32 = 2;

/// What a commit changes in a conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConversationChange {
    /// The run without its messages and files, as JSON; replaces the earlier one.
    pub run: String,
    /// The changed lists.
    pub lists: Vec<ListChange>,
}

/// A change of one list. The items after the first `keep` are removed, then others are appended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListChange {
    /// The name of the list, unique within the conversation.
    pub list: String,
    pub keep: u64,
    /// Items as JSON.
    pub append: Vec<String>,
}

/// A stored conversation as a backend returns it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredConversation {
    pub run: String,
    /// The items of each list, in order.
    pub lists: BTreeMap<String, Vec<String>>,
}

/// The messages and files of a conversation that are stored, by their runs. Computes what the next commit must write.
#[derive(Debug, Default)]
pub struct SavedConversation(BTreeMap<String, SavedRun>);

#[derive(Debug, Clone, Default)]
struct SavedRun {
    messages: Vec<Arc<Message>>,
    files: Arc<BTreeMap<String, String>>,
}

#[derive(Serialize)]
struct StoredRun<'a> {
    v: u32,
    run: &'a RunState,
}

impl SavedConversation {
    /// A conversation whose stored state is this one.
    pub fn of(state: &RunState) -> Self {
        let mut saved = Self::default();
        saved.set(state);
        saved
    }

    /// Notes that the state is stored.
    pub fn set(&mut self, state: &RunState) {
        self.0.clear();
        state.visit(&mut |path, run| {
            let saved = SavedRun { messages: run.messages.clone(), files: run.files.clone() };
            self.0.insert(path.to_owned(), saved);
        });
    }

    /// The difference between what is stored and the state.
    ///
    /// # Errors
    /// When a value is too large, or cannot be written as JSON.
    pub fn change(&self, state: &RunState) -> Result<ConversationChange, StoreError> {
        let run = sized(|| "the state of a run".to_owned(), encode(&StoredRun { v: VERSION, run: state })?)?;
        let mut runs: BTreeMap<String, &RunState> = BTreeMap::new();
        state.visit(&mut |path, run| {
            runs.insert(path.to_owned(), run);
        });
        let mut lists = Vec::new();
        for (path, run) in &runs {
            let none = SavedRun::default();
            let saved = self.0.get(path).unwrap_or(&none);
            lists.extend(changed_messages(path, &saved.messages, &run.messages)?);
            lists.extend(changed_files(path, &saved.files, &run.files)?);
        }
        for (path, ended) in self.0.iter().filter(|(path, _)| !runs.contains_key(*path)) {
            lists.extend(changed_messages(path, &ended.messages, &[])?);
            lists.extend(changed_files(path, &ended.files, &Arc::default())?);
        }
        Ok(ConversationChange { run, lists })
    }
}

fn changed_messages(
    path: &str,
    saved: &[Arc<Message>],
    now: &[Arc<Message>],
) -> Result<Option<ListChange>, StoreError> {
    let keep = saved.iter().zip(now).take_while(|(saved, now)| Arc::ptr_eq(saved, now)).count();
    if keep == saved.len() && keep == now.len() {
        return Ok(None);
    }
    let item =
        |message: &Arc<Message>| sized(|| "a message of the conversation".to_owned(), encode(message)?);
    let append = now.iter().skip(keep).map(item).collect::<Result<_, _>>()?;
    Ok(Some(ListChange { list: messages_list(path), keep: keep as u64, append }))
}

fn changed_files(
    path: &str,
    saved: &Arc<BTreeMap<String, String>>,
    now: &Arc<BTreeMap<String, String>>,
) -> Result<Vec<ListChange>, StoreError> {
    if Arc::ptr_eq(saved, now) {
        return Ok(Vec::new());
    }
    let written = now.iter().filter(|(name, content)| saved.get(*name) != Some(content));
    let removed = saved.keys().filter(|name| !now.contains_key(*name)).map(|name| (name, Vec::new()));
    let written = written.map(|(name, content)| Ok((name, vec![encode(content)?])));
    written
        .chain(removed.map(Ok))
        .map(|change| {
            change.map(|(name, append)| ListChange { list: file_list(path, name), keep: 0, append })
        })
        .collect()
}

fn messages_list(path: &str) -> String {
    format!("messages:{path}")
}

/// The name of a file has no line break.
fn file_list(path: &str, name: &str) -> String {
    format!("file:{path}\n{name}")
}

impl StoredConversation {
    /// The state of a conversation, and what of it is stored in lists; `context` names it in an error.
    ///
    /// # Errors
    /// When a value cannot be read, or is of a newer version.
    pub fn decode(&self, context: &str) -> Result<(RunState, SavedConversation), StoreError> {
        let what = || format!("the state of {context:?}");
        let (mut state, has_lists) = decode_run(context, &self.run)?;
        if !has_lists {
            return Ok((state, SavedConversation::default()));
        }
        let mut files: BTreeMap<&str, BTreeMap<String, String>> = BTreeMap::new();
        for (list, items) in &self.lists {
            if let (Some((path, name)), Some(item)) =
                (list.strip_prefix("file:").and_then(|list| list.rsplit_once('\n')), items.first())
            {
                files.entry(path).or_default().insert(name.to_owned(), decode(what, item)?);
            }
        }
        let mut failed = None;
        state.visit_mut(&mut |path, run| {
            if let Some(items) = self.lists.get(&messages_list(path)) {
                match items.iter().map(|item| decode(what, item)).collect() {
                    Ok(messages) => run.messages = messages,
                    Err(error) => failed = Some(error),
                }
            }
            if let Some(files) = files.remove(path) {
                run.files = Arc::new(files);
            }
        });
        if let Some(error) = failed {
            return Err(error);
        }
        let saved = SavedConversation::of(&state);
        Ok((state, saved))
    }
}

/// A run, and whether its messages and files are in lists. They are in the run itself in version 1, which has no number.
fn decode_run(context: &str, json: &str) -> Result<(RunState, bool), StoreError> {
    #[derive(Deserialize)]
    struct Version {
        #[serde(default)]
        v: u32,
    }
    #[derive(Deserialize)]
    struct Stored<T> {
        run: T,
    }
    fn read<T: DeserializeOwned>(context: &str, json: &str) -> Result<T, StoreError> {
        decode(|| format!("the state of {context:?}"), json)
    }
    match read::<Version>(context, json)?.v {
        0 => Ok((read(context, json)?, false)),
        VERSION => Ok((read::<Stored<_>>(context, json)?.run, true)),
        newer => Err(StoreError::Corrupt {
            what: format!("the state of {context:?}"),
            reason: format!("it has version {newer}, this program knows {VERSION}; run a newer program"),
        }),
    }
}

/// The change that replaces a state of version 1, and the inputs saved after it, by one of this version.
pub(crate) fn converted(
    context: &str,
    state: &str,
    inputs: &[String],
) -> Result<ConversationChange, StoreError> {
    let mut state: RunState = decode(|| format!("the state of {context:?}"), state)?;
    for chunk in inputs {
        let inputs: Vec<Input> = decode(|| format!("what was appended to {context:?}"), chunk)?;
        for input in inputs {
            // Its effects were carried out, or are by the recovery of the run.
            drop(decide(&mut state, input));
        }
    }
    SavedConversation::default().change(&state)
}
