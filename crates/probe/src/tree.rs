//! Finding the descendants of a process.

use crate::procfs::{ProcFile, Stat, last_pid, numbered_entries};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::io;

/// How long an unchanged process counter is believed, ns. It might have wrapped all the way round.
const TRUST_NS: u64 = 1_000_000_000;

/// Notices that something was forked, and finds new descendants.
#[derive(Debug)]
pub(crate) struct TreeWatch {
    /// `None` when `/proc/loadavg` cannot be opened: then every question is answered with "perhaps".
    load_average: Option<ProcFile>,
    last_pid: Option<u32>,
    checked_ns: Option<u64>,
    /// Whether the kernel has `/proc/PID/task/TID/children` (CONFIG_PROC_CHILDREN).
    has_children_file: bool,
    path: String,
}

impl TreeWatch {
    pub(crate) fn new() -> Self {
        let id = std::process::id();
        Self {
            load_average: ProcFile::open("/proc/loadavg").ok(),
            last_pid: None,
            checked_ns: None,
            has_children_file: std::fs::exists(format!("/proc/{id}/task/{id}/children")).unwrap_or(false),
            path: String::new(),
        }
    }

    /// Whether the tree may have grown. One small read: the kernel tells the last process number it gave out, and
    /// as long as that stands still nobody was born anywhere.
    pub(crate) fn may_have_grown(&mut self, now_ns: u64, buffer: &mut Vec<u8>) -> bool {
        let newest = match &self.load_average {
            Some(file) => file.read_record(buffer).ok().and_then(last_pid),
            None => None,
        };
        let fresh = self.checked_ns.is_some_and(|checked| now_ns.saturating_sub(checked) < TRUST_NS);
        if newest.is_some() && newest == self.last_pid && fresh {
            return false;
        }
        self.last_pid = newest;
        self.checked_ns = Some(now_ns);
        true
    }

    /// Calls `found` with every process whose parent is in `parents`; some may be known already, or gone since.
    pub(crate) fn children(
        &mut self,
        parents: &HashSet<u32>,
        buffer: &mut Vec<u8>,
        mut found: impl FnMut(u32),
    ) -> io::Result<()> {
        if !self.has_children_file {
            return children_by_parent(parents, buffer, found);
        }
        for parent in parents {
            // A child belongs to the thread that forked it, so every thread has a list of its own.
            let mut threads = Vec::new();
            let listed = numbered_entries(format!("/proc/{parent}/task"), |thread| threads.push(thread));
            if listed.is_err() {
                // It has ended meanwhile; its end is found out where processes are read.
                continue;
            }
            for thread in threads {
                self.path.clear();
                write!(self.path, "/proc/{parent}/task/{thread}/children").expect("a String takes everything");
                let Ok(file) = ProcFile::open(&self.path) else { continue };
                let Ok(text) = file.read_all(buffer) else { continue };
                let text = std::str::from_utf8(text).unwrap_or_default();
                text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).for_each(&mut found);
            }
        }
        Ok(())
    }
}

/// Without lists of children: asks every process of the machine for its parent.
fn children_by_parent(parents: &HashSet<u32>, buffer: &mut Vec<u8>, mut found: impl FnMut(u32)) -> io::Result<()> {
    numbered_entries("/proc", |pid| {
        let stat = ProcFile::open(format!("/proc/{pid}/stat"))
            .ok()
            .and_then(|file| file.read_record(buffer).ok().and_then(Stat::parse));
        if stat.is_some_and(|stat| parents.contains(&stat.ppid)) {
            found(pid);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn both_ways_find_a_child_even_of_another_thread() {
        let mut child =
            std::thread::spawn(|| Command::new("cat").stdin(Stdio::piped()).spawn().unwrap()).join().unwrap();
        let parents = HashSet::from([std::process::id()]);
        let mut buffer = Vec::new();
        let mut by_list = Vec::new();
        // While the list of one thread is read, a child may pass to it from another that ends.
        for _ in 0..10 {
            TreeWatch::new().children(&parents, &mut buffer, |pid| by_list.push(pid)).unwrap();
        }
        let mut by_parent = Vec::new();
        children_by_parent(&parents, &mut buffer, |pid| by_parent.push(pid)).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(by_list.contains(&child.id()), "{by_list:?}");
        assert!(by_parent.contains(&child.id()), "{by_parent:?}");
    }

    #[test]
    fn a_fork_is_noticed() {
        let mut watch = TreeWatch::new();
        let mut buffer = Vec::new();
        assert!(watch.may_have_grown(0, &mut buffer), "the first look always");
        Command::new("true").status().unwrap();
        assert!(watch.may_have_grown(1, &mut buffer));
        assert!(watch.may_have_grown(1 + TRUST_NS, &mut buffer), "and after a while in any case");
    }
}
