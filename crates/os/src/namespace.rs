//! Namespaces of the calling thread (namespaces(7)), and the rights that they take.
//!
//! Each of these is one system call and allocates nothing, so that a forked child may call it.

use rustix::thread::{CapabilitySet, LinkNameSpaceType, UnshareFlags, capabilities, move_into_link_name_space};
use std::io;
use std::os::fd::AsFd;

/// Puts the calling thread into the network namespace of a descriptor. Namespaces of other threads stay what they are;
/// those of threads and processes that it starts follow.
///
/// # Errors
/// `EPERM` without CAP_SYS_ADMIN, `EINVAL` for a descriptor of something else.
pub fn enter_network(namespace: impl AsFd) -> io::Result<()> {
    Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?)
}

/// Puts the calling thread into a new network namespace, in which there is loopback alone, and that is down.
///
/// # Errors
/// `EPERM` without CAP_SYS_ADMIN.
pub fn make_network() -> io::Result<()> {
    unshare(UnshareFlags::NEWNET)
}

/// Puts the calling process, which must have one thread, into a new user namespace. It has all rights over it, and
/// over nothing else.
///
/// # Errors
/// `EINVAL` with further threads; `EPERM` or `ENOSPC` where the system forbids it.
pub fn make_user() -> io::Result<()> {
    unshare(UnshareFlags::NEWUSER)
}

/// Whether the calling thread may make network namespaces and set them up: CAP_SYS_ADMIN and CAP_NET_ADMIN.
pub fn may_make_network() -> bool {
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN;
    capabilities(None).is_ok_and(|held| held.effective.contains(needed))
}

fn unshare(what: UnshareFlags) -> io::Result<()> {
    // SAFETY: only UnshareFlags::FILES is unsafe, and no caller above passes it.
    unsafe { rustix::thread::unshare_unsafe(what) }?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    const OWN: &str = "/proc/thread-self/ns/net";

    #[test]
    fn only_namespaces_can_be_entered() {
        assert!(enter_network(File::open("/").unwrap()).is_err());
    }

    #[test]
    fn a_thread_goes_into_its_own_network_and_back() {
        if !may_make_network() {
            return;
        }
        let read = || std::fs::read_link(OWN).unwrap();
        std::thread::spawn(move || {
            let (home, before) = (File::open(OWN).unwrap(), read());
            make_network().unwrap();
            assert_ne!(read(), before);
            enter_network(&home).unwrap();
            assert_eq!(read(), before);
        })
        .join()
        .unwrap();
    }
}
