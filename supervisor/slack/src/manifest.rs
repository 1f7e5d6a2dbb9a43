//! The manifest of the Slack app.

use serde_json::{Value, json};

/// The scopes of the bot token.
const SCOPES: [&str; 14] = [
    // messages that mention the bot
    "app_mentions:read",
    // the status and suggested prompts of conversations with the bot
    "assistant:write",
    // the thread of a mention in public channels
    "channels:history",
    // answers
    "chat:write",
    // /caipe
    "commands",
    // the files of a message to the bot
    "files:read",
    // the files of an answer
    "files:write",
    // the thread of a mention in private channels
    "groups:history",
    // direct messages
    "im:history",
    // direct messages
    "im:read",
    // direct messages
    "im:write",
    // the reaction of an escalation
    "reactions:write",
    // the names in a thread
    "users:read",
    // the address of the person who asks
    "users:read.email",
];

/// The manifest of the app: in JSON, for `https://api.slack.com/apps?new_app=1`. `url` is the public address of the bot for
/// events over HTTP; without it, the app uses Socket Mode.
pub fn manifest(name: &str, url: Option<&str>) -> Value {
    let endpoint = url.map(|url| format!("{}/slack/events", url.trim_end_matches('/')));
    let mut manifest = json!({
        "display_information": {"name": name, "description": "Answers questions and runs tasks with the agents of CAIPE"},
        "features": {
            "app_home": {"messages_tab_enabled": true, "messages_tab_read_only_enabled": false},
            "bot_user": {"display_name": name, "always_online": true},
            "assistant_view": {"assistant_description": "Answers questions and runs tasks with its agents"},
            "slash_commands": [{
                "command": "/caipe", "description": "Agents, status, new conversation, share an answer, memory, stop",
                "usage_hint": "help | agents | status | new [question] | share | memory [forget ID] | stop",
            }],
        },
        "oauth_config": {"scopes": {"bot": SCOPES}},
        "settings": {
            "event_subscriptions": {"bot_events": [
                "app_mention", "assistant_thread_started", "message.channels", "message.groups", "message.im",
            ]},
            "interactivity": {"is_enabled": true},
            "socket_mode_enabled": url.is_none(),
            "token_rotation_enabled": false,
        },
    });
    if let Some(endpoint) = endpoint {
        manifest["settings"]["event_subscriptions"]["request_url"] = json!(endpoint);
        manifest["settings"]["interactivity"]["request_url"] = json!(endpoint);
        manifest["features"]["slash_commands"][0]["url"] = json!(endpoint);
    }
    manifest
}
