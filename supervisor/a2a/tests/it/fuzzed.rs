//! The entry points of the fuzz targets (`fuzz/`), fed by proptest: near misses of real objects, and noise.

use caipe_a2a::fuzzing;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::vectors::vectors;

/// Everything that the SDKs write, as bytes to be changed.
fn seeds() -> Vec<String> {
    let vectors = vectors();
    let mut seeds: Vec<String> = vectors.objects().map(Value::to_string).collect();
    for (method, version) in [("message/send", "v03"), ("SendMessage", "v1")] {
        for params in vectors.params(version) {
            let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            seeds.push(request.to_string());
        }
    }
    seeds
}

/// A change of some bytes: cut, doubled, or written over by what means something in JSON.
fn changed() -> impl Strategy<Value = Vec<u8>> {
    let patch = prop_oneof![
        prop::sample::select(vec!["null", "{}", "[]", "\"\"", "-1", "1e99", ",", "\"", "}", "\\u0000", "[["])
            .prop_map(|text| text.as_bytes().to_vec()),
        vec(any::<u8>(), 0..3),
    ];
    let edits = vec((any::<prop::sample::Index>(), 0_usize..6, patch), 0..4);
    (prop::sample::select(seeds()), edits).prop_map(|(seed, edits)| {
        let mut bytes = seed.into_bytes();
        for (place, gone, patch) in edits {
            let start = place.index(bytes.len() + 1);
            let end = (start + gone).min(bytes.len());
            bytes.splice(start..end, patch);
        }
        bytes
    })
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![4 => changed(), 1 => vec(any::<u8>(), 0..200)]
}

fn with_first(first: u8, rest: &[u8]) -> Vec<u8> {
    [&[first], rest].concat()
}

proptest! {
    #[test]
    fn requests(first: u8, body in bytes()) {
        fuzzing::request(&with_first(first, &body));
    }

    #[test]
    fn streams(first: u8, events in vec(bytes(), 0..4), end in "\r?\n\r?\n") {
        let events: Vec<_> = events.iter().flat_map(|event| [&b"id: 1\ndata: "[..], event, end.as_bytes()].concat()).collect();
        fuzzing::sse(&with_first(first, &events));
    }

    #[test]
    fn cards(data in bytes()) {
        fuzzing::card(&data);
    }

    #[test]
    fn objects(data in bytes()) {
        fuzzing::codec(&data);
    }
}
