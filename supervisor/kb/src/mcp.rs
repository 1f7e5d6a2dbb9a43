//! The tools `search`, `fetch_document` and `list_datasources_and_entity_types` over MCP, with the names, arguments and results
//! of upstream's RAG server.

use std::future::ready;
use std::sync::Arc;

use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleServer, ServerHandler};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::error::Error;
use crate::index::KnowledgeBase;
use crate::search::{Hit, MAX_RESULTS, Query};

/// The path of the MCP endpoint.
pub const PATH: &str = "/mcp";
const SEARCH: &str = "search";
const FETCH: &str = "fetch_document";
const LIST: &str = "list_datasources_and_entity_types";
/// The results of a search that names no limit.
const DEFAULT_RESULTS: usize = 10;
const FILTER: &str = "datasource_id";
/// What ends a text that is not the whole document.
const CONTENT_TRUNCATED: &str = "[Content truncated. Use fetch_document to read the whole document.]";
/// A request is a few lines.
const MAX_REQUEST_BYTES: usize = 64 * 1024;

/// The endpoint. It authenticates no client: serve it on loopback only or behind a check of a key, and reject foreign web pages.
pub fn routes(base: Arc<KnowledgeBase>) -> Router {
    let handler = Handler { base };
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(MAX_REQUEST_BYTES)
        .disable_allowed_hosts();
    let service = StreamableHttpService::new(
        move || Ok(handler.clone()),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    Router::new().nest_service(PATH, service)
}

/// `/healthz` and `/ready`, which say nothing of the documents.
pub fn health_routes(base: Arc<KnowledgeBase>) -> Router {
    let handler = get(move || ready(health(&base)));
    Router::new().route("/healthz", handler.clone()).route("/ready", handler)
}

/// What upstream's supervisor asks for at its start.
fn health(base: &KnowledgeBase) -> (StatusCode, Json<Value>) {
    let sources = base.state().map(|state| state.sources.len());
    let (code, status) = match sources {
        Ok(_) => (StatusCode::OK, "healthy"),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "unhealthy"),
    };
    let answer = json!({
        "status": status,
        "timestamp": jiff::Timestamp::now().as_second(),
        "details": {"datasources": sources.unwrap_or_default()},
        "config": {"graph_rag_enabled": false, "search": {"keys": ["text"], "filter_keys": [FILTER]}},
    });
    (code, Json(answer))
}

#[derive(Clone)]
struct Handler {
    base: Arc<KnowledgeBase>,
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let instructions =
            "Search the knowledge base, then read the best documents. Cite title and location.";
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("caipe-knowledge-base", env!("CARGO_PKG_VERSION")))
            .with_instructions(instructions)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (base, arguments) = (self.base.clone(), request.arguments.unwrap_or_default());
        let name = request.name.into_owned();
        let called = tokio::task::spawn_blocking(move || call(&base, &name, arguments)).await;
        Ok(called.map_err(|error| ErrorData::internal_error(error.to_string(), None))??.into())
    }
}

/// Calls a tool. What the model can correct is a result that says so.
fn call(
    base: &KnowledgeBase,
    name: &str,
    arguments: Map<String, Value>,
) -> Result<CallToolResult, ErrorData> {
    let result = match name {
        SEARCH => parse(arguments).and_then(|arguments| search(base, arguments)),
        FETCH => parse(arguments).and_then(|arguments| fetch(base, &arguments)),
        LIST => list(base),
        _ => return Err(ErrorData::invalid_params(format!("unknown tool {name:?}"), None)),
    };
    Ok(result.unwrap_or_else(|reason| CallToolResult::error(vec![ContentBlock::text(reason)])))
}

fn parse<T: for<'a> Deserialize<'a>>(arguments: Map<String, Value>) -> Result<T, String> {
    serde_json::from_value(Value::Object(arguments))
        .map_err(|error| format!("The arguments are not valid: {error}."))
}

#[derive(Deserialize)]
struct SearchArguments {
    query: String,
    #[serde(default)]
    filters: Option<Map<String, Value>>,
    #[serde(default)]
    limit: Option<usize>,
}

#[derive(Deserialize)]
struct FetchArguments {
    document_id: String,
}

fn search(base: &KnowledgeBase, arguments: SearchArguments) -> Result<CallToolResult, String> {
    let source = source_filter(arguments.filters.unwrap_or_default()).map_err(|error| sentence(&error))?;
    let limit = arguments.limit.unwrap_or(DEFAULT_RESULTS);
    let hits =
        base.search(&Query { text: arguments.query, limit, source }).map_err(|error| sentence(&error))?;
    let results: Vec<Value> = hits.into_iter().map(result).collect();
    Ok(CallToolResult::structured(json!({"semantic_results": [], "keyword_results": results})))
}

fn source_filter(filters: Map<String, Value>) -> Result<Option<String>, Error> {
    let mut source = None;
    for (name, value) in filters {
        match value {
            Value::Null => {}
            Value::String(value) if name == FILTER => source = Some(value),
            _ => return Err(Error::UnknownFilter(name)),
        }
    }
    Ok(source)
}

fn result(hit: Hit) -> Value {
    let mut text = hit.excerpt;
    if hit.truncated {
        text.push_str(CONTENT_TRUNCATED);
    }
    let place = if hit.location.contains("://") { "url" } else { "path" };
    json!({
        "text_content": text,
        "metadata": {
            "document_id": hit.document_id,
            "datasource_id": hit.source,
            "title": hit.title,
            "section": hit.headings.join(" > "),
            place: hit.location,
        },
        "score": hit.score,
    })
}

fn fetch(base: &KnowledgeBase, arguments: &FetchArguments) -> Result<CallToolResult, String> {
    let text = base.fetch(&arguments.document_id).map_err(|error| sentence(&error))?;
    Ok(CallToolResult::success(vec![ContentBlock::text(text)]))
}

fn list(base: &KnowledgeBase) -> Result<CallToolResult, String> {
    let state = base.state().map_err(|error| sentence(&error))?;
    let sources = state.sources.into_iter().map(|source| {
        json!({
            "datasource_id": source.name,
            "name": source.kind.to_string(),
            "document_count": source.documents,
            "last_updated": source.updated,
        })
    });
    let sources: Vec<Value> = sources.collect();
    Ok(CallToolResult::structured(
        json!({"datasources": sources, "entity_types": [], "filter_keys": [FILTER]}),
    ))
}

fn sentence(error: &Error) -> String {
    let text = error.to_string();
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
}

fn tools() -> Vec<Tool> {
    let thought = json!({"type": "string", "description": "Why this call is made."});
    let search = json!({
        "query": {"type": "string", "description": "What to search for: words or a question."},
        "filters": {
            "type": ["object", "null"],
            "description": "Limits the search, e.g. {\"datasource_id\": \"docs\"}.",
            "properties": {FILTER: {"type": "string"}},
        },
        "limit": {"type": "integer", "minimum": 1, "maximum": MAX_RESULTS, "default": DEFAULT_RESULTS},
        "thought": thought,
    });
    let fetch = json!({
        "document_id": {"type": "string", "description": "The document_id of a search result."},
        "thought": thought,
    });
    vec![
        tool(
            SEARCH,
            "Searches the knowledge base. Returns excerpts with the id, title and location of their documents.",
            &search,
            &["query"],
        ),
        tool(
            FETCH,
            "Returns the text of a document, in Markdown, at most 10,000 characters at a time.",
            &fetch,
            &["document_id"],
        ),
        tool(
            LIST,
            "Lists the data sources of the knowledge base and the filters of search.",
            &json!({"thought": thought}),
            &[],
        ),
    ]
}

fn tool(name: &'static str, description: &'static str, properties: &Value, required: &[&str]) -> Tool {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    let schema = schema.as_object().cloned().unwrap_or_default();
    let annotations = ToolAnnotations::from_raw(None, Some(true), Some(false), Some(true), Some(false));
    Tool::new(name, description, Arc::new(schema)).with_annotations(annotations)
}

#[cfg(test)]
#[path = "mcp_tests.rs"]
mod tests;
