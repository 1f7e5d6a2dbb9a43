//! The child process of `jq`: runs one program and exits.

use std::io::{self, BufWriter, Read, Write};

use jaq_core::load::{Arena, Error, Errors, File, Loader};
use jaq_core::{Compiler, Ctx, Vars, data, unwrap_valr};
use jaq_json::Val;
use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The hidden subcommand by which the program runs itself as [`jq_eval_main`].
pub const JQ_EVAL_COMMAND: &str = "jq-eval";
pub(super) const MAX_OUTPUT_BYTES: usize = 200_000;
/// The exit code of a program that is invalid or failed; the reason is on stderr.
pub(super) const EXIT_FAILED: i32 = 3;
const MAX_MEMORY_BYTES: u64 = 1 << 30;
/// More than the caller's deadline; ends the process if the caller is gone.
const MAX_CPU_SECONDS: u64 = 10;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) program: String,
    pub(super) input: Value,
}

/// Runs one jq program: the request as JSON on stdin, each output as a line of JSON on stdout. Returns the exit code:
/// 0, or 3 with the reason on stderr.
///
/// The process limits its own memory and time; a program that exceeds them ends the process. Call it first in `main`, before
/// any thread or runtime starts.
pub fn jq_eval_main() -> i32 {
    limit(Resource::As, MAX_MEMORY_BYTES);
    limit(Resource::Cpu, MAX_CPU_SECONDS);
    limit(Resource::Core, 0);
    match run(io::stdin().lock(), BufWriter::new(io::stdout().lock())) {
        Ok(()) => 0,
        Err(reason) => {
            let written = writeln!(io::stderr(), "{reason}");
            if written.is_err() { EXIT_FAILED + 1 } else { EXIT_FAILED }
        }
    }
}

fn limit(resource: Resource, value: u64) {
    let limit = Rlimit { current: Some(value), maximum: Some(value) };
    if let Err(error) = setrlimit(resource, limit) {
        tracing::debug!(%error, ?resource, "a limit could not be set");
    }
}

fn run(stdin: impl Read, stdout: impl Write) -> Result<(), String> {
    let request: Request =
        serde_json::from_reader(stdin).map_err(|error| format!("the request is not valid: {error}"))?;
    let input: Val =
        serde_json::from_value(request.input).map_err(|error| format!("the input is not valid: {error}"))?;
    evaluate(&request.program, input, stdout)
}

fn evaluate(program: &str, input: Val, mut out: impl Write) -> Result<(), String> {
    let arena = Arena::default();
    let prelude = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    let modules = Loader::new(prelude)
        .load(&arena, File { path: (), code: program })
        .map_err(|errors| load_error(program, errors))?;
    let filter = Compiler::default()
        .with_funs(jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs()))
        .compile(modules)
        .map_err(|errors| compile_error(&errors))?;
    let context = Ctx::<data::JustLut<Val>>::new(&filter.lut, Vars::new([]));
    // One byte more than is shown, so that the reader notices a longer output.
    let mut room = MAX_OUTPUT_BYTES + 1;
    for value in filter.id.run((context, input)).map(unwrap_valr) {
        let line = value.map_err(|error| error.to_string())?.to_string() + "\n";
        let head = line.as_bytes().get(..room).unwrap_or(line.as_bytes());
        room -= head.len();
        if out.write_all(head).is_err() || room == 0 {
            break;
        }
    }
    out.flush().map_err(|error| format!("the output could not be written: {error}"))
}

fn load_error(program: &str, errors: Errors<&str, ()>) -> String {
    let first = errors.into_iter().next().map(|(_, error)| error);
    match first {
        Some(Error::Io(errors)) => match errors.into_iter().next() {
            Some((path, reason)) => format!("modules cannot be loaded here ({path}: {reason})"),
            None => "modules cannot be loaded here".to_owned(),
        },
        Some(Error::Lex(errors)) => {
            syntax_error(program, errors.first().map(|(expected, found)| (expected.as_str(), *found)))
        }
        Some(Error::Parse(errors)) => {
            syntax_error(program, errors.first().map(|(expected, found)| (expected.as_str(), *found)))
        }
        None => syntax_error(program, None),
    }
}

/// Quotes the text at the error, because models count positions badly.
fn syntax_error(program: &str, error: Option<(&str, &str)>) -> String {
    let Some((expected, found)) = error else {
        return "the program is not valid jq".to_owned();
    };
    let from = jaq_core::load::span(program, found).start;
    let rest: String = program.get(from..).unwrap_or_default().chars().take(40).collect();
    if rest.is_empty() {
        format!("expected {expected} at the end of the program")
    } else {
        format!("expected {expected} at `{rest}`")
    }
}

fn compile_error(errors: &jaq_core::compile::Errors<&str, ()>) -> String {
    let undefined = errors.iter().flat_map(|(_, errors)| errors);
    let names: Vec<String> = undefined.map(|(name, kind)| format!("{} `{name}`", kind.as_str())).collect();
    format!("not defined: {}", names.join(", "))
}
