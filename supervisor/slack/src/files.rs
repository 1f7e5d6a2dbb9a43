//! Files: those that people attach to a message, and those of the agent.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use caipe_a2a::model::{AgentCard, Content, Part};
use caipe_view::{AgentFile, one_line};
use serde_json::json;
use url::Url;

use crate::api::{ApiError, Target};
use crate::event::Attachment;
use crate::state::Bot;
use crate::text::excerpt;

/// The largest text file that the agent gets, and the largest image, in bytes.
const TEXT_BYTES: usize = 100_000;
const IMAGE_BYTES: usize = 3 * 1024 * 1024;
/// The most bytes of all images of a message.
const IMAGES_BYTES: usize = 4 * 1024 * 1024;
/// The most files of a message that the agent gets, and of an answer that are uploaded.
const MOST_FILES: usize = 10;
/// The most files of an answer that are uploaded or named as missing.
const MOST_NAMED: usize = 20;
/// The largest file of an answer that has a URL, and the most bytes of all others in base64, which wait for the end of the answer.
const UPLOAD_BYTES: usize = 20 * 1024 * 1024;
const HELD_BYTES: usize = 16 * 1024 * 1024;
/// The reason for a file whose appearance is unknown.
pub(crate) const UNKNOWN: &str = "Slack has not confirmed its upload, so it may be missing";
/// The most characters of the name of a file.
const NAME: usize = 100;

const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// Text whose media type does not begin with `text/`.
const TEXTS: [&str; 9] = [
    "application/json",
    "application/xml",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
    "application/javascript",
    "application/x-sh",
    "application/sql",
    "application/x-ndjson",
];

/// What becomes of an attached file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plan {
    Text,
    Image,
    /// It is only named, with the reason.
    Name(&'static str),
}

/// What becomes of each file of a message, by its description.
fn plan(files: &[Attachment], card: &AgentCard, api: &str) -> Vec<Plan> {
    let (mut count, mut images) = (0, 0);
    let mut decide = |file: &Attachment| {
        let media_type = file.media_type.as_str();
        let is_text = media_type.starts_with("text/")
            || TEXTS.contains(&media_type)
            || ["+json", "+xml"].iter().any(|suffix| media_type.ends_with(suffix));
        let is_image = IMAGES.contains(&media_type) && card.accepts(media_type);
        let most = if is_image { IMAGE_BYTES.min(IMAGES_BYTES - images) } else { TEXT_BYTES };
        if !is_text && !is_image {
            return Plan::Name("the agent does not accept this type");
        }
        if !is_of_slack(&file.url, api) {
            return Plan::Name("it is not stored in Slack");
        }
        if file.size > most {
            return Plan::Name("it is too large");
        }
        if count == MOST_FILES {
            return Plan::Name("there are too many files");
        }
        count += 1;
        if is_image {
            images += file.size;
            return Plan::Image;
        }
        Plan::Text
    };
    files.iter().map(&mut decide).collect()
}

/// Whether a URL is one of Slack's files, so that the bot may send its token there.
fn is_of_slack(url: &str, api: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    let origins = ["https://files.slack.com", api].map(|url| Url::parse(url).map(|url| url.origin()));
    origins.contains(&Ok(url.origin()))
}

/// The parts of a message that contain its files, and a sentence about the files that the agent does not get.
pub(crate) async fn attached(bot: &Bot, files: &[Attachment]) -> (Vec<Part>, String) {
    let (mut parts, mut named) = (Vec::new(), Vec::new());
    for (file, plan) in files.iter().zip(plan(files, &bot.client.card(), &bot.settings.api)) {
        let part = match plan {
            Plan::Name(reason) => Err(reason),
            Plan::Text | Plan::Image => read(bot, file, plan).await,
        };
        let name = excerpt(&file.name, NAME);
        match part {
            Ok(part) => parts.push(part),
            Err(reason) => named.push(format!("{name} ({}, {} bytes): {reason}", file.media_type, file.size)),
        }
    }
    let note = match named.as_slice() {
        [] => String::new(),
        named => format!("\n\nThe message has files that you do not get:\n{}", named.join("\n")),
    };
    (parts, note)
}

async fn read(bot: &Bot, file: &Attachment, plan: Plan) -> Result<Part, &'static str> {
    let most = if plan == Plan::Image { IMAGE_BYTES } else { TEXT_BYTES };
    let _transfer = bot.transfers.acquire().await;
    let content = bot.api.download(&file.url, &file.media_type, most).await.map_err(|error| {
        tracing::warn!(%error, "failed to read a file that a person attached");
        "it could not be read"
    })?;
    if plan == Plan::Image {
        let content = Content::Raw(STANDARD.encode(content));
        let (filename, media_type) = (Some(excerpt(&file.name, NAME)), Some(file.media_type.clone()));
        return Ok(Part { filename, media_type, ..content.into() });
    }
    let text = String::from_utf8(content).ok().filter(|text| !text.contains('\0'));
    let text = text.ok_or("it is not text in UTF-8")?;
    // The name is in the text, because agents join the texts of a message and ignore other members.
    Ok(Part::text(format!("The attached file {}:\n{text}", excerpt(&file.name, NAME))))
}

/// The name of a file of the agent.
pub(crate) fn name(part: &Part) -> String {
    let name = part.filename.as_deref().or(part.media_type.as_deref()).unwrap_or("file");
    excerpt(&one_line(name).replace(['/', '\\'], "_"), NAME)
}

/// The files of an answer, until it has ended.
#[derive(Debug, Default)]
pub(crate) struct AgentFiles {
    files: Vec<(u64, File)>,
    bytes: usize,
}

/// A file to upload, or only its name if the bot does not keep it.
#[derive(Debug)]
pub(crate) enum File {
    Part(Box<Part>),
    Surplus(String),
}

impl AgentFiles {
    /// The files with their ids.
    pub(crate) fn into_files(self) -> Vec<(u64, File)> {
        self.files
    }

    /// Adds a file, unless it is a link to another host than the supervisor's. The answer shows such a link.
    pub(crate) fn add(&mut self, file: AgentFile, supervisor: &Url) {
        let AgentFile { id, part } = file;
        let bytes = match &part.content {
            Content::Raw(base64) => base64.len(),
            Content::Url(url) if Url::parse(url).is_ok_and(|url| url.origin() == supervisor.origin()) => 0,
            _ => return,
        };
        let is_surplus = self.files.len() >= MOST_FILES || self.bytes + bytes > HELD_BYTES;
        if self.files.len() >= MOST_NAMED {
            return;
        }
        if is_surplus {
            self.files.push((id, File::Surplus(name(&part))));
        } else {
            self.bytes += bytes;
            self.files.push((id, File::Part(part)));
        }
    }
}

/// Uploads a file, without showing it. Returns Slack's id.
pub(crate) async fn upload(bot: &Bot, part: &Part) -> Result<String, String> {
    let reason = |error: ApiError| reason(bot, &error);
    let content = match &part.content {
        Content::Raw(base64) => {
            STANDARD.decode(base64).map_err(|_| "its content is not base64".to_owned())?
        }
        Content::Url(url) => {
            let _transfer = bot.transfers.acquire().await;
            bot.api.fetch(url, UPLOAD_BYTES).await.map_err(reason)?
        }
        _ => Vec::new(),
    };
    if content.is_empty() {
        return Err("it is empty".to_owned());
    }
    let (name, length) = (name(part), content.len().to_string());
    let parameters = [("filename", name.as_str()), ("length", &length)];
    let answer = bot.api.read("files.getUploadURLExternal", &parameters).await.map_err(reason)?;
    let text = |key: &str| answer[key].as_str().unwrap_or_default();
    let _transfer = bot.transfers.acquire().await;
    bot.api.upload(text("upload_url"), content).await.map_err(reason)?;
    Ok(text("file_id").to_owned())
}

/// Shows an uploaded file in a thread.
pub(crate) async fn show(bot: &Bot, target: &Target, part: &Part, id: &str) -> Result<(), String> {
    let files = json!([{"id": id, "title": name(part)}]).to_string();
    let Target { channel, thread, .. } = target;
    let parameters = [("files", files.as_str()), ("channel_id", channel), ("thread_ts", thread)];
    match bot.api.read("files.completeUploadExternal", &parameters).await {
        Ok(_) => Ok(()),
        Err(ApiError::Transport { .. }) => Err(UNKNOWN.to_owned()),
        Err(error) => Err(reason(bot, &error)),
    }
}

/// Logs a failure. Returns its reason for people.
fn reason(bot: &Bot, error: &ApiError) -> String {
    bot.report(error);
    match error {
        ApiError::Slack { code, .. } if code == "missing_scope" => {
            "the app lacks the scope files:write".to_owned()
        }
        ApiError::Slack { code, .. } => format!("Slack answered {}", excerpt(code, 60)),
        ApiError::Transfer { reason } => reason.clone(),
        ApiError::RateLimited { .. } | ApiError::Transport { .. } => "Slack gave no answer".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attachment(media_type: &str, size: usize, url: &str) -> Attachment {
        Attachment { name: "f".into(), media_type: media_type.into(), size, url: url.into() }
    }

    #[test]
    fn only_accepted_files_of_slack_are_requested() {
        let api = "https://slack.com/api";
        let slack = "https://files.slack.com/files-pri/T1-F1/f";
        let of_modes = |modes: &[&str]| AgentCard {
            default_input_modes: modes.iter().map(|mode| (*mode).to_owned()).collect(),
            ..AgentCard::default()
        };
        let (text, images) = (of_modes(&["text", "text/plain"]), of_modes(&["text/plain", "image/*"]));
        for (card, file, expected) in [
            (&text, attachment("text/markdown", 10, slack), "Text"),
            (&text, attachment("application/json", TEXT_BYTES, slack), "Text"),
            (&text, attachment("image/svg+xml", 10, slack), "Text"),
            (&text, attachment("text/plain", TEXT_BYTES + 1, slack), "large"),
            (&text, attachment("image/png", 10, slack), "type"),
            (&images, attachment("image/png", IMAGE_BYTES, slack), "Image"),
            (&images, attachment("image/tiff", 10, slack), "type"),
            (&images, attachment("image/png", IMAGE_BYTES + 1, slack), "large"),
            (&text, attachment("text/plain", 10, "https://slack.com/x"), "Text"),
            (&text, attachment("text/plain", 10, "http://files.slack.com/x"), "stored"),
            (&text, attachment("text/plain", 10, "https://files.slack.com@evil.com/x"), "stored"),
            (&text, attachment("text/plain", 10, "https://files.slack.com.evil.com/x"), "stored"),
            (&text, attachment("text/plain", 10, "https://files.slack.com:444/x"), "stored"),
            (&text, attachment("text/plain", 10, ""), "stored"),
        ] {
            let plan = format!("{:?}", plan(std::slice::from_ref(&file), card, api));
            assert!(plan.contains(expected), "{file:?}: {plan}");
        }
        let many = vec![attachment("text/plain", 10, slack); MOST_FILES + 1];
        assert_eq!(plan(&many, &text, api).last(), Some(&Plan::Name("there are too many files")));
        let large = vec![attachment("image/png", IMAGE_BYTES, slack); 2];
        assert_eq!(plan(&large, &images, api), [Plan::Image, Plan::Name("it is too large")]);
    }

    #[test]
    fn the_memory_and_the_number_of_files_of_an_answer_are_bounded() {
        let supervisor = Url::parse("http://supervisor:8000/").unwrap();
        let added = |contents: Vec<Content>| {
            let mut files = AgentFiles::default();
            for (id, content) in (0..).zip(contents) {
                files.add(AgentFile { id, part: Box::new(content.into()) }, &supervisor);
            }
            let parts = files.files.iter().filter(|(_, file)| matches!(file, File::Part(_))).count();
            (parts, files.files.len())
        };
        let url = |url: &str| Content::Url(url.to_owned());
        assert_eq!(
            added(vec![url("http://supervisor:8000/a"), url("http://supervisor/a"), url("x")]),
            (1, 1)
        );
        assert_eq!(added(vec![Content::Raw("AAAA".into()); 30]), (MOST_FILES, MOST_NAMED));
        assert_eq!(added(vec![Content::Raw("A".repeat(HELD_BYTES - 1)); 2]), (1, 2));
    }
}
