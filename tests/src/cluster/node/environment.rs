//! The environment of a container.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, EnvVarSource};

use super::sources::Sources;

/// Why a container cannot be started yet: what it refers to is not there.
pub(super) type Missing = String;

/// What the container's image and the kubelet give every container.
fn given(api: (std::net::Ipv4Addr, u16)) -> BTreeMap<String, String> {
    let path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    let (host, port) = (api.0.to_string(), api.1.to_string());
    let given = [
        ("PATH", path),
        ("HOME", "/"),
        ("KUBERNETES_SERVICE_HOST", host.as_str()),
        ("KUBERNETES_SERVICE_PORT", port.as_str()),
        ("KUBERNETES_SERVICE_PORT_HTTPS", port.as_str()),
    ];
    given.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Everything that the container's program finds in its environment.
pub(super) async fn of(
    container: &Container,
    sources: &Sources<'_>,
) -> Result<BTreeMap<String, String>, Missing> {
    let mut env = given(sources.api());
    for source in container.env_from.iter().flatten() {
        let prefix = source.prefix.as_deref().unwrap_or_default();
        let mut found = BTreeMap::new();
        if let Some(secret) = &source.secret_ref {
            found = sources.secret(&secret.name, secret.optional).await?;
        }
        if let Some(map) = &source.config_map_ref {
            found = sources.config_map(&map.name, map.optional).await?;
        }
        let text = |(name, value): (&String, &Vec<u8>)| {
            (format!("{prefix}{name}"), String::from_utf8_lossy(value).into_owned())
        };
        env.extend(found.iter().map(text));
    }
    for variable in container.env.iter().flatten() {
        let value = match &variable.value_from {
            Some(from) => value(from, sources).await?,
            None => Some(expanded(variable.value.as_deref().unwrap_or_default(), &env)),
        };
        env.extend(value.map(|value| (variable.name.clone(), value)));
    }
    Ok(env)
}

async fn value(from: &EnvVarSource, sources: &Sources<'_>) -> Result<Option<String>, Missing> {
    let (found, key, optional, owner) = if let Some(key) = &from.secret_key_ref {
        (sources.secret(&key.name, key.optional).await?, &key.key, key.optional, &key.name)
    } else if let Some(key) = &from.config_map_key_ref {
        (sources.config_map(&key.name, key.optional).await?, &key.key, key.optional, &key.name)
    } else {
        let path = from.field_ref.as_ref().map(|field| field.field_path.as_str()).unwrap_or_default();
        return sources.field(path).map(Some).ok_or_else(|| format!("field {path} is not known"));
    };
    match found.get(key) {
        Some(value) => Ok(Some(String::from_utf8_lossy(value).into_owned())),
        None if optional == Some(true) => Ok(None),
        None => Err(format!("{owner} has no key {key}")),
    }
}

/// `$(VAR)` for a variable that is known; `$$` is a `$`. Other text is unchanged.
pub(super) fn expanded(text: &str, env: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let known = after
            .strip_prefix('(')
            .and_then(|inside| inside.split_once(')'))
            .and_then(|(name, tail)| Some((env.get(name)?, tail)));
        if let Some((value, tail)) = known {
            out.push_str(value);
            rest = tail;
        } else {
            out.push('$');
            rest = after.strip_prefix('$').unwrap_or(after);
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_expanded_as_kubernetes_does() {
        let env = BTreeMap::from([("A".to_owned(), "1".to_owned())]);
        for (text, expected) in
            [("$(A)-$(B)", "1-$(B)"), ("$$(A)", "$(A)"), ("a$", "a$"), ("$(A", "$(A"), ("x", "x")]
        {
            assert_eq!(expanded(text, &env), expected, "{text}");
        }
    }
}
