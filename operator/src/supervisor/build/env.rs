//! Environment variables of containers.

use std::collections::BTreeSet;

use caipe_crds::names::POD_UID;
use caipe_crds::resource::common;
use k8s_openapi::api::core::v1::{
    ConfigMapEnvSource, EnvFromSource, EnvVar, EnvVarSource, ObjectFieldSelector, SecretEnvSource,
    SecretKeySelector,
};

pub(super) fn plain(name: &str, value: &str) -> EnvVar {
    EnvVar { name: name.to_owned(), value: Some(value.to_owned()), value_from: None }
}

/// A variable from a key of a Secret. The container waits for it unless it is `optional`.
pub(super) fn secret(name: &str, secret: &str, key: &str, optional: bool) -> EnvVar {
    let selector = SecretKeySelector {
        name: secret.to_owned(),
        key: key.to_owned(),
        optional: optional.then_some(true),
    };
    let source = EnvVarSource { secret_key_ref: Some(selector), ..EnvVarSource::default() };
    EnvVar { name: name.to_owned(), value: None, value_from: Some(source) }
}

/// The uid of the pod, which owns the leases of its tasks. A container that crashed has the same one after its restart.
pub(super) fn pod_uid() -> EnvVar {
    let field =
        ObjectFieldSelector { api_version: Some("v1".to_owned()), field_path: "metadata.uid".to_owned() };
    let source = EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() };
    EnvVar { name: POD_UID.to_owned(), value: None, value_from: Some(source) }
}

/// Every key of a Secret as a variable; none while the Secret is missing.
pub(super) fn all_of(secret: &str) -> EnvFromSource {
    let source = SecretEnvSource { name: secret.to_owned(), optional: Some(true) };
    EnvFromSource { secret_ref: Some(source), ..EnvFromSource::default() }
}

/// Every key of a `ConfigMap` as a variable. The container waits for it.
pub(super) fn all_of_config_map(name: &str) -> EnvFromSource {
    let source = ConfigMapEnvSource { name: name.to_owned(), optional: None };
    EnvFromSource { config_map_ref: Some(source), ..EnvFromSource::default() }
}

/// Declared variables after those of `below`, which they override. A value may refer to earlier variables, and to
/// those of a whole Secret, as `${VAR}`.
pub(super) fn over(mut below: Vec<EnvVar>, declared: &[common::EnvVar]) -> Vec<EnvVar> {
    below.retain(|variable| declared.iter().all(|other| other.name != variable.name));
    for variable in declared {
        let known = below.iter().map(|variable| variable.name.clone()).collect();
        let made = match (&variable.secret_key_ref, &variable.value) {
            (Some(key), _) => secret(&variable.name, &key.name, &key.key, true),
            (None, value) => plain(&variable.name, &expanded(value.as_deref().unwrap_or_default(), &known)),
        };
        below.push(made);
    }
    below
}

/// Translates `${VAR}` to `$(VAR)`. Kubernetes has no defaults, so `${VAR:-default}` becomes the default unless the
/// variable is `known`.
pub(super) fn expanded(text: &str, known: &BTreeSet<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        rest = after;
        if let Some(literal) = after.strip_prefix("${") {
            out.push_str("${");
            rest = literal;
        } else if let Some((body, tail)) = after.strip_prefix('{').and_then(|body| body.split_once('}')) {
            match body.split_once(":-") {
                Some((name, default)) if !known.contains(name) => out.push_str(&literal(default)),
                Some((name, _)) => out.extend(["$(", name, ")"]),
                None => out.extend(["$(", body, ")"]),
            }
            rest = tail;
        } else if after.starts_with(['$', '(']) {
            out.push_str("$$");
        } else {
            out.push('$');
        }
    }
    out.push_str(rest);
    out
}

/// Escapes a text, so that Kubernetes does not expand it.
pub(super) fn literal(text: &str) -> String {
    text.replace("$$", "$$$$").replace("$(", "$$(")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_named_as_kubernetes_names_them() {
        let known = BTreeSet::from(["REGION".to_owned()]);
        let cases = [
            ("plain", "plain"),
            ("https://${REGION}.example", "https://$(REGION).example"),
            ("${SECRET}", "$(SECRET)"),
            ("${REGION:-eu}", "$(REGION)"),
            ("${OTHER:-eu}", "eu"),
            ("${OTHER:-}", ""),
            ("$${literal}", "${literal}"),
            ("$(not a variable)", "$$(not a variable)"),
            ("a$b $$ ${open", "a$b $$$ ${open"),
            ("100$", "100$"),
        ];
        for (text, expected) in cases {
            assert_eq!(expanded(text, &known), expected, "{text}");
        }
    }

    #[test]
    fn a_text_can_be_left_as_it_is() {
        let cases = [("${VAR:-x}", "${VAR:-x}"), ("$${x}", "$$$${x}"), ("$(date)", "$$(date)"), ("a$", "a$")];
        for (text, expected) in cases {
            assert_eq!(literal(text), expected);
        }
    }

    #[test]
    fn later_variables_stand_over_earlier_ones_and_come_after_them() {
        let declared = |name: &str, value: &str| common::EnvVar {
            name: name.to_owned(),
            value: Some(value.to_owned()),
            secret_key_ref: None,
        };
        let below = vec![plain("HOME", "/tmp"), plain("A", "1")];
        let over = over(below, &[declared("HOME", "/srv"), declared("B", "${A:-x}")]);
        let seen: Vec<_> = over.iter().map(|it| (it.name.as_str(), it.value.as_deref().unwrap())).collect();
        assert_eq!(seen, [("A", "1"), ("HOME", "/srv"), ("B", "$(A)")]);
    }
}
