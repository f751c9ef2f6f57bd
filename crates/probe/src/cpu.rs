//! CPU time of a tree whose members come and go.
//!
//! The time of a process that has ended is found in two places, neither complete. The kernel adds it to the parent
//! that waits for it (`cutime`, `cstime`), processes included that came and went between two samples; but not when
//! the parent ignores `SIGCHLD` or has itself ended. We remember the last reading of each process, which misses what
//! it used after that. Both are counters of the same thing, so the larger one is the better one.

use crate::procfs::Stat;

/// CPU times, ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CpuTimes {
    /// All, from the process's CPU clock.
    pub(crate) total: u64,
    /// User mode, from ticks.
    pub(crate) user: u64,
    /// Kernel mode, from ticks.
    pub(crate) system: u64,
}

impl CpuTimes {
    fn plus(self, other: Self) -> Self {
        Self {
            total: self.total.saturating_add(other.total),
            user: self.user.saturating_add(other.user),
            system: self.system.saturating_add(other.system),
        }
    }

    fn max(self, other: Self) -> Self {
        Self {
            total: self.total.max(other.total),
            user: self.user.max(other.user),
            system: self.system.max(other.system),
        }
    }
}

/// One process's share of the tree's time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Account {
    own: CpuTimes,
    /// Of children that the process waited for, by the kernel's books.
    waited: CpuTimes,
    /// Of children that we saw end, by ours.
    seen: CpuTimes,
}

impl Account {
    /// Takes in a reading; `clock_ns` is the process's CPU clock, or `None` to make do with ticks.
    pub(crate) fn update(&mut self, stat: &Stat, clock_ns: Option<u64>, tick_ns: u64) {
        let ns = |ticks: u64| ticks.saturating_mul(tick_ns);
        let times = |user: u64, system: u64| CpuTimes {
            total: ns(user).saturating_add(ns(system)),
            user: ns(user),
            system: ns(system),
        };
        let mut own = times(stat.user_ticks, stat.system_ticks);
        if let Some(clock) = clock_ns {
            own.total = clock;
        }
        self.own = self.own.max(own);
        self.waited = self.waited.max(times(stat.waited_user_ticks, stat.waited_system_ticks));
    }

    /// A child of this process ended.
    pub(crate) fn inherit(&mut self, child: CpuTimes) {
        self.seen = self.seen.plus(child);
    }

    /// The process and its ended children.
    pub(crate) fn times(&self) -> CpuTimes {
        self.own.plus(self.waited.max(self.seen))
    }
}

/// The tree's sum.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// Of ended processes whose parent is not in the tree.
    orphans: CpuTimes,
    /// The last sum told, which no later one may undercut.
    told: CpuTimes,
}

impl Ledger {
    /// A process ended whose parent is not in the tree.
    pub(crate) fn retire(&mut self, times: CpuTimes) {
        self.orphans = self.orphans.plus(times);
    }

    /// The sum over `living` accounts and what has ended. It never falls: between a child's end and its parent's
    /// wait the two books may disagree for a sample, and a counter that dips would show as negative CPU.
    pub(crate) fn sum(&mut self, living: impl Iterator<Item = CpuTimes>) -> CpuTimes {
        let sum = living.fold(self.orphans, CpuTimes::plus);
        self.told = self.told.max(sum);
        self.told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: u64 = 10_000_000;

    fn stat(user: u64, waited: u64) -> Stat {
        Stat {
            state: b'S',
            ppid: 1,
            user_ticks: user,
            system_ticks: 0,
            waited_user_ticks: waited,
            waited_system_ticks: 0,
            threads: 1,
        }
    }

    #[test]
    fn a_child_that_was_waited_for_counts_once() {
        let (mut parent, mut child, mut ledger) = (Account::default(), Account::default(), Ledger::default());
        parent.update(&stat(10, 0), Some(101_000_000), TICK);
        child.update(&stat(5, 0), Some(52_000_000), TICK);
        assert_eq!(ledger.sum([parent.times(), child.times()].into_iter()).total, 153_000_000);
        // It used 8 ticks in all and was reaped: the kernel knows more than our last reading.
        parent.inherit(child.times());
        parent.update(&stat(10, 8), Some(101_000_000), TICK);
        assert_eq!(ledger.sum([parent.times()].into_iter()).total, 181_000_000);
    }

    #[test]
    fn a_child_that_nobody_waits_for_still_counts() {
        let (mut parent, mut child, mut ledger) = (Account::default(), Account::default(), Ledger::default());
        parent.update(&stat(1, 0), None, TICK);
        child.update(&stat(5, 0), None, TICK);
        parent.inherit(child.times());
        assert_eq!(
            ledger.sum([parent.times()].into_iter()),
            CpuTimes { total: 60_000_000, user: 60_000_000, system: 0 }
        );
        ledger.retire(child.times());
        assert_eq!(ledger.sum([parent.times()].into_iter()).total, 110_000_000);
    }

    #[test]
    fn the_sum_never_falls() {
        let mut ledger = Ledger::default();
        let times = |total| CpuTimes { total, user: 0, system: 0 };
        assert_eq!(ledger.sum([times(5), times(9)].into_iter()).total, 14);
        assert_eq!(ledger.sum([times(5)].into_iter()).total, 14);
        assert_eq!(ledger.sum([times(20)].into_iter()).total, 20);
    }
}
