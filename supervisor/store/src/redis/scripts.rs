//! The scripts. The server keeps each under its digest.

use std::sync::LazyLock;

use redis::Script;

macro_rules! script {
    ($file:literal) => {
        LazyLock::new(|| Script::new(concat!(include_str!("common.lua"), include_str!($file))))
    };
}

pub(super) static COMMIT: LazyLock<Script> = script!("commit.lua");
pub(super) static ACQUIRE: LazyLock<Script> = script!("acquire.lua");
pub(super) static RENEW: LazyLock<Script> = script!("renew.lua");
pub(super) static ABANDONED: LazyLock<Script> = script!("abandoned.lua");
pub(super) static CLAIM: LazyLock<Script> = script!("claim.lua");
pub(super) static TAKE_TURN: LazyLock<Script> = script!("take_turn.lua");
pub(super) static SEND_CONTROL: LazyLock<Script> = script!("send_control.lua");
pub(super) static CONTROLS: LazyLock<Script> = script!("controls.lua");
pub(super) static CONVERSATION: LazyLock<Script> = script!("conversation.lua");
pub(super) static TASKS: LazyLock<Script> = script!("tasks.lua");
pub(super) static PUSHES: LazyLock<Script> = script!("pushes.lua");
pub(super) static FACTS: LazyLock<Script> = script!("facts.lua");
pub(super) static ALL_OF: LazyLock<Script> = script!("all_of.lua");
pub(super) static SETTLE: LazyLock<Script> = script!("settle.lua");
pub(super) static PRUNE: LazyLock<Script> = script!("prune.lua");
pub(super) static EXPORT_TASK: LazyLock<Script> = script!("export_task.lua");
pub(super) static EXPORT_CONVERSATION: LazyLock<Script> = script!("export_conversation.lua");
pub(super) static IMPORT: LazyLock<Script> = script!("import.lua");
