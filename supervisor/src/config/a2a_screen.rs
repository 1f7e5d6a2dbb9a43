//! The addresses that the tools for other A2A agents may call. Pure.

use caipe_net::{AllowList, AllowListError, Screen};

/// In the list of allowed addresses: every public one.
const PUBLIC: &str = "*";

/// What URLs may be asked. `*` is every public address; without it, only what is listed.
///
/// # Errors
/// When an entry cannot be read.
pub fn a2a_screen(allow: &[String]) -> Result<Screen, AllowListError> {
    let (public, listed): (Vec<&str>, Vec<&str>) =
        allow.iter().map(String::as_str).partition(|entry| *entry == PUBLIC);
    let screen = Screen::new(listed.join(",").parse::<AllowList>()?);
    Ok(if public.is_empty() { screen.only_listed() } else { screen })
}
