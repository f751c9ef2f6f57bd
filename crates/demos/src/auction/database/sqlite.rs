//! SQLite, compiled in.

use super::{Connection, Failure, Row, STATEMENT_WAIT, Value};
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{ErrorCode, params_from_iter};
use std::path::Path;

/// A connection to a file, or to a database in memory that ends with it.
pub struct Sqlite(rusqlite::Connection);

impl Sqlite {
    /// Opens the file, which is created where there is none; a database in memory without a path.
    pub fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let open = || {
            let connection = match path {
                Some(path) => rusqlite::Connection::open(path)?,
                None => rusqlite::Connection::open_in_memory()?,
            };
            connection.busy_timeout(STATEMENT_WAIT)?;
            // Whoever has the file open beside us reads while we write.
            connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
            // A commit that was acknowledged survives a power failure.
            connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;")?;
            Ok(Self(connection))
        };
        open().map_err(failure)
    }

    fn batch(&mut self, sql: &str) -> Result<(), Failure> {
        self.0.execute_batch(sql).map_err(failure)
    }
}

impl Connection for Sqlite {
    fn begin(&mut self) -> Result<(), Failure> {
        self.batch("BEGIN IMMEDIATE")
    }

    fn commit(&mut self) -> Result<(), Failure> {
        self.batch("COMMIT")
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        if self.0.is_autocommit() { Ok(()) } else { self.batch("ROLLBACK") }
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
        self.batch(&format!("CREATE TABLE IF NOT EXISTS {table}"))
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
        _ => Failure::Refused(error.into()),
    }
}
