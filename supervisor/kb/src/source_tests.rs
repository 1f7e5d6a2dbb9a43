use caipe_net::Screen;

use super::*;

#[test]
fn arguments_are_folders_pages_or_repositories() {
    for (text, kind, name) in [
        ("./docs", SourceKind::Path { path: "./docs".into() }, "docs"),
        (
            "https://a.example/guide#top",
            SourceKind::Page { url: "https://a.example/guide".into() },
            "https://a.example/guide",
        ),
        (
            "https://a.example/x.git",
            SourceKind::Git { url: "https://a.example/x.git".into(), branch: None },
            "x",
        ),
        (
            "git@a.example:team/x.git#v1",
            SourceKind::Git { url: "git@a.example:team/x.git".into(), branch: Some("v1".into()) },
            "x",
        ),
        ("git+https://a.example/y", SourceKind::Git { url: "https://a.example/y".into(), branch: None }, "y"),
        ("ssh://git@a.example/z", SourceKind::Git { url: "ssh://git@a.example/z".into(), branch: None }, "z"),
    ] {
        let parsed = SourceKind::parse(text);
        assert_eq!((parsed.default_name().as_str(), parsed), (name, kind), "{text}");
    }
}

#[tokio::test]
async fn hosts_that_are_not_public_are_refused() {
    let screen = Screen::default();
    for url in ["http://127.0.0.1:1/a.md", "http://169.254.169.254/latest/", "http://localhost/a"] {
        let error = fetch(url, &screen).await.unwrap_err().to_string();
        assert!(error.contains("not allowed"), "{error}");
    }
    for url in
        ["http://127.0.0.1:1/a.git", "https://localhost/a.git", "file:///etc", "--upload-pack=touch /tmp/x"]
    {
        let error = remote_revision(url, None, &screen).await.unwrap_err().to_string();
        assert!(error.starts_with("failed to run git"), "{error}");
    }
}
