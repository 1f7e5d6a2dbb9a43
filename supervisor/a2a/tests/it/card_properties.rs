//! Whatever a card of either version can say survives being written, read and converted.

use std::collections::BTreeMap;

use caipe_a2a::card;
use caipe_a2a::model::{
    AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentProvider, AgentSkill, ApiKeyScheme,
    HttpAuthScheme, MtlsScheme, OAuth2Scheme, OAuthFlow, OAuthFlows, OpenIdConnectScheme,
    SecurityRequirement, SecurityScheme, StringList,
};
use caipe_a2a::v03;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::Value;

use crate::properties::object;

fn word() -> impl Strategy<Value = String> {
    "[a-zA-Zé€ ]{0,5}"
}

fn words() -> impl Strategy<Value = Vec<String>> {
    vec(word(), 0..3)
}

fn requirements() -> impl Strategy<Value = Vec<SecurityRequirement>> {
    let schemes = btree_map("[a-z]{1,3}", words().prop_map(|list| StringList { list }), 0..3);
    vec(schemes.prop_map(|schemes| SecurityRequirement { schemes }), 0..3)
}

fn flow() -> impl Strategy<Value = Option<OAuthFlow>> {
    let urls = (option::of(word()), option::of(word()), option::of(word()), option::of(word()));
    let flow = (urls, btree_map("[a-z]{1,3}", word(), 0..3), any::<bool>());
    option::of(flow.prop_map(|((authorization, device, token, refresh), scopes, pkce_required)| OAuthFlow {
        authorization_url: authorization,
        device_authorization_url: device,
        token_url: token,
        refresh_url: refresh,
        scopes,
        pkce_required,
    }))
}

fn scheme() -> impl Strategy<Value = SecurityScheme> {
    let description = || option::of(word());
    let flows =
        (flow(), flow(), flow(), flow(), flow()).prop_map(|(code, client, implicit, password, device)| {
            OAuthFlows {
                authorization_code: code,
                client_credentials: client,
                implicit,
                password,
                device_code: device,
            }
        });
    prop_oneof![
        (description(), word(), word()).prop_map(|(description, location, name)| {
            SecurityScheme::ApiKeySecurityScheme(ApiKeyScheme { description, location, name })
        }),
        (description(), word(), description()).prop_map(|(description, scheme, bearer_format)| {
            SecurityScheme::HttpAuthSecurityScheme(HttpAuthScheme { description, scheme, bearer_format })
        }),
        (description(), flows, description()).prop_map(|(description, flows, oauth2_metadata_url)| {
            SecurityScheme::Oauth2SecurityScheme(OAuth2Scheme {
                description,
                flows: Box::new(flows),
                oauth2_metadata_url,
            })
        }),
        (description(), word()).prop_map(|(description, open_id_connect_url)| {
            SecurityScheme::OpenIdConnectSecurityScheme(OpenIdConnectScheme {
                description,
                open_id_connect_url,
            })
        }),
        description().prop_map(|description| SecurityScheme::MtlsSecurityScheme(MtlsScheme { description })),
    ]
}

fn skill() -> impl Strategy<Value = AgentSkill> {
    (word(), word(), word(), words(), words(), words(), words(), requirements()).prop_map(
        |(id, name, description, tags, examples, input_modes, output_modes, security_requirements)| {
            AgentSkill {
                id,
                name,
                description,
                tags,
                examples,
                input_modes,
                output_modes,
                security_requirements,
            }
        },
    )
}

fn capabilities() -> impl Strategy<Value = AgentCapabilities> {
    let extension = (word(), option::of(word()), any::<bool>(), option::of(object())).prop_map(
        |(uri, description, required, params)| AgentExtension { uri, description, required, params },
    );
    (any::<bool>(), any::<bool>(), any::<bool>(), vec(extension, 0..3)).prop_map(
        |(streaming, push_notifications, extended_agent_card, extensions)| AgentCapabilities {
            streaming,
            push_notifications,
            extensions,
            extended_agent_card,
        },
    )
}

fn interfaces() -> impl Strategy<Value = Vec<AgentInterface>> {
    let binding = prop::sample::select(vec!["JSONRPC", "HTTP+JSON", "GRPC"]);
    let version = prop::sample::select(vec!["1.0", "0.3"]);
    let interface =
        (word(), binding, version, option::of(word())).prop_map(|(url, binding, version, tenant)| {
            AgentInterface { tenant, ..AgentInterface::new(url, binding, version) }
        });
    vec(interface, 1..4)
}

pub(crate) fn any_card() -> impl Strategy<Value = AgentCard> {
    let texts =
        (word(), word(), word(), option::of(word()), option::of(word()), option::of((word(), word())));
    let security = (btree_map("[a-z]{1,3}", scheme(), 0..4), requirements());
    let rest = (interfaces(), capabilities(), words(), words(), vec(skill(), 0..3));
    (texts, security, rest).prop_map(|(texts, security, rest)| {
        let (name, description, version, documentation_url, icon_url, provider) = texts;
        let (supported_interfaces, capabilities, default_input_modes, default_output_modes, skills) = rest;
        AgentCard {
            name,
            description,
            supported_interfaces,
            provider: provider.map(|(url, organization)| AgentProvider { url, organization }),
            version,
            documentation_url,
            capabilities,
            security_schemes: security.0,
            security_requirements: security.1,
            default_input_modes,
            default_output_modes,
            skills,
            signatures: Vec::new(),
            icon_url,
        }
    })
}

/// What 0.3 can say of a card that has an interface of 0.3.
fn sayable(mut card: AgentCard) -> AgentCard {
    card.supported_interfaces.retain(|interface| interface.protocol_version == "0.3");
    let mut seen: Vec<AgentInterface> = Vec::new();
    for interface in card.supported_interfaces {
        let interface = AgentInterface { tenant: None, ..interface };
        if !seen.contains(&interface) {
            seen.push(interface);
        }
    }
    card.supported_interfaces = seen;
    let schemes: BTreeMap<String, SecurityScheme> = card.security_schemes;
    card.security_schemes = schemes.into_iter().map(|(name, scheme)| (name, without_new(scheme))).collect();
    card
}

fn without_new(scheme: SecurityScheme) -> SecurityScheme {
    let SecurityScheme::Oauth2SecurityScheme(mut scheme) = scheme else { return scheme };
    scheme.flows.device_code = None;
    if let Some(flow) = &mut scheme.flows.authorization_code {
        flow.pkce_required = false;
    }
    SecurityScheme::Oauth2SecurityScheme(scheme)
}

proptest! {
    #[test]
    fn a_card_is_the_same_when_read_from_either_document(card in any_card()) {
        for merged in [false, true] {
            let document = card::document(&card, merged).unwrap();
            prop_assert_eq!(&card::parse(&document).unwrap(), &card);
        }
    }

    #[test]
    fn a_card_keeps_what_0_3_can_say(card in any_card()) {
        let is_old = |interface: &AgentInterface| interface.protocol_version == "0.3";
        prop_assume!(card.supported_interfaces.iter().any(is_old));
        let old = v03::card::to_0_3(&card).unwrap();
        let new = card::parse(old.to_string().as_bytes()).unwrap();
        prop_assert_eq!(&new, &sayable(card));
        // And nothing is lost that 0.3 has said.
        prop_assert_eq!(v03::card::to_0_3(&new).unwrap(), with_each_once(old));
    }
}

/// 0.3 may name an interface twice.
fn with_each_once(mut card: Value) -> Value {
    let mut seen: Vec<Value> = Vec::new();
    for interface in card["additionalInterfaces"].as_array().cloned().unwrap_or_default() {
        if !seen.contains(&interface) {
            seen.push(interface);
        }
    }
    card["additionalInterfaces"] = Value::Array(seen);
    card
}
