//! Templates of tool servers: `${VAR}` and `${VAR:-default}`.

use std::collections::BTreeMap;

/// Replaces variables with known values; the supervisor replaces the others.
pub(super) fn fill(template: &str, known: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        rest = after;
        match (before.ends_with('$'), after.split_once('}')) {
            (false, Some((reference, tail))) => {
                let name = reference.split_once(":-").map_or(reference, |(name, _)| name);
                match known.get(name) {
                    Some(value) => out.push_str(value),
                    None => out.extend(["${", reference, "}"]),
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
pub(super) fn required(template: &str) -> Vec<&str> {
    references(template).into_iter().filter(|reference| !reference.contains(":-")).collect()
}

/// The names of all variables.
pub(super) fn names(template: &str) -> Vec<&str> {
    let name = |reference: &'_ str| -> usize { reference.find(":-").unwrap_or(reference.len()) };
    references(template).into_iter().map(|reference| reference.split_at(name(reference)).0).collect()
}

/// Each variable, with its default if it has one.
fn references(template: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("${") {
        rest = after;
        if let (false, Some((reference, tail))) = (before.ends_with('$'), after.split_once('}')) {
            rest = tail;
            found.push(reference);
        }
    }
    found
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
