//! `/skills`, `/skills/{id}`, `/skills/refresh`, `/internal/supervisor/skills-status`.

use std::hash::{DefaultHasher, Hash, Hasher as _};

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use caipe_skills::{Filter, NewSkill, Reader, Skill, SkillService, Visibility};
use serde::Serialize;
use tokio::task::spawn_blocking;

use super::SkillsApi;
use super::access::Caller;
use super::body::{JsonOf, PathOf, QueryOf};
use super::error::ApiError;
use super::model::{
    AddRequest, ErrorText, FileView, InvalidRequest, ListMeta, ListQuery, RefreshQuery, RefreshView, Removed,
    SkillDetail, SkillList, SkillView, StatusView,
};

/// Most skills of a page.
const MOST_OF_PAGE: i64 = 100;

/// Lists the skills that the caller may read.
#[utoipa::path(get, path = "/skills", tag = "skills", params(ListQuery), responses(
    (status = 200, description = "The skills", body = SkillList<'static>),
    (status = 304, description = "They have the ETag of the header `If-None-Match`"),
    (status = 422, description = "A parameter is wrong", body = InvalidRequest),
))]
pub(super) async fn list(
    State(api): State<SkillsApi>,
    caller: Caller,
    headers: HeaderMap,
    QueryOf(query): QueryOf<ListQuery>,
) -> Result<Response, ApiError> {
    // Not on a thread that serves streams: thousands of skills take some milliseconds.
    let work = spawn_blocking(move || listed(&api.service, &caller.reader, &headers, &query));
    work.await.map_err(|_| ApiError::Stopped)
}

fn listed(service: &SkillService, reader: &Reader, headers: &HeaderMap, query: &ListQuery) -> Response {
    let filter = Filter {
        text: query.q.clone().filter(|text| !text.is_empty()),
        source: query.source.map(Into::into),
        tags: query.tags.as_deref().map(tags).unwrap_or_default(),
        visibility: query.visibility.map(Into::into),
    };
    let page_size = usize::try_from(query.page_size.clamp(1, MOST_OF_PAGE)).unwrap_or(1);
    let (offset, limit) = match query.page {
        0 => (0, usize::MAX),
        page => ((page as usize - 1).saturating_mul(page_size), page_size),
    };
    let page = service.catalog().list(reader, &filter, offset, limit);
    let is_paged = query.page > 0;
    let has_more = offset.saturating_add(page.skills.len()) < page.total;
    let meta = ListMeta {
        total: page.total,
        page: is_paged.then_some(query.page),
        page_size: is_paged.then_some(page_size),
        has_more: is_paged.then_some(has_more),
        message: (filter.text.is_some() && page.total == 0).then_some("no_matches"),
        ..sources(service)
    };
    let skills = page.skills.iter().map(|skill| SkillView::new(skill, query.include_content)).collect();
    let list = SkillList { skills, meta };
    tagged(headers, (page.digest, query.include_content, &list.meta), &list)
}

fn tags(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|tag| !tag.is_empty()).map(str::to_owned).collect()
}

fn sources(service: &SkillService) -> ListMeta {
    let states = service.states();
    let mut sources_loaded: Vec<&'static str> =
        states.iter().filter(|state| state.skills > 0).map(|state| state.kind.as_str()).collect();
    sources_loaded.sort_unstable();
    sources_loaded.dedup();
    let failed = states.into_iter().filter(|state| state.error.is_some()).map(|state| state.name);
    ListMeta { sources_loaded, unavailable_sources: failed.collect(), ..ListMeta::default() }
}

/// A response whose `ETag` changes with the version; 304 without content if the client has it already.
fn tagged(headers: &HeaderMap, version: impl Hash, content: &impl Serialize) -> Response {
    let mut digest = DefaultHasher::new();
    (env!("CARGO_PKG_VERSION"), version).hash(&mut digest);
    let etag = format!("\"{:016x}\"", digest.finish());
    let given = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_same = given.split(',').any(|it| it.trim().trim_start_matches("W/") == etag || it.trim() == "*");
    if is_same {
        return (StatusCode::NOT_MODIFIED, [(header::ETAG, etag)]).into_response();
    }
    // Into a vector: `Json` writes to a buffer that takes four times as long.
    let json = match serde_json::to_vec(content) {
        Ok(json) => json,
        Err(error) => {
            tracing::error!(%error, "failed to encode skills");
            return ApiError::Stopped.into_response();
        }
    };
    let (cache, media_type) = ("private, no-cache".to_owned(), "application/json".to_owned());
    ([(header::ETAG, etag), (header::CACHE_CONTROL, cache), (header::CONTENT_TYPE, media_type)], json)
        .into_response()
}

/// Returns a skill with its `SKILL.md` and its files.
#[utoipa::path(get, path = "/skills/{id}", tag = "skills", params(("id" = String, Path, description = "The id", example = "incident-triage")), responses(
    (status = 200, description = "The skill", body = SkillDetail<'static>),
    (status = 304, description = "It has the ETag of the header `If-None-Match`"),
    (status = 404, description = "There is no such skill, or the caller may not read it", body = ErrorText),
    (status = 422, description = "The id is no UTF-8 text", body = InvalidRequest),
))]
pub(super) async fn show(
    State(api): State<SkillsApi>,
    caller: Caller,
    headers: HeaderMap,
    PathOf(id): PathOf,
) -> Result<Response, ApiError> {
    let skill = api.service.catalog().skill(&caller.reader, &id).ok_or(ApiError::UnknownSkill)?;
    Ok(tagged(&headers, &skill, &detail(&skill)))
}

fn detail(skill: &Skill) -> SkillDetail<'_> {
    let files = skill.resources.iter().map(|file| FileView {
        path: &file.path,
        size: file.size,
        content: file.text.as_ref(),
    });
    SkillDetail { skill: SkillView::new(skill, true), files: files.collect() }
}

/// Adds a skill, or replaces the caller's skill of the same name.
///
/// A caller with a token adds personal skills, and skills of its teams. Agents use global skills only.
#[utoipa::path(post, path = "/skills", tag = "skills", request_body = AddRequest, responses(
    (status = 201, description = "The skill", body = SkillDetail<'static>),
    (status = 403, description = "The caller may not add a skill with this visibility", body = ErrorText),
    (status = 409, description = "Another skill has the name, or there are too many", body = ErrorText),
    (status = 413, description = "The skill is too large", body = ErrorText),
    (status = 422, description = "The skill is faulty", body = InvalidRequest),
    (status = 503, description = "The server has no directory for skills, or cannot verify tokens now"),
))]
pub(super) async fn add(
    State(api): State<SkillsApi>,
    caller: Caller,
    JsonOf(request): JsonOf<AddRequest>,
) -> Result<Response, ApiError> {
    let AddRequest { content, files, visibility, team_ids } = request;
    let default = if caller.owner.is_some() { Visibility::Personal } else { Visibility::Global };
    let visibility = visibility.map_or(default, Into::into);
    check_visibility(&caller, visibility, &team_ids)?;
    let new = NewSkill { content, files, visibility, team_ids, owner: caller.owner };
    let skill = api.service.add(new).await?;
    Ok((StatusCode::CREATED, Json(detail(&skill))).into_response())
}

fn check_visibility(caller: &Caller, visibility: Visibility, teams: &[String]) -> Result<(), ApiError> {
    let is_person = caller.owner.is_some();
    let of_other_team = || teams.iter().any(|team| !caller.reader.teams.contains(team));
    match visibility {
        Visibility::Global if is_person => Err(ApiError::Forbidden(
            "global skills come from the sources of the server, or with its shared key",
        )),
        Visibility::Personal if !is_person => {
            Err(ApiError::Forbidden("a personal skill needs the token of a person"))
        }
        Visibility::Team if teams.is_empty() => {
            Err(ApiError::invalid(&["body", "team_ids"], "name at least one team"))
        }
        Visibility::Team if is_person && of_other_team() => {
            Err(ApiError::Forbidden("the caller is in none of these teams"))
        }
        Visibility::Global | Visibility::Personal if !teams.is_empty() => {
            Err(ApiError::invalid(&["body", "team_ids"], "only a skill with the visibility `team` has teams"))
        }
        _ => Ok(()),
    }
}

/// Removes a skill that the caller added.
#[utoipa::path(delete, path = "/skills/{id}", tag = "skills", params(("id" = String, Path, description = "The id", example = "incident-triage")), responses(
    (status = 200, description = "It is removed", body = Removed),
    (status = 403, description = "The skill is not the caller's, or comes from a source", body = ErrorText),
    (status = 404, description = "There is no such skill, or the caller may not read it", body = ErrorText),
    (status = 422, description = "The id is no UTF-8 text", body = InvalidRequest),
    (status = 503, description = "The server has no directory for skills, or cannot verify tokens now"),
))]
pub(super) async fn remove(
    State(api): State<SkillsApi>,
    caller: Caller,
    PathOf(id): PathOf,
) -> Result<Json<Removed>, ApiError> {
    let skill = api.service.catalog().skill(&caller.reader, &id).ok_or(ApiError::UnknownSkill)?;
    let is_added = skill.origin.kind == caipe_skills::SourceKind::AgentSkills;
    if !is_added || (caller.owner.is_some() && caller.owner != skill.owner) {
        return Err(ApiError::Forbidden("only its owner removes an added skill"));
    }
    Ok(Json(Removed { removed: api.service.remove(&id).await? }))
}

/// Reads the sources again. Running tasks are not touched: agents use the new catalogue from their next turn on.
#[utoipa::path(post, path = "/skills/refresh", tag = "skills", params(RefreshQuery), responses(
    (status = 200, description = "The sources were read", body = RefreshView),
    (status = 422, description = "A parameter is wrong", body = InvalidRequest),
))]
pub(super) async fn refresh(
    State(api): State<SkillsApi>,
    QueryOf(query): QueryOf<RefreshQuery>,
) -> Result<Json<RefreshView>, ApiError> {
    let service = api.service.clone();
    // A client that leaves does not stop the refresh.
    let refreshed = tokio::spawn(async move { service.refresh(query.include_hubs).await });
    let refreshed = refreshed.await.map_err(|_| ApiError::Stopped)?;
    let message = match refreshed.failed {
        0 => "Skills catalog refreshed".to_owned(),
        failed => format!("Skills catalog refreshed; {failed} sources failed and keep their last skills"),
    };
    Ok(Json(RefreshView {
        status: "ok",
        message,
        supervisor_rebuilt: true,
        graph_generation: refreshed.generation,
        skills_loaded_count: refreshed.skills,
    }))
}

/// Shows whether agents use the newest catalogue. They read it at each turn, so they do once there is one.
#[utoipa::path(get, path = "/internal/supervisor/skills-status", tag = "skills", responses(
    (status = 200, description = "The state", body = StatusView),
))]
pub(super) async fn status(State(api): State<SkillsApi>) -> Json<StatusView> {
    let merged_at = api.service.merged_at();
    let catalog = api.service.catalog();
    let generation = merged_at.map(|_| catalog.generation);
    Json(StatusView {
        graph_generation: generation,
        skills_loaded_count: generation.map(|_| catalog.len()),
        skills_merged_at: merged_at,
        catalog_cache_generation: generation,
        last_built_catalog_generation: generation,
        sync_status: if generation.is_some() { "synced" } else { "unknown" },
        mas_registered: generation.is_some(),
    })
}
