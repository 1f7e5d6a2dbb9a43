//! Attempts to leave the sandbox. Each shows that nothing outside was read or changed, and that the call ends.
//!
//! An attempt that succeeds prints `BREACH`, or the secret, which is in a file, in the environment of this process and of a
//! process of the command's user, and nowhere in the commands.

use std::collections::BTreeMap;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Instant;

use caipe_supervisor::tools::{ShellSettings, ShellVolume};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::sandbox::{PATIENCE, Sandbox, directory};

const SECRET: &str = "hunter2";

/// Before the Python code of attempts.
const PRELUDE: &str = "import ctypes, os, socket, struct, time\nl = ctypes.CDLL(None, use_errno=True)\n\
                       def breach(done=True):\n if done: print('BRE' + 'ACH')\n";

/// Commands in which `OUT` is a directory outside that everybody may write, `VICTIM` and `PARENT` are processes, `TCP` and `UDP`
/// are ports and `ABSTRACT` is the name of a socket.
const COMMANDS: &[&str] = &[
    // Paths.
    "cat ../../../../../../../../../../../../OUT/secret",
    "cat OUT/secret",
    "cd OUT && cat secret",
    "cd OUT; cat ./secret; echo x > new; rm -f secret",
    "cat ../../*/secret ../*/secret 2>&1",
    "ls OUT && echo BREACH",
    "find OUT -name secret -exec cat {} +",
    "grep -r . OUT",
    "cp OUT/secret . && cat secret",
    "head -c 100 < OUT/secret",
    ". OUT/secret",
    "sh OUT/secret",
    "cat /etc/shadow && echo BREACH",
    "cat /root/.bashrc /root/.profile && echo BREACH",
    "ls /root && echo BREACH",
    "ls /home/* /var/log /var/lib /run /tmp /srv /opt && echo BREACH",
    "cat /var/run/secrets/kubernetes.io/serviceaccount/token && echo BREACH",
    "ls / && echo BREACH",
    // Links.
    "ln -s OUT/secret l; cat l",
    "ln -s OUT d; cat d/secret; echo x > d/new; rm d/secret",
    "ln -s / r; cat r/OUT/secret",
    "ln OUT/secret h && cat h && echo BREACH",
    "ln -P OUT/secret h || ln -L OUT/secret h; echo x >> h; true",
    "echo x > f; ln f OUT/linked && echo BREACH",
    "ln -s OUT/made l; echo x > l",
    "i=0; p=OUT/secret; while [ $i -lt 30 ]; do ln -s $p l$i; p=l$i; i=$((i + 1)); done; cat l29",
    // Writes.
    "echo x > OUT/secret",
    "echo x >> OUT/secret",
    "echo x > OUT/new",
    "mkdir OUT/d; mkfifo OUT/p; touch OUT/t; ln -s / OUT/s; mknod OUT/n p",
    "rm -rf OUT/*; rmdir OUT/empty; mv OUT/secret m; mv OUT/empty OUT/renamed",
    "echo x > f; mv f OUT/; cp f OUT/; install f OUT/g",
    "truncate -s 0 OUT/secret; dd if=/dev/null of=OUT/secret",
    "chmod 0 OUT/secret; chmod 777 OUT/empty; chmod -R a= OUT",
    "touch OUT/secret; touch -d 2000-01-01 OUT/secret; touch -h OUT/secret",
    "chown 0:0 OUT/secret; chgrp 0 OUT/secret; setfattr -n user.x -v y OUT/secret",
    "for d in / /usr /usr/bin /etc /bin /lib /tmp /var/tmp /dev /dev/shm /sys /run; do echo x > $d/caipe-breach && echo BREACH; done",
    "echo x > /bin/sh; echo x > /usr/bin/env; rm -f /bin/ls && echo BREACH",
    "cp /bin/sh s; ./s -c 'cat OUT/secret'",
    // Archives.
    "mkdir x; ln -s OUT x/l; tar cf a.tar -C x l; tar xf a.tar; echo x > l/new; cat l/secret",
    "python3 -c 'import io, tarfile\nt = tarfile.open(\"a.tar\", \"w\")\ni = tarfile.TarInfo(\"../../../../../../OUT/new\"); i.size = 1\n\
     t.addfile(i, io.BytesIO(b\"x\")); i = tarfile.TarInfo(\"OUT/new2\"); i.size = 1; t.addfile(i, io.BytesIO(b\"x\")); t.close()'; \
     tar xPf a.tar; tar xf a.tar",
    "python3 -c 'import zipfile\nz = zipfile.ZipFile(\"a.zip\", \"w\"); z.writestr(\"../../../../../../OUT/new\", \"x\"); z.close()'; \
     unzip -: -o a.zip",
    "tar cf - OUT | tar tf - | grep secret && echo BREACH",
    // /proc and the environment.
    "cat /proc/1/environ && echo BREACH",
    "cat /proc/PARENT/environ /proc/PARENT/cmdline | tr '\\0' '\\n'",
    "cat /proc/$PPID/environ | tr '\\0' '\\n'; cat /proc/VICTIM/environ",
    "cat /proc/self/root/OUT/secret; cat /proc/1/root/OUT/secret",
    "cat /proc/PARENT/cwd/Cargo.toml && echo BREACH",
    "ls /proc/PARENT/fd /proc/VICTIM/fd && echo BREACH",
    "cat /proc/self/environ /proc/self/status && echo BREACH",
    "head -c 1 /proc/VICTIM/mem /proc/PARENT/mem /proc/self/mem && echo BREACH",
    "echo 1 > /proc/sys/kernel/core_pattern; echo 1000 > /proc/PARENT/oom_score_adj; echo c > /proc/sysrq-trigger",
    "readlink /proc/PARENT/exe && echo BREACH",
    "env; set; export",
    // Devices and privileges.
    "cat /dev/mem /dev/kmem /dev/port /dev/vda /dev/sda | head -c 1 | grep -q . && echo BREACH",
    "cat /dev/kmsg | head -1 | grep . && echo BREACH; dmesg && echo BREACH",
    "echo x > /dev/tty && echo BREACH; echo x > /dev/console && echo BREACH; ls /dev/pts && echo BREACH",
    "mknod m c 1 1 && echo BREACH; mknod b b 8 0 && echo BREACH",
    "su -c id root < /dev/null && echo BREACH; sudo -n id && echo BREACH; mount && echo BREACH",
    "chroot . /bin/true && echo BREACH; unshare -U true && echo BREACH; unshare -Ur true && echo BREACH",
    "unshare -m true && echo BREACH; unshare -n true && echo BREACH; nsenter -t PARENT -m true && echo BREACH",
    "mount -t tmpfs x . && echo BREACH; mount --bind / . && echo BREACH; umount /proc && echo BREACH",
    "hostname caipe-breach && echo BREACH; date -s 2000-01-01 && echo BREACH; sysctl -w kernel.panic=1 && echo BREACH",
    "id -u | grep -qx 0 && echo BREACH",
    // Processes.
    "kill -9 PARENT && echo BREACH; kill -9 $PPID && echo BREACH; kill -9 VICTIM && echo BREACH",
    "kill -0 PARENT && echo BREACH; kill -0 VICTIM && echo BREACH; pkill sleep && echo BREACH; killall sleep && echo BREACH",
    "kill -TERM -1; kill -9 -PARENT && echo BREACH; true",
    "renice -n 19 -p VICTIM && echo BREACH; renice -n 19 -u nobody && echo BREACH; ionice -c 3 -p VICTIM && echo BREACH",
    "prlimit --pid VICTIM --nofile=1:1 && echo BREACH; taskset -p 1 VICTIM && echo BREACH; chrt -b -p 0 VICTIM && echo BREACH",
    "gdb -p VICTIM -batch && echo BREACH; strace -p VICTIM -o /dev/null & sleep 0.2; ps -e | grep -q caipe && echo BREACH",
    // The network.
    "(exec 3<> /dev/tcp/127.0.0.1/TCP) && echo BREACH; curl -s -m 2 http://127.0.0.1:TCP && echo BREACH",
    "getent hosts example.com && echo BREACH; ping -c 1 127.0.0.1 && echo BREACH; ip link && echo BREACH",
    // Files that disturb what reads them.
    "mkfifo p; mkfifo d1; ln -s p l; true",
    "i=0; n=x; while [ $i -lt 12 ]; do n=$n$n; i=$((i + 1)); done; : > $n; : > $(echo $n | head -c 255); : > $(echo $n | head -c 256)",
    "touch \"$(printf 'a\\nb')\" \"$(printf 'e\\033[2Jf')\" \"$(printf 'x\\377y')\" '..x' '...' ' ' '-rf' '~' '$(id)'",
    "truncate -s 1T sparse; truncate -s 100M sparse2; ls -s sparse",
    "mkdir -p $(printf 'd/%.0s' $(seq 60)); echo x > $(printf 'd/%.0s' $(seq 60))f",
    "mkdir m; echo x > m/f; python3 -c 'import os\nos.fchmod(os.open(\"m\", 0), 0)'; mkdir -m 0 n",
    "while :; do ln -sfn OUT race; rm -f race; mkdir -p race; echo x > race/secret; rm -r race; done & sleep 1",
    "echo x > secret; while :; do ln -sf OUT/secret secret; rm -f secret; echo x > secret; done & sleep 1",
    "rm -rf \"$PWD\"; cd ..; rm -rf work; mkdir work; ln -s OUT work; mv work other && echo BREACH",
    "mv ../work ../gone && echo BREACH; rmdir ../tmp && echo BREACH; ln -sfnT OUT ../tmp && echo BREACH; echo x > ../x && echo BREACH",
];

/// Attempts in Python, mostly of system calls. The same words are replaced.
const PYTHON: &[&str] = &[
    "breach(socket.socket().connect_ex(('127.0.0.1', TCP)) == 0)",
    "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', UDP))",
    "socket.socket(socket.AF_INET6); breach()",
    "socket.socket(socket.AF_UNIX).connect('OUT/socket'); breach()",
    "socket.socket(socket.AF_UNIX).connect('\\0ABSTRACT'); breach()",
    "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', 'OUT/datagram')",
    "a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.sendto(b'x', 'OUT/datagram')",
    "a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET); breach()",
    "a, b = socket.socketpair(); a.sendmsg([b'x'], [], 0, 'OUT/datagram'); breach()",
    "a, b = socket.socketpair(); l.connect(a.fileno(), b'\\1\\0OUT/socket', 90); breach(ctypes.get_errno() == 0)",
    "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW); breach()",
    "socket.socket(40, socket.SOCK_STREAM); breach()",
    "socket.socket().bind(('127.0.0.1', 0)); breach()",
    "breach(l.ptrace(16, VICTIM, 0, 0) == 0 or l.ptrace(0x4206, VICTIM, 0, 0) == 0)",
    "b = ctypes.create_string_buffer(8); v = (ctypes.c_void_p * 2)(ctypes.addressof(b), 8)\n\
     breach(l.syscall(310, VICTIM, v, 1, v, 1, 0) >= 0)",
    "breach(l.unshare(0x10000000) == 0); breach(l.unshare(0x20000) == 0)",
    "breach(l.setns(0, 0) == 0)",
    "p = l.syscall(56, 0x10000000 | 17, 0, 0, 0, 0)\nif p == 0: os._exit(0)\nbreach(p > 0)",
    "breach(l.syscall(435, 0, 0) != -1 or ctypes.get_errno() != 38)",
    "breach(l.mount(b'x', b'.', b'tmpfs', 0, None) == 0); breach(l.syscall(428, -100, b'/', 0) >= 0)",
    "breach(l.syscall(165, b'x', b'.', b'tmpfs', 0, 0) == 0); breach(l.syscall(155, b'.', b'.') == 0); breach(l.syscall(161, b'.') == 0)",
    "breach(l.syscall(321, 0, 0, 0) >= 0); breach(l.syscall(298, 0, 0, -1, -1, 0) >= 0); breach(l.syscall(323, 0) >= 0)",
    "breach(l.syscall(425, 1, b' ' * 200) >= 0); breach(l.syscall(250, 0, -3, 1) >= 0); breach(l.syscall(248, b'user', b'x', b'x', 1, -3) >= 0)",
    "breach(l.syscall(313, 0, b'', 0) == 0); breach(l.syscall(246, 0, 0, 0, 0) == 0); breach(l.syscall(169, 0, 0, 0, 0) == 0)",
    "breach(l.syscall(304, -100, b' ' * 200, 0) >= 0); breach(l.syscall(303, -100, b'OUT/secret', b' ' * 200, b' ' * 8, 0) == 0)",
    // Calls of the other ABIs of the architecture: x32.
    "breach(l.syscall(0x40000000 | 41, 2, 1, 0) >= 0); breach(l.syscall(0x40000000 | 39) >= 0)",
    // Calls that are newer than the filter.
    "breach(any(l.syscall(n, 0, 0, 0, 0, 0, 0) != -1 for n in range(463, 600)))",
    "breach(l.syscall(302, VICTIM, 7, struct.pack('QQ', 1, 1), 0) == 0); breach(l.setpriority(0, VICTIM, 19) == 0); breach(l.setpriority(2, 0, 19) == 0)",
    "breach(l.sched_setaffinity(VICTIM, 8, b'\\1' + b'\\0' * 7) == 0); breach(l.syscall(251, 1, VICTIM, 0) == 0)",
    "breach(l.fcntl(0, 8, VICTIM) == 0); breach(l.fcntl(0, 10, 9) == 0)",
    "try:\n f = l.pidfd_open(VICTIM, 0)\nexcept AttributeError: f = l.syscall(434, VICTIM, 0)\nbreach(l.syscall(424, f, 9, 0, 0) == 0); \
     breach(l.syscall(438, f, 0, 0) >= 0)",
    "breach(l.kill(VICTIM, 9) == 0 or l.syscall(200, VICTIM, 9) == 0 or l.syscall(234, VICTIM, VICTIM, 9) == 0)",
    "breach(l.kill(PARENT, 0) == 0 or l.kill(os.getppid(), 0) == 0 and os.getppid() == PARENT)",
    "os.chmod('OUT/secret', 0); os.chmod('OUT', 0); l.fchmodat(-100, b'OUT/secret', 0, 0); l.syscall(452, -100, b'OUT/secret', 0, 0)",
    "os.utime('OUT/secret', (1, 1)); os.utime('OUT', (1, 1))",
    "f = os.open('OUT/secret', os.O_PATH); os.chmod(f'/proc/self/fd/{f}', 0); l.fchmod(f, 0); l.syscall(452, f, b'', 0, 0x1000)",
    "f = os.open('OUT', os.O_PATH); print(os.open('secret', os.O_RDONLY, dir_fd=f)); breach()",
    "f = os.open('OUT/secret', os.O_PATH); print(open(f'/proc/self/fd/{f}').read())",
    "l.truncate(b'OUT/secret', 0); l.syscall(76, b'OUT/secret', 0); os.setxattr('OUT/secret', 'user.x', b'y')",
    "os.link('OUT/secret', 'x'); print(open('x').read())",
    "os.rename('OUT/secret', 'x'); os.rename('OUT/empty', 'y'); breach()",
    "open('f', 'w').write('x'); l.renameat2(-100, b'f', -100, b'OUT/secret', 2); l.renameat2(-100, b'f', -100, b'OUT/moved', 0)",
    "breach(l.syscall(253) >= 0 or l.inotify_init1(0) >= 0); breach(l.syscall(300, 0, 0) >= 0)",
    "breach(l.shmget(1, 4096, 0o1666) >= 0 or l.msgget(1, 0o1666) >= 0 or l.semget(1, 1, 0o1666) >= 0); breach(l.syscall(240, b'q', 66, 0o666, 0) >= 0)",
    "breach(l.prctl(4, 0, 0, 0, 0) == 0); breach(l.setuid(0) == 0 or l.setgid(0) == 0)",
    "breach(l.syscall(319, b'x', 0) >= 0); breach(l.syscall(447, 0) >= 0)",
    "breach(l.personality(0x0040000) != -1)",
    "for n in range(3, 256):\n try: os.fstat(n); breach()\n except OSError: pass",
    "breach(any('CAIPE' in name or 'CARGO' in name for name in os.environ))",
];

pub(crate) async fn run(landlock: u8) {
    let (volume, outside) = (directory(), Outside::new());
    let volume = ShellVolume { directory: volume.path().canonicalize().unwrap(), is_writable: true };
    let sandbox = Sandbox::with(landlock, |settings| ShellSettings { volume: Some(volume), ..settings });
    let before = outside.state();
    // The numbers of system calls are those of one architecture.
    let is_numbered = |code: &&&str| cfg!(target_arch = "x86_64") || !code.contains("syscall(");
    let python = PYTHON.iter().filter(is_numbered).map(|code| {
        let code = format!("{PRELUDE}{}", outside.fill(code)).replace('\'', "'\\''");
        format!("python3 -c '{code}'")
    });
    let commands: Vec<String> = COMMANDS.iter().map(|command| outside.fill(command)).chain(python).collect();
    assert!(commands.len() >= 100, "{}", commands.len());
    let mut failures = Vec::new();
    for command in &commands {
        let begun = Instant::now();
        let output = sandbox.run_with(command, &[("/kept", "kept")], 10.0, CancellationToken::new()).await;
        let content = &output.content;
        let shown = format!("Landlock {landlock}: {command}:\n{content}");
        let leaked = output.files.values().flatten().any(|text| text.contains(SECRET));
        let faults = [
            ("was not run", content.contains("was not run")),
            ("succeeds", content.contains("BREACH") || content.contains(SECRET) || leaked),
            ("takes too long", begun.elapsed() > PATIENCE),
            ("changes something", outside.state() != before),
        ];
        let faults = faults.iter().filter(|(_, is_true)| *is_true).map(|(fault, _)| *fault);
        failures.extend(faults.map(|fault| format!("{fault}: {shown}")));
    }
    assert!(failures.is_empty(), "{}\nbefore: {before:?}\nnow: {:?}", failures.join("\n\n"), outside.state());
    println!("shell: {} escapes fail with Landlock {landlock}", commands.len());
}

/// What commands try to reach.
struct Outside {
    directory: TempDir,
    victim: Child,
    tcp: TcpListener,
    udp: UdpSocket,
    socket: UnixListener,
    datagram: UnixDatagram,
    abstract_socket: UnixListener,
    abstract_name: String,
}

impl Drop for Outside {
    fn drop(&mut self) {
        drop((self.victim.kill(), self.victim.wait()));
    }
}

impl Outside {
    fn new() -> Self {
        let directory = directory();
        let path = directory.path();
        fs::write(path.join("secret"), format!("{SECRET}\n")).unwrap();
        fs::create_dir(path.join("empty")).unwrap();
        let socket = UnixListener::bind(path.join("socket")).unwrap();
        let datagram = UnixDatagram::bind(path.join("datagram")).unwrap();
        for name in ["secret", "empty", "socket", "datagram"] {
            fs::set_permissions(path.join(name), PermissionsExt::from_mode(0o777)).unwrap();
        }
        let abstract_name = format!("caipe-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let abstract_socket = UnixListener::bind_addr(&address).unwrap();
        let mut victim = Command::new("sleep");
        victim.arg("600").env("SECRET_OF_VICTIM", SECRET);
        if rustix::process::geteuid().is_root() {
            victim.uid(65534).gid(65534);
            // So that the files are the command's own.
            for name in ["", "secret", "empty"] {
                std::os::unix::fs::chown(path.join(name), Some(65534), Some(65534)).unwrap();
            }
        }
        let outside = Self {
            victim: victim.spawn().unwrap(),
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            socket,
            datagram,
            abstract_socket,
            abstract_name,
            directory,
        };
        outside.tcp.set_nonblocking(true).unwrap();
        outside.udp.set_nonblocking(true).unwrap();
        outside.socket.set_nonblocking(true).unwrap();
        outside.datagram.set_nonblocking(true).unwrap();
        outside.abstract_socket.set_nonblocking(true).unwrap();
        outside
    }

    fn fill(&self, command: &str) -> String {
        command
            .replace("OUT", &self.directory.path().display().to_string())
            .replace("VICTIM", &self.victim.id().to_string())
            .replace("PARENT", &std::process::id().to_string())
            .replace("TCP", &self.tcp.local_addr().unwrap().port().to_string())
            .replace("UDP", &self.udp.local_addr().unwrap().port().to_string())
            .replace("ABSTRACT", &self.abstract_name)
    }

    /// Everything that an escape could change.
    fn state(&self) -> BTreeMap<String, String> {
        let path = self.directory.path();
        let mut state = BTreeMap::from([
            ("outside".to_owned(), describe(path)),
            ("tcp".to_owned(), self.tcp.accept().is_ok().to_string()),
            ("udp".to_owned(), self.udp.recv(&mut [0; 8]).is_ok().to_string()),
            ("socket".to_owned(), self.socket.accept().is_ok().to_string()),
            ("datagram".to_owned(), self.datagram.recv(&mut [0; 8]).is_ok().to_string()),
            ("abstract socket".to_owned(), self.abstract_socket.accept().is_ok().to_string()),
            (
                "programs".to_owned(),
                format!("{} {}", describe(Path::new("/usr/bin")), describe(Path::new("/etc"))),
            ),
        ]);
        for entry in fs::read_dir(path).unwrap() {
            let entry = entry.unwrap();
            state.insert(entry.file_name().to_string_lossy().into_owned(), describe(&entry.path()));
        }
        state.insert("secret's content".to_owned(), fs::read_to_string(path.join("secret")).unwrap());
        let victim = format!("/proc/{}", self.victim.id());
        let stat = fs::read_to_string(format!("{victim}/stat")).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().collect();
        state
            .insert("victim".to_owned(), format!("alive {}, nice {}", !"ZX".contains(fields[0]), fields[16]));
        state.insert("victim's limits".to_owned(), fs::read_to_string(format!("{victim}/limits")).unwrap());
        state
    }
}

/// The state of a file, without the time of the last access.
fn describe(path: &Path) -> String {
    let it = fs::symlink_metadata(path).unwrap();
    format!(
        "{:o} {} {} {} {} {}.{} {}.{}",
        it.mode(),
        it.uid(),
        it.gid(),
        it.nlink(),
        it.size(),
        it.mtime(),
        it.mtime_nsec(),
        it.ctime(),
        it.ctime_nsec()
    )
}
