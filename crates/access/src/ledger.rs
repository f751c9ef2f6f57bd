//! How much each identity and each address takes up, and how much more it may.

use core::net::IpAddr;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Holders that are looked through at once for such as hold nothing any more, at least.
const SWEEP_FROM: usize = 1024;

/// How much one identity or one address may take up; what is not named has no limit.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Quota {
    /// Receiving connections at a time: WebSockets, streams, held polls. For an address, all its connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
    /// Subscriptions at a time, over all its connections: a channel counts once for each connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscriptions: Option<u32>,
    /// Publications a second; as many may come at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publications_per_s: Option<u32>,
    /// Bytes published a second; as many may come at once, so no publication can be larger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_s: Option<u32>,
}

impl Quota {
    /// Whether nothing is limited.
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }

    /// Says what is wrong with it, if anything is.
    pub(crate) fn check(&self, name: &str) -> Result<(), String> {
        let Self { connections, subscriptions, publications_per_s, bytes_per_s } = *self;
        if [connections, subscriptions, publications_per_s, bytes_per_s].contains(&Some(0)) {
            return Err(format!(
                "{name}: a limit of 0 would refuse everything; leave it out, or allow no right by a rule"
            ));
        }
        Ok(())
    }
}

/// Who takes something up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Holder {
    /// Somebody with a token.
    Identity(Box<str>),
    /// Somebody at an address.
    Address(IpAddr),
}

impl Holder {
    /// Somebody at an address: with IPv6, one network of 64 bits, of which a household has at least one whole.
    pub fn at(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() & !u128::from(u64::MAX)).into()),
            v4 => v4,
        })
    }
}

/// A limit is reached; the text says which.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LimitReached(pub String);

/// What all holders have. It is shared by the event loops.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<Accounts>);

#[derive(Debug, Default)]
struct Accounts {
    of: HashMap<Holder, Account>,
    sweep_at: usize,
}

#[derive(Debug, Default)]
struct Account {
    connections: u32,
    subscriptions: u32,
    publications: Bucket,
    bytes: Bucket,
}

/// A token bucket (ITU-T I.371) that holds what a second brings: what was taken and has not come again yet.
#[derive(Debug, Default)]
struct Bucket {
    /// In billionths of one, so that no rounding adds up.
    taken: u128,
    at_ns: u64,
}

impl Bucket {
    fn settle(&mut self, per_s: u32, now_ns: u64) {
        let came = u128::from(now_ns.saturating_sub(self.at_ns)) * u128::from(per_s);
        self.taken = self.taken.saturating_sub(came);
        self.at_ns = self.at_ns.max(now_ns);
    }

    fn has(&mut self, amount: u32, per_s: u32, now_ns: u64) -> bool {
        self.settle(per_s, now_ns);
        self.taken + u128::from(amount) * 1_000_000_000 <= u128::from(per_s) * 1_000_000_000
    }

    fn take(&mut self, amount: u32) {
        self.taken += u128::from(amount) * 1_000_000_000;
    }

    /// Whether it is full, whatever the rate was: a second has passed.
    fn is_settled(&self, now_ns: u64) -> bool {
        self.taken == 0 || now_ns.saturating_sub(self.at_ns) >= 1_000_000_000
    }
}

/// A connection's place in the account of its holder, which it gives back when it is dropped.
#[derive(Debug)]
pub struct Place {
    ledger: Arc<Ledger>,
    holder: Holder,
    subscriptions: u32,
}

impl Ledger {
    fn lock(&self) -> MutexGuard<'_, Accounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place for a connection.
    ///
    /// # Errors
    /// [`LimitReached`].
    pub fn enter(self: &Arc<Self>, holder: Holder, quota: &Quota, now_ns: u64) -> Result<Place, LimitReached> {
        let mut accounts = self.lock();
        let account = accounts.account(&holder, now_ns);
        if let Some(max) = quota.connections
            && account.connections >= max
        {
            return Err(LimitReached(format!("at most {max} connections at a time {}", whose(&holder))));
        }
        account.connections += 1;
        Ok(Place { ledger: self.clone(), holder, subscriptions: 0 })
    }

    /// Takes a publication of so many bytes into account.
    ///
    /// # Errors
    /// [`LimitReached`].
    pub fn publish(&self, holder: &Holder, bytes: usize, quota: &Quota, now_ns: u64) -> Result<(), LimitReached> {
        if quota.publications_per_s.is_none() && quota.bytes_per_s.is_none() {
            return Ok(());
        }
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let mut accounts = self.lock();
        let account = accounts.account(holder, now_ns);
        if let Some(max) = quota.publications_per_s
            && !account.publications.has(1, max, now_ns)
        {
            return Err(LimitReached(format!("at most {max} publications a second {}", whose(holder))));
        }
        if let Some(max) = quota.bytes_per_s
            && !account.bytes.has(bytes, max, now_ns)
        {
            return Err(LimitReached(format!("at most {max} bytes published a second {}", whose(holder))));
        }
        account.publications.take(1);
        account.bytes.take(bytes);
        Ok(())
    }
}

fn whose(holder: &Holder) -> &'static str {
    match holder {
        Holder::Identity(_) => "for one identity",
        Holder::Address(_) => "from one address",
    }
}

impl Accounts {
    /// The account of a holder. Those that hold nothing, and have published nothing for a second, are let go whenever
    /// their number has doubled: so there are at most twice as many as hold something, or did within a second.
    fn account(&mut self, holder: &Holder, now_ns: u64) -> &mut Account {
        if self.of.len() >= self.sweep_at.max(SWEEP_FROM) {
            self.of.retain(|_, account| {
                account.connections > 0
                    || account.subscriptions > 0
                    || !account.publications.is_settled(now_ns)
                    || !account.bytes.is_settled(now_ns)
            });
            self.sweep_at = 2 * self.of.len();
        }
        self.of.entry(holder.clone()).or_default()
    }
}

impl Place {
    /// Whose it is.
    pub fn holder(&self) -> &Holder {
        &self.holder
    }

    /// The connection has so many subscriptions from now on.
    ///
    /// # Errors
    /// [`LimitReached`], and it has as many as before.
    pub fn subscribe(&mut self, subscriptions: u32, quota: &Quota) -> Result<(), LimitReached> {
        let mut accounts = self.ledger.lock();
        let account = accounts.of.entry(self.holder.clone()).or_default();
        let others = account.subscriptions.saturating_sub(self.subscriptions);
        if let Some(max) = quota.subscriptions
            && subscriptions > self.subscriptions
            && others.saturating_add(subscriptions) > max
        {
            return Err(LimitReached(format!("at most {max} subscriptions at a time {}", whose(&self.holder))));
        }
        account.subscriptions = others + subscriptions;
        self.subscriptions = subscriptions;
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut accounts = self.ledger.lock();
        if let Some(account) = accounts.of.get_mut(&self.holder) {
            account.connections = account.connections.saturating_sub(1);
            account.subscriptions = account.subscriptions.saturating_sub(self.subscriptions);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn ada() -> Holder {
        Holder::Identity("ada".into())
    }

    #[test]
    fn a_bucket_refills_by_its_rate_and_holds_a_second() {
        let ledger = Ledger::default();
        let quota = Quota { publications_per_s: Some(4), ..Quota::default() };
        let publish = |at| ledger.publish(&ada(), 10, &quota, at).is_ok();
        assert!((0..4).all(|_| publish(0)));
        assert!(!publish(0) && !publish(SECOND / 4 - 1));
        assert!(publish(SECOND / 4) && !publish(SECOND / 4));
        // However long nothing came, four are there and no more.
        assert!((0..4).all(|_| publish(100 * SECOND)) && !publish(100 * SECOND));
        // A clock that goes back gives nothing.
        assert!(!publish(SECOND));
        assert!(
            ledger.publish(&Holder::Identity("bob".into()), 10, &quota, 0).is_ok(),
            "each has a bucket of their own"
        );
    }

    #[test]
    fn what_is_refused_takes_nothing() {
        let ledger = Ledger::default();
        let quota = Quota { publications_per_s: Some(2), bytes_per_s: Some(100), ..Quota::default() };
        assert!(ledger.publish(&ada(), 101, &quota, 0).is_err());
        assert!(ledger.publish(&ada(), 60, &quota, 0).is_ok());
        assert!(ledger.publish(&ada(), 60, &quota, 0).is_err());
        assert!(ledger.publish(&ada(), 40, &quota, 0).is_ok());
        assert_eq!(
            ledger.publish(&ada(), 1, &quota, 0).unwrap_err().to_string(),
            "at most 2 publications a second for one identity"
        );
    }

    #[test]
    fn places_are_given_back() {
        let ledger = Arc::new(Ledger::default());
        let quota = Quota { connections: Some(2), subscriptions: Some(5), ..Quota::default() };
        let mut first = ledger.enter(ada(), &quota, 0).unwrap();
        let mut second = ledger.enter(ada(), &quota, 0).unwrap();
        assert!(ledger.enter(ada(), &quota, 0).is_err());
        first.subscribe(3, &quota).unwrap();
        assert!(second.subscribe(3, &quota).is_err());
        second.subscribe(2, &quota).unwrap();
        // Fewer is always allowed, even where a new rule allows none.
        first.subscribe(1, &Quota { subscriptions: Some(1), ..Quota::default() }).unwrap();
        second.subscribe(4, &quota).unwrap();
        drop(second);
        first.subscribe(5, &quota).unwrap();
        let _third = ledger.enter(ada(), &quota, 0).unwrap();
        drop(first);
        assert!(ledger.enter(ada(), &quota, 0).is_ok());
    }

    #[test]
    fn who_holds_nothing_is_forgotten() {
        let ledger = Arc::new(Ledger::default());
        let quota = Quota { publications_per_s: Some(1), ..Quota::default() };
        let stays = ledger.enter(ada(), &quota, 0).unwrap();
        for n in 0..100_000_u64 {
            let holder = Holder::at(IpAddr::from((n as u32).to_be_bytes()));
            ledger.publish(&holder, 1, &quota, n * SECOND / 100).unwrap();
        }
        assert!(ledger.lock().of.len() <= 2 * SWEEP_FROM, "{}", ledger.lock().of.len());
        drop(stays);
    }

    #[test]
    fn an_address_of_ipv6_stands_for_its_network() {
        let at = |text: &str| Holder::at(text.parse().unwrap());
        assert_eq!(at("2001:db8::1"), at("2001:db8::ffff:1"));
        assert_ne!(at("2001:db8::1"), at("2001:db8:0:1::1"));
        assert_eq!(at("::ffff:192.0.2.1"), at("192.0.2.1"));
    }
}
