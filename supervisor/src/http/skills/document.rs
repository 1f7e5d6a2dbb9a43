//! `/openapi.json`.

use std::sync::LazyLock;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

use super::{catalogue, hub, keys};

/// The document of this API.
#[derive(OpenApi)]
#[openapi(
    info(title = "CAIPE skills", description = "The catalogue of skills: instructions that agents read when a task needs them."),
    paths(
        catalogue::list, catalogue::show, catalogue::add, catalogue::remove, catalogue::refresh, catalogue::status,
        keys::create, keys::list, keys::revoke, hub::crawl, hub::scan_content,
    ),
    security((), ("bearer" = []), ("catalogKey" = [])),
    modifiers(&Credentials),
)]
struct SkillsDocument;

/// The credentials of the API.
struct Credentials;

impl Modify for Credentials {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
        let key = ApiKey::Header(ApiKeyValue::new("X-Caipe-Catalog-Key"));
        components.add_security_scheme("catalogKey", SecurityScheme::ApiKey(key));
    }
}

/// The document as JSON.
pub(super) fn text() -> &'static str {
    static TEXT: LazyLock<String> =
        LazyLock::new(|| serde_json::to_string(&SkillsDocument::openapi()).unwrap_or_default());
    &TEXT
}

/// Returns the document.
pub(super) async fn json() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text()).into_response()
}
