//! `skills`: the skills of a running supervisor or of a directory, and checks of skills.

use std::borrow::Cow;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail, ensure};
use axum::http::StatusCode;
use caipe_skills::{Fault, Filter, Reader, Skill, lint, read_skill};
use reqwest::{RequestBuilder, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use url::Url;

use super::agents::{self, print_rows};
use super::args::{Output, SkillVisibility, SkillsArgs, SkillsCommand, SkillsPlace, SkillsServer};
use super::chat::{clean, one_line};
use super::print;
use crate::https::https_client;

/// How long a supervisor may take to respond.
const DEADLINE: Duration = Duration::from_secs(30);
/// The most bytes of a response.
const MOST_BYTES: usize = 64 << 20;
/// The most characters of a description in a table.
const DESCRIPTION: usize = 100;

/// A skill as the API shows it.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    id: String,
    name: String,
    description: String,
    source_id: String,
    visibility: String,
}

#[derive(Debug, Deserialize)]
struct Entries {
    skills: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
struct Detail {
    #[serde(default)]
    content: Option<String>,
    files: Vec<File>,
}

#[derive(Debug, Deserialize)]
struct File {
    path: String,
    size: usize,
}

pub(super) async fn run(args: SkillsArgs) -> anyhow::Result<ExitCode> {
    match args.command {
        SkillsCommand::List { place, output } => print_entries(&entries(&place, None).await?, output)?,
        SkillsCommand::Search { text, place, output } => {
            let found = entries(&place, Some(text.join(" "))).await?;
            ensure!(!found.is_empty(), "no skill contains {:?}", text.join(" "));
            print_entries(&found, output)?;
        }
        SkillsCommand::Show { name, place } => show(&place, &name).await?,
        SkillsCommand::Lint { folders } => {
            return spawn_blocking(move || lint_all(&folders)).await.context("failed to read skills")?;
        }
        SkillsCommand::Add { folder, server, visibility, teams } => {
            return add(&folder, &server, visibility, &teams).await;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print_entries(entries: &[Entry], output: Output) -> anyhow::Result<()> {
    if output == Output::Json {
        return entries.iter().try_for_each(|entry| print(serde_json::to_string(entry)?));
    }
    let row = |entry: &Entry| {
        let shown: String = entry.description.chars().take(DESCRIPTION).collect();
        let more = if shown.len() < entry.description.len() { "…" } else { "" };
        [&entry.name, &entry.source_id, &entry.visibility, &(shown + more)].map(|text| one_line(text))
    };
    print_rows(["SKILL", "SOURCE", "VISIBILITY", "DESCRIPTION"], &entries.iter().map(row).collect::<Vec<_>>())
}

/// The skills that contain a text, or all.
async fn entries(place: &SkillsPlace, text: Option<String>) -> anyhow::Result<Vec<Entry>> {
    if let Some(directory) = &place.dir {
        let filter = Filter { text, ..Filter::default() };
        let catalog = local(directory).await?;
        return Ok(catalog
            .list(&Reader::default(), &filter, 0, usize::MAX)
            .skills
            .iter()
            .map(|it| entry(it))
            .collect());
    }
    let mut address = endpoint(&place.server.url, &[]);
    if let Some(text) = &text {
        address.query_pairs_mut().append_pair("q", text);
    }
    let request = https_client()?.get(address);
    let found: Entries = json_of(send(request, &place.server).await?).await?;
    Ok(found.skills)
}

fn entry(skill: &Skill) -> Entry {
    Entry {
        id: skill.id.clone(),
        name: skill.name.clone(),
        description: skill.description.clone(),
        source_id: skill.origin.id.to_string(),
        visibility: skill.visibility.as_str().to_owned(),
    }
}

/// The skills of a directory. Faults are printed; they hide no other skill.
async fn local(directory: &Path) -> anyhow::Result<caipe_skills::Catalog> {
    let path = directory.to_owned();
    let (skills, faults) = spawn_blocking(move || lint(&path)).await?.map_err(anyhow::Error::msg)?;
    for fault in faults {
        eprintln!("{}", one_line(&format!("a skill is left out: {fault}")));
    }
    Ok(caipe_skills::Catalog::new(1, skills.into_iter().map(Into::into)))
}

async fn show(place: &SkillsPlace, name: &str) -> anyhow::Result<()> {
    if let Some(directory) = &place.dir {
        let catalog = local(directory).await?;
        let skill = catalog.global(name).with_context(|| format!("there is no skill {name:?}"))?;
        let files = skill.resources.iter().map(|file| (file.path.as_str(), file.size));
        return print_skill(&skill.content.read(), files);
    }
    // A URL cannot contain such an id.
    ensure!(![".", ".."].contains(&name), "there is no skill {name:?}");
    let http = https_client()?;
    let get = |id: &str| http.get(endpoint(&place.server.url, &[id]));
    let mut response = sent(get(name), &place.server).await?;
    if response.status() == StatusCode::NOT_FOUND {
        // The id of an added skill is not its name.
        let found = entries(place, Some(name.to_owned())).await?;
        let found = found.iter().find(|entry| entry.name == name);
        let found =
            found.with_context(|| format!("there is no skill {name:?}, or the caller may not read it"))?;
        response = sent(get(&found.id), &place.server).await?;
    }
    let detail: Detail = json_of(checked(response, &place.server).await?).await?;
    let files = detail.files.iter().map(|file| (file.path.as_str(), file.size));
    print_skill(detail.content.as_deref().unwrap_or_default(), files)
}

fn print_skill<'a>(content: &str, files: impl Iterator<Item = (&'a str, usize)>) -> anyhow::Result<()> {
    print(clean(content.trim_end()))?;
    for (path, size) in files {
        print(format_args!("file: {} ({size} bytes)", one_line(path)))?;
    }
    Ok(())
}

/// Prints every fault and each suspicious place, which is no fault.
fn lint_all(folders: &[std::path::PathBuf]) -> anyhow::Result<ExitCode> {
    let (mut count, mut is_faulty) = (0, false);
    for folder in folders {
        let (skills, faults) = lint(folder).map_err(anyhow::Error::msg)?;
        for skill in &skills {
            for finding in &skill.findings {
                let (severity, place) = (finding.severity.as_str(), &finding.place);
                let path = folder_of(folder, &skill.name);
                print(one_line(&format!("{path}/{place}: warning: {} ({severity})", finding.message)))?;
            }
        }
        is_faulty |= !faults.is_empty();
        faults.iter().try_for_each(|fault| print_fault(folder, fault))?;
        if skills.is_empty() && faults.is_empty() {
            is_faulty = true;
            print_fault(folder, &Fault::new("", "has no skill: a skill is a folder with a SKILL.md"))?;
        }
        count += skills.len();
    }
    if is_faulty {
        return Ok(ExitCode::FAILURE);
    }
    print(format_args!("ok, {count} skills"))?;
    Ok(ExitCode::SUCCESS)
}

fn print_fault(folder: &Path, fault: &Fault) -> anyhow::Result<()> {
    let folder = folder.display();
    let path = if fault.path.is_empty() { folder.to_string() } else { format!("{folder}/{}", fault.path) };
    print(one_line(&format!("{path}: {}", fault.message)))
}

/// The folder of a skill, which may be the linted one.
fn folder_of<'a>(folder: &'a Path, skill: &str) -> Cow<'a, str> {
    let below = folder.join(skill);
    if below.is_dir() { below.display().to_string().into() } else { folder.to_string_lossy() }
}

async fn add(
    folder: &Path,
    server: &SkillsServer,
    visibility: Option<SkillVisibility>,
    teams: &[String],
) -> anyhow::Result<ExitCode> {
    let path = folder.to_owned();
    let skill = match spawn_blocking(move || read_skill(&path)).await?.map_err(anyhow::Error::msg)? {
        Ok(skill) => skill,
        Err(faults) => {
            faults.iter().try_for_each(|fault| print_fault(folder, fault))?;
            return Ok(ExitCode::FAILURE);
        }
    };
    let mut body = json!({"content": skill.content, "files": files(folder, &skill)?, "team_ids": teams});
    if let Some(visibility) = visibility {
        body["visibility"] = match visibility {
            SkillVisibility::Global => "global",
            SkillVisibility::Team => "team",
            SkillVisibility::Personal => "personal",
        }
        .into();
    }
    let request = https_client()?.post(endpoint(&server.url, &[])).json(&body);
    let added: Entry = json_of(send(request, server).await?).await?;
    print(one_line(&format!("added {} ({}), id {}", added.name, added.visibility, added.id)))?;
    Ok(ExitCode::SUCCESS)
}

/// The files of a skill as the API takes them.
fn files(folder: &Path, skill: &Skill) -> anyhow::Result<Value> {
    ensure!(
        !folder.join("metadata.json").exists(),
        "{}/metadata.json: the API takes no such file: write its entries below `metadata` of the SKILL.md",
        folder.display()
    );
    let text = |file: &caipe_skills::Resource| {
        let text = file.text.as_ref().map(|text| Value::from(text.read()));
        let text = text.ok_or_else(|| {
            anyhow!("{}/{}: is not text: the API accepts only text files", folder.display(), file.path)
        })?;
        anyhow::Ok((file.path.clone(), text))
    };
    Ok(Value::Object(skill.resources.iter().map(text).collect::<anyhow::Result<_>>()?))
}

/// The address of the skills, or of one.
fn endpoint(base: &Url, id: &[&str]) -> Url {
    let mut url = base.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().push("skills").extend(id);
    }
    url
}

async fn send(request: RequestBuilder, server: &SkillsServer) -> anyhow::Result<Response> {
    checked(sent(request, server).await?, server).await
}

async fn sent(request: RequestBuilder, server: &SkillsServer) -> anyhow::Result<Response> {
    let response = agents::send(request.timeout(DEADLINE), agents::given(server.token.as_ref())).await;
    response.context("failed to reach the supervisor: give its --url, or a directory with --dir")
}

/// The response, or the error that it has.
async fn checked(response: Response, server: &SkillsServer) -> anyhow::Result<Response> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    if status == StatusCode::UNAUTHORIZED {
        let given = agents::refusal(agents::given(server.token.as_ref()));
        bail!(
            "the supervisor {given}: give its shared key, or the token of a person, by --token or A2A_AUTH_SHARED_KEY"
        );
    }
    let body: Value = serde_json::from_slice(&bytes(response).await?).unwrap_or_default();
    let detail = match &body["detail"] {
        Value::Array(list) => {
            let messages = list.iter().filter_map(|entry| entry["msg"].as_str());
            messages.collect::<Vec<_>>().join("; ")
        }
        Value::String(text) => text.clone(),
        other => other["message"].as_str().or_else(|| body["error"].as_str()).unwrap_or_default().to_owned(),
    };
    ensure!(!detail.is_empty(), "the supervisor answers {status}: check that --url is its base URL");
    bail!("the supervisor answers {status}: {}", one_line(&detail))
}

async fn json_of<T: serde::de::DeserializeOwned>(response: Response) -> anyhow::Result<T> {
    serde_json::from_slice(&bytes(response).await?).context("failed to read the answer of the supervisor")
}

async fn bytes(mut response: Response) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(reqwest::Error::without_url)? {
        bytes.extend_from_slice(&piece);
        ensure!(
            bytes.len() <= MOST_BYTES,
            "the answer of the supervisor has more than {} MiB",
            MOST_BYTES >> 20
        );
    }
    Ok(bytes)
}
