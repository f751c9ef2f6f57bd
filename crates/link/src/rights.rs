//! The rights that network namespaces take, and how an ordinary user comes by them: in a user namespace of its own a
//! process is almighty over the namespaces it makes, and over nothing else.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::error::LinkError;
use crate::tun;

/// How a process has, or would have, the rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// It has them: root, as a rule.
    AsItIs,
    /// By a user namespace.
    UserNamespace,
}

const CAP_NET_ADMIN: u32 = 12;
const CAP_SYS_ADMIN: u32 = 21;
const NEEDED: u32 = 1 << CAP_NET_ADMIN | 1 << CAP_SYS_ADMIN;
/// Settings by which systems forbid user namespaces, what forbids, and what allows.
const SWITCHES: [(&str, &str, &str, &str); 3] = [
    ("/proc/sys/user/max_user_namespaces", "user.max_user_namespaces", "0", "10000"),
    ("/proc/sys/kernel/unprivileged_userns_clone", "kernel.unprivileged_userns_clone", "0", "1"),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "kernel.apparmor_restrict_unprivileged_userns",
        "1",
        "0",
    ),
];

/// Gives this process the rights it lacks. To be called before the first thread is started, and once is enough.
///
/// Without them the process enters a user namespace in which its user and group are mapped onto themselves, so that
/// files keep their owner. It has no right there that concerns anything but the namespaces it makes.
///
/// # Errors
/// [`LinkError::Threads`], [`LinkError::UserNamespacesOff`], [`LinkError::UserNamespaceRefused`].
pub fn become_able() -> Result<How, LinkError> {
    if is_able() {
        return Ok(How::AsItIs);
    }
    let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads > 1 {
        return Err(LinkError::Threads { threads });
    }
    Maps::of_this_process().enter().map(|()| How::UserNamespace).map_err(Refusal::explain)
}

/// Whether this process has the rights or could get them, down to a TUN interface: a child tries, and nothing is left
/// of it. Any process may ask, however many threads it has.
///
/// # Errors
/// What [`become_able`], [`crate::namespace::Namespace::new`] or [`crate::network::Network::start`] would say.
pub fn check() -> Result<How, LinkError> {
    let how = if is_able() { How::AsItIs } else { How::UserNamespace };
    let maps = Maps::of_this_process();
    let attempt = || {
        if how == How::UserNamespace {
            maps.enter()?;
        }
        Refusal::of(Step::MakeNetworkNamespace, unshare(libc::CLONE_NEWNET))?;
        let device = Refusal::of(Step::OpenDevice, open(tun::DEVICE, libc::O_RDWR))?;
        Refusal::of(Step::MakeInterface, tun::attach(&device))
    };
    match in_a_child(attempt) {
        Ok(Ok(())) => Ok(how),
        Ok(Err(refusal)) => Err(refusal.explain()),
        Err(source) => Err(LinkError::UserNamespaceRefused { step: "starting a child that tries", source }),
    }
}

/// Whether the calling thread has the capabilities.
fn is_able() -> bool {
    capabilities().is_ok_and(|[low, _]| low.effective & NEEDED == NEEDED)
}

#[derive(Debug, Clone, Copy)]
#[repr(u8)]
enum Step {
    MakeUserNamespace,
    MapUser,
    DenyGroups,
    MapGroup,
    MakeNetworkNamespace,
    OpenDevice,
    MakeInterface,
}

impl Step {
    const ALL: [Self; 7] = [
        Self::MakeUserNamespace,
        Self::MapUser,
        Self::DenyGroups,
        Self::MapGroup,
        Self::MakeNetworkNamespace,
        Self::OpenDevice,
        Self::MakeInterface,
    ];
}

/// What the kernel refused: small enough for a pipe, and made without allocating.
#[derive(Debug, Clone, Copy)]
struct Refusal {
    step: Step,
    errno: i32,
}

impl Refusal {
    fn of<T>(step: Step, result: io::Result<T>) -> Result<T, Self> {
        result.map_err(|error| Self { step, errno: error.raw_os_error().unwrap_or(0) })
    }

    fn explain(self) -> LinkError {
        let source = io::Error::from_raw_os_error(self.errno);
        let step = match self.step {
            Step::MakeUserNamespace => "unshare",
            Step::MapUser => "writing uid_map",
            Step::DenyGroups => "writing setgroups",
            Step::MapGroup => "writing gid_map",
            Step::MakeNetworkNamespace => return LinkError::NamespaceRefused { source },
            Step::OpenDevice | Step::MakeInterface => {
                let refused = || LinkError::Interface { interface: tun::NAME, step: "TUN device", source };
                return tun::refusal_of_device(Some(self.errno)).unwrap_or_else(refused);
            }
        };
        for (path, setting, forbids, wanted) in SWITCHES {
            let value = std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
            if value == forbids {
                return LinkError::UserNamespacesOff { setting, value, wanted };
            }
        }
        LinkError::UserNamespaceRefused { step, source }
    }
}

/// The texts to be written, made before a fork.
struct Maps {
    user: String,
    group: String,
}

impl Maps {
    fn of_this_process() -> Self {
        // SAFETY: both only read, and cannot fail.
        let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
        Self { user: format!("{user} {user} 1"), group: format!("{group} {group} 1") }
    }

    /// Enters a user namespace; system calls alone, so that a forked child may call it.
    fn enter(&self) -> Result<(), Refusal> {
        Refusal::of(Step::MakeUserNamespace, unshare(libc::CLONE_NEWUSER))?;
        Refusal::of(Step::MapUser, write(c"/proc/self/uid_map", &self.user))?;
        // user_namespaces(7): without this a process may not map its group, lest it drop groups that shut it out.
        Refusal::of(Step::DenyGroups, write(c"/proc/self/setgroups", "deny"))?;
        // What this process starts loses its rights with exec, and needs none: it begins inside of its namespace.
        Refusal::of(Step::MapGroup, write(c"/proc/self/gid_map", &self.group))
    }
}

/// `__user_cap_data_struct` of capget(2), version 3: capabilities 0 to 31, then 32 to 63.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
struct Capabilities {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// `__user_cap_header_struct`, of the calling thread.
#[repr(C)]
struct Header {
    version: u32,
    thread: libc::c_int,
}

const HEADER: Header = Header { version: 0x2008_0522, thread: 0 };

fn capabilities() -> io::Result<[Capabilities; 2]> {
    let (mut header, mut data) = (HEADER, [Capabilities::default(); 2]);
    // SAFETY: version 3 reads and writes one header and writes two structs of data, which outlive the call.
    let result = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, data.as_mut_ptr()) };
    succeeded(result).map(|()| data)
}

fn unshare(what: libc::c_int) -> io::Result<()> {
    // SAFETY: touches no memory.
    succeeded(unsafe { libc::unshare(what) }.into())
}

/// [`std::fs::File::open`] allocates, which a forked child of a process with threads may not.
fn open(path: &CStr, flags: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: `path` ends in a zero byte, and no file is created that would need a mode.
    let raw = unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC) };
    succeeded(raw.into())?;
    // SAFETY: the kernel has just given us this descriptor, and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

fn write(path: &CStr, text: &str) -> io::Result<()> {
    let file = open(path, libc::O_WRONLY)?;
    // SAFETY: the pointer and the length are those of `text`.
    succeeded(unsafe { libc::write(file.as_raw_fd(), text.as_ptr().cast(), text.len()) } as libc::c_long)
}

fn succeeded(result: libc::c_long) -> io::Result<()> {
    if result >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Runs system calls in a child that ends with them.
fn in_a_child(attempt: impl FnOnce() -> Result<(), Refusal>) -> io::Result<Result<(), Refusal>> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for the two descriptors that pipe2 writes.
    succeeded(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }.into())?;
    // SAFETY: the kernel has just given us these descriptors, and nobody else owns them.
    let [ours, theirs] = ends.map(|raw| unsafe { OwnedFd::from_raw_fd(raw) });
    // SAFETY: the child makes system calls only, allocates nothing, and ends by _exit: no lock of another thread,
    // destructor or buffer of this process is touched.
    let child = unsafe { libc::fork() };
    succeeded(child.into())?;
    if child == 0 {
        let mut answer = [0; 5];
        if let Err(refusal) = attempt() {
            answer[0] = refusal.step as u8 + 1;
            answer[1..].copy_from_slice(&refusal.errno.to_ne_bytes());
        }
        // SAFETY: the pointer and the length are those of `answer`; _exit does not return.
        unsafe {
            libc::write(theirs.as_raw_fd(), answer.as_ptr().cast(), answer.len());
            libc::_exit(0);
        }
    }
    drop(theirs);
    let mut answer = [0; 5];
    let read = io::Read::read_exact(&mut std::fs::File::from(ours), &mut answer);
    // SAFETY: `child` is ours and not waited for yet; its status is not asked for.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    read?;
    let errno = i32::from_ne_bytes([answer[1], answer[2], answer[3], answer[4]]);
    Ok(match Step::ALL.get(usize::from(answer[0]).wrapping_sub(1)) {
        None => Ok(()),
        Some(&step) => Err(Refusal { step, errno }),
    })
}
