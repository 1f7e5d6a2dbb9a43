//! Sources beyond folders of text: PDF files, web pages, Git repositories.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{Html, IntoResponse};
use axum::routing::{get, post};
use caipe_tests::supervisor::Setup;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::{ids, kb};

/// A PDF file with one line of text.
fn pdf(text: &str) -> String {
    let content = format!("BT /F1 12 Tf ({text}) Tj ET");
    let objects = [
        "<</Type/Catalog/Pages 2 0 R>>".to_owned(),
        "<</Type/Pages/Kids[3 0 R]/Count 1>>".to_owned(),
        "<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>".to_owned(),
        format!("<</Length {}>>stream\n{content}\nendstream", content.len()),
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>".to_owned(),
    ];
    let mut file = "%PDF-1.4\n".to_owned();
    let mut table = "xref\n0 6\n0000000000 65535 f \n".to_owned();
    for (number, object) in objects.iter().enumerate() {
        let _ = writeln!(table, "{:010} 00000 n ", file.len());
        let _ = writeln!(file, "{} 0 obj\n{object}\nendobj", number + 1);
    }
    let start = file.len();
    format!("{file}{table}trailer<</Size 6/Root 1 0 R>>\nstartxref\n{start}\n%%EOF\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn pdf_files_are_read_and_faulty_ones_are_skipped() -> Result<()> {
    let setup = Setup::new()?;
    std::fs::create_dir(setup.dir().join("manuals"))?;
    let setup = setup
        .file("manuals/broker.pdf", &pdf("Restart the broker first."))?
        .file("manuals/cut.pdf", "%PDF-1.4\n")?;
    let added = kb(&setup, &["add", "manuals"]).await?;
    ensure!(
        added.contains("1 added") && added.contains("skipped manuals/cut.pdf: it is not a PDF file"),
        "{added}"
    );
    let found = kb(&setup, &["search", "-o", "json", "restarting brokers"]).await?;
    assert_eq!(ids(&found)?, ["manuals/broker.pdf"]);
    Ok(())
}

async fn git(directory: &Path, arguments: &[&str]) -> Result<String> {
    let name = ["-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "init.defaultBranch=main"];
    let output = Command::new("git").current_dir(directory).args(name).args(arguments).output().await?;
    ensure!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// `git upload-pack`, as a Git server over HTTP runs it.
async fn upload_pack(
    repository: &Path,
    headers: &HeaderMap,
    arguments: &[&str],
    input: &[u8],
) -> Result<Vec<u8>, String> {
    let protocol = headers.get("git-protocol").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut command = Command::new("git");
    command
        .env("GIT_PROTOCOL", protocol)
        .args(["upload-pack", "--stateless-rpc"])
        .args(arguments)
        .arg(repository);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| error.to_string())?;
    let mut stdin = child.stdin.take().ok_or("no stdin")?;
    stdin.write_all(input).await.map_err(|error| error.to_string())?;
    drop(stdin);
    Ok(child.wait_with_output().await.map_err(|error| error.to_string())?.stdout)
}

async fn references(
    State(repository): State<PathBuf>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, String> {
    let mut answer = b"001e# service=git-upload-pack\n0000".to_vec();
    answer.extend(upload_pack(&repository, &headers, &["--advertise-refs"], b"").await?);
    Ok(([(header::CONTENT_TYPE, "application/x-git-upload-pack-advertisement")], answer))
}

async fn pack(
    State(repository): State<PathBuf>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<impl IntoResponse, String> {
    let answer = upload_pack(&repository, &headers, &[], &body).await?;
    Ok(([(header::CONTENT_TYPE, "application/x-git-upload-pack-result")], answer))
}

/// Serves a repository at `/team/repo.git` and a page at `/guide`; the base URL.
async fn serve(repository: PathBuf) -> Result<String> {
    let page = "<title>Guide</title><h1>Guide</h1><p>All about gamma.";
    let routes = axum::Router::new()
        .route("/team/repo.git/info/refs", get(references))
        .route("/team/repo.git/git-upload-pack", post(pack))
        .route("/guide", get(move || async move { Html(page) }))
        .with_state(repository);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, routes).await });
    Ok(url)
}

#[tokio::test(flavor = "multi_thread")]
async fn repositories_and_pages_are_read_if_they_may_be_reached() -> Result<()> {
    let setup = Setup::new()?;
    let repository = setup.dir().join("origin");
    std::fs::create_dir(&repository)?;
    std::fs::write(repository.join("README.md"), "# Repo\n\nAll about alpha.\n")?;
    git(&repository, &["init", "--quiet"]).await?;
    git(&repository, &["add", "."]).await?;
    git(&repository, &["commit", "--quiet", "-m", "One"]).await?;
    let url = serve(repository.clone()).await?;
    let (remote, page) = (format!("{url}/team/repo.git"), format!("{url}/guide"));
    for source in [&remote, &page] {
        let output = setup.run(&["kb", "add", source]).await?;
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(
            !output.status.success() && words.contains("127.0.0.1 is") && words.contains("not allowed"),
            "{words}"
        );
    }
    let setup = setup.env("CAIPE_KB_ALLOW", "127.0.0.1");
    let added = kb(&setup, &["add", &remote, &page]).await?;
    ensure!(added.contains("repo: 1 added") && added.contains("/guide: 1 added"), "{added}");
    let found = kb(&setup, &["search", "-o", "json", "alpha gamma"]).await?;
    let mut found_ids = ids(&found)?;
    found_ids.sort_unstable();
    assert_eq!(found_ids, [page.as_str(), "repo/README.md"]);
    ensure!(found.contains(&format!("{url}/team/repo/README.md")), "the location is a URL: {found}");
    let revision = git(&repository, &["rev-parse", "HEAD"]).await?;
    let listed = kb(&setup, &["list"]).await?;
    ensure!(listed.contains(&format!("{remote} at {}", revision.get(..12).context("short")?)), "{listed}");
    ensure!(kb(&setup, &["add"]).await?.contains("repo: 0 added, 0 changed, 0 removed, 1 unchanged"));
    std::fs::write(repository.join("README.md"), "# Repo\n\nAll about delta.\n")?;
    git(&repository, &["commit", "--quiet", "-am", "Two"]).await?;
    ensure!(kb(&setup, &["add"]).await?.contains("repo: 0 added, 1 changed"));
    ensure!(!setup.dir().join(".caipe/knowledge-base/checkout").exists());
    let added = kb(&setup, &["add", repository.to_str().context("a path")?]).await?;
    ensure!(added.contains("origin: 1 added"), "{added}");
    let local = git(&repository, &["rev-parse", "HEAD"]).await?;
    ensure!(
        kb(&setup, &["list"]).await?.contains(&format!("/origin at {}", local.get(..12).context("short")?))
    );
    Ok(())
}
