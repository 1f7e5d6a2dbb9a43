use std::sync::Arc;

use proptest::prelude::*;

use super::*;

const KINDS: [AdapterKind; 5] = [
    AdapterKind::OpenAI,
    AdapterKind::Anthropic,
    AdapterKind::Gemini,
    AdapterKind::BedrockApi,
    AdapterKind::Ollama,
];

fn asked(messages: Vec<Message>, tools: Vec<ToolSpec>) -> ChatRequest {
    let messages = messages.into_iter().map(Arc::new).collect();
    ChatRequest {
        system: "s".into(),
        messages,
        tools: tools.into(),
        max_output_tokens: None,
        temperature: None,
    }
}

fn part() -> impl Strategy<Value = Part> {
    let text = "[ -~ä]{0,12}";
    prop_oneof![
        text.prop_map(|text| Part::Text { text }),
        (text, prop::option::of("[a-z]{1,8}"))
            .prop_map(|(text, signature)| Part::Reasoning { text, signature }),
        ("[a-c]{1,2}", "[a-z]{1,5}", "[ -~]{0,12}")
            .prop_map(|(id, name, arguments)| Part::ToolCall(ToolCall { id, name, arguments })),
        Just(Part::Provider { provider: "anthropic".into(), block: json!({ "type": "redacted_thinking" }) }),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let result = ("[a-c]{1,2}", "[ -~ä]{0,12}", any::<bool>());
    let results = prop::collection::vec(result, 0..4).prop_map(|results| {
        Message::results(results.into_iter().map(|(call_id, content, is_error)| ToolResult {
            call_id,
            content,
            is_error,
        }))
    });
    let assistant = (prop::collection::vec(part(), 0..5), prop::option::of(0_usize..KINDS.len())).prop_map(
        |(parts, author)| Message {
            role: Role::Assistant,
            parts,
            extra: author.map(|author| provider_mark(KINDS[author])),
        },
    );
    prop_oneof!["[ -~ä]{0,12}".prop_map(|text| Message::text(Role::User, text)), assistant, results]
}

fn without_blanks(text: &str) -> String {
    text.split_whitespace().collect()
}

fn calls_of(messages: &[ChatMessage]) -> Vec<(String, String)> {
    let calls = messages.iter().flat_map(|message| message.content.tool_calls());
    calls.map(|call| (call.call_id.clone(), call.fn_name.clone())).collect()
}

proptest! {
    /// Nothing that counts is lost on any wire: texts, calls, results, in their order.
    #[test]
    fn conversations_are_sent_whole(messages in prop::collection::vec(message(), 0..8)) {
        let ours = asked(messages, vec![]);
        for kind in KINDS {
            let sent = request(&ours, kind);
            let calls: Vec<_> = ours.messages.iter().flat_map(|message| message.tool_calls()).map(|call| (call.id.clone(), call.name.clone())).collect();
            prop_assert_eq!(calls_of(&sent.messages), calls);

            let results = ours.messages.iter().flat_map(|message| &message.parts);
            let results: Vec<_> = results.filter_map(|part| if let Part::ToolResult(result) = part { Some(result) } else { None }).collect();
            let responses: Vec<_> = sent.messages.iter().flat_map(|message| message.content.tool_responses()).collect();
            prop_assert_eq!(responses.len(), results.len());
            for (response, result) in responses.iter().zip(results) {
                prop_assert_eq!(&response.call_id, &result.call_id);
                prop_assert!(response.content.ends_with(&result.content));
            }

            let texts: String = ours.messages.iter().map(|message| message.plain_text()).collect();
            let sent_texts: String = sent.messages.iter().flat_map(|message| message.content.texts()).collect();
            // Blank texts of the assistant are left out.
            let (texts, sent_texts) = (without_blanks(&texts), without_blanks(&sent_texts));
            prop_assert_eq!(sent_texts, texts);
            prop_assert!(sent.messages.iter().all(|message| !message.content.is_empty()), "{kind}");
        }
    }

    /// Arguments go out as an object, and an object goes out as it is.
    #[test]
    fn arguments_are_objects(text in ".{0,20}", key in "[a-z]{0,4}", value in any::<i32>()) {
        prop_assert!(replayed(&text).is_object());
        let object = json!({ key: value });
        prop_assert_eq!(replayed(&object.to_string()), object);
    }

    /// The order of the tools on the wire does not depend on the order that they are given in.
    #[test]
    fn tools_are_in_one_order(names in prop::collection::hash_set("[a-z_]{1,6}", 0..8), seed in any::<u64>()) {
        let spec = |name: &String| ToolSpec { name: name.clone(), description: String::new(), schema: json!({}) };
        let mut specs: Vec<ToolSpec> = names.iter().map(spec).collect();
        let names_of = |specs: &[ToolSpec]| tools(specs).iter().map(|tool| tool.name.as_str().to_owned()).collect::<Vec<_>>();
        let first = names_of(&specs);
        let middle = if specs.is_empty() { 0 } else { usize::try_from(seed % 8).unwrap() % specs.len() };
        specs.rotate_left(middle);
        prop_assert_eq!(names_of(&specs), first);
    }
}

#[test]
fn thoughts_go_to_their_own_provider_only() {
    let parts = vec![
        Part::Reasoning { text: "signed".into(), signature: Some("sig".into()) },
        Part::Reasoning { text: "bare".into(), signature: None },
        Part::Text { text: "x".into() },
    ];
    // Whose thoughts they are, who is asked, how many thoughts go out.
    let table = [
        (AdapterKind::Anthropic, AdapterKind::Anthropic, 1),
        (AdapterKind::Anthropic, AdapterKind::OpenAI, 0),
        (AdapterKind::Anthropic, AdapterKind::Gemini, 0),
        (AdapterKind::OpenAI, AdapterKind::OpenAI, 2),
        (AdapterKind::OpenAI, AdapterKind::Anthropic, 0),
    ];
    for (author, kind, expected) in table {
        let message =
            Message { role: Role::Assistant, parts: parts.clone(), extra: Some(provider_mark(author)) };
        let sent = request(&asked(vec![message], vec![]), kind);
        let thoughts: usize =
            sent.messages.iter().map(|message| message.content.reasoning_contents().len()).sum();
        assert_eq!(thoughts, expected, "{author:?} -> {kind:?}");
    }
}

#[test]
fn results_are_messages_as_the_provider_wants_them() {
    let results =
        ["1", "2"].map(|id| ToolResult { call_id: id.into(), content: "x".into(), is_error: false });
    let request_of = |kind| request(&asked(vec![Message::results(results.clone())], vec![]), kind);
    for (kind, count) in [(AdapterKind::Anthropic, 1), (AdapterKind::OpenAI, 1), (AdapterKind::Ollama, 2)] {
        let sent = request_of(kind);
        assert_eq!(sent.messages.len(), count, "{kind:?}");
        assert!(sent.messages.iter().all(|message| message.role == ChatRole::Tool));
    }
}

#[test]
fn bedrocks_sides_alternate() {
    let assistant = |id: &str| {
        let call = ToolCall { id: id.into(), name: "t".into(), arguments: "{}".into() };
        Message { role: Role::Assistant, parts: vec![Part::ToolCall(call)], extra: None }
    };
    let result = |id: &str| {
        Message::results([ToolResult { call_id: id.into(), content: "r".into(), is_error: false }])
    };
    let user = |text: &str| Message::text(Role::User, text);
    let messages =
        vec![user("a"), user("b"), assistant("1"), assistant("2"), result("1"), result("2"), user("c")];
    let sent = request(&asked(messages, vec![]), AdapterKind::BedrockApi).messages;
    let roles: Vec<_> = sent.iter().map(|message| message.role.clone()).collect();
    assert_eq!(roles, [ChatRole::User, ChatRole::Assistant, ChatRole::User]);
    assert_eq!(calls_of(&sent).len(), 2);
    assert_eq!(sent[2].content.tool_responses().len(), 2);
    assert_eq!(sent[2].content.texts(), ["c"]);
}

#[test]
fn a_failed_result_says_so_once() {
    let failed = |content: &str| ToolResult { call_id: "1".into(), content: content.into(), is_error: true };
    assert_eq!(response(&failed("no"), None).content, "Error: no");
    assert_eq!(response(&failed("ERROR: no"), None).content, "ERROR: no");
    assert_eq!(response(&failed("é"), None).content, "Error: é");
}
