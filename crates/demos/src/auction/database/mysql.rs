//! MySQL and MariaDB, over TCP or a Unix socket.

use super::connection::{Cause, Connection, Failure, LOCK_WAIT, MAX_CHANGE_IDLE, Row, STATEMENT_WAIT, Value};
use mysql::prelude::Queryable;
use mysql::{Conn, Error, Opts, OptsBuilder, Params};

/// Errors of the server after which the same may succeed: lock wait timeout, deadlock, record changed.
const BUSY: [u16; 3] = [1205, 1213, 1020];
/// Errors of the server without room: its disk, a table's space, a file that is written.
const FULL: [u16; 3] = [1021, 1114, 1026];
/// Errors of the server that end the connection: too many connections, shutting down, killed.
const AWAY: [u16; 4] = [1040, 1053, 1317, 1927];

/// A connection.
pub struct Mysql(Conn);

/// Reads a URL.
pub fn options(url: &str) -> Result<Opts, Cause> {
    let opts = Opts::from_url(url)?;
    if opts.get_db_name().is_none_or(str::is_empty) {
        return Err("it says not which database of the server".into());
    }
    let builder = OptsBuilder::from_opts(opts)
        .tcp_connect_timeout(Some(STATEMENT_WAIT))
        .read_timeout(Some(STATEMENT_WAIT))
        .write_timeout(Some(STATEMENT_WAIT))
        // Where the URL names a host, that is where to connect, not where the server's socket is said to be.
        .prefer_socket(false)
        .init(vec![
            // A change takes the house's lock first and then must see what others have committed before it.
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED".to_owned(),
            // What does not fit is refused, not cut.
            "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'".to_owned(),
            // MariaDB alone reads what stands between the marks; MySQL has no such limit.
            format!(
                "SET SESSION /*M! idle_transaction_timeout = {}, */ innodb_lock_wait_timeout = {}",
                MAX_CHANGE_IDLE.as_secs(),
                LOCK_WAIT.as_secs()
            ),
        ]);
    Ok(builder.into())
}

impl Mysql {
    /// Connects.
    pub fn connect(opts: &Opts) -> Result<Self, Failure> {
        Conn::new(opts.clone()).map(Self).map_err(|error| Failure::Away(error.into()))
    }

    fn plain(&mut self, sql: &str) -> Result<(), Failure> {
        self.0.query_drop(sql).map_err(failure)
    }
}

impl Connection for Mysql {
    fn begin(&mut self) -> Result<(), Failure> {
        self.plain("START TRANSACTION")
    }

    fn commit(&mut self) -> Result<(), Failure> {
        self.plain("COMMIT")
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        self.plain("ROLLBACK")
    }

    fn run(&mut self, sql: &'static str, values: &[Value]) -> Result<Vec<Row>, Failure> {
        let values: Vec<mysql::Value> = values.iter().map(given).collect();
        let rows: Vec<mysql::Row> = self.0.exec(sql, Params::from(values)).map_err(failure)?;
        let read = |row: mysql::Row| row.unwrap().into_iter().map(value).collect::<Result<_, _>>().map(Row);
        rows.into_iter().map(read).collect()
    }

    fn create(&mut self, table: &str) -> Result<(), Failure> {
        let options = "ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin";
        self.plain(&format!("CREATE TABLE IF NOT EXISTS {table} {options}"))
    }
}

fn given(value: &Value) -> mysql::Value {
    match value {
        Value::Integer(number) => mysql::Value::Int(*number),
        Value::Text(text) => mysql::Value::Bytes(text.clone().into_bytes()),
        Value::Null => mysql::Value::NULL,
    }
}

fn value(value: mysql::Value) -> Result<Value, Failure> {
    match value {
        mysql::Value::NULL => Ok(Value::Null),
        mysql::Value::Int(number) => Ok(Value::Integer(number)),
        mysql::Value::Bytes(bytes) => String::from_utf8(bytes).map(Value::Text).map_err(|e| Failure::Refused(e.into())),
        other => Err(Failure::Refused(format!("{other:?} is neither integer nor text").into())),
    }
}

fn failure(error: Error) -> Failure {
    match &error {
        Error::MySqlError(told) if BUSY.contains(&told.code) => Failure::Busy(error.into()),
        Error::MySqlError(told) if FULL.contains(&told.code) => Failure::Full(error.into()),
        Error::MySqlError(told) if !AWAY.contains(&told.code) => Failure::Refused(error.into()),
        _ => Failure::Away(error.into()),
    }
}
