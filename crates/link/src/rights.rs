//! The rights that network namespaces take, and how an ordinary user comes by them: in a user namespace of its own a
//! process is almighty over the namespaces it makes, and over nothing else.

use std::io::{self, Read, Write};

use pushlab_os::{files, namespace, process};

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
    if namespace::may_make_network() {
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
    let how = if namespace::may_make_network() { How::AsItIs } else { How::UserNamespace };
    let maps = Maps::of_this_process();
    let attempt = || {
        if how == How::UserNamespace {
            maps.enter()?;
        }
        Refusal::of(Step::MakeNetworkNamespace, namespace::make_network())?;
        let device = Refusal::of(Step::OpenDevice, files::open_device(tun::DEVICE))?;
        Refusal::of(Step::MakeInterface, tun::attach(&device))
    };
    match in_a_child(attempt) {
        Ok(Ok(())) => Ok(how),
        Ok(Err(refusal)) => Err(refusal.explain()),
        Err(source) => Err(LinkError::UserNamespaceRefused { step: "starting a child that tries", source }),
    }
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
        let (user, group) = process::effective_ids();
        Self { user: format!("{user} {user} 1"), group: format!("{group} {group} 1") }
    }

    /// Enters a user namespace; system calls alone, so that a forked child may call it.
    fn enter(&self) -> Result<(), Refusal> {
        Refusal::of(Step::MakeUserNamespace, namespace::make_user())?;
        Refusal::of(Step::MapUser, files::write_setting(c"/proc/self/uid_map", &self.user))?;
        // user_namespaces(7): without this a process may not map its group, lest it drop groups that shut it out.
        Refusal::of(Step::DenyGroups, files::write_setting(c"/proc/self/setgroups", "deny"))?;
        // What this process starts loses its rights with exec, and needs none: it begins inside of its namespace.
        Refusal::of(Step::MapGroup, files::write_setting(c"/proc/self/gid_map", &self.group))
    }
}

/// Runs system calls in a child that ends with them.
#[expect(unsafe_code, reason = "a fork is safe only for what its child does")]
fn in_a_child(attempt: impl FnOnce() -> Result<(), Refusal>) -> io::Result<Result<(), Refusal>> {
    let (mut ours, mut theirs) = io::pipe()?;
    // SAFETY: the child makes system calls only, allocates nothing, and ends by _exit: no lock of another thread,
    // destructor or buffer of this process is touched.
    let child = unsafe { libc::fork() };
    if child < 0 {
        return Err(io::Error::last_os_error());
    }
    if child == 0 {
        let mut answer = [0; 5];
        if let Err(refusal) = attempt() {
            answer[0] = refusal.step as u8 + 1;
            answer[1..].copy_from_slice(&refusal.errno.to_ne_bytes());
        }
        // Unheard, it is a child that died.
        let _ = theirs.write(&answer);
        // SAFETY: ends the child, without what this process wanted to do at its own end.
        unsafe { libc::_exit(0) };
    }
    drop(theirs);
    let mut answer = [0; 5];
    let read = ours.read_exact(&mut answer);
    // How it ended is not asked: it has told, or not.
    let _ = process::wait_for(child as u32);
    read?;
    let errno = i32::from_ne_bytes([answer[1], answer[2], answer[3], answer[4]]);
    Ok(match Step::ALL.get(usize::from(answer[0]).wrapping_sub(1)) {
        None => Ok(()),
        Some(&step) => Err(Refusal { step, errno }),
    })
}
