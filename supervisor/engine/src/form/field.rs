//! A field of a form: its type, and the values that it takes.

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use url::Url;

/// The most characters of one answer.
const MOST_ANSWER_CHARS: usize = 20_000;

/// The most choices that a hint lists.
const MOST_LISTED: usize = 20;

/// The type of a field, named as on the wire. Upstream's web UI draws all but `textarea`, `multiselect` and `date`, which it
/// draws as `text`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FieldType {
    /// Text of one line.
    #[default]
    Text,
    /// Text of any number of lines.
    TextArea,
    /// One of [`FormField::field_values`].
    Select,
    /// Any of [`FormField::field_values`], at least one.
    MultiSelect,
    Boolean,
    Number,
    /// An `http` or `https` URL.
    Url,
    /// An e-mail address.
    Email,
    /// A date as `YYYY-MM-DD`.
    Date,
}

impl FieldType {
    /// All types, in the order in which they are listed for a model.
    pub const NAMES: [&str; 9] =
        ["text", "textarea", "select", "multiselect", "boolean", "number", "url", "email", "date"];

    /// The type of this name.
    pub fn named(name: &str) -> Option<Self> {
        serde_json::from_value(Value::from(name.trim().to_lowercase())).ok()
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FormField {
    /// The key of the answer.
    pub field_name: String,
    /// The name for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field_label: String,
    pub field_description: String,
    pub field_type: FieldType,
    /// The only allowed values; `None` allows any.
    pub field_values: Option<Vec<String>>,
    /// An example of a value.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub placeholder: String,
    pub default_value: Option<Value>,
    pub required: bool,
    /// The least number, characters or choices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<Number>,
    /// The greatest number, the most characters or choices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Number>,
    /// The answer so far.
    pub value: Option<Value>,
    /// Why the last answer was rejected, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The [`Form::id`](super::Form::id) of the call that the field belongs to. Clients return it with the value.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub interaction_id: String,
    /// The [`Form::digest`](super::Form::digest) of this call.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub digest: String,
}

impl FormField {
    /// The allowed values; empty allows any.
    pub fn choices(&self) -> &[String] {
        self.field_values.as_deref().unwrap_or_default()
    }

    /// The value in the field's type, without surrounding white space; `None` for a blank one.
    ///
    /// # Errors
    /// Says what the field expects, for people.
    pub fn read(&self, value: &Value) -> Result<Option<Value>, String> {
        if is_blank(value) {
            return Ok(None);
        }
        if plain(value).chars().count() > MOST_ANSWER_CHARS {
            return Err(format!("give at most {MOST_ANSWER_CHARS} characters"));
        }
        let read = match self.field_type {
            FieldType::MultiSelect => self.several(value),
            FieldType::Boolean => boolean(value).map(Value::Bool),
            FieldType::Number => {
                number(value).filter(|number| self.allows(number.as_f64())).map(Value::Number)
            }
            _ => self.text(value).map(Value::String),
        };
        read.map(Some).ok_or_else(|| format!("give {}", self.expects()))
    }

    /// The expected values, for people.
    pub fn expects(&self) -> String {
        let bounds = |unit: &str| self.bounds(unit);
        match self.field_type {
            FieldType::Text | FieldType::TextArea if self.choices().is_empty() => {
                let text = if self.field_type == FieldType::Text { "one line of text" } else { "text" };
                format!("{text}{}", bounds(" characters"))
            }
            FieldType::MultiSelect => {
                format!("any of {}, separated by commas{}", self.listed(), bounds(" choices"))
            }
            FieldType::Boolean => "yes or no".to_owned(),
            FieldType::Number => format!("a number{}", bounds("")),
            FieldType::Url => "an http or https URL".to_owned(),
            FieldType::Email => "an e-mail address".to_owned(),
            FieldType::Date => "a date as YYYY-MM-DD".to_owned(),
            FieldType::Text | FieldType::TextArea | FieldType::Select => format!("one of {}", self.listed()),
        }
    }

    fn listed(&self) -> String {
        let choices = self.choices();
        let listed: Vec<String> =
            choices.iter().take(MOST_LISTED).map(|choice| format!("`{choice}`")).collect();
        match choices.len().saturating_sub(MOST_LISTED) {
            0 => listed.join(", "),
            more => format!("{} and {more} more", listed.join(", ")),
        }
    }

    fn bounds(&self, unit: &str) -> String {
        match (&self.min, &self.max) {
            (Some(min), Some(max)) => format!(" from {min} to {max}{unit}"),
            (Some(min), None) => format!(" of at least {min}{unit}"),
            (None, Some(max)) => format!(" of at most {max}{unit}"),
            (None, None) => String::new(),
        }
    }

    fn allows(&self, number: Option<f64>) -> bool {
        let bound = |bound: &Option<Number>| bound.as_ref().and_then(Number::as_f64);
        number.is_some_and(|number| {
            bound(&self.min).is_none_or(|min| number >= min)
                && bound(&self.max).is_none_or(|max| number <= max)
        })
    }

    fn allows_count(&self, count: usize) -> bool {
        self.allows(u32::try_from(count).ok().map(f64::from))
    }

    fn text(&self, value: &Value) -> Option<String> {
        let text = match value {
            Value::String(text) => text.trim().to_owned(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            _ => return None,
        };
        if matches!(self.field_type, FieldType::Text | FieldType::TextArea | FieldType::Select)
            && !self.choices().is_empty()
        {
            return self.choice(&text);
        }
        let fits = match self.field_type {
            FieldType::Url => is_url(&text),
            FieldType::Email => is_email(&text),
            FieldType::Date => is_date(&text),
            FieldType::Text => !text.contains(['\n', '\r']) && self.allows_count(text.chars().count()),
            _ => self.allows_count(text.chars().count()),
        };
        fits.then_some(text)
    }

    /// The choice with this text, whatever its case.
    fn choice(&self, text: &str) -> Option<String> {
        let choices = || self.choices().iter();
        let exact = choices().find(|choice| choice.as_str() == text);
        exact.or_else(|| choices().find(|choice| choice.eq_ignore_ascii_case(text))).cloned()
    }

    /// The choices in a list or in a text with commas, in the order of the form.
    fn several(&self, value: &Value) -> Option<Value> {
        let chosen: Vec<String> = match value {
            Value::Array(values) => values.iter().map(|value| self.choice(plain(value).trim())).collect(),
            value => {
                let text = plain(value);
                let each = || text.split(',').map(str::trim).filter(|part| !part.is_empty());
                self.choice(text.trim())
                    .map(|only| vec![only])
                    .or_else(|| each().map(|part| self.choice(part)).collect())
            }
        }?;
        let chosen: Vec<&String> = self.choices().iter().filter(|choice| chosen.contains(choice)).collect();
        (!chosen.is_empty() && self.allows_count(chosen.len())).then(|| chosen.into_iter().cloned().collect())
    }
}

/// Whether a value says nothing.
fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(values) => values.is_empty(),
        _ => false,
    }
}

fn boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(truth) => Some(*truth),
        Value::String(text) => match text.trim().to_lowercase().as_str() {
            "true" | "yes" | "y" => Some(true),
            "false" | "no" | "n" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

fn number(value: &Value) -> Option<Number> {
    match value {
        Value::Number(number) => Some(number.clone()),
        Value::String(text) => {
            let text = text.trim();
            let whole = text.parse::<i64>().map(Number::from).ok();
            whole.or_else(|| Number::from_f64(text.parse().ok()?))
        }
        _ => None,
    }
}

fn is_url(text: &str) -> bool {
    let is_web = |url: Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    !text.contains(char::is_whitespace) && Url::parse(text).is_ok_and(is_web)
}

/// Whether HTML's `<input type=email>` takes the text.
fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let is_local = |c: char| c.is_ascii_alphanumeric() || ".!#$%&'*+/=?^_`{|}~-".contains(c);
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    !local.is_empty() && local.chars().all(is_local) && domain.split('.').all(is_label)
}

fn is_date(text: &str) -> bool {
    text.parse::<jiff::civil::Date>().is_ok_and(|date| date.to_string() == text)
}

/// A value without JSON's quotes.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
#[path = "field_tests.rs"]
mod tests;
