use std::collections::BTreeMap;

use genai::chat::{MessageContent, StreamChunk, ToolChunk};
use proptest::prelude::*;

use super::*;

fn turn(kind: AdapterKind) -> Turn {
    Turn::new("p/m".into(), kind, 0)
}

fn piece(id: &str, name: &str, arguments: Value) -> ChatStreamEvent {
    let tool_call =
        Chunk { call_id: id.into(), fn_name: name.into(), fn_arguments: arguments, thought_signatures: None };
    ChatStreamEvent::ToolCallChunk(ToolChunk { tool_call })
}

fn end(reason: Option<&str>) -> ChatStreamEvent {
    let captured_stop_reason = reason.map(|reason| StopReason::from(reason.to_owned()));
    ChatStreamEvent::End(StreamEnd { captured_stop_reason, ..StreamEnd::default() })
}

/// Runs the events to their end.
fn run(turn: &mut Turn, events: Vec<ChatStreamEvent>) -> Result<Vec<ModelEvent>, TurnFault> {
    let mut out = VecDeque::new();
    for event in events {
        if turn.accept(event, &mut out)? {
            break;
        }
    }
    Ok(out.into())
}

fn finish(events: &[ModelEvent]) -> &Completion {
    match events.last() {
        Some(ModelEvent::Finish(completion)) => completion,
        other => panic!("no finish but {other:?}"),
    }
}

/// Each call's pieces, joined, by id.
fn joined(events: &[ModelEvent]) -> BTreeMap<String, String> {
    let mut joined = BTreeMap::new();
    for event in events {
        match event {
            ModelEvent::ToolCallStart { id, .. } => {
                assert!(joined.insert(id.clone(), String::new()).is_none(), "{id} began twice");
            }
            ModelEvent::ToolArgsDelta { id, delta } => {
                joined.get_mut(id).expect("a start comes first").push_str(delta);
            }
            _ => {}
        }
    }
    joined
}

#[test]
fn reasons() {
    type Row = (Vec<ChatStreamEvent>, Option<&'static str>, Result<FinishReason, TurnFault>);
    let reply = || ChatStreamEvent::Chunk(StreamChunk { content: "x".into() });
    let called = || piece("c", "task", Value::String("{}".into()));
    let aborted = |reason: &str| Err(TurnFault::Aborted { reason: reason.into() });
    let table: [Row; 10] = [
        (vec![reply()], Some("stop"), Ok(FinishReason::Stop)),
        (vec![], Some("end_turn"), Ok(FinishReason::Stop)),
        (vec![called()], Some("tool_calls"), Ok(FinishReason::ToolCalls)),
        // Ollama and Gemini say `stop` of a turn with calls.
        (vec![called()], Some("STOP"), Ok(FinishReason::ToolCalls)),
        (vec![reply()], Some("max_tokens"), Ok(FinishReason::Length)),
        (vec![called()], Some("length"), Ok(FinishReason::Length)),
        (vec![], Some("refusal"), Ok(FinishReason::ContentFilter)),
        (vec![reply()], Some("something_new"), Ok(FinishReason::Stop)),
        (vec![], Some("MALFORMED_FUNCTION_CALL"), aborted("MALFORMED_FUNCTION_CALL")),
        (vec![reply()], None, Err(TurnFault::NoStopReason)),
    ];
    for (mut events, reason, expected) in table {
        events.push(end(reason));
        let ended = run(&mut turn(AdapterKind::OpenAI), events).map(|events| finish(&events).reason);
        assert_eq!(ended, expected, "{reason:?}");
    }
}

#[test]
fn calls_without_ids_of_their_own_get_some() {
    let events = vec![
        piece("", "task", Value::String("{\"a\":1}".into())),
        piece("", "task", Value::String("{\"b\":2}".into())),
        piece("", "search", Value::String(String::new())),
        end(Some("stop")),
    ];
    let mut turn = Turn::new("p/m".into(), AdapterKind::OpenAI, 4);
    let events = run(&mut turn, events).unwrap();
    let calls: Vec<_> = finish(&events)
        .message
        .tool_calls()
        .map(|call| (call.id.as_str(), call.arguments.as_str()))
        .collect();
    assert_eq!(calls, [("call_4", "{\"a\":1}"), ("call_5", "{\"b\":2}"), ("call_6", "{}")]);
}

#[test]
fn a_call_begins_when_its_name_is_known() {
    let events = vec![
        piece("call_0", "", Value::String("{\"a".into())),
        piece("real", "task", Value::String("{\"a\":1}".into())),
        end(Some("tool_calls")),
    ];
    let events = run(&mut turn(AdapterKind::OpenAI), events).unwrap();
    assert_eq!(joined(&events), BTreeMap::from([("real".to_owned(), "{\"a\":1}".to_owned())]));
}

#[test]
fn unsigned_thoughts_come_first_and_once() {
    let content = MessageContent::from_parts(vec![ContentPart::ThoughtSignature("s1".into())]);
    let ended = StreamEnd {
        captured_stop_reason: Some(StopReason::from("STOP".to_owned())),
        captured_content: Some(content),
        captured_reasoning_content: Some("hmm".into()),
        ..StreamEnd::default()
    };
    let reply = ChatStreamEvent::Chunk(StreamChunk { content: "x".into() });
    let events = run(&mut turn(AdapterKind::Gemini), vec![reply, ChatStreamEvent::End(ended)]).unwrap();
    let message = &finish(&events).message;
    assert_eq!(
        message.parts,
        [
            Part::Reasoning { text: "hmm".into(), signature: None },
            Part::Reasoning { text: String::new(), signature: Some("s1".into()) },
            Part::Text { text: "x".into() },
        ]
    );
    assert!(message.extra.is_some(), "the thoughts are marked as Gemini's");
}

proptest! {
    /// However the arguments of parallel calls are cut and mixed, the pieces of each call are its arguments.
    #[test]
    fn pieces_are_the_arguments(
        arguments in prop::collection::vec("[{}\":a-zä😀\\\\ ]{0,24}", 1..4),
        cuts in prop::collection::vec((0_usize..4, 0_usize..26), 0..40),
    ) {
        let mut events: Vec<ChatStreamEvent> = Vec::new();
        let mut reached = vec![0; arguments.len()];
        let mut send = |call: usize, to: usize| {
            let text: String = arguments[call].chars().take(to).collect();
            events.push(piece(&format!("id{call}"), "task", Value::String(text)));
        };
        (0..arguments.len()).for_each(|call| send(call, 0));
        for (call, to) in cuts {
            let call = call % arguments.len();
            reached[call] = to.max(reached[call]);
            send(call, reached[call]);
        }
        (0..arguments.len()).for_each(|call| send(call, usize::MAX));
        events.push(end(Some("tool_calls")));

        let events = run(&mut turn(AdapterKind::OpenAI), events).unwrap();
        let expected: BTreeMap<_, _> = arguments.iter().enumerate().map(|(call, text)| (format!("id{call}"), text.clone())).collect();
        prop_assert_eq!(joined(&events), expected);
        for (call, text) in finish(&events).message.tool_calls().zip(&arguments) {
            let whole = if text.is_empty() { "{}" } else { text };
            prop_assert_eq!(&call.arguments, whole);
        }
    }

    /// Whatever a server sends in the name of calls, each id begins once and its pieces are what ends up in the message.
    #[test]
    fn any_pieces_are_reported_consistently(
        pieces in prop::collection::vec(("[ab]?", "[xy]?", "[01]{0,3}"), 0..30),
        whole in any::<bool>(),
    ) {
        let kind = if whole { AdapterKind::Gemini } else { AdapterKind::OpenAI };
        let events = pieces.iter().map(|(id, name, text)| piece(id, name, Value::String(text.clone())));
        let events = run(&mut turn(kind), events.chain([end(Some("stop"))]).collect()).unwrap();
        let reported = joined(&events);
        let stored: BTreeMap<_, _> = finish(&events).message.tool_calls().map(|call| (call.id.clone(), call.arguments.clone())).collect();
        prop_assert_eq!(reported.len(), stored.len());
        for (id, text) in reported {
            let whole = if text.is_empty() { "{}".to_owned() } else { text };
            prop_assert_eq!(stored.get(&id), Some(&whole));
        }
    }
}
