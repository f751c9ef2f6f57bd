//! Context switches of all threads of a process, those that have ended included.

use crate::procfs::{ProcFile, labelled, numbered_entries};
use std::fmt::Write as _;
use std::io;

/// Context switches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) voluntary: u64,
    pub(crate) involuntary: u64,
}

impl Count {
    pub(crate) fn add(&mut self, other: Count) {
        self.voluntary = self.voluntary.saturating_add(other.voluntary);
        self.involuntary = self.involuntary.saturating_add(other.involuntary);
    }
}

/// The kernel keeps the counts by thread (`/proc/PID/task/TID/status`), and drops them with it, so the last reading
/// of each is remembered. A thread that lives and ends between two readings is missed.
#[derive(Debug, Default)]
pub(crate) struct Switches {
    /// By thread number, ascending.
    living: Vec<(u32, Count)>,
    ended: Count,
}

impl Switches {
    /// Reads every thread.
    ///
    /// # Errors
    /// What the kernel says when the threads cannot be listed.
    pub(crate) fn read(&mut self, pid: u32, buffer: &mut Vec<u8>) -> io::Result<()> {
        let mut threads = Vec::new();
        numbered_entries(format!("/proc/{pid}/task"), |thread| threads.push(thread))?;
        threads.sort_unstable();
        let mut path = String::new();
        let mut now = Vec::with_capacity(threads.len());
        for thread in threads {
            path.clear();
            write!(path, "/proc/{pid}/task/{thread}/status").expect("a String takes everything");
            // A thread that has ended since it was listed is treated as if it had not been listed.
            let Ok(file) = ProcFile::open(&path) else { continue };
            let Ok(text) = file.read_all(buffer) else { continue };
            if let Some(count) = parse(text) {
                now.push((thread, count));
            }
        }
        self.replace(now);
        Ok(())
    }

    fn replace(&mut self, now: Vec<(u32, Count)>) {
        for (thread, last) in &self.living {
            let again = now.binary_search_by_key(thread, |entry| entry.0).ok().map(|index| now[index].1);
            // A number given to another thread starts over.
            if again.is_none_or(|count| count.voluntary < last.voluntary || count.involuntary < last.involuntary) {
                self.ended.add(*last);
            }
        }
        self.living = now;
    }

    /// Switches of the process so far.
    pub(crate) fn total(&self) -> Count {
        let mut total = self.ended;
        self.living.iter().for_each(|(_, count)| total.add(*count));
        total
    }
}

fn parse(status: &[u8]) -> Option<Count> {
    Some(Count {
        voluntary: labelled(status, "voluntary_ctxt_switches")?,
        involuntary: labelled(status, "nonvoluntary_ctxt_switches")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(voluntary: u64, involuntary: u64) -> Count {
        Count { voluntary, involuntary }
    }

    #[test]
    fn ended_threads_and_reused_numbers_are_kept() {
        let mut switches = Switches::default();
        switches.replace(vec![(1, count(10, 1)), (2, count(20, 2))]);
        assert_eq!(switches.total(), count(30, 3));
        switches.replace(vec![(1, count(11, 1))]);
        assert_eq!(switches.total(), count(31, 3));
        switches.replace(vec![(1, count(3, 0))]);
        assert_eq!(switches.total(), count(34, 3));
    }

    #[test]
    fn own_switches_are_read_and_grow() {
        let (mut switches, mut buffer) = (Switches::default(), Vec::new());
        switches.read(std::process::id(), &mut buffer).unwrap();
        let first = switches.total();
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || receiver.recv().is_err());
        drop(sender);
        thread.join().unwrap();
        switches.read(std::process::id(), &mut buffer).unwrap();
        assert!(switches.total().voluntary >= first.voluntary);
        assert!(first.voluntary + first.involuntary > 0);
        assert!(switches.read(0x7fff_fff0, &mut buffer).is_err());
    }
}
