//! Where conversations and facts about people are.

use serde::{Deserialize, Serialize};

use crate::resource::derive::JsonSchema;

/// Where conversations are stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Store {
    /// A file below the data directory.
    Sqlite {},
    /// In memory: lost when the process ends (`LANGGRAPH_CHECKPOINT_TYPE=memory`).
    Memory {},
    /// Redis (`LANGGRAPH_CHECKPOINT_TYPE=redis`). The variable `LANGGRAPH_CHECKPOINT_REDIS_URL` or `REDIS_URL` is its URL; `REDIS_CA`
    /// is its certificate authority, if it has one of its own.
    Redis {
        /// The prefix of all keys.
        database: String,
        /// Minutes without a change after which a conversation is deleted, if that is sooner than `retentionDays`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ttl_minutes: Option<u32>,
        /// Whether the supervisor does not start while Redis is unreachable.
        required: bool,
        /// The directory with one file per variable.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        secrets_dir: Option<String>,
    },
    /// MongoDB (`LANGGRAPH_CHECKPOINT_TYPE=mongodb`). The variable `LANGGRAPH_CHECKPOINT_MONGODB_URI` or `MONGODB_URI` is its URI.
    Mongodb {
        /// The database. MongoDB allows no dots in its name, so they become `_`.
        database: String,
        /// Minutes without a change after which a conversation is deleted, if that is sooner than `retentionDays`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ttl_minutes: Option<u32>,
        /// Whether the supervisor does not start while MongoDB is unreachable.
        required: bool,
        /// The directory with one file per variable, and with the certificate authority as the file `MONGODB_CA`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        secrets_dir: Option<String>,
    },
}

impl Store {
    /// The store of a remote agent without one of its own: a server is the supervisor's.
    #[must_use]
    pub fn of_agent(self) -> Self {
        match self {
            Self::Redis { .. } | Self::Mongodb { .. } => Self::Sqlite {},
            own => own,
        }
    }

    /// Minutes without a change after which a conversation is deleted.
    #[must_use]
    pub const fn ttl_minutes(&self) -> Option<u32> {
        match self {
            Self::Redis { ttl_minutes, .. } | Self::Mongodb { ttl_minutes, .. } => *ttl_minutes,
            Self::Sqlite {} | Self::Memory {} => None,
        }
    }
}

/// What agents remember about people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    /// Minutes after which a fact is forgotten (`LANGGRAPH_STORE_TTL_MINUTES`); absent means never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_minutes: Option<u32>,
    /// Most facts that a search returns (`LANGGRAPH_STORE_MAX_MEMORIES`).
    pub max_results: u32,
    /// Whether the supervisor itself has the tools.
    pub supervisor: bool,
    /// Where facts are, if not in the store of conversations (`LANGGRAPH_STORE_TYPE`). The variable `LANGGRAPH_STORE_REDIS_URL` or
    /// `LANGGRAPH_STORE_MONGODB_URI` is the URL of its server; without it, those of the store of conversations are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<Store>,
}
