//! The runbook's faults that the API alone can cause: each is caused, then the page's commands are typed.

use anyhow::{Context, Result, ensure};
use caipe_tests::doc_commands;
use caipe_tests::live::{self, Live};
use caipe_tests::programs::workspace;

use crate::runbook::{declare, shell, type_commands};

/// A heading of the runbook, and the commands that cause the fault.
type Trouble = (&'static str, &'static str);

const TROUBLES: [Trouble; 15] = [
    ("## The resource is refused", ""),
    (
        "## The resource cannot be carried out",
        r#"$K patch caipe platform --type merge -p '{"spec": {"agents": [{"name": "nobody-knows"}]}}'
        $UNTIL '{.status.conditions[?(@.type=="Stalled")].reason}'=InvalidSpec caipe/platform"#,
    ),
    (
        "## A Secret or ConfigMap is missing",
        r#"$K patch caipe platform --type json -p '[{"op": "add", "path": "/spec/agents/0/secretRef", "value": {"name": "tide-token"}}]'
        $UNTIL '{.status.conditions[?(@.type=="Ready")].reason}'=ReferenceMissing caipe/platform"#,
    ),
    (
        "## An image cannot be pulled",
        r#"$K patch caipe platform --type merge -p '{"spec": {"image": "registry.example.com/caipe:none"}}'
        until $K get caipe platform -o jsonpath='{.status.conditions[?(@.type=="Ready")].message}' | grep -q ImagePullBackOff; do :; done"#,
    ),
    (
        "## A remote agent does not answer",
        r#"$K patch caipe platform --type json -p '[{"op": "add", "path": "/spec/agents/2", "value": {"name": "pipelines", "external": {"url": "http://pipelines.team-a.svc:8000"}}}]'
        $UNTIL '{.status.conditions[?(@.type=="AgentsConnected")].status}'=False caipe/platform
        $UNTIL '{.status.agents[2].phase}'=Unreachable caipe/platform"#,
    ),
    (
        "## An agent does not move",
        r#"$K patch caipe platform --type json -p '[{"op": "add", "path": "/spec/agents/0/podTemplate", "value": {"spec": {"containers": [{"name": "agent", "image": "registry.example.com/tide:none"}]}}}]'
        $K patch caipe platform --type merge -p '{"spec": {"distributedAgents": ["tide"]}}'
        until $K get caipe platform -o jsonpath='{.status.agents[*].message}' | grep -q ImagePullBackOff; do :; done"#,
    ),
    ("## An old instance does not finish draining", ""),
    (
        "## A tool server does not run",
        r#"$K patch caipe platform --type json -p '[{"op": "add", "path": "/spec/agents/0/mcp", "value": [{"name": "almanac", "http": {"url": "http://almanac.team-a.svc:9000/mcp"}}]}]'
        until $K get caipe platform -o jsonpath='{.status.agents[*].message}' | grep -q almanac; do :; done"#,
    ),
    (
        "## A quota is reached",
        "$K create quota pods --hard=pods=0
        $K delete pods --all
        until $K get caipe platform -o yaml | grep -q exceeded.quota; do :; done
        $UNTIL '{.status.used.pods}'=0 quota/pods",
    ),
    (
        "## An object of that name has another owner",
        r#"$K create deployment platform-tide --image=registry.example.com/other:1 --replicas=0
        $K patch caipe platform --type json -p '[{"op": "remove", "path": "/spec/agents/0/podTemplate"}]'
        $K patch caipe platform --type merge -p '{"spec": {"distributedAgents": ["tide"]}}'
        $UNTIL '{.status.conditions[?(@.type=="Stalled")].reason}'=ForeignObject caipe/platform"#,
    ),
    (
        "## It is scaled to nothing",
        r#"$K patch caipe platform --type merge -p '{"spec": {"replicas": 0}}'
        $UNTIL '{.status.conditions[?(@.type=="Ready")].reason}'=ScaledToZero caipe/platform"#,
    ),
    (
        "## The operator is down",
        "kubectl -n caipe-system scale deployment caipe-operator --replicas 0
        kubectl -n caipe-system wait --for=delete pods --all
        until ! kubectl -n caipe-system get lease caipe-operator -o yaml | grep -q holderIdentity:.caipe; do :; done",
    ),
    (
        "## The operator may not do its work",
        r#"kubectl patch clusterrole caipe-operator --type json -p '[{"op": "test", "path": "/rules/3/resources/0", "value": "deployments"}, {"op": "remove", "path": "/rules/3"}]'
        $K patch caipe platform --type merge -p '{"spec": {"resources": {"limits": {"memory": "1Gi"}}}}'
        $UNTIL '{.status.conditions[?(@.type=="Stalled")].reason}'=Forbidden caipe/platform"#,
    ),
    ("## The definition is missing", ""),
    ("## A pod of the supervisor is gone", "$K delete pods -l app.kubernetes.io/component=supervisor"),
];

fn cause(live: &Live, commands: &str) -> Result<()> {
    let commands = commands
        .replace("$UNTIL ", "$K wait --timeout=90s --for=jsonpath=")
        .replace("$K", &format!("kubectl -n {}", live.namespace));
    // Some commands poll without a limit of their own.
    let output = shell(live).args(["-c", r#"exec timeout 180 sh -ec "$0""#, &commands]).output()?;
    let text =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    ensure!(output.status.success(), "{commands}: {text}");
    Ok(())
}

#[test]
fn the_runbook_shows_the_symptoms_and_its_commands_help() -> Result<()> {
    let text = std::fs::read_to_string(workspace().join("docs/runbook.md"))?;
    live::with_node("faults", async |live, _| {
        declare(live).await?;
        let mut wrong = Vec::new();
        for (heading, commands) in TROUBLES {
            println!("{heading}");
            let section = doc_commands::section(&text, heading)?;
            let caused = cause(live, commands).with_context(|| heading.to_owned());
            wrong.extend(caused.and_then(|()| type_commands(live, section)).err());
        }
        // The runbook's upgrade has the chart's own values.
        live.helm_operator(&[])?;
        let wrong: Vec<String> = wrong.iter().map(|error| format!("{error:#}")).collect();
        ensure!(wrong.is_empty(), "{}", wrong.join("\n\n"));
        Ok(())
    })
}
