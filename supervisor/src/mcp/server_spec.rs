//! The declaration of a server: its transport, its permitted tools, its deadlines.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use caipe_bridge::redact::{Redactor, sounds_secret};
use caipe_crds::rendered::CheckCall;
use caipe_engine::name_matches;
use url::Url;

use super::environment::child_environment;
use super::error::SpecError;
use super::template::{Expansion, expand};

/// One tool server of an agent, as declared.
///
/// `Debug` shows the names of environment variables and headers, never their values.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerSpec {
    /// Its name in status and logs, and as the prefix of tools whose names two servers offer.
    pub name: String,
    /// The process or the URL.
    pub transport: Transport,
    /// Patterns of the tools to offer, as in [`name_matches`]; none means all.
    pub allow: Vec<String>,
    /// The tools not to offer, even if allowed.
    pub deny: Vec<String>,
    /// Patterns of tools that only read, although their names do not say so.
    pub reads: Vec<String>,
    /// Patterns of tools that destroy, although their names do not say so.
    pub destructive: Vec<String>,
    /// A read that shows whether its credentials are accepted.
    pub check: Option<CheckCall>,
    /// The limit from its start to its list of tools.
    pub start_deadline: Duration,
    /// The limit of one call, whatever progress the server reports.
    pub call_timeout: Duration,
}

/// The process or the URL of a server.
///
/// Every text in it is a template: `${VAR}` is the variable's value, `${VAR:-default}` one that may be missing or
/// empty, `$${` a literal `${`.
#[derive(Clone, PartialEq)]
pub enum Transport {
    /// A child process that speaks on its stdin and stdout.
    Stdio {
        /// The program: a path, or a name to be found on the `PATH`.
        command: String,
        args: Vec<String>,
        /// Its environment, on top of the few variables that every child gets (`PATH`, `HOME`, proxies, CA bundles).
        env: BTreeMap<String, String>,
        /// Its working directory; that of the supervisor if absent.
        cwd: Option<String>,
    },
    /// A server at a URL (streamable HTTP).
    Http {
        url: String,
        /// Headers of every request.
        headers: BTreeMap<String, String>,
    },
}

impl ServerSpec {
    /// A server with all its tools permitted, 30 seconds to start, and one minute for a call.
    pub fn new(name: impl Into<String>, transport: Transport) -> Self {
        Self {
            name: name.into(),
            transport,
            allow: Vec::new(),
            deny: Vec::new(),
            reads: Vec::new(),
            destructive: Vec::new(),
            check: None,
            start_deadline: Duration::from_secs(30),
            call_timeout: Duration::from_mins(1),
        }
    }

    /// Whether a tool of this name is on offer.
    pub fn offers(&self, tool: &str) -> bool {
        let covered = |patterns: &[String]| patterns.iter().any(|pattern| name_matches(pattern, tool));
        (self.allow.is_empty() || covered(&self.allow)) && !covered(&self.deny)
    }
}

impl Transport {
    /// A child process without declared environment.
    pub fn stdio<A: Into<String>>(command: impl Into<String>, args: impl IntoIterator<Item = A>) -> Self {
        Self::Stdio {
            command: command.into(),
            args: args.into_iter().map(Into::into).collect(),
            env: BTreeMap::new(),
            cwd: None,
        }
    }

    /// A server at a URL, without declared headers.
    pub fn http(url: impl Into<String>) -> Self {
        Self::Http { url: url.into(), headers: BTreeMap::new() }
    }

    /// The transport with every template filled in and the whole environment of a child, and its secrets.
    pub(crate) fn resolve(&self, env: &BTreeMap<String, String>) -> Result<Resolved, SpecError> {
        let mut hidden = Hidden::default();
        let transport = match self {
            Self::Stdio { command, args, env: own, cwd } => Self::Stdio {
                command: hidden.expand("command", command, env)?,
                args: args.iter().map(|arg| hidden.expand("args", arg, env)).collect::<Result<_, _>>()?,
                env: child_environment(env, &set(own, hidden.expand_map("env", own, env)?)),
                cwd: cwd.as_ref().map(|cwd| hidden.expand("cwd", cwd, env)).transpose()?,
            },
            Self::Http { url, headers } => {
                let url = hidden.expand("url", url, env)?;
                hidden.note_url(&url);
                Self::Http { url, headers: hidden.expand_map("headers", headers, env)? }
            }
        };
        Ok(Resolved {
            transport,
            logs: Redactor::new(hidden.substituted.iter().chain(&hidden.secret)),
            results: Redactor::new(&hidden.secret),
        })
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio { command, args, env, cwd } => f
                .debug_struct("Stdio")
                .field("command", command)
                .field("args", &args.len())
                .field("env", &env.keys())
                .field("cwd", cwd)
                .finish(),
            Self::Http { headers, .. } => {
                f.debug_struct("Http").field("headers", &headers.keys()).finish_non_exhaustive()
            }
        }
    }
}

/// A transport with every template filled in.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) transport: Transport,
    /// For logs and messages: hides the values of all variables except plain URLs, and every secret.
    pub(crate) logs: Redactor,
    /// For results: hides secrets only, because a tool may have to name the value of a variable.
    pub(super) results: Redactor,
}

/// The variables without those whose template is empty only because its variables are: many programs take an empty variable for a
/// setting.
fn set(
    templates: &BTreeMap<String, String>,
    mut values: BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    values.retain(|name, value| !value.is_empty() || templates.get(name).is_none_or(String::is_empty));
    values
}

/// The values to hide.
#[derive(Default)]
struct Hidden {
    substituted: Vec<String>,
    secret: Vec<String>,
}

impl Hidden {
    fn expand(
        &mut self,
        field: &str,
        text: &str,
        env: &BTreeMap<String, String>,
    ) -> Result<String, SpecError> {
        let Expansion { text, used } =
            expand(text, env).map_err(|reason| SpecError { field: field.to_owned(), reason })?;
        for (variable, value) in used {
            if sounds_secret(&variable) {
                self.secret.push(value);
            } else if !is_plain_url(&value) {
                self.substituted.push(value);
            }
        }
        Ok(text)
    }

    /// Errors of an HTTP client quote the whole URL.
    fn note_url(&mut self, url: &str) {
        let Ok(url) = Url::parse(url) else {
            return;
        };
        self.secret.extend(url.password().map(ToOwned::to_owned));
        for (key, value) in url.query_pairs() {
            let list = if sounds_secret(&key) { &mut self.secret } else { &mut self.substituted };
            list.push(value.into_owned());
        }
    }

    fn expand_map(
        &mut self,
        field: &str,
        map: &BTreeMap<String, String>,
        env: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, SpecError> {
        let entry = |(key, template): (&String, &String)| {
            let value = self.expand(&format!("{field}.{key}"), template, env)?;
            if sounds_secret(key) {
                self.secret.push(value.clone());
            }
            Ok((key.clone(), value))
        };
        map.iter().map(entry).collect()
    }
}

/// Whether a value is a URL without credentials, which error messages may show.
fn is_plain_url(value: &str) -> bool {
    Url::parse(value).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
    })
}

#[cfg(test)]
#[path = "server_spec_tests.rs"]
mod tests;
