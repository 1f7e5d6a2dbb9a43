//! The addresses that the tools for other A2A agents may call. Pure.

use caipe_net::{AllowList, AllowListError, Screen};

/// The entry that allows every public address.
const PUBLIC: &str = "*";

/// The addresses that URLs may have. `*` allows every public address; without it, only the listed ones are allowed.
///
/// # Errors
/// When an entry cannot be read.
pub fn a2a_screen(allow: &[String]) -> Result<Screen, AllowListError> {
    let (public, listed): (Vec<&str>, Vec<&str>) =
        allow.iter().map(String::as_str).partition(|entry| *entry == PUBLIC);
    let screen = Screen::new(listed.join(",").parse::<AllowList>()?);
    Ok(if public.is_empty() { screen.only_listed() } else { screen })
}
