//! The Kubernetes agent of the catalogue with its tool server in a pod of its own, whose account a Role permits to read.

use anyhow::{Context, Result, ensure};
use caipe_tests::cluster::objects::{ACCOUNTS, CONFIG_MAPS, PODS, SECRETS};
use caipe_tests::live::pods::name_of;
use caipe_tests::live::{self, Live};
use caipe_tests::scenario::Scenario;
use serde_json::{Value, json};

use crate::rights::{has_token, is_ours};

const NAME: &str = "reader";
const AGENT: &str = "kubernetes";

/// The agent calls a tool for each phrase, and repeats its result.
fn scenario(namespace: &str) -> Scenario {
    let object =
        |kind: &str| json!({"apiVersion": "v1", "kind": kind, "namespace": namespace, "name": "tide"});
    let calls = [
        ("read the map", "resources_get", object("ConfigMap")),
        ("read the secret", "resources_get", object("Secret")),
        ("delete the map", "resources_delete", object("ConfigMap")),
    ];
    let scenario = calls.iter().fold(Scenario::new(), |scenario, (phrase, tool, arguments)| {
        let when =
            |turn: u32| json!({"system": "You are the Kubernetes agent", "user": phrase, "turn": turn});
        let call = json!({"calls": [{"name": tool, "arguments": arguments}]});
        scenario.turn(when(0), call).turn(when(1), json!({"text": "{{ last_result }}"}))
    });
    let all = calls.iter().fold(scenario, |scenario, (phrase, ..)| scenario.asks(phrase, &[AGENT]));
    all.set("agents", json!([{"name": AGENT}]))
}

/// Permits the account of the tool server to read `ConfigMaps` and Secrets of its namespace. Returns the account's name.
async fn permit(live: &Live) -> Result<String> {
    let component = |it: &Value| it["metadata"]["labels"]["app.kubernetes.io/component"] == "tool-server";
    let account = live.list(ACCOUNTS).await?.into_iter().find(component).context("no account")?;
    let name = name_of(&account).to_owned();
    let subject = format!("--serviceaccount={}:{name}", live.namespace);
    let verbs = ["--verb=get,list", "--resource=configmaps,secrets"];
    live.kubectl(&[&["create", "role", "read"][..], &verbs].concat())?;
    live.kubectl(&["create", "rolebinding", "read", "--role=read", &subject])?;
    Ok(name)
}

#[test]
#[ignore = "takes an image of 1.3 GB; `make campaign` runs it"]
fn the_kubernetes_agent_reads_with_the_account_of_its_tool_server() -> Result<()> {
    live::with("kubernetes", async |live| {
        let data = json!({"metadata": {"name": "tide"}, "data": {"moon": "full"}});
        live.create(CONFIG_MAPS, &data, false).await?;
        let data = json!({"metadata": {"name": "tide"}, "stringData": {"moon": "hidden-moon"}});
        live.create(SECRETS, &data, false).await?;
        live.declare(NAME, &scenario(&live.namespace))?;
        live.until_settled(NAME).await?;
        let account = permit(live).await?;

        let read = live.ask(NAME, "read the map").await?.result()?;
        ensure!(read.contains("moon: full"), "{read}");
        // The Role permits it, so the agent refuses.
        let refused = live.ask(NAME, "read the secret").await?.result()?;
        ensure!(refused.contains("never permitted") && !refused.contains("moon"), "{refused}");
        let asked = live.ask(NAME, "delete the map").await?;
        ensure!(asked.state() == "input-required", "{}", asked.outline());
        ensure!(live.get(CONFIG_MAPS, "tide").await?.is_some(), "it was deleted without a question");

        for pod in live.list(PODS).await?.iter().filter(|pod| is_ours(pod)) {
            let is_server = pod["spec"]["serviceAccountName"] == account.as_str();
            ensure!(has_token(pod) == is_server, "{}: {}", name_of(pod), has_token(pod));
        }
        Ok(())
    })
}
