//! `slack`: runs the Slack bot.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use caipe_a2a::client::{A2aClient, ClientError, ClientOptions, Reconnect, http_builder};
use caipe_slack::{Endpoints, Mode, Settings};
use secrecy::{ExposeSecret, SecretString};
use tokio_util::sync::CancellationToken;

use super::args::{Manifest, SlackArgs};

/// How often the bot looks for the supervisor at its start, and the seconds in between.
const CONNECT_RETRIES: u32 = 10;
const CONNECT_RETRY_DELAY: u64 = 6;

/// The default address of events over HTTP.
const EVENTS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 3000);

pub(super) fn print_manifest(args: &Manifest) -> anyhow::Result<ExitCode> {
    let manifest = caipe_slack::manifest(&args.name, args.public_url.as_deref());
    super::print(serde_json::to_string_pretty(&manifest)?)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn run(args: SlackArgs) -> anyhow::Result<ExitCode> {
    let settings = Settings::read(|name| std::env::var(name).ok())?;
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    tokio::spawn(async move {
        terminated().await;
        stop.cancel();
    });
    let endpoints = Endpoints::default();
    let mut server = None;
    if let Some(address) = args.listen.or((settings.mode == Mode::Http).then_some(EVENTS)) {
        let listener = tokio::net::TcpListener::bind(address).await;
        let listener = listener.with_context(|| format!("failed to listen on {address}"))?;
        tracing::info!(address = %listener.local_addr()?, "serving probes, and events over HTTP at /slack/events");
        server = Some(tokio::spawn(endpoints.clone().serve(listener, shutdown.clone())));
    }
    let Some(client) = connect(&args, &shutdown).await? else { return Ok(ExitCode::SUCCESS) };
    // A WebSocket is an upgrade of HTTP/1.1.
    let http = http_builder().http1_only().build()?;
    caipe_slack::run(settings, client, http, endpoints, shutdown).await?;
    if let Some(server) = server {
        server.await??;
    }
    Ok(ExitCode::SUCCESS)
}

/// Waits for the supervisor, which may start later; `None` if the program is stopped first.
async fn connect(args: &SlackArgs, shutdown: &CancellationToken) -> anyhow::Result<Option<A2aClient>> {
    let number = |name: &str, default: u64| {
        std::env::var(name).ok().and_then(|value| value.trim().parse().ok()).unwrap_or(default)
    };
    let retries = number("CAIPE_CONNECT_RETRIES", u64::from(CONNECT_RETRIES)).max(1);
    let delay = Duration::from_secs(number("CAIPE_CONNECT_RETRY_DELAY", CONNECT_RETRY_DELAY));
    for attempt in 1.. {
        match connect_once(args).await {
            Ok(client) => return Ok(Some(client)),
            Err(error) if attempt >= retries || !error.is_transient() => {
                return Err(error)
                    .with_context(|| format!("failed to connect to the supervisor at {}", args.url));
            }
            Err(error) => {
                tracing::warn!(%error, "the supervisor does not answer yet; attempt {attempt} of {retries}");
            }
        }
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = shutdown.cancelled() => return Ok(None),
        }
    }
    Ok(None)
}

async fn connect_once(args: &SlackArgs) -> Result<A2aClient, ClientError> {
    let is_set = |key: &SecretString| !key.expose_secret().trim().is_empty();
    let options = ClientOptions {
        bearer: args.token.clone().filter(is_set),
        // A restart of the supervisor may take minutes.
        reconnect: Reconnect { attempts: 60, ..Reconnect::default() },
        ..ClientOptions::default()
    };
    let http = http_builder().build();
    let http =
        http.map_err(|error| ClientError::Protocol(format!("the HTTP client cannot be built: {error}")))?;
    A2aClient::connect(&args.url, http, options).await
}

/// Waits for Ctrl-C or SIGTERM.
async fn terminated() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut term) => {
            tokio::select! {
                _ = term.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
        }
        Err(error) => {
            tracing::warn!(%error, "failed to wait for SIGTERM");
            drop(tokio::signal::ctrl_c().await);
        }
    }
}
