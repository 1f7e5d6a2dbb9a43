//! Pages for the pictures in docs/slack.md. `scripts/slack-pictures` makes the pictures.

use super::page::{Part, page};
use super::story::{Story, tell};
use super::*;

const CHANNEL: &str = "# shop-operations";

/// The pages by the names of their pictures.
fn pages(story: &Story) -> Result<Vec<(&'static str, String)>> {
    let messages = |messages: &'static str, shown: &[Message]| (messages, thread(shown, []));
    let modal = |place: usize| story.modals.get(place).map(Part::Modal).context("a modal is missing");
    let whisper =
        story.feedback.last().map(Part::Whisper).context("there is no question about the answer")?;
    let answer = story.answer.get(..1).unwrap_or_default();
    Ok(vec![
        messages("plan", &story.plan),
        messages("answer", &story.answer),
        messages("approval", &story.approval),
        messages("decided", &story.decided),
        ("form", thread(&story.form, [modal(3)?])),
        ("feedback", thread(answer, [whisper, modal(0)?])),
    ])
}

fn thread<'a>(messages: &'a [Message], more: impl IntoIterator<Item = Part<'a>>) -> String {
    page(CHANNEL, &messages.iter().map(Part::Message).chain(more).collect::<Vec<_>>())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes the pages for the pictures of the documentation in CAIPE_SLACK_PAGES"]
async fn pictures() -> Result<()> {
    let directory = std::env::var("CAIPE_SLACK_PAGES").context("run scripts/slack-pictures")?;
    for (name, page) in pages(&tell().await?)? {
        std::fs::write(std::path::Path::new(&directory).join(format!("slack-{name}.html")), page)?;
    }
    Ok(())
}
