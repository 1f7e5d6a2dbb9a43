//! The objects of the Slack bot.

use caipe_crds::names::{
    self, SHARED_KEY, SLACK_APP_TOKEN, SLACK_BOT_TOKEN, SLACK_DATABASE, SLACK_MODE, SLACK_PORT,
    SLACK_SIGNING_SECRET,
};
use caipe_crds::resource::slack::{Slack, SlackMode};
use k8s_openapi::api::apps::v1::DeploymentStrategy;
use k8s_openapi::api::core::v1::{Container, EnvVar};

use super::context::BuildContext;
use super::meta::Component;
use super::pod::{self, Mounts};
use super::service::HTTP_PORT;
use super::sidecars::{PROGRAM, container_port};
use super::{
    BuildError, SlackBotObjects, deployment, env, network_policy, probes, service, service_account, template,
    volume_claim,
};

/// The directory of the bot's database.
const DATA_DIR: &str = "/data";
/// How often the bot tries to reach the supervisor before it ends, every six seconds: a supervisor may start later.
const CONNECT_RETRIES: (&str, &str) = ("CAIPE_CONNECT_RETRIES", "600");

/// The bot; none if the resource has none.
pub(super) fn slack_bot(cx: &BuildContext<'_>) -> Result<Option<SlackBotObjects>, BuildError> {
    let Some(slack) = &cx.inputs.resource.spec.slack else { return Ok(None) };
    let (name, component) = (names::slack_bot(cx.name), Component::SlackBot);
    let mut mounts = Mounts::default();
    mounts.writable(volume_claim::slack_bot_volume(cx, slack), DATA_DIR);
    mounts.empty("tmp", "/tmp");
    let container = container(cx, slack, &mounts)?;
    let pod = pod::pod(cx, &name, vec![container], mounts.volumes);
    let template = template::template(cx, component, pod, None, None)?;
    // Without the supervisor, the bot has nothing to answer with.
    let mut deployment = deployment::of(cx, &name, component, cx.replicas().min(1), template);
    // Two bots would both answer, and one node at a time can mount the volume.
    deployment.spec.strategy =
        Some(DeploymentStrategy { type_: Some("Recreate".to_owned()), rolling_update: None });
    Ok(Some(SlackBotObjects {
        service_account: service_account::created(cx, &name, component, None),
        data: volume_claim::of_slack_bot(cx, slack),
        service: (slack.mode == SlackMode::Http).then(|| service::of_slack_bot(cx, &name)),
        network_policy: network_policy::of_slack_bot(cx, slack, &name),
        deployment,
    }))
}

fn container(cx: &BuildContext<'_>, slack: &Slack, mounts: &Mounts) -> Result<Container, BuildError> {
    let mut container = pod::container(cx, "slack-bot", &cx.image()?);
    let url = names::url(cx.name, cx.namespace, cx.inputs.resource.spec.service.port);
    let listen = format!("[::]:{SLACK_PORT}");
    container.command = Some(vec![PROGRAM.to_owned()]);
    container.args = Some(["slack", "--url", &url, "--listen", &listen].map(str::to_owned).into());
    container.env_from = slack.config_map_ref.as_ref().map(|map| vec![env::all_of_config_map(&map.name)]);
    container.env = Some(env::over(variables(cx, slack), &slack.env));
    container.ports = Some(vec![container_port(HTTP_PORT, SLACK_PORT)]);
    container.volume_mounts = Some(mounts.mounts.clone());
    let defaults = cx.inputs.defaults.resources.as_ref();
    container.resources = Some(pod::resources(slack.resources.as_ref(), defaults));
    probes::probe_program(&mut container, HTTP_PORT);
    Ok(container)
}

/// The pod waits for each token, so that its status names a key that is missing.
fn variables(cx: &BuildContext<'_>, slack: &Slack) -> Vec<EnvVar> {
    let receives = match slack.mode {
        SlackMode::Socket => SLACK_APP_TOKEN,
        SlackMode::Http => SLACK_SIGNING_SECRET,
    };
    let mut variables = vec![
        env::plain(SLACK_MODE, slack.mode.as_str()),
        env::plain(SLACK_DATABASE, &format!("{DATA_DIR}/slack.sqlite3")),
        env::plain(CONNECT_RETRIES.0, CONNECT_RETRIES.1),
    ];
    variables.push(env::secret(SHARED_KEY, &names::slack_key(cx.name), SHARED_KEY, false));
    variables
        .extend([SLACK_BOT_TOKEN, receives].map(|key| env::secret(key, &slack.secret_ref.name, key, false)));
    variables
}
