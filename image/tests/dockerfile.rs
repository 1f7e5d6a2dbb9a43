//! The Dockerfile says of its image what `make image` writes into one.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use caipe_image::config::{About, PROGRAM, labels, run};
use serde_json::{Value, json};

type Stage = BTreeMap<String, Vec<String>>;

/// The instructions of a stage, by name, in their order.
fn stage(name: &str) -> Result<Stage> {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../Dockerfile"))?;
    let text = text.replace("\\\n", " ");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut instructions = Stage::new();
    let mut inside = false;
    for line in lines {
        let (instruction, rest) = line.split_once(' ').context("an instruction without words")?;
        if instruction == "FROM" {
            inside = rest.ends_with(&format!(" AS {name}"));
        }
        if inside {
            instructions.entry(instruction.to_owned()).or_default().push(rest.trim().to_owned());
        }
    }
    Ok(instructions)
}

/// `a=1 b="two words"` as pairs.
fn pairs(line: &str) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    let mut rest = line.trim();
    while let Some((name, value)) = rest.split_once('=') {
        let (value, after) = match value.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').context("a quote is left open")?,
            None => value.split_once(' ').unwrap_or((value, "")),
        };
        found.insert(name.trim().to_owned(), value.to_owned());
        rest = after.trim();
    }
    Ok(found)
}

fn about() -> About {
    About { version: String::new(), revision: None }
}

fn one(stage: &Stage, instruction: &str) -> Result<String> {
    let values = stage.get(instruction).map(Vec::as_slice).unwrap_or_default();
    ensure!(values.len() == 1, "{instruction}: {values:?}");
    Ok(values[0].clone())
}

#[test]
fn both_images_are_run_as_the_archive_says() -> Result<()> {
    let config = run(&about());
    for name in ["supervisor", "supervisor-tools"] {
        let stage = stage(name)?;
        assert_eq!(config["User"], one(&stage, "USER")?, "{name}");
        assert_eq!(config["WorkingDir"], one(&stage, "WORKDIR")?, "{name}");
        assert_eq!(config["Volumes"], json!({ one(&stage, "VOLUME")?: {} }), "{name}");
        assert_eq!(
            config["ExposedPorts"],
            json!({ format!("{}/tcp", one(&stage, "EXPOSE")?): {} }),
            "{name}"
        );
        for (member, instruction) in [("Entrypoint", "ENTRYPOINT"), ("Cmd", "CMD")] {
            let value: Value = serde_json::from_str(&one(&stage, instruction)?)?;
            assert_eq!(config[member], value, "{name}");
        }
    }
    Ok(())
}

#[test]
fn the_small_image_is_the_archive() -> Result<()> {
    let stage = stage("supervisor")?;
    assert_eq!(one(&stage, "FROM")?, "scratch AS supervisor");
    assert_eq!(
        one(&stage, "COPY")?,
        "--from=build /out/ /",
        "all files come from the tool that packs the archive"
    );
    assert!(!stage.contains_key("RUN"));
    let environment = pairs(&one(&stage, "ENV")?)?;
    let environment: Vec<String> =
        environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut expected: Vec<String> = serde_json::from_value(run(&about())["Env"].clone())?;
    expected.sort();
    assert_eq!(environment, expected);
    // The version is known to who builds.
    let mut expected = labels(&about());
    expected.remove("org.opencontainers.image.version");
    assert_eq!(json!(pairs(&one(&stage, "LABEL")?)?), Value::Object(expected));
    Ok(())
}

#[test]
fn the_files_are_those_of_the_archive() -> Result<()> {
    let commands = stage("build")?["RUN"].join("\n");
    let commands = commands.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "-p caipe-image -- tree --supervisor target/release/caipe-supervisor --operator target/release/caipe-operator --out /out",
        "-p caipe-supervisor -p caipe-operator --features caipe-supervisor/mimalloc",
    ] {
        assert!(commands.contains(part), "{commands}");
    }
    let directory = PROGRAM.rsplit_once('/').context("no directory")?.0;
    let copies = stage("supervisor-tools")?["COPY"].join("\n");
    for path in [directory, "etc/ssl", "data"] {
        assert!(copies.contains(&format!("/out/{path}")), "{copies}");
    }
    Ok(())
}
