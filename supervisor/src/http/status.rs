//! `/ready`, `/tools`, `/workflows`, `/internal/status`: the status of the agents.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use caipe_crds::internal_status::Report;
use caipe_crds::resource::agent_state::AgentPhase;
use caipe_engine::AgentName;
use caipe_skills::SourceState;
use caipe_store::Store;
use serde_json::{Map, Value, json};

use super::listen;
use crate::agent::SelfService;
use crate::agents::AgentRegistry;
use crate::metrics::metrics;
use crate::run::{RunError, Runs};

/// How long the store may take to respond to a health check.
const STORE_DEADLINE: Duration = Duration::from_millis(800);

/// The state of these routes.
#[derive(Clone)]
pub(super) struct About {
    pub(super) registry: Arc<AgentRegistry>,
    pub(super) store: Arc<dyn Store>,
    pub(super) facts: Arc<dyn Store>,
    pub(super) runs: Arc<Runs>,
    /// Whether the process serves a single agent.
    pub(super) alone: bool,
}

/// Why the store cannot be used now.
pub(super) async fn store_fault(store: &dyn Store) -> Option<String> {
    match tokio::time::timeout(STORE_DEADLINE, store.healthy()).await {
        Ok(outcome) => outcome.err().map(|error| error.to_string()),
        Err(_) => Some(format!("the {} store does not answer", store.backend())),
    }
}

/// What the store does not guarantee. One that does not answer has no restrictions but a fault.
pub(super) async fn store_restrictions(store: &dyn Store) -> Vec<String> {
    tokio::time::timeout(STORE_DEADLINE, store.restrictions()).await.unwrap_or_default()
}

/// 200 if a request can be answered, else 503 with every reason. An unhealthy agent is named but is no reason, because the
/// others work.
pub(super) async fn ready(State(about): State<About>) -> Response {
    let status = about.registry.status();
    let mut reasons = status.reasons;
    reasons.extend(store_fault(&*about.store).await);
    let unwell = status.agents.into_iter().filter(|agent| agent.phase != AgentPhase::Ready);
    let agents: Map<String, Value> = unwell.map(|agent| (agent.name, json!(agent.phase))).collect();
    let code = if reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, Json(json!({"ready": reasons.is_empty(), "reasons": reasons, "agents": agents}))).into_response()
}

/// The tools of each agent, and the reason for each missing tool.
pub(super) async fn tools(State(about): State<About>) -> Json<Value> {
    let (mut tools, mut faults) = (Map::new(), Map::new());
    for agent in about.registry.status().agents {
        if !agent.faults.is_empty() {
            faults.insert(agent.name.clone(), agent.faults.into());
        }
        tools.insert(agent.name, agent.tools.into());
    }
    let supervisor = about.registry.supervisor();
    let view = supervisor.tools.servers.view();
    if !about.alone && !view.servers.is_empty() {
        let own = view.tools.iter().map(|tool| tool.spec.name.clone()).collect::<Vec<_>>();
        tools.insert(supervisor.name.to_string(), own.into());
        let own = supervisor.faults();
        if !own.is_empty() {
            faults.insert(supervisor.name.to_string(), own.into());
        }
    }
    Json(json!({ "tools": tools, "faults": faults }))
}

/// The self-service workflows that the supervisor can start, without the prompts of their tasks, and the reason for each one that
/// is left out.
pub(super) async fn workflows(State(about): State<About>) -> Json<Value> {
    let supervisor = about.registry.supervisor();
    Json(supervisor.self_service().map_or_else(|| SelfService::default().listing(), SelfService::listing))
}

/// The current specification, and the health and placement of each agent. The work of a single agent is its own runs, because
/// nothing in this process delegates to it. A question that waits for a person counts as work: the answer goes to this
/// replica.
pub(super) async fn internal(State(about): State<About>) -> Json<Report> {
    let mut report = about.registry.report();
    report.warnings = warnings(&about).await;
    report.limits = metrics().limits_by_agent();
    if about.alone {
        let questions = counted(about.runs.pending_interactions(), 1).await;
        let active = u64::try_from(about.runs.active()).unwrap_or(u64::MAX).saturating_add(questions);
        report.agents.iter_mut().for_each(|agent| agent.active_tasks = active);
    } else {
        let questions =
            counted(async { about.runs.pending_interactions_by_agent().await.map(Some) }, None).await;
        for agent in &mut report.agents {
            let name = AgentName::new(&agent.name);
            let asked = questions.as_ref().map_or(1, |counts| counts.get(&name).copied().unwrap_or(0));
            agent.active_tasks = agent.active_tasks.saturating_add(asked);
        }
    }
    Json(report)
}

/// The restrictions of this process. An agent that is not ready has its own message.
async fn warnings(about: &About) -> Vec<String> {
    let settings = about.registry.settings();
    let mut warnings: Vec<String> = settings.warnings.iter().map(ToString::to_string).collect();
    if about.store.backend() == "memory" {
        warnings.push("conversations are in memory and are lost when the process ends".to_owned());
    }
    warnings.extend(store_restrictions(&*about.store).await);
    if !Arc::ptr_eq(&about.facts, &about.store) {
        warnings.extend(store_fault(&*about.facts).await);
        warnings.extend(store_restrictions(&*about.facts).await);
    }
    warnings.extend(listen::few_connections());
    warnings.extend(skill_warnings(&about.registry.skills().states()));
    let supervisor = about.registry.supervisor();
    if !about.alone {
        warnings.extend(supervisor.faults());
    }
    let left_out = supervisor.self_service().map(|it| it.faults.as_slice()).unwrap_or_default();
    warnings.extend(left_out.iter().map(|fault| format!("a self-service workflow is left out: {fault}")));
    let usable = about.registry.status().agents.into_iter().filter(|agent| agent.phase == AgentPhase::Ready);
    for agent in usable {
        warnings.extend(agent.faults.iter().map(|fault| format!("agent {}: {fault}", agent.name)));
    }
    warnings
}

/// The sources of skills that failed, and the skills that are left out.
fn skill_warnings(states: &[SourceState]) -> Vec<String> {
    let of_source = |state: &SourceState| {
        let failed = state.error.as_ref().map(|error| {
            let (name, skills) = (&state.name, state.skills);
            format!(
                "the source of skills {name} failed and has the {skills} skills of its last read: {error}"
            )
        });
        let first = state.faults.first().map(|fault| {
            let (name, count) = (&state.name, state.faults.len());
            format!("the source of skills {name} has {count} faults; the first one: {fault}")
        });
        failed.into_iter().chain(first)
    };
    states.iter().flat_map(of_source).collect()
}

/// The count, or `unknown` if the store cannot be read in time: a failure must not look like no open question.
async fn counted<T>(count: impl Future<Output = Result<T, RunError>>, unknown: T) -> T {
    let error = match tokio::time::timeout(STORE_DEADLINE, count).await {
        Ok(Ok(count)) => return count,
        Ok(Err(error)) => error.to_string(),
        Err(_) => "the store does not answer".to_owned(),
    };
    tracing::warn!(error, "open questions cannot be counted; some are taken to be there");
    unknown
}
