//! `kb`: indexes documents, searches them, and serves them to agents.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use caipe_kb::{
    Embedder, Embedding, Hit, KnowledgeBase, PDF_TEXT_COMMAND, PdfReader, Provider, Query, Report, Request,
    Source, SourceKind, Updater, mcp,
};
use caipe_net::Screen;
use secrecy::ExposeSecret as _;
use serde_json::json;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::args::{Kb, KbAdd, KbCommand, KbEmbeddings, KbSearch, KbServe, Output};
use super::server::{listen, stopping, write_address};
use super::{mcp_endpoint, print};
use crate::builtin::executable;
use crate::http;

/// How long clients may take to read the last answers.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

pub(super) async fn run(args: Kb) -> anyhow::Result<ExitCode> {
    let (directory, max_tokens) = (args.directory, args.embeddings.max_tokens);
    let embedder = provider(args.embeddings)?;
    match args.command {
        KbCommand::Serve(serve) => run_server(&directory, serve, embedder.map(|it| it as _)).await,
        KbCommand::Add(add) => {
            if let Some(provider) = &embedder {
                let (model, host) = (provider.model(), provider.host());
                eprintln!(
                    "new and changed documents are sent to {host} and embedded with {model}, at the price of this provider"
                );
            }
            let embedding = embedder.map(|embedder| Embedding { embedder, max_tokens });
            spawn_blocking(move || run_add(&directory, add, embedding)).await?
        }
        KbCommand::Remove { names } => spawn_blocking(move || run_remove(&directory, &names)).await?,
        KbCommand::List { output } => run_list(&directory, output),
        KbCommand::Search(search) => {
            spawn_blocking(move || run_search(&directory, search, embedder.map(|it| it as _))).await?
        }
    }
}

/// The provider of embeddings, if a model is set.
fn provider(args: KbEmbeddings) -> anyhow::Result<Option<Arc<Provider>>> {
    let KbEmbeddings { model, url, key, .. } = args;
    if model.is_empty() {
        return Ok(None);
    }
    let key = key.filter(|key| !key.expose_secret().is_empty());
    let provider = Provider::new(&url, &model, key, Handle::current()).map_err(anyhow::Error::msg);
    Ok(Some(Arc::new(provider.context("CAIPE_KB_EMBEDDINGS_URL cannot be used")?)))
}

fn updater(directory: &Path, rebuild: bool, screen: Screen) -> anyhow::Result<Updater> {
    let pdf = PdfReader::new(executable()?, &[PDF_TEXT_COMMAND]);
    Ok(Updater::open(directory, rebuild, screen, pdf, Handle::current())?)
}

fn run_add(directory: &Path, args: KbAdd, embedding: Option<Embedding>) -> anyhow::Result<ExitCode> {
    let mut updater = updater(directory, args.rebuild, Screen::new(args.allow))?.with_embedding(embedding)?;
    let known = updater.sources().iter().map(|source| Request { kind: source.kind.clone(), name: None });
    let mut requests: Vec<Request> =
        if args.sources.is_empty() || args.rebuild { known.collect() } else { Vec::new() };
    let given =
        args.sources.iter().map(|text| Request { kind: SourceKind::parse(text), name: args.name.clone() });
    requests.extend(given);
    ensure!(!requests.is_empty(), "the knowledge base has no sources; name a folder, a file or a URL");
    let mut failed = false;
    for request in requests {
        match updater.add(request) {
            Ok(report) => print_report(&report)?,
            Err(error) => {
                failed = true;
                eprintln!("caipe-supervisor: {error}");
            }
        }
    }
    updater.close()?;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn print_report(report: &Report) -> anyhow::Result<()> {
    let Report { source, added, changed, removed, unchanged, .. } = report;
    print(format!("{source}: {added} added, {changed} changed, {removed} removed, {unchanged} unchanged"))?;
    if report.embedded > 0 {
        eprintln!("{source}: {} chunks embedded, about {} tokens", report.embedded, report.embedded_tokens);
    }
    for skipped in &report.skipped {
        eprintln!("skipped {skipped}");
    }
    let more = report.skipped_count.saturating_sub(report.skipped.len());
    if more > 0 {
        eprintln!("skipped {more} more");
    }
    Ok(())
}

fn run_remove(directory: &Path, names: &[String]) -> anyhow::Result<ExitCode> {
    // Opening for changes would create it.
    drop(KnowledgeBase::open(directory)?);
    let mut updater = updater(directory, false, Screen::default())?;
    for name in names {
        let documents = updater.remove(name)?;
        print(format!("{name}: {documents} removed"))?;
    }
    updater.close()?;
    Ok(ExitCode::SUCCESS)
}

fn run_list(directory: &Path, output: Output) -> anyhow::Result<ExitCode> {
    for source in KnowledgeBase::open(directory)?.state()?.sources {
        match output {
            Output::Json => print(serde_json::to_string(&source)?)?,
            Output::Text => print(listed(&source))?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn listed(source: &Source) -> String {
    let revision = source.revision.as_ref().and_then(|revision| revision.get(..12));
    let revision = revision.map(|revision| format!(" at {revision}")).unwrap_or_default();
    let Source { name, kind, documents, updated, .. } = source;
    format!("{name}: {documents} documents of {kind}{revision}, read {updated}")
}

fn run_search(
    directory: &Path,
    args: KbSearch,
    embedder: Option<Arc<dyn Embedder>>,
) -> anyhow::Result<ExitCode> {
    let base = KnowledgeBase::open(directory)?.with_embedder(embedder);
    let hits = base.search(&Query { text: args.query.join(" "), limit: args.limit, source: args.source })?;
    for (number, hit) in hits.iter().enumerate() {
        match args.output {
            Output::Json => print(as_json(hit))?,
            Output::Text => print(as_text(number + 1, hit))?,
        }
    }
    if hits.is_empty() {
        eprintln!("nothing found");
    }
    Ok(ExitCode::SUCCESS)
}

fn as_text(number: usize, hit: &Hit) -> String {
    let place = hit.headings.iter().filter(|heading| **heading != hit.title).cloned().collect::<Vec<_>>();
    let title = std::iter::once(hit.title.clone()).chain(place).collect::<Vec<_>>().join(" > ");
    let excerpt = hit.excerpt.lines().map(|line| format!("   {line}")).collect::<Vec<_>>().join("\n");
    format!("{number}. {title} ({:.1})\n   {}\n{excerpt}\n", hit.score, hit.document_id)
}

fn as_json(hit: &Hit) -> serde_json::Value {
    json!({
        "document_id": hit.document_id,
        "source": hit.source,
        "title": hit.title,
        "headings": hit.headings,
        "location": hit.location,
        "score": hit.score,
        "excerpt": hit.excerpt,
    })
}

async fn run_server(
    directory: &Path,
    args: KbServe,
    embedder: Option<Arc<dyn Embedder>>,
) -> anyhow::Result<ExitCode> {
    let key = args.key.filter(|key| !key.expose_secret().is_empty());
    ensure!(
        args.listen.ip().is_loopback() || key.is_some(),
        "refusing to listen on {}: everybody who reaches it could read the documents; give --listen 127.0.0.1:PORT, or set the key that \
         clients must send (CAIPE_KB_KEY)",
        args.listen
    );
    let opened = directory.to_path_buf();
    let base = spawn_blocking(move || KnowledgeBase::open(&opened)).await??;
    let base = Arc::new(base.with_embedder(embedder));
    let sources = base.state()?.sources.len();
    let stop_signal = stopping()?;
    let listener = listen(args.listen)?;
    let address = listener.local_addr().context("the listener has no address")?;
    if let Some(file) = &args.address_file {
        write_address(file, address)?;
    }
    tracing::info!(%address, path = mcp::PATH, sources, "listening");
    let stop = CancellationToken::new();
    // Probes of health send no key.
    let routes = mcp_endpoint::guarded(mcp::routes(base.clone()), key).merge(mcp::health_routes(base));
    let server = tokio::spawn(http::serve(listener, routes, mcp_endpoint::limits(), stop.clone()));
    stop_signal.await;
    tracing::info!("stopping");
    stop.cancel();
    drop(timeout(LAST_ANSWERS, server).await);
    Ok(ExitCode::SUCCESS)
}
