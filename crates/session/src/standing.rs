//! Who uses a connection, where an access file says who may do what.

use crate::gate::{Refusal, refusal_of_limit};
use pushlab_access::{Holder, LiveAccess, Peer, Person, Place};
use std::sync::Arc;
use std::time::Duration;

/// Somebody, and their place among the connections of their identity and of their address.
#[derive(Debug)]
pub struct Standing {
    /// Who.
    pub person: Arc<Person>,
    /// Their address, if known.
    pub address: Option<Holder>,
    /// What the connection takes up of what they may, once it lasts.
    place: Option<Place>,
    /// Its place among those of their address.
    address_place: Option<Place>,
    /// They were told that their token expires soon.
    is_warned: bool,
}

/// What is to be said about a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// It expires in so many seconds.
    Expires(u64),
    /// It has expired.
    Expired,
}

impl Standing {
    pub fn new(person: Arc<Person>, address: Option<Holder>) -> Self {
        Self { person, address, place: None, address_place: None, is_warned: false }
    }

    /// Takes a place for a lasting connection with so many subscriptions on this peer's socket. Without a token it
    /// takes none among those of an identity.
    pub fn enter(
        &mut self,
        subscriptions: usize,
        peer: Option<&Arc<Peer>>,
        access: &LiveAccess,
        now_ns: u64,
    ) -> Result<(), Refusal> {
        if let Some((peer, holder)) = peer.zip(self.address.clone()) {
            let quota = access.rules().address_quota;
            let place = access.ledger.enter_on(peer, holder, &quota, now_ns).map_err(refusal_of_limit)?;
            self.address_place = Some(place);
        }
        let Some(holder) = self.person.holder() else { return Ok(()) };
        let quota = access.rules().identity_quota;
        let mut place = access.ledger.enter(holder.clone(), &quota, now_ns).map_err(refusal_of_limit)?;
        place.subscribe(count(subscriptions), &quota).map_err(refusal_of_limit)?;
        self.place = Some(place);
        Ok(())
    }

    /// Has so many subscriptions from now on.
    pub fn subscribe(&mut self, subscriptions: usize, access: &LiveAccess) -> Result<(), Refusal> {
        let Some(place) = &mut self.place else { return Ok(()) };
        place.subscribe(count(subscriptions), &access.rules().identity_quota).map_err(refusal_of_limit)
    }

    /// Gives the place back: what lasted has ended.
    pub fn leave(&mut self) {
        (self.place, self.address_place) = (None, None);
    }

    /// The same person with another token.
    pub fn renew(&mut self, person: Arc<Person>) {
        self.person = person;
        self.is_warned = false;
    }

    /// What is to be said now, if anything is. It is said once.
    pub fn notice(&mut self, warning_s: u64, unix_s: u64) -> Option<Notice> {
        let left = self.person.expires_at?.saturating_sub(unix_s);
        if left == 0 {
            return Some(Notice::Expired);
        }
        if left <= warning_s && !self.is_warned {
            self.is_warned = true;
            return Some(Notice::Expires(left));
        }
        None
    }

    /// How long until something is to be said.
    pub fn until_notice(&self, warning_s: u64, unix_s: u64) -> Option<Duration> {
        let left = self.person.expires_at?.saturating_sub(unix_s);
        let until = if self.is_warned { left } else { left.saturating_sub(warning_s) };
        Some(Duration::from_secs(until))
    }
}

fn count(subscriptions: usize) -> u32 {
    u32::try_from(subscriptions).unwrap_or(u32::MAX)
}
