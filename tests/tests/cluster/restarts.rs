//! The operator restarted: with nothing changed meanwhile, and with changes.

use std::cell::Cell;

use anyhow::Result;
use caipe_tests::cluster::objects::SERVICES;
use caipe_tests::cluster::operator::{RELEASE, SYSTEM};
use caipe_tests::cluster::{self, Cluster};
use caipe_tests::supervisor::until;
use serde_json::{Value, json};

use crate::{apply, scenario};

/// Writes that change no declared object: leases, events, token reviews.
const ASIDE: [&str; 3] = ["leases", "events", "selfsubjectreviews"];

/// What the operator wrote since so many calls of the audit.
fn writes(cluster: &Cluster, since: usize) -> Result<Vec<String>> {
    let account = format!("system:serviceaccount:{SYSTEM}:{RELEASE}");
    let verbs = ["create", "update", "patch", "delete"];
    let counts = |event: &Value| {
        let (verb, resource) = (&event["verb"], &event["objectRef"]["resource"]);
        event["user"]["username"] == account.as_str()
            && verbs.iter().any(|known| verb == known)
            && !ASIDE.iter().any(|aside| resource == aside)
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let shown = |event: &Value| {
        let object = &event["objectRef"];
        format!("{} {} {}", text(&event["verb"]), text(&object["resource"]), text(&object["name"]))
    };
    Ok(cluster.plane.audit()?.iter().skip(since).filter(|event| counts(event)).map(shown).collect())
}

/// Waits until nothing was written for so many looks.
async fn rests(cluster: &Cluster) -> Result<()> {
    const LOOKS: usize = 100;
    let seen = Cell::new((0, 0));
    until("nothing is written any more", async || {
        let (known, looks) = seen.get();
        let written = writes(cluster, 0)?.len();
        seen.set((written, if written == known { looks + 1 } else { 0 }));
        Ok(looks >= LOOKS)
    })
    .await
}

#[test]
fn a_new_operator_writes_what_somebody_changed_meanwhile_and_nothing_else() -> Result<()> {
    cluster::alone(async |cluster| {
        cluster.install_operator(&[])?;
        let scenario = scenario(&["tide", "moon"]).set("distributedAgents", json!(["tide"]));
        apply(cluster, "platform", &scenario)?;
        cluster.until_settled("platform").await?;
        rests(cluster).await?;
        let since = cluster.plane.audit()?.len();
        cluster.kill_operators().await?;
        let name = json!({"spec": {"ports": [{"port": 8000, "name": "somebodys"}]}});
        cluster.merge(SERVICES, "platform", &name).await?;
        let mended = |service: &Value| service["spec"]["ports"][0]["name"] != "somebodys";
        cluster.until("the Service is as it was", SERVICES, "platform", mended).await?;
        rests(cluster).await?;
        assert_eq!(writes(cluster, since)?, ["patch services platform"]);
        Ok(())
    })
}
