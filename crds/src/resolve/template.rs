//! `${VAR}` and `${VAR:-default}` in texts of tool servers.

use std::collections::BTreeMap;

/// Replaces the variables that have a known value; leaves the others for the supervisor.
pub(super) fn fill(template: &str, known: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        rest = after;
        match (before.ends_with('$'), after.split_once('}')) {
            (false, Some((body, tail))) => {
                let name = body.split_once(":-").map_or(body, |(name, _)| name);
                match known.get(name) {
                    Some(value) => out.push_str(value),
                    None => out.extend(["${", body, "}"]),
                }
                rest = tail;
            }
            _ => out.push_str("${"),
        }
    }
    out.push_str(rest);
    out
}

/// The variables without which the template comes to nothing: those named without a default.
pub(super) fn needed(template: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("${") {
        rest = after;
        if let (false, Some((body, tail))) = (before.ends_with('$'), after.split_once('}')) {
            rest = tail;
            if !body.contains(":-") {
                names.push(body);
            }
        }
    }
    names
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
