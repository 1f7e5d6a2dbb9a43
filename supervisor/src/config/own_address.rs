//! Rejects agents whose address is the supervisor's own, because it would call itself in a loop. Pure.

use std::net::{IpAddr, SocketAddr};

use caipe_crds::rendered::Placement;
use caipe_crds::resolve::variable_part;
use caipe_crds::{Fault, RenderedSpec};
use url::{Host, Url};

/// A fault for each agent whose address is the one on which this program listens.
pub(super) fn faults(spec: &RenderedSpec, listen: SocketAddr) -> Vec<Fault> {
    let external = spec.supervisor.external_url.as_deref().and_then(|url| Url::parse(url).ok());
    let is_own =
        |url: &Url| is_listener(url, listen) || external.as_ref().is_some_and(|own| is_same(url, own));
    let mut faults = Vec::new();
    for agent in &spec.agents {
        if let Placement::Remote { url, .. } = &agent.placement
            && Url::parse(url).is_ok_and(|url| is_own(&url))
        {
            let prefix = variable_part(&agent.name);
            let message = format!(
                "agent `{}` has this supervisor's own address: set it to where the agent listens, or run the agent in-process",
                agent.name
            );
            faults.push(Fault::new(format!("${prefix}_AGENT_URL"), message));
        }
    }
    faults
}

/// Whether requests to the URL reach this listener.
fn is_listener(url: &Url, listen: SocketAddr) -> bool {
    let here = |ip: IpAddr| {
        let ip = ip.to_canonical();
        // The listener may have every address of this machine; only loopback is known here.
        ip == listen.ip().to_canonical()
            || ip.is_unspecified()
            || (ip.is_loopback() && covers_loopback(listen.ip()))
    };
    let same_host = match url.host() {
        Some(Host::Ipv4(ip)) => here(ip.into()),
        Some(Host::Ipv6(ip)) => here(ip.into()),
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost") && covers_loopback(listen.ip()),
        None => false,
    };
    same_host && url.port_or_known_default() == Some(listen.port())
}

fn covers_loopback(listen: IpAddr) -> bool {
    listen.is_unspecified() || listen.is_loopback()
}

/// Whether both are the same URL, without regard to a trailing slash.
fn is_same(a: &Url, b: &Url) -> bool {
    let path = |url: &Url| url.path().trim_end_matches('/').to_owned();
    a.origin() == b.origin() && path(a) == path(b)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn found(url: &str, listen: &str, external: Option<&str>) -> Vec<String> {
        let variables = [("DISTRIBUTED_AGENTS", "jira"), ("JIRA_AGENT_URL", url)];
        let env = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut spec =
            caipe_crds::resolve(&caipe_crds::default_resource(), &BTreeMap::from(env)).unwrap().spec;
        spec.supervisor.external_url = external.map(str::to_owned);
        faults(&spec, listen.parse().unwrap()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn no_agent_is_the_supervisor_itself() {
        let cases = [
            ("http://localhost:8000", "127.0.0.1:8000", None, true),
            ("http://LOCALHOST:8000/", "0.0.0.0:8000", None, true),
            ("http://127.0.0.1:8000/a2a", "0.0.0.0:8000", None, true),
            ("http://[::1]:8000", "[::]:8000", None, true),
            ("http://0.0.0.0:8000", "127.0.0.1:8000", None, true),
            ("http://10.0.0.7:8000", "10.0.0.7:8000", None, true),
            ("http://localhost", "0.0.0.0:80", None, true),
            ("https://caipe.example.com/", "0.0.0.0:8000", Some("https://caipe.example.com"), true),
            ("http://localhost:8001", "0.0.0.0:8000", None, false),
            ("http://localhost:8000", "10.0.0.7:8000", None, false),
            ("http://jira:8000", "0.0.0.0:8000", None, false),
            ("https://caipe.example.com/jira", "0.0.0.0:8000", Some("https://caipe.example.com"), false),
        ];
        for (url, listen, external, own) in cases {
            let found = found(url, listen, external);
            assert_eq!(!found.is_empty(), own, "{url} {listen} {external:?}: {found:?}");
            if own {
                assert!(
                    found[0].starts_with("$JIRA_AGENT_URL: agent `jira` has this supervisor's own"),
                    "{found:?}"
                );
            }
        }
    }
}
