//! Paths into a JSON value: `task.id`, `history[0].parts[*]`.

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Member(String),
    Element(usize),
    Every,
}

/// Every value at `path`; none if there is nothing.
///
/// # Errors
/// When `path` is none.
pub fn select<'a>(path: &str, root: &'a Value) -> Result<Vec<&'a Value>> {
    let mut found = vec![root];
    for segment in parse(path)? {
        found = found.into_iter().flat_map(|value| step(&segment, value)).collect();
    }
    Ok(found)
}

/// The first value at `path`.
///
/// # Errors
/// When `path` is none.
pub fn first<'a>(path: &str, root: &'a Value) -> Result<Option<&'a Value>> {
    Ok(select(path, root)?.into_iter().next())
}

fn step<'a>(segment: &Segment, value: &'a Value) -> Vec<&'a Value> {
    match segment {
        Segment::Member(name) => value.get(name).into_iter().collect(),
        Segment::Element(index) => value.get(index).into_iter().collect(),
        Segment::Every => value.as_array().into_iter().flatten().collect(),
    }
}

fn parse(path: &str) -> Result<Vec<Segment>> {
    let mut segments = Vec::new();
    for word in path.split('.').filter(|word| !word.is_empty()) {
        let (name, mut rest) = word.split_at(word.find('[').unwrap_or(word.len()));
        if !name.is_empty() {
            segments.push(Segment::Member(name.to_owned()));
        }
        while let Some(open) = rest.strip_prefix('[') {
            let (index, after) = open.split_once(']').with_context(|| format!("{path}: [ without ]"))?;
            segments.push(match index {
                "*" => Segment::Every,
                number => Segment::Element(number.parse().with_context(|| format!("{path}: [{number}]"))?),
            });
            rest = after;
        }
        if !rest.is_empty() {
            bail!("{path}: unexpected {rest:?}");
        }
    }
    Ok(segments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_path_finds_members_and_elements() {
        let root =
            json!({"task": {"id": "t", "parts": [{"text": "a"}, {"text": "b"}]}, "grid": [[1, 2], [3]]});
        for (path, expected) in [
            ("", json!([root])),
            ("task.id", json!(["t"])),
            ("task.parts[1].text", json!(["b"])),
            ("task.parts[*].text", json!(["a", "b"])),
            ("grid[0][1]", json!([2])),
            ("grid[*][*]", json!([1, 2, 3])),
            ("task.none.deeper", json!([])),
            ("task.parts[7]", json!([])),
            ("task.id[*]", json!([])),
        ] {
            assert_eq!(json!(select(path, &root).unwrap()), expected, "{path}");
        }
        for path in ["a[", "a[x]", "a[1]b", "a[-1]"] {
            assert!(select(path, &root).is_err(), "{path}");
        }
    }
}
