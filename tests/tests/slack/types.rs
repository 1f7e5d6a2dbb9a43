//! Holds what the bot shows to Slack's own types.

use caipe_fixtures::slack::Shapes;

use super::story::tell;
use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn slacks_types_accept_each_kind_of_message_and_modal() -> Result<()> {
    let story = tell().await?;
    let mut shapes = Shapes::default();
    story.calls.iter().for_each(|call| shapes.add(&call.body));
    let kinds = shapes.kinds();
    for kind in [
        "actions",
        "context",
        "context_actions",
        "feedback_buttons",
        "icon_button",
        "markdown",
        "section",
        "markdown_text",
        "plan_update",
        "task_update",
        "modal",
        "static_select",
        "multi_static_select",
        "number_input",
        "datepicker",
        "email_text_input",
        "url_text_input",
        "plain_text_input",
    ] {
        ensure!(kinds.contains(kind), "the story shows no {kind}: {kinds:?}");
    }
    shapes.check()
}
