//! The workspace of an agent: the virtual files of its conversation, what its model reads of them when a run begins, and the file by
//! which one run hands its work over to the next.

use std::collections::{BTreeMap, BTreeSet};

use caipe_model::truncated;
use serde_json::Value;

use crate::file_limits::FOLDERS;
use crate::volume::{VOLUME, VolumeView};

/// The file with what was done and what is left.
pub const PROGRESS: &str = "/PROGRESS.json";

/// The members of that file, each a list of texts.
const MEMBERS: [&str; 4] = ["accomplished", "remaining", "decisions", "blockers"];

/// Most entries of the list of files, and of the list of outstanding work.
const MOST_ENTRIES: usize = 20;

/// Most characters of an entry.
const ENTRY_CHARS: usize = 200;

/// What the model reads of the files when a run begins, also of those on a volume; `None` if there are none. What the volume says is
/// left to do counts, if there is a volume.
pub(crate) fn environment(files: &BTreeMap<String, String>, volume: Option<&VolumeView>) -> Option<String> {
    let is_overflow = |path: &&String| FOLDERS.iter().any(|folder| path.starts_with(&format!("{folder}/")));
    let on_volume = volume.iter().flat_map(|volume| &volume.entries);
    let top: BTreeSet<String> = files
        .keys()
        .filter(|path| !is_overflow(path))
        .map(|path| top_level(path))
        .chain(on_volume.map(|entry| format!("{}/{entry}", VOLUME.trim_start_matches('/'))))
        .collect();
    let progress = match volume {
        Some(volume) => volume.progress.as_ref(),
        None => files.get(PROGRESS),
    };
    let sections = [
        section("Workspace Files", top.into_iter()),
        section("Outstanding Work", remaining(progress).into_iter()),
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
fn remaining(progress: Option<&String>) -> Vec<String> {
    let progress = progress.and_then(|text| serde_json::from_str::<Value>(text).ok());
    let remaining = progress.and_then(|progress| progress.get("remaining")?.as_array().cloned());
    let texts = remaining.unwrap_or_default();
    texts.iter().filter_map(Value::as_str).map(|text| text.replace('\n', " ")).collect()
}

/// Checks the content of [`PROGRESS`].
///
/// # Errors
/// What is wrong, for the model.
pub fn check_progress(content: &str) -> Result<(), String> {
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
        assert_eq!(environment(&files(&[]), None), None);
        assert_eq!(environment(&files(&["/.outputs/0001-x.txt", "/.history/0001-x.txt"]), None), None);
        assert_eq!(
            environment(&files(&["/b.md", "/a/one", "/a/two", "/.scratch/x"]), None).as_deref(),
            Some("[Environment]\n\n## Workspace Files\n\n- .scratch/\n- a/\n- b.md")
        );
        let many = |count: u32| (0..count).map(|at| (format!("/{at:03}"), String::new())).collect();
        let twenty = environment(&many(20), None).unwrap();
        assert!(twenty.ends_with("- 019"), "{twenty}");
        let more = environment(&many(21), None).unwrap();
        assert!(more.ends_with("- 019\n... and 1 more"), "{more}");
    }

    #[test]
    fn outstanding_work_comes_from_the_last_run() {
        let mut all = files(&["/PROGRESS.json"]);
        let broken = environment(&all, None).unwrap();
        assert!(!broken.contains("Outstanding"), "{broken}");
        all.insert(PROGRESS.to_owned(), r#"{"remaining": ["write the\ndocs", "test"]}"#.to_owned());
        let read = environment(&all, None).unwrap();
        assert!(read.ends_with("## Outstanding Work\n\n- write the docs\n- test"), "{read}");
    }

    #[test]
    fn the_volume_is_listed_and_says_what_is_left() {
        let mut all = files(&["/a.md", "/PROGRESS.json"]);
        all.insert(PROGRESS.to_owned(), r#"{"remaining": ["another"]}"#.to_owned());
        let progress = Some(r#"{"remaining": ["write the docs"]}"#.to_owned());
        let volume = VolumeView { entries: vec!["docs/".to_owned(), "b.md".to_owned()], progress };
        assert_eq!(
            environment(&all, Some(&volume)).as_deref(),
            Some(
                "[Environment]\n\n## Workspace Files\n\n- PROGRESS.json\n- a.md\n- workspace/b.md\n- workspace/docs/\n\n\
                 ## Outstanding Work\n\n- write the docs"
            )
        );
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
