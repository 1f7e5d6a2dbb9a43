//! Whatever 0.3 can say survives the way through the canonical model and back.

use caipe_a2a::model::{self, Metadata};
use caipe_a2a::v03::{self, Artifact, File, Message, Part, PartKind, Role, TaskState, TaskStatus};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((name(), inner), 0..4).prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// Names that mean something to a careless converter, and others.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec!["kind", "role", "state", "value", "data_part_compat", "text", "final"])
            .prop_map(str::to_owned),
        "[a-zA-Z_]{0,6}",
    ]
}

pub(crate) fn object() -> impl Strategy<Value = Metadata> {
    vec((name(), json()), 0..4).prop_map(|entries| entries.into_iter().collect())
}

fn part() -> impl Strategy<Value = Part> {
    let text = "\\PC{0,12}".prop_map(|text| Part {
        kind: Some(PartKind::Text),
        text: Some(text),
        ..Part::default()
    });
    let file = (option::of("[a-z.]{0,5}"), option::of("[a-z/]{0,5}"), any::<bool>(), "[A-Za-z0-9+/=:]{0,9}");
    let file = file.prop_map(|(name, mime_type, inline, content)| {
        let (bytes, uri) = if inline { (Some(content), None) } else { (None, Some(content)) };
        let file = Some(File { name, mime_type, bytes, uri });
        Part { kind: Some(PartKind::File), file, ..Part::default() }
    });
    let data =
        object().prop_map(|data| Part { kind: Some(PartKind::Data), data: Some(data), ..Part::default() });
    (prop_oneof![text, file, data], option::of(object()))
        .prop_map(|(part, metadata)| Part { metadata, ..part })
}

fn message() -> impl Strategy<Value = Message> {
    (
        any::<bool>(),
        vec(part(), 0..4),
        "[a-z0-9-]{0,8}",
        option::of("[a-z0-9]{0,4}"),
        option::of("[a-z0-9]{0,4}"),
        vec("[a-z0-9]{0,4}", 0..3),
        vec("[a-z:/]{0,8}", 0..3),
        option::of(object()),
    )
        .prop_map(
            |(user, parts, message_id, task_id, context_id, reference_task_ids, extensions, metadata)| {
                Message {
                    kind: Some(v03::MessageTag::Tag),
                    role: if user { Role::User } else { Role::Agent },
                    parts,
                    message_id,
                    task_id,
                    context_id,
                    reference_task_ids,
                    extensions,
                    metadata,
                }
            },
        )
}

fn state() -> impl Strategy<Value = TaskState> {
    use TaskState::{
        AuthRequired, Canceled, Completed, Failed, InputRequired, Rejected, Submitted, Unknown, Working,
    };
    prop::sample::select(vec![
        AuthRequired,
        Canceled,
        Completed,
        Failed,
        InputRequired,
        Rejected,
        Submitted,
        Unknown,
        Working,
    ])
}

fn status() -> impl Strategy<Value = TaskStatus> {
    (state(), option::of(message()), option::of(0_i64..4_000_000_000_000)).prop_map(
        |(state, message, millis)| TaskStatus {
            state,
            message,
            timestamp: millis.map(|millis| jiff::Timestamp::from_millisecond(millis).unwrap()),
        },
    )
}

fn artifact() -> impl Strategy<Value = Artifact> {
    (
        "[a-z0-9]{1,4}",
        option::of("[a-z_]{0,8}"),
        option::of(".{0,8}"),
        vec(part(), 0..3),
        option::of(object()),
    )
        .prop_map(|(artifact_id, name, description, parts, metadata)| Artifact {
            artifact_id,
            name,
            description,
            parts,
            metadata,
            extensions: Vec::new(),
        })
}

/// Events with what their writer always says: `append` and `lastChunk`, and `final` as the state has it.
pub(crate) fn event() -> impl Strategy<Value = v03::Event> {
    let task = (vec(artifact(), 0..3), vec(message(), 0..3), status(), option::of(object()));
    let task = task.prop_map(|(artifacts, history, status, metadata)| {
        let (kind, id, context_id) = (Some(v03::TaskTag::Tag), "t".to_owned(), "c".to_owned());
        v03::Event::Task(Box::new(v03::Task { kind, id, context_id, status, artifacts, history, metadata }))
    });
    let update = (status(), option::of(object())).prop_map(|(status, metadata)| {
        v03::Event::StatusUpdate(v03::StatusUpdate {
            kind: Some(v03::StatusUpdateTag::Tag),
            task_id: "t".to_owned(),
            context_id: "c".to_owned(),
            is_final: model::TaskState::from(status.state).ends_stream(),
            status,
            metadata,
        })
    });
    let chunk = (artifact(), any::<bool>(), any::<bool>(), option::of(object()));
    let chunk = chunk.prop_map(|(artifact, append, last_chunk, metadata)| {
        v03::Event::ArtifactUpdate(v03::ArtifactUpdate {
            kind: Some(v03::ArtifactUpdateTag::Tag),
            task_id: "t".to_owned(),
            context_id: "c".to_owned(),
            append: Some(append),
            last_chunk: Some(last_chunk),
            artifact,
            metadata,
        })
    });
    prop_oneof![task, update, chunk, message().prop_map(|message| v03::Event::Message(Box::new(message)))]
}

fn push_config() -> impl Strategy<Value = v03::PushConfig> {
    let authentication = (vec("[A-Z][a-z]{0,4}", 0..3), option::of(".{0,5}"));
    let authentication =
        authentication.prop_map(|(schemes, credentials)| v03::Authentication { schemes, credentials });
    (option::of("[a-z]{1,3}"), "[a-z:/]{0,8}", option::of(".{0,5}"), option::of(authentication))
        .prop_map(|(id, url, token, authentication)| v03::PushConfig { id, url, token, authentication })
}

pub(crate) fn send_params() -> impl Strategy<Value = v03::SendParams> {
    let configuration = (
        vec("[a-z/]{0,5}", 0..3),
        option::of(any::<bool>()),
        option::of(0_u32..5),
        option::of(push_config()),
    );
    let configuration = configuration.prop_map(
        |(accepted_output_modes, blocking, history_length, push_notification_config)| v03::Configuration {
            accepted_output_modes,
            blocking,
            history_length,
            push_notification_config,
        },
    );
    (message(), option::of(configuration), option::of(object()))
        .prop_map(|(message, configuration, metadata)| v03::SendParams { message, configuration, metadata })
}

/// What 1.0 cannot say, and the default that it says instead: of several schemes the first, without a scheme no
/// authentication, and waiting unless told otherwise.
fn through_1_0(mut params: v03::SendParams) -> v03::SendParams {
    if let Some(configuration) = &mut params.configuration {
        configuration.blocking.get_or_insert(true);
        if let Some(push) = &mut configuration.push_notification_config {
            push.authentication.take_if(|authentication| authentication.schemes.is_empty());
            if let Some(authentication) = &mut push.authentication {
                authentication.schemes.truncate(1);
            }
        }
    }
    params
}

/// The JSON of an object, read as another type.
fn reread<T: DeserializeOwned>(written: &impl Serialize) -> T {
    serde_json::from_str(&serde_json::to_string(written).unwrap()).unwrap()
}

proptest! {
    #[test]
    fn parameters_of_0_3_survive_1_0(params in send_params()) {
        let new = model::SendMessageRequest::from(params.clone());
        let json = serde_json::to_string(&new).unwrap();
        let read: model::SendMessageRequest = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(&read, &new);
        prop_assert_eq!(reread::<v03::SendParams>(&v03::serialize::send_params(&read)), through_1_0(params));
    }

    #[test]
    fn a_message_of_0_3_survives_1_0(message in message()) {
        let new = model::Message::from(message.clone());
        let json = serde_json::to_string(&new).unwrap();
        let read: model::Message = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(&read, &new);
        prop_assert_eq!(reread::<v03::Message>(&v03::serialize::message(&read)), message);
    }

    #[test]
    fn an_event_of_0_3_survives_1_0(event in event()) {
        let new = model::Event::from(event.clone());
        let json = serde_json::to_string(&new).unwrap();
        let read: model::Event = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(&read, &new);
        prop_assert_eq!(reread::<v03::Event>(&v03::serialize::event(&read)), event);
    }

    #[test]
    fn data_of_any_shape_survives_0_3(value in json(), metadata in option::of(object())) {
        // Without the mark of ours and the SDKs, which a user's own entry of that name equals on data that is no object.
        let metadata = metadata.map(|mut metadata| { metadata.remove("data_part_compat"); metadata });
        let metadata = metadata.filter(|metadata| !metadata.is_empty());
        let part = model::Part { metadata, ..model::Part::data(value) };
        let message = model::Message::new(model::Role::User, "m", vec![part]);
        let read = reread::<v03::Message>(&v03::serialize::message(&message));
        prop_assert_eq!(model::Message::from(read), message);
    }

    #[test]
    fn arbitrary_text_never_panics_a_decoder(text in "\\PC{0,200}") {
        let _ = serde_json::from_str::<model::Event>(&text);
        let _ = serde_json::from_str::<v03::Event>(&text);
        let _ = caipe_a2a::card::parse(text.as_bytes());
    }

    #[test]
    fn arbitrary_json_never_panics_a_decoder(value in json()) {
        let text = value.to_string();
        let _ = serde_json::from_str::<model::Event>(&text);
        let _ = serde_json::from_str::<v03::Event>(&text).map(model::Event::from);
        let _ = serde_json::from_str::<v03::SendParams>(&text).map(model::SendMessageRequest::from);
        let _ = caipe_a2a::card::parse(text.as_bytes());
    }
}
