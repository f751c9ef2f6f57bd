// Forks, and what only a test does to a machine: mounts, devices, another user.
#![allow(unsafe_code)]

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::linux::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::time::{Duration, Instant};

use pushlab_link::error::LinkError;
use pushlab_link::namespace::Namespace;
use pushlab_link::network::{Network, NetworkConfig};
use pushlab_link::rights::{How, become_able, check};
use pushlab_os::process::{self, Signal};

use crate::traffic::{exchange, network, pair, profile};

const NOBODY: u32 = 65_534;
const DEADLINE: Duration = Duration::from_secs(10);

/// Runs `work` in a child of this process, which has no threads now.
fn fork(work: impl FnOnce()) -> u32 {
    // SAFETY: this process has one thread, so the child's memory is as consistent as the parent's.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork: {}", io::Error::last_os_error());
    if child == 0 {
        let code = i32::from(catch_unwind(AssertUnwindSafe(work)).is_err());
        // SAFETY: ends the child, without what the parent wanted to do at its own end.
        unsafe { libc::_exit(code) };
    }
    child as u32
}

fn done(result: libc::c_int, what: &str) {
    assert_eq!(result, 0, "{what}: {}", io::Error::last_os_error());
}

/// Runs `work` as a user without rights, on a machine whose TUN device has this mode; the real one is not touched.
/// Without root the tests are run by such a user already, and on the machine as it is.
fn as_nobody(device_mode: Option<u32>, work: impl FnOnce()) {
    if !process::is_root() {
        println!("  left out: it takes root to become somebody else");
        return;
    }
    let child = fork(|| {
        let (none, tmpfs) = (std::ptr::null(), c"tmpfs".as_ptr());
        // SAFETY: the strings end in zero bytes and outlive the calls; null where the kernel wants nothing.
        unsafe {
            done(libc::unshare(libc::CLONE_NEWNS), "unshare");
            done(libc::mount(none, c"/".as_ptr(), none, libc::MS_REC | libc::MS_PRIVATE, none.cast()), "private");
            done(libc::mount(tmpfs, c"/dev/net".as_ptr(), tmpfs, 0, c"mode=755".as_ptr().cast()), "tmpfs");
            if let Some(mode) = device_mode {
                done(libc::mknod(c"/dev/net/tun".as_ptr(), libc::S_IFCHR, libc::makedev(10, 200)), "mknod");
                done(libc::chmod(c"/dev/net/tun".as_ptr(), mode), "chmod");
            }
            done(libc::setgroups(0, std::ptr::null()), "setgroups");
            done(libc::setgid(NOBODY), "setgid");
            done(libc::setuid(NOBODY), "setuid");
            // A process that changed its user without exec may not write to its own /proc files.
            done(libc::prctl(libc::PR_SET_DUMPABLE, 1), "dumpable");
        }
        work();
    });
    assert!(process::wait_for(child).unwrap(), "see above what failed in the child");
}

pub fn an_ordinary_user_has_a_network() {
    as_nobody(Some(0o666), || {
        assert!(matches!(Namespace::new(), Err(LinkError::NamespaceRefused { .. })));
        assert_eq!(check().unwrap(), How::UserNamespace);
        assert_eq!(become_able().unwrap(), How::UserNamespace);
        assert_eq!(become_able().unwrap(), How::AsItIs);
        assert_eq!(check().unwrap(), How::AsItIs);
        let network = network(profile("local"), 1);
        let (subject, load) = pair(&network);
        assert_eq!(exchange(&subject, &load, 50, 8, 2000.0).len(), 50);
        // Files are still one's own, and a child begins in a namespace without a right over it.
        assert_eq!(fs::metadata("/proc/self/stat").unwrap().st_uid(), NOBODY);
        let mut command = Command::new("cat");
        network.load().give_to(command.args(["/proc/self/status", "/proc/net/dev"]));
        let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
        assert!(output.contains("pushlab0"), "{output}");
        let effective = output.lines().find_map(|line| line.strip_prefix("CapEff:\t")).unwrap();
        assert_eq!(u64::from_str_radix(effective, 16).unwrap(), 0, "what is started has no rights of its own");
    });
}

pub fn a_closed_device_is_reported() {
    as_nobody(Some(0o600), || {
        assert!(matches!(check(), Err(LinkError::TunForbidden)));
        become_able().unwrap();
        let config =
            NetworkConfig { profile: profile("local"), seed: 1, cores: None, ack_delay_ms: None, capture: None };
        assert!(matches!(Network::start(config), Err(LinkError::TunForbidden)));
    });
    as_nobody(None, || assert!(matches!(check(), Err(LinkError::TunMissing))));
    as_nobody(Some(0o666), || {
        // This setting is of the user namespace that one is in, so the machine's own stays.
        become_able().unwrap();
        fs::write("/proc/sys/user/max_user_namespaces", "0").unwrap();
        let header = [0x2008_0522_u32, 0];
        // SAFETY: version 3 reads one header of two words and two structs of three words, which outlive the call.
        let result = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), [0_u32; 6].as_ptr()) };
        assert_eq!(result, 0);
        for error in [check().unwrap_err(), become_able().unwrap_err()] {
            assert!(matches!(error, LinkError::UserNamespacesOff { .. }), "{error}");
            assert!(error.to_string().contains("sysctl -w user.max_user_namespaces=10000"), "{error}");
        }
    });
}

pub fn a_process_with_threads_is_told() {
    as_nobody(Some(0o666), || {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let thread = std::thread::spawn(move || (&theirs).read(&mut [0]).map(drop));
        assert!(matches!(become_able(), Err(LinkError::Threads { threads: 2 })));
        assert_eq!(check().unwrap(), How::UserNamespace);
        drop(ours);
        thread.join().unwrap().unwrap();
    });
}

/// Whether any process of this machine is in this namespace, or has it open.
fn is_known(inode: u64) -> bool {
    let name = format!("net:[{inode}]");
    let below = |folder: &std::path::Path| fs::read_dir(folder).into_iter().flatten().flatten();
    below("/proc".as_ref()).any(|process| {
        let links = below(&process.path().join("task")).map(|task| task.path().join("ns/net"));
        let mut links = links.chain(below(&process.path().join("fd")).map(|file| file.path()));
        links.any(|link| fs::read_link(link).is_ok_and(|target| target.as_os_str() == name.as_str()))
    })
}

pub fn nothing_remains_of_a_killed_process() {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let child = fork(|| {
        let network = network(profile("4g"), 1);
        for namespace in [network.subject(), network.load()] {
            (&theirs).write_all(&namespace.file().metadata().unwrap().st_ino().to_ne_bytes()).unwrap();
        }
        let (subject, _load) = pair(&network);
        loop {
            subject.send(b"0123").unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    drop(theirs);
    let mut inodes = [0; 2];
    for inode in &mut inodes {
        let mut bytes = [0; 8];
        ours.read_exact(&mut bytes).unwrap();
        *inode = u64::from_ne_bytes(bytes);
    }
    assert!(inodes.iter().all(|&inode| is_known(inode)), "the child's namespaces cannot be seen");
    process::send(child, Signal::KILL).unwrap();
    assert!(!process::wait_for(child).unwrap());
    let deadline = Instant::now() + DEADLINE;
    while inodes.iter().any(|&inode| is_known(inode)) {
        assert!(Instant::now() < deadline, "a namespace is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!fs::read_to_string("/proc/net/dev").unwrap().contains("pushlab0"));
}

pub fn namespaces_have_their_own_settings() {
    let read = || fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
    let before = read();
    let namespace = Namespace::new().unwrap();
    let inside = namespace.in_it(read).unwrap();
    assert_eq!(inside.split_ascii_whitespace().collect::<Vec<_>>(), ["1024", "65535"]);
    assert_eq!(read(), before);
    let bound = namespace.in_it(|| ["127.0.0.1:80", "[::1]:80"].map(std::net::TcpListener::bind)).unwrap();
    assert!(bound.iter().all(Result::is_ok), "loopback is not whole: {bound:?}");
}

/// Nothing of a network is left in this process once it ends, nor of one that could not be started.
pub fn a_network_that_ended_leaves_nothing() {
    let count = |folder: &str| fs::read_dir(folder).unwrap().count();
    let before = (count("/proc/self/task"), count("/proc/self/fd"));
    let config =
        NetworkConfig { profile: profile("4g"), seed: 1, cores: Some(vec![1023]), ack_delay_ms: None, capture: None };
    assert!(matches!(Network::start(config), Err(LinkError::Thread { .. })));
    network(profile("4g"), 1).finish().unwrap();
    drop(network(profile("4g"), 1));
    assert_eq!((count("/proc/self/task"), count("/proc/self/fd")), before);
}

pub fn commands_start_inside() {
    let network = network(profile("local"), 1);
    let mut command = Command::new("cat");
    network.subject().give_to(command.arg("/proc/net/dev"));
    assert!(String::from_utf8(command.output().unwrap().stdout).unwrap().contains("pushlab0"));
    assert!(pushlab_os::namespace::enter_network(File::open("/").unwrap()).is_err());
}
