//! Which process listens at a port.

use crate::procfs::{ProcFile, Stat, numbered_entries};
use crate::sock_diag::{SockDiagError, listening};
use pushlab_os::descriptors::compare_tables;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why it is not known who listens.
#[derive(Debug, Error)]
pub enum ListenersError {
    /// Nobody does.
    #[error("nothing listens on port {0} on this machine: start the server, or name its process with --pid")]
    Nobody(u16),
    /// Somebody does whose descriptors may not be read.
    #[error(
        "the process that listens on port {0} belongs to another user: run the agent as that user or as root, or name the process with --pid"
    )]
    Hidden(u16),
    /// The kernel could not be asked.
    #[error(transparent)]
    Sockets(#[from] SockDiagError),
}

/// The processes that listen at a port in this process's network namespace. Of a process and its descendants that have the
/// same socket, the first is told.
///
/// # Errors
/// See [`ListenersError`].
pub fn listeners(port: u16) -> Result<Vec<u32>, ListenersError> {
    let links: BTreeSet<PathBuf> =
        listening(port)?.into_iter().map(|inode| PathBuf::from(format!("socket:[{inode}]"))).collect();
    if links.is_empty() {
        return Err(ListenersError::Nobody(port));
    }
    let mut found = BTreeSet::new();
    // A folder that cannot be read is another user's, or that of a process that has ended.
    let _ = numbered_entries("/proc", |process| found.extend(has_any(process, &links).then_some(process)));
    let first: Vec<u32> = found.iter().copied().filter(|process| !descends_from_any(*process, &found)).collect();
    if first.is_empty() { Err(ListenersError::Hidden(port)) } else { Ok(first) }
}

/// Whether a process has a descriptor that is one of these links. Threads may have tables of their own.
fn has_any(process: u32, links: &BTreeSet<PathBuf>) -> bool {
    let mut is_found = table_has_any(&format!("/proc/{process}/fd"), links);
    let _ = numbered_entries(format!("/proc/{process}/task"), |thread| {
        let is_another = || compare_tables(process, thread).is_some_and(Ordering::is_ne);
        is_found = is_found || is_another() && table_has_any(&format!("/proc/{process}/task/{thread}/fd"), links);
    });
    is_found
}

fn table_has_any(table: &str, links: &BTreeSet<PathBuf>) -> bool {
    let Ok(entries) = std::fs::read_dir(Path::new(table)) else { return false };
    entries.flatten().any(|entry| std::fs::read_link(entry.path()).is_ok_and(|link| links.contains(&link)))
}

fn descends_from_any(process: u32, others: &BTreeSet<u32>) -> bool {
    let parent_of = |process: &u32| {
        let mut buffer = Vec::new();
        let stat = ProcFile::open(format!("/proc/{process}/stat")).ok()?;
        Some(Stat::parse(stat.read_record(&mut buffer).ok()?)?.ppid)
    };
    std::iter::successors(parent_of(&process), parent_of).any(|ancestor| others.contains(&ancestor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn who_listens_is_found_and_who_inherits_is_not_told_beside_him() {
        let _turn = crate::DESCRIPTOR_TABLE.lock().unwrap();
        let listener = TcpListener::bind("[::1]:0").or_else(|_| TcpListener::bind("127.0.0.1:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(listeners(port).unwrap(), [std::process::id()]);
        let own = BTreeSet::from([std::process::id()]);
        assert!(!descends_from_any(std::process::id(), &own), "nobody descends from himself");
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(descends_from_any(child.id(), &own));
        child.kill().unwrap();
        child.wait().unwrap();
        // Somebody else may have the port by now, and a child that another test starts holds it until it runs its program;
        // this process does not.
        drop(listener);
        assert!(!listeners(port).is_ok_and(|found| found.contains(&std::process::id())));
        assert!(matches!(listeners(1), Err(ListenersError::Nobody(1))));
    }

    #[test]
    fn a_thread_with_a_table_of_its_own_is_looked_into() {
        let _turn = crate::DESCRIPTOR_TABLE.lock().unwrap();
        let (told, port) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            assert!(crate::own_table::leave());
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            told.send(listener.local_addr().unwrap().port()).unwrap();
            let _ = ended.recv();
        });
        assert_eq!(listeners(port.recv().unwrap()).unwrap(), [std::process::id()]);
        drop(end);
        thread.join().unwrap();
    }
}
