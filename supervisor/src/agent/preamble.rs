//! The beginning of each turn of an agent's model: its system prompt and its tools.

use std::sync::{Arc, Mutex, PoisonError};

use caipe_engine::{Abilities, RunState, ToolIndex};
use caipe_model::ToolSpec;

use super::delegates::Listing;
use crate::builtin::OfferedTools;
use crate::mcp::ToolsView;

/// What a model reads before the conversation. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct TurnPreamble {
    pub(super) system: Arc<str>,
    pub(super) tools: Arc<[ToolSpec]>,
}

/// The newest preamble, and the newest index of tools. Tool lists of a hundred kilobytes are common, and change less often than
/// a turn starts.
#[derive(Debug, Default)]
pub struct PreambleCache {
    newest: Mutex<Option<(PreambleKey, TurnPreamble)>>,
    searched: Mutex<Option<(OfferedTools, Option<Arc<ToolIndex>>)>>,
}

#[derive(Debug)]
struct PreambleKey {
    view: Arc<ToolsView>,
    tools: OfferedTools,
    listing: Arc<Listing>,
    abilities: Abilities,
    found: Vec<String>,
}

impl PreambleCache {
    /// The index of these tools. It is made again only if they have changed.
    pub(super) fn searched(
        &self,
        tools: &OfferedTools,
        make: impl FnOnce() -> Option<Arc<ToolIndex>>,
    ) -> Option<Arc<ToolIndex>> {
        let mut newest = self.searched.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, index)) = newest.as_ref().filter(|(of, _)| of.is_same(tools)) {
            return index.clone();
        }
        let index = make();
        *newest = Some((tools.clone(), index.clone()));
        index
    }

    /// The preamble for these tools, agents, abilities and found tools. It is made again only if one of them has changed.
    pub(super) fn get(
        &self,
        (view, tools, listing): (&Arc<ToolsView>, &OfferedTools, &Arc<Listing>),
        state: &RunState,
        make: impl FnOnce() -> TurnPreamble,
    ) -> TurnPreamble {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |(key, preamble): &(PreambleKey, TurnPreamble)| {
            let same = Arc::ptr_eq(&key.view, view) && key.listing == *listing;
            let same_tools = key.tools.is_same(tools) && key.found == state.found;
            (same && same_tools && key.abilities == state.abilities).then(|| preamble.clone())
        };
        if let Some(preamble) = newest.as_ref().and_then(fits) {
            return preamble;
        }
        let preamble = make();
        let (view, tools, listing) = (view.clone(), tools.clone(), listing.clone());
        let key = PreambleKey {
            view,
            tools,
            listing,
            abilities: state.abilities.clone(),
            found: state.found.clone(),
        };
        *newest = Some((key, preamble.clone()));
        preamble
    }
}

#[cfg(test)]
mod tests {
    use caipe_engine::AgentName;

    use super::*;
    use crate::agent::{ListingEntry, Sharing};

    fn preamble(text: &str) -> TurnPreamble {
        TurnPreamble { system: text.into(), tools: Arc::default() }
    }

    #[test]
    fn a_preamble_is_made_again_only_when_its_key_has_changed() {
        let preambles = PreambleCache::default();
        let (view, none) = (Arc::new(ToolsView::default()), Arc::new(Listing::new()));
        let state = RunState::new(AgentName::new("a"));
        let get = |view, listing, state, text: &str| {
            preambles
                .get((view, &OfferedTools::default(), listing), state, || preamble(text))
                .system
                .to_string()
        };
        assert_eq!(get(&view, &none, &state, "first"), "first");
        assert_eq!(get(&view, &none, &state, "again"), "first");
        let mut other = state.clone();
        other.abilities.forms = true;
        assert_eq!(get(&view, &none, &other, "abilities"), "abilities");
        let found = RunState { found: vec!["get".to_owned()], ..other.clone() };
        assert_eq!(get(&view, &none, &found, "found"), "found");
        let newer = Arc::new(ToolsView::default());
        assert_eq!(get(&newer, &none, &other, "tools"), "tools");
        let still_none = Arc::default();
        assert_eq!(get(&newer, &still_none, &other, "no agents"), "tools", "an agent that asks no others");
        let entry = ListingEntry {
            title: "Jira".to_owned(),
            routing_hint: String::new(),
            sharing: Sharing::default(),
        };
        let listing = Arc::new(Listing::from([(AgentName::new("jira"), entry)]));
        assert_eq!(get(&newer, &listing, &other, "agents"), "agents");
    }
}
