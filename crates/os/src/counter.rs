//! Counters of the processor, by perf_event_open(2).

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::FromRawFd as _;

/// `PERF_TYPE_HARDWARE` and `PERF_COUNT_HW_CACHE_MISSES`.
const CACHE_MISSES: (u32, u64) = (0, 3);
/// `PERF_ATTR_SIZE_VER0`, which every kernel knows.
const ATTRIBUTE_BYTES: u32 = 64;
/// The bits `inherit` and `exclude_hv` of `struct perf_event_attr`.
const FLAGS: u64 = 1 << 1 | 1 << 6;

/// Misses of the last cache, in the program and in the kernel for it, by one thread and those that it starts.
pub struct CacheMisses(File);

impl CacheMisses {
    /// Counts from now on.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] where the processor, or the virtual machine, has no such counter;
    /// [`io::ErrorKind::PermissionDenied`] where `kernel.perf_event_paranoid` forbids it.
    pub fn of_thread(thread: u32) -> io::Result<Self> {
        let thread = libc::pid_t::try_from(thread).map_err(io::Error::other)?;
        let mut attribute = [0u64; ATTRIBUTE_BYTES as usize / 8];
        let (kind, event) = CACHE_MISSES;
        let mut head = [0; 8];
        head[..4].copy_from_slice(&kind.to_ne_bytes());
        head[4..].copy_from_slice(&ATTRIBUTE_BYTES.to_ne_bytes());
        attribute[0] = u64::from_ne_bytes(head);
        attribute[1] = event;
        attribute[5] = FLAGS;
        let (any_core, no_group, flags): (libc::c_int, libc::c_int, libc::c_ulong) = (-1, -1, 1 << 3);
        // SAFETY: the attribute has the size that it tells; the kernel only reads it.
        let number =
            unsafe { libc::syscall(libc::SYS_perf_event_open, attribute.as_ptr(), thread, any_core, no_group, flags) };
        let number = libc::c_int::try_from(number).map_err(io::Error::other)?;
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just made this descriptor, and nobody else has it.
        Ok(Self(unsafe { File::from_raw_fd(number) }))
    }

    /// How many so far.
    ///
    /// # Errors
    /// As reading a file.
    pub fn read(&self) -> io::Result<u64> {
        let mut count = [0; 8];
        (&self.0).read_exact(&mut count)?;
        Ok(u64::from_ne_bytes(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misses_are_counted_or_the_reason_is_told() {
        match CacheMisses::of_thread(std::process::id()) {
            Ok(misses) => assert!(misses.read().unwrap() <= misses.read().unwrap()),
            Err(e) => assert!(e.raw_os_error().is_some(), "{e}"),
        }
    }
}
