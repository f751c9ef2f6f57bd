//! Where a database is, and a connection to it.

use super::connection::{Connection, Failure};
use super::{mysql, postgres, sqlite};
use std::path::PathBuf;
use std::str::FromStr;
use thiserror::Error as ThisError;

/// Connections to a database server: 4. A change holds one for as long as its commit takes, and changes come one after
/// the other anyway.
pub const MAX_CONNECTIONS: usize = 4;

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
    /// Connects.
    pub fn connect(&self) -> Result<Box<dyn Connection>, Failure> {
        Ok(match &self.server {
            Server::Memory => Box::new(sqlite::Sqlite::open(None)?),
            Server::File(path) => Box::new(sqlite::Sqlite::open(Some(path))?),
            Server::Mysql(opts) => Box::new(mysql::Mysql::connect(opts)?),
            Server::Postgres(config) => Box::new(postgres::Postgres::connect(config)?),
        })
    }

    /// How many connections are of use. SQLite writes one change after the other in any case, and a second connection
    /// to a database in memory would be another database.
    pub fn connections(&self) -> usize {
        match self.server {
            Server::Memory | Server::File(_) => 1,
            Server::Mysql(_) | Server::Postgres(_) => MAX_CONNECTIONS,
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
