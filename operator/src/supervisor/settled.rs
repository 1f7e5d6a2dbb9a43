//! What a supervisor comes to once every agent has the home that the resource asks for.

use caipe_crds::rendered::Home;
use caipe_crds::{CaipeSupervisor, RenderedSpec};

use super::decision::Decision;
use super::moves;

/// The decision for a resource that nothing runs of yet, or that is at rest: every agent is where the spec wants it, and
/// only those in the supervisor's process have a seat there.
pub fn settled(resource: &CaipeSupervisor, spec: RenderedSpec) -> Decision {
    let ours = moves::ours(resource, &spec);
    let remote = |home: &Home| matches!(home, Home::Remote { .. });
    let names = |wanted: bool| {
        let agents = spec.agents.iter().filter(move |agent| remote(&agent.home) == wanted);
        agents.map(|agent| agent.name.clone()).filter(|name| ours.contains(name)).collect()
    };
    Decision {
        seats: names(false),
        remote: names(true),
        draining: std::collections::BTreeMap::new(),
        wanted: spec.clone(),
        spec,
    }
}
