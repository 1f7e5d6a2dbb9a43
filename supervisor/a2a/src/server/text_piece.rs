//! The pieces of a text that grows event by event. They differ in their text only, so what they share is kept and encoded
//! once.

use std::sync::{Arc, OnceLock};

use bytes::{BufMut, BytesMut};
use serde_json::Error;

use super::encoding::{Encoding, encode};
use crate::model::{Content, Event, Part, TaskArtifactUpdateEvent};

/// One piece.
#[derive(Debug)]
pub(super) struct TextPiece {
    shared: Arc<TextTemplate>,
    text: Box<str>,
}

/// What the pieces of a text share: all but the text.
#[derive(Debug)]
pub struct TextTemplate {
    /// The event, with an empty text.
    update: TaskArtifactUpdateEvent,
    frames: [OnceLock<Frame>; Encoding::COUNT],
}

/// The JSON of the event before the text and after it.
#[derive(Debug)]
struct Frame {
    before: Box<[u8]>,
    after: Box<[u8]>,
}

impl TextPiece {
    pub(super) fn new(shared: Arc<TextTemplate>, text: &str) -> Self {
        Self { shared, text: text.into() }
    }

    /// The piece that an event is: bare text appended to an artifact, and not the last. The event loses its text then. `known`
    /// is the template of the piece before it, and afterwards that of this one.
    pub(super) fn of(event: &mut Event, known: &mut Option<Arc<TextTemplate>>) -> Option<Self> {
        let Event::ArtifactUpdate(update) = event else { return None };
        let [part] = update.artifact.parts.as_mut_slice() else { return None };
        if !update.append || update.last_chunk || !part.is_bare_text() {
            return None;
        }
        let Content::Text(text) = &mut part.content else { return None };
        let text = std::mem::take(text).into_boxed_str();
        let shared = match known.take() {
            Some(shared) if shared.update == *update => shared,
            _ => Arc::new(TextTemplate::new(update.clone())),
        };
        *known = Some(Arc::clone(&shared));
        Some(Self { shared, text })
    }

    pub(super) const fn template(&self) -> &Arc<TextTemplate> {
        &self.shared
    }

    /// The event with an empty text.
    pub(super) fn update(&self) -> &TaskArtifactUpdateEvent {
        &self.shared.update
    }

    pub(super) const fn text(&self) -> &str {
        &self.text
    }

    /// The event.
    pub(super) fn event(&self) -> Event {
        self.shared.event(&self.text)
    }

    /// Writes the event's JSON.
    pub(super) fn write(&self, encoding: Encoding, out: &mut BytesMut) -> Result<(), Error> {
        let frame = self.shared.frame(encoding)?;
        out.reserve(frame.before.len() + self.text.len() + frame.after.len() + 2);
        out.put_slice(&frame.before);
        serde_json::to_writer(out.writer(), &*self.text)?;
        out.put_slice(&frame.after);
        Ok(())
    }
}

impl TextTemplate {
    /// The template of the pieces that follow this event with the same labels, if the event is a piece of text.
    pub fn of(event: &Event) -> Option<Arc<Self>> {
        let mut known = None;
        TextPiece::of(&mut event.clone(), &mut known)?;
        known
    }

    fn new(update: TaskArtifactUpdateEvent) -> Self {
        Self { update, frames: Default::default() }
    }

    /// The piece with this text.
    pub fn event(&self, text: &str) -> Event {
        Event::ArtifactUpdate(self.with(text))
    }

    fn with(&self, text: &str) -> TaskArtifactUpdateEvent {
        let mut update = self.update.clone();
        update.artifact.parts = vec![Part::text(text)];
        update
    }

    fn frame(&self, encoding: Encoding) -> Result<&Frame, Error> {
        let cell = &self.frames[encoding as usize];
        if let Some(frame) = cell.get() {
            return Ok(frame);
        }
        let frame = self.encoded(encoding)?;
        Ok(cell.get_or_init(|| frame))
    }

    /// Encodes the event with a text that it does not contain otherwise, and divides the result there.
    fn encoded(&self, encoding: Encoding) -> Result<Frame, Error> {
        let empty = encode(&Event::ArtifactUpdate(self.update.clone()), encoding)?;
        let mut text = "#".to_owned();
        while find(&empty, &text).is_some() {
            text.push('#');
        }
        let json = encode(&self.event(&text), encoding)?;
        let quoted = format!("\"{text}\"");
        let at = find(&json, &quoted).unwrap_or(json.len());
        let (before, rest) = json.split_at(at);
        let after = rest.get(quoted.len()..).unwrap_or_default();
        Ok(Frame { before: before.into(), after: after.into() })
    }
}

fn find(json: &[u8], text: &str) -> Option<usize> {
    json.windows(text.len()).position(|window| window == text.as_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::model::Artifact;

    fn update(artifact: &str, text: &str, label: &str) -> TaskArtifactUpdateEvent {
        let mut artifact = Artifact::new(artifact, "streaming_result", vec![Part::text(text)]);
        artifact.description = Some(label.to_owned());
        artifact.metadata = json!({"label": label}).as_object().cloned();
        TaskArtifactUpdateEvent {
            task_id: "t".to_owned(),
            context_id: "c".to_owned(),
            artifact,
            append: true,
            last_chunk: false,
            metadata: None,
        }
    }

    proptest! {
        #[test]
        fn a_piece_is_written_as_its_event(texts in proptest::collection::vec(any::<String>(), 1..5), label in "[#\"a]{0,3}") {
            let mut known = None;
            for text in &texts {
                let event = Event::ArtifactUpdate(update("a", text, &label));
                let piece = TextPiece::of(&mut event.clone(), &mut known).unwrap();
                prop_assert_eq!(&piece.event(), &event);
                for encoding in [Encoding::V0_3, Encoding::V1_0, Encoding::RestV0_3] {
                    let mut json = BytesMut::new();
                    piece.write(encoding, &mut json).unwrap();
                    prop_assert_eq!(json.to_vec(), encode(&event, encoding).unwrap());
                }
            }
        }
    }

    #[test]
    fn only_pieces_that_differ_in_their_text_share() {
        let mut known = None;
        let mut shared = |event: TaskArtifactUpdateEvent| {
            TextPiece::of(&mut Event::ArtifactUpdate(event), &mut known).map(|piece| piece.shared)
        };
        let first = shared(update("a", "one ", "x")).unwrap();
        assert!(Arc::ptr_eq(&first, &shared(update("a", "two", "x")).unwrap()));
        for other in [update("b", "two", "x"), update("a", "two", "y")] {
            assert!(!Arc::ptr_eq(&first, &shared(other).unwrap()));
        }
        assert!(shared(TaskArtifactUpdateEvent { last_chunk: true, ..update("a", "two", "x") }).is_none());
        assert!(shared(TaskArtifactUpdateEvent { append: false, ..update("a", "two", "x") }).is_none());
        let mut data = update("a", "two", "x");
        data.artifact.parts.push(Part::data(json!(1)));
        assert!(shared(data).is_none());
    }
}
