//! Tables of descriptors: the limit of descriptors counts for each table, and a thread may have one of its own.

use std::cmp::Ordering;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::FileTypeExt as _;

const FIRST_NOT_STANDARD: RawFd = libc::STDERR_FILENO + 1;
/// `KCMP_FILES` of linux/kcmp.h.
const KCMP_FILES: libc::c_int = 2;

/// Gives the calling thread a copy of its table of descriptors. What is opened or closed in one table from now on, is
/// not in the other.
///
/// # Errors
/// When there is no memory for it.
///
/// # Safety
/// What owns or borrows a descriptor does not go to or from this thread any more, and what was there before is used and closed
/// on one side alone.
pub unsafe fn copy_table() -> io::Result<()> {
    // SAFETY: every number stands for the same file as before, in both tables; for later ones the caller vouches.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::FILES) }?;
    Ok(())
}

/// Gives the calling thread a table of its own that is empty but for standard input, output and error, and one more
/// descriptor if asked to, which stays open under its number.
///
/// What other threads close afterwards is closed for good.
///
/// # Errors
/// When the kernel is older than 5.9.
///
/// # Safety
/// The calling thread neither owns nor borrows a descriptor but `kept`, and none goes to or from it any more.
pub unsafe fn empty_table(kept: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let close = |first: RawFd, last: libc::c_uint| {
        // SAFETY: with CLOSE_RANGE_UNSHARE only this thread's own new table is touched, and the caller says that no value of
        // this thread owns what is closed there.
        let code = unsafe { libc::close_range(first as libc::c_uint, last, libc::CLOSE_RANGE_UNSHARE as libc::c_int) };
        if code < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    };
    match kept.map(|kept| kept.as_raw_fd()).filter(|&kept| kept >= FIRST_NOT_STANDARD) {
        None => close(FIRST_NOT_STANDARD, libc::c_uint::MAX),
        Some(kept) => {
            if kept > FIRST_NOT_STANDARD {
                close(FIRST_NOT_STANDARD, kept as libc::c_uint - 1)?;
            }
            close(kept + 1, libc::c_uint::MAX)
        }
    }
}

/// Closes all sockets and pipes in the calling thread's table but those `kept` and the standard streams. For a table from
/// [`copy_table`]: its copies of what other threads use would keep connections open that those close.
///
/// Without `/proc` nothing is closed.
///
/// # Safety
/// In this thread's table, no value owns or borrows a socket or a pipe but those `kept`.
pub unsafe fn close_copies_with_peers(kept: &[RawFd]) {
    // `/proc/self` would be the table of the process's first thread.
    for entry in fs::read_dir("/proc/thread-self/fd").into_iter().flatten().flatten() {
        let number = entry.file_name().to_str().and_then(|name| name.parse::<RawFd>().ok());
        let Some(number) = number.filter(|&number| number >= FIRST_NOT_STANDARD && !kept.contains(&number)) else {
            continue;
        };
        // Not of the entry, which is a link, but of what it leads to.
        let kind = fs::metadata(entry.path()).map(|found| found.file_type());
        if kind.is_ok_and(|kind| kind.is_socket() || kind.is_fifo()) {
            // SAFETY: it is a socket or a pipe, and not kept.
            unsafe { close_copy(number) };
        }
    }
}

/// Closes a descriptor in the calling thread's table that is a copy of one in another thread's table, which goes on
/// being used there.
///
/// # Safety
/// No value owns or borrows it in this thread's table.
pub unsafe fn close_copy(number: RawFd) {
    // SAFETY: the caller says that no value owns it in this table; a number that is not open is an error.
    unsafe { libc::close(number) };
}

/// A descriptor of one's own for what the program was started with under a number.
///
/// # Errors
/// When nothing is open under that number.
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    if number < 0 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: a number that is no open descriptor is an error of the call below, and nothing here closes it.
    unsafe { BorrowedFd::borrow_raw(number) }.try_clone_to_owned()
}

/// The sockets that a service manager gave to this process as it started it (sd_listen_fds(3)), none if it gave none, or to
/// another process. They are its own from then on: to be called once.
///
/// # Errors
/// When what the environment says is not so.
pub fn activated() -> io::Result<Vec<OwnedFd>> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<RawFd>().ok();
    if number("LISTEN_PID").and_then(|pid| u32::try_from(pid).ok()) != Some(std::process::id()) {
        return Ok(Vec::new());
    }
    let own = |number| {
        // A copy is not inherited by children, as the original is.
        let copy = inherited(number)?;
        // SAFETY: whoever started the process left it to whoever asks for it first, and that is here.
        unsafe { close_copy(number) };
        Ok(copy)
    };
    (0..number("LISTEN_FDS").unwrap_or(0)).map(|index| own(FIRST_NOT_STANDARD + index)).collect()
}

/// kcmp(2): the order of two threads' tables, which is arbitrary but the same for all. `None` when one is gone, or we
/// may not know.
pub fn compare_tables(a: u32, b: u32) -> Option<Ordering> {
    let unused: libc::c_ulong = 0;
    // SAFETY: kcmp takes five integers and touches no memory of ours; KCMP_FILES ignores the last two.
    let order =
        unsafe { libc::syscall(libc::SYS_kcmp, a as libc::pid_t, b as libc::pid_t, KCMP_FILES, unused, unused) };
    match order {
        0 => Some(Ordering::Equal),
        1 => Some(Ordering::Less),
        2 => Some(Ordering::Greater),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd as _;
    use std::thread;

    #[test]
    fn an_empty_table_has_what_is_kept_and_takes_more() {
        let kept = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, number) = (kept.local_addr().unwrap(), kept.as_raw_fd());
        thread::scope(|scope| {
            let alone = scope.spawn(|| {
                // SAFETY: this thread has just begun, and uses nothing else of the test's.
                unsafe { empty_table(Some(kept.as_fd())) }.unwrap();
                let listed = fs::read_dir("/proc/thread-self/fd").unwrap();
                let numbers =
                    listed.map(|entry| entry.unwrap().file_name().to_str().unwrap().parse::<RawFd>().unwrap());
                // The listing itself has a descriptor while it lasts.
                assert!(numbers.filter(|&open| open >= FIRST_NOT_STANDARD && open != number).count() <= 1);
                assert_eq!(kept.local_addr().unwrap(), address);
                TcpStream::connect(address).unwrap().local_addr().unwrap()
            });
            assert_ne!(alone.join().unwrap(), address);
        });
        thread::spawn(|| {
            // SAFETY: this thread has just begun.
            unsafe { empty_table(None) }.unwrap();
            assert!(TcpListener::bind("127.0.0.1:0").is_ok());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_copied_table_keeps_no_connection_open() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut accepted, _) = listener.accept().unwrap();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let kept = listener.as_raw_fd();
        let (client_number, own) = (client.as_raw_fd(), std::process::id());
        let other = thread::spawn(move || {
            // SAFETY: this thread owns none of them, and asks by number what is open.
            unsafe {
                copy_table().unwrap();
                close_copies_with_peers(&[kept]);
            }
            assert!(inherited(kept).is_ok() && inherited(client_number).is_err() && inherited(-1).is_err());
            ready.send(rustix::thread::gettid().as_raw_nonzero().get() as u32).unwrap();
            let _ = ended.recv();
        });
        let thread = is_ready.recv().unwrap();
        // Where comparing is permitted at all.
        if compare_tables(own, own).is_some() {
            assert!(compare_tables(own, thread).is_some_and(Ordering::is_ne));
        }
        drop(client);
        assert_eq!(accepted.read(&mut [0]).unwrap(), 0, "the peer sees the end although the other thread lives");
        drop(end);
        other.join().unwrap();
    }
}
