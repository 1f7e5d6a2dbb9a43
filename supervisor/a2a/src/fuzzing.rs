//! The entry points of the fuzz targets and of property tests. Each one panics on a fault.

use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};

pub use crate::card::fuzz::card;
pub use crate::server::fuzz::request;

use crate::client::sse;
use crate::model;
use crate::v03;
use crate::version::ProtocolVersion;

/// A server's stream as a client reads it, in chunks of a size that the first byte says.
pub fn sse(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let size = usize::from(first >> 1).max(1);
    let version = if first & 1 == 0 { ProtocolVersion::V0_3 } else { ProtocolVersion::V1_0 };
    let chunks: Vec<_> = rest.chunks(size).map(|chunk| Ok(Bytes::copy_from_slice(chunk))).collect();
    let most = rest.len();
    let limits = sse::Limits::new(most, Duration::from_secs(5));
    let events = sse::read(stream::iter(chunks).boxed(), version, limits);
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_time().build() else { return };
    let read = runtime.block_on(events.collect::<Vec<_>>());
    let faults = read.iter().filter(|event| event.is_err()).count();
    assert!(faults <= 1 && read.iter().rev().skip(1).all(Result::is_ok), "a stream goes on after its fault");
    assert!(read.len() <= most + 1, "more events than bytes");
}

/// An object of either version: what is read can be written, read again, and converted without loss.
pub fn codec(data: &[u8]) {
    if let Ok(event) = serde_json::from_slice::<model::Event>(data) {
        let written = text(&event);
        let again: model::Event = read(&written);
        assert_eq!(text(&again), written, "1.0 differs when read again");
        to_0_3_and_back(&event);
    }
    if let Ok(event) = serde_json::from_slice::<v03::Event>(data) {
        let new = model::Event::from(event);
        assert_eq!(to_0_3_and_back(&new), known(new), "0.3 lost something on its way through 1.0");
    }
    if let Ok(params) = serde_json::from_slice::<v03::SendParams>(data) {
        let new = model::SendMessageRequest::from(params);
        let again: v03::SendParams = read(&text(&v03::serialize::send_params(&new)));
        let again = model::SendMessageRequest::from(again);
        assert_eq!(
            known(again.message.into()),
            known(new.message.into()),
            "0.3 lost something on its way through 1.0"
        );
    }
    if let Ok(body) = serde_json::from_slice::<serde_json::Value>(data) {
        v03::rest::create_push_config_to_1_0(body.clone());
        v03::rest::send_request_to_1_0(body);
    }
}

/// The event after a conversion to 0.3 and back, which a second round does not change.
fn to_0_3_and_back(event: &model::Event) -> model::Event {
    let written = text(&v03::serialize::event(event));
    let back = model::Event::from(read::<v03::Event>(&written));
    assert_eq!(text(&v03::serialize::event(&back)), written, "0.3 differs after a round through 1.0");
    back
}

/// An event without the parts that say nothing, which 0.3 leaves out.
fn known(mut event: model::Event) -> model::Event {
    let status = |status: &mut model::TaskStatus| status.message.iter_mut().for_each(without_unknown);
    match &mut event {
        model::Event::Message(message) => without_unknown(message),
        model::Event::StatusUpdate(update) => status(&mut update.status),
        model::Event::ArtifactUpdate(update) => keep_known(&mut update.artifact.parts),
        model::Event::Task(task) => {
            status(&mut task.status);
            task.history.iter_mut().for_each(without_unknown);
            task.artifacts.iter_mut().for_each(|artifact| keep_known(&mut artifact.parts));
        }
    }
    event
}

fn without_unknown(message: &mut model::Message) {
    keep_known(&mut message.parts);
}

fn keep_known(parts: &mut Vec<model::Part>) {
    parts.retain(|part| part.content != model::Content::Unknown);
}

fn text<T: serde::Serialize>(value: &T) -> String {
    match serde_json::to_string(value) {
        Ok(text) => text,
        Err(error) => unreachable!("what was read cannot be written: {error}"),
    }
}

fn read<T: serde::de::DeserializeOwned>(text: &str) -> T {
    match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => unreachable!("what was written cannot be read: {error}: {text}"),
    }
}
