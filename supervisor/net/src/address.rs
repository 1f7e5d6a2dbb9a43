//! Addresses that are not public.
//!
//! The ranges are those of IANA's registries of special-purpose addresses (RFC 6890 and its updates). Of IPv6, only
//! global unicast (`2000::/3`) is public. For an IPv6 address that contains an IPv4 address, the latter decides.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

/// Why an address is not public.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// This machine.
    Loopback,
    /// No address; systems connect to this machine instead.
    Unspecified,
    /// A private network.
    Private,
    /// A carrier's shared network (RFC 6598).
    Shared,
    /// Valid on the local link only.
    LinkLocal,
    /// A cloud's metadata service, which hands out credentials.
    Metadata,
    /// A group of machines.
    Multicast,
    /// Reserved for examples.
    Documentation,
    /// Any other range that is not public.
    Reserved,
}

impl fmt::Display for Special {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loopback => "a loopback address",
            Self::Unspecified => "an unspecified address",
            Self::Private => "a private address",
            Self::Shared => "an address of a carrier's own network",
            Self::LinkLocal => "a link-local address",
            Self::Metadata => "the address of a cloud's metadata service",
            Self::Multicast => "a multicast address",
            Self::Documentation => "an address for documentation",
            Self::Reserved => "a reserved address",
        })
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)
}

const fn v6(first: u16, second: u16, third: u16, length: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(first, second, third, 0, 0, 0, 0, 0), length)
}

/// The first range that contains an address decides.
const SPECIAL_V4: [(Ipv4Net, Special); 19] = [
    // AWS, Google, Azure and others; then Azure's second one, Alibaba's and Oracle's.
    (v4(169, 254, 169, 254, 32), Special::Metadata),
    (v4(168, 63, 129, 16, 32), Special::Metadata),
    (v4(100, 100, 100, 200, 32), Special::Metadata),
    (v4(192, 0, 0, 192, 32), Special::Metadata),
    (v4(0, 0, 0, 0, 8), Special::Unspecified),
    (v4(10, 0, 0, 0, 8), Special::Private),
    (v4(100, 64, 0, 0, 10), Special::Shared),
    (v4(127, 0, 0, 0, 8), Special::Loopback),
    (v4(169, 254, 0, 0, 16), Special::LinkLocal),
    (v4(172, 16, 0, 0, 12), Special::Private),
    (v4(192, 0, 0, 0, 24), Special::Reserved),
    (v4(192, 0, 2, 0, 24), Special::Documentation),
    (v4(192, 88, 99, 0, 24), Special::Reserved),
    (v4(192, 168, 0, 0, 16), Special::Private),
    (v4(198, 18, 0, 0, 15), Special::Reserved),
    (v4(198, 51, 100, 0, 24), Special::Documentation),
    (v4(203, 0, 113, 0, 24), Special::Documentation),
    (v4(224, 0, 0, 0, 4), Special::Multicast),
    (v4(240, 0, 0, 0, 4), Special::Reserved),
];

const SPECIAL_V6: [(Ipv6Net, Special); 9] = [
    (Ipv6Net::new_assert(Ipv6Addr::UNSPECIFIED, 128), Special::Unspecified),
    (Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128), Special::Loopback),
    (Ipv6Net::new_assert(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), 128), Special::Metadata),
    (v6(0xfc00, 0, 0, 7), Special::Private),
    (v6(0xfe80, 0, 0, 10), Special::LinkLocal),
    (v6(0xff00, 0, 0, 8), Special::Multicast),
    // Protocol assignments, Teredo and benchmarks among them.
    (v6(0x2001, 0, 0, 23), Special::Reserved),
    (v6(0x2001, 0xdb8, 0, 32), Special::Documentation),
    (v6(0x3fff, 0, 0, 20), Special::Documentation),
];

const GLOBAL_V6: Ipv6Net = v6(0x2000, 0, 0, 3);

/// Forms of IPv6 that end in an IPv4 address: mapped, translated (RFC 2765), NAT64.
const ENDING_IN_V4: [Ipv6Net; 3] = [
    Ipv6Net::new_assert(Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96),
    Ipv6Net::new_assert(Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, 0, 0), 96),
    v6(0x64, 0xff9b, 0, 96),
];

/// 6to4: the prefix is followed by the IPv4 address.
const SIX_TO_FOUR: Ipv6Net = v6(0x2002, 0, 0, 16);

impl Special {
    /// Why an address is not public; `None` for a public one.
    pub fn of(address: IpAddr) -> Option<Self> {
        match address {
            IpAddr::V4(address) => special_v4(address),
            IpAddr::V6(address) => special_v6(address),
        }
    }
}

fn special_v4(address: Ipv4Addr) -> Option<Special> {
    SPECIAL_V4.iter().find(|(net, _)| net.contains(&address)).map(|(_, special)| *special)
}

fn special_v6(address: Ipv6Addr) -> Option<Special> {
    if let Some(carried) = carried_v4(address) {
        return special_v4(carried);
    }
    let listed = SPECIAL_V6.iter().find(|(net, _)| net.contains(&address)).map(|(_, special)| *special);
    listed.or_else(|| (!GLOBAL_V6.contains(&address)).then_some(Special::Reserved))
}

fn carried_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let bits = u128::from(address);
    let octets = |shift: u32| u32::try_from((bits >> shift) & u128::from(u32::MAX)).ok().map(Ipv4Addr::from);
    if SIX_TO_FOUR.contains(&address) {
        return octets(80);
    }
    if ENDING_IN_V4.iter().any(|net| net.contains(&address)) { octets(0) } else { None }
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
