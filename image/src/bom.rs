//! The bill of materials of an image (`CycloneDX` 1.5), merged from those of its programs, which `cargo cyclonedx` writes.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// The crate whose data is in the image as a file, see [`crate::authorities`].
const AUTHORITIES: &str = "webpki-root-certs";

/// The image of a bill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Its name, with its tag.
    pub name: String,
    /// The digest of its manifest.
    pub digest: String,
}

/// The bill of an image: of its `programs`, and of what the `packer` adds from its own dependencies.
///
/// # Errors
/// If a bill does not have the format of `cargo cyclonedx`.
pub fn of_image(subject: &Subject, programs: &[Value], packer: &Value) -> Result<Value> {
    let mut bill = Bill::default();
    let mut direct = Vec::new();
    for program in programs {
        direct.push(bill.add(&program["metadata"]["component"])?);
        for component in list(program, "components")? {
            bill.add(component)?;
        }
        for dependency in list(program, "dependencies")? {
            bill.depend(dependency)?;
        }
    }
    let authorities = list(packer, "components")?.iter().find(|component| component["name"] == AUTHORITIES);
    direct.push(bill.add(authorities.context("the packer's bill has no authorities")?)?);
    bill.dependencies.insert(subject.digest.clone(), direct);
    let first = &programs.first().context("there is no program")?["metadata"];
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "timestamp": first["timestamp"], "tools": first["tools"], "component": container(subject) },
        "components": bill.components.into_values().collect::<Vec<_>>(),
        "dependencies": bill.dependencies.into_iter().map(|(of, on)| dependency(&of, on)).collect::<Vec<_>>(),
    }))
}

/// Components and their dependencies, by reference.
#[derive(Default)]
struct Bill {
    components: BTreeMap<String, Value>,
    dependencies: BTreeMap<String, Vec<String>>,
}

impl Bill {
    /// Adds a component once. It is required if any program requires it.
    fn add(&mut self, component: &Value) -> Result<String> {
        let id = text(component, "bom-ref")?;
        let known = self.components.entry(id.clone()).or_insert_with(|| component.clone());
        if component["scope"] == "required" {
            known["scope"] = "required".into();
        }
        Ok(id)
    }

    fn depend(&mut self, dependency: &Value) -> Result<()> {
        let needs = self.dependencies.entry(text(dependency, "ref")?).or_default();
        let more = dependency["dependsOn"].as_array().into_iter().flatten();
        needs.extend(more.filter_map(Value::as_str).map(str::to_owned));
        Ok(())
    }
}

fn dependency(of: &str, mut on: Vec<String>) -> Value {
    on.sort();
    on.dedup();
    json!({ "ref": of, "dependsOn": on })
}

/// The image itself, with its package URL (purl-spec, type `oci`).
fn container(subject: &Subject) -> Value {
    let (repository, tag) = subject.name.rsplit_once(':').unwrap_or((&subject.name, "latest"));
    let (_, short) = repository.rsplit_once('/').unwrap_or(("", repository));
    let digest = subject.digest.replace(':', "%3A");
    let url = repository.replace('/', "%2F");
    json!({
        "type": "container",
        "bom-ref": subject.digest,
        "name": repository,
        "version": tag,
        "hashes": [{ "alg": "SHA-256", "content": subject.digest.trim_start_matches("sha256:") }],
        "purl": format!("pkg:oci/{short}@{digest}?repository_url={url}&tag={tag}"),
    })
}

fn list<'a>(bill: &'a Value, name: &str) -> Result<&'a [Value]> {
    bill[name].as_array().map(Vec::as_slice).with_context(|| format!("a bill without {name}"))
}

fn text(value: &Value, name: &str) -> Result<String> {
    value[name].as_str().map(str::to_owned).with_context(|| format!("a part of a bill without {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str, scope: &str) -> Value {
        json!({ "type": "library", "bom-ref": name, "name": name, "scope": scope })
    }

    fn bill(program: &str, parts: &[Value], needs: &Value) -> Value {
        json!({
            "metadata": { "timestamp": "2026-01-01T00:00:00Z", "tools": [], "component": part(program, "required") },
            "components": parts,
            "dependencies": needs,
        })
    }

    fn subject() -> Subject {
        Subject { name: "ghcr.io/a/b:1".to_owned(), digest: "sha256:00ff".to_owned() }
    }

    #[test]
    fn a_shared_component_is_listed_once_and_each_other_one_stays() {
        let one = bill(
            "one",
            &[part("serde", "excluded"), part("http", "required")],
            &json!([{"ref": "one", "dependsOn": ["serde"]}, {"ref": "serde", "dependsOn": ["core"]}]),
        );
        let two = bill(
            "two",
            &[part("serde", "required")],
            &json!([{"ref": "serde", "dependsOn": ["derive", "core"]}]),
        );
        let packer = bill("packer", &[part(AUTHORITIES, "required"), part("clap", "required")], &json!([]));
        let whole = of_image(&subject(), &[one, two], &packer).unwrap();
        let components = whole["components"].as_array().unwrap();
        let seen: Vec<_> = components.iter().map(|part| (&part["name"], &part["scope"])).collect();
        let names = ["http", "one", "serde", "two", AUTHORITIES].map(Value::from);
        assert_eq!(seen, names.iter().map(|name| (name, &components[0]["scope"])).collect::<Vec<_>>());
        assert_eq!(
            whole["dependencies"],
            json!([
                {"ref": "one", "dependsOn": ["serde"]},
                {"ref": "serde", "dependsOn": ["core", "derive"]},
                {"ref": "sha256:00ff", "dependsOn": ["one", "two", AUTHORITIES]},
            ])
        );
    }

    #[test]
    fn the_image_is_named_as_package_urls_name_it() {
        let component = container(&subject());
        assert_eq!(component["purl"], "pkg:oci/b@sha256%3A00ff?repository_url=ghcr.io%2Fa%2Fb&tag=1");
        assert_eq!(component["hashes"][0]["content"], "00ff");
    }

    #[test]
    fn a_bill_of_another_kind_is_refused() {
        let packer = bill("packer", &[part(AUTHORITIES, "required")], &json!([]));
        let no_authorities = bill("packer", &[], &json!([]));
        for (programs, packer) in [
            (vec![json!({})], &packer),
            (Vec::new(), &packer),
            (vec![bill("one", &[], &json!([]))], &no_authorities),
        ] {
            assert!(of_image(&subject(), &programs, packer).is_err(), "{programs:?}");
        }
    }
}
