//! Calls that a person approves with the first form of a workflow, before an agent makes them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::digest;
use crate::form::plain;
use crate::names::AgentName;

/// A call that a workflow names. Its arguments are templates: `{{ repo }}` is the value of the field `repo` of the first form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeclaredCall {
    /// The tool by the model's name, its server's name, or `server/tool`.
    pub tool: String,
    pub arguments: Map<String, Value>,
}

/// A call of an agent that a person has approved before it is made: once, and with exactly these arguments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovedCall {
    pub tool: String,
    pub arguments: Map<String, Value>,
    /// A digest of the agent, the tool and the arguments.
    pub digest: String,
}

impl DeclaredCall {
    /// The call of this agent with the values of the form. An argument that is the value of an empty field is left out.
    pub(crate) fn filled(&self, agent: &AgentName, values: &Map<String, Value>) -> ApprovedCall {
        let arguments = members(&self.arguments, values);
        let digest = digest_of(agent, &self.tool, &arguments);
        ApprovedCall { tool: self.tool.clone(), arguments, digest }
    }

    /// The names of the fields that the arguments contain.
    pub fn fields(&self) -> Vec<String> {
        let mut names = Vec::new();
        visit(&Value::Object(self.arguments.clone()), &mut |text| {
            names.extend(split(text).into_iter().filter_map(|(_, name)| name.map(str::to_owned)));
        });
        names
    }
}

impl ApprovedCall {
    /// Whether the digest is that of this call of this agent.
    pub fn is_of(&self, agent: &AgentName) -> bool {
        self.digest == digest_of(agent, &self.tool, &self.arguments)
    }
}

/// A line for people and for models.
pub(crate) fn line(tool: &str, arguments: &Map<String, Value>) -> String {
    format!("{tool} `{}`", Value::Object(arguments.clone()))
}

fn digest_of(agent: &AgentName, tool: &str, arguments: &Map<String, Value>) -> String {
    digest::identity(&json!([agent.as_str(), tool, arguments]), "").1
}

fn members(templates: &Map<String, Value>, values: &Map<String, Value>) -> Map<String, Value> {
    let member = |(name, template): (&String, &Value)| Some((name.clone(), filled(template, values)?));
    templates.iter().filter_map(member).collect()
}

/// A template with the values in place of the fields. A text that is one field has the type of its value.
fn filled(template: &Value, values: &Map<String, Value>) -> Option<Value> {
    Some(match template {
        Value::String(text) => match split(text).as_slice() {
            [("", Some(name))] => return values.get(*name).cloned(),
            parts => Value::String(parts.iter().fold(String::new(), |mut all, (before, name)| {
                all.push_str(before);
                all.push_str(&name.and_then(|name| values.get(name)).map(plain).unwrap_or_default());
                all
            })),
        },
        Value::Array(items) => items.iter().filter_map(|item| filled(item, values)).collect(),
        Value::Object(object) => Value::Object(members(object, values)),
        other => other.clone(),
    })
}

/// The pieces of a text, each with the field after it.
fn split(mut text: &str) -> Vec<(&str, Option<&str>)> {
    let mut parts = Vec::new();
    while let Some((before, rest)) = text.split_once("{{")
        && let Some((name, after)) = rest.split_once("}}")
    {
        parts.push((before, Some(name.trim())));
        text = after;
    }
    if !text.is_empty() {
        parts.push((text, None));
    }
    parts
}

fn visit(value: &Value, found: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => found(text),
        Value::Array(items) => items.iter().for_each(|item| visit(item, found)),
        Value::Object(object) => object.values().for_each(|member| visit(member, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        let Value::Object(map) = value else { panic!("{value}") };
        map
    }

    fn of(arguments: Value, values: Value) -> Value {
        let call = DeclaredCall { tool: "create".to_owned(), arguments: map(arguments) };
        Value::Object(call.filled(&AgentName::new("github"), &map(values)).arguments)
    }

    #[test]
    fn values_keep_their_types_and_are_never_read_as_templates() {
        let values =
            json!({ "name": "{{ team }}", "private": true, "team": "core", "size": 3, "tags": ["a", "b"] });
        for (template, expected) in [
            (json!({ "name": "{{ name }}" }), json!({ "name": "{{ team }}" })),
            (
                json!({ "private": "{{private}}", "size": "{{ size }}" }),
                json!({ "private": true, "size": 3 }),
            ),
            (json!({ "path": "/{{ team }}/{{ size }}.md" }), json!({ "path": "/core/3.md" })),
            (json!({ "deep": [{ "tags": "{{ tags }}" }] }), json!({ "deep": [{ "tags": ["a", "b"] }] })),
            (json!({ "none": "{{ absent }}", "n": 1 }), json!({ "n": 1 })),
            (json!({ "text": "a {{ absent }}b" }), json!({ "text": "a b" })),
            (json!({ "open": "{{ name", "closed": "}}" }), json!({ "open": "{{ name", "closed": "}}" })),
        ] {
            assert_eq!(of(template, values.clone()), expected);
        }
    }

    #[test]
    fn a_digest_is_of_the_agent_the_tool_and_the_arguments() {
        let github = AgentName::new("github");
        let call = |tool: &str, id: u32| {
            let call = DeclaredCall { tool: tool.to_owned(), arguments: map(json!({ "id": id })) };
            call.filled(&github, &Map::new())
        };
        let approved = call("delete", 1);
        assert!(approved.is_of(&github) && !approved.is_of(&AgentName::new("jira")));
        for other in [call("delete", 2), call("close", 1)] {
            let forged = ApprovedCall { digest: approved.digest.clone(), ..other };
            assert!(!forged.is_of(&github), "{forged:?}");
        }
    }

    #[test]
    fn the_fields_of_all_arguments_are_found() {
        let arguments = map(json!({ "a": "{{ x }}/{{y}}", "b": [{ "c": "{{ z }}" }], "d": 1 }));
        let call = DeclaredCall { tool: "create".to_owned(), arguments };
        assert_eq!(call.fields(), ["x", "y", "z"]);
    }
}
