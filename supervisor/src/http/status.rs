//! `/ready`, `/tools`, `/internal/status`: how everybody is.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use caipe_crds::report::Report;
use caipe_crds::resource::status::AgentPhase;
use caipe_store::Store;
use serde_json::{Map, Value, json};

use crate::agents::Roster;
use crate::run::Runs;

/// How long the store may take to say that it is well; a kubelet asks again soon.
const STORE_DEADLINE: Duration = Duration::from_millis(800);

/// What these routes tell of.
#[derive(Clone)]
pub(super) struct About {
    pub(super) roster: Arc<Roster>,
    pub(super) store: Arc<dyn Store>,
    /// The runs of an agent that is served alone.
    pub(super) alone: Option<Arc<Runs>>,
}

/// 200 when a question can be answered, else 503 with every reason. An agent that is not well is named, and is no
/// reason: the others answer.
pub(super) async fn ready(State(about): State<About>) -> Response {
    let status = about.roster.status();
    let mut reasons = status.reasons;
    match tokio::time::timeout(STORE_DEADLINE, about.store.healthy()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => reasons.push(error.to_string()),
        Err(_) => reasons.push(format!("the {} store does not answer", about.store.backend())),
    }
    let unwell = status.agents.into_iter().filter(|agent| agent.phase != AgentPhase::Ready);
    let agents: Map<String, Value> = unwell.map(|agent| (agent.name, json!(agent.phase))).collect();
    let code = if reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, Json(json!({"ready": reasons.is_empty(), "reasons": reasons, "agents": agents}))).into_response()
}

/// The tools by agent (upstream contract 1.1), and why those are missing that are.
pub(super) async fn tools(State(about): State<About>) -> Json<Value> {
    let (mut tools, mut faults) = (Map::new(), Map::new());
    for agent in about.roster.status().agents {
        if !agent.faults.is_empty() {
            faults.insert(agent.name.clone(), agent.faults.into());
        }
        tools.insert(agent.name, agent.tools.into());
    }
    Json(json!({ "tools": tools, "faults": faults }))
}

/// Which specification runs, and how far; how each agent is, and where. Nobody in this process delegates to an agent
/// that is served alone: what it works on are its own runs.
pub(super) async fn internal(State(about): State<About>) -> Json<Report> {
    let mut report = about.roster.report();
    if let Some(runs) = about.alone {
        let active = u64::try_from(runs.active()).unwrap_or(u64::MAX);
        report.agents.iter_mut().for_each(|agent| agent.active_tasks = active);
    }
    Json(report)
}
