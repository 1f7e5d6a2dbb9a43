//! The workspace of an agent: the virtual files of its conversation, what its model reads of them when a run begins, and the file by
//! which one run hands its work over to the next.

use std::collections::{BTreeMap, BTreeSet};

use caipe_model::truncated;
use serde_json::Value;

use crate::file_limits::FOLDERS;

/// The file with what was done and what is left.
pub(crate) const PROGRESS: &str = "/PROGRESS.json";

/// The members of that file, each a list of texts.
const MEMBERS: [&str; 4] = ["accomplished", "remaining", "decisions", "blockers"];

/// Most entries of the list of files, and of the list of outstanding work.
const MOST_ENTRIES: usize = 20;

/// Most characters of an entry.
const ENTRY_CHARS: usize = 200;

/// What the model reads of the files when a run begins; `None` if there are none.
pub(crate) fn environment(files: &BTreeMap<String, String>) -> Option<String> {
    let is_overflow = |path: &&String| FOLDERS.iter().any(|folder| path.starts_with(&format!("{folder}/")));
    let top: BTreeSet<String> =
        files.keys().filter(|path| !is_overflow(path)).map(|path| top_level(path)).collect();
    let sections = [
        section("Workspace Files", top.into_iter()),
        section("Outstanding Work", remaining(files).into_iter()),
    ];
    let sections: Vec<String> = sections.into_iter().flatten().collect();
    (!sections.is_empty()).then(|| format!("[Environment]\n\n{}", sections.join("\n\n")))
}

/// The file or the folder of a path at the root.
fn top_level(path: &str) -> String {
    match path.trim_start_matches('/').split_once('/') {
        Some((folder, _)) => format!("{folder}/"),
        None => path.trim_start_matches('/').to_owned(),
    }
}

fn section(title: &str, entries: impl ExactSizeIterator<Item = String>) -> Option<String> {
    let count = entries.len();
    let mut lines: Vec<String> = entries
        .take(MOST_ENTRIES)
        .map(|entry| format!("- {}", truncated(&entry, ENTRY_CHARS, "…")))
        .collect();
    if count > MOST_ENTRIES {
        lines.push(format!("... and {} more", count - MOST_ENTRIES));
    }
    (count > 0).then(|| format!("## {title}\n\n{}", lines.join("\n")))
}

/// What the last run has left; nothing if the file cannot be read.
fn remaining(files: &BTreeMap<String, String>) -> Vec<String> {
    let progress = files.get(PROGRESS).and_then(|text| serde_json::from_str::<Value>(text).ok());
    let remaining = progress.and_then(|progress| progress.get("remaining")?.as_array().cloned());
    let texts = remaining.unwrap_or_default();
    texts.iter().filter_map(Value::as_str).map(|text| text.replace('\n', " ")).collect()
}

/// Checks the content of [`PROGRESS`].
///
/// # Errors
/// What is wrong, for the model.
pub(crate) fn check_progress(content: &str) -> Result<(), String> {
    let fault = |what: String| {
        format!(
            "failed to write {PROGRESS}: {what}. It is a JSON object with the lists of strings {}.",
            MEMBERS.join(", ")
        )
    };
    let progress: Value = serde_json::from_str(content).map_err(|error| fault(error.to_string()))?;
    let progress = progress.as_object().ok_or_else(|| fault("it is no object".to_owned()))?;
    for (name, value) in progress {
        let is_list = value.as_array().is_some_and(|list| list.iter().all(Value::is_string));
        if !MEMBERS.contains(&name.as_str()) {
            return Err(fault(format!("there is no member {name:?}")));
        }
        if !is_list {
            return Err(fault(format!("{name:?} is no list of strings")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(paths: &[&str]) -> BTreeMap<String, String> {
        paths.iter().map(|path| ((*path).to_owned(), String::new())).collect()
    }

    #[test]
    fn the_files_at_the_root_are_listed_in_order() {
        assert_eq!(environment(&files(&[])), None);
        assert_eq!(environment(&files(&["/.outputs/0001-x.txt", "/.history/0001-x.txt"])), None);
        assert_eq!(
            environment(&files(&["/b.md", "/a/one", "/a/two", "/.scratch/x"])).as_deref(),
            Some("[Environment]\n\n## Workspace Files\n\n- .scratch/\n- a/\n- b.md")
        );
        let many = |count: u32| (0..count).map(|at| (format!("/{at:03}"), String::new())).collect();
        let twenty = environment(&many(20)).unwrap();
        assert!(twenty.ends_with("- 019"), "{twenty}");
        let more = environment(&many(21)).unwrap();
        assert!(more.ends_with("- 019\n... and 1 more"), "{more}");
    }

    #[test]
    fn outstanding_work_comes_from_the_last_run() {
        let mut all = files(&["/PROGRESS.json"]);
        let broken = environment(&all).unwrap();
        assert!(!broken.contains("Outstanding"), "{broken}");
        all.insert(PROGRESS.to_owned(), r#"{"remaining": ["write the\ndocs", "test"]}"#.to_owned());
        let read = environment(&all).unwrap();
        assert!(read.ends_with("## Outstanding Work\n\n- write the docs\n- test"), "{read}");
    }

    #[test]
    fn a_bad_progress_file_is_refused_with_the_reason() {
        assert_eq!(
            check_progress(r#"{"accomplished": ["a"], "remaining": [], "decisions": [], "blockers": []}"#),
            Ok(())
        );
        for (content, reason) in [
            ("x", "expected value"),
            ("[]", "it is no object"),
            (r#"{"remaining": "all"}"#, "\"remaining\" is no list of strings"),
            (r#"{"remaining": [1]}"#, "\"remaining\" is no list of strings"),
            (r#"{"todo": []}"#, "there is no member \"todo\""),
        ] {
            let fault = check_progress(content).unwrap_err();
            assert!(fault.contains(reason) && fault.contains("accomplished, remaining"), "{fault}");
        }
    }
}
