//! The files in `examples/`, applied by kubectl.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use caipe_tests::cluster::{self, Cluster};
use caipe_tests::programs::{self, workspace};
use caipe_tests::supervisor::until;

const POLICY: &str = "restrict-creators.yaml";
const AUTOSCALER: &str = "replicas-autoscaler.yaml";
/// What the comment of `skills.yaml` creates; `render` reads it from the file of the resource.
const TEAM_SKILLS: &str = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: { name: team-skills }\n";

fn path(name: &str) -> String {
    workspace().join("examples").join(name).to_string_lossy().into_owned()
}

/// The names of the example supervisors' files.
fn supervisors() -> Result<Vec<String>> {
    let files = std::fs::read_dir(workspace().join("examples"))?;
    let names: Result<Vec<_>, _> =
        files.map(|file| Ok::<_, std::io::Error>(file?.file_name().to_string_lossy().into_owned())).collect();
    Ok(names?
        .into_iter()
        .filter(|name| Path::new(name).extension().is_some_and(|kind| kind == "yaml"))
        .filter(|name| ![POLICY, AUTOSCALER].contains(&name.as_str()))
        .collect())
}

#[test]
fn every_example_is_accepted_by_kubernetes() -> Result<()> {
    cluster::with(async |cluster| {
        let names = supervisors()?;
        ensure!(names.len() > 5, "{names:?}");
        let directory = tempfile::tempdir()?;
        let file = directory.path().join("example.yaml");
        for name in names {
            let output = cluster.kubectl(&["apply", "-f", &path(&name)])?;
            ensure!(output.ends_with(" created\n") && output.lines().count() == 1, "{name}: {output}");
            let both = std::fs::read_to_string(path(&name))? + TEAM_SKILLS;
            std::fs::write(&file, both)?;
            let rendered = Command::new(programs::operator()?).args(["render", "-f"]).arg(&file).output()?;
            ensure!(rendered.status.success(), "{name}: {}", String::from_utf8_lossy(&rendered.stderr));
        }
        Ok(())
    })
}

#[test]
fn the_autoscaler_names_its_supervisor() -> Result<()> {
    cluster::with(async |cluster| {
        let output = cluster.kubectl(&["apply", "-f", &path("replicas.yaml"), "-f", &path(AUTOSCALER)])?;
        ensure!(output.contains("horizontalpodautoscaler.autoscaling/replicated created"), "{output}");
        let target = "jsonpath={.spec.scaleTargetRef.kind}/{.spec.scaleTargetRef.name}";
        let target = cluster.kubectl(&["get", "hpa", "replicated", "-o", target])?;
        cluster.kubectl(&["scale", &target, "--replicas", "4"])?;
        let seen = cluster.kubectl(&["get", &target, "-o", "jsonpath={.spec.replicas}"])?;
        ensure!(seen == "4", "{seen}");
        Ok(())
    })
}

/// The message of the API server about a supervisor with this addition to its spec, or nothing if it accepts it.
fn refusal(cluster: &Cluster, addition: &str) -> String {
    let resource = format!(
        "{{apiVersion: caipe.io/v1alpha1, kind: CaipeSupervisor, metadata: {{name: probe}}, spec: {{{addition}}}}}"
    );
    let output = cluster.kubectl_given(&["create", "--dry-run=server", "-f", "-"], &resource);
    output.err().map(|error| error.to_string()).unwrap_or_default()
}

/// Applies the policy and waits until the API server enforces it in the test's namespace.
async fn enforce(cluster: &Cluster) -> Result<()> {
    cluster.kubectl(&["label", "namespace", &cluster.namespace, "caipe.io/restricted=true"])?;
    cluster.kubectl(&["apply", "-f", &path(POLICY)])?;
    until("the policy is enforced", async || Ok(!refusal(cluster, "image: docker.io/other").is_empty())).await
}

#[test]
fn the_policy_restricts_images_and_pod_templates() -> Result<()> {
    cluster::with(async |cluster| {
        enforce(cluster).await?;
        let own = "name: a, identity: {inline: {description: d, systemPrompt: s}}";
        let server = |image: &str| {
            format!("agents: [{{{own}, mcp: [{{name: m, container: {{image: {image}, port: 9000}}}}]}}]")
        };
        let child =
            format!("agents: [{{{own}, mcp: [{{name: m, stdio: {{image: docker.io/other, command: c}}}}]}}]");
        let with_pods = |setting: &str| {
            let container =
                format!("{{image: registry.example.com/m, port: 9000, placement: Service, {setting}}}");
            format!("agents: [{{{own}, mcp: [{{name: m, container: {container}}}]}}]")
        };
        for (addition, message) in [
            (with_pods("podTemplate: {spec: {}}"), "podTemplate is not allowed"),
            (with_pods("serviceAccount: {name: other}"), "serviceAccount is not allowed"),
            ("serviceAccount: {annotations: {a: b}}".to_owned(), "serviceAccount is not allowed"),
            (
                format!("agents: [{{{own}, serviceAccount: {{name: other}}}}]"),
                "serviceAccount is not allowed",
            ),
            ("store: {sqlite: {existingClaim: other}}".to_owned(), "existingClaim is not allowed"),
            ("podTemplate: {spec: {hostNetwork: true}}".to_owned(), "podTemplate is not allowed"),
            (format!("agents: [{{{own}, podTemplate: {{spec: {{}}}}}}]"), "podTemplate is not allowed"),
            ("image: docker.io/other".to_owned(), "images of the supervisor"),
            ("agents: [{name: a, image: docker.io/other}]".to_owned(), "images of the supervisor"),
            (server("docker.io/other"), "images of tool servers must come from registry.example.com/"),
            (child, "images of tool servers"),
            ("service: {type: LoadBalancer}".to_owned(), "must have the type ClusterIP"),
            ("networkPolicy: {mode: Disabled}".to_owned(), "networkPolicy may only set ingressFrom"),
            (
                "networkPolicy: {egress: [{ports: [{port: 1}]}]}".to_owned(),
                "networkPolicy may only set ingressFrom",
            ),
        ] {
            let refusal = refusal(cluster, &addition);
            ensure!(refusal.contains(message), "{addition}: {refusal:?}");
        }
        let accepted = [
            with_pods("replicas: 2"),
            server("registry.example.com/mcp:1"),
            "image: registry.example.com/caipe:1".to_owned(),
            "networkPolicy: {ingressFrom: [{podSelector: {}}]}".to_owned(),
        ];
        for addition in accepted {
            let refusal = refusal(cluster, &addition);
            ensure!(refusal.is_empty(), "{addition}: {refusal}");
        }
        cluster.kubectl(&["apply", "-f", &path("openai.yaml")])?;
        cluster.kubectl(&["delete", "-f", &path(POLICY)])?;
        Ok(())
    })
}
