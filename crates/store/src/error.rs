//! What can go wrong with the store, told apart by what to do about it.

use crate::beside::beside;
use rusqlite::{ErrorCode, ffi};
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Why the store could not do what it was asked. Whatever it says, what was stored before is still there, but for
/// [`StoreError::Corrupt`].
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Neither `XDG_DATA_HOME` nor `HOME` says where data belongs.
    #[error("neither XDG_DATA_HOME nor HOME is an absolute path, so there is no place for results; name a file")]
    NoHome,
    /// No room on the disk.
    #[error(
        "no space is left for {}; the file is intact with everything stored before: free some space and repeat the \
         same command", .path.display()
    )]
    Full {
        /// The database.
        path: PathBuf,
    },
    /// The disk, a quota or a limit of the process refused to read or write.
    #[error(
        "{} cannot be read or written: {source}; the file is intact with everything stored before: check the disk, \
         its quota and the limit on file sizes (`ulimit -f`), then repeat the same command", .path.display()
    )]
    Io {
        /// The database.
        path: PathBuf,
        /// What the system said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Another process held it for longer than [`crate::BUSY_WAIT`].
    #[error(
        "another process has been writing to {} for too long; nothing was changed: look for it (`fuser` names it), \
         then repeat the same command", .path.display()
    )]
    Busy {
        /// The database.
        path: PathBuf,
    },
    /// The file is damaged.
    #[error(
        "{} is damaged: {source}; copy it away before anything else, and save what can be read with \
         `sqlite3 FILE .recover`", .path.display()
    )]
    Corrupt {
        /// The database.
        path: PathBuf,
        /// What SQLite found.
        source: rusqlite::Error,
    },
    /// The file or its folder may not be written.
    #[error(
        "{} cannot be opened for writing: give this user permission to read and write it and its folder, or name \
         another file", .path.display()
    )]
    ReadOnly {
        /// The database.
        path: PathBuf,
    },
    /// Not a database of this program.
    #[error("{} is not a results database of Pushlab: {what}; it was not touched, name another file", .path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        what: String,
    },
    /// Written by a later version of this program.
    #[error(
        "{} has format {found}, and this version of Pushlab knows formats up to {known}; it was not touched: use a \
         newer Pushlab, or name another file", .path.display()
    )]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The newest format known.
        known: i64,
    },
    /// Written by an earlier version of this program, and opened only to be read.
    #[error(
        "{} has format {found}, of an earlier Pushlab, and this version reads format {known}; it was not touched: \
         `pushlab runs --store FILE` brings it up to date", .path.display()
    )]
    Older {
        /// The database.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The format that is read.
        known: i64,
    },
    /// Another lab measures on this machine and store.
    #[error(
        "another pushlab{} measures into {} right now, and two at once would disturb each other; wait for it or end \
         it", .pid.map_or_else(String::new, |pid| format!(" (process {pid})")), .path.display()
    )]
    Measuring {
        /// The database.
        path: PathBuf,
        /// The other process, if it could be read.
        pid: Option<u32>,
    },
    /// No such campaign.
    #[error("there is no result `{reference}`{}", hint(.near))]
    NotFound {
        /// What was asked for.
        reference: String,
        /// References that would have been understood and look alike, best first.
        near: Vec<String>,
    },
    /// A campaign is named twice where each counts once.
    #[error("`{reference}` and `{before}` are both result {id}: named twice; leave one out")]
    Twice {
        /// What was asked for.
        reference: String,
        /// What named it before.
        before: String,
        /// The campaign.
        id: i64,
    },
    /// The campaign has that run already.
    #[error("result {campaign} has run {place} already; it was kept and the new one was not stored")]
    Taken {
        /// The campaign.
        campaign: i64,
        /// The run's place.
        place: u32,
    },
    /// What was to be stored cannot be, and nothing of it was.
    #[error("cannot be stored: {what}")]
    Invalid {
        /// What is wrong, and where.
        what: String,
    },
    /// A row that this program did not write like that.
    #[error(
        "{what} in {} cannot be read: it was changed by another program or written by a newer Pushlab",
        .path.display()
    )]
    Unreadable {
        /// The database.
        path: PathBuf,
        /// Which part of which run, and why.
        what: String,
    },
    /// Anything else that SQLite says.
    #[error("{}: {source}", .path.display())]
    Sqlite {
        /// The database.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
}

fn hint(near: &[String]) -> String {
    match near {
        [] => "; `pushlab runs` shows those there are".to_owned(),
        near => format!("; did you mean {}?", near.join(", ")),
    }
}

impl StoreError {
    /// Whether results cannot be written now: no room, no permission, or another process in the way.
    pub fn is_unwritable(&self) -> bool {
        matches!(
            self,
            Self::Full { .. } | Self::Io { .. } | Self::Busy { .. } | Self::ReadOnly { .. } | Self::Measuring { .. }
        )
    }

    /// Sorts what SQLite said of the database at `path`.
    pub(crate) fn of_sqlite(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        let Some(error) = source.sqlite_error() else { return Self::Sqlite { path, source } };
        // The index of the log grows in a file of its own, whose growing fails with an I/O error on a full disk.
        match (error.code, error.extended_code) {
            (_, ffi::SQLITE_IOERR_SHMSIZE) => Self::Full { path },
            // Somebody moved or removed the file; permissions are not what is wrong.
            (_, ffi::SQLITE_READONLY_DBMOVED) => Self::Sqlite { path, source },
            (code, _) => Self::of_code(path, code, source),
        }
    }

    fn of_code(path: PathBuf, code: ErrorCode, source: rusqlite::Error) -> Self {
        match code {
            ErrorCode::DiskFull => Self::Full { path },
            ErrorCode::CannotOpen => Self::cannot_open(path),
            ErrorCode::SystemIoFailure => Self::Io { path, source: source.into() },
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Busy { path },
            ErrorCode::DatabaseCorrupt => Self::Corrupt { path, source },
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied => Self::ReadOnly { path },
            ErrorCode::NotADatabase => Self::NotOurs { path, what: "it is no SQLite database".to_owned() },
            ErrorCode::TooBig => {
                Self::Invalid { what: "a run or header is larger than SQLite stores (1 GB)".to_owned() }
            }
            _ => Self::Sqlite { path, source },
        }
    }

    /// SQLite does not tell why it could not open a file; a file made beside it does.
    fn cannot_open(path: PathBuf) -> Self {
        let probe = beside(&path, ".probe");
        let made = File::create(&probe).and_then(|mut file| file.write_all(b"probe"));
        // Nothing depends on it, and where it could not be made it need not go.
        let _ = fs::remove_file(&probe);
        match made {
            Ok(()) => Self::ReadOnly { path },
            Err(source) => Self::of_system(&path, source),
        }
    }

    /// Sorts what the system said of the database or a file beside it.
    pub(crate) fn of_system(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull => Self::Full { path },
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path },
            _ => Self::Io { path, source: source.into() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sqlite_says_is_sorted_by_what_to_do() {
        let sorted = |code| {
            let source = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            let error = StoreError::of_sqlite(Path::new("/data/results.db"), source);
            assert!(error.to_string().contains("/data/results.db"), "{error}");
            let kind = format!("{error:?}");
            kind.split(' ').next().unwrap().to_owned()
        };
        for (code, kind) in [
            (ffi::SQLITE_FULL, "Full"),
            (ffi::SQLITE_IOERR_SHMSIZE, "Full"),
            (ffi::SQLITE_IOERR_WRITE, "Io"),
            (ffi::SQLITE_BUSY, "Busy"),
            (ffi::SQLITE_BUSY_SNAPSHOT, "Busy"),
            (ffi::SQLITE_CORRUPT, "Corrupt"),
            (ffi::SQLITE_READONLY, "ReadOnly"),
            (ffi::SQLITE_READONLY_DBMOVED, "Sqlite"),
            (ffi::SQLITE_NOTADB, "NotOurs"),
            (ffi::SQLITE_CONSTRAINT, "Sqlite"),
        ] {
            assert_eq!(sorted(code), kind, "{code}");
        }
    }
}
