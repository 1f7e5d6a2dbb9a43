//! An allow list and, on the next line, a URL: no URL with a special address is allowed.

#![no_main]

use caipe_net::{AllowList, Screen, Special};
use url::{Host, Url};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let (allow, url) = text.split_once('\n').unwrap_or(("", text));
    let Ok(url) = Url::parse(url) else { return };
    if let Ok(allow) = allow.parse::<AllowList>() {
        let _ = Screen::new(allow).check_url(&url);
    }
    if Screen::default().check_url(&url).is_err() {
        return;
    }
    assert!(matches!(url.scheme(), "http" | "https"), "{} is allowed", url.scheme());
    let address = match url.host() {
        Some(Host::Ipv4(address)) => Some(address.into()),
        Some(Host::Ipv6(address)) => Some(address.into()),
        _ => None,
    };
    assert!(address.is_none_or(|address| Special::of(address).is_none()), "{url} is allowed");
});
