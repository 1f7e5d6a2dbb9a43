//! Conversations with an agent behind a real HTTP server, in both versions of the wire.

#[path = "chat_peer.rs"]
mod peer;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::Write;
use std::rc::Rc;
use std::time::Duration;

use async_trait::async_trait;
use caipe_a2a::client::{Followed, Reconnect};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::follow::follow;
use super::interrupts::Interrupt;
use super::lines::Typed;
use super::*;
use peer::{Peer, Step, Wire, artifact, notice, status, submitted};

/// Output that a test can read while it is written.
#[derive(Debug, Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Shared {
    fn text(&self) -> String {
        String::from_utf8(self.0.borrow().clone()).unwrap()
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A user who types what was written down.
struct Typist(VecDeque<Typed>);

#[async_trait]
impl Prompt for Typist {
    async fn read(&mut self, _prompt: String, _remembered: bool) -> io::Result<Typed> {
        Ok(self.0.pop_front().unwrap_or(Typed::Closed))
    }
}

struct Talk {
    session: Session,
    output: Shared,
    interrupts: mpsc::Sender<Interrupt>,
}

impl Talk {
    async fn with(peer: &Peer) -> Self {
        let client =
            A2aClient::connect(&peer.url, reqwest::Client::new(), ClientOptions::default()).await.unwrap();
        let output = Shared::default();
        let (interrupts, queue) = mpsc::channel(4);
        let session = Session {
            client,
            url: peer.url.clone(),
            context: None,
            screen: Box::new(Plain::new(output.clone())),
            interrupts: Interrupts::from_queue(queue),
            lines: None,
            aside: false,
            waiting: None,
            trace: None,
            task: None,
            facts: Vec::new(),
        };
        Self { session, output, interrupts }
    }

    fn types(mut self, lines: &[&str]) -> Self {
        let lines = lines.iter().map(|line| Typed::Line((*line).to_owned())).collect();
        self.session.lines = Some(Box::new(Typist(lines)));
        self
    }
}

fn tokens(words: &[&str]) -> Vec<Step> {
    let chunk = |(at, word): (usize, &&str)| Step::Event(artifact("streaming_result", "s", word, at > 0));
    words.iter().enumerate().map(chunk).collect()
}

fn answered() -> Vec<Step> {
    let mut steps = vec![
        Step::Event(submitted()),
        Step::Event(notice("n1", "🔧 Supervisor: Calling Agent Jira...\n", "notification")),
        Step::Event(notice("n2", "🔧 Jira: Calling tool: Get_Issue\n", "sub-agent")),
    ];
    steps.extend(tokens(&["There are ", "**two", "** issues."]));
    steps.push(Step::Event(artifact("final_result", "f", "There are **two** issues.", false)));
    steps.push(Step::Event(status("completed", "")));
    steps
}

#[tokio::test]
async fn an_answer_looks_the_same_in_both_versions() {
    for wire in [Wire::V0_3, Wire::V1_0] {
        let peer = Peer::start(wire, vec![answered()]).await;
        let mut talk = Talk::with(&peer).await;
        let left = talk.session.say("how many?").await.unwrap();
        assert_eq!(left, TurnOutcome::Ended(End::Completed));
        assert_eq!(
            talk.output.text(),
            "🔧 Supervisor: Calling Agent Jira...\n   🔧 Jira: Calling tool: Get_Issue\n\nThere are **two** issues.\n"
        );
        assert_eq!(
            (talk.session.context.as_deref(), talk.session.trace.as_deref()),
            (Some("c"), Some("f00"))
        );
        let sent = &peer.requests()[0];
        assert_eq!(sent.pointer("/params/message/parts/0/text"), Some(&json!("how many?")));
    }
}

#[tokio::test]
async fn a_conversation_keeps_its_context() {
    let peer = Peer::start(Wire::V1_0, vec![answered(), answered(), answered()]).await;
    let mut talk = Talk::with(&peer)
        .await
        .types(&["one", "", "two", "/wat", "/help", "/trace", "/new", "three", "/quit"]);
    talk.session.converse().await.unwrap();
    let contexts: Vec<Value> =
        peer.requests().iter().map(|sent| sent["params"]["message"]["contextId"].clone()).collect();
    assert_eq!(contexts, [json!(null), json!("c"), json!(null)]);
}

#[tokio::test]
async fn a_lost_connection_is_taken_up_where_it_broke() {
    for wire in [Wire::V0_3, Wire::V1_0] {
        let mut first = vec![Step::Event(submitted())];
        first.extend(tokens(&["One ", "two "]));
        first.push(Step::Break);
        let mut second = vec![Step::Event(peer::snapshot("One two ", "working"))];
        second.push(Step::Event(artifact("streaming_result", "s", "three.", true)));
        second.push(Step::Event(status("completed", "")));
        let peer = Peer::start(wire, vec![first, second]).await;
        let mut talk = Talk::with(&peer).await;
        let left = talk.session.say("count").await.unwrap();
        assert_eq!(left, TurnOutcome::Ended(End::Completed));
        assert_eq!(
            talk.output.text(),
            "One two\n\n… connection lost, taking it up again (1 of 5)\n\nthree.\n"
        );
        assert_eq!(peer.last_event_ids(), [None, Some(3)]);
    }
}

#[tokio::test]
async fn a_connection_that_stays_lost_is_given_up() {
    let broken = || vec![Step::Event(submitted()), Step::Break];
    let peer = Peer::start(Wire::V1_0, (0..7).map(|_| broken()).collect()).await;
    let reconnect = Reconnect { first_wait: Duration::from_millis(1), ..Reconnect::default() };
    let options = ClientOptions { reconnect, ..ClientOptions::default() };
    let client = A2aClient::connect(&peer.url, reqwest::Client::new(), options).await.unwrap();
    let message = caipe_a2a::model::Message::user("m", "hello");
    let mut events = follow(&client, caipe_a2a::model::SendMessageRequest::new(message));
    let mut lost = 0;
    let error = loop {
        match events.next().await.expect("an error comes before the end") {
            Ok(Followed::Lost { .. }) => lost += 1,
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(lost, 5);
    assert!(matches!(error, FollowError::Lost { .. }), "{error}");
    let line = error::explain_follow(&error, &peer.url);
    let command = format!("caipe-supervisor chat --url {} --task t", peer.url);
    assert!(line.ends_with(&command), "{line}");
    assert_eq!(peer.requests().len(), 6);
}

#[tokio::test]
async fn a_stream_that_breaks_before_the_task_is_known_is_not_sent_again() {
    let peer = Peer::start(Wire::V1_0, vec![vec![Step::Break], answered()]).await;
    let mut talk = Talk::with(&peer).await;
    let error = talk.session.say("once").await.unwrap_err();
    assert!(error.to_string().contains("may still be working"), "{error}");
    assert_eq!(peer.requests().len(), 1);
}

/// Interrupts once the task is seen to work.
async fn interrupt(output: Shared, interrupts: mpsc::Sender<Interrupt>, all: &[Interrupt]) {
    while !output.text().contains("Calling") {
        tokio::task::yield_now().await;
    }
    for interrupt in all {
        interrupts.send(*interrupt).await.unwrap();
    }
}

fn endless() -> Vec<Step> {
    vec![
        Step::Event(submitted()),
        Step::Event(notice("n", "🔧 Calling x", "notification")),
        Step::UntilCanceled,
    ]
}

fn canceled() -> Vec<Step> {
    endless().into_iter().chain([Step::Event(status("canceled", ""))]).collect()
}

/// Whether the task was canceled by its id.
fn was_canceled(peer: &Peer) -> bool {
    peer.requests().iter().any(|sent| sent["params"]["id"] == "t")
}

#[tokio::test]
async fn ctrl_c_and_sigterm_cancel_the_task() {
    for (wire, signal) in [
        (Wire::V0_3, Interrupt::Cancel),
        (Wire::V1_0, Interrupt::Cancel),
        (Wire::V0_3, Interrupt::Leave),
        (Wire::V1_0, Interrupt::Leave),
    ] {
        let peer = Peer::start(wire, vec![canceled()]).await;
        let mut talk = Talk::with(&peer).await;
        let signals = [signal];
        let interrupt = interrupt(talk.output.clone(), talk.interrupts.clone(), &signals);
        let (left, ()) = tokio::join!(talk.session.say("work"), interrupt);
        assert_eq!(left.unwrap(), TurnOutcome::Ended(End::Canceled));
        assert_eq!(talk.output.text(), "🔧 Calling x\nCanceled.\n");
        assert!(was_canceled(&peer), "{:?}", peer.requests());
    }
}

#[tokio::test]
async fn sigterm_cancels_the_task_and_ends_the_conversation() {
    let peer = Peer::start(Wire::V1_0, vec![canceled()]).await;
    let mut talk = Talk::with(&peer).await.types(&["work", "more work"]);
    let interrupt = interrupt(talk.output.clone(), talk.interrupts.clone(), &[Interrupt::Leave]);
    let (ended, ()) = tokio::join!(talk.session.converse(), interrupt);
    ended.unwrap();
    let messages = peer.requests().iter().filter(|sent| sent["params"]["message"].is_object()).count();
    assert!(was_canceled(&peer) && messages == 1, "{:?}", peer.requests());
}

#[tokio::test]
async fn a_closed_terminal_does_not_keep_the_task_from_being_canceled() {
    /// A terminal that is closed once the task is seen to work.
    struct Closed(Shared);

    impl Screen for Closed {
        fn show(&mut self, _show: &caipe_view::ViewEvent) -> io::Result<()> {
            self.0.write_all(b"Calling")
        }

        fn wait(&mut self, waiting: render::Waiting) -> io::Result<()> {
            if waiting == render::Waiting::Cancel { Err(io::Error::other("closed")) } else { Ok(()) }
        }
    }

    let peer = Peer::start(Wire::V1_0, vec![canceled()]).await;
    let mut talk = Talk::with(&peer).await;
    talk.session.screen = Box::new(Closed(talk.output.clone()));
    let interrupt = interrupt(talk.output.clone(), talk.interrupts.clone(), &[Interrupt::Leave]);
    let (left, ()) = tokio::join!(talk.session.say("work"), interrupt);
    assert!(matches!(left, Err(TurnError::Write(_))), "{left:?}");
    assert!(was_canceled(&peer), "{:?}", peer.requests());
}

#[tokio::test]
async fn a_task_is_followed_again_whether_it_runs_or_has_ended() {
    let running = vec![
        Step::Event(peer::snapshot("One two ", "working")),
        Step::Event(artifact("streaming_result", "s", "three.", true)),
        Step::Event(status("completed", "")),
    ];
    let ended = vec![Step::Event(peer::snapshot("One two three.", "completed"))];
    for (wire, steps, method) in [(Wire::V1_0, running, "SubscribeToTask"), (Wire::V0_3, ended, "tasks/get")]
    {
        let peer = Peer::start(wire, vec![steps]).await;
        let mut talk = Talk::with(&peer).await;
        assert_eq!(talk.session.rejoin("t").await.unwrap(), TurnOutcome::Ended(End::Completed));
        assert_eq!(talk.output.text(), "One two three.\n");
        assert_eq!((&peer.requests()[0]["method"], peer.requests().len()), (&json!(method), 1));
        assert_eq!(talk.session.context.as_deref(), Some("c"));
    }
}

#[tokio::test]
async fn a_second_ctrl_c_leaves() {
    let peer = Peer::start(Wire::V1_0, vec![endless()]).await;
    peer.never_answer_cancel();
    let mut talk = Talk::with(&peer).await;
    let interrupt = interrupt(talk.output.clone(), talk.interrupts.clone(), &[Interrupt::Cancel; 2]);
    let (left, ()) = tokio::join!(talk.session.say("work"), interrupt);
    assert_eq!(left.unwrap(), TurnOutcome::Gone);
    assert!(talk.session.unconfirmed().ends_with(" --task t"), "{}", talk.session.unconfirmed());
}

fn asked() -> Vec<Step> {
    let data = json!({"user_input": true, "response": "Where to?", "input_fields": [{"field_name": "project", "required": true}]});
    vec![
        Step::Event(submitted()),
        Step::Event(peer::data("UserInputMetaData", "form", &data)),
        Step::Event(status("input-required", "Where to?")),
    ]
}

#[tokio::test]
async fn a_form_is_filled_in_and_the_task_goes_on() {
    for wire in [Wire::V0_3, Wire::V1_0] {
        let mut rest = tokens(&["Created."]);
        rest.push(Step::Event(status("completed", "")));
        let peer = Peer::start(wire, vec![asked(), rest]).await;
        let mut talk = Talk::with(&peer).await.types(&["", "CAIPE"]);
        let left = talk.session.say("create").await.unwrap();
        assert_eq!(left, TurnOutcome::Ended(End::Completed));
        assert_eq!(talk.output.text(), "Where to?\n\n❓ project (required)\nCreated.\n");
        let answer = &peer.requests()[1]["params"]["message"];
        assert_eq!((&answer["taskId"], &answer["contextId"]), (&json!("t"), &json!("c")));
        let values = answer.pointer("/parts/1/data/resume/decisions/0/args/args/user_inputs");
        assert_eq!(values, Some(&json!({"project": "CAIPE"})));
    }
}

#[tokio::test]
async fn an_unanswered_form_ends_the_turn_and_the_next_message_answers_it() {
    let mut rest = tokens(&["Created."]);
    rest.push(Step::Event(status("completed", "")));
    let peer = Peer::start(Wire::V1_0, vec![asked(), rest]).await;
    let mut talk = Talk::with(&peer).await;
    assert_eq!(talk.session.say("create").await.unwrap(), TurnOutcome::Ended(End::InputRequired));
    assert_eq!(talk.output.text(), "Where to?\n\n❓ project (required)\n");
    assert_eq!(talk.session.say("project: CAIPE").await.unwrap(), TurnOutcome::Ended(End::Completed));
    assert_eq!(peer.requests()[1]["params"]["message"]["taskId"], "t");
}

#[tokio::test]
async fn an_agent_that_does_not_stream_is_asked_and_waited_for() {
    let peer = Peer::start(Wire::V0_3, vec![vec![Step::Event(peer::message("Hello."))]]).await;
    peer.does_not_stream();
    let mut talk = Talk::with(&peer).await;
    assert_eq!(talk.session.say("hello").await.unwrap(), TurnOutcome::Ended(End::Completed));
    assert_eq!(talk.output.text(), "Hello.\n");
    assert_eq!(peer.requests()[0]["method"], "message/send");
}

#[tokio::test]
async fn scripts_get_every_event_as_json() {
    let peer = Peer::start(Wire::V0_3, vec![answered()]).await;
    let mut talk = Talk::with(&peer).await;
    talk.session.screen = Box::new(Json::new(talk.output.clone()));
    talk.session.say("how many?").await.unwrap();
    let lines: Vec<Value> =
        talk.output.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        lines.iter().map(|line| line["id"].as_str()).collect::<Vec<_>>(),
        ["1", "2", "3", "4", "5", "6", "7", "8"].map(Some)
    );
    assert_eq!(lines[3]["artifactUpdate"]["artifact"]["parts"][0]["text"], "There are ");
    assert_eq!(lines[7]["state"], "completed");
}

#[tokio::test]
async fn a_server_that_wants_a_key_says_which_variable() {
    let peer = Peer::start(Wire::V1_0, vec![vec![Step::Refuse(401)]]).await;
    let mut talk = Talk::with(&peer).await;
    let Err(TurnError::Follow(error)) = talk.session.say("hello").await else { panic!("it is refused") };
    let line = error::explain_follow(&error, &peer.url);
    assert!(line.contains("A2A_AUTH_SHARED_KEY") && line.contains(&peer.url), "{line}");
}

#[tokio::test]
async fn a_termination_signal_leaves_the_prompt() {
    /// A user who never types.
    struct Silent;

    #[async_trait]
    impl Prompt for Silent {
        async fn read(&mut self, _prompt: String, _remembered: bool) -> io::Result<Typed> {
            std::future::pending().await
        }
    }

    let peer = Peer::start(Wire::V1_0, Vec::new()).await;
    let mut talk = Talk::with(&peer).await;
    talk.session.lines = Some(Box::new(Silent));
    talk.interrupts.send(Interrupt::Cancel).await.unwrap();
    talk.interrupts.send(Interrupt::Leave).await.unwrap();
    tokio::time::timeout(Duration::from_secs(10), talk.session.converse()).await.unwrap().unwrap();
}
