//! `chat`: talks to a supervisor, or to any other A2A agent, in the terminal.
//!
//! ```text
//! session (prompt, forms) -> turn (Ctrl-C, ticks) -> caipe_a2a::client (reconnects)
//!                              |
//!                              v
//!                  view (pure: events -> what to show) -> render (terminal | pipe | JSON)
//! ```

mod ask;
mod command;
mod edit;
mod error;
mod follow;
mod interrupts;
mod lines;
mod memory;
mod render;
mod session;
mod turn;

use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use caipe_a2a::client::{A2aClient, ClientError, ClientOptions, http_builder};
use secrecy::ExposeSecret;

use super::args::{Chat, Output};
use caipe_view::{End, FormKind};
pub(super) use caipe_view::{clean, one_line};
use command::{Command, MemoryCommand};
use follow::FollowError;
use interrupts::Interrupts;
use lines::{Lines, Prompt, history_path};
use render::{Json, Paint, Plain, Screen, Terminal};
use session::Session;
use turn::{TurnError, TurnOutcome};

/// The task failed.
const FAILED: u8 = 1;
/// The command line is wrong, or the agent cannot be talked to.
const UNUSABLE: u8 = 2;
/// The agent waits for an answer.
const INPUT_REQUIRED: u8 = 3;
/// The task was canceled; the exit code of a shell after Ctrl-C.
const CANCELED: u8 = 130;
/// The reader of the output has closed it; the exit code of a shell after a broken pipe.
const UNREAD: u8 = 141;

/// The largest message that is read from standard input, in bytes.
const MOST_INPUT: u64 = 1024 * 1024;

/// Runs the command. Failures of the connection to the agent are reported in one line and by the exit code; an error is
/// a local failure, such as of the terminal.
pub(super) async fn run(args: Chat) -> anyhow::Result<ExitCode> {
    let terminal = Terminals::of_process();
    let request = match request(&args, &terminal) {
        Ok(request) => request,
        Err(reason) => {
            eprintln!("caipe-supervisor: {reason}");
            return Ok(ExitCode::from(UNUSABLE));
        }
    };
    let client = match connect(&args).await {
        Ok(client) => client,
        Err(error) => {
            eprintln!("caipe-supervisor: {}", error::explain(&error, &args.url));
            return Ok(ExitCode::from(UNUSABLE));
        }
    };
    let mut session = session(&args, &terminal, client)?;
    let left = match request {
        Request::Message(message) => match Command::read(&message) {
            Command::Memory(command) => return remember(&mut session, command, &args.url).await,
            _ => session.say(&message).await,
        },
        Request::Task(task) => session.rejoin(&task).await,
        Request::Conversation => return converse(&mut session).await,
    };
    Ok(finish(&session, &args, left))
}

/// Carries out `/memory` as the only command.
async fn remember(session: &mut Session, command: MemoryCommand<'_>, url: &str) -> anyhow::Result<ExitCode> {
    match session.memory(command).await {
        Ok(text) => println!("{text}"),
        Err(error) => {
            eprintln!("caipe-supervisor: {}", error::explain(&error, url));
            return Ok(ExitCode::from(UNUSABLE));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The request of the command line.
enum Request {
    /// One message and its answer.
    Message(String),
    /// The rest of an earlier task.
    Task(String),
    /// Message after message.
    Conversation,
}

/// Which of the standard streams are terminals that can be drawn on.
struct Terminals {
    input: bool,
    output: bool,
    error: bool,
}

impl Terminals {
    fn of_process() -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Self {
            input: io::stdin().is_terminal(),
            output: io::stdout().is_terminal() && !dumb,
            error: io::stderr().is_terminal() && !dumb,
        }
    }
}

/// Reads the message from the command line, or else from a pipe.
fn request(args: &Chat, terminal: &Terminals) -> Result<Request, String> {
    if let Some(task) = &args.task {
        return Ok(Request::Task(task.clone()));
    }
    let given = args.message.join(" ");
    if !given.trim().is_empty() {
        return Ok(Request::Message(given));
    }
    if terminal.input && terminal.output && args.output == Output::Text {
        return Ok(Request::Conversation);
    }
    let usage = "nothing to ask: give a message, e.g. caipe-supervisor chat \"what changed last?\"";
    if terminal.input {
        return Err(usage.to_owned());
    }
    let mut text = String::new();
    let read = io::stdin().take(MOST_INPUT + 1).read_to_string(&mut text);
    match read {
        Err(error) => Err(format!("failed to read the message from standard input: {error}")),
        Ok(_) if text.trim().is_empty() => Err(usage.to_owned()),
        Ok(size) if size as u64 > MOST_INPUT => {
            Err(format!("the message on standard input is larger than {MOST_INPUT} bytes"))
        }
        Ok(_) => Ok(Request::Message(text)),
    }
}

async fn connect(args: &Chat) -> Result<A2aClient, ClientError> {
    let http = http_builder().build();
    let http =
        http.map_err(|error| ClientError::Protocol(format!("the HTTP client cannot be built: {error}")))?;
    let bearer = args.token.clone().filter(|token| !token.expose_secret().trim().is_empty());
    A2aClient::connect(&args.url, http, ClientOptions { bearer, ..ClientOptions::default() }).await
}

fn session(args: &Chat, terminal: &Terminals, client: A2aClient) -> anyhow::Result<Session> {
    let no_color = args.no_color || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let paint = Paint::new(!no_color);
    let screen: Box<dyn Screen> = match args.output {
        Output::Json => Box::new(Json::new(io::stdout())),
        Output::Text if terminal.output => Box::new(Terminal::new(io::stdout(), size, paint)),
        Output::Text => Box::new(Plain::new(io::stdout())),
    };
    let is_interactive = terminal.input && terminal.output && args.output == Output::Text;
    let lines = is_interactive.then(|| Lines::open(history_path(variable))).transpose();
    let lines = lines.context("failed to use the terminal")?;
    Ok(Session {
        client,
        url: args.url.clone(),
        context: args.context.clone().filter(|context| !context.is_empty()),
        screen,
        interrupts: Interrupts::of_process().context("failed to take over Ctrl-C")?,
        lines: lines.map(|lines| Box::new(lines) as Box<dyn Prompt>),
        aside: terminal.error,
        waiting: None,
        trace: None,
        task: None,
        facts: Vec::new(),
    })
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Columns and rows of the terminal; 80 and 24 if they are unknown.
fn size() -> (usize, usize) {
    match termimad::crossterm::terminal::size() {
        Ok((columns, rows)) if columns > 0 && rows > 0 => (columns.into(), rows.into()),
        _ => (80, 24),
    }
}

/// Prints the note after one task, and returns its exit code.
fn finish(session: &Session, args: &Chat, left: Result<TurnOutcome, TurnError>) -> ExitCode {
    let left = match left {
        Ok(left) => left,
        Err(error) => return failed(&error, &args.url),
    };
    let is_failure = matches!(left, TurnOutcome::Ended(End::Failed(_)));
    if args.trace || is_failure {
        session.note_trace();
    }
    let (code, note) = match left {
        TurnOutcome::Ended(End::Completed) => (0, how_to_continue(session)),
        TurnOutcome::Ended(End::Failed(_)) => (FAILED, None),
        TurnOutcome::Ended(End::InputRequired) => (INPUT_REQUIRED, how_to_answer(session)),
        TurnOutcome::Ended(End::Canceled) => (CANCELED, None),
        TurnOutcome::Unconfirmed | TurnOutcome::Gone => (CANCELED, Some(session.unconfirmed())),
    };
    if let Some(note) = note.filter(|_| args.output == Output::Text) {
        session.note(&note);
    }
    ExitCode::from(code)
}

fn failed(error: &TurnError, url: &str) -> ExitCode {
    let code = match error {
        TurnError::Write(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            return ExitCode::from(UNREAD);
        }
        TurnError::Follow(FollowError::Client(ClientError::Remote(_))) | TurnError::Write(_) => FAILED,
        TurnError::Follow(_) => UNUSABLE,
    };
    match error {
        TurnError::Follow(error) => eprintln!("caipe-supervisor: {}", error::explain_follow(error, url)),
        TurnError::Write(error) => eprintln!("caipe-supervisor: {error}"),
    }
    ExitCode::from(code)
}

/// Prints the command that continues the conversation, only on a terminal: a pipe gets the answer alone.
fn how_to_continue(session: &Session) -> Option<String> {
    let context = session.context.as_ref().filter(|_| session.aside)?;
    Some(format!("to continue: {}", error::command(&session.url, "--context", context)))
}

/// The command that answers the question later.
fn how_to_answer(session: &Session) -> Option<String> {
    let context = session.context.as_ref()?;
    let answer = session.open_form().map_or("name: value", |form| match &form.kind {
        FormKind::Approval { approve, .. } => approve,
        FormKind::Fields(_) => "name: value",
        FormKind::Words => "your answer",
    });
    let command = error::command(&session.url, "--context", context);
    Some(format!("the agent waits for an answer: {command} \"{answer}\""))
}

/// Message after message, until the user leaves.
async fn converse(session: &mut Session) -> anyhow::Result<ExitCode> {
    let name = clean(&session.client.card().name);
    session.note(&format!(
        "{} at {} · A2A {} · /help",
        one_line(&name),
        session.url,
        session.client.version()
    ));
    session.converse().await.context("failed to use the terminal")?;
    if let Some(note) = how_to_continue(session) {
        session.note(&note);
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
#[path = "chat_tests.rs"]
mod tests;
