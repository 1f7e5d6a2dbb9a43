//! Files in both directions.

use caipe_fixtures::slack::{Download, File};

use super::agent::Agent;
use super::*;

/// A bot of an agent without a model.
struct AgentRig {
    slack: FakeSlack,
    agent: Agent,
    setup: Setup,
    bot: Child,
}

impl AgentRig {
    async fn start(input_modes: &[&str]) -> Result<Self> {
        let (setup, agent) = (Setup::new()?, Agent::start(input_modes).await?);
        let slack = FakeSlack::start(Options::default()).await?;
        let bot = bot(&setup, agent.url(), &slack, "")?;
        Ok(Self { slack, agent, setup, bot })
    }

    async fn restart_bot(&mut self) -> Result<()> {
        self.bot.kill().await?;
        self.bot = bot(&self.setup, self.agent.url(), &self.slack, "")?;
        Ok(())
    }

    /// Waits until the bot's messages in a thread fulfil a condition.
    async fn until(
        &self,
        thread: &str,
        what: &str,
        holds: impl Fn(&[Message]) -> bool,
    ) -> Result<Vec<Message>> {
        until_own(&self.slack, ("C1", thread), what, holds).await
    }
}

fn files(messages: &[Message]) -> Vec<File> {
    messages.iter().flat_map(|message| message.files.clone()).collect()
}

fn file(name: &str, content: &str) -> File {
    File { name: name.to_owned(), content: content.as_bytes().to_vec() }
}

fn has_file(name: &'static str) -> impl Fn(&[Message]) -> bool {
    move |messages| files(messages).iter().any(|file| file.name == name)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_the_agent_is_uploaded_once_whatever_restarts() -> Result<()> {
    let mut rig = AgentRig::start(&["text/plain"]).await?;
    rig.agent.answers(&[
        json!({"text": "Two files."}),
        json!({"raw": "YSxiCg==", "filename": "dir/table.csv", "mediaType": "text/csv"}),
        json!({"url": format!("{}/held.txt", rig.agent.url()), "filename": "held.txt"}),
        json!({"url": "https://example.com/other.pdf", "filename": "other.pdf"}),
    ]);
    let thread = rig.slack.mention("C1", "UANN", "report", None);
    rig.until(&thread, "the first file is missing", has_file("dir_table.csv")).await?;
    rig.restart_bot().await?;
    rig.agent.release();
    let messages = rig.until(&thread, "the second file is missing", has_file("held.txt")).await?;
    assert_eq!(files(&messages), [file("dir_table.csv", "a,b\n"), file("held.txt", "held content")]);
    let shown = text(&messages);
    ensure!(shown.contains("📎 other.pdf: https://example.com/other.pdf"), "{shown}");
    ensure!(!shown.contains("is not shown"), "{shown}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_uploaded_is_named_with_the_reason() -> Result<()> {
    let rig = AgentRig::start(&["text/plain"]).await?;
    rig.agent.answers(&[json!({"raw": "YSxiCg==", "filename": "table.csv"})]);
    for (method, failure, reason, uploads) in [
        ("files.getUploadURLExternal", Failure::Code("missing_scope".to_owned()), "files:write", 0),
        ("files.getUploadURLExternal", Failure::Lost, "Slack gave no answer", 0),
        ("files.completeUploadExternal", Failure::Code("file_not_found".to_owned()), "file_not_found", 0),
        ("files.completeUploadExternal", Failure::Lost, "may be missing", 1),
    ] {
        rig.slack.fail(method, failure);
        let thread = rig.slack.mention("C1", "UANN", "report", None);
        let is_named = |messages: &[Message]| text(messages).contains("table.csv is not shown");
        let messages = rig.until(&thread, "nothing names the file", is_named).await?;
        ensure!(text(&messages).contains(reason), "{reason}: {messages:#?}");
        assert_eq!(files(&messages).len(), uploads, "{reason}");
    }
    // A limit delays the file.
    rig.slack.fail("files.completeUploadExternal", Failure::RateLimit(1));
    let thread = rig.slack.mention("C1", "UANN", "report", None);
    let messages = rig.until(&thread, "the file is missing", has_file("table.csv")).await?;
    ensure!(!text(&messages).contains("is not shown"), "{messages:#?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_people_reach_an_agent_that_accepts_them() -> Result<()> {
    let rig = AgentRig::start(&["text", "image/png"]).await?;
    let other = FakeSlack::start(Options::default()).await?;
    let foreign = other.attach("foreign.txt", "text/plain", 4, Download::Content(b"evil".to_vec()));
    let target = foreign["url_private"].as_str().unwrap_or_default().to_owned();
    let attach = |name: &str, media_type: &str, content: &[u8]| {
        rig.slack.attach(name, media_type, content.len(), Download::Content(content.to_vec()))
    };
    let attached = [
        attach("app.log", "text/plain", b"out of memory"),
        attach("plot.png", "image/png", b"\x89PNG"),
        attach("photo.jpg", "image/jpeg", b"\xff\xd8"),
        attach("paper.pdf", "application/pdf", b"%PDF"),
        attach("binary.txt", "text/plain", b"\xff\x00"),
        rig.slack.attach("large.log", "text/plain", 200_000, Download::Content(Vec::new())),
        rig.slack.attach("lies.log", "text/plain", 1, Download::Content(vec![b'a'; 200_000])),
        rig.slack.attach("moved.log", "text/plain", 4, Download::Redirect(target)),
        foreign,
    ];
    rig.slack.mention_with("C1", "UANN", "what is this?", &attached);
    let received = rig.slack.until(LIMIT, |_| !rig.agent.messages().is_empty()).await;
    ensure!(received, "the agent got no message");
    let parts = rig.agent.messages().remove(0);
    let text = parts[0]["text"].as_str().unwrap_or_default();
    ensure!(text.starts_with("what is this?\n\n"), "{text}");
    for (name, reason) in [
        ("photo.jpg", "does not accept"),
        ("paper.pdf", "does not accept"),
        ("binary.txt", "not text"),
        ("large.log", "too large"),
        ("lies.log", "could not be read"),
        ("moved.log", "could not be read"),
        ("foreign.txt", "not stored in Slack"),
    ] {
        let line = text.lines().find(|line| line.starts_with(name));
        ensure!(line.is_some_and(|line| line.contains(reason)), "{name}: {text}");
    }
    assert_eq!(parts[1], json!({"text": "The attached file app.log:\nout of memory"}));
    assert_eq!(parts[2], json!({"raw": "iVBORw==", "filename": "plot.png", "mediaType": "image/png"}));
    assert_eq!(parts.as_array().map(Vec::len), Some(3), "{parts}");
    assert!(other.downloads().is_empty(), "the token reached another host: {:?}", other.downloads());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_of_a_supervisor_reads_an_attached_text() -> Result<()> {
    let rig = Rig::simple(&Scenario::new().answers("out of memory", "Give it more memory.")).await?;
    let attach = |name: &str, media_type: &str, content: &str| {
        let download = Download::Content(content.as_bytes().to_vec());
        rig.slack.attach(name, media_type, content.len(), download)
    };
    let attached = [attach("app.log", "text/plain", "out of memory"), attach("a.png", "image/png", "PNG")];
    let thread = rig.slack.mention_with("C1", "UANN", "why?", &attached);
    assert_eq!(text(&rig.answer(&thread).await?), "Give it more memory.");
    // The image is not requested, because the supervisor accepts no images.
    assert_eq!(rig.slack.downloads().len(), 1);
    Ok(())
}
