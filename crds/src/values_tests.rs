use proptest::prelude::*;

use super::*;
use crate::resource::rules;

#[test]
fn a_url_has_a_scheme_and_a_host_and_nothing_odd() {
    for text in [
        "http://a",
        "https://a.b:65535/c?d=e#f",
        "http://[::1]:8000/",
        "http://user:word@a/",
        "http://a_b.svc/%20",
        "https://münchen.example/ä",
        "http://a/?b=%zz",
        "http://10.0.0.1:80",
    ] {
        assert!(is_url(text), "{text}");
    }
    for text in [
        "",
        "a",
        "a:80",
        "ftp://a",
        "HTTP://a",
        "http://",
        "http:///a",
        "http://?a",
        "http://:80/",
        "http://a:65536",
        "http://a:b",
        "http://a b/",
        "http://a/b c",
        "http://a/\u{7}",
        "http://a/%zz",
        "http://a/%2",
        "http://a\\b",
        "http://{a}/",
        "http://[::1",
        "http://u@:80/",
    ] {
        assert!(!is_url(text), "{text}");
    }
}

#[test]
fn a_quantity_is_a_number_with_a_unit_of_kubernetes() {
    for (text, amount) in [
        ("0", 0.0),
        ("250m", 0.25),
        ("300m", 0.3),
        ("1500u", 0.0015),
        ("5n", 5e-9),
        ("64Mi", 67_108_864.0),
        ("1.5Gi", 1_610_612_736.0),
        ("2k", 2000.0),
        ("1E", 1e18),
        ("1Ei", 1_152_921_504_606_846_976.0),
        ("1e3", 1000.0),
        ("1E+3", 1000.0),
        ("12e-1", 1.2),
        (".5", 0.5),
        ("5.", 5.0),
        ("+1", 1.0),
        ("-1", -1.0),
    ] {
        assert_eq!(Amount::read(text), Some(Amount(amount)), "{text}");
    }
    for text in [
        "", " ", ".", "+", "Mi", "64Mib", "64MB", "64 Mi", "1K", "1ki", "1e", "1e1.5", "1-2", "ä", "inf",
        "nan", "0x1",
    ] {
        assert_eq!(Amount::read(text), None, "{text}");
    }
}

proptest! {
    /// The definition has a pattern, the code a reader: what they take is the same, but for a sign.
    #[test]
    fn the_pattern_of_a_quantity_takes_what_is_read(text in "[-+]?[0-9.]{0,4}([KMGTPE]i|[numkMGTPEK]|[eE][-+]?[0-9]{0,2})?b?") {
        let pattern = regex_lite::Regex::new(rules::QUANTITY_PATTERN).unwrap();
        let is_read = Amount::read(&text).is_some() && !text.starts_with('-');
        prop_assert_eq!(pattern.is_match(&text), is_read, "{}", text);
    }
}

#[test]
fn names_of_objects_are_domains() {
    for (text, fits) in [
        ("a", true),
        ("1-a.b", true),
        ("A", false),
        ("A B", false),
        ("a..b", false),
        ("-a", false),
        ("a-", false),
        ("a.", false),
        ("", false),
    ] {
        assert_eq!(is_domain(text), fits, "{text}");
    }
}

/// The same texts as of the reader of the list, `supervisor/a2a/src/net/allow.rs`, and more networks.
#[test]
fn destinations_are_what_the_supervisor_reads() {
    for text in [
        "*",
        "a",
        "a:1",
        "127.0.0.1",
        "127.0.0.1:80",
        "::1",
        "[::1]",
        "[::1]:80",
        "10.0.0.0/8",
        "fd00::/8",
        "0.0.0.0/0",
        "::/128",
        "*.a.b",
        "*.a:80",
        "EXAMPLE.com.",
        "münchen.example",
    ] {
        assert!(is_destination(text), "{text}");
    }
    for text in [
        "",
        " ",
        "*.",
        "a:b",
        "a:70000",
        "10.0.0.0/33",
        "10.0.0.0/99",
        "10.0.0.0/08",
        "10.0.0/8",
        "fd00::/129",
        "10.0.0.0/8:80",
        "http://a/",
        "a b",
        "[a]",
        "a*b",
        "127.1",
        ".",
        "..",
        "a,b",
    ] {
        assert!(!is_destination(text), "{text}");
    }
}

#[test]
fn patterns_that_have_a_name_in_common_meet() {
    for (one, other, meet) in [
        ("delete_*", "delete_issue", true),
        ("DELETE_*", "delete_issue", true),
        ("delete_*", "*_issue", true),
        ("delete_*", "get_*", false),
        ("*", "anything", true),
        ("*", "*", true),
        ("a*c", "ab*", true),
        ("a*c", "ab", false),
        ("", "", true),
        ("", "x", false),
        ("", "*", true),
        ("*x", "*y", false),
    ] {
        assert_eq!(patterns_meet(one, other), meet, "{one} {other}");
        assert_eq!(patterns_meet(other, one), meet, "{other} {one}");
    }
}
