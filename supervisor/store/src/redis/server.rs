//! What the configuration of the server does not guarantee.

use std::collections::HashMap;

use super::connection::Connection;

/// The guarantees that the server does not give, each as a sentence. A server that hides its configuration is said to.
/// `None` if it cannot be reached.
pub(super) async fn restrictions(connection: &Connection) -> Option<Vec<String>> {
    let info = match connection.query::<String>("read", &redis::cmd("INFO")).await {
        Ok(info) => info,
        Err(error) if error.to_string().contains("NOPERM") => {
            return Some(vec![
                "Redis hides INFO from its user: whether it loses acknowledged writes is unknown".to_owned(),
            ]);
        }
        Err(_) => return None,
    };
    let info: HashMap<&str, &str> = info.lines().filter_map(|line| line.trim().split_once(':')).collect();
    let mut config = redis::cmd("CONFIG");
    let config: Result<HashMap<String, String>, _> =
        connection.query("read", config.arg("GET").arg("appendfsync")).await;
    let fsync = config.ok().and_then(|config| config.get("appendfsync").cloned());
    let mut found = found(&info, fsync.as_deref());
    if connection.is_discovered() {
        found.push("a failover of Redis may replace the primary by a replica that lacks the last acknowledged writes; `min-replicas-to-write 1` makes that rarer".to_owned());
    }
    Some(found)
}

fn found(info: &HashMap<&str, &str>, fsync: Option<&str>) -> Vec<String> {
    let mut found = Vec::new();
    let value = |name| info.get(name).copied();
    if value("aof_enabled") == Some("0") {
        found.push("Redis keeps no append-only file: a restart of it loses acknowledged writes; set `appendonly yes` and `appendfsync always`".to_owned());
    } else {
        match fsync {
            Some("always") => {}
            Some(fsync) => found.push(format!("Redis has `appendfsync {fsync}`: a crash of it may lose acknowledged writes; set `appendfsync always`")),
            None => found.push("Redis hides `appendfsync` from its user: unless it is `always`, a crash of it may lose acknowledged writes".to_owned()),
        }
    }
    if let Some(policy) = value("maxmemory_policy").filter(|policy| *policy != "noeviction") {
        found.push(format!("Redis has `maxmemory-policy {policy}`: when its memory is full it deletes conversations; set `noeviction`"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weak_settings_are_named() {
        let strong = HashMap::from([("aof_enabled", "1"), ("maxmemory_policy", "noeviction")]);
        assert_eq!(found(&strong, Some("always")), Vec::<String>::new());
        for (info, fsync, wanted) in [
            (("aof_enabled", "0"), Some("always"), "`appendonly yes`"),
            (("aof_enabled", "1"), Some("everysec"), "`appendfsync everysec`"),
            (("aof_enabled", "1"), None, "hides `appendfsync`"),
            (("maxmemory_policy", "allkeys-lru"), Some("always"), "`maxmemory-policy allkeys-lru`"),
        ] {
            let mut weak = strong.clone();
            weak.insert(info.0, info.1);
            let found = found(&weak, fsync);
            assert!(found.len() == 1 && found[0].contains(wanted), "{found:?}");
        }
    }
}
