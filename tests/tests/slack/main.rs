//! The Slack bot: the built program between the built supervisor and the stand-in for Slack.

mod agent;
mod commands;
mod emulate;
mod feedback;
mod files;
mod load;
mod page;
mod pictures;
mod replicas;
mod story;
mod types;

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use caipe_fixtures::slack::{APP_TOKEN, BOT_TOKEN, BOT_USER, Failure, FakeSlack, Message, Options};
use caipe_tests::programs;
use caipe_tests::scenario::Scenario;
use caipe_tests::supervisor::{Setup, Supervisor, until};
use caipe_tests::token_issuer::{AUDIENCE, ISSUER, Issuer};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

const LIMIT: Duration = Duration::from_secs(30);

/// The three programs of a test.
struct Rig {
    slack: FakeSlack,
    supervisor: Supervisor,
    setup: Setup,
    config: String,
    bot: Child,
}

impl Rig {
    async fn start(scenario: &Scenario, options: Options, config: &str) -> Result<Self> {
        let setup = scenario.setup()?;
        let supervisor = setup.start().await?;
        let slack = FakeSlack::start(options).await?;
        let bot = bot(&setup, supervisor.url(), &slack, config)?;
        Ok(Self { slack, supervisor, setup, config: config.to_owned(), bot })
    }

    async fn simple(scenario: &Scenario) -> Result<Self> {
        Self::start(scenario, Options::default(), "").await
    }

    async fn restart_bot(&mut self) -> Result<()> {
        self.bot.kill().await?;
        self.start_bot()
    }

    /// Stops the bot as an orchestrator does.
    async fn stop_bot(&mut self) -> Result<()> {
        let pid = self.bot.id().context("the bot has ended")?.to_string();
        ensure!(tokio::process::Command::new("kill").args(["-TERM", &pid]).status().await?.success());
        tokio::time::timeout(LIMIT, self.bot.wait()).await.context("the bot does not stop")??;
        Ok(())
    }

    fn start_bot(&mut self) -> Result<()> {
        self.bot = bot(&self.setup, self.supervisor.url(), &self.slack, &self.config)?;
        Ok(())
    }

    /// Waits until the bot's messages in a thread fulfil a condition.
    async fn until(
        &self,
        thread: &str,
        what: &str,
        holds: impl Fn(&[Message]) -> bool,
    ) -> Result<Vec<Message>> {
        let channel = if thread.starts_with('D') { thread } else { "C1" };
        until_own(&self.slack, (channel, thread), what, holds).await
    }

    /// Waits for the end of the answer: the buttons for feedback.
    async fn answer(&self, thread: &str) -> Result<Vec<Message>> {
        let is_answered = |messages: &[Message]| {
            messages.iter().all(|message| !message.streaming)
                && messages.iter().any(|message| message.block_text().contains("feedback_buttons"))
        };
        self.until(thread, "there is no answer", is_answered).await
    }
}

/// Waits until the bot's messages in a thread of a channel fulfil a condition.
async fn until_own(
    slack: &FakeSlack,
    (channel, thread): (&str, &str),
    what: &str,
    holds: impl Fn(&[Message]) -> bool,
) -> Result<Vec<Message>> {
    let found = slack.until(LIMIT, |slack| holds(&own(slack, channel, thread))).await;
    let messages = own(slack, channel, thread);
    ensure!(found, "{what}: {messages:#?}\n{:#?}", slack.calls().iter().rev().take(12).collect::<Vec<_>>());
    Ok(messages)
}

/// The bot's messages in a thread.
fn own(slack: &FakeSlack, channel: &str, thread: &str) -> Vec<Message> {
    slack.thread(channel, thread).into_iter().filter(|message| message.user == BOT_USER).collect()
}

fn text(messages: &[Message]) -> String {
    messages.iter().map(|message| message.text.as_str()).collect()
}

fn bot(setup: &Setup, url: &str, slack: &FakeSlack, config: &str) -> Result<Child> {
    let mut command = bot_command(setup, url, slack, config)?;
    command.stdout(Stdio::inherit()).stderr(Stdio::inherit()).spawn().context("failed to start the bot")
}

fn bot_command(setup: &Setup, url: &str, slack: &FakeSlack, config: &str) -> Result<Command> {
    let mut command = setup.command(&["slack", "--url", url])?;
    command
        .env("SLACK_BOT_TOKEN", BOT_TOKEN)
        .env("SLACK_APP_TOKEN", APP_TOKEN)
        .env("SLACK_API_URL", slack.api())
        .env("CAIPE_SLACK_DATABASE", setup.dir().join("slack.sqlite3"))
        .env("SLACK_INTEGRATION_BOT_CONFIG", config);
    Ok(command)
}

/// Starts a bot with endpoints. Returns it with their URL, which its log names.
async fn bot_with_endpoints(mut command: Command) -> Result<(Child, String)> {
    command.env("CAIPE_SLACK_LISTEN", "127.0.0.1:0");
    let mut bot = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(bot.stderr.take().context("no log")?).lines();
    let address = async {
        while let Some(line) = lines.next_line().await? {
            if let Some((_, rest)) = line.split_once("127.0.0.1:").filter(|_| line.contains("serving probes"))
            {
                let port = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
                return Ok(format!("http://127.0.0.1:{port}"));
            }
        }
        anyhow::bail!("the log names no address")
    };
    let url = tokio::time::timeout(LIMIT, address).await.context("the log names no address")??;
    tokio::spawn(async move { while matches!(lines.next_line().await, Ok(Some(_))) {} });
    Ok((bot, url))
}

/// Waits for the status of a path.
async fn until_status(url: &str, path: &str, status: u16) -> Result<()> {
    let url = format!("{url}{path}");
    let answers = async || Ok(reqwest::get(&url).await?.status().as_u16() == status);
    until(&format!("{url} never answered {status}"), answers).await
}

/// Agents on the stand-in MCP server; each echoes what it is asked.
fn echo(agents: &[&str]) -> Result<Scenario> {
    let server = programs::fixture_mcp()?;
    let scenario = agents.iter().fold(Scenario::new(), |scenario, agent| scenario.agent(agent, &server, &[]));
    let turns =
        |scenario: Scenario, agent: &&str| scenario.agent_calls(agent, "echo", json!({"text": "{{ user }}"}));
    Ok(agents.iter().fold(scenario, turns))
}

fn careful() -> Result<Scenario> {
    let mut scenario = echo(&["jira"])?.asks("write", &["jira"]);
    scenario.change_agent("jira", "requireApproval", json!(["ec*"]));
    Ok(scenario)
}

/// An answer that arrives in pieces over some seconds.
fn slow(word: &str) -> Scenario {
    Scenario::new().turn(json!({"user": "slow"}), json!({"text": words(word), "delay_ms": 50}))
}

fn words(word: &str) -> String {
    (0..60).map(|number| format!("{word}{number} ")).collect::<Vec<_>>().concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mention_is_answered_once_and_the_thread_is_a_conversation() -> Result<()> {
    let rig = Rig::simple(
        &Scenario::new().answers("hello", "Hello **you**.").answers("again", "Again <!channel>."),
    )
    .await?;
    let thread = rig.slack.mention("C1", "UANN", "hello", None);
    let messages = rig.answer(&thread).await?;
    assert_eq!(text(&messages), "Hello **you**.");
    rig.slack.mention("C1", "UANN", "again", Some(&thread));
    let both =
        |messages: &[Message]| messages.len() == 2 && messages.iter().all(|message| !message.streaming);
    let messages = rig.until(&thread, "no second answer", both).await?;
    assert_eq!(messages[1].text, "Again <\u{200b}!channel>.");
    let direct = rig.slack.direct("UBOB", "hello", None);
    let answered = |slack: &FakeSlack| text(&own(slack, "DUBOB", &direct)).contains("Hello");
    ensure!(rig.slack.until(LIMIT, answered).await, "no answer to a direct message");
    Ok(())
}

/// As the operator starts it: the bot has the key that derives from the supervisor's.
#[tokio::test(flavor = "multi_thread")]
async fn the_key_of_the_bot_opens_where_only_tokens_do_and_names_the_person() -> Result<()> {
    // printf caipe.io/slack-bot | openssl dgst -sha256 -hmac a-key-of-all-agents
    const KEY: &str = "01e199f04779fe2dac2acdfaad6a2966e176b04208f368da7820f79dd40c605a";
    let issuer = Issuer::start().await?;
    let setup = Scenario::new().answers("hello", "Hello.").setup()?;
    let setup = setup.env("A2A_AUTH_OAUTH2", "true").env("JWKS_URI", issuer.url()).env("ISSUER", ISSUER);
    let setup = setup.env("AUDIENCE", AUDIENCE).env("CAIPE_AGENT_KEY", "a-key-of-all-agents");
    let supervisor = setup.start().await?;
    let slack = FakeSlack::start(Options::default()).await?;
    let mut command = bot_command(&setup, supervisor.url(), &slack, "")?;
    command.env("A2A_AUTH_SHARED_KEY", KEY).stdout(Stdio::inherit()).stderr(Stdio::inherit());
    let _bot = command.spawn()?;
    let thread = slack.mention("C1", "UANN", "hello", None);
    let answered = |slack: &FakeSlack| text(&own(slack, "C1", &thread)).contains("Hello.");
    ensure!(slack.until(LIMIT, answered).await, "there is no answer");

    let tasks = async |credential: &str| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {"historyLength": 1}});
        let request = reqwest::Client::new().post(supervisor.url()).header("A2A-Version", "1.0");
        let answer: Value = request.bearer_auth(credential).json(&body).send().await?.json().await?;
        anyhow::Ok(answer["result"]["tasks"].as_array().context(answer.to_string())?.clone())
    };
    let own = tasks(KEY).await?;
    let sender = &own.first().context("the bot has no task")?["history"][0]["metadata"];
    assert_eq!(
        (&sender["sent_by"], &sender["user_email"]),
        (&json!("client:slack-bot"), &json!("uann@example.com"))
    );
    for subject in ["slack-bot", "client:slack-bot"] {
        let others = tasks(&issuer.token(subject, &json!({}))?).await?;
        ensure!(others.is_empty(), "{subject} sees the bot's tasks: {others:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_a_task_list_and_the_answer_follows() -> Result<()> {
    let rig = Rig::simple(&echo(&["jira", "github", "slack"])?.asks("report", &["jira", "github", "slack"]))
        .await?;
    let thread = rig.slack.mention("C1", "UANN", "report", None);
    let messages = rig.answer(&thread).await?;
    let plan = &messages[0];
    assert_eq!(plan.title, "3 of 3 steps completed");
    let titles: Vec<&str> = plan.cards.iter().map(|card| card.title.as_str()).collect();
    assert_eq!(titles, ["[Jira] report", "[Github] report", "[Slack] report"]);
    assert!(
        plan.cards.iter().all(|card| card.status == "complete" && card.details.contains("Echo")),
        "{plan:#?}"
    );
    let shown = text(&messages);
    for part in ["I'll ask them.", "jira says: jira: report", "github says", "slack says"] {
        assert_eq!(shown.matches(part).count(), 1, "{part}: {shown}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_answer_continues_in_further_messages() -> Result<()> {
    let lines: String = (0..1_000)
        .map(|line| format!("let value_{line:04} = compute({line}) + offset;\n"))
        .collect::<Vec<_>>()
        .concat();
    let answer = format!("Here:\n\n```rust\n{lines}```\n\nDone.");
    let rig = Rig::simple(&Scenario::new().answers("long", &answer)).await?;
    let thread = rig.slack.mention("C1", "UANN", "long", None);
    let messages = rig.answer(&thread).await?;
    ensure!(messages.len() >= 4, "{}", messages.len());
    for message in &messages {
        assert_eq!(message.text.matches("```").count() % 2, 0);
    }
    let shown: String =
        text(&messages).split_inclusive('\n').filter(|line| line.starts_with("let ")).collect();
    assert_eq!(shown, lines);
    Ok(())
}

/// The message with an action.
fn with_action(messages: &[Message], action: &str) -> Option<Message> {
    messages.iter().find(|message| message.value_of(action).is_some()).cloned()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_person_who_asked_approves_and_the_decision_stays_visible() -> Result<()> {
    let mut rig = Rig::simple(&careful()?).await?;
    let thread = rig.slack.mention("C1", "UANN", "write it", None);
    let asked = |messages: &[Message]| with_action(messages, "caipe_approve").is_some();
    let messages = rig.until(&thread, "no approval is asked for", asked).await?;
    let question = with_action(&messages, "caipe_approve").context("no question")?;
    ensure!(question.block_text().contains("jira: write it"), "{question:#?}");
    rig.slack.press("C1", "UBOB", &question, "caipe_approve");
    let refused = |slack: &FakeSlack| {
        slack.whispers().iter().any(|whisper| whisper.user == "UBOB" && whisper.text.contains("<@UANN>"))
    };
    ensure!(rig.slack.until(LIMIT, refused).await, "another person is not told why");
    rig.restart_bot().await?;
    rig.slack.press("C1", "UANN", &question, "caipe_approve");
    let messages = rig.answer(&thread).await?;
    let shown = text(&messages);
    assert_eq!(shown.matches("jira says: jira: write it").count(), 1, "{shown}");
    let decided =
        messages.iter().find(|message| message.ts == question.ts).context("the question is gone")?;
    ensure!(
        decided.block_text().contains("Approved by <@UANN>") && decided.value_of("caipe_approve").is_none(),
        "{decided:#?}"
    );
    rig.slack.press("C1", "UANN", &question, "caipe_approve");
    let reported =
        |slack: &FakeSlack| slack.whispers().iter().any(|whisper| whisper.text.contains("already decided"));
    ensure!(rig.slack.until(LIMIT, reported).await, "nobody says that it is decided");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_rejected_with_a_reason_or_edited() -> Result<()> {
    let rig = Rig::simple(&careful()?).await?;
    let changes = [
        ("caipe_reject", json!({"reason": {"v": {"value": "not today"}}}), "not today"),
        (
            "caipe_edit",
            json!({"arguments": {"v": {"value": "{\"text\": \"something else\"}"}}}),
            "jira says: something else",
        ),
    ];
    for (modals, (action, values, expected)) in (1..).zip(changes) {
        let thread = rig.slack.mention("C1", "UANN", "write it", None);
        let asked = |messages: &[Message]| with_action(messages, action).is_some();
        let messages = rig.until(&thread, "no approval is asked for", asked).await?;
        rig.slack.press("C1", "UANN", &with_action(&messages, action).context("no question")?, action);
        ensure!(rig.slack.until(LIMIT, |slack| slack.modals().len() == modals).await, "no modal opens");
        let modal = rig.slack.modals().pop().context("no modal")?;
        if action == "caipe_edit" {
            rig.slack.submit("UANN", &modal, json!({"arguments": {"v": {"value": "nonsense"}}}));
            ensure!(
                rig.slack
                    .until(LIMIT, |slack| slack
                        .answers()
                        .iter()
                        .any(|answer| answer["response_action"] == "errors"))
                    .await
            );
        }
        rig.slack.submit("UANN", &modal, values);
        let shown = text(&rig.answer(&thread).await?);
        ensure!(shown.contains(expected), "{shown}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_is_answered_in_a_modal() -> Result<()> {
    let fields = json!([
        {"field_name": "team", "field_description": "Which team?", "field_type": "select", "field_values": ["core", "web"], "required": true},
        {"field_name": "note", "field_description": "Anything else"},
    ]);
    let ask = json!({"name": "request_user_input", "arguments": {"title": "Details", "description": "Tell me more.", "fields": fields}});
    let scenario = Scenario::new()
        .turn(json!({"user": "form", "turn": 0}), json!({"calls": [ask]}))
        .turn(json!({"user": "form"}), json!({"text": "Got {{ last_result }}"}));
    let rig = Rig::simple(&scenario).await?;
    let thread = rig.slack.mention("C1", "UANN", "form", None);
    let asked = |messages: &[Message]| with_action(messages, "caipe_answer").is_some();
    let messages = rig.until(&thread, "no form is shown", asked).await?;
    rig.slack.press(
        "C1",
        "UANN",
        &with_action(&messages, "caipe_answer").context("no form")?,
        "caipe_answer",
    );
    ensure!(rig.slack.until(LIMIT, |slack| !slack.modals().is_empty()).await, "no modal opens");
    let modal = rig.slack.modals().pop().context("no modal")?;
    assert_eq!(modal["blocks"][0]["element"]["type"], "static_select");
    let values = json!({"f0": {"v": {"selected_option": {"value": "1"}}}, "f1": {"v": {"value": "soon"}}});
    rig.slack.submit("UANN", &modal, values);
    let shown = text(&rig.answer(&thread).await?);
    ensure!(shown.contains("web") && shown.contains("soon"), "{shown}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_in_the_middle_continues_the_same_message() -> Result<()> {
    for is_killed in [false, true] {
        let mut rig = Rig::simple(&slow("word")).await?;
        let thread = rig.slack.mention("C1", "UANN", "slow", None);
        rig.until(&thread, "nothing is shown", |messages| text(messages).contains("word3 ")).await?;
        if is_killed {
            rig.restart_bot().await?;
        } else {
            rig.stop_bot().await?;
            rig.start_bot()?;
        }
        let messages = rig.answer(&thread).await?;
        assert_eq!(messages.len(), 1, "{messages:#?}");
        assert_eq!(text(&messages).trim(), words("word").trim());
        // A killed bot may not know whether its last call was done; then it replaces the message.
        let replaced = rig.slack.calls().iter().any(|call| call.method == "chat.update");
        ensure!(is_killed || !replaced, "the message is replaced, not continued");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_supervisor_that_dies_in_the_middle_leaves_no_text_of_its_first_attempt() -> Result<()> {
    for (again, replaces) in [("word", false), ("other", true)] {
        let mut rig = Rig::simple(&slow("word")).await?;
        let thread = rig.slack.mention("C1", "UANN", "slow", None);
        rig.until(&thread, "nothing is shown", |messages| text(messages).contains("word3 ")).await?;
        let url = rig.supervisor.url().to_owned();
        rig.supervisor.kill().await?;
        std::fs::write(rig.setup.dir().join("script.yaml"), slow(again).script())?;
        let setup = rig.setup.clone().listening_at(&url);
        rig.supervisor = setup.start().await?;
        let messages = rig.answer(&thread).await?;
        assert_eq!(messages.len(), 1, "{messages:#?}");
        assert_eq!(text(&messages).trim(), words(again).trim());
        let replaced = rig.slack.calls().iter().any(|call| call.method == "chat.update");
        assert_eq!(replaced, replaces, "{again}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_that_expire_or_are_missing_and_limits_lose_no_text() -> Result<()> {
    let words = words("word");
    let expiring = Options { stream_lifetime: Duration::from_millis(800), ..Options::default() };
    let missing = Options { streams: false, ..Options::default() };
    for (name, options, failures) in [
        ("expiry", expiring, vec![]),
        ("no streams", missing, vec![]),
        (
            "limits",
            Options::default(),
            vec![
                ("chat.startStream", Failure::RateLimit(1)),
                ("chat.appendStream", Failure::RateLimit(1)),
                ("chat.stopStream", Failure::RateLimit(1)),
            ],
        ),
        ("a lost answer", Options::default(), vec![("chat.appendStream", Failure::Lost)]),
        (
            "a rejected call",
            Options::default(),
            vec![("chat.appendStream", Failure::Code("invalid_chunks".to_owned()))],
        ),
    ] {
        let rig = Rig::start(&slow("word"), options, "").await?;
        for (method, failure) in failures {
            rig.slack.fail(method, failure);
        }
        let thread = rig.slack.mention("C1", "UANN", "slow", None);
        let messages = rig.answer(&thread).await.with_context(|| name.to_owned())?;
        assert_eq!(
            text(&messages).split_whitespace().collect::<Vec<_>>(),
            words.split_whitespace().collect::<Vec<_>>(),
            "{name}"
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn redeliveries_act_once_over_reconnects() -> Result<()> {
    let mut rig = Rig::simple(&Scenario::new().answers("hello", "Hello.")).await?;
    let thread = rig.slack.mention("C1", "UANN", "hello", None);
    rig.answer(&thread).await?;
    rig.slack.disconnect();
    let repeat = |rig: &Rig| {
        rig.slack.event(json!({"type": "app_mention", "channel": "C1", "user": "UANN", "text": format!("<@{BOT_USER}> hello"), "ts": thread, "channel_type": "channel"}));
    };
    repeat(&rig);
    rig.restart_bot().await?;
    repeat(&rig);
    ensure!(rig.slack.until(LIMIT, |slack| slack.deliveries().0 == 4).await, "{:?}", rig.slack.deliveries());
    let other = rig.slack.mention("C1", "UANN", "hello", None);
    rig.answer(&other).await?;
    assert_eq!(own(&rig.slack, "C1", &thread).len(), 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_stopped_from_its_thread() -> Result<()> {
    let rig = Rig::simple(&slow("word")).await?;
    let thread = rig.slack.mention("C1", "UANN", "slow", None);
    rig.until(&thread, "nothing is shown", |messages| text(messages).contains("word3 ")).await?;
    rig.slack.mention("C1", "UANN", "stop", Some(&thread));
    let messages =
        rig.until(&thread, "it does not stop", |messages| text(messages).contains("_Stopped._")).await?;
    ensure!(!text(&messages).contains("word59"));
    rig.slack.command("C1", "UANN", "status");
    ensure!(
        rig.slack
            .until(LIMIT, |slack| slack
                .whispers()
                .iter()
                .any(|whisper| whisper.text.contains("0 task(s) running")))
            .await
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_question_is_not_asked_again_and_a_deleted_one_stops_its_task() -> Result<()> {
    let rig = Rig::simple(&slow("word")).await?;
    let thread = rig.slack.mention("C1", "UANN", "slow", None);
    rig.until(&thread, "nothing is shown", |messages| text(messages).contains("word3 ")).await?;
    let previous = json!({"user": "UANN", "ts": thread, "text": "slow"});
    let change = |message: Value| {
        rig.slack.event(json!({"type": "message", "subtype": "message_changed", "channel": "C1", "message": message, "previous_message": previous}));
    };
    // A preview of a link is no edit.
    change(json!({"user": "UANN", "ts": thread, "text": "slow"}));
    change(json!({"user": "UANN", "ts": thread, "text": "slower", "edited": {"ts": "1.0"}}));
    let reported = |slack: &FakeSlack| {
        slack
            .whispers()
            .iter()
            .any(|whisper| whisper.user == "UANN" && whisper.text.contains("before your edit"))
    };
    ensure!(rig.slack.until(LIMIT, reported).await, "nobody says what an edit does");
    change(json!({"subtype": "tombstone", "user": "USLACKBOT", "ts": thread}));
    let messages =
        rig.until(&thread, "it does not stop", |messages| text(messages).contains("_Stopped._")).await?;
    ensure!(!text(&messages).contains("word59"));
    assert_eq!(rig.slack.whispers().len(), 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn feedback_asks_again_and_a_failure_offers_a_retry() -> Result<()> {
    let scenario = Scenario::new()
        .answers("An earlier attempt", "Now it works.")
        .turn(json!({"user": "broken"}), json!({"error": {"status": 400, "message": "no"}}))
        .answers("more briefly", "Hi.")
        .answers("hello", "Hello to you.");
    let rig = Rig::simple(&scenario).await?;
    let thread = rig.slack.mention("C1", "UANN", "hello", None);
    let answer = rig.answer(&thread).await?.remove(0);
    let value = answer.value_of("caipe_feedback").context("no buttons")?.replacen("positive", "negative", 1);
    rig.slack.press_with("C1", "UANN", &answer, "caipe_feedback", &value);
    ensure!(
        rig.slack
            .until(LIMIT, |slack| slack
                .whispers()
                .iter()
                .any(|whisper| whisper.value_of("caipe_feedback_less_verbose").is_some()))
            .await
    );
    let whisper = rig.slack.whispers().pop().context("no question")?;
    rig.slack.press("C1", "UANN", &whisper, "caipe_feedback_less_verbose");
    rig.until(&thread, "no briefer answer", |messages| text(messages).contains("Hi.")).await?;

    let thread = rig.slack.mention("C1", "UANN", "broken", None);
    let failed = |messages: &[Message]| with_action(messages, "caipe_retry").is_some();
    let messages = rig.until(&thread, "no retry is offered", failed).await?;
    ensure!(text(&messages).contains("⚠️"), "{messages:#?}");
    rig.slack.press(
        "C1",
        "UANN",
        &with_action(&messages, "caipe_retry").context("no button")?,
        "caipe_retry",
    );
    rig.until(&thread, "the retry has no answer", |messages| text(messages).contains("Now it works."))
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_channel_ends_a_turn_and_a_revoked_token_ends_the_bot() -> Result<()> {
    let mut rig = Rig::simple(&Scenario::new().answers("hello", "Hello.")).await?;
    rig.slack.fail("chat.startStream", Failure::Code("channel_not_found".to_owned()));
    let thread = rig.slack.mention("C1", "UANN", "hello", None);
    let tried = |slack: &FakeSlack| slack.calls().iter().any(|call| call.error == "channel_not_found");
    ensure!(rig.slack.until(LIMIT, tried).await);
    let other = rig.slack.mention("C1", "UANN", "hello", None);
    rig.answer(&other).await?;
    assert!(own(&rig.slack, "C1", &thread).is_empty());
    rig.slack.fail("chat.startStream", Failure::Code("token_revoked".to_owned()));
    rig.slack.mention("C1", "UANN", "hello", None);
    let status = tokio::time::timeout(LIMIT, rig.bot.wait()).await.context("the bot goes on")??;
    assert_eq!(status.code(), Some(1));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quiet_channel_is_answered_only_with_confidence() -> Result<()> {
    let config = "C1: {name: help, ai_enabled: true, qanda: {enabled: true, overthink: true}}";
    let scenario = Scenario::new()
        .answers("unsure", "Perhaps.\n[LOW_CONFIDENCE]")
        .answers("sure", "Yes.\n[CONFIDENCE: HIGH]");
    let rig = Rig::start(&scenario, Options::default(), config).await?;
    let ask = |text: &str| {
        let ts = rig.slack.write("C1", "UANN", text, None);
        rig.slack.event(json!({"type": "message", "channel": "C1", "user": "UANN", "text": text, "ts": ts, "channel_type": "channel"}));
        ts
    };
    let (silent, answered) = (ask("unsure"), ask("sure"));
    let messages = rig.answer(&answered).await?;
    assert_eq!(text(&messages), "Yes.");
    assert!(own(&rig.slack, "C1", &silent).is_empty());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_probes_say_whether_the_bot_receives_events() -> Result<()> {
    let setup = Scenario::new().answers("hello", "Hello.").setup()?;
    let supervisor = setup.start().await?;
    let slack = FakeSlack::start(Options::default()).await?;
    slack.fail("auth.test", Failure::Lost);
    let (_bot, url) = bot_with_endpoints(bot_command(&setup, supervisor.url(), &slack, "")?).await?;
    until_status(&url, "/ready", 503).await?;
    until_status(&url, "/health", 200).await?;
    until_status(&url, "/ready", 200).await?;
    // Slack is unavailable for the next minute.
    slack.fail("apps.connections.open", Failure::RateLimit(60));
    slack.disconnect();
    until_status(&url, "/ready", 503).await?;
    until_status(&url, "/health", 200).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_over_http_needs_a_signature() -> Result<()> {
    let setup = Scenario::new().answers("hello", "Hello.").setup()?;
    let supervisor = setup.start().await?;
    let slack = FakeSlack::start(Options::default()).await?;
    let mut command = bot_command(&setup, supervisor.url(), &slack, "")?;
    command.env("SLACK_BOT_MODE", "http").env("SLACK_SIGNING_SECRET", "secret");
    let (_bot, url) = bot_with_endpoints(command).await?;
    until_status(&url, "/ready", 200).await?;
    let event = reqwest::Client::new().post(format!("{url}/slack/events")).body("{}");
    assert_eq!(event.send().await?.status(), 401);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_manifest_is_printed_and_missing_settings_are_named() -> Result<()> {
    let setup = Setup::new()?;
    let output = setup.run(&["slack", "manifest"]).await?;
    let manifest: Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(manifest["settings"]["socket_mode_enabled"], true);
    let page = std::fs::read_to_string(programs::workspace().join("docs/slack.md"))?;
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let described: Vec<&str> =
        rows.map(|(scope, _)| scope).filter(|scope| scope.contains(':') || *scope == "commands").collect();
    assert_eq!(
        manifest["oauth_config"]["scopes"]["bot"],
        json!(described),
        "docs/slack.md names other scopes"
    );
    let output = setup.run(&["slack"]).await?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(!output.status.success() && error.contains("SLACK_BOT_TOKEN"), "{error}");
    Ok(())
}
