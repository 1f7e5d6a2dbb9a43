use super::*;
use crate::file_limits::{OUTPUTS, TOTAL_BYTES};
use crate::names::AgentName;

fn state() -> RunState {
    RunState::new(AgentName::new("a"))
}

#[test]
fn the_oldest_files_of_the_folder_make_room_for_new_ones() {
    let mut state = state();
    files::store_file(&mut state, "/mine.txt", "x".repeat(FILE_BYTES)).unwrap();
    let big = vec!["y".repeat(100); 2500].join("\n");
    let paths: Vec<String> =
        (0..30).map(|_| store(&mut state, OUTPUTS, "get pods!", &big).unwrap().paths).collect();
    assert_eq!(paths[0], "/.outputs/0001-getpods.txt");
    assert_eq!(paths[29], "/.outputs/0030-getpods.txt");
    assert!(state.files.contains_key("/mine.txt") && state.files.contains_key(&paths[29]));
    assert!(!state.files.contains_key(&paths[0]), "the oldest output made room");
    assert!(state.files.values().map(String::len).sum::<usize>() <= TOTAL_BYTES);
    let file = |at: u32| (format!("/own{at}.txt"), "x".repeat(FILE_BYTES));
    for (path, content) in (0..3).map(file) {
        files::store_file(&mut state, &path, content).unwrap();
    }
    assert!(files::store_file(&mut state, "/more", "x".repeat(FILE_BYTES)).is_err());
    assert_eq!(state.files.len(), 4, "outputs give way to the files of the model: {:?}", state.files.keys());
}

#[test]
fn nothing_is_stored_for_a_model_that_cannot_read_it() {
    let mut state = state();
    state.abilities.tools = ["read_file".to_owned()].into();
    assert_eq!(store(&mut state, OUTPUTS, "t", "text"), None);
    assert!(state.files.is_empty());
}

#[test]
fn long_lines_become_lines_that_can_be_read() {
    let pods: Vec<Value> = (0..500).map(|at| serde_json::json!({ "name": format!("pod-{at}") })).collect();
    let json = readable(&Value::from(pods).to_string());
    assert!(json.lines().count() > 1000 && json.contains("\"name\": \"pod-499\""));
    let wrapped = readable(&"ä".repeat(LINE_CHARS * 2 + 5));
    assert_eq!(
        wrapped.lines().map(|line| line.chars().count()).collect::<Vec<_>>(),
        [LINE_CHARS, LINE_CHARS, 5]
    );
    assert_eq!(readable("a\nb"), "a\nb");
}

#[test]
fn a_text_above_the_size_of_a_file_is_in_several_files() {
    let mut state = state();
    let lines: Vec<String> = (0..150_000).map(|at| format!("line {at:06}")).collect();
    let stored = store(&mut state, OUTPUTS, "logs", &lines.join("\n")).unwrap();
    assert_eq!(
        stored,
        Stored { paths: "/.outputs/0001-logs.txt to /.outputs/0002-logs.txt".to_owned(), is_whole: true }
    );
    let all: String = state.files.values().map(String::as_str).collect();
    assert_eq!(all, lines.join("\n"));
    let huge = store(&mut state, OUTPUTS, "logs", &"y\n".repeat(2 * FILE_BYTES)).unwrap();
    assert!(!huge.is_whole, "{huge:?}");
}
