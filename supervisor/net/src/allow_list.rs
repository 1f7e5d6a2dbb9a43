//! Exceptions to the screening, from the configuration.

use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use url::Host;

/// Hosts that may be reached although they are not public: a comma-separated list of names (`hooks`,
/// `*.svc.cluster.local`), addresses (`127.0.0.1`, `::1`) and networks (`10.0.0.0/8`). A name or an address may have a
/// port (`hooks:8080`, `[::1]:8080`) and is then allowed on that port only. An address with a port is allowed only in a
/// URL, not as the result of resolving a name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowList {
    entries: Vec<Entry>,
}

/// An invalid entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "failed to read {0:?} in the list of allowed addresses: give a host, *.domain, address or network in CIDR \
     form, the first three with :port if need be"
)]
pub struct AllowListError(String);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    host: HostPattern,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostPattern {
    Network(IpNet),
    /// In lower case, without a trailing dot.
    Name(String),
    /// The part after `*`, with its dot.
    Suffix(String),
}

/// Whether a name is on the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameMatch {
    Allowed,
    OtherPort,
    Unlisted,
}

impl AllowList {
    /// Whether an address in a URL may be reached on a port.
    pub(super) fn allows_on_port(&self, address: IpAddr, port: u16) -> bool {
        self.entries.iter().any(|entry| entry.contains(address) && entry.port.is_none_or(|only| only == port))
    }

    /// Whether an address may be reached on every port.
    pub(super) fn allows(&self, address: IpAddr) -> bool {
        self.entries.iter().any(|entry| entry.contains(address) && entry.port.is_none())
    }

    pub(super) fn match_name(&self, name: &str, port: u16) -> NameMatch {
        let mut listed = self.entries.iter().filter(|entry| entry.matches_name(name));
        if listed.any(|entry| entry.port.is_none_or(|only| only == port)) {
            NameMatch::Allowed
        } else if self.lists_name(name) {
            NameMatch::OtherPort
        } else {
            NameMatch::Unlisted
        }
    }

    pub(super) fn lists_name(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.matches_name(name))
    }
}

impl Entry {
    fn contains(&self, address: IpAddr) -> bool {
        matches!(&self.host, HostPattern::Network(net) if net.contains(&address.to_canonical()))
    }

    fn matches_name(&self, name: &str) -> bool {
        let name = name.trim_end_matches('.');
        match &self.host {
            HostPattern::Network(_) => false,
            HostPattern::Name(listed) => name.eq_ignore_ascii_case(listed),
            HostPattern::Suffix(suffix) => {
                let at = name.len().checked_sub(suffix.len());
                at.filter(|at| *at > 0)
                    .and_then(|at| name.get(at..))
                    .is_some_and(|end| end.eq_ignore_ascii_case(suffix))
            }
        }
    }
}

impl FromStr for AllowList {
    type Err = AllowListError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        let entries =
            entries.map(|entry| parse(entry).ok_or_else(|| AllowListError(entry.chars().take(80).collect())));
        Ok(Self { entries: entries.collect::<Result<_, _>>()? })
    }
}

fn parse(text: &str) -> Option<Entry> {
    if let Ok(net) = text.parse::<IpNet>() {
        return Some(Entry { host: HostPattern::Network(net), port: None });
    }
    // An IPv6 address without brackets has no port.
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(Entry { host: HostPattern::Network(address.to_canonical().into()), port: None });
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port.parse().ok()?)),
        _ => (text, None),
    };
    if let Some(domain) = host.strip_prefix("*.") {
        return Some(Entry { host: HostPattern::Suffix(format!(".{}", normalize_name(domain)?)), port });
    }
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host = match bare.unwrap_or(host).parse::<IpAddr>() {
        Ok(address) => HostPattern::Network(address.to_canonical().into()),
        Err(_) if bare.is_some() => return None,
        Err(_) => HostPattern::Name(normalize_name(host)?),
    };
    Some(Entry { host, port })
}

fn normalize_name(text: &str) -> Option<String> {
    match Host::parse(text).ok()? {
        Host::Domain(name) if !name.contains('*') => {
            let name = name.trim_end_matches('.');
            (!name.is_empty()).then(|| name.to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_entries_are_rejected() {
        for text in [
            "",
            " , ",
            "a",
            "a:1",
            "127.0.0.1",
            "127.0.0.1:80",
            "::1",
            "[::1]",
            "[::1]:80",
            "10.0.0.0/8",
            "fd00::/8",
            "*.a.b",
            "*.a:80",
            "EXAMPLE.com.",
            "münchen.example",
        ] {
            assert!(text.parse::<AllowList>().is_ok(), "{text:?}");
        }
        for text in [
            "*",
            "*.",
            "a:b",
            "a:70000",
            "10.0.0.0/33",
            "10.0.0.0/8:80",
            "http://a/",
            "a b",
            "[a]",
            "a*b",
            "127.1",
            ".",
        ] {
            assert!(text.parse::<AllowList>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn names_match_whole_or_as_subdomains() {
        let list: AllowList = "Hooks.Example.com, *.svc, x:1, x:2".parse().unwrap();
        for (name, port, expected) in [
            ("hooks.example.com", 80, NameMatch::Allowed),
            ("hooks.example.com.", 80, NameMatch::Allowed),
            ("a.hooks.example.com", 80, NameMatch::Unlisted),
            ("evilhooks.example.com", 80, NameMatch::Unlisted),
            ("a.svc", 80, NameMatch::Allowed),
            ("a.b.svc.", 80, NameMatch::Allowed),
            ("svc", 80, NameMatch::Unlisted),
            (".svc", 80, NameMatch::Unlisted),
            ("evilsvc", 80, NameMatch::Unlisted),
            ("x", 2, NameMatch::Allowed),
            ("x", 3, NameMatch::OtherPort),
        ] {
            assert_eq!(list.match_name(name, port), expected, "{name}:{port}");
        }
    }
}
