use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::IntoResponse as _;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

use super::*;
use crate::skill::SourceKind;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

fn origin() -> Origin {
    Origin { kind: SourceKind::Hub, id: "hub".into(), is_built_in: false }
}

fn entry(path: &str, mode: &str, content: &str) -> Value {
    let hex = content.bytes().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
    json!({"path": path, "mode": mode, "type": if mode == "040000" { "tree" } else { "blob" }, "sha": hex, "size": content.len()})
}

fn document(name: &str) -> String {
    format!("---\nname: {name}\ndescription: From the hub.\n---\nDo it.\n")
}

/// A stand-in of the API: the id of each file is its content in hexadecimal.
async fn api(tree: Value) -> (String, Arc<AtomicUsize>) {
    let requests = Arc::new(AtomicUsize::new(0));
    let trees = move |Path(revision): Path<String>, headers: HeaderMap| {
        let tree = tree.clone();
        async move {
            let allowed = headers.get("authorization").is_some_and(|value| value == "Bearer t0ken");
            if !allowed || (revision != COMMIT && revision != "HEAD") {
                return (StatusCode::NOT_FOUND, Json(json!({"message": "Not Found"}))).into_response();
            }
            Json(tree).into_response()
        }
    };
    let blobs = |State(requests): State<Arc<AtomicUsize>>, Path(sha): Path<String>| async move {
        requests.fetch_add(1, Ordering::Relaxed);
        let digit = |at: usize| u8::from_str_radix(&sha[at..at + 2], 16).unwrap();
        (0..sha.len()).step_by(2).map(digit).collect::<Vec<u8>>()
    };
    let routes = Router::new()
        .route("/repos/o/r/git/trees/{revision}", get(trees))
        .route("/repos/o/r/git/blobs/{sha}", get(blobs))
        .with_state(requests.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    (url, requests)
}

fn github(url: &str, token: &str) -> GitHub {
    GitHub::new(Some(url), Some(token.into())).unwrap()
}

#[tokio::test]
async fn the_skills_of_a_commit_are_read_with_their_files() {
    let tree = json!({"truncated": false, "tree": [
        entry("README.md", "100644", "no"),
        entry("skills", "040000", ""),
        entry("skills/a/SKILL.md", "100644", &document("a")),
        entry("skills/a/references/r.md", "100644", "text"),
        entry("skills/a/link.md", "120000", "/etc/passwd"),
        entry("skills/a/metadata.json", "100644", r#"{"tags": "x"}"#),
        entry("skills/a/inner/SKILL.md", "100755", &document("inner")),
        entry("skills/a/inner/i.md", "100644", "inner"),
        entry("skills/b/SKILL.md", "100644", &document("wrong")),
        entry("skills/c/SKILL.md", "100644", &document("c")),
        entry("skills/c/.github/x.yml", "100644", "hidden"),
        entry("other/d/SKILL.md", "100644", &document("d")),
        entry("skills/e/SKILL.md", "120000", "../a/SKILL.md"),
    ]});
    let (url, _) = api(tree).await;
    let repository = Repository::parse("o/r").unwrap();
    let (skills, faults) =
        github(&url, "t0ken").skills(&repository, (COMMIT, "skills"), &origin()).await.unwrap();
    let names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
    assert_eq!(names, ["a", "inner"]);
    let files: Vec<&str> = skills[0].resources.iter().map(|file| file.path.as_str()).collect();
    assert_eq!((files, skills[0].has_tag(&["x".to_owned()])), (vec!["references/r.md"], true));
    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(faults[0].contains("its folder is \"b\"") && faults[1].contains("hidden file"), "{faults:?}");
    let crawl = github(&url, "t0ken").preview(&repository).await.unwrap();
    assert_eq!((crawl.paths.len(), crawl.skills.len(), crawl.skills[1].files), (5, 4, 2));
}

#[tokio::test]
async fn failures_say_what_to_do_and_never_name_the_token() {
    let (url, _) = api(json!({"tree": [], "truncated": true})).await;
    let repository = Repository::parse("o/r").unwrap();
    let read = |github: GitHub, commit: &'static str| {
        let repository = repository.clone();
        async move { github.skills(&repository, (commit, ""), &origin()).await.unwrap_err().to_string() }
    };
    let wrong = read(github(&url, "wrong-s3cret"), COMMIT).await;
    assert!(wrong.contains("404 Not Found") && !wrong.contains("s3cret"), "{wrong}");
    assert!(read(github(&url, "t0ken"), COMMIT).await.contains("cuts off"));
    assert!(read(github(&url, "t0ken"), "main").await.contains("40 hexadecimal digits"));
    let anonymous = read(GitHub::new(Some(&url), None).unwrap(), COMMIT).await;
    assert!(anonymous.contains("GITHUB_TOKEN"), "{anonymous}");
    let (url, requests) = api(json!({"tree": [{"path": "a/SKILL.md", "mode": "100644", "type": "blob",
        "sha": "../../user", "size": 3}]}))
    .await;
    assert!(read(github(&url, "t0ken"), COMMIT).await.contains("not hexadecimal"));
    assert_eq!(requests.load(Ordering::Relaxed), 0);
    let large = json!({"path": "a/SKILL.md", "mode": "100644", "type": "blob", "sha": "00", "size": 1 << 30});
    let (url, requests) = api(json!({"tree": [large]})).await;
    let (skills, faults) = github(&url, "t0ken").skills(&repository, (COMMIT, ""), &origin()).await.unwrap();
    assert_eq!((skills.len(), faults.len(), requests.load(Ordering::Relaxed)), (0, 1, 0));
}

#[test]
fn only_repositories_and_urls_are_accepted() {
    for good in ["o/r", "caipe-io/skills.v2", " o/r "] {
        assert!(Repository::parse(good).is_ok(), "{good}");
    }
    for bad in [
        "",
        "o",
        "o/",
        "/r",
        "o/r/x",
        "../r",
        "o/..",
        "https://github.com/o/r",
        "o/r?x",
        "o/r#x",
        "ö/r",
        "o r/x",
    ] {
        assert!(Repository::parse(bad).is_err(), "{bad}");
    }
    for bad in ["", "file:///etc", "no url"] {
        assert!(GitHub::new(Some(bad), None).is_err(), "{bad}");
    }
}
