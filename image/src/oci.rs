//! Packs an image as an archive: an OCI image layout (image-spec 1.1), and the index that older engines read.

use std::io::{self, Read};

use serde_json::{Value, json};

use crate::file_entry::{Entry, with_parents};
use crate::layer::{Layer, digest, tar};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";

/// The metadata of an image.
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    /// Its name, such as `caipe-operator:1.2.3`.
    pub name: String,
    /// The processor that it is for, in OCI's words.
    pub architecture: &'static str,
    /// The time of its creation (RFC 3339), if it is recorded.
    pub created: Option<String>,
    /// How to run it, see [`crate::config::Run::config`].
    pub config: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    pub archive: Vec<u8>,
    /// The digest of the image's manifest, by which registries know it.
    pub digest: String,
}

/// Packs an image of one layer.
///
/// # Errors
/// If a path does not fit into a tar header.
pub fn pack(image: &Image, layer: &Layer) -> io::Result<Packed> {
    let config = config(image, layer).to_string().into_bytes();
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": descriptor(CONFIG, &config),
        "layers": [descriptor(layer.form.media_type(), &layer.bytes)],
    });
    let manifest = manifest.to_string().into_bytes();
    let archive = tar(&with_parents(vec![
        Entry::file("oci-layout", r#"{"imageLayoutVersion":"1.0.0"}"#),
        Entry::file("index.json", index(&image.name, &manifest).to_string()),
        Entry::file("manifest.json", docker_index(&image.name, &config, layer).to_string()),
        Entry::file(&blob(&config), config.clone()),
        Entry::file(&blob(&manifest), manifest.clone()),
        Entry::file(&blob(&layer.bytes), layer.bytes.clone()),
    ]))?;
    Ok(Packed { archive, digest: digest(&manifest) })
}

/// The name of a packed image and its digest.
///
/// # Errors
/// If the file is no archive of [`pack`].
pub fn identity(archive: impl Read) -> io::Result<(String, String)> {
    let strange = || io::Error::new(io::ErrorKind::InvalidData, "it is no archive of an image");
    for entry in tar::Archive::new(archive).entries()? {
        let entry = entry?;
        if entry.path()?.as_os_str() == "index.json" {
            let index: Value = serde_json::from_reader(entry)?;
            let image = &index["manifests"][0];
            let name = image["annotations"]["io.containerd.image.name"].as_str().ok_or_else(strange)?;
            return Ok((name.to_owned(), image["digest"].as_str().ok_or_else(strange)?.to_owned()));
        }
    }
    Err(strange())
}

fn config(image: &Image, layer: &Layer) -> Value {
    let mut history = json!({ "created_by": "caipe-image" });
    let mut config = json!({
        "architecture": image.architecture,
        "os": "linux",
        "config": image.config,
        "rootfs": { "type": "layers", "diff_ids": [layer.diff_id] },
    });
    if let Some(created) = &image.created {
        config["created"] = created.as_str().into();
        history["created"] = created.as_str().into();
    }
    config["history"] = json!([history]);
    config
}

fn descriptor(media_type: &str, bytes: &[u8]) -> Value {
    json!({ "mediaType": media_type, "digest": digest(bytes), "size": bytes.len() })
}

fn index(name: &str, manifest: &[u8]) -> Value {
    let mut image = descriptor(MANIFEST, manifest);
    image["annotations"] = json!({
        "org.opencontainers.image.ref.name": tag(name),
        "io.containerd.image.name": qualified(name),
    });
    json!({ "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [image] })
}

/// The index that `docker load` reads before Docker 25.
fn docker_index(name: &str, config: &[u8], layer: &Layer) -> Value {
    json!([{ "Config": blob(config), "RepoTags": [name], "Layers": [blob(&layer.bytes)] }])
}

fn blob(bytes: &[u8]) -> String {
    format!("blobs/{}", digest(bytes).replace(':', "/"))
}

fn tag(name: &str) -> &str {
    name.rsplit_once(':').map_or("latest", |(_, tag)| tag)
}

/// The name as containerd stores it: with a registry, by default Docker's.
fn qualified(name: &str) -> String {
    match name.split_once('/') {
        Some((registry, _)) if registry.contains(['.', ':']) || registry == "localhost" => name.to_owned(),
        Some(_) => format!("docker.io/{name}"),
        None => format!("docker.io/library/{name}"),
    }
}

#[cfg(test)]
#[path = "oci_tests.rs"]
mod tests;
