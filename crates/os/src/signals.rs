//! Signals as something to wait for instead of something that strikes. rustix leaves their masks to the C library.

use crate::process::Signal;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::time::Duration;

/// Holds these signals back from the calling thread and all that it starts, for [`wait`]. To be called before any
/// thread exists.
///
/// # Errors
/// What the kernel answers; it has no reason to.
pub fn hold_back(signals: &[Signal]) -> io::Result<()> {
    set_mask(libc::SIG_BLOCK, &set(signals))
}

/// Holds no signal back any more. Async-signal-safe, and allocates nothing.
///
/// # Errors
/// What the kernel answers; it has no reason to.
pub fn let_all_through() -> io::Result<()> {
    set_mask(libc::SIG_SETMASK, &set(&[]))
}

/// Waits for any of these signals, which are held back, and takes it; `None` if none came in time.
pub fn wait(signals: &[Signal], longest: Duration) -> Option<Signal> {
    let longest = libc::timespec {
        tv_sec: longest.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: longest.subsec_nanos().into(),
    };
    // SAFETY: set and time are initialised and outlive the call, and nobody asks who sent the signal.
    let signal = unsafe { libc::sigtimedwait(&set(signals), ptr::null_mut(), &raw const longest) };
    signals.iter().copied().find(|known| known.as_raw() == signal)
}

fn set_mask(how: libc::c_int, signals: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: the set is initialised and outlives the call; the old mask is not asked for.
    match unsafe { libc::pthread_sigmask(how, signals, ptr::null_mut()) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

fn set(signals: &[Signal]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the first call initialises the whole set, the others are given a valid one.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), signal.as_raw());
        }
        set.assume_init()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_is_held_back_can_be_waited_for() {
        let signals = [Signal::USR1, Signal::USR2];
        std::thread::spawn(move || {
            hold_back(&signals).unwrap();
            assert_eq!(wait(&signals, Duration::ZERO), None);
            // SAFETY: the thread is the calling one, which holds the signal back.
            assert_eq!(unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGUSR2) }, 0);
            assert_eq!(wait(&signals, Duration::from_secs(10)), Some(Signal::USR2));
            let_all_through().unwrap();
        })
        .join()
        .unwrap();
    }
}
