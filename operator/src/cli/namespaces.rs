//! Parses the namespaces to watch.

use anyhow::ensure;

/// Maximum length of a namespace's name.
const LABEL: usize = 63;

/// Each namespace once; an empty result means all namespaces. Empty entries are ignored, but a list of several empty
/// entries is an error: only no entry at all, or one empty variable, means every namespace.
pub(super) fn watched(given: &[String]) -> anyhow::Result<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for name in given.iter().map(|name| name.trim()).filter(|name| !name.is_empty()) {
        ensure!(
            is_label(name),
            "failed to watch namespace `{name}`: no namespace can have this name; correct it in --watch-namespace or \
             CAIPE_WATCH_NAMESPACE, as in `team-a,team-b`"
        );
        if names.iter().all(|known| known != name) {
            names.push(name.to_owned());
        }
    }
    let is_unset = given.is_empty() || given == [""];
    ensure!(
        !names.is_empty() || is_unset,
        "failed to watch namespaces: `{}` names none; name one in --watch-namespace or CAIPE_WATCH_NAMESPACE, or leave \
         both out to watch all",
        given.join(",")
    );
    Ok(names)
}

/// Whether the text is a DNS label (RFC 1123), as names of namespaces are.
fn is_label(name: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    name.len() <= LABEL && name.bytes().all(inside) && !name.starts_with('-') && !name.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(given: &[&str]) -> anyhow::Result<Vec<String>> {
        watched(&given.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn entries_are_trimmed_and_an_empty_one_widens_nothing() {
        for given in [&["t1", ""][..], &["", "t1"], &[" t1 "], &["t1", "t1", " t1"], &["\tt1\n", " "]] {
            assert_eq!(of(given).unwrap(), ["t1"], "{given:?}");
        }
        assert_eq!(of(&["t2", " t1", "t2"]).unwrap(), ["t2", "t1"]);
        assert_eq!(of(&["123", &"a".repeat(63)]).unwrap().len(), 2);
    }

    #[test]
    fn nothing_at_all_is_every_namespace() {
        assert!(of(&[]).unwrap().is_empty() && of(&[""]).unwrap().is_empty());
        for given in [&["", ""][..], &[" "], &["", " ", ""]] {
            let error = of(given).unwrap_err().to_string();
            assert!(error.contains(&format!("`{}` names none", given.join(","))), "{error}");
        }
    }

    #[test]
    fn an_invalid_namespace_is_refused_by_name() {
        for name in ["Team", "a.b", "a_b", "t1 t2", "-a", "a-", "t1;t2", "ä", "*", &"a".repeat(64)] {
            let error = of(&["t1", name]).unwrap_err().to_string();
            assert!(error.starts_with(&format!("failed to watch namespace `{name}`: ")), "{error}");
        }
    }
}
