//! The members of the messages of a card, and when a default value counts as present (`lf.a2a.v1`, 1.0.1).

/// A member.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) presence: Presence,
    pub(super) shape: Shape,
}

/// When a member counts as present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    /// If its value is not the default.
    Implicit,
    /// If the document contains it: `optional` in the schema, a message, or a choice.
    Explicit,
    /// Always: `REQUIRED` in the schema.
    Required,
}

/// The type of a member.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    /// A string, a number, a boolean, a list or map of strings, or free-form data.
    Plain,
    Message(&'static [Field]),
    /// A list of messages.
    List(&'static [Field]),
    /// A map of messages.
    Map(&'static [Field]),
}

impl Shape {
    pub(super) const CARD: Self = Self::Message(CARD);
}

const fn required(name: &'static str) -> Field {
    Field { name, presence: Presence::Required, shape: Shape::Plain }
}

const fn implicit(name: &'static str) -> Field {
    Field { name, presence: Presence::Implicit, shape: Shape::Plain }
}

const fn explicit(name: &'static str) -> Field {
    Field { name, presence: Presence::Explicit, shape: Shape::Plain }
}

impl Field {
    /// Whether `name` is the original name of the field (`icon_url` for `iconUrl`).
    pub(super) fn has_original_name(&self, name: &str) -> bool {
        let mut original = String::with_capacity(name.len());
        for letter in self.name.chars() {
            if letter.is_ascii_uppercase() {
                original.push('_');
            }
            original.push(letter.to_ascii_lowercase());
        }
        original == name
    }

    const fn holding(self, shape: Shape) -> Self {
        Self { shape, ..self }
    }
}

const CARD: &[Field] = &[
    required("name"),
    required("description"),
    required("supportedInterfaces").holding(Shape::List(INTERFACE)),
    explicit("provider").holding(Shape::Message(&[required("url"), required("organization")])),
    required("version"),
    explicit("documentationUrl"),
    required("capabilities").holding(Shape::Message(CAPABILITIES)),
    implicit("securitySchemes").holding(Shape::Map(SCHEME)),
    implicit("securityRequirements").holding(Shape::List(REQUIREMENT)),
    required("defaultInputModes"),
    required("defaultOutputModes"),
    required("skills").holding(Shape::List(SKILL)),
    explicit("iconUrl"),
];

const INTERFACE: &[Field] =
    &[required("url"), required("protocolBinding"), implicit("tenant"), required("protocolVersion")];

const CAPABILITIES: &[Field] = &[
    explicit("streaming"),
    explicit("pushNotifications"),
    implicit("extensions").holding(Shape::List(EXTENSION)),
    explicit("extendedAgentCard"),
];

const EXTENSION: &[Field] =
    &[implicit("uri"), implicit("description"), implicit("required"), explicit("params")];

const SKILL: &[Field] = &[
    required("id"),
    required("name"),
    required("description"),
    required("tags"),
    implicit("examples"),
    implicit("inputModes"),
    implicit("outputModes"),
    implicit("securityRequirements").holding(Shape::List(REQUIREMENT)),
];

const REQUIREMENT: &[Field] = &[implicit("schemes").holding(Shape::Map(&[implicit("list")]))];

const SCHEME: &[Field] = &[
    explicit("apiKeySecurityScheme").holding(Shape::Message(&[
        implicit("description"),
        required("location"),
        required("name"),
    ])),
    explicit("httpAuthSecurityScheme").holding(Shape::Message(&[
        implicit("description"),
        required("scheme"),
        implicit("bearerFormat"),
    ])),
    explicit("oauth2SecurityScheme").holding(Shape::Message(&[
        implicit("description"),
        required("flows").holding(Shape::Message(FLOWS)),
        implicit("oauth2MetadataUrl"),
    ])),
    explicit("openIdConnectSecurityScheme")
        .holding(Shape::Message(&[implicit("description"), required("openIdConnectUrl")])),
    explicit("mtlsSecurityScheme").holding(Shape::Message(&[implicit("description")])),
];

const FLOWS: &[Field] = &[
    explicit("authorizationCode").holding(Shape::Message(&[
        required("authorizationUrl"),
        required("tokenUrl"),
        implicit("refreshUrl"),
        required("scopes"),
        implicit("pkceRequired"),
    ])),
    explicit("clientCredentials").holding(Shape::Message(&[
        required("tokenUrl"),
        implicit("refreshUrl"),
        required("scopes"),
    ])),
    explicit("implicit").holding(Shape::Message(&[
        implicit("authorizationUrl"),
        implicit("refreshUrl"),
        implicit("scopes"),
    ])),
    explicit("password").holding(Shape::Message(&[
        implicit("tokenUrl"),
        implicit("refreshUrl"),
        implicit("scopes"),
    ])),
    explicit("deviceCode").holding(Shape::Message(&[
        required("deviceAuthorizationUrl"),
        required("tokenUrl"),
        implicit("refreshUrl"),
        required("scopes"),
    ])),
];
