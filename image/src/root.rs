//! The files of the image.

use crate::authorities;
use crate::config::{DATA, OPERATOR, OTHER_NAMES, PROGRAM, USER};
use crate::file_entry::{Entry, with_parents};

/// The programs of the image, each linked statically.
#[derive(Debug, Clone)]
pub struct Programs {
    /// `caipe-supervisor`.
    pub supervisor: Vec<u8>,
    /// `caipe-operator`.
    pub operator: Vec<u8>,
}

/// The programs and the supervisor's other names, the certificate authorities, the user, and the writable directories.
pub fn files(programs: Programs) -> Vec<Entry> {
    let mut entries = vec![
        Entry::file(PROGRAM, programs.supervisor).mode(0o755),
        Entry::file(OPERATOR, programs.operator).mode(0o755),
        Entry::file("etc/ssl/certs/ca-certificates.crt", authorities::bundle()),
        Entry::file("etc/passwd", passwd()),
        Entry::file("etc/group", format!("root:x:0:\ncaipe:x:{USER}:\n")),
        Entry::directory(DATA).owned_by(USER).mode(0o775),
        Entry::directory("tmp").mode(0o1777),
    ];
    let (directory, program) = PROGRAM.rsplit_once('/').unwrap_or_default();
    entries.extend(OTHER_NAMES.map(|name| Entry::link(&format!("{directory}/{name}"), program)));
    with_parents(entries)
}

fn passwd() -> String {
    format!("root:x:0:0:root:/root:/sbin/nologin\ncaipe:x:{USER}:{USER}:caipe:/tmp:/sbin/nologin\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_entry::Kind;

    #[test]
    fn an_image_has_both_programs_the_supervisors_other_names_and_little_else() {
        let programs = Programs { supervisor: b"supervisor".to_vec(), operator: b"operator".to_vec() };
        let entries = files(programs);
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
                "0775 65532 data/",
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
                "0755     0 usr/local/bin/caipe-operator",
                "0755     0 usr/local/bin/caipe-supervisor",
                "0777     0 usr/local/bin/platform-engineer@",
                "0777     0 usr/local/bin/platform-engineer-single@",
            ]
        );
    }
}
