//! Randomness that nobody can guess (getrandom(2)).

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use std::io;

/// So many random bytes. A system call of less than a microsecond.
///
/// # Errors
/// Where a sandbox forbids the call.
pub fn bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Ok(more) => filled += more,
            // More than 256 bytes may come in parts, and a signal may interrupt the wait for the first after a boot.
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_differ() {
        assert_ne!(bytes::<16>().unwrap(), bytes::<16>().unwrap());
        let many = bytes::<4096>().unwrap();
        assert!((0..=255).all(|value| many.contains(&value)), "each of 256 values is missing with probability 1e-7");
        assert_eq!(bytes::<0>().unwrap(), []);
    }
}
