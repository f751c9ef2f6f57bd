//! How long the link's thread has to wait for a core.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// How long a thread had to wait for a core.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CoreWait {
    /// Time in which it had work and another thread had the core, ns.
    pub waited_ns: u64,
    /// How often it was given a core.
    pub turns: u64,
}

/// Where the kernel tells a thread's [`CoreWait`].
#[derive(Debug)]
pub struct CoreWaits(Option<File>);

impl CoreWaits {
    /// The calling thread's.
    pub fn of_this_thread() -> Self {
        Self(File::open("/proc/thread-self/schedstat").ok())
    }

    /// So far; `None` when the thread has ended, and on a kernel without scheduler statistics.
    pub fn read(&self) -> Option<CoreWait> {
        let mut text = [0; 128];
        let length = self.0.as_ref()?.read_at(&mut text, 0).ok()?;
        parse(std::str::from_utf8(&text[..length]).ok()?)
    }
}

/// Three numbers: time on a core, time waited for one, times given one (sched-stats.rst of the kernel).
fn parse(schedstat: &str) -> Option<CoreWait> {
    let mut numbers = schedstat.split_ascii_whitespace().skip(1).map(str::parse);
    Some(CoreWait { waited_ns: numbers.next()?.ok()?, turns: numbers.next()?.ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_read() {
        assert_eq!(parse("12 34 5\n"), Some(CoreWait { waited_ns: 34, turns: 5 }));
        assert_eq!(parse("12 34"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn a_thread_that_runs_has_had_turns() {
        let waits = CoreWaits::of_this_thread();
        let before = waits.read();
        std::thread::yield_now();
        assert!(waits.read().is_none_or(|after| before.is_some_and(|before| after.turns >= before.turns)));
    }
}
