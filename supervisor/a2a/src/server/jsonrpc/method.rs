//! The operation and version of a method name.

use super::envelope::excerpt;
use crate::error::A2aError;
use crate::version::ProtocolVersion::{self, V0_3, V1_0};

/// Most characters of a name that a message repeats.
const NAME_CHARS: usize = 80;

/// An operation of either version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Send,
    Stream,
    Get,
    List,
    Cancel,
    Subscribe,
    CreatePush,
    GetPush,
    ListPushes,
    DeletePush,
    ExtendedCard,
}

impl Operation {
    pub(super) const fn is_stream(self) -> bool {
        matches!(self, Self::Stream | Self::Subscribe)
    }

    pub(super) const fn is_push(self) -> bool {
        matches!(self, Self::CreatePush | Self::GetPush | Self::ListPushes | Self::DeletePush)
    }
}

/// Looks up a method. 0.3 has `tasks/list` for REST and gRPC only.
pub(super) fn lookup(method: &str) -> Result<(ProtocolVersion, Operation), A2aError> {
    Ok(match method {
        "message/send" => (V0_3, Operation::Send),
        "message/stream" => (V0_3, Operation::Stream),
        "tasks/get" => (V0_3, Operation::Get),
        "tasks/cancel" => (V0_3, Operation::Cancel),
        "tasks/resubscribe" => (V0_3, Operation::Subscribe),
        "tasks/pushNotificationConfig/set" => (V0_3, Operation::CreatePush),
        "tasks/pushNotificationConfig/get" => (V0_3, Operation::GetPush),
        "tasks/pushNotificationConfig/list" => (V0_3, Operation::ListPushes),
        "tasks/pushNotificationConfig/delete" => (V0_3, Operation::DeletePush),
        "agent/getAuthenticatedExtendedCard" => (V0_3, Operation::ExtendedCard),
        "SendMessage" => (V1_0, Operation::Send),
        "SendStreamingMessage" => (V1_0, Operation::Stream),
        "GetTask" => (V1_0, Operation::Get),
        "ListTasks" => (V1_0, Operation::List),
        "CancelTask" => (V1_0, Operation::Cancel),
        "SubscribeToTask" => (V1_0, Operation::Subscribe),
        "CreateTaskPushNotificationConfig" => (V1_0, Operation::CreatePush),
        "GetTaskPushNotificationConfig" => (V1_0, Operation::GetPush),
        "ListTaskPushNotificationConfigs" => (V1_0, Operation::ListPushes),
        "DeleteTaskPushNotificationConfig" => (V1_0, Operation::DeletePush),
        "GetExtendedAgentCard" => (V1_0, Operation::ExtendedCard),
        unknown => return Err(A2aError::MethodNotFound(excerpt(unknown, NAME_CHARS))),
    })
}

/// Checks that `A2A-Version` fits a method of `version`. A missing header means 0.3 unless `lenient`.
pub(super) fn check_version(
    version: ProtocolVersion,
    method: &str,
    asked: Option<&str>,
    lenient: bool,
) -> Result<(), A2aError> {
    let text = asked.unwrap_or_default().trim();
    let known = ProtocolVersion::parse(text);
    match (version, known) {
        (V1_0, Some(V0_3)) if text.is_empty() && lenient => Ok(()),
        (_, None) | (V1_0, Some(V0_3)) => {
            Err(A2aError::VersionNotSupported { requested: excerpt(text, NAME_CHARS), expected: version })
        }
        (V0_3, Some(V1_0)) => Err(A2aError::MethodNotFound(format!(
            "{method} is a method of 0.3, not of {}",
            excerpt(text, NAME_CHARS)
        ))),
        (V0_3, Some(V0_3)) | (V1_0, Some(V1_0)) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_method_then_the_header_decide() {
        const CASES: &[(&str, Option<&str>, bool, Option<i64>)] = &[
            ("message/send", None, false, None),
            ("message/send", Some(""), false, None),
            ("message/stream", Some("0.3"), false, None),
            ("tasks/get", Some("1.0"), false, Some(-32601)),
            ("tasks/get", Some("99.0"), false, Some(-32603)),
            ("tasks/list", None, false, Some(-32601)),
            ("SendMessage", Some("1.0"), false, None),
            ("SendMessage", Some(" 1.1 "), false, None),
            ("SendMessage", None, false, Some(-32009)),
            ("SendMessage", Some(""), false, Some(-32009)),
            ("SendMessage", None, true, None),
            ("SendMessage", Some("0.3"), true, Some(-32009)),
            ("SendMessage", Some("99.0"), true, Some(-32009)),
            ("ListTasks", Some("1.0"), false, None),
            ("Frobnicate", Some("1.0"), false, Some(-32601)),
            ("sendmessage", Some("1.0"), false, Some(-32601)),
            ("", None, false, Some(-32601)),
        ];
        for (method, asked, lenient, code) in CASES {
            let result = match lookup(method) {
                Ok((version, _)) => {
                    check_version(version, method, *asked, *lenient).map_err(|error| error.code(version))
                }
                Err(error) => Err(error.code(V0_3)),
            };
            assert_eq!(result.err(), *code, "{method} {asked:?} lenient={lenient}");
        }
    }

    #[test]
    fn a_refused_version_names_the_expected_one() {
        for (requested, text) in [
            (None, "this is a request of A2A 1.0, but A2A-Version is missing; send A2A-Version: 1.0"),
            (Some("0.3"), "this is a request of A2A 1.0, but A2A-Version is \"0.3\"; send A2A-Version: 1.0"),
            (
                Some("99.0"),
                "this is a request of A2A 1.0, but A2A-Version is \"99.0\"; send A2A-Version: 1.0",
            ),
        ] {
            let error = check_version(V1_0, "SendMessage", requested, false).unwrap_err();
            assert_eq!(error.to_string(), text);
        }
    }

    #[test]
    fn a_long_name_is_not_repeated_whole() {
        let error = lookup(&"x".repeat(10_000)).unwrap_err();
        assert!(error.to_string().len() < 200, "{error}");
    }
}
