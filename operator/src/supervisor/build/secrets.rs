//! Secrets as files: one directory for each owner, one file for each variable.

use std::collections::BTreeMap;

use caipe_crds::catalogue;
use caipe_crds::names::{self, OWN_AGENT_KEY, SHARED_KEY};
use caipe_crds::resolve::{RAG_SECRETS, SECRETS_ROOT, SKILLS_SECRETS, STORE_SECRETS};
use caipe_crds::resource::agent::Agent;
use caipe_crds::resource::common::{SecretHeader, SecretKeyRef};
use caipe_crds::resource::settings::{ExternalStore, Rag};
use caipe_crds::resource::skills::SkillSource;
use k8s_openapi::api::core::v1::{
    KeyToPath, ProjectedVolumeSource, SecretProjection, Volume, VolumeProjection,
};

use super::context::{BuildContext, Member, Program};
use super::pod::Mounts;

/// Readable only by the pod's group, which every container has.
const MODE: i32 = 0o440;

/// A file with one key of a Secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::supervisor) struct KeyFile {
    pub(in crate::supervisor) variable: String,
    pub(in crate::supervisor) secret: String,
    pub(in crate::supervisor) key: String,
}

impl KeyFile {
    fn new(variable: &str, reference: &SecretKeyRef) -> Self {
        let (secret, key) = (reference.name.clone(), reference.key.clone());
        Self { variable: variable.to_owned(), secret, key }
    }
}

/// The single keys that the agent's program reads as files, besides its whole Secret.
pub(in crate::supervisor) fn key_files(agent: &Agent) -> Vec<KeyFile> {
    let children = agent.mcp.iter().filter_map(|server| server.stdio.as_ref());
    // A server with an image is a container, which gets environment variables.
    let children = children.filter(|stdio| stdio.image.is_none()).flat_map(|stdio| &stdio.env);
    let variables = agent.env.iter().chain(children).filter_map(|variable| {
        variable.secret_key_ref.as_ref().map(|reference| KeyFile::new(&variable.name, reference))
    });
    let headers = agent.mcp.iter().filter_map(|server| server.http.as_ref());
    let headers = headers.flat_map(|http| &http.headers_from);
    let headers = headers.map(header_file);
    let token = agent.external.as_ref().and_then(|external| external.secret_ref.as_ref());
    let token = token.map(SecretKeyRef::from).map(|token| KeyFile::new(&token.variable(), &token));
    let mut files: Vec<KeyFile> = variables.chain(headers).chain(token).collect();
    files.sort();
    files.dedup();
    files
}

fn header_file(header: &SecretHeader) -> KeyFile {
    KeyFile::new(&header.secret_key_ref.variable(), &header.secret_key_ref)
}

/// The Secrets of the knowledge base's headers.
pub(super) fn of_rag(rag: Option<&Rag>, mounts: &mut Mounts) {
    let headers = rag.into_iter().flat_map(|rag| &rag.headers_from);
    let files: Vec<KeyFile> = headers.map(header_file).collect();
    if !files.is_empty() {
        mount(mounts, "secrets-of-rag", RAG_SECRETS, keys(&files));
    }
}

/// The Secrets of models, which supervisor and agents share.
pub(super) fn shared(cx: &BuildContext<'_>, mounts: &mut Mounts) {
    let spec = &cx.inputs.resource.spec;
    if let Some(model) = &spec.model {
        if let Some(secret) = &model.secret_ref {
            mount(mounts, "secrets-model", "model", vec![whole(&secret.name)]);
        }
        for (at, fallback) in model.fallbacks.iter().enumerate() {
            let Some(secret) = &fallback.secret_ref else { continue };
            let owner = format!("model-fallback-{at}");
            mount(mounts, &format!("secrets-{owner}"), &owner, vec![whole(&secret.name)]);
        }
    }
}

/// The Secret with the token of a source of skills.
pub(super) fn of_skills(source: &SkillSource, mounts: &mut Mounts) {
    let token = source.github.as_ref().and_then(|github| github.secret_ref.as_ref());
    if let Some(token) = token.map(SecretKeyRef::from) {
        let file = KeyFile::new(&token.variable(), &token);
        let owner = format!("{SKILLS_SECRETS}/{}", source.name);
        mount(mounts, &format!("skills-secrets-of-{}", source.name), &owner, keys(&[file]));
    }
}

/// The Secret of the store.
pub(super) fn of_store(server: Option<&ExternalStore>, mounts: &mut Mounts) {
    if let Some(server) = server {
        mount(mounts, "secrets-of-store", STORE_SECRETS, vec![whole(&server.secret_ref.name)]);
    }
}

/// The Secrets of one agent, and of its own model.
pub(super) fn of_agent(agent: &Agent, mounts: &mut Mounts) {
    let name = &agent.name;
    let mut sources: Vec<_> = agent.secret_ref.iter().map(|secret| whole(&secret.name)).collect();
    sources.extend(keys(&key_files(agent)));
    if !sources.is_empty() && !catalogue::has_separate_tools(agent) {
        mount(mounts, &format!("secrets-of-{name}"), &format!("agents/{name}"), sources);
    }
    let model = agent.model.as_ref().and_then(|model| model.secret_ref.as_ref());
    if let Some(secret) = model {
        let owner = format!("agents/{name}-model");
        mount(mounts, &format!("model-secrets-of-{name}"), &owner, vec![whole(&secret.name)]);
    }
}

/// The directory with the credentials of an agent.
pub(super) fn directory(agent: &str) -> String {
    format!("{SECRETS_ROOT}/agents/{agent}")
}

/// The credential with which an agent calls one that it delegates to: that agent's own key, or its token.
pub(super) fn of_delegate(cx: &BuildContext<'_>, delegate: &Member<'_>, mounts: &mut Mounts) {
    let name = &delegate.rendered.name;
    let files = match (&delegate.program, &delegate.declared.external) {
        (Program::Foreign, external) => {
            let token = external.as_ref().and_then(|external| external.secret_ref.as_ref());
            token.map(SecretKeyRef::from).map(|token| KeyFile::new(&token.variable(), &token))
        }
        (Program::Ours | Program::Image(_), _) => {
            let key = SecretKeyRef { name: names::agent_key(cx.name, name), key: SHARED_KEY.to_owned() };
            Some(KeyFile::new(OWN_AGENT_KEY, &key))
        }
    };
    if let Some(file) = files {
        mount(mounts, &format!("secrets-of-{name}"), &format!("agents/{name}"), keys(&[file]));
    }
}

fn mount(mounts: &mut Mounts, volume: &str, owner: &str, sources: Vec<VolumeProjection>) {
    let projected =
        ProjectedVolumeSource { default_mode: Some(MODE), sources: Some(sources), default_user: None };
    let volume = Volume { name: volume.to_owned(), projected: Some(projected), ..Volume::default() };
    mounts.read_only(volume, &format!("{SECRETS_ROOT}/{owner}"));
}

/// Every key of a Secret. A missing Secret leaves the directory empty and blocks no pod.
fn whole(secret: &str) -> VolumeProjection {
    projection(secret, None)
}

/// Single keys, by Secret.
fn keys(files: &[KeyFile]) -> Vec<VolumeProjection> {
    let mut by_secret: BTreeMap<&str, Vec<KeyToPath>> = BTreeMap::new();
    for file in files {
        let item = KeyToPath { key: file.key.clone(), path: file.variable.clone(), mode: None, user: None };
        by_secret.entry(&file.secret).or_default().push(item);
    }
    by_secret.into_iter().map(|(secret, items)| projection(secret, Some(items))).collect()
}

fn projection(secret: &str, items: Option<Vec<KeyToPath>>) -> VolumeProjection {
    let secret = SecretProjection { name: secret.to_owned(), items, optional: Some(true) };
    VolumeProjection { secret: Some(secret), ..VolumeProjection::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_knowledge_base_has_the_keys_of_its_headers_only() {
        let header = "{ name: A, secretKeyRef: { name: kb, key: kb-key } }";
        let rag: Rag =
            serde_saphyr::from_str(&format!("{{ url: 'http://rag', headersFrom: [{header}] }}")).unwrap();
        let mut mounts = Mounts::default();
        of_rag(Some(&rag), &mut mounts);
        of_rag(Some(&Rag::at("http://rag")), &mut mounts);
        let [volume] = &mounts.volumes[..] else { panic!("{:?}", mounts.volumes) };
        let sources = volume.projected.as_ref().unwrap().sources.as_ref().unwrap();
        let item = &sources[0].secret.as_ref().unwrap().items.as_ref().unwrap()[0];
        assert_eq!((item.key.as_str(), item.path.as_str()), ("kb-key", "kb_key"));
        assert_eq!(mounts.mounts[0].mount_path, "/var/run/caipe/secrets/rag");
    }

    #[test]
    fn only_agents_with_tool_servers_in_their_own_pod_get_the_secret() {
        let mounted = |text: &str| {
            let mut mounts = Mounts::default();
            of_agent(&serde_saphyr::from_str(text).unwrap(), &mut mounts);
            mounts.volumes.into_iter().map(|volume| volume.name).collect::<Vec<_>>()
        };
        let token = "env: [{ name: T, secretKeyRef: { name: t, key: T } }]";
        assert!(
            mounted(&format!("{{ name: jira, enabled: true, secretRef: {{ name: s }}, {token} }}"))
                .is_empty()
        );
        // Splunk serves MCP itself, and the supervisor sends its token.
        assert_eq!(mounted("{ name: splunk, enabled: true, secretRef: { name: s } }"), ["secrets-of-splunk"]);
        let own = "mcp: [{ name: own, http: { url: 'http://a' } }]";
        let own = mounted(&format!("{{ name: jira, enabled: true, secretRef: {{ name: s }}, {own} }}"));
        assert_eq!(own, ["secrets-of-jira"]);
    }

    #[test]
    fn a_key_that_is_no_variable_is_a_file_by_the_name_of_one() {
        let text = "{ name: theirs, enabled: true, external: { url: 'http://b', secretRef: { name: t, key: api-token.v1 } },
            env: [{ name: OWN, secretKeyRef: { name: s, key: redis-password } }] }";
        let files = key_files(&serde_saphyr::from_str(text).unwrap());
        let seen: Vec<_> = files.iter().map(|file| (file.variable.as_str(), file.key.as_str())).collect();
        assert_eq!(seen, [("OWN", "redis-password"), ("api_token_v1", "api-token.v1")]);
    }
}
