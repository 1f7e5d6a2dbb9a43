//! What every turn of an agent's model begins with: its prompt and its tools.

use std::sync::{Arc, Mutex, PoisonError};

use caipe_engine::Abilities;
use caipe_model::ToolSpec;

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
    abilities: Abilities,
}

impl Briefings {
    /// The briefing for these tools and abilities, made anew only if either has changed.
    pub(super) fn get(
        &self,
        view: &Arc<ToolsView>,
        abilities: &Abilities,
        make: impl FnOnce() -> Briefing,
    ) -> Briefing {
        let mut newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |(basis, briefing): &(Basis, Briefing)| {
            (Arc::ptr_eq(&basis.view, view) && basis.abilities == *abilities).then(|| briefing.clone())
        };
        if let Some(briefing) = newest.as_ref().and_then(fits) {
            return briefing;
        }
        let briefing = make();
        let basis = Basis { view: view.clone(), abilities: abilities.clone() };
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
        let (view, abilities) = (Arc::new(ToolsView::default()), Abilities::default());
        assert_eq!(&*briefings.get(&view, &abilities, || briefing("first")).system, "first");
        assert_eq!(&*briefings.get(&view, &abilities, || briefing("again")).system, "first");
        let other = Abilities { forms: true, ..Abilities::default() };
        assert_eq!(&*briefings.get(&view, &other, || briefing("abilities")).system, "abilities");
        let newer = Arc::new(ToolsView::default());
        assert_eq!(&*briefings.get(&newer, &other, || briefing("tools")).system, "tools");
    }
}
