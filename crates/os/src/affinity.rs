//! On which cores a thread may run.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;

/// Cores on which the calling thread may run, by number, the lowest first.
///
/// # Errors
/// On a machine with more than 1,024 cores.
pub fn allowed_cores() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect())
}

/// Lets the calling thread, and all that it starts from now on, run on these cores only.
///
/// # Errors
/// Where this machine, or the container around this process, has none of them.
pub fn pin_to(cores: &[usize]) -> io::Result<()> {
    Cores::of(cores).take()
}

/// A set of cores, made before a fork so that the child need not allocate.
pub(crate) struct Cores(CpuSet);

impl Cores {
    /// Cores beyond what the kernel's interface can name are on no machine, and are left out.
    pub(crate) fn of(cores: &[usize]) -> Self {
        let mut set = CpuSet::new();
        cores.iter().filter(|&&core| core < CpuSet::MAX_CPU).for_each(|&core| set.set(core));
        Self(set)
    }

    /// One system call and nothing else.
    pub(crate) fn take(&self) -> io::Result<()> {
        Ok(sched_setaffinity(None, &self.0)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_stays_and_others_do_not_follow() {
        let before = allowed_cores().unwrap();
        let last = *before.last().unwrap();
        let pinned = std::thread::spawn(move || {
            pin_to(&[last]).unwrap();
            allowed_cores().unwrap()
        });
        assert_eq!(pinned.join().unwrap(), [last]);
        assert_eq!(allowed_cores().unwrap(), before);
    }

    #[test]
    fn cores_that_are_not_there_are_an_error() {
        assert!(pin_to(&[]).is_err());
        assert!(pin_to(&[1023]).is_err());
        assert!(pin_to(&[usize::MAX]).is_err());
    }
}
