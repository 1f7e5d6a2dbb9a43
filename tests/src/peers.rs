//! Real programs of others that tests talk to. `make peers` installs them.

use std::path::PathBuf;

use caipe_fixtures::requirements::Requirement;

/// A peer's executable: `py("mcp-server-git")`. `None` if it is not installed, which it reports as a skip.
pub fn py(program: &str) -> Option<PathBuf> {
    find(&["py", "bin", program])
}

/// The same for a peer from npm.
pub fn npm(program: &str) -> Option<PathBuf> {
    find(&["npm", "node_modules", ".bin", program])
}

/// The Python of an environment of its own: `python("py-a2a")`.
pub fn python(environment: &str) -> Option<PathBuf> {
    find(&[environment, "bin", "python"])
}

/// The directory of a package from npm.
pub fn npm_package(name: &str) -> Option<PathBuf> {
    find(&["npm", "node_modules", name])
}

/// Where the peers are installed.
pub fn root() -> PathBuf {
    std::env::var_os("CAIPE_PEERS")
        .map_or_else(|| crate::programs::workspace().join(".cache/peers"), PathBuf::from)
}

fn find(path: &[&str]) -> Option<PathBuf> {
    let file = path.iter().fold(root(), |dir, name| dir.join(name));
    if file.exists() {
        return Some(file);
    }
    Requirement::Peers.unmet(&format!("{} is not installed", file.display()));
    None
}
