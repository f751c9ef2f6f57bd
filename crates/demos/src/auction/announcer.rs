//! Tells all what has changed, in the order of the commits.
//!
//! What is told is read from the database, where it was written with the change itself. So nothing is told that is not
//! committed, and nothing is left out: not a commit whose answer was lost, and not the changes of another server that
//! uses the same database.

use super::database::Failure;
use super::house::{House, PAGE};
use super::model::HouseError;
use crate::clock;
use crate::telling::tell;
use pushlab_application::Publisher;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Where changes are told.
pub const CHANNEL: &str = "demo.auction";

/// How often to look for auctions whose time is over, and for changes that another server made.
pub const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// Tells what comes after the version that was told last.
pub struct Announcer {
    house: Arc<House>,
    publisher: Publisher,
    told: i64,
    /// When to look next for auctions that are over.
    look_at: Instant,
    /// What the database said when it last refused to answer.
    refused: Option<String>,
}

impl Announcer {
    /// Tells what comes after this version.
    pub fn new(house: Arc<House>, publisher: Publisher, told: i64) -> Self {
        Self { house, publisher, told, look_at: Instant::now(), refused: None }
    }

    /// Tells what is new, and ends what is over. What fails is done the next time.
    pub fn turn(&mut self) {
        // That the database is away is written down where it is noticed; what it refuses, here, once.
        let refused = match self.tell().and_then(|()| self.look()) {
            Err(HouseError::Database(failure @ (Failure::Refused(_) | Failure::Full(_)))) => Some(failure.to_string()),
            _ => None,
        };
        if let Some(text) = refused.as_ref().filter(|_| refused != self.refused) {
            tell(format_args!("auction: nothing is announced; the database {}: {text}", self.house.location().label()));
        }
        self.refused = refused;
    }

    fn look(&mut self) -> Result<(), HouseError> {
        if Instant::now() < self.look_at {
            return Ok(());
        }
        let is_more = self.house.tidy()?;
        self.look_at = Instant::now() + if is_more { Duration::ZERO } else { LOOK_INTERVAL };
        self.tell()
    }

    fn tell(&mut self) -> Result<(), HouseError> {
        loop {
            let (version, changes) = self.house.changes(self.told)?;
            let is_gap = match changes.first() {
                // More happened than the database keeps.
                Some(first) => first.version > self.told + 1,
                // It was restored from a copy.
                None => version != self.told,
            };
            if is_gap {
                if !self.publish(r#"{"kind":"reload"}"#) {
                    return Ok(());
                }
                self.told = version;
                continue;
            }
            for change in &changes {
                if change.message.as_ref().is_some_and(|message| !self.publish(message)) {
                    return Ok(());
                }
                self.told = change.version;
            }
            if changes.len() < PAGE {
                return Ok(());
            }
        }
    }

    /// False when the server's loops are behind: then it is for the next turn.
    fn publish(&self, message: &str) -> bool {
        self.publisher.publish(CHANNEL, &stamped(message, clock::now_ms())).is_ok()
    }
}

/// A message, which is a JSON object that this program wrote, with the instant at which it is sent as its last member.
fn stamped(message: &str, sent_ms: f64) -> String {
    let members = message.strip_suffix('}').unwrap_or(message);
    format!("{members},\"sent_ms\":{sent_ms}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_tells_when_it_was_sent() {
        let sent = stamped(r#"{"kind":"reload"}"#, 1_700_000_000_000.125);
        assert_eq!(sent, r#"{"kind":"reload","sent_ms":1700000000000.125}"#);
    }
}
