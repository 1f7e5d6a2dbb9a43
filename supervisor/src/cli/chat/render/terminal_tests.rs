use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::*;
use caipe_view::View;

/// A terminal that is really drawn on, with a history of what scrolled off.
#[derive(Clone)]
struct Screenful {
    parser: Rc<RefCell<vt100::Parser>>,
    size: Rc<Cell<Size>>,
    bytes: Rc<RefCell<Vec<u8>>>,
}

impl Screenful {
    fn new(columns: u16, rows: u16) -> Self {
        Self {
            parser: Rc::new(RefCell::new(vt100::Parser::new(rows, columns, 1000))),
            size: Rc::new(Cell::new((columns.into(), rows.into()))),
            bytes: Rc::default(),
        }
    }

    fn terminal(&self) -> Terminal<Self> {
        let size = Rc::clone(&self.size);
        Terminal::new(self.clone(), move || size.get(), Paint::new(true))
    }

    fn text(&self) -> String {
        let parser = self.parser.borrow();
        let lines: Vec<String> =
            parser.screen().contents().lines().map(|line| line.trim_end().to_owned()).collect();
        lines.join("\n").replace('\u{a0}', " ").trim_end().to_owned()
    }
}

impl Write for Screenful {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.parser.borrow_mut().process(bytes);
        self.bytes.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn answer(text: &str, fresh: bool) -> ViewEvent {
    ViewEvent::Text {
        presentation: Presentation::Answer,
        text: text.to_owned(),
        fresh,
        source: String::new(),
        replaces: false,
    }
}

fn notice(text: &str) -> ViewEvent {
    ViewEvent::Notice(Notice { depth: 1, sign: Sign::Started, text: text.to_owned(), activity: None })
}

fn plan(steps: usize, current: usize) -> ViewEvent {
    let status = |order| match order {
        order if order < current => "completed",
        order if order == current => "in_progress",
        _ => "pending",
    };
    let steps: Vec<_> = (0..steps)
        .map(|order| serde_json::json!({"step_id": order.to_string(), "title": format!("step {order}"), "status": status(order), "order": order}))
        .collect();
    let event = serde_json::json!({"artifactUpdate": {"taskId": "t", "artifact": {
        "artifactId": "p", "name": "execution_plan_update", "parts": [{"data": {"steps": steps}}],
    }}});
    View::default().apply(&serde_json::from_value(event).unwrap()).remove(0)
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn the_plan_stays_below_what_scrolls() {
    let screen = Screenful::new(40, 20);
    let mut terminal = screen.terminal();
    terminal.begin().unwrap();
    terminal.show(&plan(2, 0)).unwrap();
    terminal.show(&notice("🔧 Jira: Calling tool: Get_Issue")).unwrap();
    terminal.show(&answer("Two **iss", true)).unwrap();
    terminal.tick(seconds(2)).unwrap();
    insta::assert_snapshot!(screen.text(), @r#"
   🔧 Jira: Calling tool: Get_Issue

Two iss

🔄 step 0
⏳ step 1
⠴ Working · 2s · Ctrl-C cancels
"#);
    terminal.show(&answer("ues**.\n", false)).unwrap();
    terminal.show(&plan(2, 2)).unwrap();
    terminal.show(&ViewEvent::End(End::Completed)).unwrap();
    terminal.end().unwrap();
    insta::assert_snapshot!(screen.text(), @r#"
   🔧 Jira: Calling tool: Get_Issue

Two issues.

✓ 2 of 2 steps · 2.0 s
"#);
}

/// Character by character, no mark of Markdown that will become a style is ever on the screen.
#[test]
fn no_half_markdown_is_ever_seen() {
    let text = "## Title\n\nSome **bold** and `code` and *it*.\n\n- [link](https://a.b)\n\n| a | **b** |\n|---|:-:|\n| 1 | `2` |\n\n```sh\nls\n```\nEnd.\n";
    let screen = Screenful::new(60, 30);
    let mut terminal = screen.terminal();
    terminal.begin().unwrap();
    for (at, c) in text.char_indices() {
        terminal.show(&answer(c.encode_utf8(&mut [0; 4]), at == 0)).unwrap();
        terminal.tick(seconds(1)).unwrap();
        let seen = screen.text();
        assert!(
            !seen.contains(['*', '`', '#', '|', '[']) && !seen.contains("---"),
            "after {:?}:\n{seen}",
            &text[..at]
        );
    }
    terminal.end().unwrap();
    insta::assert_snapshot!(screen.text(), @r#"
Title

Some bold and code and it.

• link (https://a.b)

│ a │ b │
├───┼───┤
│ 1 │ 2 │

    ls
End.
"#);
}

#[test]
fn a_terminal_that_becomes_narrower_is_left_tidy() {
    let screen = Screenful::new(60, 20);
    let mut terminal = screen.terminal();
    terminal.begin().unwrap();
    terminal.show(&plan(3, 1)).unwrap();
    terminal.tick(seconds(1)).unwrap();
    // vt100 cuts lines where most terminals break them; what is measured is that nothing wider is written.
    screen.parser.borrow_mut().screen_mut().set_size(12, 24);
    screen.size.set((24, 12));
    terminal.show(&answer("A line that is wider than the terminal is now.\nNext", true)).unwrap();
    terminal.tick(seconds(2)).unwrap();
    let seen = screen.text();
    assert!(seen.contains("Next"), "{seen}");
    assert_eq!(seen.matches("step 1").count(), 1, "{seen}");
    assert!(seen.contains("than the terminal is"), "wrapped at words: {seen}");
}

#[test]
fn little_room_shows_what_counts() {
    let screen = Screenful::new(30, 10);
    let mut terminal = screen.terminal();
    terminal.begin().unwrap();
    terminal.show(&plan(40, 20)).unwrap();
    let row = "| a |\n";
    terminal.show(&answer(&format!("| head |\n|---|\n{}", row.repeat(40)), true)).unwrap();
    terminal.tick(seconds(3)).unwrap();
    let seen = screen.text();
    assert!(seen.lines().count() <= 10, "{seen}");
    for part in ["step 20", "37 more steps", "Working"] {
        assert!(seen.contains(part), "{part} is not in\n{seen}");
    }
    terminal.end().unwrap();
    let mut parser = screen.parser.borrow_mut();
    parser.screen_mut().set_scrollback(1000);
    assert!(parser.screen().contents().contains("head"), "a long table scrolls up whole");
}

#[test]
fn nothing_new_writes_nothing() {
    let screen = Screenful::new(40, 20);
    let mut terminal = screen.terminal();
    terminal.begin().unwrap();
    terminal.tick(seconds(1)).unwrap();
    let written = screen.bytes.borrow().len();
    terminal.tick(seconds(1)).unwrap();
    assert_eq!(screen.bytes.borrow().len(), written);
}

#[test]
fn the_cursor_comes_back_however_it_ends() {
    let screen = Screenful::new(40, 20);
    let mut terminal = screen.terminal();
    terminal.begin().unwrap();
    assert!(screen.parser.borrow().screen().hide_cursor());
    drop(terminal);
    assert!(!screen.parser.borrow().screen().hide_cursor());
    assert_eq!(screen.text(), "");
}

#[test]
fn waiting_says_for_what() {
    let screen = Screenful::new(60, 20);
    let mut terminal = screen.terminal();
    terminal.begin().unwrap();
    for (waiting, expected) in [
        (Waiting::Agent, "Working · 0s · Ctrl-C cancels"),
        (Waiting::Connection { attempt: 2, of: 5 }, "Connection lost, taking it up again (2 of 5)"),
        (Waiting::Cancel, "Canceling… · 0s · Ctrl-C leaves"),
    ] {
        terminal.wait(waiting).unwrap();
        assert!(screen.text().contains(expected), "{}", screen.text());
    }
    terminal.wait(Waiting::Agent).unwrap();
    terminal.show(&ViewEvent::Doing("Reading the manual".to_owned())).unwrap();
    terminal.tick(seconds(1)).unwrap();
    assert!(screen.text().contains("Reading the manual · 1s"), "{}", screen.text());
}

#[test]
fn a_form_and_a_failure_stand_out() {
    let screen = Screenful::new(40, 20);
    let mut terminal = screen.terminal();
    terminal.begin().unwrap();
    let form = serde_json::json!({"user_input": true, "input_title": "Sure?", "response": "This **deletes** it.", "action_name": "delete", "arguments": {"key": "A-1"}});
    terminal.show(&ViewEvent::Form(caipe_view::Form::read(&form).unwrap())).unwrap();
    terminal.show(&ViewEvent::End(End::Failed("one\ntwo".to_owned()))).unwrap();
    terminal.end().unwrap();
    insta::assert_snapshot!(screen.text(), @r#"
Sure?

This deletes it.

❓ delete {"key":"A-1"}
✗ Failed: one
two
"#);
}
