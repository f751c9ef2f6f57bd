//! A thread with a table of descriptors of its own, for tests.

/// Gives the calling thread one; whether the kernel let it.
#[expect(unsafe_code, reason = "docs/decisions/0023-os.md")]
pub fn leave() -> bool {
    // SAFETY: the threads of these tests have just begun, and keep what they open to themselves.
    unsafe { pushlab_os::descriptors::copy_table() }.is_ok()
}
