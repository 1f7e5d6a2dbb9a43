//! The command line.

mod agent;
mod agents;
mod args;
mod card;
mod chat;
mod check;
mod doctor;
mod eval;
mod install;
mod kb;
mod keys;
mod mcp_bridge;
mod mcp_endpoint;
mod prompt;
mod serve;
mod server;
mod signing;
mod skills;
mod slack;
mod store;

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::num::NonZero;
use std::path::Path;
use std::process::ExitCode;
use std::thread;

use clap::Parser;
use tokio::runtime::{Builder, Runtime};

use args::{Agents, AgentsAction, Args, Command, SlackArgs, SlackCommand};

/// Names that start the server when the program is called by them; upstream's images do.
const SERVER_NAMES: [&str; 2] = ["platform-engineer", "platform-engineer-single"];

/// The exit code for wrong arguments or a wrong file.
const USAGE: u8 = 2;

/// Runs the program.
pub fn main() -> ExitCode {
    if let Some(code) = crate::tools::shell_process() {
        return ExitCode::from(u8::try_from(code).unwrap_or(1));
    }
    let args = Args::parse_from(with_server_name(std::env::args_os().collect()));
    if let Command::JqEval = args.command {
        return ExitCode::from(u8::try_from(crate::builtin::jq_eval_main()).unwrap_or(1));
    }
    if let Command::PdfText = args.command {
        return ExitCode::from(u8::try_from(caipe_kb::pdf_text_main()).unwrap_or(1));
    }
    if let Command::Install(install) = &args.command {
        return install::run(install);
    }
    if let Err(error) = caipe_telemetry::init(&args.log, args.log_format) {
        eprintln!("caipe-supervisor: {error}");
        return ExitCode::from(USAGE);
    }
    // Before any TLS client is built: there is one provider.
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    match run(args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("caipe-supervisor: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Check(check) => return check::run(check),
        Command::Card(card) => return card::run(card),
        Command::Prompt(prompt) => return prompt::run(prompt),
        Command::Slack(SlackArgs { command: Some(SlackCommand::Manifest(manifest)), .. }) => {
            return slack::print_manifest(manifest);
        }
        Command::Agents(agents) if agents.url.is_none() && agents.action.is_none() => {
            return agents::run(agents);
        }
        Command::Agent(agent) if agent.card => return agent::card(agent),
        _ => {}
    }
    let runtime = runtime()?;
    let code = runtime.block_on(async {
        match args.command {
            Command::Serve(serve) => serve::run(serve).await,
            Command::Agent(agent) => agent::run(agent).await,
            Command::Chat(chat) => chat::run(chat).await,
            Command::Agents(Agents { action: Some(AgentsAction::Doctor(args)), .. }) => {
                doctor::run(&args).await
            }
            Command::Agents(args) => agents::ask(&args).await,
            Command::Eval(args) => eval::run(&args).await,
            Command::McpBridge(bridge) => mcp_bridge::run(bridge).await,
            Command::Kb(args) => kb::run(args).await,
            Command::Store(args) => store::run(args).await,
            Command::Skills(args) => skills::run(args).await,
            Command::Slack(args) => slack::run(args).await,
            Command::Card(_)
            | Command::Prompt(_)
            | Command::Check(_)
            | Command::Install(_)
            | Command::JqEval
            | Command::PdfText => Ok(ExitCode::SUCCESS),
        }
    });
    // A thread that reads a terminal cannot be ended; it must not hold the program back.
    runtime.shutdown_background();
    code
}

/// The runtime, with a worker less than there are processors, because the store has a thread of its own. On two processors,
/// a second worker costs a third more time: tokens that arrive one by one wake the workers in turns.
fn runtime() -> std::io::Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    if std::env::var_os("TOKIO_WORKER_THREADS").is_none() {
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        builder.worker_threads(processors.saturating_sub(1).max(1));
    }
    builder.enable_all().build()
}

/// `platform-engineer --port 8000` means `platform-engineer serve --port 8000`.
fn with_server_name(mut args: Vec<OsString>) -> Vec<OsString> {
    let is_server = |name: &OsStr| SERVER_NAMES.iter().any(|known| name == *known);
    if args.first().and_then(|path| Path::new(path).file_name()).is_some_and(is_server) {
        let others = args.split_off(1);
        args.push("serve".into());
        args.extend(others.into_iter().filter(|arg| !is_server(arg)));
    }
    args
}

/// Prints a line of a command's result. A reader that has closed the pipe, as `head` does, is no error.
fn print(line: impl std::fmt::Display) -> anyhow::Result<()> {
    match writeln!(std::io::stdout(), "{line}") {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn listen_beats_host_and_port() {
        let address = |line: &str| match Args::try_parse_from(args(line)).unwrap().command {
            Command::Serve(serve) => serve.serving.address(8000).to_string(),
            Command::Agent(agent) => agent.serving.address(4000).to_string(),
            other => panic!("{other:?}"),
        };
        assert_eq!(address("caipe-supervisor serve"), "127.0.0.1:8000");
        assert_eq!(address("caipe-supervisor serve --host localhost --port 9000"), "127.0.0.1:9000");
        assert_eq!(
            address("caipe-supervisor serve --listen 0.0.0.0:8001 --host 10.0.0.1 --port 9"),
            "0.0.0.0:8001"
        );
        assert_eq!(address("caipe-supervisor agent jira"), "127.0.0.1:4000");
        assert_eq!(address("caipe-supervisor agent jira --port 9"), "127.0.0.1:9");
    }

    #[test]
    fn both_old_names_serve() {
        for line in ["/bin/platform-engineer --port 9000", "platform-engineer-single --port 9000"] {
            let given = with_server_name(args(line));
            assert_eq!(given[1..], args("serve --port 9000"), "{line}");
        }
        for line in [
            "caipe-supervisor platform-engineer",
            "caipe-supervisor platform-engineer-single",
            "caipe-supervisor serve",
        ] {
            let parsed = Args::try_parse_from(with_server_name(args(line))).unwrap();
            assert!(matches!(parsed.command, Command::Serve(_)), "{line}");
        }
    }
}
