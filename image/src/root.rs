//! The files of the supervisor's image.

use crate::authorities;
use crate::config::{DATA, OTHER_NAMES, PROGRAM, USER};
use crate::entry::{Entry, completed};

/// The supervisor, its other names, whom it trusts, who it is, and where it may write. Nothing else.
pub fn supervisor(program: Vec<u8>) -> Vec<Entry> {
    let mut entries = vec![
        Entry::file(PROGRAM, program).mode(0o755),
        Entry::file("etc/ssl/certs/ca-certificates.crt", authorities::bundle()),
        Entry::file("etc/passwd", passwd()),
        Entry::file("etc/group", format!("root:x:0:\ncaipe:x:{USER}:\n")),
        Entry::directory(DATA).owned_by(USER),
        Entry::directory("tmp").mode(0o1777),
    ];
    let (directory, program) = PROGRAM.rsplit_once('/').unwrap_or_default();
    entries.extend(OTHER_NAMES.map(|name| Entry::link(&format!("{directory}/{name}"), program)));
    completed(entries)
}

fn passwd() -> String {
    format!("root:x:0:0:root:/root:/sbin/nologin\ncaipe:x:{USER}:{USER}:caipe:/tmp:/sbin/nologin\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Kind;

    #[test]
    fn an_image_has_the_program_under_its_three_names_and_little_else() {
        let entries = supervisor(b"program".to_vec());
        let seen: Vec<_> = entries
            .iter()
            .map(|entry| {
                let what = match &entry.kind {
                    Kind::Directory => "/",
                    Kind::File(_) => "",
                    Kind::Link(_) => "@",
                };
                format!("{:04o} {:5} {}{what}", entry.mode, entry.owner, entry.path)
            })
            .collect();
        assert_eq!(
            seen,
            [
                "0755 65532 data/",
                "0755     0 etc/",
                "0644     0 etc/group",
                "0644     0 etc/passwd",
                "0755     0 etc/ssl/",
                "0755     0 etc/ssl/certs/",
                "0644     0 etc/ssl/certs/ca-certificates.crt",
                "1777     0 tmp/",
                "0755     0 usr/",
                "0755     0 usr/local/",
                "0755     0 usr/local/bin/",
                "0755     0 usr/local/bin/caipe-supervisor",
                "0777     0 usr/local/bin/platform-engineer@",
                "0777     0 usr/local/bin/platform-engineer-single@",
            ]
        );
    }
}
