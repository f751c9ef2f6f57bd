//! What there is in the auction house, and why something did not happen.

use super::database::{Failure, Row};
use serde::Serialize;
use thiserror::Error;

/// A session ends after a week.
pub const SESSION_MS: i64 = 7 * 24 * 3600 * 1000;

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

/// The highest bid of an account on an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OwnBid {
    /// The item's number.
    pub id: i64,
    /// How high it is.
    pub amount_cents: i64,
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
    /// The account that a session belongs to was removed to make room.
    #[error("this account is gone: it had neither items nor bids when the house was full; register again")]
    NoAccount,
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

/// An item of a row that has its columns first.
pub fn item(row: &Row) -> Result<Item, Failure> {
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

/// The house has no row.
pub fn no_house() -> Failure {
    Failure::Refused("its table auction_house is empty; restore it or use another database".into())
}
