//! For a terminal: what is certain scrolls up, what still changes is drawn in place below it.

use std::io::{self, Write};
use std::time::Duration;

use super::live::Live;
use super::markdown::{Block, Piece, Stream, Theme};
use super::paint::{Paint, cut, width};
use super::spacing::{Kind, Spacing};
use super::{Screen, Waiting};
use caipe_view::{End, Form, FormKind, Notice, Plan, Presentation, Sign, StepStatus, ViewEvent};

/// The spinner, a frame each [`FRAME`].
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const FRAME: Duration = Duration::from_millis(80);
const HIDE_CURSOR: &str = "\u{1b}[?25l";
const SHOW_CURSOR: &str = "\u{1b}[?25h";

/// Columns and rows.
pub(crate) type Size = (usize, usize);

/// Draws a turn.
pub(crate) struct Terminal<W: Write> {
    out: W,
    size: Box<dyn Fn() -> Size>,
    paint: Paint,
    answer: Theme,
    narration: Theme,
    live: Live,
    active: bool,
    /// Lines that are certain and not written yet.
    settled: Vec<String>,
    spacing: Spacing,
    stream: Stream,
    presentation: Option<Presentation>,
    /// Whether the text has a visible line yet.
    begun: bool,
    /// An empty line that is written only if more text follows.
    blank: bool,
    plan: Plan,
    doing: Option<String>,
    waiting: Waiting,
    elapsed: Duration,
}

impl<W: Write> Terminal<W> {
    /// Draws on `out`, whose size is asked for at each drawing.
    pub(crate) fn new(out: W, size: impl Fn() -> Size + 'static, paint: Paint) -> Self {
        Self {
            out,
            size: Box::new(size),
            paint,
            answer: Theme::new(paint.has_color()),
            narration: Theme::bare(),
            live: Live::default(),
            active: false,
            settled: Vec::new(),
            spacing: Spacing::default(),
            stream: Stream::default(),
            presentation: None,
            begun: false,
            blank: false,
            plan: Plan::default(),
            doing: None,
            waiting: Waiting::Agent,
            elapsed: Duration::ZERO,
        }
    }

    fn columns(&self) -> usize {
        (self.size)().0.max(1)
    }

    fn activity(&mut self, line: String) {
        self.end_text();
        if self.spacing.before(Kind::Activity) {
            self.settled.push(String::new());
        }
        self.settled.push(line);
    }

    fn notice(&mut self, notice: &Notice) {
        let text = format!("{:indent$}{}", "", notice.text, indent = notice.depth * 3);
        let line = match notice.sign {
            Sign::Failed => self.paint.red(&text),
            Sign::Output => Paint::dim(&text),
            Sign::Started | Sign::Succeeded => text,
        };
        self.activity(line);
    }

    fn text(&mut self, presentation: Presentation, text: &str, fresh: bool) {
        if fresh || self.presentation != Some(presentation) {
            self.end_text();
        }
        self.presentation = Some(presentation);
        self.doing = None;
        let pieces = self.stream.push(text);
        self.settle(&pieces);
    }

    fn end_text(&mut self) {
        let pieces = self.stream.finish();
        self.settle(&pieces);
        self.begun = false;
        self.blank = false;
        self.presentation = None;
    }

    /// Blank lines are held back until more follows: none begins or ends a text, and two are one.
    fn settle(&mut self, pieces: &[Piece]) {
        for piece in pieces {
            if piece.block == Block::Blank {
                self.blank = self.begun;
                continue;
            }
            let gap =
                if self.begun { std::mem::take(&mut self.blank) } else { self.spacing.before(Kind::Text) };
            if gap {
                self.settled.push(String::new());
            }
            self.begun = true;
            let lines = self.laid_out(piece);
            self.settled.extend(lines);
        }
    }

    fn laid_out(&self, piece: &Piece) -> Vec<String> {
        let columns = self.columns();
        if self.presentation == Some(Presentation::Narration) {
            return self.narration.lines(piece, columns).iter().map(|line| Paint::dim(line)).collect();
        }
        self.answer.lines(piece, columns)
    }

    fn form(&mut self, form: &Form) {
        for text in form.texts() {
            let heading = if text == form.title { "## " } else { "" };
            self.text(Presentation::Answer, &format!("{heading}{text}"), true);
        }
        if let FormKind::Approval { call, .. } = &form.kind {
            let line = self.paint.yellow(&format!("❓ {call}"));
            self.activity(line);
        }
    }

    fn finished(&mut self, end: &End) {
        match end {
            End::Completed => {
                let line = Paint::dim(&format!("✓ {}", self.summary()));
                self.activity(line);
            }
            End::Failed(reason) => {
                self.end_text();
                let mut lines = reason.lines().map(|line| self.paint.red(line));
                let first = lines.next().unwrap_or_default();
                let rest: Vec<String> = lines.collect();
                let first = format!("{} {first}", self.paint.red("✗ Failed:"));
                self.activity(first);
                self.settled.extend(rest);
            }
            End::Canceled => {
                let line = self.paint.yellow("✗ Canceled.");
                self.activity(line);
            }
            End::InputRequired => self.end_text(),
        }
    }

    /// `2 of 3 steps, 1 failed · 3.2 s`.
    fn summary(&self) -> String {
        let seconds = format!("{:.1} s", self.elapsed.as_secs_f32());
        let (done, failed) = self.plan.tally();
        let failures = if failed == 0 { String::new() } else { format!(", {failed} failed") };
        match self.plan.steps().len() {
            0 => seconds,
            steps => format!("{done} of {steps} steps{failures} · {seconds}"),
        }
    }

    /// Writes what is certain and draws the rest.
    fn draw(&mut self) -> io::Result<()> {
        let lines = if self.active { self.live_lines() } else { Vec::new() };
        let bytes = self.live.draw(&self.settled, lines, self.columns());
        self.settled.clear();
        if bytes.is_empty() {
            return Ok(());
        }
        self.out.write_all(bytes.as_bytes())?;
        self.out.flush()
    }

    /// The open text, the plan and the spinner, never more than the terminal has rows.
    fn live_lines(&self) -> Vec<String> {
        let (columns, rows) = (self.size)();
        let columns = columns.max(2) - 1;
        let mut below = self.plan_lines(columns, (rows / 3).max(3));
        below.push(self.spinner(columns));
        let room = rows.saturating_sub(below.len() + 3);
        let open: Vec<String> = self.stream.open().iter().flat_map(|piece| self.laid_out(piece)).collect();
        let mut lines = Vec::new();
        if !open.is_empty() {
            if if self.begun { self.blank } else { !self.spacing.is_empty() } {
                lines.push(String::new());
            }
            lines.extend(open.iter().skip(open.len().saturating_sub(room)).cloned());
        }
        if !lines.is_empty() || !self.spacing.is_empty() {
            lines.push(String::new());
        }
        lines.append(&mut below);
        lines
    }

    /// The steps; of a long plan, those around the one under way.
    fn plan_lines(&self, columns: usize, room: usize) -> Vec<String> {
        let steps = self.plan.steps();
        let current = steps.iter().position(|step| step.status == StepStatus::InProgress).unwrap_or(0);
        let start = current.saturating_sub(1).min(steps.len().saturating_sub(room));
        let line = |step: &caipe_view::Step| {
            let line = cut(&step.line(), columns);
            match step.status {
                StepStatus::InProgress => Paint::bold(&line),
                StepStatus::Failed => self.paint.red(&line),
                StepStatus::Completed | StepStatus::Skipped => Paint::dim(&line),
                StepStatus::Pending => line,
            }
        };
        let mut lines: Vec<String> = steps.iter().skip(start).take(room).map(line).collect();
        let hidden = steps.len() - lines.len();
        if hidden > 0 {
            lines.push(Paint::dim(&cut(&format!("   … {hidden} more steps"), columns)));
        }
        lines
    }

    fn spinner(&self, columns: usize) -> String {
        let frame =
            usize::try_from(self.elapsed.as_millis() / FRAME.as_millis()).unwrap_or(0) % SPINNER.len();
        let label = match (self.waiting, &self.doing) {
            (Waiting::Cancel, _) => "Canceling…".to_owned(),
            (Waiting::Connection { attempt, of }, _) => {
                format!("Connection lost, taking it up again ({attempt} of {of})")
            }
            (Waiting::Agent, Some(doing)) => doing.clone(),
            (Waiting::Agent, None) => "Working".to_owned(),
        };
        let hint = if self.waiting == Waiting::Cancel { "Ctrl-C leaves" } else { "Ctrl-C cancels" };
        let seconds = format!(" · {}s", self.elapsed.as_secs());
        let room = columns.saturating_sub(width(&seconds) + 2);
        let label = cut(&label, room.max(1));
        let hint = format!(" · {hint}");
        let hint = if width(&label) + width(&hint) <= room { hint } else { String::new() };
        let glyph = SPINNER.get(frame).copied().unwrap_or_default();
        format!("{} {label}{}", self.paint.cyan(glyph), Paint::dim(&format!("{seconds}{hint}")))
    }
}

impl<W: Write> Screen for Terminal<W> {
    fn begin(&mut self) -> io::Result<()> {
        self.active = true;
        self.spacing = Spacing::default();
        self.plan = Plan::default();
        self.doing = None;
        self.waiting = Waiting::Agent;
        self.elapsed = Duration::ZERO;
        self.out.write_all(HIDE_CURSOR.as_bytes())?;
        self.draw()
    }

    fn show(&mut self, show: &ViewEvent) -> io::Result<()> {
        match show {
            ViewEvent::Plan { plan, .. } => self.plan = plan.clone(),
            ViewEvent::Notice(notice) => self.notice(notice),
            ViewEvent::Text { presentation, text, fresh, .. } => self.text(*presentation, text, *fresh),
            ViewEvent::Doing(text) => self.doing = Some(text.clone()),
            // The text names it.
            ViewEvent::File(_) => {}
            ViewEvent::Form(form) => self.form(form),
            ViewEvent::End(end) => self.finished(end),
        }
        // Drawn at the next tick: a burst of events is one drawing.
        Ok(())
    }

    fn wait(&mut self, waiting: Waiting) -> io::Result<()> {
        self.waiting = waiting;
        self.draw()
    }

    fn tick(&mut self, elapsed: Duration) -> io::Result<()> {
        self.elapsed = elapsed;
        self.draw()
    }

    fn end(&mut self) -> io::Result<()> {
        self.end_text();
        self.active = false;
        self.draw()?;
        self.out.write_all(SHOW_CURSOR.as_bytes())?;
        self.out.flush()
    }
}

/// A cursor that stays hidden outlives the program.
impl<W: Write> Drop for Terminal<W> {
    fn drop(&mut self) {
        if self.active {
            drop(self.end());
        }
    }
}

#[cfg(test)]
#[path = "terminal_tests.rs"]
mod tests;
