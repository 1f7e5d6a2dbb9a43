//! A conversation with one agent.

use std::io;

use caipe_a2a::client::A2aClient;
use caipe_a2a::model::{Message, Part, Role, SendMessageRequest};
use uuid::Uuid;

use super::ask::Questionnaire;
use super::command::{Command, HELP};
use super::error::{command, explain, explain_follow};
use super::follow::{Following, follow, rejoin};
use super::interrupts::Interrupts;
use super::lines::{Prompt, Typed};
use super::render::{Paint, Screen};
use super::turn::{Turn, TurnError, TurnOutcome};
use caipe_view::{End, Form, FormAnswer, View, one_line};

/// A conversation with one agent.
pub(super) struct Session {
    pub(super) client: A2aClient,
    /// The address that the user gave.
    pub(super) url: String,
    /// The conversation, once there is one.
    pub(super) context: Option<String>,
    pub(super) screen: Box<dyn Screen>,
    pub(super) interrupts: Interrupts,
    /// The prompt; `None` if the program is not interactive.
    pub(super) lines: Option<Box<dyn Prompt>>,
    /// Whether standard error is a terminal, for messages beside the conversation.
    pub(super) aside: bool,
    /// The task that waits for the next message, if the user did not answer its form.
    pub(super) waiting: Option<View>,
    /// The trace of the last answer.
    pub(super) trace: Option<String>,
    /// The last task.
    pub(super) task: Option<String>,
    /// The ids of the facts in the last list of `/memory`.
    pub(super) facts: Vec<String>,
}

impl Session {
    /// Sends a message and shows the answer.
    pub(super) async fn say(&mut self, text: &str) -> Result<TurnOutcome, TurnError> {
        let view = self.waiting.take().unwrap_or_default();
        let events = self.send(vec![Part::text(text)], view.task());
        self.show(events, view).await
    }

    /// Shows the rest of an earlier task.
    pub(super) async fn rejoin(&mut self, task: &str) -> Result<TurnOutcome, TurnError> {
        let events = rejoin(&self.client, task);
        self.show(events, View::default()).await
    }

    /// Shows a task to its end, and puts the agent's questions to the user, if there is a terminal.
    async fn show(&mut self, mut events: Following, mut view: View) -> Result<TurnOutcome, TurnError> {
        loop {
            let known = view.resume();
            let turn = Turn {
                client: &self.client,
                screen: &mut *self.screen,
                interrupts: &mut self.interrupts,
                view: &mut view,
                known,
            };
            let left = turn.run(events).await;
            self.remember(&view);
            let left = left?;
            let waits = left == TurnOutcome::Ended(End::InputRequired);
            let Some(form) = view.form().filter(|_| waits).cloned() else { return Ok(left) };
            let Some(answer) = self.ask(&form).await? else {
                self.waiting = Some(view);
                return Ok(left);
            };
            events = self.send(form.parts(&answer), view.task());
        }
    }

    /// The form that the user did not answer.
    pub(super) fn open_form(&self) -> Option<&Form> {
        self.waiting.as_ref()?.form()
    }

    fn remember(&mut self, view: &View) {
        if let Some(context) = view.context() {
            self.context = Some(context.to_owned());
        }
        self.trace = view.trace().map(one_line);
        self.task = view.task().map(str::to_owned);
    }

    /// Sends a message of this conversation, and of a task that waits for it.
    fn send(&self, parts: Vec<Part>, task: Option<&str>) -> Following {
        let mut message = Message::new(Role::User, Uuid::new_v4().to_string(), parts);
        message.context_id.clone_from(&self.context);
        message.task_id = task.map(str::to_owned);
        follow(&self.client, SendMessageRequest::new(message))
    }

    /// Asks the user the questions of the form; `None` without a terminal, or if the user does not answer now.
    async fn ask(&mut self, form: &Form) -> io::Result<Option<FormAnswer>> {
        if self.lines.is_none() {
            return Ok(None);
        }
        let mut questionnaire = Questionnaire::new(form);
        let mut reported = false;
        while let Some(question) = questionnaire.question() {
            if !reported {
                question.lines.iter().for_each(|line| println!("{line}"));
            }
            let Typed::Line(line) = self.read(question.prompt, false).await? else { return Ok(None) };
            let complaint = questionnaire.answer(&line).err();
            reported = complaint.is_some();
            if let Some(complaint) = complaint {
                println!("{complaint}");
            }
        }
        Ok(Some(questionnaire.finish()))
    }

    /// The next line. Once the user leaves, no further question is asked.
    async fn read(&mut self, prompt: String, remembered: bool) -> io::Result<Typed> {
        let Some(lines) = &mut self.lines else { return Ok(Typed::Closed) };
        tokio::select! {
            biased;
            () = self.interrupts.leave() => {
                println!();
                self.lines = None;
                Ok(Typed::Closed)
            }
            typed = lines.read(prompt, remembered) => typed,
        }
    }

    /// Talks until the user leaves.
    pub(super) async fn converse(&mut self) -> io::Result<()> {
        loop {
            let line = match self.read("> ".to_owned(), true).await? {
                Typed::Line(line) => line,
                Typed::Interrupted => continue,
                Typed::Closed => return Ok(()),
            };
            match Command::read(&line) {
                Command::Nothing => {}
                Command::Quit => return Ok(()),
                Command::Help => println!("{HELP}"),
                Command::New => {
                    (self.context, self.waiting) = (None, None);
                    println!("A new conversation.");
                }
                Command::Trace => {
                    println!("{}", self.trace.as_deref().unwrap_or("No answer has a trace yet."));
                }
                Command::Memory(command) => match self.memory(command).await {
                    Ok(text) => println!("{text}"),
                    Err(error) => self.note(&explain(&error, &self.url)),
                },
                Command::Unknown(command) => println!("There is no {command}; /help shows what there is."),
                Command::Say(text) => self.answer(text).await?,
            }
        }
    }

    /// One answer of many: a failure is reported, and the conversation continues.
    async fn answer(&mut self, text: &str) -> io::Result<()> {
        match self.say(text).await {
            Ok(TurnOutcome::Ended(End::InputRequired)) => {
                self.note("The agent waits for an answer; the next message is one.");
            }
            Ok(TurnOutcome::Ended(End::Failed(_))) => self.note_trace(),
            Ok(TurnOutcome::Ended(End::Completed | End::Canceled)) => {}
            Ok(TurnOutcome::Unconfirmed) => self.note(&self.unconfirmed()),
            Ok(TurnOutcome::Gone) => {
                self.note(&self.unconfirmed());
                self.lines = None;
            }
            Err(TurnError::Follow(error)) => self.note(&explain_follow(&error, &self.url)),
            Err(TurnError::Write(error)) => return Err(error),
        }
        println!();
        Ok(())
    }

    /// Prints the trace id of the run, if the agent reported one.
    pub(super) fn note_trace(&self) {
        if let Some(trace) = &self.trace {
            self.note(&format!("trace id {trace}"));
        }
    }

    /// The note about a task that may still be running.
    pub(super) fn unconfirmed(&self) -> String {
        let note = "The agent did not confirm that the task is canceled";
        match &self.task {
            Some(task) => format!("{note}; to follow it: {}", command(&self.url, "--task", task)),
            None => format!("{note}."),
        }
    }

    /// Prints a note to standard error, so that a pipe gets the answer only.
    pub(super) fn note(&self, text: &str) {
        if self.aside {
            eprintln!("{}", Paint::dim(text));
        } else {
            eprintln!("{text}");
        }
    }
}
