//! The messages of the rules, each said by the API server and by [`crate::validate()`] alike.

/// The name of a Service has at most 63 characters.
pub const RESOURCE_NAME: &str = "metadata.name must be at most 63 characters of a-z, 0-9 and `-`, begin with a letter and not end in `-`: choose a shorter or simpler name";
/// An agent's own store is one server.
pub const AGENT_STORE_KIND: &str =
    "an agent keeps its tasks in one server: set exactly one of redis and mongodb, or take out store";
/// More than one replica needs a store that the replicas share.
pub const REPLICAS: &str = "more than 1 needs a store that the replicas share, because each would keep its own conversations otherwise: set spec.store.redis or spec.store.mongodb, or set replicas to 1 or 0";
/// The legacy switch is in the environment only.
pub const DISTRIBUTED_MODE: &str = "is no longer a field: instead of true write `defaultPlacement: Remote` or `distributedAgents: [all]`, instead of false remove it";
/// The model's name.
pub const MODEL_NAME: &str = "the provider needs the name of a model: set name";
/// The provider `scripted` needs a script, and no other provider has one.
pub const MODEL_SCRIPT: &str =
    "script and provider `scripted` go together: set both, or take the script out and name another provider";
/// A script has one source.
pub const SCRIPT_SOURCE: &str =
    "a script is in a ConfigMap or in a file: set exactly one of configMapRef and path";
/// A fallback model is not scripted.
pub const SCRIPTED_FALLBACK: &str = "provider `scripted` cannot be a fallback: name a real provider";
/// An agent's own model is not scripted.
pub const SCRIPTED_AGENT: &str =
    "provider `scripted` is for the whole supervisor: set it in spec.model, or name a real provider";
/// Reserved names of agents.
pub const AGENT_RESERVED: &str = "`all`, `user-input`, `rag`, `supervisor` and `general-purpose` have a meaning of their own: choose another name";
/// An agent has one kind.
pub const AGENT_KIND: &str = "an agent has one source, an identity of your own, an external URL or an image: set at most one of identity, external and image";
/// An agent of another program has its own tools.
pub const AGENT_FOREIGN_TOOLS: &str = "an external agent or an image brings its own tools and model: take out mcp, tools, requireApproval, allowAlways, readTools, autoApprove, delegates, mode, skills, shell, web, workspace, verification, introspection, models, tasks, memory, maxTurns, maxAnswerWords, model and store";
/// No agent gets its own task back.
pub const AGENT_DELEGATES_SELF: &str = "an agent does not delegate to itself: remove it from delegates";
/// An approver is one claim of a token.
pub const APPROVER_KIND: &str =
    "an approver is named by one claim of a token: set exactly one of subject, email and group";
/// Only tokens name people.
pub const APPROVERS_AUTH: &str = "approvers are named by the claims of tokens, and callers have none: set spec.auth.oauth2, or remove approvers";
/// An external agent has no pod.
pub const AGENT_EXTERNAL_POD: &str = "nothing is run for an external agent: take out secretRef, env, resources, replicas, serviceAccount and podTemplate (its token is external.secretRef)";
/// The operator does not change an existing account.
pub const SERVICE_ACCOUNT: &str =
    "the operator does not change an existing account: set name or annotations, not both";
/// Settings of pods of their own.
pub const CONTAINER_SERVICE: &str = "replicas, serviceAccount and podTemplate are for a tool server with pods of its own: set placement to Service, or remove them";
/// The operator sets these variables.
pub const ENV_RESERVED: &str = "the operator sets A2A_AUTH_SHARED_KEY, CAIPE_AGENT_KEY, CAIPE_OWN_AGENT_KEY, CAIPE_STATUS_TOKEN and CAIPE_TOOLS_KEY: remove them (spec.auth sets the key of callers)";
/// An agent of another program is always remote.
pub const AGENT_REMOTE_ONLY: &str = "an agent with an external URL or an image of its own is always remote: remove placement, or set it to Remote";
/// Some agents of the catalogue have no remote form. Only the code, which knows the catalogue, checks this rule.
pub const AGENT_IN_PROCESS_ONLY: &str =
    "this agent can only run in-process: remove placement, or set it to InProcess";
/// A text has one source.
pub const TEXT_SOURCE: &str =
    "it is given here or in a ConfigMap: set exactly one of inline and configMapRef";
/// A value has one source.
pub const ENV_VALUE: &str = "a variable has one source: set exactly one of value and secretKeyRef";
/// A source of skills has one kind.
pub const SKILL_SOURCE: &str = "a source of skills is a ConfigMap, a directory or a commit: set exactly one of configMapRef, path and github";
/// Sources that the supervisor names itself.
pub const SKILL_SOURCE_NAME: &str =
    "the supervisor itself has sources of skills named built-in and default: choose another name";
/// Lists of skills need skills.
pub const SKILLS_UNUSED: &str = "there are no skills that agents[].skills could limit: set spec.skills, which may be `{}` for the skills of the program, or remove the lists";
/// The operator sets these variables of the bot.
pub const SLACK_ENV: &str = "the operator sets A2A_AUTH_SHARED_KEY, CAIPE_URL, CAIPE_SLACK_LISTEN, CAIPE_SLACK_DATABASE, the mode and the tokens: remove them from env (secretRef names the tokens)";
/// A tool server has one kind.
pub const MCP_KIND: &str = "a tool server is a child process, an endpoint or a container: set exactly one of stdio, http and container";
/// Port 8000 belongs to the agent.
pub const SIDECAR_PORT: &str =
    "port 8000 of the pod is the agent's own: give the sidecar another port, or set placement to Service";
/// Each sidecar has its own port.
pub const SIDECAR_PORTS: &str = "the sidecars of an agent share its pod's ports: give each another port";
/// A complete HTTP URL.
pub const URL: &str = "must be an http:// or https:// URL with a host and, if any, a port up to 65535";
/// An HTTP URL that may contain variables.
pub const MCP_URL: &str =
    "must be an http:// or https:// URL with a host, or begin with a variable, as `${MCP_URL}`";
/// A quantity of Kubernetes.
pub const QUANTITY: &str = "must be a quantity of 0 or more, as `250m` or `64Mi`";
/// The size of a volume.
pub const VOLUME_SIZE: &str = "must be a size above 0, as `10Gi`";
/// An object name in the form of a domain.
pub const STORAGE_CLASS: &str = "must be the name of a StorageClass: a-z, 0-9, `-` and `.`, with a letter or digit first, last and beside each `.`";
/// An entry that the supervisor can parse as a destination, and a `NetworkPolicy` as a network.
pub const A2A_ALLOW: &str =
    "must be a host, `*.domain` or address, each with `:port` if need be, a network as `10.0.0.0/8`, or `*`";
/// Conversations are in one place.
pub const STORE_KIND: &str = "conversations have one store: set at most one of sqlite, redis and mongodb";
/// The name of a claim has the form of a domain.
pub const CLAIM_NAME: &str = "must be the name of a PersistentVolumeClaim: a-z, 0-9, `-` and `.`, with a letter or digit first, last and beside each `.`";
/// A claim of the user is mounted as it is.
pub const EXISTING_CLAIM: &str = "a claim of yours keeps its own size, class and policy: remove size, storageClassName and reclaimPolicy, or remove existingClaim";
/// A volume grows, and does not change otherwise.
pub const VOLUME_FIXED: &str = "the volume of conversations can grow, but not shrink or change its class: set sqlite.size to at least its previous value and leave sqlite.storageClassName as it is";
/// The volume of the bot grows, and does not change otherwise.
pub const SLACK_VOLUME_FIXED: &str = "the volume of the Slack bot can grow, but not shrink or change its class: set storage.size to at least its previous value and leave storage.storageClassName as it is";
/// The volume of a workspace grows, and does not change otherwise.
pub const WORKSPACE_VOLUME_FIXED: &str = "the volume of a workspace can grow, but not shrink or change its class: set volume.size to at least its previous value and leave volume.storageClassName as it is";
/// The volume of a workspace belongs to one pod.
pub const WORKSPACE_VOLUME: &str = "the volume of a workspace belongs to a single pod of the agent: set placement to Remote and remove replicas, or remove workspace.volume";
/// Peers and rules need policies.
pub const NETWORK_DISABLED: &str =
    "without policies nothing is denied: remove ingressFrom, metricsFrom and egress, or set mode to Managed";
/// A peer has one kind.
pub const NETWORK_PEER: &str =
    "a peer is a network or selects pods: set ipBlock alone, or namespaceSelector, podSelector or both";
/// A rule restricts something.
pub const NETWORK_EGRESS: &str = "the rule would allow every destination: set to, ports or both";
/// A range of ports does not end before its start.
pub const NETWORK_PORTS: &str =
    "must not be below port: set endPort to the last port of the range, or remove it";
/// A network that a `NetworkPolicy` can have.
pub const NETWORK: &str = "must be a network in CIDR notation, as `10.0.0.0/8` or `fd00::/8`";
/// The CEL of [`URL`]. It compares texts and makes none: the API server cannot bound the length of a new text, and rejects
/// rules that might cost too much.
pub(super) const URL_CEL: &str = "isURL(self) && self.matches('^https?://[^ :/?#][^ ]*$') && !self.matches('^[a-z]+://[^/?#]*:(6553[6-9]|655[4-9][0-9]|65[6-9][0-9]{2}|6[6-9][0-9]{3}|[7-9][0-9]{4}|[0-9]{6,})([/?#]|$)')";
/// The CEL of [`MCP_URL`]. A stricter rule would cost too much, because there may be many servers; the code is stricter.
pub(super) const MCP_URL_CEL: &str =
    "self.startsWith('http://') || self.startsWith('https://') || self.startsWith('${')";
/// The pattern of [`QUANTITY`]. As CEL it would cost too much, because the API server cannot bound the length of a value
/// that is a number or a text.
pub(crate) const QUANTITY_PATTERN: &str =
    "^[+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]+)?$";
/// The CEL of [`A2A_ALLOW`]: no white space, and behind a `/` no more bits than an address has. The code is stricter, because
/// not every API server knows `isCIDR`.
pub(super) const A2A_ALLOW_CEL: &str = "self.matches('^([^/,[:space:]]+|([0-9]{1,3}[.]){3}[0-9]{1,3}/([12]?[0-9]|3[0-2])|[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*/([1-9]?[0-9]|1[01][0-9]|12[0-8]))$')";
/// The CEL of [`STORAGE_CLASS`] and [`CLAIM_NAME`].
pub(super) const OBJECT_NAME_CEL: &str =
    "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')";
/// The CEL of [`EXISTING_CLAIM`].
pub(super) const EXISTING_CLAIM_CEL: &str =
    "!has(self.existingClaim) || !(has(self.size) || has(self.storageClassName) || has(self.reclaimPolicy))";
/// The CEL of [`VOLUME_FIXED`]: the class is the same and the size at least the same, unless one of the claims is the user's or one of the stores is a server.
pub(super) const VOLUME_FIXED_CEL: &str = "[self, oldSelf].exists(s, has(s.store) && (has(s.store.redis) || has(s.store.mongodb) || (has(s.store.sqlite) && has(s.store.sqlite.existingClaim)))) || (has(self.store) && has(self.store.sqlite) && has(self.store.sqlite.storageClassName) ? self.store.sqlite.storageClassName : '') == (has(oldSelf.store) && has(oldSelf.store.sqlite) && has(oldSelf.store.sqlite.storageClassName) ? oldSelf.store.sqlite.storageClassName : '') && [has(self.store) && has(self.store.sqlite) && has(self.store.sqlite.size) ? self.store.sqlite.size : '1Gi'].all(size, !isQuantity(size) || quantity(size).compareTo(quantity(has(oldSelf.store) && has(oldSelf.store.sqlite) && has(oldSelf.store.sqlite.size) ? oldSelf.store.sqlite.size : '1Gi')) >= 0)";
/// The CEL of [`SLACK_VOLUME_FIXED`], like [`VOLUME_FIXED_CEL`]. A bot without storage has no volume.
pub(super) const SLACK_VOLUME_FIXED_CEL: &str = "!has(self.storage) || !has(oldSelf.storage) || [self.storage, oldSelf.storage].exists(s, has(s.existingClaim)) || ((has(self.storage.storageClassName) ? self.storage.storageClassName : '') == (has(oldSelf.storage.storageClassName) ? oldSelf.storage.storageClassName : '') && [has(self.storage.size) ? self.storage.size : '1Gi'].all(size, !isQuantity(size) || quantity(size).compareTo(quantity(has(oldSelf.storage.size) ? oldSelf.storage.size : '1Gi')) >= 0))";
/// The CEL of [`WORKSPACE_VOLUME_FIXED`], like [`SLACK_VOLUME_FIXED_CEL`].
pub(super) const WORKSPACE_VOLUME_FIXED_CEL: &str = "!has(self.volume) || !has(oldSelf.volume) || [self.volume, oldSelf.volume].exists(s, has(s.existingClaim)) || ((has(self.volume.storageClassName) ? self.volume.storageClassName : '') == (has(oldSelf.volume.storageClassName) ? oldSelf.volume.storageClassName : '') && [has(self.volume.size) ? self.volume.size : '1Gi'].all(size, !isQuantity(size) || quantity(size).compareTo(quantity(has(oldSelf.volume.size) ? oldSelf.volume.size : '1Gi')) >= 0))";
/// The CEL of [`WORKSPACE_VOLUME`]. Without a placement of its own, the agent gets that of `distributedAgents` or `defaultPlacement`.
pub(super) const WORKSPACE_VOLUME_CEL: &str = "!(has(self.workspace) && has(self.workspace.volume)) || ((!has(self.placement) || self.placement == 'Remote') && (!has(self.replicas) || self.replicas <= 1))";
/// The CEL of [`SLACK_ENV`].
pub(super) const SLACK_ENV_CEL: &str = "!has(self.env) || self.env.all(v, !(v.name in ['A2A_AUTH_SHARED_KEY', 'CAIPE_URL', 'CAIPE_SLACK_LISTEN', 'CAIPE_SLACK_DATABASE', 'SLACK_BOT_MODE', 'SLACK_INTEGRATION_BOT_MODE', 'SLACK_BOT_TOKEN', 'SLACK_INTEGRATION_BOT_TOKEN', 'SLACK_APP_TOKEN', 'SLACK_INTEGRATION_APP_TOKEN', 'SLACK_SIGNING_SECRET', 'SLACK_INTEGRATION_SIGNING_SECRET']))";
/// The CEL of [`REPLICAS`].
pub(super) const REPLICAS_CEL: &str = "!has(self.replicas) || self.replicas <= 1 || (has(self.store) && (has(self.store.redis) || has(self.store.mongodb)))";
/// The CEL of [`NETWORK_DISABLED`].
pub(super) const NETWORK_DISABLED_CEL: &str =
    "self.mode == 'Managed' || !(has(self.ingressFrom) || has(self.metricsFrom) || has(self.egress))";
/// The CEL of [`NETWORK`]. The code is stricter, because not every API server knows `isCIDR`.
pub(super) const NETWORK_CEL: &str = "self.matches('^(([0-9]{1,3}[.]){3}[0-9]{1,3}/([12]?[0-9]|3[0-2])|[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*/([1-9]?[0-9]|1[01][0-9]|12[0-8]))$')";
/// The CEL of [`SIDECAR_PORTS`].
pub(super) const SIDECAR_PORTS_CEL: &str = "!has(self.mcp) || self.mcp.filter(m, has(m.container) && !(has(m.container.placement) && m.container.placement == 'Service')).map(m, m.container.port).all(p, self.mcp.exists_one(m, has(m.container) && !(has(m.container.placement) && m.container.placement == 'Service') && m.container.port == p))";
/// The pattern of one scope (RFC 6749, section 3.3).
pub(super) const SCOPE_PATTERN: &str = r"^[!#-\[\]-~]+$";
/// The pattern of a web origin (RFC 6454, section 6.2): nothing behind the port, which is at most 65535.
pub(crate) const ORIGIN_PATTERN: &str = r"^[a-z][a-z0-9+.-]*://([a-zA-Z0-9]([a-zA-Z0-9._-]*[a-zA-Z0-9])?|\[[0-9a-fA-F:.]+\])(:([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?$";
/// The pattern of a repository.
pub(super) const REPOSITORY_PATTERN: &str = "^[A-Za-z0-9._-]{1,100}/[A-Za-z0-9._-]{1,100}$";
/// The pattern of the full id of a commit.
pub(super) const COMMIT_PATTERN: &str = "^[0-9A-Fa-f]{40}$";
/// The meaning of a pattern in words; the API server reports the pattern itself.
pub(crate) const IN_WORDS: [(&str, &str); 8] = [
    (REPOSITORY_PATTERN, "must be OWNER/NAME, as `octo/skills`"),
    (COMMIT_PATTERN, "must be the full id of a commit, 40 hexadecimal digits: a branch or tag can change"),
    (ORIGIN_PATTERN, ORIGIN),
    (SCOPE_PATTERN, "must be a scope: printable ASCII without spaces, quotes and backslashes"),
    (QUANTITY_PATTERN, QUANTITY),
    ("^[a-z]([-a-z0-9]*[a-z0-9])?$", "must be a-z, 0-9 and `-`, begin with a letter and not end in `-`"),
    ("^[A-Za-z_][A-Za-z0-9_]*$", "must be letters, digits and `_`, and not begin with a digit"),
    ("^[-._a-zA-Z0-9]+$", "must be letters, digits, `-`, `_` and `.`"),
];
/// A web origin.
pub const ORIGIN: &str = "must be a web origin, scheme://host or scheme://host:port, without a path, as `https://portal.example.com`";
/// A request above its limit. Only the code checks this rule.
pub const REQUEST_ABOVE_LIMIT: &str =
    "is more than the limit of the same name: raise the limit, or ask for less";
/// An image of the catalogue has its own tools. Only the code, which knows the catalogue, checks this rule.
pub const AGENT_IMAGE_TOOLS: &str = "the catalogue's image of this agent brings its own tools, which cannot be limited or gated, and keeps its own data: remove tools, requireApproval, readTools, autoApprove, mode, skills and store, or give it mcp";
/// No empty access rule.
pub const AUTH_EMPTY: &str =
    "auth without a way in locks everybody out: set sharedKey or oauth2, or take auth out";

/// The rules that the definition contains too.
pub const ALL: [&str; 47] = [
    SLACK_ENV,
    SKILL_SOURCE,
    SKILL_SOURCE_NAME,
    SKILLS_UNUSED,
    APPROVER_KIND,
    APPROVERS_AUTH,
    SERVICE_ACCOUNT,
    CONTAINER_SERVICE,
    ENV_RESERVED,
    RESOURCE_NAME,
    REPLICAS,
    DISTRIBUTED_MODE,
    MODEL_NAME,
    MODEL_SCRIPT,
    SCRIPT_SOURCE,
    SCRIPTED_FALLBACK,
    SCRIPTED_AGENT,
    AGENT_RESERVED,
    AGENT_KIND,
    AGENT_FOREIGN_TOOLS,
    AGENT_DELEGATES_SELF,
    AGENT_EXTERNAL_POD,
    AGENT_REMOTE_ONLY,
    TEXT_SOURCE,
    ENV_VALUE,
    MCP_KIND,
    SIDECAR_PORT,
    SIDECAR_PORTS,
    URL,
    MCP_URL,
    VOLUME_SIZE,
    STORAGE_CLASS,
    CLAIM_NAME,
    EXISTING_CLAIM,
    STORE_KIND,
    AGENT_STORE_KIND,
    A2A_ALLOW,
    VOLUME_FIXED,
    SLACK_VOLUME_FIXED,
    WORKSPACE_VOLUME,
    WORKSPACE_VOLUME_FIXED,
    AUTH_EMPTY,
    NETWORK_DISABLED,
    NETWORK_PEER,
    NETWORK_EGRESS,
    NETWORK_PORTS,
    NETWORK,
];
