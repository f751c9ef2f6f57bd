//! Event loops with their own descriptor tables.

use pushlab_os::descriptors;
use std::os::fd::RawFd;

/// Gives the calling thread, an event loop's, a table of its own, with what it owns (`kept`) and nothing else that has a
/// peer: a listener that stays open anywhere goes on taking connections that nobody accepts, and the peer of a socket or
/// pipe would never see its end. `false` where the kernel refuses, and the table stays shared.
#[expect(unsafe_code, reason = "docs/decisions/0023-os.md")]
pub fn leave(kept: &[RawFd]) -> bool {
    // SAFETY: an event loop owns its poll, listeners and connections alone until it ends, and no other thread uses them.
    if unsafe { descriptors::copy_table() }.is_err() {
        return false;
    }
    // SAFETY: of the sockets and pipes in the process, this thread owns no others.
    unsafe { descriptors::close_copies_with_peers(kept) };
    true
}

/// Closes, in the shared table, the descriptors that event loops have taken into their own.
#[expect(unsafe_code, reason = "docs/decisions/0023-os.md")]
pub fn close_left(numbers: Vec<RawFd>) {
    // SAFETY: only threads that have left this table own them, under the same numbers in theirs.
    numbers.into_iter().for_each(|number| unsafe { descriptors::close_copy(number) });
}
