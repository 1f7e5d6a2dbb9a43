use super::*;

const CUT: ClientError = ClientError::Cut;

fn policy() -> Reconnect {
    let ms = Duration::from_millis;
    Reconnect {
        attempts: 6,
        first_wait: ms(100),
        longest_wait: ms(1000),
        give_up_after: ms(5000),
        poll: ms(1),
    }
}

#[test]
fn waits_grow_up_to_the_longest_and_half_of_each_is_chance() {
    for (attempt, chance, expected) in [
        (1, 0.0, Some(50)),
        (1, 1.0, Some(100)),
        (2, 0.5, Some(150)),
        (3, 0.0, Some(200)),
        (4, 1.0, Some(800)),
        (5, 1.0, Some(1000)),
        (6, 0.0, Some(500)),
        (6, 7.0, Some(1000)),
        (7, 0.0, None),
    ] {
        let wait = policy().wait(attempt, Duration::ZERO, &CUT, chance);
        assert_eq!(wait, expected.map(Duration::from_millis), "try {attempt}, chance {chance}");
    }
    let unbounded = Reconnect { attempts: u32::MAX, ..policy() };
    assert_eq!(unbounded.wait(u32::MAX, Duration::ZERO, &CUT, 1.0), Some(Duration::from_secs(1)));
}

#[test]
fn nothing_is_tried_when_switched_off_or_after_too_long_a_silence() {
    let wait = |policy: &Reconnect, quiet| policy.wait(1, Duration::from_millis(quiet), &CUT, 0.0);
    assert_eq!(wait(&Reconnect::off(), 0), None);
    assert!(wait(&policy(), 4900).is_some());
    assert_eq!(wait(&policy(), 4960), None, "the wait would pass the bound");
    assert_eq!(wait(&policy(), 5001), None);
}

#[test]
fn a_server_that_asks_for_a_longer_wait_gets_it() {
    let busy = |seconds| ClientError::Status {
        host: "a".to_owned(),
        status: reqwest::StatusCode::SERVICE_UNAVAILABLE,
        excerpt: String::new(),
        retry_after: Some(Duration::from_secs(seconds)),
    };
    let wait = |seconds| policy().wait(1, Duration::ZERO, &busy(seconds), 0.0);
    assert_eq!(wait(0), Some(Duration::from_millis(50)));
    assert_eq!(wait(3), Some(Duration::from_secs(3)));
    assert_eq!(wait(60), None, "longer than anybody waits");
}
