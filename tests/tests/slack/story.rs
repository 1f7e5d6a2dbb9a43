//! A day with the bot: each kind of message and modal that it shows.

use super::*;

/// What the bot showed.
#[derive(Default)]
pub(super) struct Story {
    /// A plan under way.
    pub(super) plan: Vec<Message>,
    /// The end of the same answer.
    pub(super) answer: Vec<Message>,
    /// The thread with an approval that waits, and its modals.
    pub(super) approval: Vec<Message>,
    /// The thread after the decision.
    pub(super) decided: Vec<Message>,
    /// The thread with a form, and its modal.
    pub(super) form: Vec<Message>,
    /// What only the person with a thumb down sees.
    pub(super) feedback: Vec<Message>,
    /// The modals in the order in which they were opened: the arguments, the reason, the form, and what was wrong.
    pub(super) modals: Vec<Value>,
    /// All calls of the bot.
    pub(super) calls: Vec<caipe_fixtures::slack::ApiCall>,
}

const QUESTION: &str = "checkout answers with 502 since this morning. What changed?";
const ISSUE: &str = "open an issue for it";
const FORM: &str = "restart checkout";

const ANSWER: &str = "Checkout fails since release **4.12.0**, which lowered its memory limit.

| Time | Event | Source |
| --- | --- | --- |
| 07:58 | *Lower memory of workers*, by rlang | [shop/checkout#812](https://github.example.com/shop/checkout/pull/812) |
| 08:02 | 4.12.0 is live | Argo CD |
| 08:04 | the first `OOMKilled` | Argo CD |
| 08:11 | *Cannot pay* is reported | [SHOP-2231](https://jira.example.com/SHOP-2231) |

The change to revert:

```yaml
resources:
  limits:
    memory: 192Mi # before: 512Mi
```

1. Revert the pull request.
2. Close SHOP-2231 when checkout is healthy again.";

fn scenario() -> Result<Scenario> {
    let server = programs::fixture_mcp()?;
    let agent = |scenario: Scenario, name: &str, tools: &[&str]| {
        let arguments: Vec<&str> = tools.iter().flat_map(|tool| ["--tool", tool]).collect();
        scenario.agent(name, &server, &arguments)
    };
    let scenario = agent(Scenario::new(), "argocd", &["get_application", "get_application_logs"]);
    let scenario = agent(scenario, "github", &["list_commits"]);
    let mut scenario = agent(scenario, "jira", &["search_issues", "create_issue"]);
    scenario.change_agent("jira", "requireApproval", json!(["create_*"]));
    let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    let issue = json!({"project": "SHOP", "type": "Bug", "summary": "Checkout runs out of memory since 4.12.0", "priority": "High"});
    let fields = json!([
        {"field_name": "environment", "field_label": "Environment", "field_type": "select", "field_values": ["production", "staging"], "required": true, "default_value": "production"},
        {"field_name": "regions", "field_label": "Regions", "field_type": "multiselect", "field_values": ["eu-central-1", "us-east-1"], "default_value": ["eu-central-1"]},
        {"field_name": "drain", "field_label": "Wait for running payments", "field_type": "boolean", "default_value": true},
        {"field_name": "pods", "field_label": "Pods at the same time", "field_type": "number", "default_value": 2, "field_description": "At most half of the pods."},
        {"field_name": "day", "field_label": "Not before", "field_type": "date", "required": false},
        {"field_name": "contact", "field_label": "Contact", "field_type": "email", "required": false},
        {"field_name": "page", "field_label": "Status page", "field_type": "url", "required": false},
        {"field_name": "reason", "field_label": "Reason", "field_type": "textarea", "required": false, "placeholder": "For the change log"},
    ]);
    let form =
        json!({"title": "Restart of checkout", "description": "Confirm where and how.", "fields": fields});
    let todos = |statuses: [&str; 3]| {
        let steps = [
            "[Argocd] Read the state and the logs of checkout",
            "[Github] List what was merged since yesterday",
            "[Jira] Find reports of customers",
        ];
        let todo = |(content, status)| json!({"content": content, "status": status});
        call("write_todos", json!({"todos": steps.into_iter().zip(statuses).map(todo).collect::<Vec<_>>()}))
    };
    let task = |agent: &str, text: &str| call("task", json!({"subagent_type": agent, "description": text}));
    let argocd =
        json!({"calls": [call("get_application", json!({})), call("get_application_logs", json!({}))]});
    let wait = (0..40).map(|number| format!("report{number} ")).collect::<Vec<_>>().concat();
    let user = |text: &str, turn: usize| json!({"user": text, "turn": turn});
    Ok(scenario
        .turn(json!({"system": "You are the argocd agent.", "turn": 0}), argocd)
        .turn(json!({"system": "You are the argocd agent."}), json!({"text": "4.12.0 runs out of memory."}))
        .turn(json!({"system": "You are the github agent.", "turn": 0}), json!({"calls": [call("list_commits", json!({}))]}))
        .turn(json!({"system": "You are the github agent."}), json!({"text": "One change: lower memory."}))
        .turn(json!({"system": "You are the jira agent.", "user": "create", "turn": 0}), json!({"calls": [call("create_issue", issue)]}))
        .turn(json!({"system": "You are the jira agent.", "user": "create"}), json!({"text": "{{ last_result }}"}))
        .turn(json!({"system": "You are the jira agent.", "turn": 0}), json!({"calls": [call("search_issues", json!({}))]}))
        .turn(json!({"system": "You are the jira agent."}), json!({"text": wait, "delay_ms": 100}))
        .turn(user(QUESTION, 0), json!({"text": "I compare what changed with what is reported.", "calls": [todos(["in_progress", "in_progress", "pending"])]}))
        .turn(user(QUESTION, 1), json!({"calls": [task("argocd", "state"), task("github", "changes")]}))
        .turn(user(QUESTION, 2), json!({"calls": [todos(["completed", "completed", "in_progress"]), task("jira", "find")]}))
        .answers(QUESTION, ANSWER)
        .turn(user(ISSUE, 0), json!({"calls": [task("jira", "create an issue")]}))
        .answers(ISSUE, "I opened [SHOP-2232](https://jira.example.com/SHOP-2232).")
        .turn(user(FORM, 0), json!({"calls": [call("request_user_input", form)]}))
        .answers(FORM, "Checkout restarts in production.")
        .turn(json!({"user": "broken"}), json!({"error": {"status": 400, "message": "no"}}))
        .answers("was not right", "You are right: the limit of the *web* pods changed too.")
        .answers("hello", "Hello."))
}

/// Runs the story.
pub(super) async fn tell() -> Result<Story> {
    let config = "C1:\n  name: '#shop-operations'\n  ai_enabled: true\n  other:\n    delete_admins: [UROB]\n    escalation: {users: [S1], emoji: {enabled: true}}\n";
    let rig = Rig::start(&scenario()?, Options::default(), config).await?;
    let mut story = Story::default();
    let thread = rig.slack.mention("C1", "UANN", QUESTION, None);
    let is_under_way = |messages: &[Message]| {
        let statuses: Vec<&str> =
            messages.iter().flat_map(|message| &message.cards).map(|card| card.status.as_str()).collect();
        statuses == ["complete", "complete", "in_progress"]
    };
    rig.until(&thread, "the plan does not advance", is_under_way).await?;
    story.plan = rig.slack.thread("C1", &thread);
    rig.answer(&thread).await?;
    story.answer = rig.slack.thread("C1", &thread);
    rig.dislike(&story.answer, &mut story.feedback).await?;
    rig.approve(&mut story).await?;
    rig.fill_form(&mut story).await?;
    rig.fail().await?;
    rig.share().await?;
    story.modals = rig.slack.modals();
    story.calls = rig.slack.calls();
    Ok(story)
}

impl Rig {
    /// The modal that opens after a press.
    async fn modal(&self, message: &Message, action: &str) -> Result<Value> {
        let before = self.slack.modals().len();
        self.slack.press("C1", "UANN", message, action);
        ensure!(
            self.slack.until(LIMIT, |slack| slack.modals().len() > before).await,
            "{action} opens no modal"
        );
        self.slack.modals().pop().context("there is no modal")
    }

    /// A thumb down, and what is wrong.
    async fn dislike(&self, answer: &[Message], seen: &mut Vec<Message>) -> Result<()> {
        let answer = with_action(answer, "caipe_feedback").context("there are no thumbs")?;
        let value = answer.value_of("caipe_feedback").unwrap_or_default().replacen("positive", "negative", 1);
        self.slack.press_with("C1", "UANN", &answer, "caipe_feedback", &value);
        ensure!(
            self.slack.until(LIMIT, |slack| !slack.whispers().is_empty()).await,
            "nobody asks what is wrong"
        );
        *seen = self.slack.whispers();
        let whisper = seen.last().context("there is no message")?;
        let modal = self.modal(whisper, "caipe_feedback_wrong_answer").await?;
        self.slack.submit("UANN", &modal, json!({"words": {"v": {"value": "The web pods changed too."}}}));
        let corrected = |messages: &[Message]| text(messages).contains("You are right");
        self.until(&answer.thread, "there is no better answer", corrected).await?;
        self.slack.press("C1", "UANN", whisper, "caipe_escalation_get_help");
        let is_called = |messages: &[Message]| text(messages).contains("needs help here");
        self.until(&answer.thread, "nobody is called", is_called).await.map(drop)
    }

    async fn approve(&self, story: &mut Story) -> Result<()> {
        let thread = self.slack.mention("C1", "UANN", ISSUE, None);
        let asked = |messages: &[Message]| with_action(messages, "caipe_approve").is_some();
        let messages = self.until(&thread, "no approval is asked for", asked).await?;
        story.approval = self.slack.thread("C1", &thread);
        let question = with_action(&messages, "caipe_approve").context("there is no question")?;
        for action in ["caipe_edit", "caipe_reject"] {
            self.modal(&question, action).await?;
        }
        self.slack.press("C1", "UANN", &question, "caipe_approve");
        self.answer(&thread).await?;
        story.decided = self.slack.thread("C1", &thread);
        Ok(())
    }

    async fn fill_form(&self, story: &mut Story) -> Result<()> {
        let thread = self.slack.mention("C1", "UANN", FORM, None);
        let asked = |messages: &[Message]| with_action(messages, "caipe_answer").is_some();
        let messages = self.until(&thread, "no form is shown", asked).await?;
        story.form = self.slack.thread("C1", &thread);
        let question = with_action(&messages, "caipe_answer").context("there is no form")?;
        let modal = self.modal(&question, "caipe_answer").await?;
        let values = json!({"f0": {"v": {"selected_option": {"value": "0"}}}});
        self.slack.submit("UANN", &modal, values);
        self.answer(&thread).await.map(drop)
    }

    /// A failure, where streams are missing.
    async fn fail(&self) -> Result<()> {
        self.slack.fail("chat.startStream", Failure::Code("channel_type_not_supported".to_owned()));
        let thread = self.slack.mention("C1", "UANN", "broken", None);
        let failed = |messages: &[Message]| with_action(messages, "caipe_retry").is_some();
        self.until(&thread, "no retry is offered", failed).await.map(drop)
    }

    /// An answer of a direct message for a channel.
    async fn share(&self) -> Result<()> {
        self.slack.command("C1", "UANN", "new hello");
        let answered = |slack: &FakeSlack| {
            slack.channel("DUANN").iter().any(|message| message.block_text().contains("feedback_buttons"))
        };
        ensure!(self.slack.until(LIMIT, answered).await, "the direct message has no answer");
        let shared = |slack: &FakeSlack| {
            slack.channel("C1").iter().any(|message| message.block_text().contains("shares an answer"))
        };
        let before = self.slack.whispers().len();
        self.slack.command("C1", "UANN", "share");
        let responded = |slack: &FakeSlack| slack.whispers().len() > before;
        ensure!(self.slack.until(LIMIT, responded).await && shared(&self.slack), "the answer is not shared");
        Ok(())
    }
}
