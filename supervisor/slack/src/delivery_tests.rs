//! A model of Slack that fails in every way, and events of an agent in any order: whatever happens, each piece of the answer
//! is shown exactly once.

use std::cell::RefCell;

use caipe_fixtures::slack::Shapes;
use caipe_view::{End, Presentation, ViewEvent};
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::api::Target;
use crate::footer::{Subject, retry};
use crate::settings::Channel;
use crate::transcript::Transcript;

/// The messages of a thread, as Slack would show them.
#[derive(Debug, Default)]
struct Thread {
    messages: Vec<Shown>,
}

#[derive(Debug, Default)]
struct Shown {
    ts: String,
    text: String,
    streaming: bool,
    footers: usize,
}

impl Thread {
    fn new_message(&mut self, streaming: bool) -> &mut Shown {
        let ts = format!("{}.0", self.messages.len() + 1);
        self.messages.push(Shown { ts, streaming, ..Shown::default() });
        self.messages.last_mut().unwrap()
    }

    fn message(&mut self, ts: &str) -> Option<&mut Shown> {
        self.messages.iter_mut().find(|message| message.ts == ts)
    }

    /// Applies a call as Slack does.
    fn apply(&mut self, call: &Call) -> Result<Option<String>, Fault> {
        match call {
            Call::Start { chunks } => {
                let message = self.new_message(true);
                message.append(chunks);
                Ok(Some(message.ts.clone()))
            }
            Call::Append { ts, chunks } => {
                assert!(!chunks.is_empty());
                let message =
                    self.message(ts).filter(|message| message.streaming).ok_or(Fault::StreamEnded)?;
                message.append(chunks);
                Ok(None)
            }
            Call::Stop { ts, chunks, blocks } => {
                let message =
                    self.message(ts).filter(|message| message.streaming).ok_or(Fault::StreamEnded)?;
                message.append(chunks);
                message.streaming = false;
                message.footers += blocks.len();
                Ok(None)
            }
            Call::Post { blocks, .. } => {
                let message = self.new_message(false);
                message.replace(blocks);
                Ok(Some(message.ts.clone()))
            }
            Call::Update { ts, blocks, .. } => {
                let message = self.message(ts).ok_or(Fault::Gone)?;
                if message.streaming {
                    return Err(Fault::Rejected);
                }
                message.replace(blocks);
                Ok(None)
            }
            Call::Delete { ts } => {
                self.messages.retain(|message| message.ts != *ts);
                Ok(None)
            }
        }
    }

    fn text(&self) -> String {
        self.messages.iter().map(|message| message.text.as_str()).collect()
    }
}

impl Shown {
    fn append(&mut self, chunks: &[Value]) {
        for chunk in chunks {
            let text = chunk["text"].as_str().unwrap_or_default();
            assert!(text.chars().count() <= 12_000);
            for field in ["title", "details", "id"] {
                assert!(chunk[field].as_str().unwrap_or_default().chars().count() <= 256);
            }
            self.text.push_str(text);
        }
        assert!(self.text.chars().count() <= 12_000);
    }

    fn replace(&mut self, blocks: &[Value]) {
        assert!(!blocks.is_empty() && blocks.len() <= 50);
        let text = |block: &Value| block["text"].as_str().unwrap_or_default().to_owned();
        self.text = blocks.iter().filter(|block| block["type"] == "markdown").map(text).collect();
        self.footers = blocks.iter().filter(|block| block["type"] == "actions").count();
    }
}

fn desired(transcript: &Transcript) -> Desired {
    let mut desired = transcript.desired();
    if desired.ended {
        desired.footer = retry(&Subject::default(), &Channel::default());
    }
    desired
}

fn text(text: &str, fresh: bool) -> ViewEvent {
    ViewEvent::Text {
        presentation: Presentation::Answer,
        text: text.to_owned(),
        fresh,
        source: String::new(),
        replaces: false,
    }
}

fn replacing(text: &str) -> ViewEvent {
    let (presentation, text, source) = (Presentation::Answer, text.to_owned(), String::new());
    ViewEvent::Text { presentation, text, fresh: true, source, replaces: true }
}

fn saved(delivery: &Delivery) -> String {
    serde_json::to_string(delivery).unwrap()
}

fn restarted(saved: &str) -> Delivery {
    serde_json::from_str::<Delivery>(saved).unwrap().restored()
}

/// What happens between two events.
#[derive(Debug, Clone)]
enum Step {
    Event(String, bool),
    /// A call that succeeds.
    Deliver,
    Fault(Fault),
    /// A call that Slack does, without an answer.
    Lost,
    /// The stream expires.
    Expire,
    Restart,
    /// The bot dies in the middle of a call, which Slack has done or not.
    Crash(bool),
    /// The agent starts its text again.
    Reset(String),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => ("[a-z]{1,8}[ \n]|```rs\n|```\n|\n\n|([a-z]{1,9} ){200}", any::<bool>()).prop_map(|(text, fresh)| Step::Event(text, fresh)),
        6 => Just(Step::Deliver),
        1 => prop_oneof![Just(Fault::StreamEnded), Just(Fault::NoStreams), Just(Fault::Rejected)].prop_map(Step::Fault),
        1 => Just(Step::Lost),
        1 => Just(Step::Expire),
        1 => Just(Step::Restart),
        1 => any::<bool>().prop_map(Step::Crash),
        1 => "([a-z]{1,9} ){1,200}".prop_map(Step::Reset),
    ];
    proptest::collection::vec(step, 1..60)
}

fn visible(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("```"));
    lines.flat_map(str::chars).filter(|c| !c.is_whitespace()).collect()
}

#[test]
#[allow(clippy::too_many_lines, reason = "each kind of step is one arm")]
fn every_piece_of_the_answer_is_shown_once_in_messages_that_slacks_types_accept() {
    let (shapes, target) = (RefCell::new(Shapes::default()), Target::default());
    proptest!(ProptestConfig::with_cases(64), |(steps in steps())| {
        let (mut thread, mut transcript, mut delivery) = (Thread::default(), Transcript::default(), Delivery::default());
        let mut answer = String::new();
        let mut orphans = false;
        for step in steps {
            match step {
                Step::Event(piece, fresh) => {
                    transcript.apply(text(&piece, fresh));
                    if fresh { answer.push('\n'); }
                    answer.push_str(&piece);
                }
                Step::Deliver | Step::Lost | Step::Fault(_) => {
                    let desired = desired(&transcript);
                    let Some(call) = delivery.next(&desired) else { continue };
                    shapes.borrow_mut().add(&target.body(&call));
                    let starts = matches!(call, Call::Start { .. } | Call::Post { .. });
                    let result = match step {
                        Step::Fault(fault) => {
                            if fault == Fault::StreamEnded {
                                thread.messages.iter_mut().for_each(|message| message.streaming = false);
                            }
                            Err(fault)
                        }
                        Step::Lost => {
                            // A message whose creation is not confirmed stays behind.
                            orphans |= starts;
                            drop(thread.apply(&call));
                            Err(Fault::Ambiguous)
                        }
                        _ => thread.apply(&call),
                    };
                    delivery.done(&call, &desired, result);
                }
                Step::Expire => thread.messages.iter_mut().for_each(|message| message.streaming = false),
                Step::Restart => delivery = restarted(&saved(&delivery)),
                Step::Crash(is_done) => {
                    let desired = desired(&transcript);
                    let Some(call) = delivery.next(&desired) else { continue };
                    let mut before = saved(&delivery);
                    if delivery.begin(&call) {
                        before = saved(&delivery);
                    }
                    if is_done {
                        orphans |= matches!(call, Call::Start { .. } | Call::Post { .. });
                        drop(thread.apply(&call));
                    }
                    delivery = restarted(&before);
                }
                Step::Reset(whole) => {
                    answer.clone_from(&whole);
                    transcript.apply(replacing(&whole));
                }
            }
        }
        transcript.apply(ViewEvent::End(End::Completed));
        let desired = desired(&transcript);
        for _ in 0..60 {
            let Some(call) = delivery.next(&desired) else { break };
            shapes.borrow_mut().add(&target.body(&call));
            let result = thread.apply(&call);
            delivery.done(&call, &desired, result);
        }
        prop_assert!(delivery.is_over());
        if delivery.is_abandoned() || orphans {
            return Ok(());
        }
        let expected = if answer.trim().is_empty() { "_The agent gave no answer._".to_owned() } else { answer };
        prop_assert_eq!(visible(&thread.text()), visible(&expected));
        prop_assert!(thread.messages.iter().all(|message| !message.streaming), "{thread:?}");
        prop_assert_eq!(thread.messages.iter().map(|message| message.footers).sum::<usize>(), 1);
    });
    shapes.borrow().check().unwrap();
}

#[test]
fn a_restart_continues_the_stream_and_a_restart_in_a_call_replaces_the_message() {
    let mut transcript = Transcript::default();
    transcript.apply(text("one ", true));
    let mut delivery = Delivery::default();
    let wanted = desired(&transcript);
    let start = delivery.next(&wanted).unwrap();
    delivery.done(&start, &wanted, Ok(Some("1.0".to_owned())));
    transcript.apply(text("two ", false));
    let wanted = desired(&transcript);
    let mut again = restarted(&saved(&delivery));
    let next = again.next(&wanted).unwrap();
    assert!(
        matches!(&next, Call::Append { ts, chunks } if ts == "1.0" && chunks[0]["text"] == "two "),
        "{next:?}"
    );
    assert!(again.begin(&next));
    let mut crashed = restarted(&saved(&again));
    assert!(matches!(crashed.next(&wanted), Some(Call::Stop { .. })));
    transcript.apply(replacing("other "));
    assert!(matches!(delivery.next(&desired(&transcript)), Some(Call::Stop { .. })));
    assert!(delivery.is_whole());
}

#[test]
fn only_the_text_of_its_source_is_replaced() {
    let mut transcript = Transcript::default();
    let part = |text: &str, source: &str, replaces| ViewEvent::Text {
        presentation: Presentation::Answer,
        text: text.to_owned(),
        fresh: true,
        source: source.to_owned(),
        replaces,
    };
    for event in [part("one", "a", false), part("two", "b", false), part("three", "a", true)] {
        transcript.apply(event);
    }
    transcript.apply(ViewEvent::End(End::Completed));
    assert_eq!(transcript.desired().pages, ["\n\ntwo\n\nthree"]);
}

#[test]
fn a_question_without_a_text_before_it_has_no_empty_message() {
    let mut transcript = Transcript::default();
    transcript.apply(ViewEvent::End(End::InputRequired));
    let mut delivery = Delivery::default();
    assert_eq!(delivery.next(&transcript.desired()), None);
    assert!(delivery.is_over());
}
