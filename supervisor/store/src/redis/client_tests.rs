use super::*;

fn reason(url: &str, authority: Option<&str>) -> String {
    let options = RedisOptions {
        url: url.to_owned(),
        database: "d".to_owned(),
        certificate_authority: authority.map(str::to_owned),
    };
    client(&options).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn an_unusable_url_is_refused_without_its_password() {
    for (url, authority, wanted) in [
        ("valkey://:s3cret@a:1", None, "redis+cluster://"),
        ("redis://:s3cret@a:1,b:2", None, "several servers"),
        ("rediss://:s3cret@[a", None, "cannot be read"),
        ("", None, "must begin with redis://"),
        ("redis://:s3cret@a:1", Some(PEM_BEGIN), "write rediss://"),
        ("rediss://:s3cret@a:1", Some("no pem"), "no certificate as PEM"),
    ] {
        let found = reason(url, authority);
        assert!(found.contains(wanted) && !found.contains("s3cret"), "{url}: {found}");
    }
    assert_eq!(reason("rediss://user:s3cret@redis.example:6380/2", None), "");
}
