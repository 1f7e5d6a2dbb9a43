//! What runs in the pods, as far as the operator asks: a supervisor that takes the spec that is mounted, agents with cards.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use caipe_crds::internal_status::{AgentReport, DrainingInstance, Report};
use caipe_crds::rendered::Placement;
use caipe_crds::resource::agent_state::{AgentPhase, AgentPlacement};
use caipe_crds::{RenderedSpec, names, read_rendered};
use caipe_fixtures::apiserver::ApiServer;
use caipe_operator::labels;
use caipe_operator::metrics::labels::ProbeOutcome;
use caipe_operator::probe::{CardSummary, Failure, PodClient, Request};
use serde_json::Value;

/// The pods of a stand-in cluster.
#[derive(Clone)]
pub(crate) struct Pods {
    server: ApiServer,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    /// What each pod has mounted, and the annotated epoch when the mount was last refreshed.
    mounted: HashMap<String, (String, RenderedSpec)>,
    /// Delegations under way at old instances, by agent.
    busy: HashMap<String, u64>,
    /// Agents that do not answer.
    silent: Vec<String>,
    /// How often more a kubelet that is woken mounts what it knew before.
    too_soon: u32,
    /// The pods that are ready, as of the revision.
    ready: (u64, Ready),
}

/// The pods that are ready: by address, and whose they are.
#[derive(Default)]
struct Ready {
    by_address: HashMap<String, Arc<Value>>,
    agents: HashSet<(String, String)>,
}

impl Ready {
    fn of(pods: Vec<Arc<Value>>) -> Self {
        let mut all = Self::default();
        for pod in pods.into_iter().filter(|pod| is_ready(pod)) {
            let label = |name: &str| label(&pod, name).unwrap_or_default().to_owned();
            all.agents.insert((label(labels::INSTANCE), label(labels::AGENT)));
            all.by_address.insert(pod["status"]["podIP"].as_str().unwrap_or_default().to_owned(), pod);
        }
        all
    }
}

impl Pods {
    pub(crate) fn new(server: &ApiServer) -> Self {
        Self { server: server.clone(), inner: Arc::default() }
    }

    /// How many delegations an agent's old instance still works on.
    pub(crate) fn keep_busy(&self, agent: &str, tasks: u64) {
        self.inner().busy.insert(agent.to_owned(), tasks);
    }

    pub(crate) fn answer(&self, agent: &str, answers: bool) {
        let mut inner = self.inner();
        inner.silent.retain(|silent| silent != agent);
        if !answers {
            inner.silent.push(agent.to_owned());
        }
    }

    /// Has kubelets that are woken mount what they knew before, so many times.
    pub(crate) fn wake_too_soon(&self, times: u32) {
        self.inner().too_soon = times;
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn at(&self, ip: IpAddr) -> Result<Arc<Value>, Failure> {
        let found = self.ready(|ready| ready.by_address.get(&ip.to_string()).cloned());
        found.ok_or_else(|| Failure { outcome: ProbeOutcome::Connect, message: "refused".to_owned() })
    }

    /// Looks at the pods that are ready now. They are gone through once for each change of the cluster, not for each probe.
    fn ready<T>(&self, probe: impl FnOnce(&Ready) -> T) -> T {
        let mut inner = self.inner();
        let revision = self.server.revision();
        if inner.ready.0 != revision {
            inner.ready = (revision, Ready::of(self.server.list("pods")));
        }
        probe(&inner.ready.1)
    }

    fn report(&self, request: &Request) -> Result<Report, Failure> {
        let pod = self.at(request.ip)?;
        self.check(&pod)?;
        let spec = self.mounted(&pod)?;
        let agents =
            spec.agents.iter().map(|agent| self.agent(&pod, &agent.name, &agent.placement, spec.epoch));
        Ok(Report {
            epoch: spec.epoch,
            running_epoch: spec.epoch,
            waiting: Vec::new(),
            warnings: Vec::new(),
            limits: Vec::new(),
            hash: spec.hash.clone(),
            refused: None,
            agents: agents.collect(),
            draining: self.draining(&pod),
        })
    }

    fn check(&self, pod: &Value) -> Result<(), Failure> {
        let agent = label(pod, labels::AGENT);
        let silent = self.inner().silent.iter().any(|silent| Some(silent.as_str()) == agent);
        if silent {
            Err(Failure { outcome: ProbeOutcome::Timeout, message: "no answer".to_owned() })
        } else {
            Ok(())
        }
    }

    /// The mounted spec: as it was when the pod started, or when it was last told of an epoch.
    fn mounted(&self, pod: &Value) -> Result<RenderedSpec, Failure> {
        let text =
            |pointer: &str| pod.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let uid = text("/metadata/uid");
        let reported = pod["metadata"]["annotations"][labels::EPOCH].as_str().unwrap_or_default().to_owned();
        let mut inner = self.inner();
        let Inner { mounted, too_soon, .. } = &mut *inner;
        if let Some((before, spec)) = mounted.get_mut(&uid) {
            if *before != reported && *too_soon > 0 {
                (*before, *too_soon) = (reported.clone(), *too_soon - 1);
            }
            if *before == reported {
                return Ok(spec.clone());
            }
        }
        let instance = label(pod, labels::INSTANCE).unwrap_or_default();
        let name = match label(pod, labels::AGENT) {
            Some(agent) => names::agent(instance, agent),
            None => names::spec(instance),
        };
        let map = self.server.get("configmaps", &text("/metadata/namespace"), &name);
        let read = map.and_then(|map| read_rendered(map["data"]["spec.yaml"].as_str()?).ok());
        let failure = || Failure { outcome: ProbeOutcome::Status, message: "no spec".to_owned() };
        let spec = read.ok_or_else(failure)?.spec;
        inner.mounted.insert(uid, (reported, spec.clone()));
        Ok(spec)
    }

    fn agent(&self, pod: &Value, name: &str, placement: &Placement, epoch: u64) -> AgentReport {
        let (placement, endpoint) = match placement {
            Placement::InProcess {} => (AgentPlacement::InProcess, None),
            Placement::Remote { url, .. } => (AgentPlacement::Remote, Some(url.clone())),
        };
        let ready = placement == AgentPlacement::InProcess || self.reaches(pod, name, endpoint.as_deref());
        let phase = if ready { AgentPhase::Ready } else { AgentPhase::Unreachable };
        AgentReport { endpoint, ..AgentReport::new(name, placement, phase, epoch) }
    }

    /// Whether the supervisor reaches a remote agent: an external one always, one of the operator's if a pod of it is ready.
    fn reaches(&self, from: &Value, agent: &str, endpoint: Option<&str>) -> bool {
        if endpoint.is_some_and(|url| url.contains("example.com")) {
            return true;
        }
        let key = (label(from, labels::INSTANCE).unwrap_or_default().to_owned(), agent.to_owned());
        let silent = self.inner().silent.iter().any(|silent| silent == agent);
        !silent && self.ready(|ready| ready.agents.contains(&key))
    }

    fn draining(&self, pod: &Value) -> Vec<DrainingInstance> {
        if label(pod, labels::AGENT).is_some() {
            return Vec::new();
        }
        let busy = self.inner().busy.clone();
        let instance = |(name, tasks): (String, u64)| DrainingInstance {
            name,
            placement: AgentPlacement::Remote,
            endpoint: None,
            active_tasks: tasks,
        };
        busy.into_iter().filter(|(_, tasks)| *tasks > 0).map(instance).collect()
    }
}

impl PodClient for Pods {
    async fn status(&self, request: &Request) -> Result<Report, Failure> {
        if request.token.is_none() {
            return Err(Failure { outcome: ProbeOutcome::Denied, message: "no token".to_owned() });
        }
        self.report(request)
    }

    async fn card(&self, request: &Request) -> Result<CardSummary, Failure> {
        let pod = self.at(request.ip)?;
        self.check(&pod)?;
        let name = label(&pod, labels::AGENT).unwrap_or("supervisor").to_owned();
        Ok(CardSummary { name, protocol_version: "1.0".to_owned(), latency_ms: 1 })
    }
}

fn label<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object["metadata"]["labels"].get(name)?.as_str()
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions.is_some_and(|all| all.iter().any(|one| one["type"] == "Ready" && one["status"] == "True"))
}
