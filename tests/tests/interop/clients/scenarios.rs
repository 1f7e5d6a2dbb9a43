//! What every client must be able to do with our server.

use anyhow::{Context, Result, ensure};
use caipe_tests::programs;
use caipe_tests::scenario::Scenario;
use caipe_tests::supervisor::Supervisor;
use serde_json::json;

use super::Client;
use super::push::push;
use crate::sdk_events::{Event, Task};

/// A text that suffers where bytes, code points, lines or white space are not kept as they are.
const TEXT: &str = "one  two\nthree – vier fünf 六 🚀 \"seven\" \\n\t<end>&amp;";

/// A supervisor that streams a text, streams without end, asks before it writes, and echoes everything else.
pub(super) async fn supervisor() -> Result<Supervisor> {
    let server = programs::fixture_mcp()?;
    let task =
        json!({"name": "task", "arguments": {"subagent_type": "jira", "description": "jira: {{ user }}"}});
    let mut scenario = Scenario::new()
        .agent("jira", &server, &[])
        .agent_calls("jira", "echo", json!({"text": "{{ user }}"}))
        .turn(json!({"user": "write", "turn": 0}), json!({"calls": [task]}))
        .turn(json!({"user": "write"}), json!({"text": "Done: {{ last_result | first_line }}"}))
        .turn(json!({"user": "stream"}), json!({"text": TEXT, "delay_ms": 5}))
        .turn(
            json!({"user": "forever"}),
            json!({"repeat": {"token": "tick ", "times": 1_000_000}, "delay_ms": 5}),
        )
        .turn(json!({}), json!({"text": "You said: {{ user }}"}))
        .set("prompts", json!({"answerMode": "Marker"}));
    scenario.change_agent("jira", "requireApproval", json!(["ec*"]));
    // The receiver of push notifications is on this machine.
    scenario.setup()?.env("CAIPE_PUSH_ALLOW", "127.0.0.1").start().await
}

/// Runs every scenario, and tells all that failed.
pub(super) async fn run(mut client: Client) -> Result<()> {
    let mut faults = Vec::new();
    macro_rules! scenarios {
        ($($scenario:ident),* $(,)?) => {
            $(if let Err(error) = $scenario(&mut client).await {
                faults.push(format!("{}: {error:#}", stringify!($scenario)));
            })*
        };
    }
    scenarios![card, send, go_on, stream, get, cancel, return_at_once, resubscribe, ask, list, push, errors];
    ensure!(faults.is_empty(), "{}", faults.join("\n\n"));
    Ok(())
}

async fn card(client: &mut Client) -> Result<()> {
    let output = client.ask(json!({"do": "card"})).await?;
    let card = output.one("card")?;
    ensure!(card["name"] == "AI Platform Engineer" && card["capabilities"]["streaming"] == true, "{card}");
    ensure!(card["skills"][0]["id"] == "ai_platform_engineer", "{card}");
    let transport = output.lines[0]["transport"].as_str().unwrap_or_default();
    ensure!(
        transport.trim_start_matches('_').starts_with(client.transport),
        "{transport} was chosen, not {}",
        client.transport
    );
    Ok(())
}

/// A message that is waited for: the task as it ended.
async fn send(client: &mut Client) -> Result<()> {
    let task = client.send(json!({"do": "send", "text": "hello"})).await?;
    ensure!(task.state == "completed" && task.text("final_result") == "You said: hello", "{task:?}");
    Ok(())
}

/// A second message of the same conversation is a task of its own there.
async fn go_on(client: &mut Client) -> Result<()> {
    let first = client.send(json!({"do": "send", "text": "hello"})).await?;
    let again = json!({"do": "send", "text": "again", "context": first.context});
    let second = client.send(again).await?;
    ensure!(second.context == first.context && second.id != first.id, "{first:?} {second:?}");
    ensure!(second.text("final_result") == "You said: again", "{second:?}");
    Ok(())
}

/// A stream begins with the task, brings the text in pieces that make it up exactly, and ends with the task.
async fn stream(client: &mut Client) -> Result<()> {
    let (events, output) = client.events(json!({"do": "stream", "text": "stream it"})).await?;
    ensure!(matches!(events.first(), Some(Event::Task(_))), "the first event is no task: {events:?}");
    let pieces = events
        .iter()
        .filter(|event| matches!(event, Event::Artifact(piece, _) if piece.name == "streaming_result"));
    ensure!(pieces.count() > 2, "the text did not come in pieces: {events:?}");
    ensure!(matches!(events.last(), Some(Event::Status(state, _)) if state == "completed"), "{events:?}");
    let mut wholes = vec![Task::of(&events)];
    // What the SDK put together by itself.
    wholes.extend(output.all("whole")?.into_iter().map(Task::read));
    for whole in wholes {
        ensure!(whole.state == "completed", "{whole:?}");
        ensure!(whole.text("streaming_result") == TEXT && whole.text("final_result") == TEXT, "{whole:?}");
    }
    Ok(())
}

/// A task can be looked at later, with as much of its history as is wanted.
async fn get(client: &mut Client) -> Result<()> {
    let sent = client.send(json!({"do": "send", "text": "hello"})).await?;
    let task = client.task(json!({"do": "get", "id": sent.id})).await?;
    ensure!(task == sent, "{task:?} is not {sent:?}");
    let task = client.task(json!({"do": "get", "id": sent.id, "history": 0})).await?;
    ensure!(task.history == 0, "{task:?}");
    Ok(())
}

/// A task that is canceled while it runs ends so, on the stream and for good.
async fn cancel(client: &mut Client) -> Result<()> {
    let (events, output) =
        client.events(json!({"do": "stream", "text": "forever", "cancel_after": 4})).await?;
    ensure!(Task::read(output.one("task")?).state == "canceled", "{output:?}");
    ensure!(matches!(events.last(), Some(Event::Status(state, _)) if state == "canceled"), "{events:?}");
    let whole = Task::of(&events);
    let task = client.task(json!({"do": "get", "id": whole.id})).await?;
    ensure!(task.state == "canceled" && task.artifacts == whole.artifacts, "{task:?} is not {whole:?}");
    Ok(())
}

/// Who does not want to wait gets the task at once; it runs on.
async fn return_at_once(client: &mut Client) -> Result<()> {
    let task = client.send(json!({"do": "send", "text": "forever", "immediately": true})).await?;
    ensure!(task.state == "submitted" || task.state == "working", "{task:?}");
    let task = client.task(json!({"do": "cancel", "id": task.id})).await?;
    ensure!(task.state == "canceled", "{task:?}");
    Ok(())
}

/// A client that loses the stream half way continues with a snapshot of the task and misses nothing.
async fn resubscribe(client: &mut Client) -> Result<()> {
    let start = json!({"do": "stream", "text": "forever", "stop_after": 4});
    let (before, _) = client.events(start).await?;
    let before = Task::of(&before);
    let again = json!({"do": "resubscribe", "id": before.id, "cancel_after": 4});
    let (events, _) = client.events(again).await?;
    ensure!(matches!(events.first(), Some(Event::Task(_))), "the first event is no task: {events:?}");
    let whole = Task::of(&events);
    let text = whole.text("streaming_result");
    ensure!(text.starts_with(before.text("streaming_result")), "{before:?} {whole:?}");
    let task = client.task(json!({"do": "get", "id": before.id})).await?;
    ensure!(task.state == "canceled" && whole.state == "canceled", "{task:?} {whole:?}");
    ensure!(task.text("streaming_result") == text, "the stream made {text:?} of {task:?}");
    Ok(())
}

/// An agent that asks is waited for, and answered in the same task.
async fn ask(client: &mut Client) -> Result<()> {
    let asked = client.send(json!({"do": "send", "text": "write it"})).await?;
    ensure!(asked.state == "input-required", "{asked:?}");
    let question = asked.text("streaming_result");
    let code = question.split("`approve ").nth(1).and_then(|rest| rest.split('`').next());
    let approve = format!("approve {}", code.with_context(|| format!("no code in {question:?}"))?);
    let yes = json!({"do": "stream", "text": approve, "task": asked.id, "context": asked.context});
    let (events, _) = client.events(yes).await?;
    let whole = Task::of(&events);
    ensure!(whole.state == "completed" && whole.context == asked.context, "{whole:?}");
    ensure!(whole.text("final_result") == "Done: jira says: jira: write it", "{whole:?}");
    Ok(())
}

/// The tasks of a conversation, with what they made; 0.3 has no such list.
async fn list(client: &mut Client) -> Result<()> {
    if client.old {
        return Ok(());
    }
    let sent = client.send(json!({"do": "send", "text": "hello"})).await?;
    let output = client.ask(json!({"do": "list", "context": sent.context})).await?;
    let task = Task::read(output.one("task")?);
    ensure!(task.id == sent.id && task.artifacts == sent.artifacts, "{task:?} is not {sent:?}");
    Ok(())
}

/// Each failure is the one that the SDK knows by its name.
async fn errors(client: &mut Client) -> Result<()> {
    for command in ["get", "cancel", "resubscribe"] {
        let command = json!({"do": command, "id": "no-such-task"});
        client.fails(command, "TaskNotFoundError", -32001).await?;
    }
    let unknown = json!({"do": "send", "text": "hello", "task": "no-such-task"});
    client.fails(unknown, "TaskNotFoundError", -32001).await?;
    let ended = client.send(json!({"do": "send", "text": "hello"})).await?;
    client.fails(json!({"do": "cancel", "id": ended.id}), "TaskNotCancelableError", -32002).await?;
    let more = json!({"do": "send", "text": "hello", "task": ended.id, "context": ended.context});
    client.fails(more, "UnsupportedOperationError", -32004).await.context("a message to an ended task")
}
