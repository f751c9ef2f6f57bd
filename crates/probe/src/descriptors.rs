//! How many descriptors a process holds, without listing them where the kernel allows.

use crate::procfs::numbered_entries;
use pushlab_os::descriptors::compare_tables;
use pushlab_os::files::open_directory_for_metadata;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Threads up to which each is asked whether it has a descriptor table of its own. Above, the main thread's table
/// stands for all: comparing costs a system call for each thread and more.
pub(crate) const COMPARED_THREADS_MAX: u32 = 64;

/// How long an answer about tables is believed while the number of threads stands still, ns. Comparing 64 threads
/// takes about half a millisecond.
const COMPARISON_TRUST_NS: u64 = 1_000_000_000;

/// `/proc/PID/fd`, kept open.
#[derive(Debug)]
pub(crate) struct FdDir {
    pid: u32,
    /// One thread for each table besides the main thread's, as last compared.
    separate: Vec<u32>,
    /// Number of threads, and instant, of the last comparison.
    compared: Option<(u32, u64)>,
    /// Or why it cannot be opened, which every count then repeats.
    dir: Result<File, io::ErrorKind>,
}

impl FdDir {
    pub(crate) fn open(pid: u32) -> Self {
        let path = format!("/proc/{pid}/fd");
        let dir = open_directory_for_metadata(path);
        Self { pid, separate: Vec::new(), compared: None, dir: dir.map_err(|error| error.kind()) }
    }

    /// Open descriptors of the process, over all its descriptor tables. `fast` says that the kernel tells the
    /// number as the directory's size.
    /// A thread that leaves the common table without a change in the number of threads is noticed within a second.
    ///
    /// # Errors
    /// What the kernel says, mostly that the process belongs to another user.
    pub(crate) fn count(&mut self, threads: u32, fast: bool, now_ns: u64) -> io::Result<u64> {
        let dir = self.dir.as_ref().map_err(|kind| *kind)?;
        let main = if fast { dir.metadata()?.size() } else { list(format!("/proc/{}/fd", self.pid))? };
        if !(2..=COMPARED_THREADS_MAX).contains(&threads) {
            return Ok(main);
        }
        let believed = |(then, at_ns)| then == threads && now_ns.saturating_sub(at_ns) < COMPARISON_TRUST_NS;
        if !self.compared.is_some_and(believed) {
            self.separate = self.separate_threads()?;
            self.compared = Some((threads, now_ns));
        }
        let mut others = 0;
        for thread in &self.separate {
            let path = format!("/proc/{}/task/{thread}/fd", self.pid);
            let counted = if fast { std::fs::metadata(path).map(|found| found.size()) } else { list(path) };
            // A thread may end between listing and counting; its table ends with it.
            others += counted.unwrap_or(0);
        }
        Ok(main + others)
    }

    /// One thread for each descriptor table besides the main thread's: those that left it by `unshare(CLONE_FILES)`.
    /// Empty when the kernel does not let us compare.
    fn separate_threads(&self) -> io::Result<Vec<u32>> {
        // Sorted by the kernel's order of tables, so each thread takes about log n comparisons.
        let mut tables = vec![self.pid];
        let mut threads = Vec::new();
        numbered_entries(format!("/proc/{}/task", self.pid), |thread| threads.push(thread))?;
        for thread in threads.into_iter().filter(|thread| *thread != self.pid) {
            let mut unknown = false;
            let place = tables.binary_search_by(|known| match compare_tables(*known, thread) {
                Some(order) => order,
                None => {
                    unknown = true;
                    std::cmp::Ordering::Equal
                }
            });
            if let (Err(index), false) = (place, unknown) {
                tables.insert(index, thread);
            }
        }
        tables.retain(|thread| *thread != self.pid);
        Ok(tables)
    }
}

/// Whether directories of descriptors tell their number as their size (Linux 6.2 and later). Earlier kernels say 0.
pub(crate) fn size_is_count() -> bool {
    // We hold at least our standard streams or the directory itself, so 0 cannot be the truth.
    let file = File::open("/proc/self/fd").and_then(|dir| dir.metadata());
    file.is_ok_and(|metadata| metadata.size() > 0)
}

fn list(path: impl AsRef<Path>) -> io::Result<u64> {
    let mut count = 0;
    numbered_entries(path, |_| count += 1)?;
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};
    use std::sync::mpsc;

    #[test]
    fn another_process_is_counted_both_ways() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // Once it answers, its loader has closed what it opened, and the number stands still.
        child.stdin.as_mut().unwrap().write_all(b"?").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let mut dir = FdDir::open(child.id());
        let listed = dir.count(1, false, 0).unwrap();
        let told = size_is_count().then(|| dir.count(1, true, 0).unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(listed >= 3, "{listed}");
        assert!(told.is_none_or(|told| told == listed), "{told:?} and {listed}");
    }

    #[test]
    fn a_thread_with_its_own_table_counts_on_its_own() {
        let _turn = crate::DESCRIPTOR_TABLE.lock().unwrap();
        let (ready, is_ready) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            // This thread's descriptors become copies, which it closes at its end.
            let left = crate::own_table::leave();
            let held: Vec<File> = (0..200).map(|_| File::open("/dev/null").unwrap()).collect();
            ready.send(left).unwrap();
            let _ = ended.recv();
            drop(held);
        });
        let left = is_ready.recv().unwrap();
        // A process of our own stands for no comparison: other tests of this process hold descriptors too. 200 do not
        // go unnoticed.
        let own = std::process::id();
        let mut dir = FdDir::open(own);
        let permitted = compare_tables(own, own).is_some();
        let (main, all) = (dir.count(1, false, 0).unwrap(), dir.count(2, false, 0).unwrap());
        drop(end);
        thread.join().unwrap();
        assert!(left, "unshare(CLONE_FILES) needs no privilege");
        if permitted {
            assert!(all >= main + 150, "{all} with the thread's, {main} without");
        }
    }

    #[test]
    fn nobody_has_nothing() {
        assert!(FdDir::open(0x7fff_fff0).count(1, true, 0).is_err());
    }
}
