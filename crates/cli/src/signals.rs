//! SIGINT and SIGTERM, as something to wait for instead of something that strikes; and SIGPIPE.

use std::time::Duration;

/// Blocks both signals in this thread and all that it starts. Call before any thread exists.
pub fn block() {
    let set = set();
    // SAFETY: `set` is an initialised signal set, and no old mask is asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
}

/// Lets a closed pipe end this process, as other commands do whose output goes to `head`. Not for a process that
/// measures or serves: there a peer's closed socket would end it, too.
pub fn end_with_closed_pipe() {
    // SAFETY: no handler is installed, the default is asked for again, which Rust's start changed.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Waits for either; says whether one came in time.
pub fn wait(timeout: Duration) -> bool {
    let set = set();
    let timeout = libc::timespec { tv_sec: timeout.as_secs() as libc::time_t, tv_nsec: timeout.subsec_nanos().into() };
    // SAFETY: set and timeout are initialised, and no details are asked for.
    let signal = unsafe { libc::sigtimedwait(&raw const set, std::ptr::null_mut(), &raw const timeout) };
    signal > 0
}

/// Sends this process SIGINT once its standard input has ended: for one that another process started, which may be
/// killed. Call after [`block`].
pub fn interrupt_at_end_of_input() {
    std::thread::spawn(|| {
        // What comes is nothing to us, and an error is an end too.
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        // SAFETY: kill touches no memory, and the process is this one.
        unsafe { libc::kill(libc::getpid(), libc::SIGINT) };
    });
}

fn set() -> libc::sigset_t {
    // SAFETY: sigemptyset initialises the whole set; sigaddset only changes it.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGINT);
        libc::sigaddset(&raw mut set, libc::SIGTERM);
        set
    }
}
