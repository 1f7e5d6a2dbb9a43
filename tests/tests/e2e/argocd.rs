//! The chart and a supervisor kept by Argo CD, from a Git repository, as our example has it.

use std::time::Instant;

use anyhow::{Result, ensure};
use caipe_fixtures::requirements::Requirement;
use caipe_tests::cluster::objects::{CLAIMS, DEPLOYMENTS, SUPERVISORS};
use caipe_tests::cluster::operator::{RELEASE, SYSTEM};
use caipe_tests::live::argocd::{self, ArgoCd, Repository, health, is_healthy, syncs};
use caipe_tests::live::call_log::CallLog;
use caipe_tests::live::scenario_run::{AGENT, NAME, Operator, ScenarioRun, manifests, scenario};
use caipe_tests::live::{self, Live};
use caipe_tests::scenario::Scenario;
use caipe_tests::supervisor::until;
use serde_json::{Value, json};

use crate::table::tell;

/// The file of the supervisor in the repository.
const FILE: &str = "platform.json";
/// How often Argo CD looks for drift.
const LOOKS: usize = 20;

#[test]
fn argo_cd_installs_moves_refuses_heals_and_prunes() -> Result<()> {
    live::with_node("argocd", async |live, _| {
        if !ArgoCd::is_built() {
            Requirement::ArgoCd.unmet("Argo CD is not built");
            return Ok(());
        }
        // Its own installation of the operator takes the place of ours, and gives it back.
        live.while_uninstalled(async || installed_by(live).await).await
    })
}

async fn installed_by(live: &Live) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let repository = Repository::make(directory.path().join("repository"))?;
    let argo = ArgoCd::begin(live, directory.path()).await?;
    let outcome = synced_by(live, &argo, &repository).await;
    if outcome.is_err() {
        // Helm does not install over objects of another owner.
        for application in [argocd::SUPERVISORS, argocd::OPERATOR] {
            drop(argo.prune(application).await);
        }
    }
    outcome.and(argo.end().await)
}

async fn synced_by(live: &Live, argo: &ArgoCd, repository: &Repository) -> Result<()> {
    // What the supervisor needs and is not the team's.
    CallLog::start(live).await?;
    live.volume(&format!("{NAME}.data"))?;
    let began = Instant::now();
    let [script, resource] = manifests(NAME, &scenario());
    repository.declare("script.json", &script)?;
    let first = repository.declare(FILE, &resource)?;
    argo.apply_example(repository, &live.namespace)?;
    argo.until_healthy(argocd::OPERATOR, &first).await?;
    argo.until_healthy(argocd::SUPERVISORS, &first).await?;
    println!("Argo CD: all is there and healthy after {:.1} s", began.elapsed().as_secs_f64());

    let run = ScenarioRun::open(live, Operator::Stays).await?;
    for application in [argocd::OPERATOR, argocd::SUPERVISORS] {
        nothing_drifts(argo, application).await?;
    }
    run.wait_for_answers().await?;
    moved(live, argo, repository).await?;
    run.wait_for_answers().await?;
    let mended = refused(live, argo, repository, &run).await?;
    let outcome = run.finish(mended).await?;
    let row = "Argo CD looks twenty times, moves an agent by a commit, meets a bad commit and its revert";
    tell(row, &outcome)?;
    outcome.tally.undisturbed()?;
    outcome.status_follows()?;
    pruned(live, argo, repository).await
}

/// Argo CD looks again and again, and never finds anything to change.
async fn nothing_drifts(argo: &ArgoCd, application: &str) -> Result<()> {
    let before = syncs(&argo.refresh(application).await?);
    for refresh in 1..LOOKS {
        let seen = argo.refresh(application).await?;
        ensure!(is_healthy(&seen), "{application} at refresh {refresh}: {:#}", seen["status"]);
        ensure!(
            syncs(&seen) == before,
            "{application} was changed at refresh {refresh}: {:#}",
            seen["status"]
        );
    }
    Ok(())
}

/// One line of the supervisor, in Git.
fn with(change: impl FnOnce(Scenario) -> Scenario) -> Value {
    let [_, resource] = manifests(NAME, &change(scenario()));
    resource
}

async fn moved(live: &Live, argo: &ArgoCd, repository: &Repository) -> Result<()> {
    let away = with(|scenario| scenario.set("distributedAgents", json!([AGENT])));
    let commit = repository.declare(FILE, &away)?;
    argo.until_healthy(argocd::SUPERVISORS, &commit).await?;
    let there = |seen: &Value| seen["status"]["agents"][0]["placement"] == "Remote";
    live.until("the agent has moved", SUPERVISORS, NAME, there).await.map(drop)
}

/// An invalid commit is reported, the pods keep running, and a revert restores it. When that was.
async fn refused(
    live: &Live,
    argo: &ArgoCd,
    repository: &Repository,
    run: &ScenarioRun<'_>,
) -> Result<Instant> {
    let nobody = json!({"spec": {"containers": [{"name": "supervisr", "env": []}]}});
    let away = |scenario: Scenario| scenario.set("distributedAgents", json!([AGENT]));
    let bad = with(|scenario| away(scenario).set("podTemplate", nobody));
    let commit = repository.declare(FILE, &bad)?;
    let seen = argo.until_degraded(argocd::SUPERVISORS, &commit).await?;
    let shown = health(&seen, "CaipeSupervisor");
    println!("Argo CD: {shown}");
    let message = shown["message"].as_str().unwrap_or_default();
    ensure!(message.contains("there is no container `supervisr`"), "Argo CD does not say why: {seen:#}");
    run.wait_for_answers().await?;
    let reverted = repository.revert()?;
    let began = Instant::now();
    argo.until_healthy(argocd::SUPERVISORS, &reverted).await?;
    live.until_settled(NAME).await?;
    Ok(began)
}

/// What is taken out of Git is taken out of the cluster, and an Application takes all along that it brought, but for
/// the definition, which all supervisors would go with.
async fn pruned(live: &Live, argo: &ArgoCd, repository: &Repository) -> Result<()> {
    let commit = repository.remove(FILE)?;
    argo.until_healthy(argocd::SUPERVISORS, &commit).await?;
    live.until_gone(SUPERVISORS, NAME).await?;
    let volume = format!("{}/{NAME}.data", CLAIMS.plural());
    let only_the_volume = async || Ok(live.made().await?.iter().eq([&volume]));
    until("only the volume is left of the supervisor", only_the_volume).await?;
    argo.prune(argocd::SUPERVISORS).await?;
    argo.prune(argocd::OPERATOR).await?;
    live.in_namespace(SYSTEM).until_gone(DEPLOYMENTS, RELEASE).await?;
    live.kubectl(&["get", "crd", "caipesupervisors.caipe.io"]).map(drop)
}
