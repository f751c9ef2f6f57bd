//! One change of the house: begun, done and committed, or undone as a whole.

use super::database::{Connection, Failure, Lease, Row, Value};
use super::model::{Account, HouseError, Item, Kind, SESSION_MS, item, no_house};
use serde::Serialize;

/// Changes that are kept: the last 10,000, at worst 80 MB.
pub const KEEP_CHANGES: i64 = 10_000;
/// Accounts that are removed at once: 100, because it takes looking through all.
pub const REMOVED_AT_ONCE: i64 = 100;

/// A change under way.
pub struct Change<'c> {
    connection: &'c mut dyn Connection,
    /// The house's version after it.
    pub version: i64,
    message: Option<String>,
}

/// How trying a change went.
pub enum Tried<T> {
    /// It lasts.
    Committed(T),
    /// Undone, for this reason.
    Undone(HouseError),
    /// The connection was lost during the commit of this version.
    Uncertain {
        /// What it gave.
        value: T,
        /// The house's version after it.
        version: i64,
        /// How the connection was lost.
        failure: Failure,
    },
}

/// An item by its number, and the number of its owner.
pub const ITEM: &str = "
    SELECT i.id, i.name, i.description, o.name, i.minimum_cents, i.expires_ms, l.name, i.leading_cents, i.bids,
           i.ended, i.version, i.owner_id
    FROM auction_items i
    JOIN auction_accounts o ON o.id = i.owner_id
    LEFT JOIN auction_accounts l ON l.id = i.leader_id
    WHERE i.id = ?";

/// Accounts that nobody would miss. A session's end is a fixed time after its log-in. Items are so few that all of them
/// are gathered, once; of bids, which have an index, there may be a million.
pub const UNUSED: &str = "
    SELECT a.id FROM auction_accounts a
    WHERE a.id NOT IN (SELECT owner_id FROM auction_items)
      AND a.id NOT IN (SELECT leader_id FROM auction_items WHERE leader_id IS NOT NULL)
      AND NOT EXISTS (SELECT 1 FROM auction_bids b WHERE b.bidder_id = a.id)
    ORDER BY COALESCE((SELECT MAX(s.expires_ms) FROM auction_sessions s WHERE s.account_id = a.id), 0), a.id
    LIMIT ?";

/// One try of a change. An error is one of the connection's before anything was committed.
pub fn attempt<T>(
    lease: &mut Lease<'_>,
    step: impl Fn(&mut Change<'_>) -> Result<T, HouseError>,
    ticket: &str,
) -> Result<Tried<T>, Failure> {
    let undone = |lease: &mut Lease<'_>, error: HouseError| match error {
        HouseError::Database(failure @ Failure::Away(_)) => Err(failure),
        error => {
            lease.undo();
            Ok(Tried::Undone(error))
        }
    };
    if let Err(failure) = lease.connection().begin() {
        return undone(lease, failure.into());
    }
    let mut change = Change { connection: lease.connection(), version: 0, message: None };
    let done = change.lock().map_err(HouseError::from).and_then(|()| {
        let value = step(&mut change)?;
        change.record(ticket)?;
        Ok((value, change.version))
    });
    let (value, version) = match done {
        Ok(done) => done,
        Err(error) => return undone(lease, error),
    };
    match lease.connection().commit() {
        Ok(()) => Ok(Tried::Committed(value)),
        Err(failure @ Failure::Away(_)) => {
            lease.lose();
            Ok(Tried::Uncertain { value, version, failure })
        }
        Err(failure) => undone(lease, failure.into()),
    }
}

impl Change<'_> {
    /// Runs a statement.
    pub fn run(&mut self, sql: &'static str, values: &[Value]) -> Result<Vec<Row>, Failure> {
        self.connection.run(sql, values)
    }

    /// The number that a statement gives.
    pub fn count(&mut self, sql: &'static str, values: &[Value]) -> Result<i64, Failure> {
        self.run(sql, values)?.first().ok_or_else(no_house)?.integer(0)
    }

    /// Waits until no other change is under way, and takes the next version.
    fn lock(&mut self) -> Result<(), Failure> {
        self.run("UPDATE auction_house SET version = version + 1 WHERE id = 1", &[])?;
        self.version = self.count("SELECT version FROM auction_house WHERE id = 1", &[])?;
        Ok(())
    }

    /// Writes down that this was changed, by whom it can be found again, and what to tell.
    fn record(&mut self, ticket: &str) -> Result<(), Failure> {
        let sql = "INSERT INTO auction_changes (version, ticket, message) VALUES (?, ?, ?)";
        let message = self.message.take();
        self.run(sql, &[self.version.into(), ticket.into(), message.into()])?;
        let sql = "DELETE FROM auction_changes WHERE version <= ?";
        self.run(sql, &[(self.version - KEEP_CHANGES).into()])?;
        Ok(())
    }

    /// Makes sure that an account is there still.
    pub fn expect(&mut self, account: &Account) -> Result<(), HouseError> {
        let found = self.run("SELECT id FROM auction_accounts WHERE id = ?", &[account.id.into()])?;
        if found.is_empty() { Err(HouseError::NoAccount) } else { Ok(()) }
    }

    /// Adds a session of an account.
    pub fn begin_session(&mut self, account: &Account, token_hash: &str, now_ms: i64) -> Result<(), Failure> {
        let sql = "INSERT INTO auction_sessions (token_hash, account_id, expires_ms) VALUES (?, ?, ?)";
        self.run(sql, &[token_hash.into(), account.id.into(), (now_ms + SESSION_MS).into()]).map(drop)
    }

    /// Removes some accounts that have neither items nor bids. False if there are none.
    pub fn make_room(&mut self) -> Result<bool, Failure> {
        let unused = self.run(UNUSED, &[REMOVED_AT_ONCE.into()])?;
        for row in &unused {
            let id = row.integer(0)?;
            self.run("DELETE FROM auction_sessions WHERE account_id = ?", &[id.into()])?;
            self.run("DELETE FROM auction_accounts WHERE id = ?", &[id.into()])?;
        }
        Ok(!unused.is_empty())
    }

    /// An item, and the number of its owner.
    pub fn item(&mut self, id: i64) -> Result<(Item, i64), HouseError> {
        let rows = self.run(ITEM, &[id.into()])?;
        let row = rows.first().ok_or(HouseError::NoItem)?;
        Ok((item(row)?, row.integer(11)?))
    }

    /// Removes an item with its bids.
    pub fn delete(&mut self, item: Item) -> Result<Item, HouseError> {
        self.run("DELETE FROM auction_bids WHERE item_id = ?", &[item.id.into()])?;
        self.run("DELETE FROM auction_items WHERE id = ?", &[item.id.into()])?;
        Ok(self.told(Kind::Removed, item))
    }

    /// Remembers to tell all of an item as it is after this change.
    pub fn told(&mut self, kind: Kind, mut item: Item) -> Item {
        #[derive(Serialize)]
        struct Message<'m> {
            kind: Kind,
            item: &'m Item,
        }
        item.version = self.version;
        let message = serde_json::to_string(&Message { kind, item: &item });
        self.message = Some(message.expect("text and numbers always serialise"));
        item
    }
}
