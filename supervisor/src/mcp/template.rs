//! `${VAR}` in the declaration of a server.

use std::collections::BTreeMap;

use caipe_crds::resolve::template::split_reference;
use thiserror::Error;

/// A text with its variables filled in.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Expansion {
    pub(super) text: String,
    /// The variables in it, with their values.
    pub(super) used: Vec<(String, String)>,
}

/// A template that cannot be filled in. The text contains no value of a variable.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TemplateError {
    /// The variable is not set.
    #[error("the environment variable {0} is not set; set it, or give a default with ${{{0}:-default}}")]
    Missing(String),
    /// `${` without `}`.
    #[error("a `${{` without its `}}`; write `$${{` for a literal one")]
    Unclosed,
    /// No variable name between the braces.
    #[error("a `${{…}}` without a variable's name (letters, digits and `_`); write `$${{` for a literal one")]
    BadName,
}

/// The text of a template.
///
/// # Errors
/// When a variable without a default is missing, or the template is invalid.
pub fn fill(template: &str, env: &BTreeMap<String, String>) -> Result<String, TemplateError> {
    expand(template, env).map(|expansion| expansion.text)
}

/// Fills in `${VAR}` and `${VAR:-default}`; `$${` is a literal `${`. The default, which may contain variables, applies if the
/// variable is missing or empty.
pub(super) fn expand(template: &str, env: &BTreeMap<String, String>) -> Result<Expansion, TemplateError> {
    let mut out = Expansion { text: String::with_capacity(template.len()), used: Vec::new() };
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(escaped) = before.strip_suffix('$') {
            out.text.push_str(escaped);
            out.text.push_str("${");
            rest = after;
            continue;
        }
        out.text.push_str(before);
        let (inside, following) = split_reference(after).ok_or(TemplateError::Unclosed)?;
        out.fill(inside, env)?;
        rest = following;
    }
    out.text.push_str(rest);
    Ok(out)
}

impl Expansion {
    fn fill(&mut self, inside: &str, env: &BTreeMap<String, String>) -> Result<(), TemplateError> {
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        if !is_name(name) {
            return Err(TemplateError::BadName);
        }
        match (env.get(name).filter(|value| default.is_none() || !value.is_empty()), default) {
            (Some(value), _) => {
                self.text.push_str(value);
                self.used.push((name.to_owned(), value.clone()));
            }
            (None, Some(default)) => {
                let default = expand(default, env)?;
                self.text.push_str(&default.text);
                self.used.extend(default.used);
            }
            (None, None) => return Err(TemplateError::Missing(name.to_owned())),
        }
        Ok(())
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
