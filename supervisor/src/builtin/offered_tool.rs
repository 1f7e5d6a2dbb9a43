//! A tool as its source offers it.

use std::sync::Arc;

use caipe_engine::ToolTraits;
use caipe_model::ToolSpec;

/// What a tool does, the harmless first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToolClass {
    /// It changes nothing.
    Read,
    /// It changes something. So does a tool that nothing is known of.
    Write,
    /// It deletes, merges, revokes or otherwise destroys.
    Destructive,
}

/// A tool that a source offers.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedTool {
    /// With its name for the model.
    pub spec: ToolSpec,
    /// What it does.
    pub class: ToolClass,
    /// What its source declares besides; the rules of the resource come on top.
    pub traits: ToolTraits,
    /// The names by which the resource covers exactly this tool: for the model, at its server, and the latter with the server's
    /// name. A built-in tool has none.
    pub names: Vec<String>,
    /// All names that people may know it by.
    pub known_names: Vec<String>,
    /// The estimated tokens of its description and schema.
    pub tokens: u64,
    /// Whether the client of a run answers its calls, so that runs of other clients do not have it.
    pub needs_client: bool,
}

impl OfferedTool {
    /// Whether it is a tool of an MCP server.
    pub fn is_of_server(&self) -> bool {
        !self.names.is_empty()
    }

    /// The same tools, answered by the client.
    pub fn by_client(tools: &[Self]) -> Arc<[Self]> {
        tools.iter().map(|tool| Self { needs_client: true, ..tool.clone() }).collect()
    }

    /// A tool that people know by its name for the model only.
    pub fn new(spec: ToolSpec, class: ToolClass) -> Self {
        let known_names = vec![spec.name.clone()];
        let bytes = spec.name.len() + spec.description.len() + spec.schema.to_string().len();
        let tokens = u64::try_from(bytes.div_ceil(TOKEN_BYTES)).unwrap_or(u64::MAX);
        Self {
            spec,
            class,
            traits: ToolTraits::default(),
            names: Vec::new(),
            known_names,
            tokens,
            needs_client: false,
        }
    }
}

/// The estimated bytes of a token.
const TOKEN_BYTES: usize = 4;

/// What several sources offer at one moment. Where two offer a tool of the same name, the last one counts.
#[derive(Debug, Clone, Default)]
pub struct OfferedTools(Vec<Arc<[OfferedTool]>>);

impl OfferedTools {
    /// The tools, source by source.
    pub fn iter(&self) -> impl Iterator<Item = &OfferedTool> + Clone {
        self.0.iter().enumerate().flat_map(move |(at, tools)| {
            let is_replaced = move |tool: &&OfferedTool| {
                self.0[at + 1..]
                    .iter()
                    .flat_map(|later| &**later)
                    .any(|later| later.spec.name == tool.spec.name)
            };
            tools.iter().filter(move |tool| !is_replaced(tool))
        })
    }

    /// Whether both are of the same moment.
    pub fn is_same(&self, other: &Self) -> bool {
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(|(a, b)| Arc::ptr_eq(a, b))
    }
}

impl FromIterator<Arc<[OfferedTool]>> for OfferedTools {
    fn from_iter<T: IntoIterator<Item = Arc<[OfferedTool]>>>(sources: T) -> Self {
        Self(sources.into_iter().collect())
    }
}
