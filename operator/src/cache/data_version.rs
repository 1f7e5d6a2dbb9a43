//! The version of what pods use of a `ConfigMap` or Secret.

use caipe_crds::digest::sha256_hex;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};

use crate::kind::Kind;
use crate::references::Version;

/// The version of an object's data.
///
/// The operator does not read Secrets. The API server records in `managedFields` who wrote the data of a Secret and when,
/// to the second. A change of labels by another client and a re-encryption of the storage leave that as it is. The
/// `resourceVersion`, which they change, counts for `ConfigMap`s, whose content the operator reads, and for a Secret
/// without such a record.
pub(super) fn data_version(kind: Kind, meta: &ObjectMeta) -> Option<Version> {
    if kind != Kind::Secret {
        return meta.resource_version.clone();
    }
    let entries = meta.managed_fields.iter().flatten();
    let mut writes: Vec<String> = entries.filter_map(write).collect();
    if writes.is_empty() {
        return meta.resource_version.clone();
    }
    writes.sort();
    Some(sha256_hex(&format!("{:?}\n{}", meta.uid, writes.join("\n")), 16))
}

/// The record of a write of data.
fn write(entry: &ManagedFieldsEntry) -> Option<String> {
    let (fields, time) = (&entry.fields_v1.as_ref()?.0, entry.time.as_ref()?.0);
    // A server-side apply of `stringData` is recorded as such.
    let data = [fields.get("f:data"), fields.get("f:stringData")];
    let is_write = data.iter().any(Option::is_some);
    is_write.then(|| format!("{:?} {:?} {time} {data:?}", entry.manager, entry.operation))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn version(version: &str, entries: &[Value]) -> Version {
        let meta = json!({ "uid": "u", "resourceVersion": version, "managedFields": entries });
        data_version(Kind::Secret, &serde_json::from_value(meta).unwrap()).unwrap()
    }

    /// A record of a write by a manager at a second of a minute.
    fn entry(manager: &str, second: u8, part: &str) -> Value {
        let time = format!("2026-01-01T00:00:{second:02}Z");
        json!({ "manager": manager, "operation": "Update", "time": time, "fieldsV1": { part: { "f:token": {} } } })
    }

    #[test]
    fn only_a_write_of_data_is_a_new_version() {
        let data = |second| entry("kubectl", second, "f:data");
        let first = version("1", &[data(1)]);
        assert_eq!(version("2", &[data(1)]), first, "encrypted again");
        assert_eq!(version("2", &[data(1), entry("labeler", 9, "f:metadata")]), first, "labelled");
        assert_ne!(version("2", &[data(2)]), first, "changed");
        assert_ne!(
            version("2", &[data(1), entry("other", 1, "f:data")]),
            first,
            "another client added a key"
        );
        assert_eq!(version("7", &[]), "7", "no record");
    }
}
