//! One lab measures at a time.

use crate::error::StoreError;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

/// While it lives no other process can measure into the same store. The system releases it with the process,
/// however that ends.
#[derive(Debug)]
pub struct MeasuringLock {
    // Closing the file releases the lock. The file stays: removing it would let two processes lock two files.
    _file: File,
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
                return Err(StoreError::Measuring { path: path.to_owned(), pid: text.trim().parse().ok() });
            }
            Err(TryLockError::Error(source)) => return Err(system(source)),
        }
        file.set_len(0).and_then(|()| file.rewind()).map_err(system)?;
        writeln!(file, "{}", std::process::id()).map_err(system)?;
        Ok(Self { _file: file })
    }
}

/// The file beside `path` whose name has `suffix` after it.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
