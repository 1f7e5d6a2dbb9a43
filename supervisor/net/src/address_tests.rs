use proptest::prelude::*;
use url::Url;

use super::Special::{
    Documentation, LinkLocal, Loopback, Metadata, Multicast, Private, Reserved, Shared, Unspecified,
};
use super::*;
use crate::Screen;

const SPECIAL_ADDRESSES: &[(&str, Special)] = &[
    ("0.0.0.0", Unspecified),
    ("0.255.255.255", Unspecified),
    ("10.0.0.0", Private),
    ("10.255.255.255", Private),
    ("100.64.0.0", Shared),
    ("100.127.255.255", Shared),
    ("100.100.100.200", Metadata),
    ("127.0.0.0", Loopback),
    ("127.255.255.255", Loopback),
    ("168.63.129.16", Metadata),
    ("169.254.0.0", LinkLocal),
    ("169.254.255.255", LinkLocal),
    ("169.254.169.254", Metadata),
    ("172.16.0.0", Private),
    ("172.31.255.255", Private),
    ("192.0.0.0", Reserved),
    ("192.0.0.192", Metadata),
    ("192.0.2.255", Documentation),
    ("192.88.99.1", Reserved),
    ("192.168.0.0", Private),
    ("192.168.255.255", Private),
    ("198.18.0.0", Reserved),
    ("198.19.255.255", Reserved),
    ("198.51.100.7", Documentation),
    ("203.0.113.7", Documentation),
    ("224.0.0.0", Multicast),
    ("239.255.255.255", Multicast),
    ("240.0.0.0", Reserved),
    ("255.255.255.255", Reserved),
    ("::", Unspecified),
    ("::1", Loopback),
    ("::7f00:1", Reserved),
    ("::ffff:127.0.0.1", Loopback),
    ("::ffff:169.254.169.254", Metadata),
    ("::ffff:0:10.0.0.1", Private),
    ("64:ff9b::10.1.2.3", Private),
    ("64:ff9b::169.254.169.254", Metadata),
    ("64:ff9b:1::1", Reserved),
    ("100::1", Reserved),
    ("2001::1", Reserved),
    ("2001:1ff:ffff::", Reserved),
    ("2001:db8::", Documentation),
    ("2001:db8:ffff::1", Documentation),
    ("2002:7f00:1::", Loopback),
    ("2002:a9fe:a9fe::1", Metadata),
    ("2002:c0a8:101::1", Private),
    ("3fff::1", Documentation),
    ("3fff:fff:ffff::1", Documentation),
    ("4000::", Reserved),
    ("5f00::1", Reserved),
    ("fc00::", Private),
    ("fdff:ffff::1", Private),
    ("fd00:ec2::254", Metadata),
    ("fe80::1", LinkLocal),
    ("febf::1", LinkLocal),
    ("fec0::1", Reserved),
    ("ff02::1", Multicast),
];

#[test]
fn every_special_range_is_refused_at_both_ends() {
    for (text, special) in SPECIAL_ADDRESSES {
        let address: IpAddr = text.parse().unwrap();
        assert_eq!(Special::of(address), Some(*special), "{text}");
    }
}

#[test]
fn the_neighbours_of_the_special_ranges_are_public() {
    for text in [
        "1.0.0.0",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.0.3.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
        "2000::",
        "2001:200::1",
        "2002:808:808::1",
        "2001:4860:4860::8888",
        "3fff:1000::1",
        "2606:4700::1111",
    ] {
        assert_eq!(Special::of(text.parse().unwrap()), None, "{text}");
    }
}

/// The ways to write an IPv4 address that resolvers have taken over the years.
fn spellings(address: Ipv4Addr) -> Vec<String> {
    let [a, b, c, d] = address.octets();
    let number = u32::from(address);
    let low = number & 0xff_ffff;
    vec![
        format!("{a}.{b}.{c}.{d}"),
        format!("{a}.{b}.{c}.{d}."),
        format!("{number}"),
        format!("0x{number:x}"),
        format!("0X{number:X}"),
        format!("0{number:o}"),
        format!("{a}.{low}"),
        format!("{a}.{b}.{}", low & 0xffff),
        format!("0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}"),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("0x{a:x}.0{b:o}.{c}.{d}"),
        format!("%3{}{}", a.to_string().remove(0), format_args!("{}.{b}.{c}.{d}", &a.to_string()[1..])),
        format!("[::ffff:{a}.{b}.{c}.{d}]"),
        format!("[::FFFF:{:x}:{:x}]", number >> 16, number & 0xffff),
        format!("[0:0:0:0:0:ffff:{a}.{b}.{c}.{d}]"),
        format!("[64:ff9b::{a}.{b}.{c}.{d}]"),
        format!("[2002:{:x}:{:x}::1]", number >> 16, number & 0xffff),
    ]
}

fn special_addresses() -> impl Strategy<Value = Ipv4Addr> {
    let nets = SPECIAL_V4.map(|(net, _)| net).to_vec();
    (proptest::sample::select(nets), any::<u32>())
        .prop_map(|(net, bits)| Ipv4Addr::from(u32::from(net.network()) | (bits & u32::from(net.hostmask()))))
}

proptest! {
    #[test]
    fn a_special_address_is_rejected_in_every_spelling(address in special_addresses()) {
        let screen = Screen::default();
        for text in spellings(address) {
            for url in [format!("http://{text}/"), format!("https://{text}:8443/x?y#z")] {
                let url: Url = url.parse().unwrap();
                prop_assert!(screen.check_url(&url).is_err(), "{} as {}", address, url);
            }
        }
    }

    #[test]
    fn every_form_of_an_address_is_judged_alike(bits in any::<u32>()) {
        let address = Ipv4Addr::from(bits);
        let special = special_v4(address);
        prop_assert_eq!(special_v6(address.to_ipv6_mapped()), special);
        let [a, b, c, d] = address.octets();
        let high = |x: u8, y: u8| u16::from_be_bytes([x, y]);
        let nat64 = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high(a, b), high(c, d));
        prop_assert_eq!(special_v6(nat64), special);
        let six_to_four = Ipv6Addr::new(0x2002, high(a, b), high(c, d), 0, 0, 0, 0, 1);
        prop_assert_eq!(special_v6(six_to_four), special);
        prop_assert!(special_v6(address.to_ipv6_compatible()).is_some());
    }

    #[test]
    fn nothing_outside_global_unicast_is_public(bits in any::<u128>()) {
        let address = Ipv6Addr::from(bits);
        let first = address.segments()[0];
        if !(0x2000..0x4000).contains(&first) && carried_v4(address).is_none() {
            prop_assert!(Special::of(address.into()).is_some());
        }
    }

    #[test]
    fn no_allow_list_and_no_url_panics(
        allow in "[a-z0-9.:,*]{0,12}",
        host in "[a-z0-9.]{1,9}|[0-9]{1,3}(\\.[0-9a-fx]{1,4}){1,3}|\\[[0-9a-f:.]{2,20}\\]",
        rest in "(:[0-9]{1,5})?/?",
    ) {
        if let (Ok(allow), Ok(url)) = (allow.parse(), format!("http://{host}{rest}").parse()) {
            let _ = Screen::new(allow).check_url(&url);
        }
    }
}
