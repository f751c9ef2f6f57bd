//! One lab measures at a time.

use crate::beside::beside;
use crate::error::StoreError;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

/// While it lives no other process can measure into the same store. The system releases it with the process,
/// however that ends.
#[derive(Debug)]
pub struct MeasuringLock {
    // Closing the file releases the lock. The file stays: removing it would let two processes lock two files.
    file: File,
}

/// What is measured into a store right now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measuring {
    /// The process that measures.
    pub pid: u32,
    /// Into which campaign; `None` while it has none yet.
    pub campaign: Option<i64>,
}

impl MeasuringLock {
    /// Locks a file beside the database at `path`, and writes this process's number into it.
    pub(crate) fn take(path: &Path) -> Result<Self, StoreError> {
        let lock_path = beside(path, ".lock");
        let system = |source| StoreError::of_system(path, source);
        let mut options = OpenOptions::new();
        let mut file = options.read(true).write(true).create(true).truncate(false).open(&lock_path).map_err(system)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                // The number is a courtesy; what is wrong is known without it.
                let _ = file.read_to_string(&mut text);
                let pid = parse(&text).map(|measuring| measuring.pid);
                return Err(StoreError::Measuring { path: path.to_owned(), pid });
            }
            Err(TryLockError::Error(source)) => return Err(system(source)),
        }
        file.set_len(0).and_then(|()| file.rewind()).map_err(system)?;
        writeln!(file, "{}", std::process::id()).map_err(system)?;
        Ok(Self { file })
    }

    /// Says into which campaign this process measures, for those who list them.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn name(&mut self, campaign: i64) -> std::io::Result<()> {
        writeln!(self.file, "{campaign}")
    }
}

/// What is measured into the store at `path`. Nothing is locked for it, so that no lab that starts meanwhile is turned
/// away: whose number the file has, and who has the file open, holds the lock.
pub(crate) fn measuring(path: &Path) -> Option<Measuring> {
    let lock_path = beside(path, ".lock");
    let measuring = parse(&std::fs::read_to_string(&lock_path).ok()?)?;
    let open = std::fs::read_dir(format!("/proc/{}/fd", measuring.pid)).ok()?.flatten();
    open.into_iter()
        .any(|entry| std::fs::read_link(entry.path()).is_ok_and(|file| file == lock_path))
        .then_some(measuring)
}

/// The process's number, and that of the campaign in the next line, once there is one.
fn parse(text: &str) -> Option<Measuring> {
    let mut lines = text.lines();
    Some(Measuring { pid: lines.next()?.trim().parse().ok()?, campaign: lines.next().and_then(|id| id.parse().ok()) })
}
