//! What the kernel lets a process hold.

use rustix::process::{Resource, getrlimit};

/// How many descriptors one table may hold. The kernel has no unlimited number of them (`fs.nr_open`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptors {
    /// Beyond which nothing is opened.
    pub soft: u64,
    /// To which the process may raise the soft limit itself.
    pub hard: u64,
}

/// The limits of this process.
pub fn descriptors() -> Descriptors {
    let limit = getrlimit(Resource::Nofile);
    Descriptors { soft: limit.current.unwrap_or(u64::MAX), hard: limit.maximum.unwrap_or(u64::MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hard_limit_is_not_below_the_soft_one() {
        let Descriptors { soft, hard } = descriptors();
        assert!(0 < soft && soft <= hard, "{soft} and {hard}");
    }
}
