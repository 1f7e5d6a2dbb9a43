//! The agent that a document describes, checked as an agent of the resource is.

use serde_json::{Map, Value, json};

use crate::fault::Faults;
use crate::identity::{Document, REQUIRE_APPROVAL, at};
use crate::read;
use crate::resource::CaipeSupervisor;
use crate::resource::agent::Agent;

impl Document {
    /// The agent in the form of the resource. Settings that the front matter lacks are those of `declared`.
    ///
    /// # Errors
    /// The front matter or the name breaks a rule of the resource.
    pub fn agent(&self, name: &str, declared: Option<&Agent>) -> Result<Agent, Faults> {
        let known = declared.and_then(|agent| serde_json::to_value(agent).ok());
        let mut agent = known.and_then(|value| value.as_object().cloned()).unwrap_or_default();
        agent.retain(|key, _| !["external", "image"].contains(&key.as_str()));
        let demanded = agent.get(REQUIRE_APPROVAL).and_then(Value::as_array).cloned();
        agent.extend(self.settings.clone());
        // A document may require more approvals than the resource, but not fewer.
        if let (Some(demanded), Some(Value::Array(own))) = (demanded, agent.get_mut(REQUIRE_APPROVAL)) {
            let more: Vec<Value> = demanded.into_iter().filter(|pattern| !own.contains(pattern)).collect();
            own.extend(more);
        }
        agent.insert("name".to_owned(), name.into());
        let mut inline = json!({ "description": self.description, "systemPrompt": "in the document" });
        for (key, value) in [("title", &self.title), ("routingHint", &self.routing_hint)] {
            if let Some(text) = value {
                inline[key] = text.as_str().into();
            }
        }
        agent.insert("identity".to_owned(), json!({ "inline": inline }));
        let mut resource = checked(&agent)?;
        let agent = resource.spec.agents.as_mut().and_then(Vec::pop);
        let mut agent = agent.ok_or_else(|| at("", "failed to read the agent"))?;
        if let Some(inline) = agent.identity.as_mut().and_then(|identity| identity.inline.as_mut()) {
            inline.system_prompt.clone_from(&self.system_prompt);
        }
        Ok(agent)
    }
}

/// A resource with only this agent, checked against all rules.
fn checked(agent: &Map<String, Value>) -> Result<CaipeSupervisor, Faults> {
    const PLACE: &str = "spec.agents[0]";
    let resource = json!({
        "apiVersion": "caipe.io/v1alpha1", "kind": "CaipeSupervisor", "metadata": { "name": "agent" },
        "spec": { "agents": [agent] },
    });
    read::resource(resource).map_err(|faults| {
        let moved = faults.into_iter().map(|fault| {
            let path = fault
                .path
                .strip_prefix(PLACE)
                .map_or(fault.path.as_str(), |path| path.trim_start_matches('.'));
            at(path, fault.message)
        });
        Faults::new(moved.collect())
    })
}
