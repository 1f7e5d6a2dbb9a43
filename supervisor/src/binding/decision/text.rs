//! Decisions in a text: a line `approve CODE`, `always CODE`, `reject CODE` or `respond CODE: TEXT` decides the call with this
//! code.

use caipe_engine::{ALWAYS, APPROVE, BoundDecision, CODE_CHARS, Decision, Form, REJECT, RESPOND};

use super::REJECTED;

/// The decisions in the lines of a text, or why they decide nothing; `None` if the text is no decision. A word without the
/// code of a waiting call decides nothing: it may be meant for a question that its sender has read before.
pub(in crate::binding) fn decisions(
    text: &str,
    questions: &[&Form],
) -> Option<Result<Vec<BoundDecision>, String>> {
    let calls: Vec<Form> = questions.iter().flat_map(|question| question.calls()).collect();
    let calls: Vec<&Form> = calls.iter().filter(|call| call.is_approval() && !call.id.is_empty()).collect();
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    let mut decided: Vec<BoundDecision> = Vec::new();
    for line in lines() {
        let about: Vec<(&&Form, Decision)> =
            calls.iter().filter_map(|call| Some((call, with_code(line, call)?))).collect();
        match about.as_slice() {
            [] => {}
            [(call, decision)] if decided.iter().all(|other| other.interaction != call.id) => {
                decided.push(BoundDecision::about(call, decision.clone()));
            }
            _ => return Some(Err(waiting_calls(questions))),
        }
    }
    if !decided.is_empty() {
        return Some(Ok(decided));
    }
    let is_meant = !calls.is_empty() && lines().next().is_some() && lines().all(is_verdict);
    is_meant.then(|| Err(waiting_calls(questions)))
}

/// Whether a text consists of verdicts with codes, whatever waits. No other text has this form by chance.
pub(in crate::binding) fn names_codes(text: &str) -> bool {
    let is_code = |code: &str| {
        code.len() == CODE_CHARS && code.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_coded = |line: &str| {
        let (verdict, _) = without_field(line).split_once(':').unwrap_or((without_field(line), ""));
        let (word, code) = split(verdict);
        matches!(word, APPROVE | REJECT | ALWAYS | RESPOND) && code.is_some_and(is_code)
    };
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).peekable();
    lines.peek().is_some() && lines.all(is_coded)
}

/// The decision in a line that consists of a verdict and the code of this call, and a reason after a colon.
fn with_code(line: &str, call: &Form) -> Option<Decision> {
    let (verdict, reason) = match without_field(line).split_once(':') {
        Some((verdict, reason)) => (verdict, Some(reason.trim()).filter(|reason| !reason.is_empty())),
        None => (without_field(line), None),
    };
    let (word, code) = split(verdict);
    (code? == call.code()?).then_some(())?;
    if word.eq_ignore_ascii_case(RESPOND) {
        return Some(Decision::Respond { message: reason?.to_owned() });
    }
    match (meaning(word)?, reason) {
        (Decision::Always, _) if !call.always || reason.is_some() => None,
        (Decision::Reject { .. }, Some(reason)) => Some(Decision::Reject { message: reason.to_owned() }),
        (Decision::Approve, Some(_)) => None,
        (decision, _) => Some(decision),
    }
}

/// Whether a line is only a yes or a no, with any code.
fn is_verdict(line: &str) -> bool {
    let (word, _) = split(without_field(line));
    meaning(word).is_some()
}

/// The line without the name of an approval's field (`decision: `, `decision_2: `).
fn without_field(line: &str) -> &str {
    let line = line.trim();
    match line.split_once(':') {
        Some((field, rest)) if field.trim().starts_with(caipe_engine::DECISION_FIELD) => rest.trim(),
        _ => line,
    }
}

/// A word, and the code after it. Any other text is one word.
fn split(text: &str) -> (&str, Option<&str>) {
    let text = text.trim().trim_end_matches(['.', '!']).trim_matches('`');
    match text.split_once(char::is_whitespace) {
        Some((word, code)) if !code.trim().contains(char::is_whitespace) => (word, Some(code.trim())),
        _ => (text, None),
    }
}

/// The decision of a field's value: the code may be missing, but must not be that of another call.
pub(super) fn verdict(value: &str, call: &Form) -> Option<Decision> {
    let (word, code) = split(value);
    let meaning = meaning(word).filter(|meaning| *meaning != Decision::Always || call.always);
    meaning.filter(|_| code.is_none_or(|code| call.code().as_deref() == Some(code)))
}

/// A yes or a no.
fn meaning(word: &str) -> Option<Decision> {
    match word.trim().to_lowercase().as_str() {
        "yes" | "y" | "ok" | "okay" | APPROVE | "approved" | "accept" => Some(Decision::Approve),
        ALWAYS => Some(Decision::Always),
        "no" | "n" | REJECT | "rejected" | "deny" | "denied" => {
            Some(Decision::Reject { message: REJECTED.to_owned() })
        }
        _ => None,
    }
}

/// The text that lists the waiting calls and how to decide them.
pub(in crate::binding) fn waiting_calls(questions: &[&Form]) -> String {
    let calls: Vec<Form> = questions.iter().flat_map(|form| form.calls()).collect();
    match calls.as_slice() {
        [only] if only.is_approval() => {
            format!("Nothing was decided. {} waits: answer with {}.", only.action, only.text_answers())
        }
        [_] => {
            "Nothing was decided. A form waits: answer with a line `field: value` for each field.".to_owned()
        }
        several => {
            let answers = listed_answers(&several.iter().collect::<Vec<_>>());
            format!(
                "Nothing was decided. {} calls wait. Send one decision for each, a line or the form: {answers}.",
                several.len()
            )
        }
    }
}

/// The answers in text that each of several calls permits.
pub(in crate::binding) fn listed_answers(calls: &[&Form]) -> String {
    let answers = |call: &&Form| {
        if call.is_approval() {
            format!("{}: {}", call.action, call.text_answers())
        } else {
            "a form: a line `field: value` for each field".to_owned()
        }
    };
    calls.iter().map(answers).collect::<Vec<_>>().join("; ")
}
