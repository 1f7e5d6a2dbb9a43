//! The environment of a child process.

use std::collections::BTreeMap;

/// The variables that every child inherits, to find its files and to use the same network settings. A child gets any other
/// variable, credentials above all, only if its declaration names it.
const INHERITED: [&str; 24] = [
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "TZ",
    "USER",
    "LOGNAME",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "AWS_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "XDG_CACHE_HOME",
];

/// The inherited variables of `environment`, then those of the declaration.
pub(super) fn child_environment(
    environment: &BTreeMap<String, String>,
    declared: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let inherited = INHERITED.iter().filter_map(|name| environment.get_key_value(*name));
    inherited.chain(declared).map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::child_environment;
    use std::collections::BTreeMap;

    fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn inherits_only_harmless_or_named_variables() {
        let ours = map(&[
            ("PATH", "/bin"),
            ("HOME", "/root"),
            ("OPENAI_API_KEY", "sk"),
            ("HTTPS_PROXY", "http://p"),
        ]);
        let own = map(&[("JIRA_TOKEN", "t"), ("HOME", "/tmp")]);
        let expected =
            map(&[("PATH", "/bin"), ("HOME", "/tmp"), ("HTTPS_PROXY", "http://p"), ("JIRA_TOKEN", "t")]);
        assert_eq!(child_environment(&ours, &own), expected);
    }
}
