//! The programs of Kubernetes. `make control-plane` provides them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use caipe_fixtures::requirements::Requirement;

use crate::programs::workspace;

/// One of etcd, kube-apiserver, kubectl, helm, helm3, argocd: in `KUBEBUILDER_ASSETS`, or
/// where `make control-plane` puts it.
pub fn find(program: &str) -> Option<PathBuf> {
    let given = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
    let built = std::env::var_os("CAIPE_CONTROL_PLANE")
        .map_or_else(|| workspace().join(".cache/control-plane"), PathBuf::from)
        .join("bin");
    given.into_iter().chain([built]).map(|dir| dir.join(program)).find(|path| is_program(path))
}

/// The same for one that must be there.
pub fn get(program: &str) -> Result<PathBuf> {
    find(program).with_context(|| format!("there is no {program}; run `make control-plane`"))
}

/// Whether a control plane can be started here. If not, it reports that the test is skipped.
pub fn complete() -> bool {
    let needed = ["etcd", "kube-apiserver", "kubectl"];
    let missing: Vec<&str> = needed.into_iter().filter(|program| find(program).is_none()).collect();
    missing.is_empty() || skipped(&format!("there is no {}", missing.join(", ")))
}

/// Reports that a test cannot run, and returns `false`.
pub(super) fn skipped(reason: &str) -> bool {
    Requirement::ControlPlane.unmet(reason);
    false
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
