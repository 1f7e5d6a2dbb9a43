//! Templates and their filters.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value as Jinja};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::conversation::{ResultView, View};
use crate::message::Role;
use crate::text::truncated;

/// Most steps of one template, against endless loops.
const FUEL: u64 = 1_000_000;

/// The names that templates may use.
const NAMES: [&str; 4] = ["user", "results", "last_result", "history"];

/// A text of the script. Plain texts are not rendered.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "String")]
pub(super) struct Text {
    source: String,
    is_template: bool,
}

impl From<String> for Text {
    fn from(source: String) -> Self {
        let is_template = is_template(&source);
        Self { source, is_template }
    }
}

fn is_template(source: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|mark| source.contains(mark))
}

impl Text {
    pub(super) fn fault(&self, environment: &Environment<'_>) -> Option<String> {
        self.is_template.then(|| check(environment, &self.source)).flatten()
    }

    pub(super) fn render(&self, context: &TemplateContext<'_, '_>) -> Result<String, TemplateError> {
        if self.is_template { context.render(&self.source) } else { Ok(self.source.clone()) }
    }
}

/// A template that cannot be rendered over this conversation.
#[derive(Debug, thiserror::Error)]
#[error("failed to render the template {template:?}: {message}")]
pub(super) struct TemplateError {
    template: String,
    message: String,
}

/// The values of the names; made on first use, because most replies have no templates.
pub(super) struct TemplateContext<'a, 'b> {
    environment: &'a Environment<'static>,
    view: &'a View<'b>,
    context: std::cell::OnceCell<Jinja>,
}

#[derive(Serialize)]
struct Line {
    role: Role,
    text: String,
}

impl<'a, 'b> TemplateContext<'a, 'b> {
    pub(super) fn new(environment: &'a Environment<'static>, view: &'a View<'b>) -> Self {
        Self { environment, view, context: std::cell::OnceCell::new() }
    }

    fn render(&self, source: &str) -> Result<String, TemplateError> {
        let context = self.context.get_or_init(|| context(self.view)).clone();
        self.environment
            .render_str(source, context)
            .map_err(|error| TemplateError { template: source.to_owned(), message: describe(&error) })
    }

    /// The tree with rendered strings.
    pub(super) fn render_tree(&self, tree: &Value) -> Result<Value, TemplateError> {
        Ok(match tree {
            Value::String(text) if is_template(text) => Value::String(self.render(text)?),
            Value::Array(items) => {
                Value::Array(items.iter().map(|item| self.render_tree(item)).collect::<Result<_, _>>()?)
            }
            Value::Object(members) => Value::Object(
                members
                    .iter()
                    .map(|(key, value)| Ok((key.clone(), self.render_tree(value)?)))
                    .collect::<Result<_, _>>()?,
            ),
            other => other.clone(),
        })
    }
}

fn context(view: &View<'_>) -> Jinja {
    let history: Vec<Line> =
        view.messages.iter().map(|message| Line { role: message.role, text: message.plain_text() }).collect();
    let mut context = vec![
        ("user", Jinja::from(view.user.as_str())),
        ("results", Jinja::from(Serde(&view.results))),
        ("history", Jinja::from(Serde(&history))),
    ];
    // Undefined if no tool has answered, so that a script that needs a result fails.
    context
        .extend(view.results.last().map(|last: &ResultView<'_>| ("last_result", Jinja::from(last.content))));
    Jinja::from_pairs(context)
}

/// The path of the first invalid template of a tree, and its error.
pub(super) fn tree_fault(environment: &Environment<'_>, tree: &Value) -> Option<(String, String)> {
    let below = |key: String, value: &Value| {
        tree_fault(environment, value).map(|(path, message)| (format!("{key}{path}"), message))
    };
    match tree {
        Value::String(text) if is_template(text) => {
            check(environment, text).map(|message| (String::new(), message))
        }
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(index, item)| below(format!("[{index}]"), item))
        }
        Value::Object(members) => members.iter().find_map(|(key, value)| below(format!(".{key}"), value)),
        _ => None,
    }
}

/// The error of a template: its syntax, or an unknown name.
fn check(environment: &Environment<'_>, source: &str) -> Option<String> {
    let template = match environment.template_from_str(source) {
        Ok(template) => template,
        Err(error) => return Some(describe(&error)),
    };
    let globals: Vec<&str> = environment.globals().map(|(name, _)| name).collect();
    let mut names: Vec<String> = template.undeclared_variables(false).into_iter().collect();
    names.sort();
    let known = |name: &str| NAMES.contains(&name) || globals.contains(&name);
    let unknown = names.into_iter().find(|name| !known(name))?;
    Some(format!("{unknown:?} is not known; there are {}", NAMES.join(", ")))
}

fn describe(error: &Error) -> String {
    error.to_string().replace("<string>", "template")
}

pub(super) fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    if let Ok(syntax) = SyntaxConfig::builder().keep_trailing_newline(true).build() {
        environment.set_syntax(syntax);
    }
    environment.set_fuel(Some(FUEL));
    // Errors are shown to users.
    environment.set_debug(false);
    environment.add_filter("first_line", |text: &str| text.lines().next().unwrap_or_default().to_owned());
    environment.add_filter("lines", |text: &str, count: usize| {
        text.lines().take(count).collect::<Vec<_>>().join("\n")
    });
    environment.add_filter("json", parse_json);
    environment.add_filter("truncate_chars", truncate_chars);
    environment
}

fn parse_json(text: &str) -> Result<Jinja, Error> {
    let value: Value = serde_json::from_str(text)
        .map_err(|error| Error::new(ErrorKind::InvalidOperation, format!("not JSON: {error}")))?;
    Ok(Jinja::from(Serde(value)))
}

fn truncate_chars(text: &str, count: usize) -> String {
    truncated(text, count, "…").into_owned()
}
