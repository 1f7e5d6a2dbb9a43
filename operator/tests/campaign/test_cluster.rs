//! A stand-in cluster with the operator in it.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use caipe_fixtures::apiserver::{Access, ApiServer, Call, Controllers, Fault, Verb};
use caipe_operator::defaults::Defaults;
use caipe_operator::events::{Events, EventsOptions};
use caipe_operator::health::Health;
use caipe_operator::lease::{self, Leadership, LeaseOptions};
use caipe_operator::metrics::Metrics;
use caipe_operator::probe::{Prober, ProberOptions};
use caipe_operator::run::{self, Dependencies, NOTICES, Options};
use kube::Client;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use super::kstatus::is_current;
use super::pods::Pods;
use super::resources::{everything, secret, supervisor};

/// The namespace of all tests.
pub(crate) const NAMESPACE: &str = "team";

/// How long nothing may change before the cluster counts as settled: longer than the interval of draining instances, and than the
/// backoff of a failed watch (30 s plus jitter).
const QUIET: Duration = Duration::from_secs(65);

/// Timeout of each wait.
const PATIENCE: Duration = Duration::from_hours(1);

pub(crate) struct TestCluster {
    pub(crate) server: ApiServer,
    pub(crate) controllers: Controllers,
    pub(crate) pods: Pods,
}

impl TestCluster {
    pub(crate) fn new() -> Self {
        // The definition takes a while to compile.
        static DEFINED: LazyLock<ApiServer> = LazyLock::new(defined);
        let server = DEFINED.fork();
        let controllers = Controllers::start(&server);
        let pods = Pods::new(&server);
        Self { server, controllers, pods }
    }

    /// With the Secrets to which the resources of most campaigns refer.
    pub(crate) fn with_secrets() -> Self {
        let cluster = Self::new();
        cluster.apply(&secret("llm", "OPENAI_API_KEY", "x"));
        cluster.apply(&secret("argocd", "ARGOCD_TOKEN", "x"));
        cluster
    }

    /// With an operator, and a supervisor of one of everything that has become as it should be.
    pub(crate) async fn with_supervisor(distributed: &[&str]) -> (Self, Operator) {
        let cluster = Self::with_secrets();
        let operator = cluster.operator();
        cluster.apply(&supervisor("platform", &everything(distributed)));
        cluster.until("platform", is_current).await;
        (cluster, operator)
    }

    /// Starts an operator without leader election.
    pub(crate) fn operator(&self) -> Operator {
        Operator::start(self, None)
    }

    /// Waits until nothing has changed for a while.
    pub(crate) async fn settle(&self) {
        let settled = async {
            loop {
                let revision = self.server.revision();
                if tokio::time::timeout(QUIET, self.server.moved(revision)).await.is_err() {
                    return;
                }
            }
        };
        tokio::time::timeout(PATIENCE, settled).await.expect("the cluster never came to rest");
    }

    /// Waits until the supervisor is as wanted.
    pub(crate) async fn until(&self, name: &str, fits: impl Fn(&Value) -> bool) -> Arc<Value> {
        let found = async {
            loop {
                let revision = self.server.revision();
                if let Some(found) = self.supervisor(name).filter(|found| fits(found)) {
                    return found;
                }
                self.server.moved(revision).await;
            }
        };
        let found = tokio::time::timeout(PATIENCE, found).await;
        found
            .unwrap_or_else(|_| panic!("{name} never became as wanted: {:#}", self.supervisor(name).unwrap()))
    }

    pub(crate) fn supervisor(&self, name: &str) -> Option<Arc<Value>> {
        self.server.get("caipesupervisors.caipe.io", NAMESPACE, name)
    }

    /// The notes of the events with a reason.
    pub(crate) fn notes(&self, reason: &str) -> Vec<String> {
        let events = self.server.list("events.events.k8s.io").into_iter();
        let events = events.filter(|event| event["reason"] == reason);
        events.map(|event| event["note"].as_str().unwrap().to_owned()).collect()
    }

    /// The uids of the pods, except those of tool servers.
    pub(crate) fn pod_uids(&self) -> BTreeSet<String> {
        let pods = self.server.list("pods").into_iter();
        let pods = pods.filter(|pod| pod["metadata"]["labels"]["caipe.io/tool-server"].is_null());
        pods.map(|pod| pod["metadata"]["uid"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Applies an object as a user does.
    pub(crate) fn apply(&self, object: &Value) {
        self.server.apply("kubectl", object).unwrap();
    }
}

fn defined() -> ApiServer {
    let server = ApiServer::new();
    server.namespace(NAMESPACE);
    let definition = caipe_crds::crd::yaml().unwrap();
    server.put(serde_saphyr::from_str(&definition).unwrap()).unwrap();
    server
}

/// An operator at work.
pub(crate) struct Operator {
    pub(crate) access: Access,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) health: Health,
    stop: CancellationToken,
    tasks: JoinSet<()>,
    electors: Vec<AbortHandle>,
}

impl Operator {
    /// Starts one; an identity enables leader election.
    pub(crate) fn start(cluster: &TestCluster, identity: Option<&str>) -> Self {
        Self::start_with(cluster, identity, |_| None)
    }

    /// Starts one whose calls suffer as planned from the first on.
    pub(crate) fn start_with(
        cluster: &TestCluster,
        identity: Option<&str>,
        plan: impl FnMut(&Call) -> Option<Fault> + Send + 'static,
    ) -> Self {
        Self::start_configured(cluster, identity, &[], Defaults::default(), plan)
    }

    /// Starts one that watches these namespaces, without leader election.
    pub(crate) fn watching(
        cluster: &TestCluster,
        namespaces: &[String],
        plan: impl FnMut(&Call) -> Option<Fault> + Send + 'static,
    ) -> Self {
        Self::start_configured(cluster, None, namespaces, Defaults::default(), plan)
    }

    /// Starts one that watches these namespaces, with these defaults of the installation.
    pub(crate) fn start_configured(
        cluster: &TestCluster,
        identity: Option<&str>,
        namespaces: &[String],
        defaults: Defaults,
        plan: impl FnMut(&Call) -> Option<Fault> + Send + 'static,
    ) -> Self {
        let access = cluster.server.service();
        access.suffer(plan);
        let client = Client::new(access.clone(), "default");
        let metrics = Arc::new(Metrics::new());
        let stop = CancellationToken::new();
        let (mut tasks, mut electors) = (JoinSet::new(), Vec::new());
        let leadership = match identity {
            None => Leadership::always(),
            Some(identity) => {
                let options = LeaseOptions::new(NAMESPACE, "caipe-operator", identity.to_owned());
                let (leadership, elector) =
                    lease::elect(client.clone(), options, Arc::clone(&metrics), stop.clone());
                electors.push(elector.abort_handle());
                tasks.spawn(async move { drop(elector.await) });
                leadership
            }
        };
        let options = EventsOptions::new("operator");
        let (events, publisher) = Events::new(client.clone(), options, Arc::clone(&metrics), stop.clone());
        tasks.spawn(publisher);
        let (notify, notices) = mpsc::channel(NOTICES);
        let prober =
            Prober::with(cluster.pods.clone(), ProberOptions::default(), Arc::clone(&metrics), notify);
        tasks.spawn(Arc::clone(&prober).run(stop.clone()));
        let reported = Arc::clone(&metrics);
        let health = Health::default();
        let parts =
            Dependencies { client, metrics, leadership, events, health: health.clone(), prober, notices };
        let options = Options { namespaces: namespaces.to_vec(), concurrency: 4, selector: None, defaults };
        tasks.spawn(run::run(parts, options, stop.clone()));
        Self { access, metrics: reported, health, stop, tasks, electors }
    }

    /// Stops it as SIGTERM does.
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }

    /// Ends it as SIGKILL does.
    pub(crate) async fn kill(mut self) {
        self.electors.iter().for_each(AbortHandle::abort);
        self.tasks.shutdown().await;
    }

    /// The writes so far that are not about events and leases.
    pub(crate) fn writes(&self) -> Vec<Call> {
        let calls = self.access.calls().into_iter();
        calls.filter(counts).collect()
    }
}

/// Whether a call can change what the operator is for.
pub(crate) fn counts(call: &Call) -> bool {
    call.verb.writes() && call.verb != Verb::Get && !["events", "leases"].contains(&call.resource.as_str())
}
