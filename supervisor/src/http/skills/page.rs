//! `/docs`: the `OpenAPI` document as a page without scripts.

use std::fmt::Write as _;
use std::sync::LazyLock;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};

use super::document;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
    code{background:#8882;padding:.1em .3em}section{border-top:1px solid #8886;padding:.5rem 0}\
    table{border-collapse:collapse}td,th{border:1px solid #8886;padding:.2rem .6rem;text-align:left;vertical-align:top}\
    :root{color-scheme:light dark}";

/// Returns the page.
pub(super) async fn html() -> Response {
    static PAGE: LazyLock<String> =
        LazyLock::new(|| page(&serde_json::from_str(document::text()).unwrap_or_default()));
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; style-src 'unsafe-inline'"),
    ];
    (headers, PAGE.as_str()).into_response()
}

fn page(document: &Value) -> String {
    let info = &document["info"];
    let (title, about) = (escaped(text(&info["title"])), escaped(text(&info["description"])));
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{title}</title><style>{STYLE}</style><h1>{title}</h1><p>{about} The document for programs: \
         <a href=\"/openapi.json\">/openapi.json</a>.</p>"
    );
    for (path, operations) in entries(&document["paths"]) {
        for (method, operation) in entries(operations) {
            push_operation(&mut page, method, path, operation);
        }
    }
    page.push_str("</html>\n");
    page
}

fn push_operation(page: &mut String, method: &str, path: &str, operation: &Value) {
    let (method, path) = (escaped(&method.to_uppercase()), escaped(path));
    let _ = write!(page, "<section><h2><code>{method} {path}</code></h2>");
    for key in ["summary", "description"] {
        if let Some(words) = operation[key].as_str() {
            let _ = write!(page, "<p>{}</p>", escaped(words));
        }
    }
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let rows: Vec<(String, String)> = parameters
        .map(|it| {
            (format!("{} ({})", text(&it["name"]), text(&it["in"])), text(&it["description"]).to_owned())
        })
        .collect();
    push_table(page, "Parameter", &rows);
    if let Some(schema) = operation["requestBody"].pointer("/content/application~1json/schema") {
        let _ = write!(page, "<p>Body: <code>{}</code></p>", escaped(&name_of(schema)));
    }
    let responses = entries(&operation["responses"]).map(|(status, response)| {
        let schema = response.pointer("/content/application~1json/schema").map(name_of);
        let shape = schema.map(|name| format!(" ({name})")).unwrap_or_default();
        (status.clone(), format!("{}{shape}", text(&response["description"])))
    });
    push_table(page, "Status", &responses.collect::<Vec<_>>());
    page.push_str("</section>");
}

fn push_table(page: &mut String, head: &str, rows: &[(String, String)]) {
    if rows.is_empty() {
        return;
    }
    let _ = write!(page, "<table><tr><th>{head}<th>Meaning");
    for (name, words) in rows {
        let _ = write!(page, "<tr><td><code>{}</code><td>{}", escaped(name), escaped(words));
    }
    page.push_str("</table>");
}

/// The name of a schema, or its JSON.
fn name_of(schema: &Value) -> String {
    let name = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next());
    name.map_or_else(|| schema.to_string(), str::to_owned)
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
