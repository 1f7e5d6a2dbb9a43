use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{TemplateError, expand};

fn env() -> BTreeMap<String, String> {
    let entries = [("HOST", "example.com"), ("TOKEN", "s3cr3t"), ("EMPTY", ""), ("_x1", "y")];
    entries.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

#[test]
fn fills_in_variables() {
    for (template, expected) in [
        ("", ""),
        ("plain $HOST } text", "plain $HOST } text"),
        ("https://${HOST}/api", "https://example.com/api"),
        ("${HOST}${TOKEN}", "example.coms3cr3t"),
        ("${EMPTY}|${EMPTY:-default}|${HOST:-default}", "|default|example.com"),
        ("${NOWHERE:-}", ""),
        ("${NOWHERE:-a:-b}", "a:-b"),
        ("$${HOST} and $$${HOST}", "${HOST} and $${HOST}"),
        ("${_x1}", "y"),
        ("${NOWHERE:-https://${HOST:-b}/v4}", "https://example.com/v4"),
        ("${EMPTY:-${NOWHERE:-${_x1}}}!", "y!"),
        ("ü${HOST}ß", "üexample.comß"),
    ] {
        assert_eq!(
            expand(template, &env()).map(|expansion| expansion.text),
            Ok(expected.to_owned()),
            "{template}"
        );
    }
}

#[test]
fn says_what_is_wrong() {
    for (template, expected) in [
        ("a ${NOWHERE}", TemplateError::Missing("NOWHERE".to_owned())),
        ("${TOKEN} ${NOWHERE}", TemplateError::Missing("NOWHERE".to_owned())),
        ("${HOST", TemplateError::Unclosed),
        ("${}", TemplateError::BadName),
        ("${1A}", TemplateError::BadName),
        ("${A B}", TemplateError::BadName),
        ("${A-b}", TemplateError::BadName),
    ] {
        let error = expand(template, &env()).unwrap_err();
        assert!(!error.to_string().contains("s3cr3t"));
        assert_eq!(error, expected, "{template}");
    }
}

#[test]
fn reports_the_values_that_went_in() {
    let used = expand("${HOST} ${NOWHERE:-x} ${TOKEN}", &env()).unwrap().used;
    let expected = [("HOST", "example.com"), ("TOKEN", "s3cr3t")];
    assert_eq!(used, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
}

proptest! {
    #[test]
    fn never_panics(template in r"([$\{\}a-zA-Z_:ü-]|\$\{|HOST){0,40}") {
        let _ = expand(&template, &env());
    }

    #[test]
    fn leaves_text_without_variables_alone(text in "[^$]*") {
        prop_assert_eq!(expand(&text, &env()).unwrap().text, text);
    }
}
