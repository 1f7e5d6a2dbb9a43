//! Objects of whole supervisors: what they look like, and what holds for all of them.

mod errors;
mod golden;
mod laws;
mod migration;
mod restrictions;

use std::collections::BTreeMap;

use caipe_crds::read_resource;
use serde_json::Value;

use super::*;
use crate::defaults::{Defaults, OperatorPods};
use crate::labels;
use crate::references::{ConfigMapContent, References};
use crate::supervisor::decision::Decision;
use crate::supervisor::manifest;
use crate::supervisor::migration::converged;
use crate::supervisor::validate::validate;
use caipe_crds::CaipeSupervisor;

/// A fixture by name.
pub(super) const SCENES: [(&str, &str); 17] = [
    (
        "quick_start",
        "model: { provider: openai, name: gpt-5, secretRef: { name: llm } }
agents: [{ name: argocd, secretRef: { name: argocd-token } }]",
    ),
    (
        "sidecars",
        "model:
  provider: azure-openai
  name: main
  baseUrl: https://models.example.com
  secretRef: { name: llm }
  fallbacks: [{ provider: ollama, name: small, baseUrl: 'http://ollama.models.svc:11434', secretRef: { name: local } }]
agents:
- name: jira
  secretRef: { name: jira }
  env: [{ name: ATLASSIAN_API_URL, value: 'https://example.atlassian.net' }]
- name: own
  identity: { inline: { description: Does it., systemPrompt: Do it. } }
  secretRef: { name: own }
  env: [{ name: ROOT, value: /srv }, { name: TOKEN, secretKeyRef: { name: one, key: token } }]
  model: { provider: groq, name: fast, secretRef: { name: groq } }
  mcp:
  - name: files
    stdio: { image: 'node:24', command: npx, args: [-y, files, '${ROOT}', '${MODE:-ro}'], env: [{ name: KEY, secretKeyRef: { name: two, key: key } }], cwd: /srv }
  - name: child
    stdio: { command: serve, env: [{ name: CHILD, secretKeyRef: { name: three, key: child } }] }
  - name: far
    http: { url: 'https://${HOST}/mcp', headersFrom: [{ name: Authorization, prefix: 'Bearer ', secretKeyRef: { name: four, key: FAR } }] }
  - name: beside
    container: { image: 'beside:1', command: [run], args: [--all], port: 9000, resources: { limits: { memory: 256Mi } } }
  - name: shared
    container: { image: 'shared:1', port: 8000, placement: Service, env: [{ name: DB, value: 'https://db.example.com:8443' }] }",
    ),
    (
        "remote",
        "model: { provider: openai, name: gpt-5, secretRef: { name: llm } }
distributedAgents: [all]
agents:
- { name: argocd, secretRef: { name: argocd-token }, resources: { requests: { memory: 64Mi } } }
- name: own
  identity: { inline: { description: Does it., systemPrompt: Do it. } }
  mcp: [{ name: shared, container: { image: 'shared:1', port: 9000, placement: Service } }]",
    ),
    (
        "delegates",
        "model: { provider: openai, name: gpt-5, secretRef: { name: llm } }
distributedAgents: [all]
a2a: { allow: ['peer.example.org:8443'], agents: [first] }
agents:
- { name: first, identity: { inline: { description: d, systemPrompt: s } }, delegates: [second, far] }
- { name: second, identity: { inline: { description: d, systemPrompt: s } } }
- { name: far, external: { url: 'https://agents.example.com/far', secretRef: { name: far } } }",
    ),
    (
        "exposed",
        "service: { type: LoadBalancer, port: 80, annotations: { example.com/lb: internal } }
auth: { oauth2: { issuer: 'https://id.example.com', audience: caipe, jwksUri: 'https://id.example.com/keys', requiredScopes: [caipe.call] } }
server: { corsOrigins: ['https://portal.example.com'] }
resources: { limits: { memory: 512Mi, cpu: 2 } }
agents: []",
    ),
    (
        "external",
        "auth: { sharedKey: { secretKeyRef: { name: callers, key: key } } }
a2a: { allow: ['*.example.com', '10.0.0.0/8', 'peer.example.org:8443'] }
agents: [{ name: pipelines, external: { url: 'https://agents.example.com:8443/pipelines', secretRef: { name: pipelines } } }]",
    ),
    (
        "images",
        "model: { provider: openai, name: gpt-5, baseUrl: 'https://models.example.com/v1', secretRef: { name: llm } }
agents:
- { name: netutils }
- { name: mine, image: 'registry.example.com/mine:2', secretRef: { name: mine }, env: [{ name: HOME, value: /app }] }",
    ),
    (
        "pod_template",
        "agents:
- name: weather
podTemplate:
  metadata: { annotations: { example.com/team: platform } }
  spec:
    tolerations: [{ key: gpu, operator: Exists }]
    securityContext: { runAsUser: null, fsGroup: null }
    containers:
    - name: supervisor
      env: [{ name: OTEL_EXPORTER_OTLP_ENDPOINT, value: 'http://otel:4317' }, { name: EXTRA, valueFrom: { secretKeyRef: { name: extra, key: k } } }]
    - { name: log-shipper, image: 'shipper:1', envFrom: [{ secretRef: { name: shipper } }] }
    volumes: [{ name: ca, secret: { secretName: ca } }]",
    ),
    (
        "scripted",
        "model: { provider: scripted, script: { configMapRef: { name: script, key: turns.yaml } } }
store: { sqlite: { size: 5Gi, storageClassName: fast } }
distributedAgents: [own]
agents: [{ name: own, identity: { configMapRef: { name: identity } } }]",
    ),
    (
        "network",
        "networkPolicy:
  ingressFrom:
  - { namespaceSelector: { matchLabels: { team: portal } }, podSelector: { matchExpressions: [{ key: app, operator: In, values: [web] }] } }
  - { ipBlock: { cidr: 10.0.0.0/8, except: [10.1.0.0/16] } }
  metricsFrom: [{ namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: monitoring } } }]
  egress:
  - { to: [{ ipBlock: { cidr: 192.0.2.0/24 } }], ports: [{ port: 3128 }, { protocol: UDP, port: 9000, endPort: 9010 }] }
distributedAgents: [own]
agents:
- name: own
  identity: { inline: { description: Does it., systemPrompt: Do it. } }
  mcp: [{ name: shared, container: { image: 'shared:1', port: 9000, placement: Service } }]",
    ),
    ("redis", "store: { redis: { secretRef: { name: redis }, required: true } }\nreplicas: 3\nagents: []"),
    ("mongodb", "store: { mongodb: { secretRef: { name: mongodb }, ttlMinutes: 60 } }\nagents: []"),
    (
        "skills",
        "distributedAgents: [own]
skills:
  sources:
  - { name: team, configMapRef: { name: team-skills } }
  - { name: hub, github: { repository: o/r, commit: 0123456789abcdef0123456789abcdef01234567, apiUrl: 'https://git.example.com:8443/api/v3', secretRef: { name: skills-repository } } }
agents: [{ name: own, identity: { inline: { description: Does it., systemPrompt: Do it. } }, skills: ['a-*'] }]",
    ),
    (
        "slack",
        "slack:
  secretRef: { name: slack }
  configMapRef: { name: slack-bot }
  env: [{ name: CAIPE_UI_URL, value: 'http://ui.portal.svc:3000' }, { name: LOG, secretKeyRef: { name: log, key: level } }]
  resources: { limits: { memory: 256Mi } }
agents: []",
    ),
    (
        "slack_http",
        "slack: { mode: http, secretRef: { name: slack }, storage: { size: 2Gi, storageClassName: fast } }
auth: { sharedKey: { secretKeyRef: { name: callers, key: key } } }
service: { port: 80 }
agents: []",
    ),
    (
        "workspace",
        "agents:
- { name: writer, placement: Remote, workspace: { volume: { size: 5Gi, storageClassName: fast } } }
- { name: researcher, placement: Remote, workspace: { volume: { existingClaim: sources } } }",
    ),
    ("own_claim", "store: { sqlite: { existingClaim: conversations } }\nagents: []"),
];

pub(super) fn resource(spec: &str) -> CaipeSupervisor {
    named("platform", spec)
}

pub(super) fn named(name: &str, spec: &str) -> CaipeSupervisor {
    let spec = spec.replace('\n', "\n  ");
    let yaml = format!(
        "apiVersion: caipe.io/v1alpha1\nkind: CaipeSupervisor\nmetadata: {{ name: {name}, namespace: team, uid: u-1 }}\nspec:\n  {spec}\n"
    );
    read_resource(&yaml).unwrap_or_else(|faults| panic!("{faults}\n{yaml}"))
}

pub(super) fn references() -> References {
    let content = |keys: &[(&str, &str)]| ConfigMapContent {
        version: "1".to_owned(),
        data: keys.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        binary_data: BTreeMap::new(),
    };
    let config_maps = BTreeMap::from([
        ("script".to_owned(), content(&[("turns.yaml", "[]")])),
        ("identity".to_owned(), content(&[("description", "d"), ("systemPrompt", "s")])),
        ("team-skills".to_owned(), content(&[("a--SKILL.md", "---\nname: a\ndescription: d\n---\nb\n")])),
    ]);
    let secrets = BTreeMap::from([("llm".to_owned(), "7".to_owned())]);
    References { config_maps, secrets, keys: Some("keys".to_owned()) }
}

pub(super) fn defaults() -> Defaults {
    Defaults {
        image: "caipe-supervisor:1".to_owned(),
        operator: OperatorPods {
            namespace: "caipe-system".to_owned(),
            labels: BTreeMap::from([("app.kubernetes.io/name".to_owned(), "caipe-operator".to_owned())]),
        },
        ..Defaults::default()
    }
}

pub(super) fn decided(resource: &CaipeSupervisor) -> Decision {
    let resolved = validate(resource, &references(), "team").unwrap_or_else(|faults| panic!("{faults}"));
    converged(resource, resolved.spec)
}

pub(super) fn build(resource: &CaipeSupervisor, decision: &Decision) -> Result<Objects, BuildError> {
    build_with(resource, decision, &references(), &defaults())
}

pub(super) fn build_with(
    resource: &CaipeSupervisor,
    decision: &Decision,
    references: &References,
    defaults: &Defaults,
) -> Result<Objects, BuildError> {
    objects(&BuildInputs { resource, references, defaults, decision })
}

pub(super) fn made(spec: &str) -> Objects {
    let resource = resource(spec);
    build(&resource, &decided(&resource)).unwrap()
}

/// Every object, without the hashes by which a pass knows that nothing has changed.
pub(super) fn manifests(objects: &Objects) -> Vec<Value> {
    let mut all: Vec<Value> =
        manifest::manifests(objects.clone()).unwrap().into_iter().map(|manifest| manifest.value).collect();
    for value in &mut all {
        let Some(annotations) = value["metadata"]["annotations"].as_object_mut() else { continue };
        annotations.retain(|key, _| {
            ![labels::APPLIED, labels::TEMPLATE, labels::INSTALLATION].contains(&key.as_str())
        });
        if annotations.is_empty() {
            value["metadata"].as_object_mut().unwrap().remove("annotations");
        }
    }
    all
}

/// A template of the Deployment with that name.
pub(super) fn template(objects: &Objects, name: &str) -> Value {
    let all = manifests(objects);
    let found = all.iter().find(|it| it["kind"] == "Deployment" && it["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("no Deployment {name}"))["spec"]["template"].clone()
}
