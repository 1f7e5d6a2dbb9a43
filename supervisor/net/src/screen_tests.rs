use super::*;

fn judged(allow: &str, url: &str) -> Result<(), Refusal> {
    let url: Url = url.parse().unwrap();
    Screen::new(allow.parse().unwrap()).check_url(&url)
}

#[test]
fn urls_are_judged_without_being_resolved() {
    const LISTED: &str = "127.0.0.1:8080, 10.0.0.0/8, ::1, hooks, *.svc.cluster.local, db.internal:5000";
    const CASES: &[(&str, &str, bool)] = &[
        ("", "https://hooks.example.com/a?b", true),
        ("", "http://no-such-host.invalid/", true),
        ("", "http://8.8.8.8/", true),
        ("", "ftp://example.com/", false),
        ("", "file:///etc/passwd", false),
        ("", "http://user@example.com/", false),
        ("", "http://:secret@example.com/", false),
        ("", "http://127.0.0.1/", false),
        ("", "http://127.1:8080/", false),
        ("", "http://0x7f000001/", false),
        ("", "http://017700000001/", false),
        ("", "http://2130706433/", false),
        ("", "http://[::1]/", false),
        ("", "http://[fd00:ec2::254]/latest", false),
        ("", "http://localhost/", false),
        ("", "http://LOCALHOST./", false),
        ("", "http://a.localhost:80/", false),
        ("", "http://metadata.google.internal/", false),
        ("", "http://１２７.0.0.1/", false),
        (LISTED, "http://127.0.0.1:8080/", true),
        (LISTED, "http://127.1:8080/", true),
        (LISTED, "http://[::ffff:127.0.0.1]:8080/", true),
        (LISTED, "http://127.0.0.1/", false),
        (LISTED, "http://127.0.0.2:8080/", false),
        (LISTED, "http://10.9.8.7:1/", true),
        (LISTED, "http://[::1]:9/", true),
        (LISTED, "http://hooks:9/", true),
        (LISTED, "http://hooks./", true),
        (LISTED, "http://a.b.svc.cluster.local/", true),
        (LISTED, "http://db.internal:5000/", true),
        (LISTED, "http://db.internal:5001/", false),
        (LISTED, "http://db.internal/", false),
        (LISTED, "http://169.254.169.254/", false),
        ("localhost", "http://localhost:3000/", true),
        ("localhost", "http://127.0.0.1:3000/", false),
        ("example.com:443", "https://example.com/", true),
        ("example.com:443", "http://example.com/", false),
    ];
    for (allow, url, allowed) in CASES {
        assert_eq!(judged(allow, url).is_ok(), *allowed, "{url} with {allow:?}");
    }
}

#[test]
fn a_closed_screen_allows_listed_hosts_only() {
    const LISTED: &str = "8.8.8.8, 10.0.0.0/8, agents.example.com, *.internal:4000";
    let screen = Screen::new(LISTED.parse().unwrap()).only_listed();
    for (url, refusal) in [
        ("http://8.8.8.8/", None),
        ("http://10.1.2.3:4000/", None),
        ("https://agents.example.com/a", None),
        ("http://data.internal:4000/", None),
        ("http://9.9.9.9/", Some("9.9.9.9 is not on the list of allowed addresses")),
        ("https://example.com/", Some("example.com is not on the list of allowed addresses")),
        ("http://data.internal/", Some("data.internal is allowed on other ports only")),
        (
            "http://169.254.169.254/",
            Some("169.254.169.254 is the address of a cloud's metadata service, which is not allowed"),
        ),
    ] {
        let judged = screen.check_url(&url.parse().unwrap());
        assert_eq!(judged.err().map(|refusal| refusal.to_string()).as_deref(), refusal, "{url}");
    }
}

#[test]
fn a_refusal_says_what_is_wrong() {
    let refusal = judged("", "http://10.1.2.3/").unwrap_err();
    assert_eq!(refusal.to_string(), "10.1.2.3 is a private address, which is not allowed");
}

/// Every name has these addresses.
struct Fixed(Vec<IpAddr>);

#[async_trait::async_trait]
impl Lookup for Fixed {
    async fn lookup(&self, _: &str) -> std::io::Result<Vec<IpAddr>> {
        Ok(self.0.clone())
    }
}

async fn resolves(allow: &str, addresses: &[&str]) -> bool {
    let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
    let screen = Screen::new(allow.parse().unwrap()).with_lookup(Arc::new(Fixed(addresses)));
    screen.resolve("hooks.example.com").await.is_ok()
}

#[tokio::test]
async fn one_bad_address_spoils_a_name() {
    assert!(resolves("", &["8.8.8.8", "2606:4700::1111"]).await);
    assert!(!resolves("", &["8.8.8.8", "127.0.0.1"]).await);
    assert!(!resolves("", &["::ffff:10.0.0.1"]).await);
    assert!(resolves("10.0.0.0/8", &["8.8.8.8", "10.0.0.1", "::ffff:10.0.0.1"]).await);
    assert!(resolves("*.example.com", &["10.0.0.1"]).await);
    assert!(
        !resolves("10.0.0.1:80", &["10.0.0.1"]).await,
        "a port counts for an address that is written out"
    );
    assert!(!resolves("example.com", &["10.0.0.1"]).await);
}
