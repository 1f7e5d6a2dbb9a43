//! What Slack sends: messages, presses of buttons, submitted forms and commands. Pure.

use serde_json::Value;

/// Something that happened in Slack.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Incoming {
    Message(Message),
    Change(Change),
    Action(Box<Action>),
    Submission(Submission),
    Command(Command),
    /// A person opened a conversation with the bot.
    ThreadStarted {
        channel: String,
        thread: String,
    },
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) team: String,
    pub(crate) channel: String,
    pub(crate) user: String,
    /// The id and the name of the bot that wrote it.
    pub(crate) bot: Option<(String, String)>,
    pub(crate) text: String,
    pub(crate) ts: String,
    pub(crate) thread: Option<String>,
    pub(crate) is_mention: bool,
    pub(crate) is_direct: bool,
    /// Text of blocks and attachments, as JSON; for alerts.
    pub(crate) details: String,
    pub(crate) files: Vec<Attachment>,
}

/// A file that a person attached to a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Attachment {
    pub(crate) name: String,
    pub(crate) media_type: String,
    pub(crate) size: usize,
    pub(crate) url: String,
}

impl Attachment {
    /// The files of a message. A deleted one has no address, and one of another program is not in Slack.
    pub(crate) fn of(message: &Value) -> Vec<Self> {
        let files = message["files"].as_array().into_iter().flatten().take(MOST_ATTACHMENTS);
        let read = |file: &Value| Self {
            name: text(file, "/name"),
            media_type: text(file, "/mimetype").to_ascii_lowercase(),
            size: file["size"].as_u64().and_then(|size| size.try_into().ok()).unwrap_or_default(),
            url: text(file, "/url_private"),
        };
        files.map(read).collect()
    }
}

impl Message {
    /// The thread of the answer.
    pub(crate) fn answer_thread(&self) -> &str {
        self.thread.as_deref().unwrap_or(&self.ts)
    }
}

/// A message that its writer has edited or deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) channel: String,
    pub(crate) user: String,
    pub(crate) ts: String,
    pub(crate) thread: String,
    /// The time of the edit; none for a deletion.
    pub(crate) edited: Option<String>,
}

impl Change {
    /// The change that an event reports. Slack also reports previews of links as changes, and leaves a placeholder where a
    /// message with replies was.
    fn of(event: &Value) -> Option<Self> {
        let (message, previous) = (event.get("message"), event.get("previous_message")?);
        let edited = match text(event, "/subtype").as_str() {
            "message_deleted" => None,
            "message_changed" if text(event, "/message/subtype") == "tombstone" => None,
            "message_changed" => {
                let edited = text(event, "/message/edited/ts");
                let is_same = text(previous, "/text") == message.map(|message| text(message, "/text"))?;
                Some(edited).filter(|edited| !edited.is_empty() && !is_same).map(Some)?
            }
            _ => return None,
        };
        let (ts, thread) = (text(previous, "/ts"), text(previous, "/thread_ts"));
        let thread = if thread.is_empty() { ts.clone() } else { thread };
        Some(Self { channel: text(event, "/channel"), user: text(previous, "/user"), ts, thread, edited })
    }
}

/// The press of a button.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Action {
    pub(crate) id: String,
    /// The value of the button.
    pub(crate) value: String,
    pub(crate) user: String,
    pub(crate) team: String,
    pub(crate) channel: String,
    pub(crate) message: String,
    pub(crate) thread: String,
    pub(crate) trigger: String,
}

/// A submitted modal.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Submission {
    pub(crate) callback: String,
    pub(crate) metadata: String,
    pub(crate) values: Value,
    pub(crate) user: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) team: String,
    pub(crate) text: String,
    pub(crate) user: String,
    pub(crate) channel: String,
    /// A unique id, because Slack gives commands none.
    pub(crate) trigger: String,
    /// Where a response can be sent for half an hour.
    pub(crate) response_url: String,
}

/// The most files of a message that are read. Slack allows no more than ten in its own clients.
const MOST_ATTACHMENTS: usize = 20;

/// Kinds of messages that say something new; others report an edit, a deletion, a join and the like.
const SUBTYPES: [&str; 4] = ["", "file_share", "thread_broadcast", "bot_message"];

fn text(value: &Value, path: &str) -> String {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
}

impl Incoming {
    /// An event of the Events API; `None` if the bot does not react to its kind.
    pub(crate) fn of_event(payload: &Value) -> Option<Self> {
        let event = payload.get("event")?;
        let kind = text(event, "/type");
        if kind == "assistant_thread_started" {
            let thread = event.get("assistant_thread")?;
            return Some(Self::ThreadStarted {
                channel: text(thread, "/channel_id"),
                thread: text(thread, "/thread_ts"),
            });
        }
        if kind == "message"
            && let Some(change) = Change::of(event)
        {
            return Some(Self::Change(change));
        }
        let is_mention = kind == "app_mention";
        if (!is_mention && kind != "message") || !SUBTYPES.contains(&text(event, "/subtype").as_str()) {
            return None;
        }
        let (id, name) = (text(event, "/bot_id"), text(event, "/username"));
        let bot = (!id.is_empty()).then(|| {
            let profile = text(event, "/bot_profile/name");
            (id, if name.is_empty() { profile } else { name })
        });
        let more =
            ["blocks", "attachments"].into_iter().filter_map(|key| event.get(key)).map(Value::to_string);
        let details: String = more.collect::<Vec<_>>().join("\n");
        Some(Self::Message(Message {
            team: text(payload, "/team_id"),
            channel: text(event, "/channel"),
            user: text(event, "/user"),
            bot,
            text: text(event, "/text"),
            ts: text(event, "/ts"),
            thread: Some(text(event, "/thread_ts")).filter(|thread| !thread.is_empty()),
            is_mention,
            // Some senders leave the type of the channel out; the id of a direct message begins with D.
            is_direct: event["channel_type"] == "im" || text(event, "/channel").starts_with('D'),
            details,
            files: Attachment::of(event),
        }))
        .filter(|incoming| matches!(incoming, Self::Message(message) if !message.channel.is_empty() && !message.ts.is_empty()))
    }

    /// The press of a button, or a submitted modal.
    pub(crate) fn of_interaction(payload: &Value) -> Option<Self> {
        let user = text(payload, "/user/id");
        match text(payload, "/type").as_str() {
            "block_actions" => {
                let message = text(payload, "/container/message_ts");
                let thread = text(payload, "/message/thread_ts");
                let thread = if thread.is_empty() { text(payload, "/container/thread_ts") } else { thread };
                Some(Self::Action(Box::new(Action {
                    id: text(payload, "/actions/0/action_id"),
                    value: text(payload, "/actions/0/value"),
                    user,
                    team: text(payload, "/team/id"),
                    channel: text(payload, "/channel/id"),
                    thread: if thread.is_empty() { message.clone() } else { thread },
                    message,
                    trigger: text(payload, "/trigger_id"),
                })))
            }
            "view_submission" => Some(Self::Submission(Submission {
                callback: text(payload, "/view/callback_id"),
                metadata: text(payload, "/view/private_metadata"),
                values: payload.pointer("/view/state/values").cloned().unwrap_or_default(),
                user,
            })),
            _ => None,
        }
    }

    pub(crate) fn of_command(payload: &Value) -> Self {
        Self::Command(Command {
            team: text(payload, "/team_id"),
            text: text(payload, "/text"),
            user: text(payload, "/user_id"),
            channel: text(payload, "/channel_id"),
            trigger: text(payload, "/trigger_id"),
            response_url: text(payload, "/response_url"),
        })
    }

    /// What identifies it over redeliveries. A mention arrives as two events with the same message.
    pub(crate) fn key(&self) -> String {
        match self {
            Self::Message(message) => format!("message {} {}", message.channel, message.ts),
            Self::Change(change) => {
                let edited = change.edited.as_deref().unwrap_or("deleted");
                format!("change {} {} {edited}", change.channel, change.ts)
            }
            Self::Action(action) => format!("action {} {}", action.trigger, action.id),
            Self::Submission(submission) => {
                let digest = aws_lc_rs::digest::digest(
                    &aws_lc_rs::digest::SHA256,
                    format!("{}{}{}", submission.metadata, submission.values, submission.user).as_bytes(),
                );
                format!("submission {} {:?}", submission.callback, digest)
            }
            Self::Command(command) => format!("command {}", command.trigger),
            Self::ThreadStarted { channel, thread } => format!("started {channel} {thread}"),
        }
    }
}
