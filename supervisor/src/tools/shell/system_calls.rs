//! The system calls of a confined process.
//!
//! One filter permits what programs need and lets all others report that they do not exist, so that system calls of newer
//! kernels are refused too. One refuses dangerous ones, some by their arguments. Landlock does not restrict some that change
//! files outside. Of these, one filter makes those succeed without effect that common programs (git, tar, unzip) need, because
//! they take a path and change its mode or times. Another reports that there are no extended attributes.

use std::collections::BTreeMap;

use libc::{
    AF_INET, AF_INET6, AF_UNIX, CLONE_NEWCGROUP, CLONE_NEWIPC, CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWPID,
    CLONE_NEWUSER, CLONE_NEWUTS, ENOSYS, EOPNOTSUPP, EPERM, F_SETOWN, PR_SET_DUMPABLE, PR_SET_PTRACER,
};
use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Is, SeccompCondition,
    SeccompFilter, SeccompRule, apply_filter,
};

/// What depends on the settings and the kernel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Permitted {
    pub(super) network: bool,
    /// Whether Landlock keeps signals within the confined processes.
    pub(super) signals: bool,
    /// Whether Landlock restricts `truncate`.
    pub(super) truncate: bool,
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The same number on all architectures.
const FCHMODAT2: i64 = 452;
const F_SETSIG: i32 = 10;
const F_SETOWN_EX: i32 = 15;
const FIOSETOWN: u64 = 0x8901;
const SIOCSPGRP: u64 = 0x8902;
const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541C;
/// The type of a socket, without its flags.
const SOCKET_TYPE: u64 = 0xf;

/// Restricts this process and all that it starts.
pub(super) fn restrict(permitted: Permitted) -> Result<(), Error> {
    // All filters apply: of several errors, the one of the last filter counts. After the first one, only what it permits can
    // install the others.
    for filter in filters(permitted)?.iter().rev() {
        apply_filter(filter)?;
    }
    Ok(())
}

/// In the order of their precedence.
fn filters(permitted: Permitted) -> Result<[BpfProgram; 4], Error> {
    let no_attributes = ATTRIBUTES.iter().map(|number| (*number, Vec::new())).collect();
    Ok([
        filter(no_attributes, SeccompAction::Errno(EOPNOTSUPP.cast_unsigned()), SeccompAction::Allow)?,
        filter(without_effect()?, SeccompAction::Errno(0), SeccompAction::Allow)?,
        filter(refused(permitted)?, SeccompAction::Errno(EPERM.cast_unsigned()), SeccompAction::Allow)?,
        filter(allowed(permitted), SeccompAction::Allow, SeccompAction::Errno(ENOSYS.cast_unsigned()))?,
    ])
}

fn filter(rules: Rules, on_match: SeccompAction, otherwise: SeccompAction) -> Result<BpfProgram, Error> {
    let architecture = std::env::consts::ARCH.try_into()?;
    Ok(SeccompFilter::new(rules, otherwise, on_match, architecture)?.try_into()?)
}

/// What programs need. Most take descriptors, which Landlock has checked when they were opened, or paths that it checks.
const ALLOWED: &[i64] = &[
    libc::SYS_brk,
    libc::SYS_capget,
    libc::SYS_chdir,
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_clone,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_copy_file_range,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_fadvise64,
    libc::SYS_fallocate,
    libc::SYS_fchdir,
    libc::SYS_fchmod,
    libc::SYS_fchown,
    libc::SYS_fcntl,
    libc::SYS_fdatasync,
    libc::SYS_fgetxattr,
    libc::SYS_flistxattr,
    libc::SYS_flock,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_futex,
    libc::SYS_futex_waitv,
    libc::SYS_get_mempolicy,
    libc::SYS_get_robust_list,
    libc::SYS_getcpu,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getgroups,
    libc::SYS_getitimer,
    libc::SYS_getpeername,
    libc::SYS_getpgid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getpriority,
    libc::SYS_getrandom,
    libc::SYS_getresgid,
    libc::SYS_getresuid,
    libc::SYS_getrusage,
    libc::SYS_getsid,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_gettid,
    libc::SYS_gettimeofday,
    libc::SYS_getuid,
    libc::SYS_getxattr,
    libc::SYS_ioctl,
    libc::SYS_lgetxattr,
    libc::SYS_linkat,
    libc::SYS_listxattr,
    libc::SYS_llistxattr,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_mincore,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_msync,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_personality,
    libc::SYS_pidfd_open,
    libc::SYS_pipe2,
    libc::SYS_pkey_alloc,
    libc::SYS_pkey_free,
    libc::SYS_pkey_mprotect,
    libc::SYS_ppoll,
    libc::SYS_prctl,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_preadv2,
    libc::SYS_prlimit64,
    libc::SYS_pselect6,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_read,
    libc::SYS_readahead,
    libc::SYS_readlinkat,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmmsg,
    libc::SYS_recvmsg,
    libc::SYS_renameat2,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_sched_get_priority_max,
    libc::SYS_sched_get_priority_min,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_getattr,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler,
    libc::SYS_sched_rr_get_interval,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_yield,
    libc::SYS_seccomp,
    libc::SYS_sendfile,
    libc::SYS_sendmmsg,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_setfsgid,
    libc::SYS_setfsuid,
    libc::SYS_setgid,
    libc::SYS_setgroups,
    libc::SYS_setitimer,
    libc::SYS_setpriority,
    libc::SYS_setregid,
    libc::SYS_setresgid,
    libc::SYS_setresuid,
    libc::SYS_setreuid,
    libc::SYS_setsockopt,
    libc::SYS_setuid,
    libc::SYS_shutdown,
    libc::SYS_sigaltstack,
    libc::SYS_signalfd4,
    libc::SYS_socketpair,
    libc::SYS_splice,
    libc::SYS_statfs,
    libc::SYS_statx,
    libc::SYS_symlinkat,
    libc::SYS_sync,
    libc::SYS_sysinfo,
    libc::SYS_tee,
    libc::SYS_timer_create,
    libc::SYS_timer_delete,
    libc::SYS_timer_getoverrun,
    libc::SYS_timer_gettime,
    libc::SYS_timer_settime,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_gettime,
    libc::SYS_timerfd_settime,
    libc::SYS_times,
    libc::SYS_umask,
    libc::SYS_uname,
    libc::SYS_unlinkat,
    libc::SYS_utimensat,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_write,
    libc::SYS_writev,
];
#[cfg(target_arch = "x86_64")]
const ALLOWED_HERE: &[i64] = &[
    libc::SYS_access,
    libc::SYS_alarm,
    libc::SYS_arch_prctl,
    libc::SYS_creat,
    libc::SYS_dup2,
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_eventfd,
    libc::SYS_fork,
    libc::SYS_getdents,
    libc::SYS_getpgrp,
    libc::SYS_getrlimit,
    libc::SYS_link,
    libc::SYS_lstat,
    libc::SYS_mkdir,
    libc::SYS_mknod,
    libc::SYS_open,
    libc::SYS_pause,
    libc::SYS_pipe,
    libc::SYS_poll,
    libc::SYS_readlink,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_rmdir,
    libc::SYS_select,
    libc::SYS_setrlimit,
    libc::SYS_signalfd,
    libc::SYS_stat,
    libc::SYS_symlink,
    libc::SYS_sync_file_range,
    libc::SYS_time,
    libc::SYS_unlink,
    libc::SYS_vfork,
];
#[cfg(not(target_arch = "x86_64"))]
const ALLOWED_HERE: &[i64] = &[];
/// Without scoped signals, all processes of a command stay in one group, which the monitor can end, and signal nobody.
const SIGNALS: &[i64] = &[
    libc::SYS_kill,
    libc::SYS_pidfd_send_signal,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_setpgid,
    libc::SYS_setsid,
    libc::SYS_tgkill,
    libc::SYS_tkill,
];
const NETWORK: &[i64] = &[
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_bind,
    libc::SYS_connect,
    libc::SYS_listen,
    libc::SYS_socket,
];
/// Changes of extended attributes.
const ATTRIBUTES: &[i64] = &[
    libc::SYS_fremovexattr,
    libc::SYS_fsetxattr,
    libc::SYS_lremovexattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_setxattr,
];
/// What is refused whatever its arguments are.
const REFUSED: &[i64] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_capset,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    libc::SYS_fchownat,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_ioprio_set,
    libc::SYS_kcmp,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_mbind,
    libc::SYS_migrate_pages,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_move_pages,
    libc::SYS_mq_open,
    libc::SYS_msgget,
    libc::SYS_name_to_handle_at,
    libc::SYS_nfsservctl,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_semget,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_shmget,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[i64] = &[
    libc::SYS_chown,
    libc::SYS_ioperm,
    libc::SYS_iopl,
    libc::SYS_lchown,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[i64] = &[];

fn allowed(permitted: Permitted) -> Rules {
    let mut numbers = [ALLOWED, ALLOWED_HERE].concat();
    if permitted.network {
        numbers.extend(NETWORK);
    }
    if permitted.signals {
        numbers.extend(SIGNALS);
    }
    if permitted.truncate {
        numbers.push(libc::SYS_truncate);
    }
    numbers.into_iter().map(|number| (number, Vec::new())).collect()
}

fn refused(permitted: Permitted) -> Result<Rules, Error> {
    let always = REFUSED.iter().chain(REFUSED_HERE);
    let networks = NETWORK.iter().filter(|_| !permitted.network);
    let signals = SIGNALS.iter().filter(|_| !permitted.signals);
    let truncate = Some(&libc::SYS_truncate).filter(|_| !permitted.truncate);
    let numbers = always.chain(networks).chain(signals).chain(truncate);
    let mut rules: Rules = numbers.map(|number| (*number, Vec::new())).collect();
    rules.extend(refused_by_arguments()?);
    if permitted.network {
        // A Unix socket could reach a service of this machine.
        let family = |family: i32| condition(0, Length::Dword, Is::Ne, family);
        rules.insert(libc::SYS_socket, vec![SeccompRule::new(vec![family(AF_INET)?, family(AF_INET6)?])?]);
    }
    Ok(rules)
}

/// What is refused with some arguments only. Each condition of a system call suffices.
fn refused_by_arguments() -> Result<Rules, Error> {
    let namespaces =
        [CLONE_NEWCGROUP, CLONE_NEWIPC, CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWUSER, CLONE_NEWUTS];
    let clone = namespaces.map(|flag| flag_set(0, flag));
    let other = |argument| [condition(argument, Length::Dword, Is::Ne, 0)];
    let is = |argument, value: i32| condition(argument, Length::Dword, Is::Eq, value);
    let is_type = |kind| SeccompCondition::new(1, Length::Dword, Is::MaskedEq(SOCKET_TYPE), kind);
    let is_request = |request| SeccompCondition::new(1, Length::Dword, Is::Eq, request);
    Ok([
        any(libc::SYS_clone, clone)?,
        // Signals by descriptors.
        any(libc::SYS_fcntl, [is(1, F_SETOWN), is(1, F_SETOWN_EX), is(1, F_SETSIG)])?,
        any(libc::SYS_ioctl, [FIOSETOWN, SIOCSPGRP, TIOCSTI, TIOCLINUX].map(is_request))?,
        // Not 0, and not the query.
        (
            libc::SYS_personality,
            vec![SeccompRule::new(vec![
                condition(0, Length::Dword, Is::Ne, 0)?,
                SeccompCondition::new(0, Length::Dword, Is::Ne, 0xffff_ffff)?,
            ])?],
        ),
        // The monitor reads the descriptors of its processes.
        any(libc::SYS_prctl, [is(0, PR_SET_DUMPABLE), is(0, PR_SET_PTRACER)])?,
        // Limits and priorities of other processes.
        any(libc::SYS_prlimit64, other(0))?,
        any(libc::SYS_sched_setaffinity, other(0))?,
        any(libc::SYS_sched_setattr, other(0))?,
        any(libc::SYS_sched_setparam, other(0))?,
        any(libc::SYS_sched_setscheduler, other(0))?,
        any(
            libc::SYS_setpriority,
            [condition(0, Length::Dword, Is::Ne, 0), condition(1, Length::Dword, Is::Ne, 0)],
        )?,
        // A datagram socket could send to any path. A stream of a pair has its peer.
        any(
            libc::SYS_socketpair,
            [
                condition(0, Length::Dword, Is::Ne, AF_UNIX),
                is_type(2),
                is_type(3),
                is_type(4),
                is_type(5),
                is_type(6),
                is_type(10),
            ],
        )?,
    ]
    .into())
}

/// Changes of the mode and the times of a path. `utimensat` without a path changes those of a descriptor.
fn without_effect() -> Result<Rules, Error> {
    let mut rules: Rules = [libc::SYS_fchmodat, FCHMODAT2].map(|number| (number, Vec::new())).into();
    #[cfg(target_arch = "x86_64")]
    rules.extend(
        [libc::SYS_chmod, libc::SYS_futimesat, libc::SYS_utime, libc::SYS_utimes]
            .map(|number| (number, Vec::new())),
    );
    rules.extend([any(libc::SYS_utimensat, [SeccompCondition::new(1, Length::Qword, Is::Ne, 0)])?]);
    Ok(rules)
}

fn any(
    number: i64,
    conditions: impl IntoIterator<Item = Result<SeccompCondition, seccompiler::BackendError>>,
) -> Result<(i64, Vec<SeccompRule>), Error> {
    let rule = |condition: Result<_, seccompiler::BackendError>| Ok(SeccompRule::new(vec![condition?])?);
    Ok((number, conditions.into_iter().map(rule).collect::<Result<_, Error>>()?))
}

fn condition(
    argument: u8,
    length: Length,
    operator: Is,
    value: i32,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, length, operator, u64::from(value.cast_unsigned()))
}

fn flag_set(argument: u8, flag: i32) -> Result<SeccompCondition, seccompiler::BackendError> {
    let flag = u64::from(flag.cast_unsigned());
    SeccompCondition::new(argument, Length::Qword, Is::MaskedEq(flag), flag)
}
