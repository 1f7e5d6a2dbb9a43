use proptest::prelude::*;

use super::*;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

fn limits(event: usize) -> Limits {
    Limits { bytes: ByteLimits { line: event, event, stream: 1_000_000 }, idle: Duration::from_secs(1) }
}

fn read_within(
    body: &[u8],
    size: usize,
    version: ProtocolVersion,
    limits: Limits,
) -> Vec<Result<Numbered, ClientError>> {
    let chunks: Vec<_> = body.chunks(size.max(1)).map(|chunk| Ok(Bytes::copy_from_slice(chunk))).collect();
    runtime().block_on(read(stream::iter(chunks).boxed(), version, limits).collect())
}

fn read_all(body: &[u8], size: usize, version: ProtocolVersion) -> Vec<Result<Numbered, ClientError>> {
    read_within(body, size, version, limits(10_000))
}

const STREAM: &str = concat!(
    "id: 1\r\ndata: {\"result\":{\"kind\":\"task\",\"id\":\"T\",\"contextId\":\"C\",\"status\":{\"state\":\"working\"}}}\r\n\r\n",
    ": keep-alive\r\n\r\n",
    "id: 2\ndata: {\"result\":{\"kind\":\"artifact-update\",\"taskId\":\"T\",\"contextId\":\"C\",\ndata: \"artifact\":{\"artifactId\":\"a\",\"parts\":[{\"text\":\"🔧✅\"}]}}}\n\n",
    "id: x\ndata: {\"result\":{\"kind\":\"status-update\",\"taskId\":\"T\",\"contextId\":\"C\",\"final\":true,\"status\":{\"state\":\"input-required\"}}}\n\n",
);

#[test]
fn any_cut_of_the_bytes_gives_the_same_events() {
    let whole: Vec<_> = read_all(STREAM.as_bytes(), usize::MAX, ProtocolVersion::V0_3)
        .into_iter()
        .map(Result::unwrap)
        .collect();
    assert_eq!(whole.iter().map(|event| event.seq).collect::<Vec<_>>(), [Some(1), Some(2), None]);
    for size in 1..80 {
        let cut: Vec<_> = read_all(STREAM.as_bytes(), size, ProtocolVersion::V0_3)
            .into_iter()
            .map(Result::unwrap)
            .collect();
        assert_eq!(cut, whole, "chunks of {size}");
    }
}

#[test]
fn a_stream_of_many_events_may_be_larger_than_the_limit_of_one() {
    let event = "data: {\"result\":{\"statusUpdate\":{\"taskId\":\"T\",\"status\":{\"state\":\"TASK_STATE_WORKING\"}}}}\n\n";
    let events = read_all(event.repeat(1000).as_bytes(), 50, ProtocolVersion::V1_0);
    assert_eq!(events.len(), 1001, "the last tells that the stream was cut");
    assert!(events.iter().take(1000).all(Result::is_ok));
}

#[test]
fn silence_ends_the_wait_and_comments_break_it() {
    let comment = || Ok(Bytes::from_static(b": alive\n\n"));
    let slow = stream::iter(0..5).then(move |_| async move {
        tokio::time::sleep(Duration::from_millis(900)).await;
        comment()
    });
    let silent = slow.chain(stream::pending());
    let events = read(silent.boxed(), ProtocolVersion::V1_0, limits(1000));
    let (events, waited) = runtime().block_on(async {
        let start = tokio::time::Instant::now();
        (events.collect::<Vec<_>>().await, start.elapsed())
    });
    assert!(matches!(&events[..], [Err(ClientError::Idle(_))]), "{events:?}");
    assert_eq!(waited, Duration::from_millis(5 * 900 + 1000));
}

#[test]
fn what_is_too_large_is_given_up_and_what_came_before_is_not() {
    let event = "data: {\"result\":{\"statusUpdate\":{\"taskId\":\"T\",\"status\":{\"state\":\"TASK_STATE_WORKING\"}}}}\n\n";
    let caps = |line, event, stream| Limits {
        bytes: ByteLimits { line, event, stream },
        idle: Duration::from_secs(1),
    };
    let long_line = format!("{event}{event}data: {}", "x".repeat(500));
    let long_event = format!("{event}{event}{}", "data: xxxxxxxxx\n".repeat(100));
    for (body, limits, what, limit) in [
        (&long_line, caps(300, 1000, 10_000), "a line of a stream", 300),
        (&long_event, caps(300, 1000, 10_000), "an event of a stream", 1000),
        (&event.repeat(3), caps(300, 1000, 2 * event.len() as u64), "a stream", 2 * event.len() as u64),
    ] {
        for size in [1, 7, 100, 10_000] {
            let events = read_within(body.as_bytes(), size, ProtocolVersion::V1_0, limits);
            assert_eq!(events.iter().filter(|event| event.is_ok()).count(), 2, "{what} in chunks of {size}");
            let error = events.last().unwrap().as_ref().unwrap_err();
            assert!(
                matches!(error, ClientError::TooLarge { what: found, limit: at } if (*found, *at) == (what, limit)),
                "{error} in chunks of {size}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn arbitrary_bytes_never_panic(body in proptest::collection::vec(any::<u8>(), 0..400), size in 1_usize..50) {
        for version in [ProtocolVersion::V0_3, ProtocolVersion::V1_0] {
            let events = read_all(&body, size, version);
            prop_assert!(events.iter().rev().skip(1).all(Result::is_ok), "a failure is the last");
        }
    }

    #[test]
    fn a_damaged_stream_never_panics(at in 0_usize..500, byte in any::<u8>()) {
        let mut body = STREAM.as_bytes().to_vec();
        if let Some(place) = body.get_mut(at) {
            *place = byte;
        }
        read_all(&body, 17, ProtocolVersion::V0_3);
    }
}
