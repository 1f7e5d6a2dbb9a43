//! Which messages are answered, and with which prompt. Pure.

use crate::event::Message;
use crate::settings::{Channel, Prompts, Settings};

/// How a message is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Not at all.
    Ignore,
    /// With a task; `quiet` shows nothing unless the model is confident.
    Ask { template: Option<String>, quiet: bool },
    /// Stops the running task of the thread.
    Stop,
    /// Forgets the conversation of the thread.
    New,
}

/// What the bot knows about itself and the thread.
#[derive(Debug, Clone, Default)]
pub(crate) struct Situation<'a> {
    /// The user id and the bot id of the bot itself.
    pub(crate) own_user: &'a str,
    pub(crate) own_bot: &'a str,
    /// Whether the bot stayed silent in the thread.
    pub(crate) skipped: bool,
    /// Whether the thread has a question that waits for the writer of the message.
    pub(crate) waits_for_user: bool,
}

pub(crate) fn decide(message: &Message, settings: &Settings, situation: &Situation<'_>) -> Decision {
    let is_own = message.user == situation.own_user
        || message.bot.as_ref().is_some_and(|(id, _)| id == situation.own_bot);
    if settings.silent || is_own {
        return Decision::Ignore;
    }
    let prompts = &settings.prompts;
    if message.is_direct {
        if message.bot.is_some() {
            return Decision::Ignore;
        }
        let template = prompts.direct.clone().or_else(|| prompts.mention.clone());
        return word(message).unwrap_or(Decision::Ask { template, quiet: false });
    }
    let Some(channel) = settings.channels.get(&message.channel) else { return Decision::Ignore };
    if let Some((id, name)) = &message.bot {
        return of_bot(message, &channel, prompts, &[id, name]);
    }
    // The same message arrives as a mention too.
    let mentions = message.text.contains(&format!("<@{}", situation.own_user));
    if !message.is_mention && mentions {
        return Decision::Ignore;
    }
    if message.is_mention && channel.ai_enabled {
        let usual = channel
            .custom_prompt
            .clone()
            .map(|prompt| styled(prompt, prompts))
            .or_else(|| prompts.mention.clone());
        let template = if situation.skipped { prompts.follow_up.clone().or(usual) } else { usual };
        return word(message).unwrap_or(Decision::Ask { template, quiet: false });
    }
    if situation.waits_for_user {
        return Decision::Ask { template: None, quiet: false };
    }
    if channel.ai_enabled && channel.qanda.enabled && message.thread.is_none() {
        return unasked(&channel, prompts);
    }
    Decision::Ignore
}

/// A message of another bot.
fn of_bot(message: &Message, channel: &Channel, prompts: &Prompts, bot: &[&String]) -> Decision {
    if message.thread.is_some() {
        return Decision::Ignore;
    }
    if channel.ai_alerts.enabled {
        let prompt = channel.ai_alerts.custom_prompt.clone().or_else(|| prompts.alerts.clone());
        let template = prompt.map(|prompt| alert(&prompt, message, channel));
        return Decision::Ask { template, quiet: false };
    }
    let bots = &channel.qanda.include_bots;
    let listed = bots.bot_list.as_ref().is_none_or(|list| list.iter().any(|name| bot.contains(&name)));
    if channel.ai_enabled && channel.qanda.enabled && bots.enabled && listed {
        return unasked(channel, prompts);
    }
    Decision::Ignore
}

fn unasked(channel: &Channel, prompts: &Prompts) -> Decision {
    let own = channel.qanda.custom_prompt.clone();
    let quiet = channel.qanda.overthink;
    let template = if quiet {
        let rule = prompts.overthink.clone().unwrap_or_else(|| QUIET.to_owned());
        Some(own.map_or_else(
            || rule.clone(),
            |own| format!("{rule}\n\nFurther instructions for this channel:\n{own}"),
        ))
    } else {
        own.map(|prompt| styled(prompt, prompts)).or_else(|| prompts.qanda.clone())
    };
    Decision::Ask { template, quiet }
}

/// What a model is asked by default where it may stay silent.
const QUIET: &str = "A message was written in a channel; nobody asked you in particular. Look for sources first. If the message asks people to act, answer with [DEFER] only. If you are not sure of the answer, end it with the line [LOW_CONFIDENCE]. Otherwise end it with the line [CONFIDENCE: HIGH].\n\nThe message:\n{message_text}";

fn styled(prompt: String, prompts: &Prompts) -> String {
    match &prompts.style {
        Some(style) if !prompt.contains(style.as_str()) => format!("{prompt}\n\n{style}"),
        _ => prompt,
    }
}

/// A prompt for an alert, with the placeholders of upstream's.
fn alert(prompt: &str, message: &Message, channel: &Channel) -> String {
    let jira = channel.other.jira.as_ref();
    let project = jira.and_then(|jira| jira.get("project_key")?.as_str()).unwrap_or_default();
    let bot = message.bot.as_ref().map_or("", |(_, name)| name);
    prompt
        .replace("{jira_project}", project)
        .replace("{jira_config_str}", &jira.map(ToString::to_string).unwrap_or_default())
        .replace("{bot_username}", bot)
        .replace("{channel_id}", &message.channel)
        .replace("{timestamp}", &message.ts)
        .replace("{alert_blocks}", &message.details)
        .replace("{alert_attachments}", "")
        .replace("{alert_text}", "{message_text}")
}

/// A message that is only a command to the bot.
fn word(message: &Message) -> Option<Decision> {
    message.thread.as_ref()?;
    let text =
        message.text.split_whitespace().filter(|word| !word.starts_with("<@")).collect::<Vec<_>>().join(" ");
    match text.trim_end_matches(['.', '!']).to_lowercase().as_str() {
        "stop" | "cancel" => Some(Decision::Stop),
        "new" | "reset" => Some(Decision::New),
        _ => None,
    }
}

/// The text for the agent.
pub(crate) fn prompt(template: Option<&str>, text: &str) -> String {
    match template {
        Some(template) if template.contains("{message_text}") => template.replace("{message_text}", text),
        Some(template) => format!("{template}\n\n{text}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(config: &str, silent: bool) -> Settings {
        let find = |name: &str| match name {
            "SLACK_BOT_TOKEN" | "SLACK_APP_TOKEN" => Some("x".to_owned()),
            "SLACK_INTEGRATION_SILENCE_ENV" => Some(silent.to_string()),
            "SLACK_INTEGRATION_BOT_CONFIG" => Some(config.to_owned()),
            _ => None,
        };
        Settings::read(find).unwrap()
    }

    fn message(change: impl FnOnce(&mut Message)) -> Message {
        let mut message = Message {
            channel: "C1".into(),
            user: "U1".into(),
            text: "why?".into(),
            ts: "1.0".into(),
            ..Message::default()
        };
        change(&mut message);
        message
    }

    const OPEN: &str = "";

    /// A name, the channels, a message, and the decision.
    type Case = (&'static str, &'static str, Message, &'static str);

    fn mention(message: &mut Message) {
        message.is_mention = true;
        message.text = "<@UBOT> why?".into();
    }

    fn word(text: &'static str) -> impl Fn(&mut Message) {
        move |message| {
            message.is_mention = true;
            message.text = format!("<@UBOT> {text}");
            message.thread = Some("0.1".into());
        }
    }

    fn bot(name: &'static str) -> impl Fn(&mut Message) {
        move |message| message.bot = Some(("B2".into(), name.into()))
    }

    fn cases_without_channels() -> Vec<Case> {
        vec![
            ("mention, no channels", OPEN, message(mention), "ask"),
            ("message, no channels", OPEN, message(|_| {}), "ignore"),
            ("direct", OPEN, message(|m| m.is_direct = true), "ask"),
            (
                "direct of a bot",
                OPEN,
                message(|m| {
                    m.is_direct = true;
                    m.bot = Some(("B2".into(), "x".into()));
                }),
                "ignore",
            ),
            (
                "own",
                OPEN,
                message(|m| {
                    m.is_direct = true;
                    m.user = "UBOT".into();
                }),
                "ignore",
            ),
            (
                "own as a bot",
                OPEN,
                message(|m| {
                    m.is_mention = true;
                    m.bot = Some(("BBOT".into(), "x".into()));
                }),
                "ignore",
            ),
            ("stop", OPEN, message(word("Stop!")), "stop"),
            ("new", OPEN, message(word("new")), "new"),
        ]
    }

    fn cases_with_channels() -> Vec<Case> {
        let closed = "C1: {name: a, ai_enabled: true}";
        let unasked = "C1: {name: a, ai_enabled: true, qanda: {enabled: true}}";
        let quiet = "C1: {name: a, ai_enabled: true, qanda: {enabled: true, overthink: true}}";
        let alerts = "C1: {name: a, ai_alerts: {enabled: true}}";
        let bots = "C1: {name: a, ai_enabled: true, qanda: {enabled: true, include_bots: {enabled: true, bot_list: [pager]}}}";
        vec![
            ("mention", closed, message(mention), "ask"),
            (
                "mention in another channel",
                closed,
                message(|m| {
                    mention(m);
                    m.channel = "C2".into();
                }),
                "ignore",
            ),
            ("the second event of a mention", unasked, message(|m| m.text = "<@UBOT> why?".into()), "ignore"),
            ("unasked", unasked, message(|_| {}), "ask"),
            ("unasked in a thread", unasked, message(|m| m.thread = Some("0.1".into())), "ignore"),
            ("quiet", quiet, message(|_| {}), "quiet"),
            ("mention where it is quiet", quiet, message(mention), "ask"),
            ("alert", alerts, message(bot("pager")), "ask"),
            ("person among alerts", alerts, message(|_| {}), "ignore"),
            ("listed bot", bots, message(bot("pager")), "ask"),
            ("other bot", bots, message(bot("spam")), "ignore"),
        ]
    }

    #[test]
    fn each_message_is_answered_or_ignored() {
        let situation = Situation { own_user: "UBOT", own_bot: "BBOT", ..Situation::default() };
        let cases = [cases_without_channels(), cases_with_channels()].concat();
        for (name, config, message, expected) in cases {
            let decision = decide(&message, &settings(config, false), &situation);
            let found = match decision {
                Decision::Ignore => "ignore",
                Decision::Ask { quiet: true, .. } => "quiet",
                Decision::Ask { .. } => "ask",
                Decision::Stop => "stop",
                Decision::New => "new",
            };
            assert_eq!(found, expected, "{name}");
            assert_eq!(
                decide(&message, &settings(config, true), &situation),
                Decision::Ignore,
                "silent: {name}"
            );
        }
        let waiting = Situation { waits_for_user: true, ..situation };
        let reply = message(|m| m.thread = Some("0.1".into()));
        assert!(matches!(decide(&reply, &settings(OPEN, false), &waiting), Decision::Ask { .. }));
    }
}
