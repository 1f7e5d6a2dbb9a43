//! What the configuration of the server does not guarantee.

use mongodb::bson::{Document, doc};

use super::connection::Connection;

/// The guarantees that the server does not give, each as a sentence. `None` if it cannot be reached. The store sets the concerns
/// of its reads and writes itself, whatever the URI and the server's defaults say.
pub(super) async fn restrictions(connection: &Connection) -> Option<Vec<String>> {
    let hello = connection.command(doc! { "hello": 1 }).await.ok()?;
    // Most users may not read it.
    let status = connection.command(doc! { "serverStatus": 1 }).await.unwrap_or_default();
    Some(found(&hello, &status))
}

fn found(hello: &Document, status: &Document) -> Vec<String> {
    let mut found = Vec::new();
    let members = |field| hello.get_array(field).map_or(0, Vec::len);
    if hello.contains_key("setName") && members("hosts") + members("passives") < 2 {
        found.push("MongoDB is a replica set with one member that has data: the loss of its disk loses acknowledged writes, and nothing works while it restarts; add members".to_owned());
    }
    let engine = status.get_document("storageEngine").ok();
    if engine.and_then(|engine| engine.get_bool("persistent").ok()) == Some(false) {
        found.push("MongoDB keeps its data in memory only: a restart of all members loses it; use the storage engine wiredTiger".to_owned());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weak_settings_are_named() {
        let three = doc! { "setName": "rs", "hosts": ["a:1", "b:1", "c:1"] };
        let on_disk = doc! { "storageEngine": { "name": "wiredTiger", "persistent": true } };
        assert_eq!(found(&three, &on_disk), Vec::<String>::new());
        assert_eq!(found(&doc! { "msg": "isdbgrid" }, &doc! {}), Vec::<String>::new());
        let one = found(&doc! { "setName": "rs", "hosts": ["a:1"], "arbiters": ["b:1"] }, &doc! {});
        assert!(one.len() == 1 && one[0].contains("one member"), "{one:?}");
        let in_memory = found(&three, &doc! { "storageEngine": { "persistent": false } });
        assert!(in_memory.len() == 1 && in_memory[0].contains("in memory"), "{in_memory:?}");
    }
}
