//! Buttons and modals: decisions, feedback, retry, help and deletion.

use caipe_a2a::model::{Event, Message as A2aMessage, Part, Task, TaskState};
use caipe_view::{Form, FormAnswer, View};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::api::{ApiError, Target};
use crate::event::{Action, Attachment, Submission};
use crate::feedback::{self, Feedback};
use crate::files;
use crate::footer::{DELETE, FEEDBACK, HELP, RETRY, Subject};
use crate::question::{
    self, ALWAYS, ANSWER, APPROVE, EDIT, QuestionRef, REJECT, answer, button, input, text_input, view,
};
use crate::state::Bot;
use crate::text::excerpt;
use crate::turn::Turn;

const MORE: &str = "caipe_feedback_more_detail";
const LESS: &str = "caipe_feedback_less_verbose";
const WRONG: &str = "caipe_feedback_wrong_answer";
const OTHER: &str = "caipe_feedback_other";
const WRONG_MODAL: &str = "caipe_wrong_answer_modal";

/// Handles the press of a button.
pub(crate) async fn action(bot: &Bot, action: Action) -> Result<(), ApiError> {
    match action.id.as_str() {
        APPROVE | ALWAYS | EDIT | REJECT | ANSWER => decision(bot, &action).await,
        FEEDBACK => thumb(bot, &action).await,
        MORE => {
            again(bot, &action, "more_detail", "Please answer the last question again, in more detail.").await
        }
        LESS => {
            again(bot, &action, "less_verbose", "Please answer the last question again, more briefly.").await
        }
        WRONG | OTHER => correction(bot, &action).await,
        RETRY => fresh(bot, &action).await,
        HELP => help(bot, &action).await,
        DELETE => delete(bot, &action).await,
        other => {
            tracing::debug!(action = other, "ignored the press of an unknown button");
            Ok(())
        }
    }
}

/// The errors of a modal that Slack has to show before it is closed; `None` if there are none.
pub(crate) fn check(bot: &Bot, submission: &Submission) -> Option<Value> {
    if bot.settings.silent || submission.callback != EDIT {
        return None;
    }
    let text = submission.values.pointer("/arguments/v/value").and_then(Value::as_str).unwrap_or_default();
    let reason = question::arguments(text).err()?;
    Some(json!({"response_action": "errors", "errors": {"arguments": excerpt(&reason, 150)}}))
}

/// Handles a submitted modal.
pub(crate) async fn submission(bot: &Bot, submission: &Submission) -> Result<(), ApiError> {
    if submission.callback == WRONG_MODAL {
        return corrected(bot, submission).await;
    }
    let Ok(reference) = serde_json::from_str::<QuestionRef>(&submission.metadata) else { return Ok(()) };
    let Some((task, form)) = open_question(bot, &reference, &submission.user).await? else { return Ok(()) };
    match answer(&form, &submission.callback, &submission.values) {
        Ok(answer) => decide(bot, &reference, (task, &form), answer, &submission.user).await,
        Err((_, reason)) => {
            bot.whisper(&reference.channel, &submission.user, Some(&reference.thread), &reason).await
        }
    }
}

/// A press below a question: the decision itself, or a modal for it.
async fn decision(bot: &Bot, action: &Action) -> Result<(), ApiError> {
    let Ok(reference) = serde_json::from_str::<QuestionRef>(&action.value) else { return Ok(()) };
    let reference = QuestionRef {
        channel: action.channel.clone(),
        thread: action.thread.clone(),
        team: action.team.clone(),
        message: action.message.clone(),
        ..reference
    };
    let Some((task, form)) = open_question(bot, &reference, &action.user).await? else { return Ok(()) };
    if let Some(modal) = question::modal(&form, &action.id, &reference) {
        return bot
            .api
            .call("views.open", &json!({"trigger_id": action.trigger, "view": modal}))
            .await
            .map(drop);
    }
    let answer = match action.id.as_str() {
        APPROVE => FormAnswer::Approve,
        ALWAYS => FormAnswer::Always,
        _ => {
            return bot
                .whisper(
                    &action.channel,
                    &action.user,
                    Some(&action.thread),
                    "The arguments are too long for Slack. Decide in another client.",
                )
                .await;
        }
    };
    decide(bot, &reference, (task, &form), answer, &action.user).await
}

/// The task and its question, if it still waits and the person may decide; otherwise says why not.
async fn open_question(
    bot: &Bot,
    reference: &QuestionRef,
    user: &str,
) -> Result<Option<(Task, Form)>, ApiError> {
    let QuestionRef { channel, thread, asker, .. } = reference;
    let settings = bot.settings.channels.get(channel).unwrap_or_default();
    if user != asker && !settings.approvers.iter().any(|approver| approver == user) {
        let text = format!("Only <@{asker}> can decide this.");
        bot.whisper(channel, user, Some(thread), &text).await?;
        return Ok(None);
    }
    let task = match bot.client.get(&reference.task, None).await {
        Ok(task) => task,
        Err(error) => {
            tracing::warn!(task = reference.task, %error, "failed to read a task that waits");
            bot.whisper(
                channel,
                user,
                Some(thread),
                "The supervisor cannot be reached, or has forgotten the task. Try again later.",
            )
            .await?;
            return Ok(None);
        }
    };
    let mut shown = View::default();
    shown.apply(&Event::Task(Box::new(task.clone())));
    let form = shown.form().cloned().filter(|form| {
        task.status.state == TaskState::InputRequired
            && form.interaction_id().unwrap_or_default() == reference.interaction
    });
    let Some(form) = form else {
        let text = "This question was already decided, has expired, or its task has ended.";
        bot.whisper(channel, user, Some(thread), text).await?;
        let context = json!([{"type": "context", "elements": [{"type": "mrkdwn", "text": text}]}]);
        let body = json!({"channel": channel, "ts": reference.message, "text": text, "blocks": context});
        bot.api.call("chat.update", &body).await?;
        return Ok(None);
    };
    Ok(Some((task, form)))
}

/// Sends a decision, shows it, and continues the task.
async fn decide(
    bot: &Bot,
    reference: &QuestionRef,
    question: (Task, &Form),
    answer: FormAnswer,
    user: &str,
) -> Result<(), ApiError> {
    let (task, form) = question;
    let outcome = match &answer {
        FormAnswer::Approve => format!("✅ Approved by <@{user}>."),
        FormAnswer::Always => format!("✅ Approved by <@{user}>, for later calls too."),
        FormAnswer::Edit(_) => format!("✏️ Approved with other arguments by <@{user}>."),
        FormAnswer::Reject(reason) => {
            format!("🚫 Rejected by <@{user}>: {}", crate::delivery::escaped(&excerpt(reason, 300), 900))
        }
        FormAnswer::Respond(_) | FormAnswer::Values(_) | FormAnswer::Words(_) => {
            format!("✅ Answered by <@{user}>.")
        }
    };
    // The same decision has the same id, so it acts once.
    let id = Uuid::new_v5(
        &Uuid::NAMESPACE_OID,
        format!("slack decision {} {}", task.id, reference.message).as_bytes(),
    );
    let mut request = A2aMessage::new(caipe_a2a::model::Role::User, id.to_string(), form.parts(&answer))
        .within(&task.id, &task.context_id);
    request.metadata = bot.metadata(user).await;
    let blocks = question::decided(form, &outcome, &bot.secrets());
    let body =
        json!({"channel": reference.channel, "ts": reference.message, "text": outcome, "blocks": blocks});
    let show = async {
        if let Err(error) = bot.api.call_when_allowed("chat.update", &body).await {
            tracing::warn!(%error, "failed to show a decision");
        }
    };
    let target = Target {
        channel: reference.channel.clone(),
        thread: reference.thread.clone(),
        team: reference.team.clone(),
        user: reference.asker.clone(),
    };
    let question = reference.message.clone();
    let turn = Turn::new(target, request, question);
    futures::join!(show, Turn { seed: Some(task), ..turn }.begin(bot));
    Ok(())
}

/// A thumb: thanks, and what to do better.
async fn thumb(bot: &Bot, action: &Action) -> Result<(), ApiError> {
    let (sign, json) = action.value.split_once('|').unwrap_or((&action.value, ""));
    let liked = sign == "positive";
    let kind = if liked { "thumbs_up" } else { "thumbs_down" };
    feedback::report(bot, action, &Subject::read(json), Feedback { kind, liked, words: "" }).await;
    if liked {
        return bot.whisper(&action.channel, &action.user, Some(&action.thread), "Thank you!").await;
    }
    let mut elements = vec![
        button("More detail", MORE, json, None),
        button("Briefer", LESS, json, None),
        button("Wrong answer", WRONG, json, None),
        button("Other", OTHER, json, None),
    ];
    if bot.settings.channels.get(&action.channel).unwrap_or_default().other.escalation.is_set() {
        elements.push(button("Get help", HELP, json, None));
    }
    let text = "What should be better?";
    let blocks = json!([{"type": "section", "text": {"type": "plain_text", "text": text}}, {"type": "actions", "elements": elements}]);
    let body = json!({"channel": action.channel, "user": action.user, "thread_ts": action.thread, "text": text, "blocks": blocks});
    bot.api.call("chat.postEphemeral", &body).await.map(drop)
}

/// Asks again in the same conversation.
async fn again(bot: &Bot, action: &Action, kind: &str, text: &str) -> Result<(), ApiError> {
    let feedback = Feedback { kind, liked: false, words: "" };
    feedback::report(bot, action, &Subject::read(&action.value), feedback).await;
    let context = bot.thread(&action.channel, &action.thread).await.context;
    send(bot, action, (text.to_owned(), Vec::new()), context).await;
    Ok(())
}

async fn send(bot: &Bot, action: &Action, (text, files): (String, Vec<Part>), context: Option<String>) {
    let id = Uuid::new_v5(
        &Uuid::NAMESPACE_OID,
        format!("slack press {} {}", action.trigger, action.id).as_bytes(),
    );
    let mut request = A2aMessage::user(id.to_string(), text);
    request.parts.extend(files);
    request.context_id = context;
    request.metadata = bot.metadata(&action.user).await;
    let target = Target {
        channel: action.channel.clone(),
        thread: action.thread.clone(),
        team: action.team.clone(),
        user: action.user.clone(),
    };
    let question = Subject::read(&action.value).question;
    Turn::new(target, request, question).begin(bot).await;
}

/// A modal that asks what is wrong.
async fn correction(bot: &Bot, action: &Action) -> Result<(), ApiError> {
    let kind = if action.id == WRONG { "wrong_answer" } else { "other" };
    let metadata = json!({
        "channel": action.channel, "thread": action.thread, "team": action.team, "trigger": action.trigger, "value": action.value,
        "kind": kind,
    });
    let label = if action.id == WRONG { "What is the right answer?" } else { "What should be better?" };
    let modal = view(
        WRONG_MODAL,
        "Feedback",
        &[input("words", label, &text_input(true, ""), false)],
        &metadata.to_string(),
    );
    bot.api.call("views.open", &json!({"trigger_id": action.trigger, "view": modal})).await.map(drop)
}

async fn corrected(bot: &Bot, submission: &Submission) -> Result<(), ApiError> {
    let Ok(metadata) = serde_json::from_str::<Value>(&submission.metadata) else { return Ok(()) };
    let text = |key: &str| metadata[key].as_str().unwrap_or_default().to_owned();
    let words = submission.values.pointer("/words/v/value").and_then(Value::as_str).unwrap_or_default();
    let action = Action {
        id: WRONG_MODAL.to_owned(),
        value: text("value"),
        user: submission.user.clone(),
        team: text("team"),
        channel: text("channel"),
        thread: text("thread"),
        trigger: text("trigger"),
        ..Action::default()
    };
    let feedback = Feedback { kind: &text("kind"), liked: false, words };
    feedback::report(bot, &action, &Subject::read(&action.value), feedback).await;
    let context = bot.thread(&action.channel, &action.thread).await.context;
    let text = format!("Your last answer was not right. {words}\n\nPlease answer again.");
    send(bot, &action, (text, Vec::new()), context).await;
    Ok(())
}

/// Asks the same question in a new conversation.
async fn fresh(bot: &Bot, action: &Action) -> Result<(), ApiError> {
    let question = Subject::read(&action.value).question;
    let parameters = [
        ("channel", action.channel.as_str()),
        ("ts", action.thread.as_str()),
        ("oldest", question.as_str()),
        ("latest", question.as_str()),
        ("inclusive", "true"),
        ("limit", "10"),
    ];
    let answer = bot.api.read("conversations.replies", &parameters).await?;
    let mut messages = answer["messages"].as_array().into_iter().flatten();
    let Some(message) = messages.find(|message| message["ts"] == question.as_str()) else {
        return bot
            .whisper(
                &action.channel,
                &action.user,
                Some(&action.thread),
                "The question is deleted. Ask again.",
            )
            .await;
    };
    let text = message["text"].as_str().unwrap_or_default();
    let text = bot.people.readable(&bot.api, text, &bot.own_user).await;
    let (files, note) = files::attached(bot, &Attachment::of(message)).await;
    let text = format!("An earlier attempt to answer this failed. {text}{note}");
    send(bot, action, (text, files), None).await;
    Ok(())
}

/// Calls the people of the channel, once per thread.
async fn help(bot: &Bot, action: &Action) -> Result<(), ApiError> {
    let escalation = bot.settings.channels.get(&action.channel).unwrap_or_default().other.escalation;
    let is_first = bot.store.escalate(&action.channel, &action.thread).await.unwrap_or_else(|error| {
        tracing::error!(%error, "failed to save an escalation");
        true
    });
    if !is_first {
        return bot
            .whisper(&action.channel, &action.user, Some(&action.thread), "Help is already on the way.")
            .await;
    }
    if escalation.emoji.enabled {
        let body =
            json!({"channel": action.channel, "timestamp": action.thread, "name": escalation.emoji.name});
        if let Err(error) = bot.api.call("reactions.add", &body).await {
            tracing::warn!(%error, "failed to add a reaction");
        }
    }
    if escalation.users.is_empty() {
        return Ok(());
    }
    let mention =
        |id: &String| if id.starts_with('S') { format!("<!subteam^{id}>") } else { format!("<@{id}>") };
    let people = escalation.users.iter().map(mention).collect::<Vec<_>>().join(" ");
    let text = format!("{people} <@{}> needs help here.", action.user);
    let body = json!({"channel": action.channel, "thread_ts": action.thread, "text": text});
    bot.api.call("chat.postMessage", &body).await.map(drop)
}

/// Deletes a message of the bot, for those who may.
async fn delete(bot: &Bot, action: &Action) -> Result<(), ApiError> {
    let admins = bot.settings.channels.get(&action.channel).unwrap_or_default().other.delete_admins;
    if !admins.contains(&action.user) {
        return bot
            .whisper(
                &action.channel,
                &action.user,
                Some(&action.thread),
                "Only admins of this channel can delete answers.",
            )
            .await;
    }
    bot.api.call("chat.delete", &json!({"channel": action.channel, "ts": action.message})).await.map(drop)
}
