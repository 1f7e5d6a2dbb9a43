//! Messages and modals of the stand-in as a static page that looks like Slack.

use std::fmt::Write as _;

use pulldown_cmark::{Event, Options, Parser, html};

use super::*;

/// What a page shows, from top to bottom.
pub(super) enum Part<'a> {
    Message(&'a Message),
    /// A message that only one person sees.
    Whisper(&'a Message),
    Modal(&'a Value),
}

/// A page of a thread.
pub(super) fn page(channel: &str, parts: &[Part<'_>]) -> String {
    let parts: String = parts.iter().map(part).collect();
    format!(
        "<!doctype html><meta charset=utf-8><title>Thread</title><style>{}</style>\
         <header>Thread<small>{}</small></header><main>{parts}</main>",
        include_str!("page.css"),
        escape(channel),
    )
}

fn part(part: &Part<'_>) -> String {
    match part {
        Part::Message(shown) => message(shown, ""),
        Part::Whisper(shown) => message(shown, "<div class=note>👁 Only visible to you</div>"),
        Part::Modal(view) => modal(view),
    }
}

/// The name, the initial and the colour of a person.
fn person(id: &str) -> (&'static str, &'static str, &'static str) {
    match id {
        BOT_USER | "" => ("CAIPE", "C", "#4a154b"),
        "UANN" => ("Ann Meyer", "A", "#1264a3"),
        "UROB" => ("Rob Lang", "R", "#2b8a3e"),
        _ => ("Somebody", "S", "#616061"),
    }
}

fn message(shown: &Message, note: &str) -> String {
    let is_bot = shown.user == BOT_USER || !note.is_empty();
    let (name, initial, colour) = person(if is_bot { BOT_USER } else { &shown.user });
    let app = if is_bot { "<span class=app>APP</span>" } else { "" };
    let class = if note.is_empty() { "message" } else { "message whisper" };
    format!(
        "<div class='{class}'><div class=avatar style='background:{colour}'>{initial}</div><div class=body>{note}\
         <span class=name>{name}</span>{app}<span class=time>9:41 AM</span><div>{}</div></div></div>",
        content(shown, is_bot)
    )
}

fn content(shown: &Message, is_bot: bool) -> String {
    let mut content = plan(shown);
    if shown.is_streamed() {
        content.push_str(&markdown(&shown.text));
    } else if !is_bot || shown.blocks.is_empty() {
        let _ = write!(content, "<div class=section>{}</div>", mrkdwn(&shown.text));
    }
    content.extend(shown.blocks.iter().map(block));
    content
}

/// The task list of a stream.
fn plan(shown: &Message) -> String {
    if shown.cards.is_empty() {
        return String::new();
    }
    let task = |card: &caipe_fixtures::slack::Card| {
        let details = format!("<div class=details>{}</div>", escape(&card.details));
        format!(
            "<div class='task {}'>{}<div>{}{details}</div></div>",
            card.status,
            status(&card.status),
            escape(&card.title)
        )
    };
    let tasks: String = shown.cards.iter().map(task).collect();
    format!("<div class=plan><b>{}</b>{tasks}</div>", escape(&shown.title))
}

fn status(status: &str) -> String {
    let (shape, colour) = match status {
        "complete" => ("<circle cx=8 cy=8 r=7 /><path d='m5 8.3 2.1 2.1L11 6' />", "#007a5a"),
        "error" => ("<circle cx=8 cy=8 r=7 /><path d='m5.5 5.5 5 5m0-5-5 5' />", "#e01e5a"),
        "in_progress" => ("<path d='M8 1a7 7 0 1 0 7 7' />", "#1264a3"),
        _ => ("<circle cx=8 cy=8 r=7 stroke-dasharray='2 2.4' />", "#868686"),
    };
    format!("<svg width=16 height=16 viewBox='0 0 16 16' style='stroke:{colour}'>{shape}</svg>")
}

fn block(block: &Value) -> String {
    let elements = || block["elements"].as_array().into_iter().flatten();
    match block["type"].as_str().unwrap_or_default() {
        "markdown" => markdown(block["text"].as_str().unwrap_or_default()),
        "section" => format!("<div class=section>{}</div>", text(&block["text"])),
        "context" => {
            let texts: Vec<String> = elements().map(text).collect();
            format!("<div class=context>{}</div>", texts.join(" "))
        }
        "actions" => {
            format!("<div class=actions>{}</div>", elements().map(element).collect::<String>())
        }
        "context_actions" => {
            format!("<div class=icons>{}</div>", elements().map(element).collect::<String>())
        }
        "divider" => "<hr class=divider>".to_owned(),
        "input" => input(block),
        other => format!("<pre>{other} is not drawn</pre>"),
    }
}

fn element(element: &Value) -> String {
    const UP: &str = "<path d='M6 8v7H3V8zm0 0 3-6.5c1.2 0 2 .8 2 2V7h4l-1 7.2-.9.8H6' />";
    let icon = |shape: &str| {
        format!("<span class='button icon'><svg width=18 height=18 viewBox='0 0 18 18'>{shape}</svg></span>")
    };
    match element["type"].as_str() {
        Some("feedback_buttons") => icon(UP) + &icon(&format!("<g transform='rotate(180 9 8.5)'>{UP}</g>")),
        Some("icon_button") => icon("<path d='M3 5h12M7 5V3h4v2M5 5l.7 10h6.6L13 5' />"),
        _ => {
            let style = element["style"].as_str().unwrap_or_default();
            format!("<span class='button {style}'>{}</span>", text(&element["text"]))
        }
    }
}

fn modal(view: &Value) -> String {
    let blocks: String = view["blocks"].as_array().into_iter().flatten().map(block).collect();
    format!(
        "<div class=overlay><div class=modal><div class=title>{}<span>×</span></div><div>{blocks}</div><div class=submit>\
         <span class=button>{}</span><span class='button primary'>{}</span></div></div></div>",
        text(&view["title"]),
        text(&view["close"]),
        text(&view["submit"])
    )
}

fn input(block: &Value) -> String {
    let optional = if block["optional"] == true { " <small>(optional)</small>" } else { "" };
    let hint = match &block["hint"] {
        Value::Null => String::new(),
        hint => format!("<div class=note>{}</div>", text(hint)),
    };
    format!(
        "<div class=field><b>{}{optional}</b>{}{hint}</div>",
        text(&block["label"]),
        field(&block["element"])
    )
}

fn field(element: &Value) -> String {
    let kind = element["type"].as_str().unwrap_or_default();
    let is_select = kind.ends_with("select") || kind == "datepicker";
    let class = match kind {
        _ if is_select => "value select",
        "plain_text_input" if element["multiline"] == true => "value tall",
        _ => "value",
    };
    let chosen = element["initial_options"].as_array().into_iter().flatten();
    let chips: String = chosen
        .map(|option| format!("<span class=chip>{}</span>", text(&option["text"])))
        .collect::<Vec<_>>()
        .concat();
    let initial = element["initial_value"].as_str().or(element["initial_date"].as_str());
    let value = match (initial, &element["initial_option"]) {
        (Some(initial), _) => escape(initial),
        (None, Value::Null) if chips.is_empty() => {
            let placeholder = text(&element["placeholder"]);
            let default = match kind {
                "datepicker" => "Select a date",
                _ if is_select => "Select an option",
                _ => "",
            };
            format!(
                "<span class=placeholder>{}</span>",
                if placeholder.is_empty() { default } else { &placeholder }
            )
        }
        (None, Value::Null) => format!("<span>{chips}</span>"),
        (None, option) => text(&option["text"]),
    };
    let arrow = if is_select { "<span>⌄</span>" } else { "" };
    format!("<div class='{class}'>{value}{arrow}</div>")
}

/// A text object.
fn text(object: &Value) -> String {
    let text = object["text"].as_str().unwrap_or_default();
    if object["type"] == "mrkdwn" { mrkdwn(text) } else { escape(text) }
}

/// Slack's own markup as HTML: mentions, links, code, bold, italic and struck text. Its `&`, `<` and `>` are escaped already.
fn mrkdwn(text: &str) -> String {
    let mut html = String::new();
    for (place, piece) in text.split("```").enumerate() {
        if place % 2 == 1 {
            let _ = write!(html, "<pre>{piece}</pre>");
        } else {
            html.push_str(&inline(piece));
        }
    }
    html
}

fn inline(text: &str) -> String {
    let rules = [
        (r"<@(UBOT)>", "<span class=mention>@CAIPE</span>"),
        (r"<@(UANN)>", "<span class=mention>@Ann Meyer</span>"),
        (r"<@(UROB)>", "<span class=mention>@Rob Lang</span>"),
        (r"<(https?://[^|>]+)\|([^>]+)>", "<a href='$1'>$2</a>"),
        (r"<(https?://[^|>]+)>", "<a href='$1'>$1</a>"),
        (r"`([^`\n]+)`", "<code>$1</code>"),
        (r"(^|\s)\*([^*\n]+)\*", "$1<b>$2</b>"),
        (r"(^|\s)_([^_\n]+)_", "$1<i>$2</i>"),
        (r"(^|\s)~([^~\n]+)~", "$1<s>$2</s>"),
    ];
    let replace = |text: String, (pattern, with): (&str, &str)| match regex_lite::Regex::new(pattern) {
        Ok(pattern) => pattern.replace_all(&text, with).into_owned(),
        Err(_) => text,
    };
    rules.into_iter().fold(text.to_owned(), replace)
}

/// Markdown as HTML. Slack shows HTML in it as text.
fn markdown(text: &str) -> String {
    let events = Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH);
    let events = events.map(|event| match event {
        Event::Html(html) | Event::InlineHtml(html) => Event::Text(html),
        Event::SoftBreak => Event::HardBreak,
        other => other,
    });
    let mut page = String::new();
    html::push_html(&mut page, events);
    page
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
