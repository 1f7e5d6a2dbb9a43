use super::*;
use crate::resource::agent::Agent;
use crate::resource::mcp::{Container, Stdio};

fn bridged(name: &str) -> McpServer {
    let stdio = Stdio { image: Some("i".to_owned()), command: "c".to_owned(), ..Stdio::default() };
    McpServer { name: name.to_owned(), stdio: Some(stdio), ..McpServer::default() }
}

fn spec(agents: &[(&str, Vec<McpServer>)]) -> CaipeSupervisorSpec {
    let agent = |(name, mcp): &(&str, Vec<McpServer>)| Agent { mcp: mcp.clone(), ..Agent::named(name) };
    CaipeSupervisorSpec { agents: Some(agents.iter().map(agent).collect()), ..CaipeSupervisorSpec::default() }
}

#[test]
fn bridges_have_ports_of_their_own_which_others_do_not_move() {
    let one = ports(&spec(&[("m", vec![bridged("x")])]));
    let port = one[&("m".to_owned(), "x".to_owned())];
    let many: Vec<McpServer> = (0..16).map(|at| bridged(&format!("s{at}"))).collect();
    let several = ports(&spec(&[("m", vec![bridged("a"), bridged("x")]), ("b", many)]));
    assert_eq!(several.len(), 18);
    assert_eq!(several.values().collect::<BTreeSet<_>>().len(), 18);
    assert_eq!(several[&("m".to_owned(), "x".to_owned())], port);
    assert!(several.values().all(|port| (FIRST..FIRST + COUNT).contains(port)));
}

#[test]
fn a_bridge_keeps_off_a_declared_port_of_any_agent() {
    let port = ports(&spec(&[("a", vec![bridged("x")])]))[&("a".to_owned(), "x".to_owned())];
    let container = |placement| McpServer {
        name: "c".to_owned(),
        container: Some(Container { image: "i".to_owned(), port, placement, ..Container::default() }),
        ..McpServer::default()
    };
    let beside = |placement| {
        let spec = spec(&[("a", vec![bridged("x")]), ("b", vec![container(placement)])]);
        ports(&spec)[&("a".to_owned(), "x".to_owned())]
    };
    assert_ne!(beside(ContainerPlacement::Sidecar), port);
    assert_eq!(beside(ContainerPlacement::Service), port, "it is in another pod");
}

#[test]
fn every_server_that_a_resource_can_have_gets_a_port() {
    let servers: Vec<McpServer> = (0..16).map(|at| bridged(&format!("s{at}"))).collect();
    let names: Vec<String> = (0..128).map(|at| format!("a{at}")).collect();
    let agents: Vec<(&str, Vec<McpServer>)> =
        names.iter().map(|name| (name.as_str(), servers.clone())).collect();
    assert_eq!(ports(&spec(&agents)).len(), 128 * 16);
}
