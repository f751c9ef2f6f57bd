//! The tables. Their names begin with `auction_`, so that the database may hold other things.

use super::database::{Connection, Failure};

/// The version of the tables that this program reads and writes.
const SCHEMA: i64 = 2;

/// Tables in the order in which they refer to each other. A `UNIQUE` that a key makes superfluous is there as an index,
/// which is the one way to ask for one that all databases share.
const TABLES: [&str; 6] = [
    // One row. Its lock is the house's: every change begins by writing it.
    "auction_house (
        id BIGINT PRIMARY KEY,
        schema_version BIGINT NOT NULL,
        version BIGINT NOT NULL
    )",
    "auction_accounts (
        id BIGINT PRIMARY KEY,
        name VARCHAR(24) NOT NULL,
        name_key VARCHAR(24) NOT NULL UNIQUE,
        password_hash VARCHAR(255) NOT NULL,
        created_ms BIGINT NOT NULL
    )",
    "auction_sessions (
        token_hash VARCHAR(64) PRIMARY KEY,
        account_id BIGINT NOT NULL,
        expires_ms BIGINT NOT NULL,
        UNIQUE (account_id, expires_ms, token_hash),
        UNIQUE (expires_ms, token_hash),
        FOREIGN KEY (account_id) REFERENCES auction_accounts (id)
    )",
    "auction_items (
        id BIGINT PRIMARY KEY,
        owner_id BIGINT NOT NULL,
        name VARCHAR(100) NOT NULL,
        description TEXT NOT NULL,
        minimum_cents BIGINT NOT NULL,
        expires_ms BIGINT NOT NULL,
        leader_id BIGINT,
        leading_cents BIGINT,
        bids BIGINT NOT NULL,
        ended BIGINT NOT NULL,
        version BIGINT NOT NULL,
        UNIQUE (ended, expires_ms, id),
        FOREIGN KEY (owner_id) REFERENCES auction_accounts (id),
        FOREIGN KEY (leader_id) REFERENCES auction_accounts (id)
    )",
    "auction_bids (
        item_id BIGINT NOT NULL,
        number BIGINT NOT NULL,
        bidder_id BIGINT NOT NULL,
        amount_cents BIGINT NOT NULL,
        at_ms BIGINT NOT NULL,
        PRIMARY KEY (item_id, number),
        UNIQUE (bidder_id, item_id, number),
        FOREIGN KEY (item_id) REFERENCES auction_items (id),
        FOREIGN KEY (bidder_id) REFERENCES auction_accounts (id)
    )",
    // What was changed lately, by the version of the house after it, and what all are to be told of it.
    "auction_changes (
        version BIGINT PRIMARY KEY,
        ticket VARCHAR(32) NOT NULL,
        message TEXT
    )",
];

/// Makes sure that the tables are there and of this version.
pub fn prepare(connection: &mut dyn Connection) -> Result<(), Failure> {
    match found(connection) {
        Ok(Some(SCHEMA)) => Ok(()),
        Ok(Some(other)) => Err(Failure::Refused(
            format!("its tables have version {other}, and this program works with {SCHEMA}; use the program that made them, or another database").into(),
        )),
        Ok(None) | Err(Failure::Refused(_) | Failure::Busy(_)) => create(connection),
        Err(failure) => Err(failure),
    }
}

fn found(connection: &mut dyn Connection) -> Result<Option<i64>, Failure> {
    let rows = connection.run("SELECT schema_version FROM auction_house WHERE id = 1", &[])?;
    rows.first().map(|row| row.integer(0)).transpose()
}

/// Several programs may do this at once. Whoever comes second at a step may be refused there (two that create one
/// PostgreSQL table violate a key of its catalogue), but then the step is done, by the first: so as many tries as there
/// are steps, and one, get past them all.
fn create(connection: &mut dyn Connection) -> Result<(), Failure> {
    let mut tried = Ok(());
    for _ in 0..TABLES.len() + 2 {
        tried = make(connection);
        match found(connection) {
            Ok(Some(SCHEMA)) => return Ok(()),
            Err(failure @ Failure::Away(_)) => return Err(failure),
            _ => {}
        }
    }
    tried
}

fn make(connection: &mut dyn Connection) -> Result<(), Failure> {
    TABLES.iter().try_for_each(|table| connection.create(table))?;
    let sql = "INSERT INTO auction_house (id, schema_version, version) VALUES (1, ?, 0)";
    connection.run(sql, &[SCHEMA.into()]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::super::database::Pool;
    use super::*;

    #[test]
    fn tables_are_made_once_and_those_of_other_versions_refused() {
        let pool = Pool::new("sqlite::memory:".parse().expect("a good URL"), prepare);
        assert_eq!(pool.with(|lease| found(lease.connection())).expect("made"), Some(SCHEMA));
        pool.with(|lease| prepare(lease.connection())).expect("made already");
        for other in [SCHEMA - 1, SCHEMA + 1] {
            let sql = "UPDATE auction_house SET schema_version = ?";
            pool.with(|lease| lease.connection().run(sql, &[other.into()])).expect("a change");
            let refused = pool.with(|lease| prepare(lease.connection())).expect_err("another program's").to_string();
            assert!(refused.contains(&format!("version {other}")) && refused.contains("another database"), "{refused}");
        }
    }
}
