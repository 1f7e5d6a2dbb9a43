//! `agents`: lists the agents with their placement and their missing variables.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use axum::http::StatusCode;
use caipe_crds::internal_status::{AgentReport, Report};
use caipe_crds::rendered::{Placement, RenderedAgent};
use reqwest::{RequestBuilder, Response};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

use super::args::{Agents, Output};
use super::chat::{clean, one_line};
use super::print;
use crate::config::{Environment, Settings, environment};
use crate::https::https_client;
use crate::remote::displayed_url;

/// How long a supervisor may take to respond.
const ANSWER_DEADLINE: Duration = Duration::from_secs(10);

/// Prints the agents of a running supervisor, from its `/internal/status`.
pub(super) async fn ask(args: &Agents) -> anyhow::Result<ExitCode> {
    let url = args.url.as_ref().context("failed to ask a supervisor: give its --url")?;
    let mut status = url.clone();
    status.set_path(&format!("{}/internal/status", url.path().trim_end_matches('/')));
    let token = given(args.token.as_ref());
    let response = send(https_client()?.get(status).timeout(ANSWER_DEADLINE), token).await;
    let response = response.context("failed to reach the supervisor")?;
    if matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        let given = refusal(token);
        anyhow::bail!("the supervisor {given}: give its shared key by --token or A2A_AUTH_SHARED_KEY");
    }
    let response = response.error_for_status().map_err(reqwest::Error::without_url);
    let response = response.context("failed to read the supervisor's status")?;
    let report: Report = response.json().await.context("failed to read the supervisor's status")?;
    match args.output {
        Output::Json => print(serde_json::to_string(&report)?)?,
        Output::Text => print_report(&report)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The token that was given, if it is not empty.
pub(super) fn given(token: Option<&SecretString>) -> Option<&str> {
    token.map(ExposeSecret::expose_secret).filter(|token| !token.is_empty())
}

/// Sends a request to a supervisor with the token. The error contains no address, which may contain a password.
pub(super) async fn send(request: RequestBuilder, token: Option<&str>) -> reqwest::Result<Response> {
    let request = match token {
        Some(token) => request.bearer_auth(token),
        None => request,
    };
    request.send().await.map_err(reqwest::Error::without_url)
}

/// What a supervisor does that answers 401 to a request with this token.
pub(super) const fn refusal(token: Option<&str>) -> &'static str {
    if token.is_some() { "refused the key" } else { "requires a key" }
}

fn print_report(report: &Report) -> anyhow::Result<()> {
    if let Some(refused) = &report.refused {
        print(format_args!("refused: {}", clean(refused)))?;
    }
    if report.epoch != report.running_epoch {
        print(format_args!("epoch {} runs; on the way to {}", report.running_epoch, report.epoch))?;
    }
    let rows: Vec<[String; 5]> = report.agents.iter().map(report_row).collect();
    print_rows(["AGENT", "PLACEMENT", "PHASE", "CREDENTIALS", "MESSAGE"], &rows)
}

fn report_row(agent: &AgentReport) -> [String; 5] {
    let placement = agent.endpoint.clone().unwrap_or_else(|| "in-process".to_owned());
    let next = agent.next.as_ref().map(|next| {
        let place = next.endpoint.as_deref().unwrap_or("in-process");
        let why = next.message.as_deref().unwrap_or("it is not ready");
        format!("moves to {place}: {why}")
    });
    let message: Vec<String> = agent.message.iter().cloned().chain(next).collect();
    let credentials = agent.credentials.as_ref().map_or("", |checked| checked.reason.as_str());
    // The message may contain the output of a tool server.
    [agent.name.clone(), placement, format!("{:?}", agent.phase), credentials.to_owned(), message.join("; ")]
        .map(|text| one_line(&text))
}

/// Prints the agents of a file.
pub(super) fn run(args: &Agents) -> anyhow::Result<ExitCode> {
    let settings = Settings::load(args.file.as_deref(), environment())?;
    for warning in &settings.warnings {
        eprintln!("warning: {warning}");
    }
    match args.output {
        Output::Text => print_table(&settings)?,
        Output::Json => print_json(&settings)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn print_json(settings: &Settings) -> anyhow::Result<()> {
    settings.spec.agents.iter().try_for_each(|agent| print(as_json(agent, &settings.env)))
}

fn print_table(settings: &Settings) -> anyhow::Result<()> {
    let rows: Vec<[String; 5]> = settings.spec.agents.iter().map(|agent| row(agent, &settings.env)).collect();
    print_rows(["AGENT", "PLACEMENT", "MODE", "TOOL SERVERS", "MISSING"], &rows)
}

/// Prints a table.
pub(super) fn print_rows<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> anyhow::Result<()> {
    let head = head.map(str::to_owned);
    let width =
        |column: usize| rows.iter().chain([&head]).map(|row: &[String; N]| row[column].chars().count()).max();
    for row in std::iter::once(&head).chain(rows) {
        let cells = row.iter().enumerate();
        let cells = cells.map(|(column, cell)| format!("{cell:0$}", width(column).unwrap_or_default()));
        print(cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

fn row(agent: &RenderedAgent, env: &Environment) -> [String; 5] {
    let servers: Vec<&str> = agent.mcp.iter().map(|server| server.name.as_str()).collect();
    let servers =
        if agent.is_foreign() { "its own, without approvals".to_owned() } else { servers.join(", ") };
    let mode = if agent.is_foreign() { String::new() } else { format!("{:?}", agent.mode) };
    [agent.name.clone(), placement(agent), mode, servers, missing(agent, env).join(", ")]
}

fn placement(agent: &RenderedAgent) -> String {
    match &agent.placement {
        Placement::InProcess {} => "in-process".to_owned(),
        Placement::Remote { url, .. } => url.parse().map(|url| displayed_url(&url)).unwrap_or_default(),
    }
}

fn placement_as_json(agent: &RenderedAgent) -> serde_json::Value {
    match &agent.placement {
        Placement::InProcess {} => json!({ "inProcess": {} }),
        Placement::Remote { .. } => json!({ "remote": { "url": placement(agent) } }),
    }
}

/// The variables that an in-process agent needs and that are not set.
fn missing(agent: &RenderedAgent, env: &Environment) -> Vec<String> {
    if matches!(agent.placement, Placement::Remote { .. }) {
        return Vec::new();
    }
    agent.required_env.iter().filter(|name| env.get(*name).is_none_or(String::is_empty)).cloned().collect()
}

fn as_json(agent: &RenderedAgent, env: &Environment) -> serde_json::Value {
    json!({
        "name": agent.name,
        "title": agent.title,
        "description": agent.description,
        "placement": placement_as_json(agent),
        "servers": agent.mcp.iter().map(|server| &server.name).collect::<Vec<_>>(),
        "missing": missing(agent, env),
        // `null` if nobody can require approval of its calls.
        "mode": (!agent.is_foreign()).then_some(agent.mode),
        "requireApproval": (!agent.is_foreign()).then_some(&agent.require_approval),
    })
}
