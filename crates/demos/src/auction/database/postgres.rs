//! PostgreSQL, over TCP or a Unix socket.

use super::connection::{Cause, Connection, Failure, LOCK_WAIT, MAX_CHANGE_IDLE, Row, STATEMENT_WAIT, Value};
use std::collections::HashMap;
use std::error::Error;
use std::future::Future;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{IsNull, ToSql, Type, private::BytesMut, to_sql_checked};
use tokio_postgres::{Client, Config, NoTls, Statement};

/// A connection, and the loop that moves its bytes while somebody waits for it. The library has a blocking front of
/// the same make, but none of its waits has an end.
pub struct Postgres {
    runtime: Runtime,
    client: Client,
    statements: HashMap<&'static str, Statement>,
}

/// Reads a URL.
pub fn options(url: &str) -> Result<Config, Cause> {
    let config: Config = url.parse()?;
    if config.get_dbname().is_none_or(str::is_empty) {
        return Err("it says not which database of the server".into());
    }
    if config.get_hosts().is_empty() {
        return Err("it names no host".into());
    }
    Ok(config)
}

impl Postgres {
    /// Connects.
    pub fn connect(config: &Config) -> Result<Self, Failure> {
        let runtime =
            Builder::new_current_thread().enable_all().build().map_err(|error| Failure::Away(error.into()))?;
        let (client, connection) = match wait(&runtime, config.connect(NoTls)) {
            Ok(connected) => connected,
            Err(Failure::Refused(cause) | Failure::Full(cause) | Failure::Busy(cause) | Failure::Away(cause)) => {
                // A name that is still looked up cannot be given up, and the runtime's end would wait for it.
                runtime.shutdown_background();
                return Err(Failure::Away(cause));
            }
        };
        // How it ends is told to whoever waits for an answer.
        runtime.spawn(async move { connection.await.ok() });
        let mut connected = Self { runtime, client, statements: HashMap::new() };
        let (statement, idle) = (LOCK_WAIT.as_millis(), MAX_CHANGE_IDLE.as_millis());
        connected.plain(&format!(
            "SET statement_timeout = {statement}; SET idle_in_transaction_session_timeout = {idle}; \
             SET client_min_messages = warning"
        ))?;
        Ok(connected)
    }

    fn plain(&mut self, sql: &str) -> Result<(), Failure> {
        wait(&self.runtime, self.client.batch_execute(sql))
    }
}

impl Connection for Postgres {
    fn begin(&mut self) -> Result<(), Failure> {
        self.plain("BEGIN ISOLATION LEVEL READ COMMITTED")
    }

    fn commit(&mut self) -> Result<(), Failure> {
        self.plain("COMMIT")
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        self.plain("ROLLBACK")
    }

    fn run(&mut self, sql: &'static str, values: &[Value]) -> Result<Vec<Row>, Failure> {
        let statement = match self.statements.get(sql) {
            Some(statement) => statement.clone(),
            None => {
                let statement = wait(&self.runtime, self.client.prepare(&numbered(sql)))?;
                self.statements.insert(sql, statement.clone());
                statement
            }
        };
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
        let rows = wait(&self.runtime, self.client.query(&statement, &values))?;
        rows.iter()
            .map(|row| (0..row.len()).map(|place| value(row, place)).collect::<Result<_, _>>().map(Row))
            .collect()
    }

    fn create(&mut self, table: &str) -> Result<(), Failure> {
        self.plain(&format!("CREATE TABLE IF NOT EXISTS {table}"))
    }
}

/// Waits for an answer, but not longer than [`STATEMENT_WAIT`].
fn wait<T>(runtime: &Runtime, asked: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Result<T, Failure> {
    let answer = runtime.block_on(async { tokio::time::timeout(STATEMENT_WAIT, asked).await });
    match answer {
        Ok(answer) => answer.map_err(failure),
        Err(late) => Err(Failure::Away(late.into())),
    }
}

/// `$1`, `$2` … in place of each `?`; the house's statements have none inside text.
fn numbered(sql: &str) -> String {
    let mut parts = sql.split('?');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for (place, part) in parts.enumerate() {
        text.push_str(&format!("${}{part}", place + 1));
    }
    text
}

fn value(row: &tokio_postgres::Row, place: usize) -> Result<Value, Failure> {
    let integer = *row.columns()[place].type_() == Type::INT8;
    let read = if integer {
        row.try_get::<_, Option<i64>>(place).map(|number| number.map(Value::Integer))
    } else {
        row.try_get::<_, Option<String>>(place).map(|text| text.map(Value::Text))
    };
    Ok(read.map_err(|error| Failure::Refused(error.into()))?.unwrap_or(Value::Null))
}

impl ToSql for Value {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Integer(number) if *kind == Type::INT8 => number.to_sql(kind, out),
            Self::Text(text) if <String as ToSql>::accepts(kind) => text.to_sql(kind, out),
            Self::Null => Ok(IsNull::Yes),
            _ => Err(format!("{self:?} is no {kind}").into()),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

fn failure(error: tokio_postgres::Error) -> Failure {
    let Some(state) = error.code() else { return Failure::Away(error.into()) };
    let busy = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::QUERY_CANCELED,
    ];
    // Classes 08 and 57: the connection, and the operator's intervention (appendix A of the manual).
    if busy.contains(state) {
        Failure::Busy(error.into())
    } else if *state == SqlState::DISK_FULL {
        Failure::Full(error.into())
    } else if state.code().starts_with("08") || state.code().starts_with("57P") {
        Failure::Away(error.into())
    } else {
        Failure::Refused(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_the_values() {
        assert_eq!(numbered("SELECT 1"), "SELECT 1");
        assert_eq!(numbered("? WHERE a = ? AND b > ?"), "$1 WHERE a = $2 AND b > $3");
    }
}
