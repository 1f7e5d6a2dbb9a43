use std::time::Duration;

use super::monitor::Parser;
use super::{Commit, Fence, History, Isolation, Micros, Read, StoreRecord, check};

const SECOND: Micros = 1_000_000;

fn commit(at: Micros, sender: &str, (token, number): (u64, u64), state: Option<&str>) -> StoreRecord {
    let (fence, state) = (Some(Fence { token, number }), state.map(str::to_owned));
    StoreRecord::Commit(Commit { at: at * SECOND, task: "t".into(), sender: sender.into(), fence, state })
}

fn read(replica: &str, begin: Micros, end: Micros, state: &str) -> Read {
    let [begin, end] = [begin * SECOND, end * SECOND];
    Read { begin, end, replica: replica.into(), task: "t".into(), state: state.into() }
}

/// Two owners, one after the other, and three reads.
fn valid() -> History {
    History {
        store: vec![
            commit(10, "a", (0, 1), Some("working")),
            commit(20, "a", (0, 2), None),
            commit(30, "b", (1, 1), Some("input-required")),
            commit(40, "b", (1, 2), Some("working")),
            commit(50, "b", (1, 3), Some("completed")),
        ],
        reads: vec![
            read("a", 11, 12, "working"),
            read("a", 29, 31, "input-required"),
            read("b", 41, 42, "working"),
            read("a", 51, 52, "completed"),
        ],
        isolations: Vec::new(),
    }
}

fn faults(history: &History) -> Vec<String> {
    check(history, Duration::from_millis(500)).faults
}

#[test]
fn a_valid_history_has_no_fault() {
    assert_eq!(faults(&valid()), [""; 0]);
    // Two states fit a request that lasts, also two of the same name.
    let mut history = valid();
    history.reads = vec![read("a", 5, 60, "input-required"), read("b", 35, 45, "working")];
    assert_eq!(faults(&history), [""; 0]);
}

#[test]
fn each_broken_rule_is_found() {
    type Mutation = fn(&mut History);
    let mutations: [(Mutation, &str); 9] = [
        (|history| history.store.push(commit(60, "a", (0, 3), None)), "an older token"),
        (|history| history.store[3] = commit(40, "a", (1, 2), Some("working")), "b has the token"),
        (|history| history.store[1] = commit(20, "a", (0, 1), None), "after number 1"),
        (|history| history.store.push(commit(60, "b", (1, 4), Some("working"))), "\"completed\") changes"),
        (|history| history.reads.push(read("c", 53, 54, "working")), "3s old"),
        (|history| history.reads.push(read("c", 32, 33, "completed")), "is none of"),
        (|history| history.reads.push(read("c", 53, 54, "failed")), "is none of"),
        (|history| history.reads.push(read("a", 51, 53, "working")), "after 3"),
        (|history| history.reads[0].task = "other".into(), "no commit made"),
    ];
    for (mutate, wanted) in mutations {
        let mut history = valid();
        mutate(&mut history);
        let faults = faults(&history);
        assert!(faults.len() == 1 && faults[0].contains(wanted), "{wanted}: {faults:#?}");
    }
}

#[test]
fn a_replica_that_is_cut_off_may_be_late_but_never_goes_back() {
    let mut history = valid();
    history.isolations = vec![Isolation { replica: Some("a".into()), begin: 48 * SECOND, end: 56 * SECOND }];
    history.reads[3] = read("a", 54, 55, "working");
    let report = check(&history, Duration::ZERO);
    assert_eq!((report.faults, report.excused), (Vec::new(), 1));
    history.reads.push(read("a", 57, 58, "completed"));
    assert_eq!(faults(&history), [""; 0]);
    history.reads.push(read("a", 59, 60, "working"));
    assert_eq!(faults(&history).len(), 1, "back to an earlier state");
    history.isolations[0].replica = Some("b".into());
    assert_eq!(faults(&history).len(), 2);
}

#[test]
fn after_a_gap_the_state_is_unknown_until_the_next_commit() {
    let mut history = valid();
    history.store.insert(2, StoreRecord::Gap(22 * SECOND));
    history.reads.insert(1, read("c", 24, 25, "input-required"));
    assert_eq!(faults(&history), [""; 0]);
    // A final state stays.
    history.store.push(StoreRecord::Gap(60 * SECOND));
    history.reads.push(read("b", 61, 62, "working"));
    assert_eq!(faults(&history).len(), 1);
}

#[test]
fn commits_are_read_from_the_record_of_the_server() {
    let lines = [
        // A new task with a message of one item, and its first events.
        r#"+9.000001 [0 127.0.0.1:1] "evalsha" "5" "1" "{d}:" "me" "nonce" "9" "1" "task" "c" "submitted" "-" "p" "{\"a\":1}" "1" "owner" "8000" "0" "0""#,
        r#"+9.000002 [0 lua] "HSET" "{d}:t:task" "record" "{\"a\":1}" "context" "c" "phase" "submitted" "owner" "-" "place" "p""#,
        r#"+9.000003 [0 lua] "HSET" "{d}:t:task" "holder" "owner" "until" "8009" "nonce" "nonce""#,
        r#"+9.500000 [0 127.0.0.1:1] "evalsha" "5" "1" "{d}:" "me" "n2" "9" "1" "task" "c" "input_required" "-" "p" "{}" "0" "1" "c" "{}" "1" "messages" "0" "2" "one \"1\"" "1" "1" "task" "7" "3" "40" "0" "0" "0" "0""#,
        r#"+9.500001 [0 lua] "HMGET" "{d}:t:task" "token" "number" "last""#,
        r#"+9.500002 [0 lua] "HSET" "{d}:t:task" "record" "{}" "context" "c" "phase" "input_required" "owner" "-" "place" "p""#,
        r#"+9.500003 [0 lua] "HSET" "{d}:t:task" "number" "3" "last" "1" "reserved" "40" "handled" "0""#,
        r#"+9.600000 [0 127.0.0.1:2] "ping""#,
        // A commit that the script refuses.
        r#"+9.700000 [0 127.0.0.1:2] "evalsha" "5" "1" "{d}:" "you" "n3" "9" "0" "0" "0" "1" "task" "6" "4" "40" "0" "0" "0" "0""#,
        r#"+9.700001 [0 lua] "HMGET" "{d}:t:task" "token" "number" "last""#,
    ];
    let mut parser = Parser::default();
    let commits: Vec<Commit> = lines.iter().filter_map(|line| parser.read(line)).collect();
    let made = |at, fence, state: &str| Commit {
        at,
        task: "task".into(),
        sender: "me".into(),
        fence,
        state: Some(state.into()),
    };
    let fence = Some(Fence { token: 7, number: 3 });
    assert_eq!(commits, [made(9_000_002, None, "submitted"), made(9_500_003, fence, "input-required")]);
}
