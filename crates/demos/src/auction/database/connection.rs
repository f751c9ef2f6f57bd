//! What a connection to a database is asked, and what it answers.

use std::error::Error;
use std::time::Duration;
use thiserror::Error as ThisError;

/// A connection is made, and a statement answered, within 5 s, or the connection is given up: a database that hangs
/// holds a thread of the application no longer. Two things have no such end: the statements of SQLite, which wait so long
/// for a file that others have locked and then take the time that they take, and the look-up of the name of a MySQL or
/// MariaDB server, for which the system's resolver has limits of its own.
pub const STATEMENT_WAIT: Duration = Duration::from_secs(5);

/// How long a statement waits in the database for what others hold: 4 s, below [`STATEMENT_WAIT`], so that the
/// database says so before the connection is given up.
pub const LOCK_WAIT: Duration = Duration::from_secs(4);

/// A change of which the database hears nothing is undone after 10 s: a server that is suspended in the middle of one, or
/// cut off from the database, would keep the house's lock from all others. Ours never pauses in one.
pub const MAX_CHANGE_IDLE: Duration = Duration::from_secs(10);

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
