//! The life of a pod: its containers are started in their order, looked at, started again, and ended.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::environment;
use super::images;
use super::sandbox::{Mount, Run, Sandbox};
use super::sources::Sources;
use super::status;
use super::unit::{Part, Unit};
use super::volumes::{self, Place};
use super::{NodeContext, note};

/// How often a pod is looked after.
const TICK: Duration = Duration::from_millis(100);
/// How often the kubelet brings its mounted files up to date on its own.
const REFRESH: Duration = Duration::from_mins(1);

/// A pod that runs on this node.
struct Life {
    context: Arc<NodeContext>,
    pod: Pod,
    address: Ipv4Addr,
    dir: PathBuf,
    sandbox: Sandbox,
    units: Vec<Unit>,
    reported: Value,
    fresh: Option<(Value, Instant)>,
}

/// Runs a pod until it is deleted. Nothing in `seen` means that it is gone already.
pub(super) async fn live(context: Arc<NodeContext>, mut seen: watch::Receiver<Option<Pod>>) -> Result<()> {
    let Some(pod) = seen.borrow_and_update().clone() else { return Ok(()) };
    let mut life = Life::new(context, pod)?;
    loop {
        let Some(pod) = seen.borrow_and_update().clone() else { return Ok(()) };
        life.pod = pod;
        if life.pod.metadata.deletion_timestamp.is_some() {
            return life.end().await;
        }
        life.sync().await;
        tokio::select! {
            () = tokio::time::sleep(TICK) => {}
            changed = seen.changed() => changed?,
        }
    }
}

impl Life {
    fn new(context: Arc<NodeContext>, pod: Pod) -> Result<Self> {
        let address = context.next_address();
        let name = format!("pods/{}_{}", pod.namespace().unwrap_or_default(), pod.name_any());
        let dir = context.plane.dir().join(&name);
        std::fs::create_dir_all(&dir)?;
        let resolver = format!(
            "nameserver {}\nsearch {}.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n",
            context.address(),
            pod.namespace().unwrap_or_default()
        );
        std::fs::write(dir.join("resolv.conf"), resolver)?;
        let sandbox = Sandbox::new(context.plane.processes(), &name, (&dir, &context.programs), address)?;
        let units = units(&pod);
        Ok(Self { context, pod, address, dir, sandbox, units, reported: Value::Null, fresh: None })
    }

    /// What is to be done now.
    async fn sync(&mut self) {
        self.units.iter_mut().for_each(Unit::collect);
        self.refresh().await;
        let mut at = 0;
        while at < self.units.len() {
            let blocked = self.units.iter().take(at).any(|unit| !unit.allows_next());
            if !blocked && self.units.get(at).is_some_and(Unit::is_due) {
                self.start(at).await;
            }
            at += 1;
        }
        let address = self.address;
        futures::future::join_all(self.units.iter_mut().map(|unit| unit.probe(address))).await;
        self.tell().await;
    }

    /// Updates the mounted files: when the pod's metadata changed, and periodically.
    async fn refresh(&mut self) {
        let marks = json!([self.pod.metadata.annotations, self.pod.metadata.labels]);
        let is_fresh = |(seen, at): &(Value, Instant)| *seen == marks && at.elapsed() < REFRESH;
        if self.fresh.as_ref().is_some_and(is_fresh) {
            return;
        }
        match self.write_volumes().await {
            Ok(()) => self.fresh = Some((marks, Instant::now())),
            Err(reason) => {
                let waiting = self.units.iter_mut().filter(|unit| unit.is_due());
                waiting.for_each(|unit| unit.waits("ContainerCreating", reason.clone()));
            }
        }
    }

    async fn write_volumes(&self) -> Result<(), String> {
        let claims = self.context.claims();
        volumes::write(&Place { pod: &self.dir, claims: &claims }, &self.sources()).await
    }

    fn sources(&self) -> Sources<'_> {
        let (client, api) = (&self.context.client, self.context.plane.endpoint());
        Sources { client, pod: &self.pod, address: self.address, api }
    }

    async fn start(&mut self, at: usize) {
        let Some(container) = self.units.get(at).map(|unit| unit.container.clone()) else { return };
        let outcome = self.try_start(&container).await;
        let Some(unit) = self.units.get_mut(at) else { return };
        match outcome {
            Ok(program) => unit.runs_as(program, Timestamp::now().to_string()),
            Err((reason, message)) => unit.waits(reason, message),
        }
    }

    async fn try_start(
        &self,
        container: &Container,
    ) -> Result<crate::cluster::child_process::Program, (&'static str, String)> {
        let image = container.image.as_deref().unwrap_or_default();
        let Some(entry) = images::entry(image) else {
            return Err(("ImagePullBackOff", format!("Back-off pulling image \"{image}\"")));
        };
        let missing = |message| ("CreateContainerConfigError", message);
        let env = environment::of(container, &self.sources()).await.map_err(missing)?;
        let run = self.run(container, entry, env);
        let name = format!("{}/{}", self.log_dir(), container.name);
        let failed = |error: anyhow::Error| ("RunContainerError", format!("{error:#}"));
        self.sandbox.start(self.context.plane.processes(), &name, &run).map_err(failed)
    }

    fn log_dir(&self) -> String {
        format!("pods/{}_{}", self.pod.namespace().unwrap_or_default(), self.pod.name_any())
    }

    fn run(
        &self,
        container: &Container,
        entry: &str,
        env: std::collections::BTreeMap<String, String>,
    ) -> Run {
        let expanded = |text: &String| environment::expanded(text, &env);
        let mut command: Vec<String> = container.command.iter().flatten().map(expanded).collect();
        if command.is_empty() {
            command.push(entry.to_owned());
        }
        command.extend(container.args.iter().flatten().map(expanded));
        let name = container.name.clone();
        Run { name, command, mounts: self.mounts(container), user: user(&self.pod, container), env }
    }

    fn mounts(&self, container: &Container) -> Vec<Mount> {
        let claims = self.context.claims();
        let place = Place { pod: &self.dir, claims: &claims };
        let namespace = self.pod.namespace().unwrap_or_default();
        let volumes = self.pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
        let resolver = self.dir.join("resolv.conf");
        let mut mounts =
            vec![Mount { source: resolver, target: "/etc/resolv.conf".to_owned(), writable: false }];
        for mount in container.volume_mounts.iter().flatten() {
            let Some(volume) = volumes.clone().find(|volume| volume.name == mount.name) else { continue };
            let mut source = place.of(volume, &namespace);
            source.extend(mount.sub_path.as_deref());
            let writable = mount.read_only != Some(true)
                && (volume.empty_dir.is_some() || volume.persistent_volume_claim.is_some());
            mounts.push(Mount { source, target: mount.mount_path.clone(), writable });
        }
        mounts
    }

    /// Writes the status, if it is another one.
    async fn tell(&mut self) {
        let now = Timestamp::now().to_string();
        let wanted = status::of(&self.units, self.address, self.context.address(), &now, &self.reported);
        if wanted == self.reported {
            return;
        }
        let patch = Patch::Merge(json!({"status": wanted}));
        match self.pods().patch_status(&self.pod.name_any(), &PatchParams::default(), &patch).await {
            Ok(_) => self.reported = wanted,
            Err(error) => note(&self.context, &format!("a status was refused: {error}")),
        }
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.context.client.clone(), &self.pod.namespace().unwrap_or_default())
    }

    /// Ends the main containers, then those beside them; then the pod is no more.
    async fn end(mut self) -> Result<()> {
        let grace = self.pod.metadata.deletion_grace_period_seconds.unwrap_or(30).unsigned_abs();
        let deadline = Instant::now() + Duration::from_secs(grace);
        self.step_aside(deadline).await;
        for part in [Part::Main, Part::Sidecar, Part::Init] {
            self.stop(part, deadline).await;
        }
        self.units.clear();
        let params = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions { uid: self.pod.uid(), resource_version: None }),
            ..DeleteParams::default()
        };
        while let Err(error) = self.pods().delete(&self.pod.name_any(), &params).await {
            // Gone already, or another of the same name.
            if matches!(&error, kube::Error::Api(status) if status.code == 404 || status.code == 409) {
                break;
            }
            tokio::time::sleep(TICK).await;
        }
        Ok(())
    }

    async fn step_aside(&self, deadline: Instant) {
        let sleeps = self.units.iter().filter(|unit| unit.runs()).filter_map(|unit| {
            unit.container.lifecycle.as_ref()?.pre_stop.as_ref()?.sleep.as_ref().map(|sleep| sleep.seconds)
        });
        let longest = Duration::from_secs(sleeps.max().unwrap_or_default().unsigned_abs());
        tokio::time::sleep(longest.min(deadline.saturating_duration_since(Instant::now()))).await;
    }

    async fn stop(&mut self, part: Part, deadline: Instant) {
        let units = || self.units.iter().filter(|unit| unit.part == part);
        units().for_each(|unit| unit.signal(Signal::TERM));
        let mut units: Vec<&mut Unit> = self.units.iter_mut().filter(|unit| unit.part == part).collect();
        // However little is left, a program may see the signal.
        let deadline = deadline.max(Instant::now() + TICK * 5);
        while !units.iter_mut().all(|unit| unit.is_gone()) {
            if Instant::now() > deadline {
                for unit in &units {
                    unit.signal(Signal::KILL);
                }
            }
            tokio::time::sleep(TICK / 5).await;
        }
    }
}

fn units(pod: &Pod) -> Vec<Unit> {
    let spec = pod.spec.iter();
    let init = spec.clone().flat_map(|spec| spec.init_containers.iter().flatten()).map(|container| {
        let beside = container.restart_policy.as_deref() == Some("Always");
        Unit::new(container, if beside { Part::Sidecar } else { Part::Init })
    });
    init.chain(spec.flat_map(|spec| &spec.containers).map(|container| Unit::new(container, Part::Main)))
        .collect()
}

/// Whose rights the program has; those of the images' user if nothing is said.
fn user(pod: &Pod, container: &Container) -> String {
    const IMAGE: i64 = 65532;
    let own = container.security_context.as_ref();
    let all = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
    let user = own.and_then(|own| own.run_as_user).or_else(|| all?.run_as_user).unwrap_or(IMAGE);
    let group = own.and_then(|own| own.run_as_group).or_else(|| all?.run_as_group).unwrap_or(IMAGE);
    format!("{user}:{group}")
}
