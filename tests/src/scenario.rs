//! Resources and scripts for the tests, put together from parts.

#![allow(
    clippy::needless_pass_by_value,
    reason = "`json!` borrows what it is given; tests read better without `&`"
)]

use std::path::Path;

use anyhow::Result;
use serde_json::{Map, Value, json};

use crate::supervisor::Setup;

/// A `CaipeSupervisor` on the scripted model, with the turns of its script.
#[derive(Debug, Clone, Default)]
pub struct Scenario {
    agents: Vec<Value>,
    turns: Vec<Value>,
    spec: Map<String, Value>,
}

impl Scenario {
    /// One without agents and turns.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an agent with one tool server, a program that is run. Its system prompt is "You are the NAME agent.",
    /// by which the turns of the script know it.
    #[must_use]
    pub fn agent(self, name: &str, program: &Path, arguments: &[&str]) -> Self {
        let server = json!({"name": "tools", "stdio": {"command": program, "args": arguments}});
        self.agent_with(name, json!([server]))
    }

    /// Adds an agent with these tool servers. Its tools that write need no approval unless a test requires it.
    #[must_use]
    pub fn agent_with(mut self, name: &str, servers: Value) -> Self {
        let prompt = format!("You are the {name} agent.");
        let identity =
            json!({"inline": {"description": format!("Knows all about {name}."), "systemPrompt": prompt}});
        self.agents.push(json!({"name": name, "identity": identity, "mode": "Full", "mcp": servers}));
        self
    }

    /// Adds an agent that hands each task with this prompt to another one, and answers with its answer.
    #[must_use]
    pub fn delegating(self, name: &str, to: &str, prompt: &str) -> Self {
        let task = json!({"name": "task", "arguments": {"subagent_type": to, "description": prompt}});
        let is_agent = format!("You are the {name} agent.");
        let mut scenario = self
            .agent_with(name, json!([]))
            .turn(json!({"system": is_agent, "turn": 0}), json!({"calls": [task]}))
            .turn(json!({"system": is_agent}), json!({"text": "{{ last_result }}"}));
        scenario.change_agent(name, "delegates", json!([to]));
        scenario
    }

    /// Adds an agent of another program at this address.
    #[must_use]
    pub fn foreign(mut self, name: &str, url: &str) -> Self {
        let description = format!("Knows all about {name}.");
        self.agents.push(json!({"name": name, "external": {"url": url, "description": description}}));
        self
    }

    /// Sets a member of an agent.
    pub fn change_agent(&mut self, name: &str, key: &str, value: Value) {
        for agent in self.agents.iter_mut().filter(|agent| agent["name"] == name) {
            agent[key] = value.clone();
        }
    }

    /// Sets a member of the resource's `spec`.
    #[must_use]
    pub fn set(mut self, key: &str, value: Value) -> Self {
        self.spec.insert(key.into(), value);
        self
    }

    /// Adds a turn of the script; the first that matches answers.
    #[must_use]
    pub fn turn(mut self, when: Value, reply: Value) -> Self {
        self.turns.push(json!({"when": when, "reply": reply}));
        self
    }

    /// Adds a turn of the script before all others.
    #[must_use]
    pub fn first(mut self, when: Value, reply: Value) -> Self {
        self.turns.insert(0, json!({"when": when, "reply": reply}));
        self
    }

    /// The agent's two turns: it calls one tool, then tells the first line of what that returned.
    #[must_use]
    pub fn agent_calls(self, name: &str, tool: &str, arguments: Value) -> Self {
        let answer = json!({"text": format!("{name} says: {{{{ last_result | first_line }}}}")});
        self.agent_calls_then(name, tool, arguments, answer)
    }

    /// The agent's two turns: it calls one tool, then replies so.
    #[must_use]
    pub fn agent_calls_then(self, name: &str, tool: &str, arguments: Value, answer: Value) -> Self {
        let is_agent = format!("You are the {name} agent.");
        let call = json!({"calls": [{"name": tool, "arguments": arguments}]});
        self.turn(json!({"system": is_agent, "turn": 0}), call).turn(json!({"system": is_agent}), answer)
    }

    /// The supervisor's turns for messages with this phrase: it makes a plan with one step for each agent, asks all
    /// of them at once, and answers with what each said, a line each. To be added after the agents' own turns.
    #[must_use]
    pub fn asks(self, phrase: &str, agents: &[&str]) -> Self {
        let lines: Vec<String> =
            (1..=agents.len()).map(|place| format!("{{{{ results[{place}].content }}}}")).collect();
        self.plans(phrase, agents).answers(phrase, &lines.join("\n"))
    }

    /// The same without the answer.
    #[must_use]
    pub fn plans(self, phrase: &str, agents: &[&str]) -> Self {
        let todos: Vec<Value> = agents.iter().map(|agent| todo(agent)).collect();
        let tasks: Vec<Value> = agents.iter().map(|agent| task(agent)).collect();
        let plan = json!({"text": "I'll ask them.", "calls": [{"name": "write_todos", "arguments": {"todos": todos}}]});
        self.turn(json!({"user": phrase, "turn": 0}), plan)
            .turn(json!({"user": phrase, "turn": 1}), json!({"calls": tasks}))
    }

    /// The supervisor answers messages with this phrase at once.
    #[must_use]
    pub fn answers(self, phrase: &str, text: &str) -> Self {
        self.turn(json!({"user": phrase}), answer(text))
    }

    /// The files of this scenario, in a new directory.
    pub fn setup(&self) -> Result<Setup> {
        // JSON is YAML.
        Setup::of(&self.resource("test", json!({"path": "script.yaml"})).to_string(), &self.script())
    }

    /// The resource, whose scripted model's turns are there.
    pub fn resource(&self, name: &str, script: Value) -> Value {
        let mut spec = self.spec.clone();
        spec.entry("model").or_insert_with(|| json!({"provider": "scripted", "script": script}));
        spec.entry("agents").or_insert_with(|| self.agents.clone().into());
        json!({"apiVersion": "caipe.io/v1alpha1", "kind": "CaipeSupervisor", "metadata": {"name": name}, "spec": spec})
    }

    /// The script of the model.
    pub fn script(&self) -> String {
        json!({"turns": self.turns}).to_string()
    }
}

/// A reply that is the final answer.
pub fn answer(text: &str) -> Value {
    json!({"calls": [{"name": "PlatformEngineerResponse", "arguments": {"is_task_complete": true, "content": text}}]})
}

fn todo(agent: &str) -> Value {
    let mut name: Vec<char> = agent.chars().collect();
    name.iter_mut().take(1).for_each(|first| *first = first.to_ascii_uppercase());
    json!({"content": format!("[{}] {{{{ user }}}}", name.into_iter().collect::<String>()), "status": "in_progress"})
}

fn task(agent: &str) -> Value {
    json!({"name": "task", "arguments": {"subagent_type": agent, "description": format!("{agent}: {{{{ user }}}}")}})
}
