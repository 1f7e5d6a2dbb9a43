//! Shows the files of an answer in its thread.

use caipe_a2a::model::Part;

use crate::delivery::{Call, escaped};
use crate::files::{self, AgentFiles, File, UNKNOWN, name};
use crate::state::Bot;
use crate::text::safe;
use crate::turn::{Saved, Turn};

/// The most characters of the message about files that are not shown.
const FAILURES: usize = 2_900;

impl Turn {
    /// Shows each file once. Returns whether that is over; it is not if the bot stops.
    ///
    /// The turn saves the files whose appearance in the thread was requested, and whether Slack has confirmed it. If the bot stops
    /// in between, it does not request the file again, because it might appear twice.
    pub(crate) async fn share(&mut self, bot: &Bot, files: AgentFiles) -> bool {
        let mut failures = Vec::new();
        let mut is_over = true;
        for (id, file) in files.into_files() {
            let (name, result) = match (self.files.get(&id).copied(), file) {
                (Some(true), _) => continue,
                _ if bot.shutdown.is_cancelled() || self.save(bot).await != Saved::Yes => {
                    is_over = false;
                    break;
                }
                (_, File::Surplus(name)) => (name, Err("the answer has too many files".to_owned())),
                (Some(false), File::Part(part)) => (name(&part), Err(UNKNOWN.to_owned())),
                (None, File::Part(part)) => (name(&part), self.share_one(bot, id, &part).await),
            };
            self.files.insert(id, true);
            self.save(bot).await;
            if let Err(reason) = result {
                failures.push(format!("📎 {name} is not shown: {reason}."));
            }
        }
        if !failures.is_empty() {
            let text = escaped(&safe(&failures.join("\n"), &bot.secrets()), FAILURES);
            let call = Call::Post { text, blocks: Vec::new() };
            if let Err(error) = bot.api.call_when_allowed(call.method(), &self.target.body(&call)).await {
                bot.report(&error);
            }
        }
        is_over
    }

    async fn share_one(&mut self, bot: &Bot, id: u64, part: &Part) -> Result<(), String> {
        let uploaded = files::upload(bot, part).await?;
        self.files.insert(id, false);
        self.save(bot).await;
        files::show(bot, &self.target, part, &uploaded).await
    }
}
