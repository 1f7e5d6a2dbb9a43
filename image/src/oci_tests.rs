use std::collections::BTreeMap;
use std::io::Read;

use tar::Archive;

use super::*;
use crate::config::{About, run};
use crate::layer::Form;
use crate::root::{self, Programs};

fn image() -> Image {
    let about = About { version: "1.2.3".to_owned(), revision: Some("abc".to_owned()) };
    Image {
        name: "caipe-operator:1.2.3".to_owned(),
        architecture: "amd64",
        created: Some("2026-11-22T00:00:00Z".to_owned()),
        config: run(&about),
    }
}

fn packed() -> (Packed, Layer) {
    let programs = Programs { supervisor: b"supervisor".to_vec(), operator: b"operator".to_vec() };
    let layer = Layer::new(&root::files(programs), Form::Zstd).unwrap();
    (pack(&image(), &layer).unwrap(), layer)
}

fn files(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut archive = Archive::new(archive);
    let read = |entry: io::Result<tar::Entry<'_, &[u8]>>| {
        let mut entry = entry.unwrap();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        (entry.path().unwrap().display().to_string(), content)
    };
    archive.entries().unwrap().map(read).collect()
}

/// The blob that a descriptor names, if it is what the descriptor says.
fn described_blob(files: &BTreeMap<String, Vec<u8>>, descriptor: &Value) -> Vec<u8> {
    let name = descriptor["digest"].as_str().unwrap();
    let blob = files[&format!("blobs/{}", name.replace(':', "/"))].clone();
    assert_eq!(digest(&blob), name);
    assert_eq!(descriptor["size"], blob.len());
    blob
}

fn json_of(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn from_the_index_one_gets_to_every_file_of_the_image() {
    let (packed, layer) = packed();
    let files = files(&packed.archive);
    assert_eq!(json_of(&files["oci-layout"])["imageLayoutVersion"], "1.0.0");
    let index = json_of(&files["index.json"]);
    let image = &index["manifests"][0];
    assert_eq!(image["digest"], packed.digest);
    assert_eq!(image["annotations"]["org.opencontainers.image.ref.name"], "1.2.3");
    let manifest = json_of(&described_blob(&files, image));
    let config = json_of(&described_blob(&files, &manifest["config"]));
    assert_eq!(config["rootfs"]["diff_ids"], json!([layer.diff_id]));
    assert_eq!(config["config"]["User"], "65532:65532");
    assert_eq!(config["config"]["Labels"]["org.opencontainers.image.revision"], "abc");
    assert_eq!(config["created"], "2026-11-22T00:00:00Z");
    let compressed = described_blob(&files, &manifest["layers"][0]);
    let tar = zstd::decode_all(compressed.as_slice()).unwrap();
    assert_eq!(digest(&tar), layer.diff_id);
    let inside = self::files(&tar);
    assert_eq!(inside["usr/local/bin/caipe-supervisor"], b"supervisor");
    assert_eq!(inside["usr/local/bin/caipe-operator"], b"operator");
}

#[test]
fn older_engines_find_the_same_image() {
    let (packed, _) = packed();
    let files = files(&packed.archive);
    let old = json_of(&files["manifest.json"]);
    assert_eq!(old[0]["RepoTags"], json!(["caipe-operator:1.2.3"]));
    for path in [&old[0]["Config"], &old[0]["Layers"][0]] {
        assert!(files.contains_key(path.as_str().unwrap()), "{path}");
    }
}

#[test]
fn an_archive_says_what_it_is() {
    let (packed, _) = packed();
    let (name, digest) = identity(packed.archive.as_slice()).unwrap();
    assert_eq!((name.as_str(), digest), ("docker.io/library/caipe-operator:1.2.3", packed.digest));
    let other = tar(&[Entry::file("a", "b")]).unwrap();
    assert!(identity(other.as_slice()).is_err());
}

#[test]
fn the_same_programs_give_the_same_archive() {
    assert_eq!(packed().0, packed().0);
}

#[test]
fn the_manifest_names_the_media_type_of_the_layer() {
    let layer = Layer::new(&[Entry::file("a", "b")], Form::Plain).unwrap();
    let files = files(&pack(&image(), &layer).unwrap().archive);
    let index = json_of(&files["index.json"]);
    let manifest = json_of(&described_blob(&files, &index["manifests"][0]));
    assert_eq!(manifest["layers"][0]["mediaType"], "application/vnd.oci.image.layer.v1.tar");
    assert_eq!(digest(&described_blob(&files, &manifest["layers"][0])), layer.diff_id);
}

#[test]
fn names_get_the_registry_that_they_mean() {
    for (name, whole, tag_of) in [
        ("a:1", "docker.io/library/a:1", "1"),
        ("a/b:1", "docker.io/a/b:1", "1"),
        ("ghcr.io/a/b:1", "ghcr.io/a/b:1", "1"),
        ("localhost/a:2", "localhost/a:2", "2"),
        ("registry:5000/a:3", "registry:5000/a:3", "3"),
    ] {
        assert_eq!(qualified(name), whole);
        assert_eq!(tag(name), tag_of);
    }
}
