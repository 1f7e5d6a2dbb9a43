//! The confined process: limits itself and becomes the shell.

use std::error::Error;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope, path_beneath_rules,
};
use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit, setsid};

use super::request::{Confinement, EXIT_UNCONFINED, TEMPORARY, WORK};
use super::system_calls;

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// The first version of Landlock that keeps signals within the confined processes.
pub(super) const SCOPED_SIGNALS: u8 = 6;
/// The first version that restricts `truncate`.
const RESTRICTED_TRUNCATE: u8 = 3;
/// The newest version whose rights are used.
pub(super) const NEWEST: u8 = 10;
const OPEN_FILES: u64 = 256;
/// Lets the monitor run before the command.
const NICENESS: i32 = 5;

/// Programs and libraries.
const EXECUTABLE: [&str; 8] =
    ["/bin", "/sbin", "/usr", "/lib", "/lib32", "/lib64", "/libx32", "/etc/alternatives"];
/// The settings that programs read. None of them holds a secret.
const READABLE: [&str; 16] = [
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/zero",
    "/etc/bash.bashrc",
    "/etc/group",
    "/etc/inputrc",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
];
/// What programs read to use the network.
const READABLE_FOR_NETWORK: [&str; 11] = [
    "/etc/ca-certificates",
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
];

/// Confines this process and runs the command in its place. Returns only if that fails, with the exit code; the reason is on
/// stderr. Call it first in `main`.
///
/// The arguments are the limits as JSON, and the command.
pub(super) fn main() -> i32 {
    let mut arguments = std::env::args().skip(2);
    let (limits, command) = (arguments.next().unwrap_or_default(), arguments.next().unwrap_or_default());
    let error = match run(&limits, &command) {
        Ok(never) => match never {},
        Err(error) => error,
    };
    eprintln!("the command was not run: {error}");
    EXIT_UNCONFINED
}

fn run(limits: &str, command: &str) -> Result<std::convert::Infallible> {
    let confinement: Confinement = serde_json::from_str(limits)?;
    step("close inherited files", close_inherited())?;
    step("end with the monitor", set_parent_process_death_signal(Some(Signal::KILL)))?;
    prefer_for_out_of_memory();
    step("begin a session", setsid())?;
    step("lower the priority", rustix::process::nice(NICENESS))?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let work = confinement.directory.join(WORK);
    let change = step("enter the directory", std::env::set_current_dir(&work));
    change.map_err(|error| {
        format!("{error} ({}; its parents must permit this user to pass)", work.display())
    })?;
    step("set the limits", set_limits(&confinement))?;
    step("restrict files", restrict_files(&confinement))?;
    let permitted = system_calls::Permitted {
        network: confinement.network,
        signals: confinement.landlock >= SCOPED_SIGNALS,
        truncate: confinement.landlock >= RESTRICTED_TRUNCATE,
    };
    step("restrict system calls", system_calls::restrict(permitted))?;
    Err(shell(command, &confinement.directory).exec().into())
}

/// Adds to an error what failed.
fn step<T, E: std::fmt::Display>(
    name: &str,
    result: std::result::Result<T, E>,
) -> std::result::Result<T, String> {
    result.map_err(|error| format!("failed to {name}: {error}"))
}

fn shell(command: &str, directory: &Path) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", command])
        .env_clear()
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .env("HOME", directory.join(WORK))
        .env("TMPDIR", directory.join(TEMPORARY))
        .env("LANG", "C.UTF-8")
        // Git ends if it cannot read its settings in /etc.
        .env("GIT_CONFIG_NOSYSTEM", "1");
    shell
}

/// Closes all descriptors but the standard streams, which the programs that started the supervisor may have left open.
fn close_inherited() -> std::io::Result<()> {
    let names: Vec<_> = std::fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    for fd in names.iter().filter_map(|name| name.parse::<i32>().ok()).filter(|fd| *fd > 2) {
        // The directory itself is closed already.
        let _ = nix::unistd::close(fd);
    }
    Ok(())
}

/// Makes the kernel end the command, and not the supervisor, if memory runs out. Not every container permits it.
fn prefer_for_out_of_memory() {
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
}

fn set_limits(confinement: &Confinement) -> std::io::Result<()> {
    for (resource, value) in [
        (Resource::As, confinement.address_space_bytes),
        (Resource::Core, 0),
        (Resource::Cpu, confinement.cpu_seconds),
        (Resource::Fsize, confinement.file_bytes),
        (Resource::Memlock, 0),
        (Resource::Msgqueue, 0),
        (Resource::Nofile, OPEN_FILES),
        (Resource::Nproc, confinement.processes),
    ] {
        // A lower limit may be set already.
        let most = rustix::process::getrlimit(resource).maximum.map_or(value, |most| most.min(value));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}

/// Permits to read programs and harmless settings, and to write in the call's directory.
fn restrict_files(confinement: &Confinement) -> Result<()> {
    let abi = ABI::from(i32::from(confinement.landlock));
    let directory = &confinement.directory;
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let sockets_and_devices = AccessFs::MakeSock
        | AccessFs::MakeChar
        | AccessFs::MakeBlock
        | AccessFs::IoctlDev
        | AccessFs::ResolveUnix;
    let null = (AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate) & AccessFs::from_all(abi);
    let own = AccessFs::from_all(abi) & !sockets_and_devices;
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))?;
    if confinement.landlock >= SCOPED_SIGNALS {
        ruleset = ruleset.set_compatibility(CompatLevel::HardRequirement).scope(Scope::from_all(abi))?;
        ruleset = ruleset.set_compatibility(CompatLevel::BestEffort);
    }
    let tcp: BitFlags<AccessNet> = AccessNet::from_all(abi);
    if !confinement.network && !tcp.is_empty() {
        ruleset = ruleset.handle_access(tcp)?;
    }
    let settings = READABLE.iter().chain(READABLE_FOR_NETWORK.iter().filter(|_| confinement.network));
    let volume = confinement.volume.as_ref().map(|volume| {
        let access = if volume.is_writable { own } else { read | AccessFs::Execute };
        let directory = PathFd::new(&volume.directory).map_err(|error| {
            format!("{error}; the user of commands must be able to reach the volume of the workspace")
        })?;
        Ok::<_, Box<dyn Error>>(PathBeneath::new(directory, access))
    });
    let volume = volume.transpose()?.map(Ok::<_, landlock::RulesetError>);
    let status = ruleset
        .create()?
        .add_rules(volume)?
        .add_rules(path_beneath_rules(EXECUTABLE, read | AccessFs::Execute))?
        .add_rules(path_beneath_rules(settings, read))?
        .add_rules(path_beneath_rules(["/dev/null"], null))?
        .add_rule(PathBeneath::new(PathFd::new(directory.join(WORK))?, own))?
        .add_rule(PathBeneath::new(PathFd::new(directory.join(TEMPORARY))?, own))?
        .restrict_self()?;
    if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
        return Err("the kernel does not enforce Landlock".into());
    }
    Ok(())
}
