//! What every turn of an agent's model begins with: its prompt and its tools.

use std::sync::{Arc, Mutex, PoisonError};

use caipe_engine::Abilities;
use caipe_model::ToolSpec;

use super::directory::Listing;
use crate::mcp::ToolsView;

/// What a model is told before the conversation. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Briefing {
    /// The system prompt.
    pub(super) system: Arc<str>,
    /// The tools on offer.
    pub(super) tools: Arc<[ToolSpec]>,
}

/// The newest briefing. Tool lists of a hundred kilobytes are common, and change far less often than turns
/// are taken.
#[derive(Debug, Default)]
pub struct Briefings(Mutex<Option<(Basis, Briefing)>>);

/// What a briefing was made of.
#[derive(Debug)]
struct Basis {
    view: Arc<ToolsView>,
    listing: Arc<Listing>,
    abilities: Abilities,
}

impl Briefings {
    /// The briefing for these tools, agents and abilities, made anew only if one of them has changed.
    pub(super) fn get(
        &self,
        (view, listing): (&Arc<ToolsView>, &Arc<Listing>),
        abilities: &Abilities,
        make: impl FnOnce() -> Briefing,
    ) -> Briefing {
        let mut newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |(basis, briefing): &(Basis, Briefing)| {
            let same = Arc::ptr_eq(&basis.view, view) && Arc::ptr_eq(&basis.listing, listing);
            (same && basis.abilities == *abilities).then(|| briefing.clone())
        };
        if let Some(briefing) = newest.as_ref().and_then(fits) {
            return briefing;
        }
        let briefing = make();
        let basis = Basis { view: view.clone(), listing: listing.clone(), abilities: abilities.clone() };
        *newest = Some((basis, briefing.clone()));
        briefing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn briefing(text: &str) -> Briefing {
        Briefing { system: text.into(), tools: Arc::default() }
    }

    #[test]
    fn a_briefing_is_made_again_only_when_its_basis_has_changed() {
        let briefings = Briefings::default();
        let (view, listing) = (Arc::new(ToolsView::default()), Arc::new(Listing::new()));
        let abilities = Abilities::default();
        let get = |view, listing, abilities, text: &str| {
            briefings.get((view, listing), abilities, || briefing(text)).system.to_string()
        };
        assert_eq!(get(&view, &listing, &abilities, "first"), "first");
        assert_eq!(get(&view, &listing, &abilities, "again"), "first");
        let other = Abilities { forms: true, ..Abilities::default() };
        assert_eq!(get(&view, &listing, &other, "abilities"), "abilities");
        let newer = Arc::new(ToolsView::default());
        assert_eq!(get(&newer, &listing, &other, "tools"), "tools");
        assert_eq!(get(&newer, &Arc::default(), &other, "agents"), "agents");
    }
}
