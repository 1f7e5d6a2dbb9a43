//! Reports of people's feedback: to upstream's web UI, and as a score of the trace to Langfuse.

use std::time::Duration;

use secrecy::ExposeSecret;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::event::Action;
use crate::footer::Subject;
use crate::settings::Langfuse;
use crate::state::Bot;
use crate::text::excerpt;

/// How long a report may take.
const DEADLINE: Duration = Duration::from_secs(10);
/// The most characters of a person's words in a report.
const WORDS: usize = 2_000;

/// What a person says about an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Feedback<'a> {
    /// `thumbs_up`, `thumbs_down`, `more_detail`, `less_verbose`, `wrong_answer` or `other`.
    pub(crate) kind: &'a str,
    pub(crate) liked: bool,
    /// The person's own words; may be empty.
    pub(crate) words: &'a str,
}

/// Reports feedback to everything that is configured. A failure is logged.
pub(crate) async fn report(bot: &Bot, action: &Action, subject: &Subject, feedback: Feedback<'_>) {
    tracing::info!(task = subject.task, trace_id = subject.trace, kind = feedback.kind, "feedback");
    futures::join!(
        report_to_ui(bot, action, subject, feedback),
        report_to_langfuse(bot, action, subject, feedback)
    );
}

async fn report_to_ui(bot: &Bot, action: &Action, subject: &Subject, feedback: Feedback<'_>) {
    let Some(base) = &bot.settings.feedback_url else { return };
    let url = format!("{}/api/feedback", base.trim_end_matches('/'));
    let email = bot.people.find(&bot.api, &action.user).await.email;
    send(bot.api.http().post(url), &for_ui(action, subject, feedback, email.as_deref())).await;
}

/// An agent without traces gets no score, because a score belongs to a trace.
async fn report_to_langfuse(bot: &Bot, action: &Action, subject: &Subject, feedback: Feedback<'_>) {
    let Some(Langfuse { url, public_key, secret_key }) = &bot.settings.langfuse else { return };
    if subject.trace.is_empty() {
        return;
    }
    let request = bot.api.http().post(format!("{url}/api/public/scores"));
    let request = request.basic_auth(public_key, Some(secret_key.expose_secret()));
    send(request, &score(action, subject, feedback)).await;
}

async fn send(request: reqwest::RequestBuilder, report: &Value) {
    let sent = request.json(report).timeout(DEADLINE).send().await;
    if let Err(error) = sent.and_then(reqwest::Response::error_for_status) {
        tracing::warn!(error = %error.without_url(), "failed to report feedback");
    }
}

/// The form that upstream's bot sends.
fn for_ui(action: &Action, subject: &Subject, feedback: Feedback<'_>, email: Option<&str>) -> Value {
    let mut report = json!({
        "traceId": subject.trace, "messageId": action.message, "feedbackType": if feedback.liked { "like" } else { "dislike" },
        "value": feedback.kind, "conversationId": format!("slack-{}", action.thread), "source": "slack",
        "channelId": action.channel, "threadTs": action.thread, "userId": action.user, "userEmail": email,
    });
    if !feedback.words.is_empty() {
        report["reason"] = excerpt(feedback.words, WORDS).into();
    }
    report
}

/// A score of Langfuse. Later feedback of a person about the same trace has the same id, so it replaces the earlier one.
fn score(action: &Action, subject: &Subject, feedback: Feedback<'_>) -> Value {
    let id = format!("slack feedback {} {}", subject.trace, action.user);
    let words = excerpt(feedback.words, WORDS);
    let comment =
        if words.is_empty() { feedback.kind.to_owned() } else { format!("{}: {words}", feedback.kind) };
    json!({
        "id": Uuid::new_v5(&Uuid::NAMESPACE_OID, id.as_bytes()).to_string(), "traceId": subject.trace,
        "name": "user-feedback", "dataType": "BOOLEAN", "value": u8::from(feedback.liked), "comment": comment,
        "metadata": {"source": "slack", "channel": action.channel, "thread": action.thread, "user": action.user},
    })
}
