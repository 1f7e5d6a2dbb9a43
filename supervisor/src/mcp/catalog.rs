//! What all servers of an agent offer together.

use std::collections::{BTreeMap, HashMap, HashSet};

use caipe_model::ToolSpec;
use rmcp::model::Tool;
use serde_json::{Map, Value};

use super::list::ToolList;
use super::spec::ServerSpec;

/// The longest name that every model provider accepts.
const NAME_CHARS: usize = 64;
/// The most tools taken from one server.
const TOOLS_PER_SERVER: usize = 512;
/// The longest description handed to a model, in characters.
const DESCRIPTION_CHARS: usize = 8_000;
/// The largest schema that is accepted, in bytes of JSON.
const SCHEMA_BYTES: usize = 64 * 1024;
/// The most lines about tools that are left out.
const MAX_LEFT_OUT: usize = 20;

/// Names that mean something else to an agent, in any case: the tools of the engine and of the edge, and the ways to answer.
/// A server's tool of such a name has its server's name before its own.
const RESERVED: [&str; 15] = [
    "write_todos",
    "task",
    "ls",
    "read_file",
    "write_file",
    "edit_file",
    "glob",
    "grep",
    "get_current_date",
    "wait",
    "jq",
    "tool_result_to_file",
    "ResponseFormat",
    "PlatformEngineerResponse",
    caipe_engine::ASK_TOOL,
];

/// What is on offer at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolsView {
    /// The tools, sorted by name. Names are unique, at most 64 characters, of letters, digits, `_` and `-`; a
    /// tool has its server's name before its own only where another server offers the same one.
    pub tools: Vec<ToolSpec>,
    /// The servers, in the order they were declared.
    pub servers: Vec<ServerStatus>,
    /// Whether every server is ready, or has failed at least once: there is nothing more to wait for at start.
    pub settled: bool,
    routes: BTreeMap<String, Route>,
}

/// How one server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStatus {
    /// Its name.
    pub name: String,
    /// How far it is.
    pub phase: ServerPhase,
    /// How many of its tools are on offer; those of its last good list while it is away.
    pub tools: usize,
    /// What is wrong, for people. Holds no secret.
    pub message: Option<String>,
    /// The tools that are not on offer because they are malformed or too large, a line each. Holds no secret.
    pub left_out: Vec<String>,
    /// The protocol version agreed on last.
    pub protocol_version: Option<String>,
}

/// How far a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerPhase {
    /// It starts for the first time.
    Starting,
    /// It answers.
    Ready,
    /// It could not be started, and is tried again in the background where that may help.
    Failed,
    /// It answered and then ended or fell silent; it is being started again.
    Restarting,
}

/// Where a call goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Route {
    /// Which server, by position.
    pub(super) server: usize,
    /// The tool's own name there.
    pub(super) tool: String,
    /// The arguments that it insists on.
    required: Vec<String>,
}

/// A tool as one server offers it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Offer {
    name: String,
    description: String,
    schema: Value,
}

/// All that is known of one server.
#[derive(Debug, Clone)]
pub(super) struct ServerState {
    pub(super) name: String,
    pub(super) phase: ServerPhase,
    pub(super) offers: Vec<Offer>,
    pub(super) message: Option<String>,
    pub(super) left_out: Vec<String>,
    pub(super) protocol_version: Option<String>,
    pub(super) settled: bool,
}

impl ServerPhase {
    /// A bounded name for logs and metric labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Failed => "failed",
            Self::Restarting => "restarting",
        }
    }
}

impl ServerState {
    pub(super) fn starting(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            phase: ServerPhase::Starting,
            offers: Vec::new(),
            message: None,
            left_out: Vec::new(),
            protocol_version: None,
            settled: false,
        }
    }

    fn status(&self) -> ServerStatus {
        ServerStatus {
            name: self.name.clone(),
            phase: self.phase,
            tools: self.offers.len(),
            message: self.message.clone(),
            left_out: self.left_out.clone(),
            protocol_version: self.protocol_version.clone(),
        }
    }
}

impl ToolsView {
    /// What the servers offer together.
    pub(super) fn of(states: &[ServerState]) -> Self {
        let offers: Vec<(usize, &str, &Offer)> = states
            .iter()
            .enumerate()
            .flat_map(|(index, state)| {
                state.offers.iter().map(move |offer| (index, state.name.as_str(), offer))
            })
            .collect();
        let names = unique_names(offers.iter().map(|(_, server, offer)| (*server, offer.name.as_str())));
        let mut view = Self {
            servers: states.iter().map(ServerState::status).collect(),
            settled: states.iter().all(|state| state.settled),
            ..Self::default()
        };
        for (name, (server, _, offer)) in names.into_iter().zip(offers) {
            view.routes.insert(name.clone(), Route::new(server, offer));
            let (description, schema) = (offer.description.clone(), offer.schema.clone());
            view.tools.push(ToolSpec { name, description, schema });
        }
        view.tools.sort_by(|a, b| a.name.cmp(&b.name));
        view
    }

    /// The name of each tool here, and the one that its server gives it.
    pub fn own_names(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        self.routes.iter().map(|(name, route)| (name.as_str(), route.tool.as_str()))
    }

    /// A settled view with tools of these names, here and at their server.
    #[cfg(test)]
    pub(crate) fn with_tools(names: &[(&str, &str)]) -> Self {
        let route = |(name, own): &(&str, &str)| {
            let route = Route { server: 0, tool: (*own).to_owned(), required: Vec::new() };
            ((*name).to_owned(), route)
        };
        Self { settled: true, routes: names.iter().map(route).collect(), ..Self::default() }
    }

    pub(super) fn route(&self, tool: &str) -> Option<&Route> {
        self.routes.get(tool)
    }
}

impl Route {
    fn new(server: usize, offer: &Offer) -> Self {
        let required = offer.schema.get("required").and_then(Value::as_array);
        let required =
            required.into_iter().flatten().filter_map(Value::as_str).map(ToOwned::to_owned).collect();
        Self { server, tool: offer.name.clone(), required }
    }

    /// The arguments that are required and not given. Everything else about them is the server's to judge.
    pub(super) fn missing(&self, arguments: &Map<String, Value>) -> Vec<&str> {
        self.required.iter().map(String::as_str).filter(|name| !arguments.contains_key(*name)).collect()
    }
}

/// The tools of a server's list that are on offer (those that the declaration permits, of bounded size, each name once), and a
/// line for each tool that is left out for a fault of its own.
pub(super) fn offers(spec: &ServerSpec, list: ToolList) -> (Vec<Offer>, Vec<String>) {
    let mut seen = HashSet::new();
    let fresh =
        |tool: &Tool| !tool.name.is_empty() && spec.offers(&tool.name) && seen.insert(tool.name.clone());
    let (mut offers, mut left_out) = (Vec::new(), list.malformed);
    for tool in list.tools.into_iter().filter(fresh) {
        if offers.len() == TOOLS_PER_SERVER {
            left_out.push(format!("the tools after the first {TOOLS_PER_SERVER} are left out"));
            break;
        }
        match offer(tool) {
            Ok(offer) => offers.push(offer),
            Err(reason) => left_out.push(reason),
        }
    }
    if left_out.len() > MAX_LEFT_OUT {
        let more = left_out.len() - MAX_LEFT_OUT;
        left_out.truncate(MAX_LEFT_OUT);
        left_out.push(format!("{more} more tools are left out"));
    }
    (offers, left_out)
}

fn offer(tool: Tool) -> Result<Offer, String> {
    let mut schema = tool.input_schema.as_ref().clone();
    // Some providers refuse a schema that does not say that arguments are an object.
    schema.entry("type").or_insert_with(|| Value::from("object"));
    let schema = Value::Object(schema);
    if schema.to_string().len() > SCHEMA_BYTES {
        let limit = SCHEMA_BYTES / 1024;
        return Err(format!("tool {:?} is left out: its schema is larger than {limit} KiB", tool.name));
    }
    let description = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
    let description = description.chars().take(DESCRIPTION_CHARS).collect();
    Ok(Offer { name: tool.name.into_owned(), description, schema })
}

/// One name per tool that models accept and that no other tool has, from pairs of server and tool.
fn unique_names<'a>(tools: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Vec<String> {
    let mut wanted: HashMap<String, usize> = HashMap::new();
    for (_, tool) in tools.clone() {
        *wanted.entry(model_name(tool)).or_default() += 1;
    }
    wanted.retain(|name, count| *count == 1 && !is_reserved(name));
    let own = wanted;
    // A unique name of a tool does not depend on the order of the list.
    let mut taken: HashSet<String> = own.keys().cloned().collect();
    let name = |(server, tool): (&str, &str)| {
        let plain = model_name(tool);
        if own.contains_key(&plain) {
            plain
        } else {
            first_free(&model_name(&format!("{server}_{tool}")), &mut taken)
        }
    };
    tools.map(name).collect()
}

fn is_reserved(name: &str) -> bool {
    RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(name))
}

/// The name itself, or with the first number behind it that makes it free.
fn first_free(name: &str, taken: &mut HashSet<String>) -> String {
    let mut candidate = name.to_owned();
    let mut number = 2_usize;
    while is_reserved(&candidate) || !taken.insert(candidate.clone()) {
        let suffix = format!("_{number}");
        let prefix: String = name.chars().take(NAME_CHARS - suffix.len()).collect();
        candidate = prefix + &suffix;
        number += 1;
    }
    candidate
}

fn model_name(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    name.chars().map(allowed).take(NAME_CHARS).collect()
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
mod tests;
