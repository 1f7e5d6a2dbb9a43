use super::*;
use crate::model::TaskState;

#[test]
fn every_error_has_the_status_of_the_table() {
    let text = || "x".to_owned();
    for (error, status, name) in [
        (A2aError::TaskNotFound(text()), 404, "NOT_FOUND"),
        (A2aError::TaskNotCancelable { id: text(), state: TaskState::Failed }, 400, "FAILED_PRECONDITION"),
        (A2aError::PushNotificationNotSupported, 400, "FAILED_PRECONDITION"),
        (A2aError::UnsupportedOperation(text()), 400, "FAILED_PRECONDITION"),
        (A2aError::ContentTypeNotSupported(text()), 400, "INVALID_ARGUMENT"),
        (A2aError::InvalidAgentResponse(text()), 500, "INTERNAL"),
        (A2aError::ExtendedAgentCardNotConfigured, 400, "FAILED_PRECONDITION"),
        (A2aError::ExtensionSupportRequired(text()), 400, "FAILED_PRECONDITION"),
        (
            A2aError::VersionNotSupported { requested: text(), expected: ProtocolVersion::V1_0 },
            400,
            "FAILED_PRECONDITION",
        ),
        (A2aError::Parse(text()), 400, "INVALID_ARGUMENT"),
        (A2aError::InvalidRequest(text()), 400, "INVALID_ARGUMENT"),
        (A2aError::MethodNotFound(text()), 404, "NOT_FOUND"),
        (A2aError::invalid("id", "is required"), 400, "INVALID_ARGUMENT"),
        (A2aError::Internal(text()), 500, "INTERNAL"),
    ] {
        let fault = Fault::from(error.clone());
        let body = fault.body(ProtocolVersion::V1_0);
        assert_eq!((fault.status.as_u16(), &body["error"]["status"]), (status, &json!(name)), "{error:?}");
        assert_eq!(body["error"]["code"], status, "{error:?}");
        assert_eq!(body["error"]["details"][0]["reason"], error.category());
        let body = fault.body(ProtocolVersion::V0_3);
        assert_eq!(body["code"], error.code(ProtocolVersion::V0_3), "{error:?}");
    }
}

#[test]
fn a_wrong_verb_says_which_are_right() {
    let fault = Fault::missed(&PathError::Verb("GET, POST"), "PUT", "/tasks/t:subscribe");
    assert_eq!((fault.status.as_u16(), fault.allow), (405, Some("GET, POST")));
    let body = fault.body(ProtocolVersion::V1_0);
    assert_eq!((&body["error"]["code"], &body["error"]["status"]), (&json!(405), &json!("UNIMPLEMENTED")));
}
