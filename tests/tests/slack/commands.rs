//! Commands for conversations in the direct message.

use super::*;

/// Waits for a response that only one person sees.
async fn responds(slack: &FakeSlack, user: &str, part: &str) -> Result<()> {
    let is_there = |slack: &FakeSlack| {
        slack.whispers().iter().any(|whisper| whisper.user == user && whisper.text.contains(part))
    };
    ensure!(slack.until(LIMIT, is_there).await, "no `{part}` for {user}: {:#?}", slack.whispers());
    Ok(())
}

/// The bot's messages at the top of a channel.
fn top(slack: &FakeSlack, channel: &str) -> Vec<Message> {
    let messages = slack.channel(channel).into_iter();
    messages.filter(|message| message.user == BOT_USER && message.ts == message.thread).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_starts_a_conversation_that_only_its_writer_sees() -> Result<()> {
    let scenario = Scenario::new()
        .turn(json!({"user": "and now"}), json!({"text": "Still {{ user }}."}))
        .answers("why is it slow", "Because.");
    let rig = Rig::simple(&scenario).await?;
    rig.slack.command("C1", "UANN", "new why is it slow & <!channel>");
    responds(&rig.slack, "UANN", "in our direct message").await?;
    let answered = |slack: &FakeSlack| text(&slack.channel("DUANN")).contains("Because.");
    ensure!(rig.slack.until(LIMIT, answered).await, "{:#?}", rig.slack.channel("DUANN"));
    let question = top(&rig.slack, "DUANN").remove(0);
    assert_eq!(question.text, "> why is it slow &amp; @channel");
    assert!(rig.slack.channel("C1").is_empty());
    // The thread is the conversation.
    rig.slack.direct("UANN", "and now", Some(&question.ts));
    let continued = |slack: &FakeSlack| text(&slack.channel("DUANN")).contains("Still and now.");
    ensure!(rig.slack.until(LIMIT, continued).await, "{:#?}", rig.slack.channel("DUANN"));

    rig.slack.command("DUANN", "UANN", "new");
    let started = |slack: &FakeSlack| top(slack, "DUANN").len() == 2;
    ensure!(rig.slack.until(LIMIT, started).await, "{:#?}", rig.slack.channel("DUANN"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_shares_only_the_last_answer_of_the_own_direct_message() -> Result<()> {
    let config = "C1: {name: help, ai_enabled: true}\nC2: {name: other, ai_enabled: true}";
    let scenario = Scenario::new()
        .answers("in the channel", "For C2 only.")
        .answers("first", "The first.")
        .answers("second", "The **second** <!channel>.");
    let mut rig = Rig::start(&scenario, Options::default(), config).await?;
    for (question, answer) in [("first", "The first."), ("second", "The **second**")] {
        rig.slack.direct("UANN", question, None);
        let answered = |slack: &FakeSlack| text(&slack.channel("DUANN")).contains(answer);
        ensure!(rig.slack.until(LIMIT, answered).await, "no answer to {question}");
    }
    rig.slack.mention("C2", "UANN", "in the channel", None);
    let answered = |slack: &FakeSlack| {
        let messages = slack.channel("C2");
        text(&messages).contains("For C2 only.") && messages.iter().all(|message| !message.streaming)
    };
    ensure!(rig.slack.until(LIMIT, answered).await, "no answer in the channel");
    // The last answer survives a restart.
    rig.stop_bot().await?;
    rig.start_bot()?;

    rig.slack.command("C1", "UBOB", "share");
    responds(&rig.slack, "UBOB", "has no answer").await?;
    rig.slack.command("C3", "UANN", "share");
    responds(&rig.slack, "UANN", "nothing in this channel").await?;
    rig.slack.command("DUANN", "UANN", "share");
    responds(&rig.slack, "UANN", "in the channel where").await?;
    rig.slack.fail("chat.postMessage", Failure::Code("not_in_channel".to_owned()));
    rig.slack.command("C1", "UANN", "share");
    responds(&rig.slack, "UANN", "Invite me").await?;
    assert!(rig.slack.channel("C1").is_empty(), "{:#?}", rig.slack.channel("C1"));

    rig.slack.command("C1", "UANN", "share");
    responds(&rig.slack, "UANN", "is in this channel now").await?;
    let shared = rig.slack.channel("C1");
    assert_eq!(shared.len(), 1, "{shared:#?}");
    assert_eq!(shared[0].text, "The **second** <\u{200b}!channel>.");
    assert!(shared[0].block_text().contains("<@UANN> shares an answer"), "{shared:#?}");
    Ok(())
}

/// Each person sees and deletes only what is remembered about that person.
#[tokio::test(flavor = "multi_thread")]
async fn a_person_sees_and_deletes_what_is_remembered() -> Result<()> {
    let save = json!({"calls": [{"name": "memory_save", "arguments": {"fact": "{{ user }} <!channel>"}}]});
    let scenario = Scenario::new()
        .set("memory", json!({"supervisor": true}))
        .turn(json!({"user": "likes", "turn": 0}), save)
        .answers("likes", "Noted.");
    let rig = Rig::simple(&scenario).await?;
    for (user, words) in [("UANN", "likes tea"), ("UBOB", "likes coffee")] {
        rig.slack.direct(user, words, None);
        let channel = format!("D{user}");
        let answered = |slack: &FakeSlack| text(&slack.channel(&channel)).contains("Noted.");
        ensure!(rig.slack.until(LIMIT, answered).await, "{:#?}", rig.slack.channel(&channel));
    }
    rig.slack.command("C1", "UANN", "memory");
    responds(&rig.slack, "UANN", "likes tea").await?;
    let listed = |user: &str| {
        let whispers = rig.slack.whispers().into_iter().filter(|whisper| whisper.user == user);
        whispers.map(|whisper| whisper.text).collect::<String>()
    };
    let shown = listed("UANN");
    ensure!(!shown.contains("coffee") && !shown.contains("<!channel>"), "{shown}");
    let id = shown.split('`').nth(1).context("no id")?.to_owned();
    rig.slack.command("C1", "UBOB", &format!("memory forget {id}"));
    responds(&rig.slack, "UBOB", "no such fact").await?;
    rig.slack.command("C1", "UANN", &format!("memory forget `{id}`"));
    responds(&rig.slack, "UANN", "is forgotten").await?;
    rig.slack.command("C1", "UANN", "memory");
    responds(&rig.slack, "UANN", "Nothing is remembered").await?;
    rig.slack.command("C1", "UBOB", "memory forget all");
    responds(&rig.slack, "UBOB", "1 facts").await?;
    rig.slack.command("C1", "UBOB", "memory please");
    responds(&rig.slack, "UBOB", "Write `/caipe memory`").await
}
