use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(body in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Err(refused) = Envelope::read(&body) {
            prop_assert!(matches!(refused.error, A2aError::Parse(_) | A2aError::InvalidRequest(_)));
        }
    }

    #[test]
    fn a_damaged_request_never_panics(at in 0_usize..120, byte in any::<u8>()) {
        let mut body = br#"{"jsonrpc":"2.0","id":"a","method":"message/send","params":{"message":{"parts":[{"text":"x"}]}}}"#.to_vec();
        if let Some(place) = body.get_mut(at) {
            *place = byte;
        }
        if let Ok(envelope) = Envelope::read(&body) {
            let _ = params::<crate::v03::SendParams>(envelope.params);
            let answer = success(&envelope.id, b"1");
            prop_assert!(serde_json::from_slice::<serde_json::Value>(&answer).is_ok());
        }
    }

    #[test]
    fn any_string_id_comes_back_as_it_was(id in "\\PC{0,40}") {
        let id = serde_json::to_string(&id).unwrap();
        let body = format!(r#"{{"id":{id},"method":"x"}}"#);
        let envelope = Envelope::read(body.as_bytes()).unwrap();
        prop_assert_eq!(envelope.id.as_str(), id);
    }
}
