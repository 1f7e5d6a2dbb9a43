use proptest::prelude::*;

use super::*;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

fn read_all(body: &[u8], size: usize, version: ProtocolVersion) -> Vec<Result<StreamEvent, ClientError>> {
    let chunks: Vec<_> = body.chunks(size.max(1)).map(|chunk| Ok(Bytes::copy_from_slice(chunk))).collect();
    let events = read(stream::iter(chunks).boxed(), version, Duration::from_secs(1), 10_000);
    runtime().block_on(events.collect())
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
    let events = read(silent.boxed(), ProtocolVersion::V1_0, Duration::from_secs(1), 1000);
    let (events, waited) = runtime().block_on(async {
        let start = tokio::time::Instant::now();
        (events.collect::<Vec<_>>().await, start.elapsed())
    });
    assert!(matches!(&events[..], [Err(ClientError::Idle(_))]), "{events:?}");
    assert_eq!(waited, Duration::from_millis(5 * 900 + 1000));
}

#[test]
fn an_event_without_end_is_given_up() {
    let endless = stream::repeat_with(|| Ok(Bytes::from_static(b"data: xxxxxxxxxxxxxxxxxxxxxxxxxxxx\n")));
    let events = read(endless.boxed(), ProtocolVersion::V1_0, Duration::from_secs(1), 1000);
    let events: Vec<_> = runtime().block_on(events.collect());
    assert!(matches!(&events[..], [Err(ClientError::TooLarge(1000))]), "{events:?}");
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
