//! SIGINT and SIGTERM, as something to wait for instead of something that strikes.

use pushlab_os::process::{self, Signal};
use pushlab_os::signals;
use std::time::Duration;

const ENDING: [Signal; 2] = [Signal::INT, Signal::TERM];

/// Holds both signals back from this thread and all that it starts. Call before any thread exists.
pub fn block() {
    // Refused, they strike as they do everywhere else.
    let _ = signals::hold_back(&ENDING);
}

/// Waits for either; says whether one came in time.
pub fn wait(timeout: Duration) -> bool {
    signals::wait(&ENDING, timeout).is_some()
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
