//! What happens in the auction house, each thing in one change of the database.
//!
//! A change begins by writing the house's row, whose lock it keeps until it is committed. So changes come one after the
//! other, whatever the database and however many servers use it, and the house's version counts them: in the order of
//! their commits, without holes. What all are to be told of a change is written with it.

use super::database::{Connection, Failure, Lease, Location, Pool, Row, Value};
use super::schema;
use super::values::{AccountName, Cents, Offer};
use crate::secret::Secret;
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Accounts: 10,000, some 3 MB.
pub const MAX_ACCOUNTS: i64 = 10_000;
/// Sessions of an account: 10. One more ends the oldest.
pub const MAX_SESSIONS: usize = 10;
/// A session ends after a week.
pub const SESSION_MS: i64 = 7 * 24 * 3600 * 1000;
/// Items of one account that are in the house at a time: 50.
pub const MAX_ITEMS_OF_ACCOUNT: i64 = 50;
/// Items in the house: 1,000, at worst 5 MB. A list of them is whole.
pub const MAX_ITEMS: i64 = 1000;
/// Bids of an item that are kept and told: the last 1,000, 100 KB.
pub const MAX_HISTORY: i64 = 1000;
/// An item whose auction has ended stays in the house for a week.
pub const KEEP_ENDED_MS: i64 = 7 * 24 * 3600 * 1000;
/// Changes that are kept: the last 10,000, at worst 80 MB.
pub const KEEP_CHANGES: i64 = 10_000;
/// Of how many changes, ended or old items one look gives news.
pub const PAGE: usize = 200;

/// How long a change is tried again where others were in its way, or how long to ask what became of it.
const PATIENCE: Duration = Duration::from_secs(5);

/// The clock by which auctions and sessions end: milliseconds since 1970.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// The house, in its database.
pub struct House {
    pool: Pool,
    clock: Clock,
}

/// Somebody who is registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its number.
    pub id: i64,
    /// Its name, as it was registered.
    pub name: String,
}

/// A thing that is auctioned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Item {
    /// Its number; no other item ever has it.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// What its owner says of it.
    pub description: String,
    /// Who offers it.
    pub owner: String,
    /// The least that the first bid must be.
    pub minimum_cents: i64,
    /// When its auction ends, milliseconds since 1970.
    pub expires_ms: i64,
    /// The highest bid.
    pub leading: Option<Leading>,
    /// How many bids there were.
    pub bids: i64,
    /// Whether its end was announced.
    pub ended: bool,
    /// The house's version after its last change.
    pub version: i64,
}

/// The highest bid for an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Leading {
    /// Whose it is.
    pub bidder: String,
    /// How high it is.
    pub amount_cents: i64,
}

/// A bid that was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bid {
    /// The first one is 1.
    pub number: i64,
    /// Whose it is.
    pub bidder: String,
    /// How high it is.
    pub amount_cents: i64,
    /// When it was taken, milliseconds since 1970.
    pub at_ms: i64,
}

/// What is told of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// It has a new leading bid.
    Bid,
    /// Its auction is over.
    Ended,
}

/// A change that was committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The house's version after it.
    pub version: i64,
    /// What all are to be told of it, JSON, if anything.
    pub message: Option<String>,
}

/// Why something did not happen.
#[derive(Debug, Error)]
pub enum HouseError {
    /// There is no such item.
    #[error("there is no such item, or no longer")]
    NoItem,
    /// It belongs to somebody else.
    #[error("this item belongs to somebody else")]
    NotOwner,
    /// An account has the name.
    #[error("somebody has this name")]
    NameTaken,
    /// The bid is too low.
    #[error("the bid is too low")]
    Outbid {
        /// What leads.
        leading: Option<Leading>,
        /// The least that would be taken.
        least_cents: i64,
    },
    /// The auction is over.
    #[error("the auction of this item has ended")]
    Expired,
    /// A limit is reached.
    #[error("{0}")]
    Full(&'static str),
    /// The database failed, and nothing happened.
    #[error(transparent)]
    Database(#[from] Failure),
    /// The database went away while the change was committed, and nobody knows whether it was.
    #[error("whether it was done is unknown: {0}")]
    Unknown(#[source] Failure),
}

/// A change under way.
struct Change<'c> {
    connection: &'c mut dyn Connection,
    /// The house's version after it.
    version: i64,
    message: Option<String>,
}

/// How trying a change went.
enum Tried<T> {
    Committed(T),
    /// Undone, for this reason.
    Undone(HouseError),
    /// The connection was lost during the commit of this version.
    Uncertain {
        value: T,
        version: i64,
        failure: Failure,
    },
}

const ITEM: &str = "
    SELECT i.id, i.name, i.description, o.name, i.minimum_cents, i.expires_ms, l.name, i.leading_cents, i.bids,
           i.ended, i.version, i.owner_id
    FROM auction_items i
    JOIN auction_accounts o ON o.id = i.owner_id
    LEFT JOIN auction_accounts l ON l.id = i.leader_id
    WHERE i.id = ?";

/// In one statement, so that version and items belong together.
const ITEMS: &str = "
    SELECT i.id, i.name, i.description, o.name, i.minimum_cents, i.expires_ms, l.name, i.leading_cents, i.bids,
           i.ended, i.version, h.version
    FROM auction_house h
    LEFT JOIN auction_items i ON i.id > 0
    LEFT JOIN auction_accounts o ON o.id = i.owner_id
    LEFT JOIN auction_accounts l ON l.id = i.leader_id
    WHERE h.id = 1 ORDER BY i.ended, i.expires_ms, i.id";

const CHANGES: &str = "
    SELECT h.version, c.version, c.message
    FROM auction_house h LEFT JOIN auction_changes c ON c.version > ?
    WHERE h.id = 1 ORDER BY c.version LIMIT ?";

impl House {
    /// The house in the database at a place, whose tables are made if they are not there.
    pub fn open(location: Location, clock: Clock) -> Result<Self, Failure> {
        let house = Self { pool: Pool::new(location, schema::prepare), clock };
        house.version()?;
        Ok(house)
    }

    /// Where its database is.
    pub fn location(&self) -> &Location {
        self.pool.location()
    }

    /// What its clock shows.
    pub fn now_ms(&self) -> i64 {
        (self.clock)()
    }

    /// The version after the latest change.
    pub fn version(&self) -> Result<i64, Failure> {
        let rows = self.read("SELECT version FROM auction_house WHERE id = 1", &[])?;
        rows.first().ok_or_else(no_house)?.integer(0)
    }

    /// Adds an account.
    pub fn register(&self, name: &AccountName, password_hash: &str) -> Result<Account, HouseError> {
        self.change(|change| {
            if !change.run("SELECT id FROM auction_accounts WHERE name_key = ?", &[(&name.key()).into()])?.is_empty() {
                return Err(HouseError::NameTaken);
            }
            if change.count("SELECT COUNT(*) FROM auction_accounts", &[])? >= MAX_ACCOUNTS {
                return Err(HouseError::Full("the house has as many accounts as it may have"));
            }
            let id = change.version;
            let sql = "INSERT INTO auction_accounts (id, name, name_key, password_hash, created_ms)
                       VALUES (?, ?, ?, ?, ?)";
            let values =
                [id.into(), name.text().into(), (&name.key()).into(), password_hash.into(), self.now_ms().into()];
            change.run(sql, &values)?;
            Ok(Account { id, name: name.text().to_owned() })
        })
    }

    /// The account of this name, and the hash of its password.
    pub fn account(&self, name: &AccountName) -> Result<Option<(Account, String)>, Failure> {
        let sql = "SELECT id, name, password_hash FROM auction_accounts WHERE name_key = ?";
        let rows = self.read(sql, &[(&name.key()).into()])?;
        let read = |row: &Row| Ok((Account { id: row.integer(0)?, name: row.text(1)? }, row.text(2)?));
        rows.first().map(read).transpose()
    }

    /// Adds a session of an account; what its token hashes to is all that is kept of it.
    pub fn begin_session(&self, account: &Account, token_hash: &str) -> Result<(), HouseError> {
        self.change(|change| {
            let now_ms = self.now_ms();
            change.run("DELETE FROM auction_sessions WHERE expires_ms <= ?", &[now_ms.into()])?;
            let sql = "SELECT token_hash FROM auction_sessions WHERE account_id = ? ORDER BY expires_ms DESC";
            for old in change.run(sql, &[account.id.into()])?.iter().skip(MAX_SESSIONS - 1) {
                change.run("DELETE FROM auction_sessions WHERE token_hash = ?", &[(&old.text(0)?).into()])?;
            }
            let sql = "INSERT INTO auction_sessions (token_hash, account_id, expires_ms) VALUES (?, ?, ?)";
            change.run(sql, &[token_hash.into(), account.id.into(), (now_ms + SESSION_MS).into()])?;
            Ok(())
        })
    }

    /// Whose session it is, if it is one.
    pub fn session(&self, token_hash: &str) -> Result<Option<Account>, Failure> {
        let sql = "SELECT a.id, a.name FROM auction_sessions s JOIN auction_accounts a ON a.id = s.account_id
                   WHERE s.token_hash = ? AND s.expires_ms > ?";
        let rows = self.read(sql, &[token_hash.into(), self.now_ms().into()])?;
        rows.first().map(|row| Ok(Account { id: row.integer(0)?, name: row.text(1)? })).transpose()
    }

    /// Ends a session.
    pub fn end_session(&self, token_hash: &str) -> Result<(), Failure> {
        self.read("DELETE FROM auction_sessions WHERE token_hash = ?", &[token_hash.into()]).map(|_| ())
    }

    /// All items, those whose auctions go on first, and the version of the house of which they are.
    pub fn items(&self) -> Result<(i64, Vec<Item>), Failure> {
        let rows = self.read(ITEMS, &[])?;
        let version = rows.first().ok_or_else(no_house)?.integer(11)?;
        let mut items = Vec::with_capacity(rows.len());
        for row in &rows {
            if row.optional_integer(0)?.is_some() {
                items.push(item(row)?);
            }
        }
        Ok((version, items))
    }

    /// An item and its bids, the latest first.
    pub fn item(&self, id: i64) -> Result<(Item, Vec<Bid>), HouseError> {
        let rows = self.read(ITEM, &[id.into()])?;
        let item = item(rows.first().ok_or(HouseError::NoItem)?)?;
        let sql = "SELECT b.number, a.name, b.amount_cents, b.at_ms
                   FROM auction_bids b JOIN auction_accounts a ON a.id = b.bidder_id
                   WHERE b.item_id = ? AND b.number <= ? ORDER BY b.number DESC";
        // Bids are never changed, so those up to the item's number of bids are its history then.
        let rows = self.read(sql, &[id.into(), item.bids.into()])?;
        let read = |row: &Row| {
            Ok(Bid {
                number: row.integer(0)?,
                bidder: row.text(1)?,
                amount_cents: row.integer(2)?,
                at_ms: row.integer(3)?,
            })
        };
        let bids = rows.iter().map(read).collect::<Result<_, Failure>>()?;
        Ok((item, bids))
    }

    /// Adds an item.
    pub fn add(&self, owner: &Account, offer: &Offer) -> Result<Item, HouseError> {
        self.change(|change| {
            if change.count("SELECT COUNT(*) FROM auction_items", &[])? >= MAX_ITEMS {
                return Err(HouseError::Full("the house is full; try again when items have been removed"));
            }
            let own = "SELECT COUNT(*) FROM auction_items WHERE owner_id = ?";
            if change.count(own, &[owner.id.into()])? >= MAX_ITEMS_OF_ACCOUNT {
                return Err(HouseError::Full("one account has 50 items in the house at most; remove one first"));
            }
            let item = Item {
                id: change.version,
                name: offer.name.clone(),
                description: offer.description.clone(),
                owner: owner.name.clone(),
                minimum_cents: offer.minimum.number(),
                expires_ms: offer.expires_ms,
                leading: None,
                bids: 0,
                ended: false,
                version: change.version,
            };
            let sql = "INSERT INTO auction_items
                       (id, owner_id, name, description, minimum_cents, expires_ms, bids, ended, version)
                       VALUES (?, ?, ?, ?, ?, ?, 0, 0, ?)";
            let values: [Value; 7] = [
                item.id.into(),
                owner.id.into(),
                (&item.name).into(),
                (&item.description).into(),
                item.minimum_cents.into(),
                item.expires_ms.into(),
                item.version.into(),
            ];
            change.run(sql, &values)?;
            Ok(change.told(Kind::Added, item))
        })
    }

    /// Removes an item of this owner, with its bids.
    pub fn remove(&self, owner: &Account, id: i64) -> Result<Item, HouseError> {
        self.change(|change| {
            let (item, owner_id) = change.item(id)?;
            if owner_id != owner.id {
                return Err(HouseError::NotOwner);
            }
            change.delete(item)
        })
    }

    /// Takes a bid, if it is at least the minimum and above all others and the auction goes on.
    pub fn bid(&self, bidder: &Account, id: i64, amount: Cents) -> Result<Item, HouseError> {
        self.change(|change| {
            let (mut item, _) = change.item(id)?;
            let now_ms = self.now_ms();
            // Once the end was announced it is one, whatever a clock says that was set back.
            if item.ended || now_ms >= item.expires_ms {
                return Err(HouseError::Expired);
            }
            let least_cents = item.leading.as_ref().map_or(item.minimum_cents, |leading| leading.amount_cents + 1);
            let amount_cents = amount.number();
            if amount_cents < least_cents {
                return Err(HouseError::Outbid { leading: item.leading, least_cents });
            }
            item.leading = Some(Leading { bidder: bidder.name.clone(), amount_cents });
            item.bids += 1;
            let sql = "UPDATE auction_items SET leader_id = ?, leading_cents = ?, bids = ?, version = ? WHERE id = ?";
            let values = [bidder.id.into(), amount_cents.into(), item.bids.into(), change.version.into(), id.into()];
            change.run(sql, &values)?;
            let sql = "INSERT INTO auction_bids (item_id, number, bidder_id, amount_cents, at_ms)
                       VALUES (?, ?, ?, ?, ?)";
            let values = [id.into(), item.bids.into(), bidder.id.into(), amount_cents.into(), now_ms.into()];
            change.run(sql, &values)?;
            if item.bids > MAX_HISTORY {
                let sql = "DELETE FROM auction_bids WHERE item_id = ? AND number <= ?";
                change.run(sql, &[id.into(), (item.bids - MAX_HISTORY).into()])?;
            }
            Ok(change.told(Kind::Bid, item))
        })
    }

    /// Ends auctions whose time is over, and removes items that ended long ago: of each some. Says whether there may
    /// be more.
    pub fn tidy(&self) -> Result<bool, HouseError> {
        let now_ms = self.now_ms();
        let sql = "SELECT id FROM auction_items WHERE ended = ? AND expires_ms <= ? ORDER BY expires_ms LIMIT ?";
        let over = self.read(sql, &[0.into(), now_ms.into(), (PAGE as i64).into()])?;
        for row in &over {
            self.attend(row.integer(0)?, |change, mut item| {
                if item.ended || self.now_ms() < item.expires_ms {
                    return Err(HouseError::NoItem);
                }
                item.ended = true;
                let sql = "UPDATE auction_items SET ended = 1, version = ? WHERE id = ?";
                change.run(sql, &[change.version.into(), item.id.into()])?;
                Ok(change.told(Kind::Ended, item))
            })?;
        }
        let old = self.read(sql, &[1.into(), (now_ms - KEEP_ENDED_MS).into(), (PAGE as i64).into()])?;
        for row in &old {
            self.attend(row.integer(0)?, |change, item| change.delete(item))?;
        }
        Ok(over.len().max(old.len()) == PAGE)
    }

    /// A change of an item that may be gone, or changed already, by the time.
    fn attend(
        &self,
        id: i64,
        step: impl Fn(&mut Change<'_>, Item) -> Result<Item, HouseError>,
    ) -> Result<(), HouseError> {
        let done = self.change(|change| {
            let (item, _) = change.item(id)?;
            step(change, item)
        });
        match done {
            Ok(_) | Err(HouseError::NoItem) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The house's version, and the changes after another one, [`PAGE`] at most.
    pub fn changes(&self, after: i64) -> Result<(i64, Vec<Told>), Failure> {
        let rows = self.read(CHANGES, &[after.into(), (PAGE as i64).into()])?;
        let version = rows.first().ok_or_else(no_house)?.integer(0)?;
        let mut changes = Vec::new();
        for row in &rows {
            if let Some(version) = row.optional_integer(1)? {
                changes.push(Told { version, message: row.optional_text(2)? });
            }
        }
        Ok((version, changes))
    }

    fn read(&self, sql: &'static str, values: &[Value]) -> Result<Vec<Row>, Failure> {
        self.pool.with(|lease| lease.connection().run(sql, values))
    }

    /// Does `step` in a change of its own, again if others were in its way.
    fn change<T>(&self, step: impl Fn(&mut Change<'_>) -> Result<T, HouseError>) -> Result<T, HouseError> {
        let ticket = Secret::new().map_err(|error| Failure::Refused(error.into()))?.to_string();
        let begun = Instant::now();
        loop {
            match self.pool.with(|lease| attempt(lease, &step, &ticket))? {
                Tried::Committed(value) => return Ok(value),
                Tried::Undone(HouseError::Database(Failure::Busy(_))) if begun.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(fastrand::u64(1..20)));
                }
                Tried::Undone(error) => return Err(error),
                Tried::Uncertain { value, version, failure } => match self.was_committed(version, &ticket) {
                    Some(true) => return Ok(value),
                    Some(false) if begun.elapsed() < PATIENCE => {}
                    Some(false) => return Err(failure.into()),
                    None => return Err(HouseError::Unknown(failure)),
                },
            }
        }
    }

    /// Whether the change with this ticket was committed, asked until there is an answer or patience ends.
    fn was_committed(&self, version: i64, ticket: &str) -> Option<bool> {
        let ask = |lease: &mut Lease<'_>| {
            let connection = lease.connection();
            connection.begin()?;
            let asked = (|| {
                // The server may still be at work on that commit: its change keeps the lock until it is through.
                connection.run("UPDATE auction_house SET version = version WHERE id = 1", &[])?;
                let sql = "SELECT version FROM auction_changes WHERE version = ? AND ticket = ?";
                Ok(!connection.run(sql, &[version.into(), ticket.into()])?.is_empty())
            })();
            connection.rollback()?;
            asked
        };
        let begun = Instant::now();
        loop {
            match self.pool.with(ask) {
                Ok(answer) => return Some(answer),
                Err(_) if begun.elapsed() > PATIENCE => return None,
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }
}

/// One try of a change. An error is one of the connection's before anything was committed.
fn attempt<T>(
    lease: &mut Lease<'_>,
    step: impl Fn(&mut Change<'_>) -> Result<T, HouseError>,
    ticket: &str,
) -> Result<Tried<T>, Failure> {
    let connection = lease.connection();
    let undone = |connection: &mut dyn Connection, error: HouseError| match error {
        HouseError::Database(failure @ Failure::Away(_)) => Err(failure),
        error => connection.rollback().map(|()| Tried::Undone(error)),
    };
    if let Err(failure) = connection.begin() {
        return undone(connection, failure.into());
    }
    let mut change = Change { connection, version: 0, message: None };
    let done = change.lock().map_err(HouseError::from).and_then(|()| {
        let value = step(&mut change)?;
        change.record(ticket)?;
        Ok(value)
    });
    let (value, version) = match done {
        Ok(value) => (value, change.version),
        Err(error) => return undone(connection, error),
    };
    match connection.commit() {
        Ok(()) => Ok(Tried::Committed(value)),
        Err(failure @ Failure::Away(_)) => {
            lease.lose();
            Ok(Tried::Uncertain { value, version, failure })
        }
        Err(failure) => undone(connection, failure.into()),
    }
}

impl Change<'_> {
    fn run(&mut self, sql: &'static str, values: &[Value]) -> Result<Vec<Row>, Failure> {
        self.connection.run(sql, values)
    }

    fn count(&mut self, sql: &'static str, values: &[Value]) -> Result<i64, Failure> {
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

    /// An item, and the number of its owner.
    fn item(&mut self, id: i64) -> Result<(Item, i64), HouseError> {
        let rows = self.run(ITEM, &[id.into()])?;
        let row = rows.first().ok_or(HouseError::NoItem)?;
        Ok((item(row)?, row.integer(11)?))
    }

    fn delete(&mut self, item: Item) -> Result<Item, HouseError> {
        self.run("DELETE FROM auction_bids WHERE item_id = ?", &[item.id.into()])?;
        self.run("DELETE FROM auction_items WHERE id = ?", &[item.id.into()])?;
        Ok(self.told(Kind::Removed, item))
    }

    /// Remembers to tell all of an item as it is after this change.
    fn told(&mut self, kind: Kind, mut item: Item) -> Item {
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

fn item(row: &Row) -> Result<Item, Failure> {
    let leading = match (row.optional_text(6)?, row.optional_integer(7)?) {
        (Some(bidder), Some(amount_cents)) => Some(Leading { bidder, amount_cents }),
        _ => None,
    };
    Ok(Item {
        id: row.integer(0)?,
        name: row.text(1)?,
        description: row.text(2)?,
        owner: row.text(3)?,
        minimum_cents: row.integer(4)?,
        expires_ms: row.integer(5)?,
        leading,
        bids: row.integer(8)?,
        ended: row.integer(9)? != 0,
        version: row.integer(10)?,
    })
}

fn no_house() -> Failure {
    Failure::Refused("its table auction_house is empty; restore it or use another database".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn house() -> House {
        House::open("sqlite::memory:".parse().expect("a good URL"), Arc::new(|| 0)).expect("in memory")
    }

    fn account(house: &House, name: &str) -> Result<Account, HouseError> {
        house.register(&AccountName::parse(name).expect("a good name"), "hash")
    }

    fn offer() -> Offer {
        Offer::parse("a chair", "", 1, 10_000, 0).expect("a good offer")
    }

    #[test]
    fn accounts_and_kept_changes_have_a_limit() {
        let house = house();
        for number in 0..MAX_ACCOUNTS {
            account(&house, &format!("n{number}")).expect("room");
        }
        assert!(matches!(account(&house, "one-more"), Err(HouseError::Full(_))));
        assert_eq!(house.version().expect("in memory"), MAX_ACCOUNTS, "what is refused changes nothing");
        assert_eq!(house.changes(0).expect("in memory").1[0].version, MAX_ACCOUNTS - KEEP_CHANGES + 1);
        let owner = house.account(&AccountName::parse("N0").expect("good")).expect("in memory").expect("there").0;
        house.add(&owner, &offer()).expect("room");
        let (version, changes) = house.changes(0).expect("in memory");
        assert_eq!((version, changes.len()), (MAX_ACCOUNTS + 1, PAGE));
        assert_eq!(changes[0].version, version - KEEP_CHANGES + 1, "the oldest is gone");
    }

    #[test]
    fn items_have_a_limit() {
        let house = house();
        for number in 0..MAX_ITEMS / MAX_ITEMS_OF_ACCOUNT {
            let owner = account(&house, &format!("n{number}")).expect("room");
            for _ in 0..MAX_ITEMS_OF_ACCOUNT {
                house.add(&owner, &offer()).expect("room");
            }
            assert!(matches!(house.add(&owner, &offer()), Err(HouseError::Full(_))), "of one account");
        }
        let other = account(&house, "other").expect("room");
        assert!(matches!(house.add(&other, &offer()), Err(HouseError::Full(_))), "of all");
        assert_eq!(house.items().expect("in memory").1.len() as i64, MAX_ITEMS, "a list is whole");
    }

    #[test]
    fn the_last_bids_are_kept() {
        let house = house();
        let ada = account(&house, "ada").expect("room");
        let item = house.add(&ada, &offer()).expect("room").id;
        for cents in 1..=MAX_HISTORY + 2 {
            house.bid(&ada, item, Cents::parse(cents).expect("an amount")).expect("higher");
        }
        let (item, history) = house.item(item).expect("there");
        assert_eq!((item.bids, history.len() as i64), (MAX_HISTORY + 2, MAX_HISTORY));
        assert_eq!((history[0].number, history[history.len() - 1].number), (MAX_HISTORY + 2, 3));
    }
}
