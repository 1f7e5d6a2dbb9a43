//! The tool `shell_exec`, whose sandbox is two processes of the same executable: this one, here.
//!
//! The executable therefore has a `main` of its own, which is a process of the sandbox where its arguments say so.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod escapes;
mod files;
mod limits;
mod network;
mod sandbox;

fn main() {
    if let Some(code) = caipe_supervisor::tools::shell_process() {
        std::process::exit(code);
    }
    let Some(versions) = sandbox::landlock_versions() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let filter = std::env::args().nth(1).filter(|argument| !argument.starts_with('-'));
    let is_chosen = |name: &str| filter.as_ref().is_none_or(|filter| name.contains(filter.as_str()));
    runtime.block_on(async {
        for version in versions {
            if is_chosen("files") {
                files::run(version).await;
            }
            if is_chosen("limits") {
                limits::run(version).await;
            }
            if is_chosen("network") {
                network::run(version).await;
            }
            if is_chosen("escapes") {
                escapes::run(version).await;
            }
        }
    });
    println!("shell: ok");
}
