use super::*;
use caipe_view::{Sign, View};

fn shown(shows: &[ViewEvent]) -> String {
    let mut out = Vec::new();
    let mut screen = Plain::new(&mut out);
    screen.begin().unwrap();
    for show in shows {
        screen.show(show).unwrap();
    }
    screen.end().unwrap();
    String::from_utf8(out).unwrap()
}

fn notice(depth: usize, text: &str) -> ViewEvent {
    ViewEvent::Notice(Notice { depth, sign: Sign::Started, text: text.to_owned(), activity: None })
}

fn text(presentation: Presentation, text: &str, fresh: bool) -> ViewEvent {
    ViewEvent::Text { presentation, text: text.to_owned(), fresh, source: String::new(), replaces: false }
}

#[test]
fn paragraphs_are_set_off_and_lines_are_not() {
    let transcript = shown(&[
        text(Presentation::Narration, "\n\nI look", true),
        text(Presentation::Narration, " into it.\n\n", false),
        notice(0, "🔧 a"),
        notice(1, "🔧 b"),
        ViewEvent::Doing("never shown".to_owned()),
        text(Presentation::Answer, "First\n", true),
        text(Presentation::Answer, "\n- item\n\n", false),
        text(Presentation::Answer, "Another.", true),
        ViewEvent::End(End::Completed),
    ]);
    insta::assert_snapshot!(transcript, @r#"
I look into it.

🔧 a
   🔧 b

First

- item

Another.
"#);
}

#[test]
fn an_end_without_an_answer_is_shown() {
    for (end, expected) in [
        (End::Failed("no model".to_owned()), "🔧 a\n\n❌ Failed: no model\n"),
        (End::Canceled, "🔧 a\nCanceled.\n"),
        (End::Completed, "🔧 a\n"),
    ] {
        assert_eq!(shown(&[notice(0, "🔧 a"), ViewEvent::End(end)]), expected);
    }
}

#[test]
fn a_form_is_listed() {
    let form = serde_json::json!({
        "user_input": true, "input_title": "Ticket", "response": "What shall I create?",
        "input_fields": [
            {"field_name": "project", "field_description": "Which?", "field_values": ["A", "B"], "required": true},
            {"field_name": "notify", "default_value": true},
        ],
    });
    let form = Form::read(&form).unwrap();
    insta::assert_snapshot!(shown(&[ViewEvent::Form(form), ViewEvent::End(End::InputRequired)]), @r#"
Ticket

What shall I create?

❓ project: Which? (A, B; required)
❓ notify (yes or no; default yes)
"#);
}

/// A plan that is closed behind the answer would only push it away from the end.
#[test]
fn a_plan_is_shown_by_its_changes() {
    let plan = |statuses: [&str; 2]| {
        let steps: Vec<_> = statuses
            .iter()
            .enumerate()
            .map(|(order, status)| serde_json::json!({"step_id": order.to_string(), "title": order.to_string(), "agent": "Jira", "status": status, "order": order}))
            .collect();
        serde_json::from_value(serde_json::json!({"artifactUpdate": {"taskId": "t", "artifact": {
            "artifactId": "p", "name": "execution_plan_update", "parts": [{"data": {"steps": steps}}],
        }}}))
        .unwrap()
    };
    let mut view = View::default();
    let mut shows = vec![text(Presentation::Answer, "I look.", true)];
    shows.extend(view.apply(&plan(["in_progress", "pending"])));
    shows.extend(view.apply(&plan(["completed", "in_progress"])));
    shows.push(text(Presentation::Answer, "Done.", true));
    shows.extend(view.apply(&plan(["completed", "completed"])));
    assert_eq!(shown(&shows), "I look.\n\n🔄 [Jira] 0\n⏳ [Jira] 1\n✅ [Jira] 0\n🔄 [Jira] 1\n\nDone.\n");
}
