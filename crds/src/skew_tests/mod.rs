//! The contracts between programs of different versions: the rendered spec and the report of a pod.
//!
//! `CAIPE_WRITE_FIELDS=1` writes the fields of this version to `golden`, if programs of every version there can work with
//! them.

mod fields;

use fields::{Field, Fields, faults};

use crate::internal_status::Report;
use crate::rendered::{RenderedSpec, SCHEMA_VERSION};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/golden");

fn stored(name: &str) -> Option<Fields> {
    let text = std::fs::read_to_string(format!("{GOLDEN}/{name}")).ok()?;
    Some(fields::from_text(&text))
}

/// Compares with the file of each earlier version, and with the one of this version, which may only grow.
fn check(contract: &str, version: u32, now: &Fields, new_values: bool) {
    for earlier in 1..=version {
        let name = format!("{contract}-{earlier}.fields");
        let before = stored(&name).unwrap_or_default();
        let found = faults(&before, now, new_values && earlier < version);
        assert!(
            found.is_empty() || before.is_empty(),
            "{name}: see docs/api-versions.md\n{}",
            found.join("\n")
        );
    }
    let newest = format!("{contract}-{version}.fields");
    if std::env::var_os("CAIPE_WRITE_FIELDS").is_some() {
        let written = std::fs::write(format!("{GOLDEN}/{newest}"), fields::to_text(now));
        assert!(written.is_ok(), "{newest}: {written:?}");
    }
    assert_eq!(stored(&newest).as_ref(), Some(now), "{newest}: run `make generate`");
}

#[test]
fn programs_of_other_versions_can_read_and_write_rendered_specs() {
    check("rendered", SCHEMA_VERSION, &fields::of::<RenderedSpec>(), true);
}

/// A report has no version, because the operator shows it and decides nothing by what it does not know.
#[test]
fn programs_of_other_versions_can_read_and_write_reports() {
    check("report", 1, &fields::of::<Report>(), false);
}

fn with(path: &str, change: impl FnOnce(&mut Field)) -> Fields {
    let mut fields = fields::of::<RenderedSpec>();
    change(fields.entry(path.to_owned()).or_default());
    fields
}

#[test]
fn a_change_that_breaks_a_program_of_another_version_is_found() {
    let now = fields::of::<RenderedSpec>();
    let without = |path: &str| {
        let mut fields = now.clone();
        fields.remove(path).unwrap();
        fields
    };
    let text = |field: &mut Field| field.kind = "string".to_owned();
    let cases = [
        (now.clone(), vec![]),
        (without("limits.recursion"), vec!["limits.recursion is removed"]),
        (without("store=memory"), vec!["store=memory is removed"]),
        (with("limits.recursion", text), vec!["limits.recursion is string and was integer"]),
        (with("corsOrigins", |it| it.required = true), vec!["corsOrigins is required now"]),
        (
            with("streaming", |it| it.written = false),
            vec!["streaming is not always written, and an older reader requires it"],
        ),
        (with("agents[].colour", text), vec![]),
        (with("tracing.endpoint", |it| it.required = true), vec![]),
        (with("agents[].colour", |it| it.required = true), vec!["agents[].colour is new and required"]),
        (
            with("agents[].colour", |it| it.written = true),
            vec!["agents[].colour is new and written even while it has its default"],
        ),
        (with("store=tape", text), vec!["store=tape is a new value, which an older reader refuses"]),
    ];
    for (new, expected) in cases {
        assert_eq!(faults(&now, &new, false), expected);
        let allowed: Vec<_> = expected.into_iter().filter(|fault| !fault.contains("new value")).collect();
        assert_eq!(faults(&now, &new, true), allowed);
    }
}

#[test]
fn reports_of_other_versions_are_read() {
    let text = |name: &str| std::fs::read_to_string(format!("{GOLDEN}/{name}")).unwrap();
    let report: Report = serde_json::from_str(&text("report-1.json")).unwrap();
    let next: Report = serde_json::from_str(&text("report-next.json")).unwrap();
    assert_eq!(next, report);
    let written: serde_json::Value = serde_json::from_str(&text("report-1.json")).unwrap();
    assert_eq!(serde_json::to_value(&report).unwrap(), written);
}
