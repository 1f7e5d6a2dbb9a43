//! The scripts that prepare a release and that check a machine, in copies of this repository.

use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use caipe_fixtures::requirements::Requirement;
use caipe_tests::programs::workspace;
use tempfile::TempDir;

/// Copies the tracked files of this work tree, and commits them.
const COPY: &str = r#"git -C "$0" ls-files -z | tar -C "$0" --null -T - --ignore-failed-read -c 2>/dev/null | tar -x -C "$1"
cd "$1" && git init -q && git add -A && git commit -qm all"#;

struct Repository(TempDir);

impl Repository {
    fn copy() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let source = workspace();
        let mut command = Command::new("bash");
        command.args(["-euc", COPY]).arg(source).arg(folder.path());
        text(&as_committer(&mut command).output()?)?;
        Ok(Self(folder))
    }

    fn read(&self, file: &str) -> Result<String> {
        std::fs::read_to_string(self.0.path().join(file)).with_context(|| format!("failed to read {file}"))
    }

    fn edit(&self, file: &str, change: impl FnOnce(String) -> String) -> Result<()> {
        Ok(std::fs::write(self.0.path().join(file), change(self.read(file)?))?)
    }

    /// Runs a command of this repository. `MAKE` is a program that generates nothing.
    fn run(&self, program: &str, arguments: &[&str]) -> Result<Output> {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.0.path()).env("MAKE", "true");
        Ok(as_committer(&mut command).output()?)
    }

    /// The files that contain a text.
    fn files_with(&self, pattern: &str) -> Result<String> {
        Ok(String::from_utf8(self.run("git", &["grep", "-lF", pattern])?.stdout)?)
    }
}

fn as_committer(command: &mut Command) -> &mut Command {
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "Tide").env(format!("GIT_{role}_EMAIL"), "tide@example.com");
    }
    command
}

fn text(output: &Output) -> Result<String> {
    let text = String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned();
    ensure!(output.status.success(), "{text}");
    Ok(text)
}

#[test]
fn a_change_of_the_addresses_is_one_edit() -> Result<()> {
    let repository = Repository::copy()?;
    let old = ["registry", "repository"].map(|name| repository.run("scripts/addresses", &[name]));
    let old =
        old.into_iter().map(|output| Ok(text(&output?)?.trim().to_owned())).collect::<Result<Vec<_>>>()?;
    let new = ["registry.example.com:5000/a.b", "https://git.example.com/c&d"];
    repository.edit("Cargo.toml", |text| {
        text.replace(&format!("\"{}\"", old[0]), &format!("\"{}\"", new[0]))
            .replace(&format!("\"{}\"", old[1]), &format!("\"{}\"", new[1]))
    })?;
    text(&repository.run("scripts/addresses", &[])?)?;
    for address in &old {
        assert_eq!(repository.files_with(address)?, "", "{address}");
    }
    for (address, file) in [
        (new[0], "charts/caipe-operator/values.yaml"),
        (new[0], "operator/src/defaults.rs"),
        (new[0], "image/src/config.rs"),
        (new[0], "deploy/argocd/application.yaml"),
        (new[1], "charts/caipe-operator/Chart.yaml"),
        (new[1], "Dockerfile"),
    ] {
        ensure!(repository.read(file)?.contains(address), "{file} does not contain {address}");
    }
    Ok(())
}

#[test]
fn a_release_is_prepared_as_one_commit() -> Result<()> {
    let repository = Repository::copy()?;
    let definition = repository.read("crds/caipe.io_caipesupervisors.yaml")?;
    text(&repository.run("scripts/release", &["98.7.6"])?)?;
    for (file, expected) in [
        ("Cargo.toml", "\nversion = \"98.7.6\"\n"),
        ("Cargo.lock", "name = \"caipe-operator\"\nversion = \"98.7.6\"\n"),
        ("fuzz/Cargo.lock", "name = \"caipe-a2a\"\nversion = \"98.7.6\"\n"),
        ("charts/caipe-operator/Chart.yaml", "\nversion: 98.7.6\nappVersion: 98.7.6\n"),
        ("charts/caipe-operator/charts/caipe-crds/Chart.yaml", "\nversion: 98.7.6\nappVersion: 98.7.6\n"),
        ("deploy/argocd/application.yaml", "targetRevision: 98.7.6\n"),
        ("CHANGELOG.md", "\n## Unreleased\n\n## 98.7.6 ("),
        ("crds/baseline/v98.7.6.yaml", &definition),
    ] {
        ensure!(repository.read(file)?.contains(expected), "{file} does not contain {expected:?}");
    }
    ensure!(repository.read("crds/baseline/unreleased.yaml").is_err(), "a released definition replaces it");
    assert_eq!(text(&repository.run("git", &["log", "-1", "--format=%s"])?)?, "Release 98.7.6\n");
    assert_eq!(text(&repository.run("git", &["status", "--porcelain"])?)?, "");

    let again = repository.run("scripts/release", &["98.7.7"])?;
    let reason = String::from_utf8_lossy(&again.stderr);
    ensure!(!again.status.success() && reason.contains("lists no change"), "{reason}");
    Ok(())
}

#[test]
fn everything_that_a_machine_lacks_is_reported_at_once() -> Result<()> {
    let bin = tempfile::tempdir()?;
    for program in ["awk", "bash", "dirname", "grep", "head", "id", "paste", "sed", "sort"] {
        let path = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(program));
        let path = path.into_iter().find(|path| path.exists()).with_context(|| format!("no {program}"))?;
        std::os::unix::fs::symlink(path, bin.path().join(program))?;
    }
    let needs = |targets: &[&str]| -> Result<Output> {
        let mut command = Command::new("bash");
        command.arg(workspace().join("scripts/needs")).args(targets).env_clear().env("PATH", bin.path());
        command.env("CAIPE_TOOLS", "/nonexistent").env("CAIPE_CONTROL_PLANE", "/nonexistent");
        Ok(command.output()?)
    };
    let output = needs(&["e2e"])?;
    let report = String::from_utf8_lossy(&output.stderr);
    ensure!(!output.status.success() && report.matches("apt-get install").count() == 1, "{report}");
    for expected in ["conntrack", "gcc", "mmdebstrap", "musl-tools", "python3-venv", "redis-server", "runc"] {
        let packages = report.lines().find(|line| line.contains("apt-get install")).unwrap_or_default();
        ensure!(packages.split(' ').any(|package| package == expected), "no {expected}: {report}");
    }
    for expected in ["\n  Rust 1.", "\n  Go 1.", "\n  Node.js 20 "] {
        ensure!(report.contains(expected), "no {expected:?}: {report}");
    }
    ensure!(needs(&["help", "cluster-down"])?.status.success(), "targets without requirements");
    Ok(())
}

#[test]
fn the_requirements_of_each_target_are_known() -> Result<()> {
    let read = |file| std::fs::read_to_string(workspace().join(file));
    let (makefile, needs) = (read("Makefile")?, read("scripts/needs")?);
    let targets = makefile.lines().filter_map(|line| line.split_once(':')).map(|(target, _)| target);
    let is_target = |target: &&str| {
        target.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-') && !target.is_empty()
    };
    let unknown: Vec<_> = targets
        .filter(is_target)
        .filter(|target| {
            !["help", "cluster-down"].contains(target) && !needs.contains(&format!("\n{target} "))
        })
        .collect();
    assert_eq!(unknown, [""; 0]);
    Ok(())
}

#[test]
fn publishing_covers_both_architectures_and_both_charts() -> Result<()> {
    let tools = std::env::var_os("CAIPE_TOOLS").map_or_else(|| workspace().join(".cache/tools"), Into::into);
    let helm = tools.join("bin/helm4");
    if !helm.exists() {
        Requirement::Peers.unmet(&format!("{} is not installed", helm.display()));
        return Ok(());
    }
    let repository = Repository::copy()?;
    let folder = repository.0.path().join("artifacts");
    std::fs::create_dir(&folder)?;
    for name in ["caipe-operator-amd64.tar", "caipe-operator-arm64.tar"] {
        std::fs::write(folder.join(name), "")?;
    }
    std::fs::create_dir(folder.join("bin"))?;
    std::os::unix::fs::symlink(helm, folder.join("bin/helm"))?;
    let version = env!("CARGO_PKG_VERSION");
    let publish = format!("PATH=$PWD/artifacts/bin:$PATH DRY_RUN=1 scripts/publish {version} artifacts");
    let commands = text(&repository.run("bash", &["-c", &publish])?)?;
    for expected in [
        format!("caipe-operator-arm64.tar docker://ghcr.io/caipe-io/caipe-operator:{version}-arm64"),
        format!("--tag ghcr.io/caipe-io/caipe-operator:{version} "),
        format!("helm push {}/caipe-crds-{version}.tgz oci://ghcr.io/caipe-io/charts", folder.display()),
        "cosign sign --yes ghcr.io/caipe-io/charts/caipe-operator@sha256:".to_owned(),
    ] {
        ensure!(commands.contains(&expected), "no {expected:?}: {commands}");
    }
    let digests = repository.read("artifacts/digests.txt")?;
    assert_eq!(digests.lines().count(), 3, "{digests}");
    ensure!(folder.join(format!("caipe-operator-{version}.tgz")).exists(), "the chart is packed");
    Ok(())
}
