use super::*;

#[test]
fn a_forgotten_supervisor_is_not_saved() {
    let (states, key) = (ReconcileStates::default(), Key::new("team", "platform"));
    let state = states.load(&key, Some("1"));
    assert!(states.is_known(&key));
    assert_eq!(states.failed(&key), 0);
    assert_eq!(states.failed(&key), 1);
    states.forget(&key);
    states.save(&key, state);
    assert_eq!(states.failed(&key), 0);
    assert_eq!(states.keys(), Vec::<Key>::new());
}

#[test]
fn a_known_supervisor_is_saved() {
    let (states, key) = (ReconcileStates::default(), Key::new("team", "platform"));
    let mut state = states.load(&key, Some("1"));
    state.ending = Some("1".to_owned());
    states.save(&key, state);
    assert!(states.is_ending(&key, Some("1")));
    assert_eq!(states.keys(), [key]);
}
