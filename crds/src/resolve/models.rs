//! The models of the resource, with the environment's choice on top. Keys stay in the environment.

use crate::rendered::ModelChoice;
use crate::resource::agent::Agent;
use crate::resource::model::{Fallback, Model, Provider, Script};

use super::{Context, SCRIPT_DIR, variable_part};

/// The preferred model and its fallbacks.
pub(super) fn chain(cx: &mut Context<'_>) -> Vec<ModelChoice> {
    let declared = cx.resource.spec.model.as_ref();
    let Some(first) = preferred(cx, declared) else {
        cx.warn(
            "spec.model",
            "no language model is chosen: set it, or LLM_PROVIDER and the provider's variables",
        );
        return Vec::new();
    };
    let fallbacks = declared.map(|model| model.fallbacks.as_slice()).unwrap_or_default();
    let own_dir = first.secrets_dir.clone();
    let others =
        fallbacks.iter().enumerate().map(|(at, fallback)| choice(cx, at, fallback, own_dir.as_deref()));
    std::iter::once(first).chain(others).collect()
}

fn preferred(cx: &mut Context<'_>, declared: Option<&Model>) -> Option<ModelChoice> {
    let provider = provider(cx, &["SUPERVISOR_LLM_PROVIDER", "LLM_PROVIDER"]);
    let provider = provider.or(declared.map(|model| model.provider))?;
    // The resource's settings apply to its own provider only.
    let same = declared.filter(|model| model.provider == provider);
    let name = model_name(cx, provider).or_else(|| same?.name.clone());
    let script = script(cx, same.and_then(|model| model.script.as_ref()));
    check_name(cx, provider, name.is_some());
    check_script(cx, provider, script.is_some());
    Some(ModelChoice {
        provider,
        name: name.filter(|_| provider != Provider::Scripted),
        base_url: base_url(cx, provider).or_else(|| same?.base_url.clone()),
        secrets_dir: cx.secrets_dir("model", same.is_some_and(|model| model.secret_ref.is_some())),
        temperature: declared.and_then(|model| model.temperature),
        max_output_tokens: declared.and_then(|model| model.max_output_tokens),
        script: script.filter(|_| provider == Provider::Scripted),
    })
}

fn choice(cx: &Context<'_>, at: usize, fallback: &Fallback, first_dir: Option<&str>) -> ModelChoice {
    let own = cx.secrets_dir(&format!("model-fallback-{at}"), fallback.secret_ref.is_some());
    ModelChoice {
        provider: fallback.provider,
        name: Some(fallback.name.clone()),
        base_url: fallback.base_url.clone(),
        secrets_dir: own.or_else(|| first_dir.map(str::to_owned)),
        temperature: None,
        max_output_tokens: None,
        script: None,
    }
}

/// An agent's own model: `SUBAGENT_<N>_LLM_PROVIDER` and `SUBAGENT_<N>_MODEL` over the resource's.
pub(super) fn of_agent(
    cx: &mut Context<'_>,
    agent: &Agent,
    chain: Option<&ModelChoice>,
) -> Option<ModelChoice> {
    let part = variable_part(&agent.name);
    let provider_variable = format!("SUBAGENT_{part}_LLM_PROVIDER");
    let wanted = provider(cx, &[&provider_variable]);
    let name = cx.vars.text(&format!("SUBAGENT_{part}_MODEL")).map(str::to_owned);
    if wanted.is_none() && name.is_none() && agent.model.is_none() {
        return None;
    }
    let declared = agent.model.as_ref();
    let provider = wanted.or(declared.map(|model| model.provider)).or(chain.map(|first| first.provider))?;
    let same = declared.filter(|model| model.provider == provider);
    let shared = chain.filter(|first| first.provider == provider);
    let name = name.or_else(|| Some(same?.name.clone())).or_else(|| provider_name(cx, provider));
    if name.is_none() {
        cx.fault(
            format!("$SUBAGENT_{part}_MODEL"),
            format!("is not set: name the {} model", provider.as_str()),
        );
    }
    let own = cx.secrets_dir(
        &format!("agents/{}-model", agent.name),
        same.is_some_and(|model| model.secret_ref.is_some()),
    );
    Some(ModelChoice {
        provider,
        name,
        base_url: same.and_then(|model| model.base_url.clone()).or_else(|| shared?.base_url.clone()),
        secrets_dir: own.or_else(|| chain?.secrets_dir.clone()),
        temperature: declared.and_then(|model| model.temperature),
        max_output_tokens: declared.and_then(|model| model.max_output_tokens),
        script: None,
    })
}

fn provider(cx: &mut Context<'_>, variables: &[&str]) -> Option<Provider> {
    let (name, text) = variables.iter().find_map(|name| Some((*name, cx.vars.text(name)?)))?;
    let provider = Provider::from_variable(text);
    if provider.is_none() {
        let known = Provider::ALL.map(Provider::as_str).join(", ");
        cx.fault(format!("${name}"), format!("is an unknown provider: use one of {known}"));
    }
    provider
}

fn model_name(cx: &Context<'_>, provider: Provider) -> Option<String> {
    cx.vars.text("SUPERVISOR_MODEL").map(str::to_owned).or_else(|| provider_name(cx, provider))
}

fn provider_name(cx: &Context<'_>, provider: Provider) -> Option<String> {
    cx.vars.first(&prefixed(provider.name_variables())).map(str::to_owned)
}

/// The variables, the supervisor's own forms (`SUPERVISOR_…`) before the shared ones.
fn prefixed(variables: &[&str]) -> Vec<String> {
    let own = variables.iter().map(|name| format!("SUPERVISOR_{name}"));
    own.chain(variables.iter().map(|name| (*name).to_owned())).collect()
}

fn base_url(cx: &mut Context<'_>, provider: Provider) -> Option<String> {
    let names = prefixed(provider.url_variables());
    let name = names.into_iter().find(|name| cx.vars.text(name).is_some())?;
    let url = cx.vars.url(&name);
    cx.read(url).map(str::to_owned)
}

fn script(cx: &mut Context<'_>, declared: Option<&Script>) -> Option<String> {
    if let Some(path) = cx.vars.text("SCRIPTED_MODEL_FILE") {
        return Some(path.to_owned());
    }
    let script = declared?;
    let Some(reference) = &script.config_map_ref else { return script.path.clone() };
    if !cx.in_cluster() {
        cx.fault("spec.model.script.configMapRef", "a ConfigMap can only be read in a cluster: give a path");
    }
    cx.note_unread("spec.model.script.configMapRef", &reference.name);
    Some(format!("{SCRIPT_DIR}/{}", reference.key))
}

fn check_name(cx: &mut Context<'_>, provider: Provider, named: bool) {
    if let (Some(variable), false) = (provider.name_variables().first(), named) {
        let message = format!("is not set: name the {} model, here or in spec.model.name", provider.as_str());
        cx.fault(format!("${variable}"), message);
    }
}

fn check_script(cx: &mut Context<'_>, provider: Provider, scripted: bool) {
    if provider == Provider::Scripted && !scripted {
        cx.fault(
            "$SCRIPTED_MODEL_FILE",
            "is not set: name the file of the script, here or in spec.model.script",
        );
    }
}
