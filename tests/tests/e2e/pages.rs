//! The blocks of the documentation marked `<!-- runs on: node -->`, typed page by page, each from a cluster without the
//! operator and its definition.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use caipe_tests::cluster::DEFINITION;
use caipe_tests::cluster::namespace::TestNamespace;
use caipe_tests::cluster::objects::CONFIG_MAPS;
use caipe_tests::cluster::operator::RELEASE;
use caipe_tests::doc_commands::{self, Place, Step};
use caipe_tests::doc_session::Session;
use caipe_tests::live::{self, Live};
use caipe_tests::programs::{self, workspace};
use caipe_tests::supervisor::until;
use serde_json::json;

/// The beginnings of names of namespaces that no page creates.
const PERMANENT: [&str; 3] = ["default", "kube-", "e2e-"];

#[test]
fn every_command_for_a_cluster_does_what_its_page_shows() -> Result<()> {
    live::with_node("pages", async |live, _| {
        let typed = live.while_uninstalled(async || {
            let mut wrong = Vec::new();
            for (page, steps) in pages()? {
                println!("{page}");
                remove_everything(live)?;
                wrong.extend(type_page(live, &steps).with_context(|| page).err());
            }
            remove_everything(live)?;
            let wrong: Vec<String> = wrong.iter().map(|error| format!("{error:#}")).collect();
            ensure!(wrong.is_empty(), "{}", wrong.join("\n\n"));
            Ok(())
        });
        let outcome = typed.await;
        until_owners_are_admitted(live).await?;
        outcome
    })
}

/// The pages with such blocks, and their commands.
fn pages() -> Result<Vec<(String, Vec<Step>)>> {
    let mut files: Vec<PathBuf> = ["README.md", "SECURITY.md", "CONTRIBUTING.md", "examples/README.md"]
        .into_iter()
        .map(|name| workspace().join(name))
        .filter(|path| path.exists())
        .collect();
    let docs = std::fs::read_dir(workspace().join("docs"))?.flatten().map(|entry| entry.path());
    let mut docs: Vec<_> = docs.filter(|path| path.extension().is_some_and(|kind| kind == "md")).collect();
    docs.sort();
    files.extend(docs);
    let mut pages = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file)?;
        let blocks = doc_commands::all_blocks(&text).into_iter();
        let here = blocks.filter(|block| block.place == Some(Place::Node));
        let steps: Vec<Step> = here.flat_map(|block| block.steps).collect();
        if !steps.is_empty() {
            pages.push((file.display().to_string(), steps));
        }
    }
    ensure!(!pages.is_empty(), "no page has commands for a cluster");
    Ok(pages)
}

/// Types the commands in one session at the root of the repository.
fn type_page(live: &Live, steps: &[Step]) -> Result<()> {
    let session = Session::new()?;
    let shell = || {
        let mut shell = session.shell();
        live.administer(&mut shell);
        // A reader has a key of a provider, which no supervisor on this node can reach.
        shell.env("OPENAI_API_KEY", "none").current_dir(workspace());
        shell
    };
    if steps.iter().any(|step| step.command.contains("caipe-supervisor ")) {
        let program = programs::supervisor()?;
        let folder = program.parent().context("the program is in no folder")?.display();
        shell().args(["-c", &format!("export PATH='{folder}':\"$PATH\"")]).status()?;
    }
    let typed = steps.iter().try_for_each(|step| without_background_output(step).holds(shell));
    typed.with_context(|| live.kubectl(&["describe", "caipe", "--all-namespaces"]).unwrap_or_default())
}

/// A program in the background prints at any time.
fn without_background_output(step: &Step) -> Step {
    let mut step = step.clone();
    if step.command.ends_with('&') {
        "...\n".clone_into(&mut step.output);
    }
    step
}

/// Removes the operator, its definition, and what a page left in `default` and in other namespaces.
fn remove_everything(live: &Live) -> Result<()> {
    let operator = format!("app.kubernetes.io/name={RELEASE}");
    delete(live, &["clusterroles,clusterrolebindings", "-l", &operator])?;
    let list = live.kubectl(&["get", "namespaces", "-o", "name"])?;
    let names = list.lines().filter_map(|line| line.strip_prefix("namespace/"));
    let made: Vec<&str> =
        names.filter(|name| !PERMANENT.iter().any(|begin| name.starts_with(begin))).collect();
    if !made.is_empty() {
        delete(live, &[&["namespaces", "--ignore-not-found"], &made[..]].concat())?;
    }
    let default = live.in_namespace("default");
    let kinds = "deployments,pods,configmaps,secrets,persistentvolumeclaims,resourcequotas";
    delete(&default, &[kinds, "--all"])?;
    delete(&default, &["services", "--field-selector=metadata.name!=kubernetes"])?;
    // The definition last: the admission of owner references still knows it if the page creates it again soon.
    delete(live, &["crd", DEFINITION, "--ignore-not-found"])
}

/// Deletes objects. `kubectl` may miss the end of an object and then waits for minutes; asked again, it sees it.
fn delete(space: &TestNamespace, objects: &[&str]) -> Result<()> {
    let command = [&["delete", "--timeout=30s"], objects].concat();
    space.kubectl(&command).or_else(|_| space.kubectl(&command)).map(drop)
}

/// Waits until an object may have a supervisor as its owner: the admission of owner references finds a new definition up to
/// half a minute late.
async fn until_owners_are_admitted(live: &Live) -> Result<()> {
    let owner = json!({"apiVersion": "caipe.io/v1alpha1", "kind": "CaipeSupervisor", "name": "platform",
        "uid": "0", "blockOwnerDeletion": true});
    let object = json!({"metadata": {"name": "owned", "ownerReferences": [owner]}});
    let is_admitted = async || Ok(live.create(CONFIG_MAPS, &object, true).await.is_ok());
    until("the admission of owner references knows the definition", is_admitted).await
}
