//! Reads YAML of a bounded size.

use serde_json::Value;

use crate::fault::Fault;

/// Most bytes of a resource's file; etcd takes no more than about 1.5 MB either.
pub const MAX_FILE_BYTES: usize = 1 << 20;

/// The value of a text.
pub(crate) fn parse(yaml: &str) -> Result<Value, Fault> {
    if yaml.len() > MAX_FILE_BYTES {
        return Err(Fault::new("", format!("the file is larger than {MAX_FILE_BYTES} bytes")));
    }
    serde_saphyr::from_str(yaml).map_err(|error| {
        let reason = error.render_with_formatter(&serde_saphyr::UserMessageFormatter);
        Fault::new("", format!("failed to read the YAML: {reason}"))
    })
}
