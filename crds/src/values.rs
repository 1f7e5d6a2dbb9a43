//! Checks of values: URLs, quantities, names, destinations, patterns.

use std::net::IpAddr;

use url::{Host, Url};

use crate::resource::common::Quantity;

/// Whether the text is an `http` or `https` URL with a host, for this program's client and for the CRD's rule. The two
/// parsers differ in unusual characters; both must accept the text.
pub(crate) fn is_url(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://")) else {
        return false;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let odd = |c: char| c.is_ascii() && !c.is_ascii_alphanumeric() && !"-._~!$&'()*+,;=:@[]%".contains(c);
    let has_host = !authority.is_empty() && !authority.starts_with(':') && !authority.contains(odd);
    has_host
        && !text.contains(|c: char| c.is_whitespace() || c.is_control())
        && has_whole_escapes(text)
        && Url::parse(text).is_ok_and(|url| url.has_host())
}

/// Whether two digits follow each `%` before the query.
fn has_whole_escapes(url: &str) -> bool {
    let path = url.split('?').next().unwrap_or_default();
    path.split('%').skip(1).all(|after| after.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2)
}

/// The amount of a Kubernetes quantity: `250m`, `64Mi`, `1e3`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(crate) struct Amount(f64);

impl Amount {
    /// Reads a quantity; none if the text is invalid.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let end = text.find(|c: char| !(c.is_ascii_digit() || "+-.".contains(c))).unwrap_or(text.len());
        let (number, unit) = text.split_at_checked(end)?;
        let exponent = unit.strip_prefix(['e', 'E']).filter(|power| power.parse::<i32>().is_ok());
        let has_digit = number.contains(|c: char| c.is_ascii_digit());
        if let Some(power) = exponent {
            return format!("{number}e{power}").parse().ok().filter(|_| has_digit).map(Self);
        }
        let number: f64 = number.parse().ok().filter(|_| has_digit)?;
        // A quotient of two whole numbers is exact; a product with a fraction is not.
        Some(Self(match unit {
            "n" => number / 1e9,
            "u" => number / 1e6,
            "m" => number / 1e3,
            _ => number * factor(unit)?,
        }))
    }

    /// The amount of a number or a text.
    pub(crate) fn of(given: &Quantity) -> Option<Self> {
        match given {
            #[allow(clippy::cast_precision_loss, reason = "amounts are compared, not computed with")]
            Quantity::Number(number) => Some(Self(*number as f64)),
            Quantity::Text(text) => Self::read(text),
        }
    }

    pub(crate) fn is_positive(self) -> bool {
        self.0 > 0.0
    }

    pub(crate) fn is_not_negative(self) -> bool {
        self.0.is_sign_positive()
    }
}

fn factor(unit: &str) -> Option<f64> {
    Some(match unit {
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "E" => 1e18,
        "Ki" => 1024.0,
        "Mi" => 1024_f64.powi(2),
        "Gi" => 1024_f64.powi(3),
        "Ti" => 1024_f64.powi(4),
        "Pi" => 1024_f64.powi(5),
        "Ei" => 1024_f64.powi(6),
        _ => return None,
    })
}

/// Whether the text is a DNS subdomain, as the names of most objects are.
pub(crate) fn is_domain(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.split('.').all(|label| {
        label.starts_with(is_plain)
            && label.ends_with(is_plain)
            && label.chars().all(|c| is_plain(c) || c == '-')
    })
}

/// Whether the text is a network in CIDR notation.
pub(crate) fn is_cidr(text: &str) -> bool {
    text.split_once('/').is_some_and(|(address, bits)| is_network(address, bits))
}

/// Whether the supervisor can read an entry of `a2a.allow`.
pub(crate) fn is_destination(entry: &str) -> bool {
    if entry.contains('/') {
        return is_cidr(entry);
    }
    // An IPv6 address without brackets has no port.
    if entry == "*" || entry.parse::<IpAddr>().is_ok() {
        return true;
    }
    let (host, port) = match entry.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (entry, None),
    };
    port.is_none_or(|port| port.parse::<u16>().is_ok()) && is_host(host)
}

fn is_network(address: &str, bits: &str) -> bool {
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    // Without leading zeros or a sign.
    bits.parse::<u8>().is_ok_and(|count| count <= most && count.to_string() == bits)
}

fn is_host(host: &str) -> bool {
    if let Some(domain) = host.strip_prefix("*.") {
        return is_name(domain);
    }
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_address = bare.unwrap_or(host).parse::<IpAddr>().is_ok();
    is_address || (bare.is_none() && is_name(host))
}

/// Whether the text is a domain name that a URL may contain.
fn is_name(text: &str) -> bool {
    matches!(
        Host::parse(text),
        Ok(Host::Domain(name)) if !name.contains(['*', ',']) && !name.trim_end_matches('.').is_empty()
    )
}

/// Whether some name matches both patterns, in which `*` matches any characters; upper and lower case are the same.
pub(crate) fn patterns_meet(one: &str, other: &str) -> bool {
    let chars = |text: &str| text.to_lowercase().chars().collect::<Vec<_>>();
    let (one, other) = (chars(one), chars(other));
    // `meets[i][j]`: whether the rests of both from `i` and `j` can be the same; filled from the end.
    let mut meets = vec![vec![false; other.len() + 1]; one.len() + 1];
    for i in (0..=one.len()).rev() {
        for j in (0..=other.len()).rev() {
            let (a, b) = (one.get(i), other.get(j));
            let at =
                |i: usize, j: usize| meets.get(i).and_then(|row| row.get(j)).copied().unwrap_or_default();
            let meet = match (a, b) {
                (None, None) => true,
                (Some('*'), _) if at(i + 1, j) || (b.is_some() && at(i, j + 1)) => true,
                (_, Some('*')) => at(i, j + 1) || (a.is_some() && at(i + 1, j)),
                (Some(a), Some(b)) => a == b && at(i + 1, j + 1),
                _ => false,
            };
            meets[i][j] = meet;
        }
    }
    meets[0][0]
}

#[cfg(test)]
#[path = "values_tests.rs"]
mod tests;
