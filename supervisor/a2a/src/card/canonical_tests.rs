use serde_json::{Value, json};

use super::*;

fn text(card: &Value, coverage: Coverage) -> String {
    String::from_utf8(canonical(card, coverage).unwrap()).unwrap()
}

/// The example of 1.0, section 8.4.1.
#[test]
fn the_example_of_the_specification() {
    let card = json!({"name": "Example Agent", "description": "",
        "capabilities": {"streaming": false, "pushNotifications": false, "extensions": []}, "skills": []});
    assert_eq!(
        text(&card, Coverage::Document),
        r#"{"capabilities":{"pushNotifications":false,"streaming":false},"description":"","name":"Example Agent","skills":[]}"#
    );
    assert_eq!(
        text(&card, Coverage::Schema),
        r#"{"capabilities":{"pushNotifications":false,"streaming":false},"name":"Example Agent"}"#
    );
}

#[test]
fn what_says_nothing_is_left_out_at_every_depth() {
    let card = json!({
        "signatures": [{"protected": "x"}], "provider": {"url": "", "organization": "o", "extra": ""},
        "iconUrl": null, "documentationUrl": "",
        "securitySchemes": {"k": {"apiKeySecurityScheme": {"description": "", "location": "header", "name": ""}}},
        "securityRequirements": [{"schemes": {"k": {"list": []}}}],
        "supportedInterfaces": [{"url": "u", "protocolBinding": "B", "protocolVersion": "1.0", "tenant": ""}],
        "capabilities": {"extensions": [{"uri": "e", "required": false, "params": {"a": "", "b": [null, 0]}}]},
        "url": "old", "security": [{"k": []}]
    });
    let interface = json!({"url": "u", "protocolBinding": "B", "protocolVersion": "1.0"});
    let whole = json!({
        "provider": {"url": "", "organization": "o", "extra": ""}, "documentationUrl": "",
        "securitySchemes": {"k": {"apiKeySecurityScheme": {"location": "header", "name": ""}}},
        "securityRequirements": [{"schemes": {"k": {}}}], "supportedInterfaces": [interface],
        "capabilities": {"extensions": [{"uri": "e", "params": {"a": "", "b": [null, 0]}}]},
        "url": "old", "security": [{"k": []}]
    });
    let read = |coverage| serde_json::from_str::<Value>(&text(&card, coverage)).unwrap();
    assert_eq!(read(Coverage::Document), whole);
    let schema = json!({
        "provider": {"organization": "o"},
        "securitySchemes": {"k": {"apiKeySecurityScheme": {"location": "header"}}},
        "supportedInterfaces": [interface],
        "capabilities": {"extensions": [{"uri": "e", "params": {"b": [0]}}]}
    });
    assert_eq!(read(Coverage::Schema), schema);
}

/// RFC 8785, section 3.2.2 and 3.2.3, and its appendix B.
#[test]
fn texts_numbers_and_order_are_those_of_rfc_8785() {
    let card = r#"{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001,-0.0,9007199254740993,5e-324,1e21,1e-7],
        "string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false],
        "\u20ac":"Euro","\r":"CR","\ufb33":"Hebrew","1":"One","\ud83d\ude00":"Emoji","\u0080":"Control","\u00f6":"o"}"#;
    let card: Value = serde_json::from_str(card).unwrap();
    let expected = concat!(
        "{\"\\r\":\"CR\",\"1\":\"One\",\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,",
        "1e-27,0,9007199254740992,5e-324,1e+21,1e-7],\"string\":\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\",",
        "\"\u{80}\":\"Control\",\"ö\":\"o\",\"€\":\"Euro\",\"😀\":\"Emoji\",\"\u{fb33}\":\"Hebrew\"}"
    );
    assert_eq!(text(&card, Coverage::Document), expected);
}
