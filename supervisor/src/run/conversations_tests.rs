//! The order of a conversation's queue, and that nothing of it is left behind.

use std::sync::Arc;

use caipe_engine::{Abilities, AgentName, Effect, Input, RunState, decide};
use caipe_model::{Message, Role};
use caipe_store::MemoryStore;
use futures::FutureExt;

use super::{Conversations, end_lost_run};

fn conversations() -> Arc<Conversations> {
    Conversations::new(Arc::new(MemoryStore::default()))
}

#[test]
fn places_are_called_in_the_order_in_which_they_were_taken() {
    let conversations = conversations();
    let mut places: Vec<_> = (0..5).map(|_| conversations.queue("c")).collect();
    let mut elsewhere = conversations.queue("d");
    assert!(elsewhere.reached().now_or_never().is_some(), "another conversation waits for nobody");
    for _ in 0..5 {
        // Asked in the wrong order on purpose: only the first may come.
        for later in places.iter_mut().skip(1).rev() {
            assert!(later.reached().now_or_never().is_none());
        }
        assert!(places[0].reached().now_or_never().is_some());
        drop(places.remove(0));
    }
}

#[test]
fn who_leaves_the_queue_holds_nobody_back_and_leaves_nothing_behind() {
    let conversations = conversations();
    let first = conversations.queue("c");
    let second = conversations.queue("c");
    let mut third = conversations.queue("c");
    drop(second);
    drop(first);
    assert!(third.reached().now_or_never().is_some());
    let fourth = conversations.queue("c");
    drop(third);
    drop(fourth);
    assert!(conversations.turns.lock().unwrap().is_empty());
}

#[test]
fn a_run_that_was_lost_does_not_keep_the_next_message_out() {
    let mut state = RunState::new(AgentName::new("supervisor"));
    let say = |state: &mut RunState, text: &str| {
        let message = Message::text(Role::User, text).into();
        decide(state, Input::Message { message, abilities: Abilities::default() })
    };
    assert!(!say(&mut state, "one").is_empty());
    assert!(say(&mut state, "two").is_empty(), "the engine takes none while a run is under way");
    end_lost_run(&mut state);
    assert!(matches!(say(&mut state, "three").as_slice(), [.., Effect::CallModel { .. }]));
    let idle = RunState::new(AgentName::new("supervisor"));
    let mut untouched = idle.clone();
    end_lost_run(&mut untouched);
    assert_eq!(untouched, idle);
}
