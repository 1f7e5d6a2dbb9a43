//! The Slack bot of a supervisor.

use caipe_crds::agent_key::of_slack_bot;
use caipe_crds::names::{slack_bot, slack_data};
use serde_json::json;

use super::kstatus::{condition, is_current, message};
use super::recovery::key;
use super::resources::{everything, secret, supervisor};
use super::test_cluster::{NAMESPACE, TestCluster};

#[tokio::test(start_paused = true)]
async fn the_bot_follows_its_secret_and_goes_with_its_field() {
    let (cluster, operator) = TestCluster::with_supervisor(&[]).await;
    let pods = cluster.pod_uids();
    let mut spec = everything(&[]);
    spec["slack"] = json!({ "secretRef": { "name": "slack" }, "storage": {} });
    cluster.apply(&supervisor("platform", &spec));
    cluster.settle().await;
    let found = cluster.supervisor("platform").unwrap();
    assert!(is_current(&found), "the supervisor needs no Secret of its bot: {found:#}");
    assert_eq!(condition(&found, "SlackReady")["reason"], "ReferenceMissing", "{found:#}");
    assert_eq!(message(&found, "SlackReady"), "missing Secrets: slack; create them, or correct the names");

    cluster.apply(&secret("slack", "SLACK_BOT_TOKEN", "xoxb-1"));
    cluster.settle().await;
    let found = cluster.supervisor("platform").unwrap();
    assert_eq!(condition(&found, "SlackReady")["reason"], "BotFailing", "{found:#}");
    let why = message(&found, "SlackReady");
    assert!(why.contains("SLACK_APP_TOKEN") && why.contains("slack"), "{why}");

    let mut whole = secret("slack", "SLACK_BOT_TOKEN", "xoxb-1");
    whole["stringData"]["SLACK_APP_TOKEN"] = "xapp-1".into();
    cluster.apply(&whole);
    cluster.until("platform", |found| condition(found, "SlackReady")["status"] == "True").await;
    assert!(pods.is_subset(&cluster.pod_uids()), "the pods of the supervisor stay");
    let own = key(&cluster, &format!("{}.slack-key", slack_bot("platform")), "A2A_AUTH_SHARED_KEY");
    assert_eq!(own, of_slack_bot(&key(&cluster, "platform.keys", "CAIPE_AGENT_KEY")));

    cluster.apply(&supervisor("platform", &everything(&[])));
    cluster.settle().await;
    let found = cluster.supervisor("platform").unwrap();
    assert!(is_current(&found) && condition(&found, "SlackReady").is_null(), "{found:#}");
    for kind in ["deployments.apps", "serviceaccounts", "networkpolicies.networking.k8s.io", "pods"] {
        let of_bot = |object: &serde_json::Value| {
            object["metadata"]["labels"]["app.kubernetes.io/component"] == "slack-bot"
        };
        let left = cluster.server.list(kind).into_iter().filter(|it| of_bot(it)).count();
        assert_eq!(left, 0, "{kind}");
    }
    assert!(cluster.server.get("secrets", NAMESPACE, "slack").is_some(), "the Secret is the user's");
    let claim = cluster.server.get("persistentvolumeclaims", NAMESPACE, &slack_data("platform"));
    assert!(claim.is_some(), "no volume is deleted");
    assert_eq!(pods, cluster.pod_uids());
    operator.stop().await;
}
