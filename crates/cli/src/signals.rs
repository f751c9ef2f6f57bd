//! SIGINT and SIGTERM, and for some SIGHUP, as something to wait for instead of something that strikes.

use pushlab_os::process::{self, Signal};
use pushlab_os::signals;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const ENDING: [Signal; 2] = [Signal::INT, Signal::TERM];

/// The system tells of a signal once, and who asks next wants to know as well.
static HAS_COME: AtomicBool = AtomicBool::new(false);

/// Holds both signals back from this thread and all that it starts. Call before any thread exists.
pub fn block() {
    // Refused, they strike as they do everywhere else.
    let _ = signals::hold_back(&ENDING);
}

/// Waits for either, unless one has come before; says whether one came in time.
pub fn wait(timeout: Duration) -> bool {
    let has_come = HAS_COME.load(Ordering::Relaxed) || signals::wait(&ENDING, timeout).is_some();
    HAS_COME.store(has_come, Ordering::Relaxed);
    has_come
}

/// Whether one has come.
pub fn has_come() -> bool {
    wait(Duration::ZERO)
}

/// Holds SIGHUP back too, for [`wait_as_server`]. Call before any thread exists.
pub fn block_hangup() {
    // Refused, it ends the process as it does everywhere else.
    let _ = signals::hold_back(&[Signal::HUP]);
}

/// What a signal asks of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// To stop.
    Stop,
    /// To read its files again.
    Reload,
}

/// Waits for a signal; says what one that came in time asks for. SIGHUP is waited for if it `reloads`, where
/// [`block_hangup`] holds it back; elsewhere this wait must not swallow it.
pub fn wait_as_server(reloads: bool, timeout: Duration) -> Option<Wish> {
    let awaited: &[Signal] = if reloads { &[Signal::INT, Signal::TERM, Signal::HUP] } else { &ENDING };
    signals::wait(awaited, timeout).map(|signal| if signal == Signal::HUP { Wish::Reload } else { Wish::Stop })
}

/// Sends this process SIGINT once its standard input has ended: for one that another process started, which may be
/// killed. Call after [`block`].
pub fn interrupt_at_end_of_input() {
    std::thread::spawn(|| {
        // What comes is nothing to us, and an error is an end too.
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        // A process may always signal itself.
        let _ = process::send(std::process::id(), Signal::INT);
    });
}
