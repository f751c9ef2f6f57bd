//! What the auction house asks of a database, and the three that can do it.
//!
//! The house's SQL is written once, in what all three understand: `?` for values, `BIGINT`, `VARCHAR` and `TEXT`, and
//! no numbers that the database gives out. What differs is how to connect, and here.

mod mysql;
mod pool;
mod postgres;
mod sqlite;

pub use pool::{Lease, MAX_BACKOFF, Pool};

use std::error::Error;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use thiserror::Error as ThisError;

/// A connection is made, and a statement answered, within 5 s, or the connection is given up: a database that hangs
/// holds a thread of the application no longer. Two things have no such end: the statements of SQLite, which wait so long
/// for a file that others have locked and then take the time that they take, and the look-up of the name of a MySQL or
/// MariaDB server, for which the system's resolver has limits of its own.
pub const STATEMENT_WAIT: Duration = Duration::from_secs(5);

/// How long a statement waits in the database for what others hold: 4 s, below [`STATEMENT_WAIT`], so that the
/// database says so before the connection is given up.
const LOCK_WAIT: Duration = Duration::from_secs(4);

/// A change of which the database hears nothing is undone after 10 s: a server that is suspended in the middle of one, or
/// cut off from the database, would keep the house's lock from all others. Ours never pauses in one.
const MAX_CHANGE_IDLE: Duration = Duration::from_secs(10);

/// A value in a row or of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// `BIGINT`.
    Integer(i64),
    /// `VARCHAR` or `TEXT`.
    Text(String),
    /// Nothing.
    Null,
}

/// A row of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row(pub Vec<Value>);

/// Why the database did not do what it was asked.
#[derive(Debug, ThisError)]
pub enum Failure {
    /// It cannot be reached, went away or does not answer in time. The connection is useless.
    #[error("it does not answer: {}", chain(.0.as_ref()))]
    Away(#[source] Cause),
    /// Somebody else held what was needed for too long; another try may succeed.
    #[error("it is busy: {}", chain(.0.as_ref()))]
    Busy(#[source] Cause),
    /// Its disk has no room left. What was under way is undone; reading goes on.
    #[error("its disk is full: {}", chain(.0.as_ref()))]
    Full(#[source] Cause),
    /// It refused the statement, or answered with something that it cannot hold.
    #[error("it refused the work: {}", chain(.0.as_ref()))]
    Refused(#[source] Cause),
}

/// What went wrong, in the words of whoever noticed.
pub type Cause = Box<dyn Error + Send + Sync>;

/// One conversation with a database.
pub trait Connection: Send {
    /// Begins a change. The statements after it see what is committed, each anew.
    fn begin(&mut self) -> Result<(), Failure>;
    /// Makes the change last. If that fails with [`Failure::Away`], nobody knows whether it does.
    fn commit(&mut self) -> Result<(), Failure>;
    /// Undoes what was done since the beginning, if anything was begun.
    fn rollback(&mut self) -> Result<(), Failure>;
    /// Runs a statement with a `?` for each value and gives its rows, all of them.
    fn run(&mut self, sql: &'static str, values: &[Value]) -> Result<Vec<Row>, Failure>;
    /// Creates a table, if there is none, so that its text is Unicode, compared byte by byte.
    fn create(&mut self, table: &str) -> Result<(), Failure>;
}

/// Where the database is.
#[derive(Clone)]
pub struct Location {
    server: Server,
    /// The URL without whom to log in as.
    label: String,
}

#[derive(Clone)]
enum Server {
    Memory,
    File(PathBuf),
    Mysql(Box<::mysql::Opts>),
    Postgres(Box<tokio_postgres::Config>),
}

/// A text names no database that is known.
#[derive(Debug, ThisError)]
#[error(
    "`{label}` names no database{why}; write sqlite:PATH, sqlite::memory:, mysql://USER:PASSWORD@HOST:PORT/DATABASE or \
     postgres://USER:PASSWORD@HOST:PORT/DATABASE"
)]
pub struct BadLocation {
    label: String,
    why: String,
}

impl FromStr for Location {
    type Err = BadLocation;

    fn from_str(url: &str) -> Result<Self, BadLocation> {
        let label = label(url);
        let bad = |why: String| BadLocation { label: label.clone(), why };
        let server = match url.split_once(':') {
            Some(("sqlite", ":memory:")) => Server::Memory,
            Some(("sqlite", path)) if !path.is_empty() => Server::File(path.into()),
            Some(("mysql" | "mariadb", rest)) => {
                let opts = mysql::options(&format!("mysql:{rest}")).map_err(|why| bad(format!(" ({why})")))?;
                Server::Mysql(Box::new(opts))
            }
            Some(("postgres" | "postgresql", _)) => {
                let config = postgres::options(url).map_err(|why| bad(format!(" ({why})")))?;
                Server::Postgres(Box::new(config))
            }
            _ => return Err(bad(String::new())),
        };
        Ok(Self { server, label })
    }
}

impl Location {
    fn connect(&self) -> Result<Box<dyn Connection>, Failure> {
        Ok(match &self.server {
            Server::Memory => Box::new(sqlite::Sqlite::open(None)?),
            Server::File(path) => Box::new(sqlite::Sqlite::open(Some(path))?),
            Server::Mysql(opts) => Box::new(mysql::Mysql::connect(opts)?),
            Server::Postgres(config) => Box::new(postgres::Postgres::connect(config)?),
        })
    }

    /// How many connections are of use. SQLite writes one change after the other in any case, and a second connection
    /// to a database in memory would be another database.
    fn connections(&self) -> usize {
        match self.server {
            Server::Memory | Server::File(_) => 1,
            Server::Mysql(_) | Server::Postgres(_) => pool::MAX_CONNECTIONS,
        }
    }

    /// The kind of database, for people.
    pub fn kind(&self) -> &'static str {
        match self.server {
            Server::Memory | Server::File(_) => "SQLite",
            Server::Mysql(_) => "MySQL or MariaDB",
            Server::Postgres(_) => "PostgreSQL",
        }
    }

    /// The URL without user, password and parameters: for the operator's eyes.
    pub fn label(&self) -> &str {
        &self.label
    }
}

fn label(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let (place, is_cut) = (&rest[..end], end < rest.len());
    // A password may hold what it should not, so everything up to the last `@` is one.
    let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
    format!("{scheme}://{place}{}", if is_cut { "?…" } else { "" })
}

/// An error and what caused it, in one line. Some say their causes themselves.
fn chain(error: &(dyn Error + Send + Sync + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

impl Row {
    /// The integer at a place.
    pub fn integer(&self, place: usize) -> Result<i64, Failure> {
        self.optional_integer(place)?.ok_or_else(|| self.unexpected(place))
    }

    /// The integer at a place, if there is one.
    pub fn optional_integer(&self, place: usize) -> Result<Option<i64>, Failure> {
        match self.0.get(place) {
            Some(Value::Integer(number)) => Ok(Some(*number)),
            Some(Value::Null) => Ok(None),
            _ => Err(self.unexpected(place)),
        }
    }

    /// The text at a place.
    pub fn text(&self, place: usize) -> Result<String, Failure> {
        self.optional_text(place)?.ok_or_else(|| self.unexpected(place))
    }

    /// The text at a place, if there is one.
    pub fn optional_text(&self, place: usize) -> Result<Option<String>, Failure> {
        match self.0.get(place) {
            Some(Value::Text(text)) => Ok(Some(text.clone())),
            Some(Value::Null) => Ok(None),
            _ => Err(self.unexpected(place)),
        }
    }

    fn unexpected(&self, place: usize) -> Failure {
        Failure::Refused(format!("column {} of a row is {:?}", place + 1, self.0.get(place)).into())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl From<Option<String>> for Value {
    fn from(text: Option<String>) -> Self {
        text.map_or(Self::Null, Self::Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_named_without_secrets() {
        for (url, label, kind) in [
            ("sqlite::memory:", "sqlite::memory:", "SQLite"),
            ("sqlite:/var/lib/auction.db", "sqlite:/var/lib/auction.db", "SQLite"),
            ("mysql://ada:secret@db:3307/house", "mysql://db:3307/house", "MySQL or MariaDB"),
            ("mariadb://ada@[::1]/house", "mariadb://[::1]/house", "MySQL or MariaDB"),
            ("mysql://ada:s@localhost/house?socket=/run/s", "mysql://localhost/house?…", "MySQL or MariaDB"),
            ("postgres://ada:secret@db/house", "postgres://db/house", "PostgreSQL"),
            ("postgresql:///house?host=/run/pg&user=a&password=secret", "postgresql:///house?…", "PostgreSQL"),
        ] {
            let location: Location = url.parse().expect(url);
            assert_eq!((location.label(), location.kind()), (label, kind));
        }
    }

    #[test]
    fn what_names_no_database_is_refused_without_its_secrets() {
        for bad in [
            "",
            "sqlite",
            "sqlite:",
            "/var/lib/auction.db",
            "oracle://ada:secret@db/house",
            "mysql:secret",
            "mysql://ada:secret@db",
            "mysql://ada:secret@db:port/house",
            "mysql://ada:secret@db/house?colour=secret",
            "postgres://ada:secret@db:port/house",
            "postgres://ada:secret@db/house?colour=secret",
            "postgres://ada:secret@db",
        ] {
            let error = bad.parse::<Location>().err().unwrap_or_else(|| panic!("{bad} was taken"));
            let text = error.to_string();
            assert!(text.contains("write sqlite:PATH") && !text.contains("ada"), "{text}");
        }
    }
}
