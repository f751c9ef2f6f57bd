//! Opening a database: whose it is, which format it has, and bringing it to the newest.

use crate::beside::beside;
use crate::error::StoreError;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a writer waits for another before it gives up. A run takes milliseconds to write, and removing a large
/// campaign seconds.
pub const BUSY_WAIT: Duration = Duration::from_secs(30);
const BUSY_PAUSE: Duration = Duration::from_millis(5);
/// Marks the file as ours (`PRAGMA application_id`): "PSLB".
pub const APPLICATION_ID: i64 = 0x5053_4C42;
/// Bytes of the log that stay on disk after it was written into the database.
const LOG_BYTES_MAX: i64 = 16 << 20;
/// Brings a database from format n to n + 1, where n is the place in the list.
const MIGRATIONS: [&str; 4] = [
    include_str!("../migrations/0001.sql"),
    include_str!("../migrations/0002.sql"),
    include_str!("../migrations/0003.sql"),
    include_str!("../migrations/0004.sql"),
];

/// Where results belong: `$XDG_DATA_HOME/pushlab/results.db`, by default below `~/.local/share`.
pub(crate) fn default_path() -> Result<PathBuf, StoreError> {
    data_path(std::env::var_os("XDG_DATA_HOME"), std::env::var_os("HOME"))
}

fn data_path(data_home: Option<OsString>, home: Option<OsString>) -> Result<PathBuf, StoreError> {
    // The XDG Base Directory Specification has relative paths ignored.
    let absolute = |path: Option<OsString>| path.map(PathBuf::from).filter(|path| path.is_absolute());
    let data_home = absolute(data_home).or_else(|| Some(absolute(home)?.join(".local/share")));
    Ok(data_home.ok_or(StoreError::NoHome)?.join("pushlab/results.db"))
}

/// Opens or makes the database at `path`, in the newest format.
pub(crate) fn open(path: &Path) -> Result<Connection, StoreError> {
    if path.is_dir() {
        return Err(StoreError::NotOurs { path: path.to_owned(), what: "it is a folder".to_owned() });
    }
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(|source| StoreError::of_system(path, source))?;
    }
    let sqlite = |source| StoreError::of_sqlite(path, source);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(place(path)?, flags).map_err(sqlite)?;
    connection.busy_timeout(BUSY_WAIT).map_err(sqlite)?;
    if connection.is_readonly("main").map_err(sqlite)? {
        return Err(StoreError::ReadOnly { path: path.to_owned() });
    }
    // Before anything is written, lest another program's database be changed.
    let found = format_of(&connection, path)?;
    configure(&connection, found).map_err(sqlite)?;
    if found < known() {
        migrate(&mut connection, path)?;
    }
    Ok(connection)
}

/// Opens the database at `path` to read it. In a file that somebody else may have made, views and triggers can call
/// only harmless functions.
pub(crate) fn open_to_read(path: &Path) -> Result<Connection, StoreError> {
    match read_from(path, place(path)?.as_os_str()) {
        // SQLite shares the log's index with writers through a file that it makes beside the database. Where it cannot,
        // nobody writes through it, and without a log the database is whole.
        Err(StoreError::ReadOnly { .. }) if path.is_file() && !has_log(path) => read_from(path, &unchanging(path)),
        read => read,
    }
}

/// Whether a log beside the database holds what is not in it yet.
fn has_log(path: &Path) -> bool {
    fs::metadata(beside(path, "-wal")).is_ok_and(|log| log.len() > 0)
}

/// The name by which SQLite opens a file that does not change: its path with all but plain letters as `%XX`
/// (<https://www.sqlite.org/uri.html>).
fn unchanging(path: &Path) -> OsString {
    let mut uri = "file:".to_owned();
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => uri.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    (uri + "?immutable=1").into()
}

fn read_from(path: &Path, name: &OsStr) -> Result<Connection, StoreError> {
    let sqlite = |source| StoreError::of_sqlite(path, source);
    let mut flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    flags.set(OpenFlags::SQLITE_OPEN_URI, name.as_bytes().starts_with(b"file:"));
    let connection = Connection::open_with_flags(name, flags).map_err(sqlite)?;
    connection.busy_timeout(BUSY_WAIT).map_err(sqlite)?;
    connection.pragma_update(None, "query_only", true).map_err(sqlite)?;
    connection.pragma_update(None, "trusted_schema", false).map_err(sqlite)?;
    let found = format_of(&connection, path)?;
    if found < known() {
        return Err(StoreError::Older { path: path.to_owned(), found, known: known() });
    }
    Ok(connection)
}

/// The file itself: SQLite would take `file:x` for a URI and `:memory:` for no file, and the lock beside them would not.
fn place(path: &Path) -> Result<PathBuf, StoreError> {
    std::path::absolute(path).map_err(|source| StoreError::of_system(path, source))
}

fn known() -> i64 {
    MIGRATIONS.len() as i64
}

/// The format of the database: 0 for one that is empty. An empty file is one, too: a crash may have left it.
fn format_of(connection: &Connection, path: &Path) -> Result<i64, StoreError> {
    // One statement, hence one moment: another process may be making the database right now.
    let sql = "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
               FROM pragma_application_id, pragma_user_version";
    let read = connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, i64>(2)? == 0)));
    let (application, found, is_empty): (i64, i64, bool) =
        read.map_err(|source| StoreError::of_sqlite(path, source))?;
    if application != APPLICATION_ID && !(application == 0 && found == 0 && is_empty) {
        let what = "it is another program's SQLite database".to_owned();
        return Err(StoreError::NotOurs { path: path.to_owned(), what });
    }
    if found > known() {
        return Err(StoreError::Newer { path: path.to_owned(), found, known: known() });
    }
    Ok(found)
}

fn configure(connection: &Connection, found: i64) -> rusqlite::Result<()> {
    if found == 0 {
        // Only before the first table; lets removal give space back without copying the whole file.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    // Readers and a writer do not wait for each other. Where the file system cannot (some network ones), SQLite
    // keeps its rollback journal, which is as safe.
    let begin = Instant::now();
    while let Err(error) = connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())) {
        // SQLite does not wait by itself for another process that is doing the same.
        if error.sqlite_error_code() != Some(ErrorCode::DatabaseBusy) || begin.elapsed() > BUSY_WAIT {
            return Err(error);
        }
        std::thread::sleep(BUSY_PAUSE);
    }
    connection.pragma_update_and_check(None, "journal_size_limit", LOG_BYTES_MAX, |_| Ok(()))?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)
}

fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let sqlite = |source| StoreError::of_sqlite(path, source);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sqlite)?;
    // Another process may have done it while this one waited.
    let found = format_of(&transaction, path)?;
    for migration in MIGRATIONS.iter().skip(usize::try_from(found).unwrap_or(0)) {
        transaction.execute_batch(migration).map_err(sqlite)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(sqlite)?;
    transaction.pragma_update(None, "user_version", known()).map_err(sqlite)?;
    transaction.commit().map_err(sqlite)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_path_is_a_name_of_a_file_that_does_not_change() {
        assert_eq!(unchanging(Path::new("/a b/é?#%.db")), *"file:/a%20b/%C3%A9%3F%23%25.db?immutable=1");
        assert_eq!(unchanging(Path::new("results.db")), *"file:results.db?immutable=1");
    }

    #[test]
    fn data_goes_where_the_desktop_says() {
        let path = |data: Option<&str>, home: Option<&str>| data_path(data.map(Into::into), home.map(Into::into));
        assert_eq!(path(Some("/data"), Some("/home/a")).unwrap(), Path::new("/data/pushlab/results.db"));
        let below_home = Path::new("/home/a/.local/share/pushlab/results.db");
        assert_eq!(path(None, Some("/home/a")).unwrap(), below_home);
        assert_eq!(path(Some("relative"), Some("/home/a")).unwrap(), below_home);
        assert_eq!(path(Some(""), Some("/home/a")).unwrap(), below_home);
        assert!(matches!(path(None, None), Err(StoreError::NoHome)));
    }
}
