//! Reads a line at the prompt.

/// A line at the prompt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command<'a> {
    Nothing,
    /// A message for the agent.
    Say(&'a str),
    /// A new conversation.
    New,
    /// The list of commands.
    Help,
    /// The trace of the last answer.
    Trace,
    /// What agents remember about the user.
    Memory(MemoryCommand<'a>),
    /// Leave.
    Quit,
    /// An unknown command.
    Unknown(&'a str),
}

/// What the user wants of the memory.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MemoryCommand<'a> {
    List,
    /// Forgets a fact by its number in the last list, or by its id.
    Forget(&'a str),
    ForgetAll,
    /// Anything else.
    Unclear,
}

impl<'a> MemoryCommand<'a> {
    /// Reads the words after `/memory`.
    pub(super) fn read(words: &'a str) -> Self {
        match words.split_whitespace().collect::<Vec<_>>().as_slice() {
            [] => Self::List,
            ["forget", "all"] => Self::ForgetAll,
            ["forget", which] => Self::Forget(which),
            _ => Self::Unclear,
        }
    }
}

pub(super) const HELP: &str = "\
/new     begin a new conversation
/trace   show the trace id of the last answer
/memory  show what agents remember about you; `/memory forget NUMBER` or `/memory forget all` deletes it
/help    show this
/quit    leave (Ctrl-D)
Ctrl-C   while an answer is made: cancel it; at the prompt: clear the line
A line that begins with // is sent with one of them.";

impl<'a> Command<'a> {
    pub(super) fn read(line: &'a str) -> Self {
        let line = line.trim();
        if let Some(words) = memory_words(line) {
            return Self::Memory(MemoryCommand::read(words));
        }
        match line {
            "" => Self::Nothing,
            "/new" => Self::New,
            "/help" | "/?" => Self::Help,
            "/trace" => Self::Trace,
            "/quit" | "/exit" | "/q" => Self::Quit,
            _ if line.starts_with("//") => Self::Say(line.get(1..).unwrap_or_default()),
            // A path is no command.
            _ if line.starts_with('/') && !line.get(1..).is_some_and(|rest| rest.contains('/')) => {
                Self::Unknown(line)
            }
            _ => Self::Say(line),
        }
    }
}

/// The words after `/memory`.
fn memory_words(line: &str) -> Option<&str> {
    line.strip_prefix("/memory").filter(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_command_or_a_message() {
        for (line, expected) in [
            ("  ", Command::Nothing),
            ("what changed?", Command::Say("what changed?")),
            (" /new ", Command::New),
            ("/help", Command::Help),
            ("/trace", Command::Trace),
            (" /memory ", Command::Memory(MemoryCommand::List)),
            ("/memory  forget all", Command::Memory(MemoryCommand::ForgetAll)),
            ("/memory forget 2", Command::Memory(MemoryCommand::Forget("2"))),
            ("/memory forget", Command::Memory(MemoryCommand::Unclear)),
            ("/memory list please", Command::Memory(MemoryCommand::Unclear)),
            ("/memorys", Command::Unknown("/memorys")),
            ("/exit", Command::Quit),
            ("/nwe", Command::Unknown("/nwe")),
            ("//help is a word", Command::Say("/help is a word")),
            ("/etc/hosts has what in it?", Command::Say("/etc/hosts has what in it?")),
        ] {
            assert_eq!(Command::read(line), expected, "{line:?}");
        }
    }
}
