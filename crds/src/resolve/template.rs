//! Templates of tool servers: `${VAR}` and `${VAR:-default}`, where the default is a template.

use std::collections::BTreeMap;

/// Replaces variables with known values; the supervisor replaces the others.
pub(super) fn fill(template: &str, known: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        rest = after;
        match (before.ends_with('$'), split_reference(after)) {
            (false, Some((reference, tail))) => {
                let (name, default) = split_default(reference);
                match (known.get(name), default) {
                    (Some(value), _) => out.push_str(value),
                    (None, Some(default)) => out.extend(["${", name, ":-", &fill(default, known), "}"]),
                    (None, None) => out.extend(["${", name, "}"]),
                }
                rest = tail;
            }
            _ => out.push_str("${"),
        }
    }
    out.push_str(rest);
    out
}

/// The variables without a default.
pub(crate) fn required(template: &str) -> Vec<&str> {
    let is_required = |(_, default): &(&str, Option<&str>)| default.is_none();
    references(template).into_iter().filter(is_required).map(|(name, _)| name).collect()
}

/// The names of all variables.
pub(crate) fn names(template: &str) -> Vec<&str> {
    let all = references(template).into_iter();
    all.flat_map(|(name, default)| std::iter::once(name).chain(default.into_iter().flat_map(names))).collect()
}

/// Each variable with its default, if it has one. Variables in a default are left out, because they are optional.
fn references(template: &str) -> Vec<(&str, Option<&str>)> {
    let mut found = Vec::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("${") {
        rest = after;
        if let (false, Some((reference, tail))) = (before.ends_with('$'), split_reference(after)) {
            rest = tail;
            found.push(split_default(reference));
        }
    }
    found
}

fn split_default(reference: &str) -> (&str, Option<&str>) {
    reference.split_once(":-").map_or((reference, None), |(name, default)| (name, Some(default)))
}

/// Splits the text after `${` at its `}`. A default may contain variables.
pub fn split_reference(text: &str) -> Option<(&str, &str)> {
    let mut open = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' if text[..at].ends_with('$') => open += 1,
            '}' if open == 0 => return Some((&text[..at], &text[at + 1..])),
            '}' => open -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
