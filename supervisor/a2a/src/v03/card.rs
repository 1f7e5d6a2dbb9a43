//! Agent cards of 0.3, converted to and from the JSON of 1.0, which has the one definition of a card.
//!
//! 0.3 has no tenants, interfaces of 1.0, device code flow or `pkceRequired`; 1.0 has no `stateTransitionHistory` and no
//! patch number in `protocolVersion`. The conversions leave these out.

use serde_json::{Map, Value, json};

use crate::model::{AgentCard, AgentInterface};

/// The protocol version of the cards that we write.
const PROTOCOL_VERSION: &str = "0.3.0";

/// The name of each kind of security scheme in 0.3 and in 1.0.
const SCHEMES: [(&str, &str); 5] = [
    ("apiKey", "apiKeySecurityScheme"),
    ("http", "httpAuthSecurityScheme"),
    ("oauth2", "oauth2SecurityScheme"),
    ("openIdConnect", "openIdConnectSecurityScheme"),
    ("mutualTLS", "mtlsSecurityScheme"),
];

/// The card as a document of 1.0.
pub fn to_1_0(mut card: Value) -> Value {
    let Some(members) = card.as_object_mut() else { return card };
    let interfaces = interfaces_to_1_0(members);
    members.insert("supportedInterfaces".to_owned(), interfaces);
    if members.remove("supportsAuthenticatedExtendedCard") == Some(Value::Bool(true)) {
        let capabilities = members.entry("capabilities").or_insert(Value::Null);
        if capabilities.is_null() {
            *capabilities = json!({});
        }
        if let Some(capabilities) = capabilities.as_object_mut() {
            capabilities.insert("extendedAgentCard".to_owned(), Value::Bool(true));
        }
    }
    for scheme in members.get_mut("securitySchemes").and_then(Value::as_object_mut).into_iter().flatten() {
        scheme_to_1_0(scheme.1);
    }
    requirements_to_1_0(members);
    for skill in objects(members.get_mut("skills")) {
        requirements_to_1_0(skill);
    }
    card
}

/// The preferred interface first, then the others, each once: `additionalInterfaces` may repeat the preferred one.
fn interfaces_to_1_0(card: &mut Map<String, Value>) -> Value {
    let interface = |url: Option<Value>, binding: Option<Value>| {
        let mut interface = json!({"protocolBinding": binding, "protocolVersion": "0.3"});
        if let Some(url) = url {
            interface["url"] = url;
        }
        interface
    };
    let preferred = card.remove("preferredTransport").filter(|transport| !transport.is_null());
    let preferred = preferred.unwrap_or_else(|| json!(AgentInterface::JSONRPC));
    let mut all = vec![interface(card.remove("url"), Some(preferred))];
    let mut additional = card.remove("additionalInterfaces");
    for other in objects(additional.as_mut()) {
        let other = interface(other.remove("url"), other.remove("transport"));
        if !all.contains(&other) {
            all.push(other);
        }
    }
    Value::Array(all)
}

fn scheme_to_1_0(scheme: &mut Value) {
    let Some(members) = scheme.as_object_mut() else { return };
    let kind = members.remove("type");
    if let Some(location) = members.remove("in") {
        members.insert("location".to_owned(), location);
    }
    let kind = SCHEMES.iter().find(|(old, _)| kind.as_ref().is_some_and(|kind| kind == old));
    *scheme = kind.map_or(Value::Null, |(_, new)| json!({*new: scheme}));
}

fn requirements_to_1_0(owner: &mut Map<String, Value>) {
    let Some(mut security) = owner.remove("security") else { return };
    for schemes in objects(Some(&mut security)) {
        let lists = std::mem::take(schemes).into_iter().map(|(name, list)| (name, json!({"list": list})));
        *schemes = Map::from_iter([("schemes".to_owned(), lists.collect())]);
    }
    owner.insert("securityRequirements".to_owned(), security);
}

/// The card as a document of 0.3. A card without an interface of 0.3 names its first one.
pub fn to_0_3(card: &AgentCard) -> Result<Value, serde_json::Error> {
    let mut document = serde_json::to_value(card)?;
    let Some(members) = document.as_object_mut() else { return Ok(document) };
    members.remove("supportedInterfaces");
    members.extend(interfaces_to_0_3(card));
    if let Some(capabilities) = members.get_mut("capabilities").and_then(Value::as_object_mut)
        && capabilities.remove("extendedAgentCard").is_some()
    {
        members.insert("supportsAuthenticatedExtendedCard".to_owned(), Value::Bool(true));
    }
    for scheme in members.get_mut("securitySchemes").and_then(Value::as_object_mut).into_iter().flatten() {
        scheme_to_0_3(scheme.1);
    }
    requirements_to_0_3(members);
    for skill in objects(members.get_mut("skills")) {
        requirements_to_0_3(skill);
    }
    Ok(document)
}

fn interfaces_to_0_3(card: &AgentCard) -> Map<String, Value> {
    let is_old = |interface: &&AgentInterface| interface.protocol_version.starts_with("0.");
    let old: Vec<_> = card.supported_interfaces.iter().filter(is_old).collect();
    let mut members = Map::from_iter([("protocolVersion".to_owned(), json!(PROTOCOL_VERSION))]);
    let main = old.first().copied().or_else(|| card.supported_interfaces.first());
    members.insert("url".to_owned(), json!(main.map_or("", |main| &main.url)));
    if let Some(main) = main {
        members.insert("preferredTransport".to_owned(), json!(main.protocol_binding));
    }
    if !old.is_empty() {
        let interface = |it: &&AgentInterface| json!({"url": it.url, "transport": it.protocol_binding});
        members.insert("additionalInterfaces".to_owned(), old.iter().map(interface).collect());
    }
    members
}

fn scheme_to_0_3(scheme: &mut Value) {
    let Some((new, inner)) = scheme.as_object_mut().and_then(|members| members.iter_mut().next()) else {
        return;
    };
    let kind = SCHEMES.iter().find(|(_, name)| new == name).map(|(old, _)| json!(old));
    let mut members = Map::from_iter([("type".to_owned(), kind.unwrap_or_default())]);
    for (name, mut value) in inner.as_object_mut().map(std::mem::take).into_iter().flatten() {
        if name == "flows" {
            flows_to_0_3(&mut value);
        }
        members.insert(if name == "location" { "in".to_owned() } else { name }, value);
    }
    *scheme = Value::Object(members);
}

fn flows_to_0_3(flows: &mut Value) {
    let Some(flows) = flows.as_object_mut() else { return };
    flows.remove("deviceCode");
    if let Some(flow) = flows.get_mut("authorizationCode").and_then(Value::as_object_mut) {
        flow.remove("pkceRequired");
    }
}

fn requirements_to_0_3(owner: &mut Map<String, Value>) {
    let Some(mut requirements) = owner.remove("securityRequirements") else { return };
    for requirement in objects(Some(&mut requirements)) {
        let schemes = requirement.remove("schemes");
        let schemes = schemes.as_ref().and_then(Value::as_object).into_iter().flatten();
        *requirement = schemes
            .map(|(name, scopes)| (name.clone(), scopes.get("list").cloned().unwrap_or_else(|| json!([]))))
            .collect();
    }
    owner.insert("security".to_owned(), requirements);
}

fn objects(list: Option<&mut Value>) -> impl Iterator<Item = &mut Map<String, Value>> {
    list.and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}
