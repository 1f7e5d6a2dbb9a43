//! Which tests a run has.

use serde_json::Value;

use super::document::{Binding, Case};

/// Which tests a run is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// All but those named here, with the reason why each needs another run.
    All(&'static [(&'static str, &'static str)]),
    /// Those that need a capability to be absent.
    WithoutCapabilities,
    /// Those named here.
    Only(&'static [&'static str]),
}

/// What a run offers the tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The binding that is spoken.
    pub binding: Binding,
    /// Whether the server asks for credentials.
    pub authentication: bool,
    /// Whether the tests of our own client belong to this run.
    pub client: bool,
    /// Which tests it is for.
    pub selection: Selection,
}

/// Why a run leaves a test out; nothing if it has it. `capabilities` are the card's.
pub fn reason_to_skip(case: &Case, offer: &Offer, capabilities: &Value) -> Option<String> {
    let test = &case.test;
    if test.is_about_the_client() {
        return (!offer.client).then(|| "needs no server; another run has it".to_owned());
    }
    if let Some(bindings) = test.transport.as_ref().filter(|list| !list.contains(&offer.binding)) {
        return Some(format!("for {bindings:?} only").to_lowercase());
    }
    for (name, wanted) in &test.preconditions.capabilities {
        let found = match name.as_str() {
            // No capability of the specification: a server says so in its security requirements.
            "authentication" => offer.authentication,
            name => capabilities[name] == true,
        };
        if found != *wanted {
            return Some(format!("needs {name} to be {wanted}"));
        }
    }
    let id = &*test.id;
    match &offer.selection {
        Selection::All(others) => {
            let other = others.iter().find(|(other, _)| *other == id);
            other.map(|(_, reason)| (*reason).to_owned())
        }
        Selection::WithoutCapabilities => {
            let needs_absence = test.preconditions.capabilities.values().any(|wanted| !wanted);
            (!needs_absence).then(|| "needs no capability to be absent; another run has it".to_owned())
        }
        Selection::Only(ids) => (!ids.contains(&id)).then(|| "another run has it".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::document::{Preconditions, Step, Test};
    use super::*;
    use serde_json::json;

    fn case(transport: Option<Vec<Binding>>, capabilities: &[(&str, bool)]) -> Case {
        let capabilities = capabilities.iter().map(|(name, wanted)| ((*name).to_owned(), *wanted)).collect();
        let test = Test {
            id: "X-1".to_owned(),
            name: String::new(),
            level: super::super::document::Level::Must,
            tags: Vec::new(),
            transport,
            preconditions: Preconditions { capabilities },
            steps: vec![Step::default()],
        };
        let spec_version = "1.0".to_owned();
        Case { suite: String::new(), spec_version, variables: serde_json::Map::new(), test }
    }

    fn offer(selection: Selection) -> Offer {
        Offer { binding: Binding::Jsonrpc, authentication: false, client: false, selection }
    }

    #[test]
    fn a_run_has_what_its_server_can_do() {
        let capabilities = json!({"streaming": true});
        for (transport, needs, runs) in [
            (None, [].as_slice(), true),
            (Some(vec![Binding::Jsonrpc, Binding::Rest]), &[], true),
            (Some(vec![Binding::Grpc]), &[], false),
            (None, &[("streaming", true)], true),
            (None, &[("streaming", false)], false),
            (None, &[("pushNotifications", false)], true),
            (None, &[("authentication", true)], false),
        ] {
            let reason = reason_to_skip(&case(transport, needs), &offer(Selection::All(&[])), &capabilities);
            assert_eq!(reason.is_none(), runs, "{needs:?}: {reason:?}");
        }
    }

    #[test]
    fn a_run_has_what_it_is_for() {
        let absent = case(None, &[("streaming", false)]);
        let any = case(None, &[]);
        for (selection, absent_runs, any_runs) in [
            (Selection::WithoutCapabilities, true, false),
            (Selection::Only(&["X-1"]), true, true),
            (Selection::Only(&["Y-1"]), false, false),
            (Selection::All(&[("X-1", "elsewhere")]), false, false),
        ] {
            let runs = |case| reason_to_skip(case, &offer(selection.clone()), &json!({})).is_none();
            assert_eq!((runs(&absent), runs(&any)), (absent_runs, any_runs), "{selection:?}");
        }
    }
}
