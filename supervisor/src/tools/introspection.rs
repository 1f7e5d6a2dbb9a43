//! The tool `describe_self`: what an agent is, what it can call, and what is left of its budget. No secrets and no addresses.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use caipe_engine::{ApprovalPattern, ToolOutput, ToolTraits, builtin_tools};
use caipe_model::ToolSpec;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::{Caller, RunStatus, ToolSource, ToolSources};
use crate::builtin::{DESCRIBE_SELF, OfferedTool, ToolClass};

/// The group of the tools that are not of a server.
const OWN_GROUP: &str = "built-in";

/// Picodollars of a dollar.
const DOLLAR: f64 = 1e12;

/// What an agent is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFacts {
    pub name: String,
    pub title: String,
    pub description: String,
    /// As `provider/model`.
    pub model: String,
    /// How long one of its runs may take, if it is limited.
    pub time_limit: Option<Duration>,
}

/// The tool that describes the agent to itself.
#[derive(Debug)]
pub struct Introspection {
    facts: AgentFacts,
    /// The other sources of its tools.
    sources: ToolSources,
    offered: Arc<[OfferedTool]>,
}

/// A tool in the description.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DescribedTool {
    name: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    needs_approval: bool,
}

impl Introspection {
    /// The tool for an agent with these other sources.
    pub fn new(facts: AgentFacts, sources: ToolSources) -> Self {
        Self { facts, sources, offered: [offered()].into() }
    }

    fn description(&self, status: &RunStatus) -> Value {
        let AgentFacts { name, title, description, model, time_limit } = &self.facts;
        let limits = &status.abilities.limits;
        let mut described = json!({
            "steps": limits.steps,
            "contextTokens": limits.context_tokens,
            "toolOutputChars": limits.tool_output_chars,
        });
        if let Some(limit) = time_limit {
            described["seconds"] = limit.as_secs().into();
        }
        json!({
            "name": name,
            "title": title,
            "description": description,
            "model": model,
            "programVersion": env!("CARGO_PKG_VERSION"),
            "tools": self.tools(status),
            "agents": status.abilities.agents,
            "limits": described,
            "budget": budget(status),
        })
    }

    /// The tools that the agent may call, by their server.
    fn tools(&self, status: &RunStatus) -> BTreeMap<String, Vec<DescribedTool>> {
        let abilities = &status.abilities;
        let patterns: Vec<_> = abilities.require_approval.iter().map(|it| ApprovalPattern::new(it)).collect();
        let described = |name: String| {
            let needs_approval = patterns.iter().any(|pattern| pattern.covers(&name));
            DescribedTool { name, needs_approval }
        };
        let mut groups = BTreeMap::<String, Vec<DescribedTool>>::new();
        let own = builtin_tools(abilities).into_iter().map(|tool| tool.name);
        let own = own.chain([DESCRIBE_SELF.to_owned()]);
        groups.insert(OWN_GROUP.to_owned(), own.map(described).collect());
        let listed = self.sources.list();
        for tool in listed.iter().filter(|tool| abilities.tools.contains(&tool.spec.name)) {
            let group = groups.entry(server_of(tool).unwrap_or(OWN_GROUP).to_owned()).or_default();
            group.push(described(tool.spec.name.clone()));
        }
        groups
    }
}

/// The server of a tool.
fn server_of(tool: &OfferedTool) -> Option<&str> {
    tool.names.iter().find_map(|name| name.split_once('/')).map(|(server, _)| server)
}

/// What the run may use, has used and has left. What is not limited has no entry.
fn budget(status: &RunStatus) -> Value {
    let (budget, spent) = (&status.abilities.budget, status.spent);
    let mut limited = Map::new();
    for (name, most, used) in [("calls", budget.calls, spent.calls), ("tokens", budget.tokens, spent.tokens)]
    {
        if let Some(most) = most {
            limited.insert(
                name.to_owned(),
                json!({ "most": most, "used": used, "left": most.saturating_sub(used) }),
            );
        }
    }
    if let Some(most) = budget.cost {
        #[expect(clippy::cast_precision_loss, reason = "a sum of money for a model")]
        let dollars = |amount: u64| amount as f64 / DOLLAR;
        let (left, used) = (dollars(most.saturating_sub(spent.cost)), dollars(spent.cost));
        limited.insert("dollars".to_owned(), json!({ "most": dollars(most), "used": used, "left": left }));
    }
    if !budget.tools.is_empty() {
        limited.insert("tools".to_owned(), json!({ "most": budget.tools, "used": status.tools }));
    }
    limited.into()
}

#[async_trait]
impl ToolSource for Introspection {
    fn list(&self) -> Arc<[OfferedTool]> {
        self.offered.clone()
    }

    fn reads_status(&self) -> bool {
        true
    }

    async fn call(&self, _: &str, _: Map<String, Value>, caller: Caller, _: CancellationToken) -> ToolOutput {
        let status = caller.status.unwrap_or_default();
        ToolOutput::ok(format!("{:#}", self.description(&status)))
    }
}

fn offered() -> OfferedTool {
    let spec = ToolSpec {
        name: DESCRIBE_SELF.to_owned(),
        description: "Read what you are: your name, your model, your tools and which of them need an approval, your limits, and what \
                      is left of your budget."
            .to_owned(),
        schema: json!({ "type": "object", "properties": {} }),
    };
    let traits = ToolTraits { is_repeatable: true, ..ToolTraits::default() };
    OfferedTool { traits, ..OfferedTool::new(spec, ToolClass::Read) }
}
