//! The principals that may decide approvals.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::derive::KubeSchema;
use super::rules;

/// Principals that may approve and reject tool calls: those whose token has this claim.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("[has(self.subject), has(self.email), has(self.group)].filter(x, x).size() == 1").message(rules::APPROVER_KIND))]
pub struct Approver {
    /// The claim `sub`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub subject: Option<String>,
    /// The claim `email`, in any case, unless the claim `email_verified` is false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub email: Option<String>,
    /// An entry of the claim `groups`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub group: Option<String>,
}

impl Approver {
    /// Whether exactly one claim is set.
    pub fn is_one(&self) -> bool {
        [&self.subject, &self.email, &self.group].into_iter().flatten().count() == 1
    }
}

impl fmt::Display for Approver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.subject, &self.email, &self.group) {
            (Some(subject), ..) => write!(f, "subject {subject}"),
            (_, Some(email), _) => write!(f, "email {email}"),
            (.., group) => write!(f, "group {}", group.as_deref().unwrap_or_default()),
        }
    }
}
