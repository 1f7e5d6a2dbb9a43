//! The security schemes and requirements of a card.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::serde_helpers::{is_false, nullable};

/// One way to authenticate: an object with one member that names the kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "WireScheme")]
pub enum SecurityScheme {
    /// A key in a header, a query or a cookie.
    ApiKeySecurityScheme(ApiKeyScheme),
    /// A scheme of the `Authorization` header.
    HttpAuthSecurityScheme(HttpAuthScheme),
    /// OAuth 2.
    Oauth2SecurityScheme(OAuth2Scheme),
    OpenIdConnectSecurityScheme(OpenIdConnectScheme),
    /// A client certificate.
    MtlsSecurityScheme(MtlsScheme),
}

/// The JSON form as read: the members of the `oneof` side by side. A merged card also has the members of 0.3.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::struct_field_names)]
struct WireScheme {
    #[serde(alias = "api_key_security_scheme")]
    api_key_security_scheme: Option<ApiKeyScheme>,
    #[serde(alias = "http_auth_security_scheme")]
    http_auth_security_scheme: Option<HttpAuthScheme>,
    #[serde(alias = "oauth2_security_scheme")]
    oauth2_security_scheme: Option<OAuth2Scheme>,
    #[serde(alias = "open_id_connect_security_scheme")]
    open_id_connect_security_scheme: Option<OpenIdConnectScheme>,
    #[serde(alias = "mtls_security_scheme")]
    mtls_security_scheme: Option<MtlsScheme>,
}

impl TryFrom<WireScheme> for SecurityScheme {
    type Error = &'static str;

    fn try_from(wire: WireScheme) -> Result<Self, Self::Error> {
        let api_key = wire.api_key_security_scheme.map(Self::ApiKeySecurityScheme);
        let http = wire.http_auth_security_scheme.map(Self::HttpAuthSecurityScheme);
        let oauth2 = wire.oauth2_security_scheme.map(Self::Oauth2SecurityScheme);
        let oidc = wire.open_id_connect_security_scheme.map(Self::OpenIdConnectSecurityScheme);
        let mtls = wire.mtls_security_scheme.map(Self::MtlsSecurityScheme);
        api_key.or(http).or(oauth2).or(oidc).or(mtls).ok_or("no security scheme that is known")
    }
}

/// A key in a header, a query or a cookie.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKeyScheme {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `header`, `query` or `cookie`.
    pub location: String,
    /// The name of the header, parameter or cookie.
    pub name: String,
}

/// A scheme of the `Authorization` header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpAuthScheme {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// For example `bearer`.
    pub scheme: String,
    /// For example `JWT`.
    #[serde(default, alias = "bearer_format", skip_serializing_if = "Option::is_none")]
    pub bearer_format: Option<String>,
}

/// OAuth 2.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OAuth2Scheme {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, deserialize_with = "nullable")]
    pub flows: Box<OAuthFlows>,
    /// The URL of the authorization server's metadata (RFC 8414).
    #[serde(default, alias = "oauth2_metadata_url", skip_serializing_if = "Option::is_none")]
    pub oauth2_metadata_url: Option<String>,
}

/// The ways in which a client can get a token. 1.0 allows one of them per scheme, 0.3 several.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OAuthFlows {
    /// A person consents in a browser.
    #[serde(alias = "authorization_code", skip_serializing_if = "Option::is_none")]
    pub authorization_code: Option<OAuthFlow>,
    /// The client acts for itself.
    #[serde(alias = "client_credentials", skip_serializing_if = "Option::is_none")]
    pub client_credentials: Option<OAuthFlow>,
    /// Deprecated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub implicit: Option<OAuthFlow>,
    /// Deprecated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<OAuthFlow>,
    /// A person consents on another device (RFC 8628). 0.3 does not have it.
    #[serde(alias = "device_code", skip_serializing_if = "Option::is_none")]
    pub device_code: Option<OAuthFlow>,
}

/// One flow. Which addresses it has depends on its kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OAuthFlow {
    /// The authorization URL: authorization code and implicit.
    #[serde(alias = "authorization_url", skip_serializing_if = "Option::is_none")]
    pub authorization_url: Option<String>,
    /// The device authorization URL: device code.
    #[serde(alias = "device_authorization_url", skip_serializing_if = "Option::is_none")]
    pub device_authorization_url: Option<String>,
    /// The token URL: all flows but implicit.
    #[serde(alias = "token_url", skip_serializing_if = "Option::is_none")]
    pub token_url: Option<String>,
    /// The URL to refresh a token.
    #[serde(alias = "refresh_url", skip_serializing_if = "Option::is_none")]
    pub refresh_url: Option<String>,
    /// The available scopes with their descriptions.
    #[serde(deserialize_with = "nullable")]
    pub scopes: BTreeMap<String, String>,
    /// Whether the client must use PKCE (RFC 7636): authorization code. 0.3 does not have it.
    #[serde(alias = "pkce_required", deserialize_with = "nullable", skip_serializing_if = "is_false")]
    pub pkce_required: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenIdConnectScheme {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The discovery document.
    #[serde(alias = "open_id_connect_url")]
    pub open_id_connect_url: String,
}

/// A client certificate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MtlsScheme {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Schemes that are needed together, each with its scopes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecurityRequirement {
    /// Scopes by the scheme's name.
    #[serde(default, deserialize_with = "nullable", skip_serializing_if = "BTreeMap::is_empty")]
    pub schemes: BTreeMap<String, StringList>,
}

impl SecurityRequirement {
    pub fn new<T: Into<String>>(scheme: impl Into<String>, scopes: impl IntoIterator<Item = T>) -> Self {
        let list = StringList { list: scopes.into_iter().map(Into::into).collect() };
        Self { schemes: BTreeMap::from([(scheme.into(), list)]) }
    }
}

/// A list of texts, wrapped because a map of `lf.a2a.v1` cannot hold lists.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StringList {
    #[serde(default, deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub list: Vec<String>,
}
