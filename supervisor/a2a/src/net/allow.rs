//! Exceptions to the screening, named by whoever runs the program.

use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use url::Host;

/// What may be reached though it is not public: a comma-separated list of names (`hooks`,
/// `*.svc.cluster.local`), addresses (`127.0.0.1`, `::1`) and networks (`10.0.0.0/8`). A name or an address may
/// have a port (`hooks:8080`, `[::1]:8080`) and then counts on that port only; an address with a port counts only
/// where a URL has it written out, not where a name resolves to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowList {
    entries: Vec<Entry>,
}

/// An entry that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "failed to read {0:?} in the list of allowed addresses: give a host, *.domain, address or network in CIDR \
     form, the first three with :port if need be"
)]
pub struct AllowListError(String);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    what: What,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Net(IpNet),
    /// In lower case, without a dot at its end.
    Name(String),
    /// What comes after `*`, with its dot.
    Below(String),
}

/// What the list says of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    Allowed,
    OtherPort,
    Unlisted,
}

impl AllowList {
    /// Whether an address that is written out in a URL may be reached.
    pub(super) fn literal(&self, address: IpAddr, port: u16) -> bool {
        self.entries.iter().any(|entry| entry.holds(address) && entry.port.is_none_or(|only| only == port))
    }

    /// Whether an address may be reached on every port.
    pub(super) fn address(&self, address: IpAddr) -> bool {
        self.entries.iter().any(|entry| entry.holds(address) && entry.port.is_none())
    }

    pub(super) fn name(&self, name: &str, port: u16) -> Named {
        let mut listed = self.entries.iter().filter(|entry| entry.is_named(name)).peekable();
        if listed.peek().is_none() {
            return Named::Unlisted;
        }
        let on_port = listed.any(|entry| entry.port.is_none_or(|only| only == port));
        if on_port { Named::Allowed } else { Named::OtherPort }
    }

    pub(super) fn name_on_any_port(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.is_named(name))
    }
}

impl Entry {
    fn holds(&self, address: IpAddr) -> bool {
        matches!(&self.what, What::Net(net) if net.contains(&address.to_canonical()))
    }

    fn is_named(&self, name: &str) -> bool {
        let name = name.trim_end_matches('.');
        match &self.what {
            What::Net(_) => false,
            What::Name(known) => name.eq_ignore_ascii_case(known),
            What::Below(suffix) => {
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
        return Some(Entry { what: What::Net(net), port: None });
    }
    // An IPv6 address without brackets has no port.
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(Entry { what: What::Net(address.to_canonical().into()), port: None });
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port.parse().ok()?)),
        _ => (text, None),
    };
    if let Some(domain) = host.strip_prefix("*.") {
        return Some(Entry { what: What::Below(format!(".{}", name(domain)?)), port });
    }
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let what = match bare.unwrap_or(host).parse::<IpAddr>() {
        Ok(address) => What::Net(address.to_canonical().into()),
        Err(_) if bare.is_some() => return None,
        Err(_) => What::Name(name(host)?),
    };
    Some(Entry { what, port })
}

/// A name as a URL would have it.
fn name(text: &str) -> Option<String> {
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
    fn what_cannot_be_meant_is_refused() {
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
    fn names_are_compared_whole_or_below() {
        let list: AllowList = "Hooks.Example.com, *.svc, x:1, x:2".parse().unwrap();
        for (name, port, expected) in [
            ("hooks.example.com", 80, Named::Allowed),
            ("hooks.example.com.", 80, Named::Allowed),
            ("a.hooks.example.com", 80, Named::Unlisted),
            ("evilhooks.example.com", 80, Named::Unlisted),
            ("a.svc", 80, Named::Allowed),
            ("a.b.svc.", 80, Named::Allowed),
            ("svc", 80, Named::Unlisted),
            (".svc", 80, Named::Unlisted),
            ("evilsvc", 80, Named::Unlisted),
            ("x", 2, Named::Allowed),
            ("x", 3, Named::OtherPort),
        ] {
            assert_eq!(list.name(name, port), expected, "{name}:{port}");
        }
    }
}
