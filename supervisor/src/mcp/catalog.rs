//! The state of all servers of an agent, and the tools that they offer together.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use caipe_crds::internal_status::CredentialReport;
use caipe_engine::ToolTraits;
use caipe_model::ToolSpec;
use rmcp::model::Tool;
use serde_json::{Map, Value};
use tokio::sync::watch;

use super::server_spec::ServerSpec;
use super::tool_class::{is_declared_to_read, tool_class};
use super::tool_list::{MalformedTool, ToolList};
use crate::builtin::{OfferedTool, ToolClass, is_builtin};

/// The longest name that every model provider accepts.
const NAME_CHARS: usize = 64;
const MAX_TOOLS_PER_SERVER: usize = 512;
/// The longest description for a model, in characters.
const DESCRIPTION_CHARS: usize = 8_000;
/// The longest name of a tool that is accepted, in bytes; the protocol advises 128 characters.
const TOOL_NAME_BYTES: usize = 512;
/// The largest schema that is accepted, in bytes of JSON.
const SCHEMA_BYTES: usize = 64 * 1024;
/// The limit of lines about ignored tools of one server.
const MAX_IGNORED_LINES: usize = 20;

/// A snapshot of the offered tools and of the servers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolsView {
    /// The tools, sorted by name. Names are unique, at most 64 characters, of letters, digits, `_` and `-`; a
    /// tool is prefixed with the name of its server only if another server offers one of the same name.
    pub tools: Arc<[OfferedTool]>,
    /// The servers, in the order they were declared.
    pub servers: Vec<ServerStatus>,
    /// Whether every server is ready or has failed at least once, so that the start is complete.
    pub settled: bool,
    routes: BTreeMap<String, Route>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStatus {
    pub name: String,
    /// The phase of its life.
    pub phase: ServerPhase,
    /// The number of its offered tools; while it is unavailable, those of its last list.
    pub tools: usize,
    /// The fault, for people, without secrets.
    pub message: Option<String>,
    /// The tools that are ignored because they are malformed or too large, a line each, without secrets.
    pub ignored_tools: Vec<String>,
    /// The last negotiated protocol version.
    pub protocol_version: Option<String>,
    /// The result of the last check of its credentials, if they are checked.
    pub credentials: Option<CredentialReport>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerPhase {
    /// It starts for the first time.
    Starting,
    Ready,
    /// It could not be started. The supervisor retries in the background if that may help.
    Failed,
    /// It ended or stopped responding, and is being restarted.
    Restarting,
}

/// A tool that a server offers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Offer {
    /// With its name at the server.
    pub(super) spec: ToolSpec,
    pub(super) class: ToolClass,
    /// Whether the catalogue declares that it only reads. Its name alone does not.
    pub(super) is_repeatable: bool,
}

/// The server and the name of a tool there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Route {
    /// The position of the server.
    pub(super) server: usize,
    pub(super) tool: String,
    /// The required arguments.
    required: Vec<String>,
}

#[derive(Debug, Clone)]
pub(super) struct ServerState {
    pub(super) status: ServerStatus,
    /// The offered tools.
    pub(super) offers: Vec<Offer>,
    /// Whether the server is ready or has failed at least once.
    pub(super) settled: bool,
}

impl Offer {
    /// The tool by its name for the model. People may know it by that one, by the one at its server, by these with the server's
    /// name, and by those that the model had or would have if another server offered the same tool or not.
    fn offered(&self, name: String, server: &str) -> OfferedTool {
        let (own, plain) = (self.spec.name.clone(), model_name(&self.spec.name));
        let names = vec![name.clone(), own.clone(), format!("{server}/{own}")];
        let others = [plain.clone(), model_name(&format!("{server}_{own}")), format!("{server}/{plain}")];
        let known_names = names.iter().cloned().chain(others).collect();
        let tool = OfferedTool::new(ToolSpec { name, ..self.spec.clone() }, self.class);
        let traits = ToolTraits { is_repeatable: self.is_repeatable, ..ToolTraits::default() };
        OfferedTool { traits, names, known_names, ..tool }
    }
}

impl ServerState {
    pub(super) fn starting(name: &str) -> Self {
        let status = ServerStatus {
            name: name.to_owned(),
            phase: ServerPhase::Starting,
            tools: 0,
            message: None,
            ignored_tools: Vec::new(),
            protocol_version: None,
            credentials: None,
        };
        Self { status, offers: Vec::new(), settled: false }
    }

    /// Records that the server is not available.
    pub(super) fn fail(&mut self, message: String) {
        self.status.phase = ServerPhase::Failed;
        self.status.message = Some(message);
        self.settled = true;
    }
}

/// The state of all servers of an agent, published as a [`ToolsView`].
#[derive(Debug)]
pub(super) struct ServerRegistry {
    states: Mutex<Vec<ServerState>>,
    view: watch::Sender<Arc<ToolsView>>,
}

impl ServerRegistry {
    pub(super) fn new(states: Vec<ServerState>) -> Self {
        let view = watch::Sender::new(Arc::new(ToolsView::of(&states)));
        Self { states: Mutex::new(states), view }
    }

    pub(super) fn view(&self) -> watch::Receiver<Arc<ToolsView>> {
        self.view.subscribe()
    }

    /// A tool of a server that only reads, by its name there, with the status of the server.
    pub(super) fn reading_tool(&self, server: usize, tool: &str) -> Option<(Route, ServerStatus)> {
        let states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let state = states.get(server)?;
        let is_it = |offer: &&Offer| offer.spec.name == tool && offer.class == ToolClass::Read;
        state.offers.iter().find(is_it).map(|offer| (Route::new(server, offer), state.status.clone()))
    }

    /// Changes the state of one server, and publishes the view if it differs.
    pub(super) fn update(&self, server: usize, change: impl FnOnce(&mut ServerState)) {
        // Published under the lock, so that views are published in order.
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(state) = states.get_mut(server) {
            change(state);
        }
        let view = ToolsView::of(&states);
        self.view.send_if_modified(|current| {
            let differs = **current != view;
            if differs {
                *current = Arc::new(view);
            }
            differs
        });
    }
}

impl ToolsView {
    pub(super) fn of(states: &[ServerState]) -> Self {
        let offers: Vec<(usize, &str, &Offer)> = states
            .iter()
            .enumerate()
            .flat_map(|(index, state)| {
                state.offers.iter().map(move |offer| (index, state.status.name.as_str(), offer))
            })
            .collect();
        let with_count =
            |state: &ServerState| ServerStatus { tools: state.offers.len(), ..state.status.clone() };
        let names = unique_names(offers.iter().map(|(_, server, offer)| (*server, offer.spec.name.as_str())));
        let mut view = Self {
            servers: states.iter().map(with_count).collect(),
            settled: states.iter().all(|state| state.settled),
            ..Self::default()
        };
        let mut tools = Vec::new();
        for (name, (index, server, offer)) in names.into_iter().zip(offers) {
            view.routes.insert(name.clone(), Route::new(index, offer));
            tools.push(offer.offered(name, server));
        }
        tools.sort_by(|a: &OfferedTool, b| a.spec.name.cmp(&b.spec.name));
        view.tools = tools.into();
        view
    }

    /// The names of the offered tools at their servers.
    pub(super) fn names_at_servers(&self) -> impl Iterator<Item = &str> {
        self.routes.values().map(|route| route.tool.as_str())
    }

    /// The name for the model of a tool of a server.
    pub fn model_name_of(&self, server: &str, tool: &str) -> Option<&str> {
        let is_it = |route: &Route| {
            route.tool == tool && self.servers.get(route.server).is_some_and(|found| found.name == server)
        };
        self.routes.iter().find(|(_, route)| is_it(route)).map(|(name, _)| name.as_str())
    }

    /// A view of ready servers, each with tools of these names.
    #[cfg(test)]
    pub(crate) fn with_servers(servers: &[(&str, &[&str])]) -> Self {
        use super::server_spec::Transport;
        let offer = |server: &str, name: &str| {
            let spec = ServerSpec::new(server, Transport::http("http://x"));
            let class = tool_class(&spec, name, None);
            let schema = Value::Object(Map::new());
            let spec = ToolSpec { name: name.to_owned(), description: String::new(), schema };
            Offer { spec, class, is_repeatable: false }
        };
        let state = |(name, tools): &(&str, &[&str])| {
            let mut state = ServerState::starting(name);
            (state.status.phase, state.settled) = (ServerPhase::Ready, true);
            state.offers = tools.iter().map(|tool| offer(name, tool)).collect();
            state
        };
        Self::of(&servers.iter().map(state).collect::<Vec<_>>())
    }

    pub(super) fn route(&self, tool: &str) -> Option<&Route> {
        self.routes.get(tool)
    }
}

impl Route {
    fn new(server: usize, offer: &Offer) -> Self {
        let required = offer.spec.schema.get("required").and_then(Value::as_array);
        let required =
            required.into_iter().flatten().filter_map(Value::as_str).map(ToOwned::to_owned).collect();
        Self { server, tool: offer.spec.name.clone(), required }
    }

    /// The required arguments that are missing. The server checks everything else.
    pub(super) fn missing(&self, arguments: &Map<String, Value>) -> Vec<&str> {
        self.required.iter().map(String::as_str).filter(|name| !arguments.contains_key(*name)).collect()
    }
}

/// The tools of a list that are offered (permitted by the declaration, of bounded size, each name once), and a line for each
/// permitted tool that is ignored.
pub(super) fn offers(spec: &ServerSpec, list: ToolList) -> (Vec<Offer>, Vec<String>) {
    let mut seen = HashSet::new();
    let fresh =
        |tool: &Tool| !tool.name.is_empty() && spec.offers(&tool.name) && seen.insert(tool.name.clone());
    let is_offered = |tool: &&MalformedTool| tool.name.as_ref().is_none_or(|name| spec.offers(name));
    let malformed = list.malformed.iter().filter(is_offered).map(ToString::to_string);
    let (mut offers, mut ignored_tools) = (Vec::new(), malformed.collect::<Vec<_>>());
    for tool in list.tools.into_iter().filter(fresh) {
        if offers.len() == MAX_TOOLS_PER_SERVER {
            ignored_tools.push(format!("the tools after the first {MAX_TOOLS_PER_SERVER} are ignored"));
            break;
        }
        match offer(spec, tool) {
            Ok(offer) => offers.push(offer),
            Err(reason) => ignored_tools.push(reason),
        }
    }
    if ignored_tools.len() > MAX_IGNORED_LINES {
        let more = ignored_tools.len() - MAX_IGNORED_LINES;
        ignored_tools.truncate(MAX_IGNORED_LINES);
        ignored_tools.push(format!("{more} more tools are ignored"));
    }
    (offers, ignored_tools)
}

fn offer(spec: &ServerSpec, tool: Tool) -> Result<Offer, String> {
    let class = tool_class(spec, &tool.name, tool.annotations.as_ref());
    let is_repeatable = class == ToolClass::Read && is_declared_to_read(spec, &tool.name);
    if tool.name.len() > TOOL_NAME_BYTES {
        let start: String = tool.name.chars().take(NAME_CHARS).collect();
        return Err(format!("tool {start:?}… is ignored: its name is longer than {TOOL_NAME_BYTES} bytes"));
    }
    let mut schema = tool.input_schema.as_ref().clone();
    // Some providers reject a schema without a type.
    schema.entry("type").or_insert_with(|| Value::from("object"));
    let schema = Value::Object(schema);
    if schema.to_string().len() > SCHEMA_BYTES {
        let limit = SCHEMA_BYTES / 1024;
        return Err(format!("tool {:?} is ignored: its schema is larger than {limit} KiB", tool.name));
    }
    let description = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
    let description = description.chars().take(DESCRIPTION_CHARS).collect();
    Ok(Offer { spec: ToolSpec { name: tool.name.into_owned(), description, schema }, class, is_repeatable })
}

/// A unique name for each tool that models accept, from pairs of server and tool.
fn unique_names<'a>(tools: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Vec<String> {
    let mut wanted: HashMap<String, usize> = HashMap::new();
    for (_, tool) in tools.clone() {
        *wanted.entry(model_name(tool)).or_default() += 1;
    }
    wanted.retain(|name, count| *count == 1 && !is_builtin(name));
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

/// The name, with a number appended if it is taken.
fn first_free(name: &str, taken: &mut HashSet<String>) -> String {
    let mut candidate = name.to_owned();
    let mut number = 2_usize;
    while is_builtin(&candidate) || !taken.insert(candidate.clone()) {
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
