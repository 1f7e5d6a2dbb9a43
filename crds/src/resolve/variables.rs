//! Typed reading of environment variables.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::fault::Fault;
use crate::names::normal;
use crate::resource::rules;
use crate::values::is_url;

/// The environment. A blank variable is unset.
#[derive(Clone, Copy)]
pub(super) struct Variables<'a>(pub(super) &'a BTreeMap<String, String>);

/// An agent's part of a variable's name: `MY_AGENT` in `ENABLE_MY_AGENT` for `my-agent`.
pub fn variable_part(agent: &str) -> String {
    agent.to_uppercase().replace('-', "_")
}

/// The value of a variable that is true or false; `None` if it is unset or blank.
///
/// # Errors
/// If the value is anything else.
pub fn switch(env: &BTreeMap<String, String>, name: &str) -> Result<Option<bool>, Fault> {
    Variables(env).switch(name)
}

impl<'a> Variables<'a> {
    /// A trimmed text.
    pub(super) fn text(self, name: &str) -> Option<&'a str> {
        self.0.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// The first of the names that is set.
    pub(super) fn first(self, names: &[String]) -> Option<&'a str> {
        names.iter().find_map(|name| self.text(name))
    }

    pub(super) fn switch(self, name: &str) -> Result<Option<bool>, Fault> {
        let Some(text) = self.text(name) else { return Ok(None) };
        match normal(text).as_str() {
            "true" | "1" | "yes" | "on" => Ok(Some(true)),
            "false" | "0" | "no" | "off" => Ok(Some(false)),
            _ => Err(Fault::variable(name, format!("must be true or false, not {}", shown(text)))),
        }
    }

    /// A whole number within bounds.
    pub(super) fn number(self, name: &str, bounds: RangeInclusive<u32>) -> Result<Option<u32>, Fault> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let (least, most) = (bounds.start(), bounds.end());
        let wrong = || {
            Fault::variable(
                name,
                format!("must be a whole number from {least} to {most}, not {}", shown(text)),
            )
        };
        text.parse().ok().filter(|number| bounds.contains(number)).map(Some).ok_or_else(wrong)
    }

    /// A duration in seconds, with decimals, as milliseconds.
    pub(super) fn seconds(self, name: &str, most: u32) -> Result<Option<u64>, Fault> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let wrong =
            || Fault::variable(name, format!("must be seconds from 0 to {most}, not {}", shown(text)));
        let seconds: f64 = text.parse().map_err(|_| wrong())?;
        if !(0.0..=f64::from(most)).contains(&seconds) {
            return Err(wrong());
        }
        let millis = std::time::Duration::from_secs_f64(seconds).as_millis();
        Ok(Some(u64::try_from(millis).unwrap_or(u64::MAX)))
    }

    /// An `http` or `https` URL.
    pub(super) fn url(self, name: &str) -> Result<Option<&'a str>, Fault> {
        let Some(text) = self.text(name) else { return Ok(None) };
        if is_url(text) { Ok(Some(text)) } else { Err(Fault::variable(name, rules::URL)) }
    }
}

/// A short, quoted form of an invalid value. These variables hold no secrets.
fn shown(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("{short:?}")
}
