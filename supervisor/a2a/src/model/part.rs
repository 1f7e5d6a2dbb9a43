//! One piece of content.

use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::Metadata;

/// One piece of content of a message or an artifact.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "WirePart")]
pub struct Part {
    pub content: Content,
    /// A name for it, for example `report.pdf`.
    pub filename: Option<String>,
    /// Its media type, for example `text/plain`.
    pub media_type: Option<String>,
    /// Free-form data about the part.
    pub metadata: Option<Metadata>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    Text(String),
    /// The bytes of a file, in base64 as on the wire.
    Raw(String),
    /// The URL of a file.
    Url(String),
    /// Any JSON value.
    Data(Value),
    /// Content of an unknown kind. Only read from peers; rejected in requests.
    Unknown,
}

impl Part {
    pub fn text(text: impl Into<String>) -> Self {
        Content::Text(text.into()).into()
    }

    /// A JSON value.
    pub fn data(data: impl Into<Value>) -> Self {
        Content::Data(data.into()).into()
    }

    /// The text, if it is text.
    pub fn as_text(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value, if it is data.
    pub fn as_data(&self) -> Option<&Value> {
        match &self.content {
            Content::Data(data) => Some(data),
            _ => None,
        }
    }

    /// Whether the part is text without any other member, so that text can be appended to it.
    pub(crate) const fn is_bare_text(&self) -> bool {
        matches!(self.content, Content::Text(_))
            && self.filename.is_none()
            && self.media_type.is_none()
            && self.metadata.is_none()
    }
}

impl From<Content> for Part {
    fn from(content: Content) -> Self {
        Self { content, filename: None, media_type: None, metadata: None }
    }
}

/// The JSON form as read: the members of the `oneof` side by side.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WirePart {
    text: Option<String>,
    raw: Option<String>,
    url: Option<String>,
    // A `null` here is data, not absence.
    #[serde(default, deserialize_with = "present")]
    data: Option<Value>,
    filename: Option<String>,
    #[serde(alias = "media_type")]
    media_type: Option<String>,
    metadata: Option<Metadata>,
}

fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl TryFrom<WirePart> for Part {
    type Error = String;

    fn try_from(wire: WirePart) -> Result<Self, Self::Error> {
        // A `null` beside other content is absence.
        let data = match wire.data {
            Some(Value::Null) if wire.text.is_some() || wire.raw.is_some() || wire.url.is_some() => None,
            data => data,
        };
        let content = match (wire.text, wire.raw, wire.url, data) {
            (Some(text), None, None, None) => Content::Text(text),
            (None, Some(raw), None, None) => Content::Raw(raw),
            (None, None, Some(url), None) => Content::Url(url),
            (None, None, None, Some(data)) => Content::Data(data),
            (None, None, None, None) => Content::Unknown,
            _ => return Err("exactly one of text, raw, url, data is needed, found several".to_owned()),
        };
        Ok(Self { content, filename: wire.filename, media_type: wire.media_type, metadata: wire.metadata })
    }
}

/// Written by hand, because a copy of every streamed text would cost more than its encoding.
impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut part = serializer.serialize_struct("Part", 4)?;
        match &self.content {
            Content::Text(text) => part.serialize_field("text", text)?,
            Content::Raw(raw) => part.serialize_field("raw", raw)?,
            Content::Url(url) => part.serialize_field("url", url)?,
            Content::Data(data) => part.serialize_field("data", data)?,
            Content::Unknown => {}
        }
        if let Some(filename) = &self.filename {
            part.serialize_field("filename", filename)?;
        }
        if let Some(media_type) = &self.media_type {
            part.serialize_field("mediaType", media_type)?;
        }
        if let Some(metadata) = &self.metadata {
            part.serialize_field("metadata", metadata)?;
        }
        part.end()
    }
}
