//! `/metrics`, on a listener of its own: it needs no authentication, because it tells numbers only.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use caipe_a2a::server::Pushes;
use caipe_skills::{Counts, SkillService};
use caipe_store::Store;
use caipe_telemetry::metrics::CONTENT_TYPE;
use futures::StreamExt;

use super::listen::Limits;
use super::status::{store_fault, store_restrictions};
use crate::metrics::{Observed, metrics};
use crate::run::Runs;

/// The limits of the listener; a scraper needs one connection.
pub(crate) const METRICS_LIMITS: Limits = Limits {
    connections: 16,
    wait: Duration::from_secs(1),
    head_time: Duration::from_secs(75),
    head_bytes: 16 << 10,
    stall_time: Duration::from_secs(30),
};

/// The route of the metrics.
pub(crate) fn metrics_router(
    runs: Arc<Runs>,
    pushes: Option<Arc<Pushes>>,
    store: Arc<dyn Store>,
    skills: Arc<SkillService>,
) -> Router {
    let scrape = async move || {
        let (fault, restrictions) = tokio::join!(store_fault(&*store), store_restrictions(&*store));
        let Counts { skills, failed_sources: failed_skill_sources } = skills.counts();
        answer(Observed {
            active_runs: runs.active(),
            queued_pushes: pushes.as_ref().map_or(0, |pushes| pushes.queued()),
            log_memory: runs.log_memory(),
            is_store_available: fault.is_none(),
            store_restrictions: restrictions.len(),
            skills,
            failed_skill_sources,
        })
    };
    Router::new().route("/metrics", get(scrape))
}

fn answer(observed: Observed) -> Response {
    match metrics().encode(observed) {
        Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Counts a response as an open stream until it ends, if it is a stream of events.
pub(super) async fn count_streams(response: Response) -> Response {
    let media_type = response.headers().get(header::CONTENT_TYPE);
    if !media_type.is_some_and(|media_type| media_type.as_bytes().starts_with(b"text/event-stream")) {
        return response;
    }
    let open = metrics().open_stream();
    response.map(|body| {
        Body::from_stream(body.into_data_stream().inspect(move |_| {
            let _held = &open;
        }))
    })
}
