//! SQLite, compiled in.

use super::connection::{Connection, Failure, LOCK_WAIT, Row, STATEMENT_WAIT, Value};
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{ErrorCode, params_from_iter};
use std::path::Path;
use std::time::{Duration, Instant};

/// A connection to a file, or to a database in memory that ends with it.
pub struct Sqlite(rusqlite::Connection);

/// Statements that are kept prepared: 64, more than the house has.
const MAX_STATEMENTS: usize = 64;

impl Sqlite {
    /// Opens the file, which is created where there is none; a database in memory without a path.
    pub fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let begun = Instant::now();
        loop {
            match Self::try_open(path).map_err(failure) {
                // Programs that open a new file at once are in each other's way when they set its journal's mode, and
                // there SQLite does not wait by itself.
                Err(Failure::Busy(_)) if begun.elapsed() < LOCK_WAIT => {
                    std::thread::sleep(Duration::from_millis(fastrand::u64(1..20)));
                }
                done => return done,
            }
        }
    }

    fn try_open(path: Option<&Path>) -> rusqlite::Result<Self> {
        let connection = match path {
            // Lest it take the name for a URI.
            Some(path) => rusqlite::Connection::open(std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))?,
            None => rusqlite::Connection::open_in_memory()?,
        };
        connection.set_prepared_statement_cache_capacity(MAX_STATEMENTS);
        connection.busy_timeout(STATEMENT_WAIT)?;
        // Whoever has the file open beside us reads while we write.
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
        // A commit that was acknowledged survives a power failure.
        connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;")?;
        Ok(Self(connection))
    }

    fn plain(&mut self, sql: &'static str) -> Result<(), Failure> {
        let done = self.0.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
        done.map(drop).map_err(failure)
    }
}

impl Connection for Sqlite {
    fn begin(&mut self) -> Result<(), Failure> {
        self.plain("BEGIN IMMEDIATE")
    }

    fn commit(&mut self) -> Result<(), Failure> {
        self.plain("COMMIT")
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        if self.0.is_autocommit() { Ok(()) } else { self.plain("ROLLBACK") }
    }

    fn run(&mut self, sql: &'static str, values: &[Value]) -> Result<Vec<Row>, Failure> {
        let mut statement = self.0.prepare_cached(sql).map_err(failure)?;
        let columns = statement.column_count();
        let mut rows = statement.query(params_from_iter(values)).map_err(failure)?;
        let mut read = Vec::new();
        while let Some(row) = rows.next().map_err(failure)? {
            let value = |place| row.get_ref(place).map_err(failure).and_then(value);
            read.push(Row((0..columns).map(value).collect::<Result<_, _>>()?));
        }
        Ok(read)
    }

    fn create(&mut self, table: &str) -> Result<(), Failure> {
        self.0.execute_batch(&format!("CREATE TABLE IF NOT EXISTS {table}")).map_err(failure)
    }
}

fn value(value: ValueRef<'_>) -> Result<Value, Failure> {
    match value {
        ValueRef::Null => Ok(Value::Null),
        ValueRef::Integer(number) => Ok(Value::Integer(number)),
        ValueRef::Text(text) => {
            String::from_utf8(text.to_vec()).map(Value::Text).map_err(|e| Failure::Refused(e.into()))
        }
        ValueRef::Real(_) | ValueRef::Blob(_) => Err(Failure::Refused("a value is neither integer nor text".into())),
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Integer(number) => ToSqlOutput::from(*number),
            Self::Text(text) => ToSqlOutput::from(text.as_str()),
            Self::Null => ToSqlOutput::Borrowed(ValueRef::Null),
        })
    }
}

/// A file does not go away: what fails may succeed the next time over the same connection.
fn failure(error: rusqlite::Error) -> Failure {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Failure::Busy(error.into()),
        Some(ErrorCode::DiskFull) => Failure::Full(error.into()),
        _ => Failure::Refused(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    /// Without another try some of so many find the file locked.
    #[test]
    fn many_open_a_new_file_at_once() {
        const PROGRAMS: usize = 8;
        for round in 0..100 {
            let path = std::env::temp_dir().join(format!("pushlab-new-{}-{round}.db", std::process::id()));
            let barrier = Barrier::new(PROGRAMS);
            std::thread::scope(|scope| {
                let open = || {
                    barrier.wait();
                    Sqlite::open(Some(&path)).map(drop).map_err(|failure| failure.to_string())
                };
                let programs: Vec<_> = (0..PROGRAMS).map(|_| scope.spawn(open)).collect();
                for opened in programs {
                    assert_eq!(opened.join().expect("no panic"), Ok(()), "round {round}");
                }
            });
            for end in ["", "-wal", "-shm"] {
                // What SQLite has removed itself is gone already.
                let _ = std::fs::remove_file(format!("{}{end}", path.display()));
            }
        }
    }
}
