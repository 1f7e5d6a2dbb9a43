//! `/skill-hubs/crawl`, `/skills/scan-content`: what people need before they add a source or a skill.

use axum::Json;
use axum::extract::State;
use caipe_skills::{Repository, check_content};

use super::SkillsApi;
use super::body::JsonOf;
use super::error::{ApiError, HubError};
use super::model::{
    CrawlRequest, CrawlView, CrawledSkill, ErrorCode, ErrorText, InvalidRequest, ScanRequest, ScanView,
};
use crate::skills::github;

/// Most characters of the name of a skill that is checked.
const NAME_CHARS: usize = 256;

/// Shows the skills of the default branch of a repository.
#[utoipa::path(post, path = "/skill-hubs/crawl", tag = "hubs", request_body = CrawlRequest, responses(
    (status = 200, description = "The skills", body = CrawlView),
    (status = 400, description = "The type, the location or the reference of the token is wrong", body = ErrorCode),
    (status = 413, description = "The request is too large", body = ErrorText),
    (status = 422, description = "The request is wrong", body = InvalidRequest),
    (status = 429, description = "Other repositories are being read", body = ErrorCode),
    (status = 502, description = "The repository cannot be read", body = ErrorCode),
))]
pub(super) async fn crawl(
    State(api): State<SkillsApi>,
    JsonOf(request): JsonOf<CrawlRequest>,
) -> Result<Json<CrawlView>, ApiError> {
    let CrawlRequest { kind, location, credentials_ref } = request;
    if kind != "github" {
        return Err(ApiError::Hub(HubError::UnsupportedType, "the only type is `github`".to_owned()));
    }
    let wrong = |error: caipe_skills::CrawlError| ApiError::Hub(HubError::InvalidLocation, error.to_string());
    let repository = Repository::parse(&location).map_err(wrong)?;
    let variable =
        credentials_ref.filter(|name| !name.is_empty()).unwrap_or_else(|| "GITHUB_TOKEN".to_owned());
    if !is_hub_token(&variable) {
        let message = "name GITHUB_TOKEN, or a variable that begins with SKILL_HUB_".to_owned();
        return Err(ApiError::Hub(HubError::InvalidCredentialsRef, message));
    }
    let busy = || ApiError::Hub(HubError::Busy, "other repositories are being read: try again".to_owned());
    let _permit = api.previews.try_acquire().map_err(|_| busy())?;
    let failed = |error: caipe_skills::CrawlError| ApiError::Hub(HubError::CrawlFailed, error.to_string());
    let crawl = github(&api.env, &variable).map_err(failed)?.preview(&repository).await.map_err(failed)?;
    let skills = crawl.skills.into_iter().map(|skill| CrawledSkill {
        path: skill.path,
        name: skill.name,
        description: skill.description,
        ancillary_file_count: skill.files,
    });
    let faults: Vec<String> = crawl.faults.iter().map(ToString::to_string).collect();
    let error = (!faults.is_empty()).then(|| faults.join("; "));
    Ok(Json(CrawlView { paths: crawl.paths, skills_preview: skills.collect(), error }))
}

/// Whether a variable may be sent to GitHub. A caller must not choose any secret of the server.
fn is_hub_token(variable: &str) -> bool {
    variable == "GITHUB_TOKEN" || variable.starts_with("SKILL_HUB_")
}

/// Checks the content of a skill for hidden text and for typical prompt injection.
#[utoipa::path(post, path = "/skills/scan-content", tag = "skills", request_body = ScanRequest, responses(
    (status = 200, description = "The result", body = ScanView),
    (status = 413, description = "The content is too large", body = ErrorText),
    (status = 422, description = "The request is wrong", body = InvalidRequest),
))]
pub(super) async fn scan_content(
    State(api): State<SkillsApi>,
    JsonOf(request): JsonOf<ScanRequest>,
) -> Result<Json<ScanView>, ApiError> {
    let count = request.name.chars().count();
    if count == 0 || count > NAME_CHARS {
        return Err(ApiError::invalid(&["body", "name"], format!("must have 1 to {NAME_CHARS} characters")));
    }
    if request.content.is_empty() {
        return Err(ApiError::invalid(&["body", "content"], "is empty"));
    }
    let findings = check_content(&request.content);
    let blocked = api.service.gate().refuses(&findings);
    Ok(Json(ScanView::new(&findings, blocked)))
}
