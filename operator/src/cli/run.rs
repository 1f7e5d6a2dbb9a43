//! `run`: starts the operator.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use caipe_operator::events::{Events, EventsOptions};
use caipe_operator::health::{self, Health};
use caipe_operator::lease::{self, Leadership, LeaseOptions};
use caipe_operator::metrics::Metrics;
use caipe_operator::probe::{Interval, Prober, ProberOptions};
use caipe_operator::run::{self, Dependencies, NOTICES, Options};
use caipe_telemetry::LogFormat;
use clap::Args;
use kube::{Client, Config};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{defaults, namespaces};

#[derive(Debug, Args)]
pub(super) struct Run {
    /// A namespace to watch; may be repeated or have commas. Default: all namespaces.
    #[arg(long = "watch-namespace", env = "CAIPE_WATCH_NAMESPACE", value_delimiter = ',')]
    watch_namespaces: Vec<String>,
    /// The operator's own namespace, where its lease is.
    #[arg(long, env = "POD_NAMESPACE", default_value = "default")]
    namespace: String,
    /// The operator's own pod.
    #[arg(long, env = "POD_NAME", default_value = "caipe-operator")]
    name: String,
    /// The uid of that pod. With it, an operator that restarts in its pod leads again at once; without it, after 15 s.
    #[arg(long, env = "POD_UID", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    uid: Option<String>,
    /// A label selector, such as `team in (a,b)`: only `CaipeSupervisor`s with these labels are reconciled. Default: all. Operators
    /// with disjoint selectors can share a cluster, each in a namespace of its own.
    #[arg(long, env = "CAIPE_SELECTOR", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    selector: Option<String>,
    /// Whether to use leader election. Without it, run a single operator.
    #[arg(long, env = "CAIPE_LEADER_ELECTION", default_value_t = true, action = clap::ArgAction::Set)]
    leader_election: bool,
    /// The address of the metrics and health endpoints. `[::]` also accepts IPv4.
    #[arg(long, env = "CAIPE_LISTEN", default_value = "[::]:8080")]
    listen: SocketAddr,
    /// A YAML file with defaults for all supervisors.
    #[arg(long, env = "CAIPE_DEFAULTS")]
    defaults: Option<PathBuf>,
    /// Maximum number of concurrent reconciles, over all namespaces.
    #[arg(long, env = "CAIPE_CONCURRENCY", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=256))]
    concurrency: u16,
    /// Seconds between two probes of a responding pod, from 0.5 to 60. The status reports a pod that stops responding
    /// within this time and 2.4 seconds.
    #[arg(long, env = "CAIPE_PROBE_INTERVAL_SECONDS", default_value = "2.5", value_parser = interval)]
    probe_interval_seconds: Interval,
    /// The format of the log.
    #[arg(long, env = "CAIPE_LOG_FORMAT", value_enum, default_value_t)]
    log_format: LogFormat,
    /// The log level, such as `info`, with optional exceptions, such as `warn,caipe_operator=debug`.
    #[arg(long, env = "CAIPE_LOG_LEVEL", default_value = "info")]
    log_level: String,
}

impl Run {
    /// Runs until SIGTERM or SIGINT.
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        caipe_telemetry::init(&self.log_level, self.log_format)?;
        let namespaces = namespaces::watched(&self.watch_namespaces)?;
        let defaults = defaults::read(self.defaults.as_deref())?;
        // A second thread would have a heap arena of its own, whose free memory the first one cannot use.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(self.work(Options {
            namespaces,
            concurrency: self.concurrency,
            selector: self.selector.clone(),
            defaults,
        }))?;
        Ok(ExitCode::SUCCESS)
    }

    async fn work(&self, options: Options) -> anyhow::Result<()> {
        let client = client().await?;
        let metrics = Arc::new(Metrics::new());
        let stop = stop_signal()?;
        // The lease is released after the last reconcile; the health server stops last.
        let (release, close) = (CancellationToken::new(), CancellationToken::new());
        let health = Health::default();
        let listener = health::bind(self.listen)?;
        let listen = listener.local_addr().unwrap_or(self.listen);
        tracing::info!(version = env!("CARGO_PKG_VERSION"), namespaces = shown(&options.namespaces), %listen, "starts");
        let server =
            tokio::spawn(health::serve(listener, health.clone(), Arc::clone(&metrics), close.clone()));
        let (leadership, elector) = self.leadership(&client, &metrics, release.clone()).await;
        let about = EventsOptions::new(&self.name);
        let (events, publisher) = Events::new(client.clone(), about, Arc::clone(&metrics), close.clone());
        let publisher = tokio::spawn(health.monitor("events", publisher));
        let (notify, notices) = mpsc::channel(NOTICES);
        let probing = ProberOptions { interval: self.probe_interval_seconds, ..ProberOptions::default() };
        let prober = Prober::new(probing, Arc::clone(&metrics), notify)
            .context("failed to make a client of the pods")?;
        let probing = tokio::spawn(health.monitor("prober", Arc::clone(&prober).run(close.clone())));
        run::run(
            Dependencies { client, metrics, leadership, events, health, prober, notices },
            options,
            stop,
        )
        .await;
        release.cancel();
        elector.await.context("failed to give leadership back")?;
        close.cancel();
        let _ = tokio::join!(server, publisher, probing);
        Ok(())
    }

    async fn leadership(
        &self,
        client: &Client,
        metrics: &Arc<Metrics>,
        release: CancellationToken,
    ) -> (Leadership, tokio::task::JoinHandle<()>) {
        if !self.leader_election {
            return (Leadership::always(), tokio::spawn(async {}));
        }
        let options = LeaseOptions {
            owner: lease::owner(client, &self.namespace).await,
            ..LeaseOptions::new(
                &self.namespace,
                "caipe-operator",
                lease::identity(&self.name, self.uid.as_deref()),
            )
        };
        lease::elect(client.clone(), options, Arc::clone(metrics), release)
    }
}

fn interval(text: &str) -> Result<Interval, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let interval = seconds.and_then(Interval::new);
    interval.ok_or_else(|| format!("{text}: give a number of seconds from 0.5 to 60"))
}

fn shown(namespaces: &[String]) -> String {
    if namespaces.is_empty() { "all".to_owned() } else { namespaces.join(",") }
}

/// The reconciler retries by itself; retries of the client would hide the state of the API server from it.
async fn client() -> anyhow::Result<Client> {
    let mut config =
        Config::infer().await.context("failed to find a cluster: set KUBECONFIG, or run in a pod")?;
    config.default_retry = false;
    Client::try_from(config).context("failed to make a client of the cluster")
}

fn stop_signal() -> anyhow::Result<CancellationToken> {
    let stop = CancellationToken::new();
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let stopping = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("received a stop signal; reconciles in flight finish first");
        stopping.cancel();
    });
    Ok(stop)
}
