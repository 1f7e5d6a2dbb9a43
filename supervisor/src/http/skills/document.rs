//! `/openapi.json`.

use std::sync::LazyLock;

use axum::http::header;
use axum::response::IntoResponse;
use utoipa::openapi::Response;
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

/// The responses to a request without a sufficient credential, unless the operation describes others.
const REFUSALS: [(&str, &str); 3] = [
    ("401", "The credential is missing or wrong"),
    ("403", "The credential does not permit the request; a catalogue key reads skills only"),
    ("503", "The server cannot verify tokens now"),
];

/// The credentials of the API.
struct Credentials;

impl Modify for Credentials {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
        let key = ApiKey::Header(ApiKeyValue::new("X-Caipe-Catalog-Key"));
        components.add_security_scheme("catalogKey", SecurityScheme::ApiKey(key));
        for path in document.paths.paths.values_mut() {
            let operations = [&mut path.get, &mut path.post, &mut path.delete];
            for operation in operations.into_iter().flatten() {
                for (status, description) in REFUSALS {
                    let refusal = || Response::new(description).into();
                    operation.responses.responses.entry(status.to_owned()).or_insert_with(refusal);
                }
            }
        }
    }
}

/// The document as JSON.
pub(super) fn text() -> &'static str {
    static TEXT: LazyLock<String> =
        LazyLock::new(|| serde_json::to_string(&SkillsDocument::openapi()).unwrap_or_default());
    &TEXT
}

/// Returns the document.
pub(super) async fn json() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], text())
}
