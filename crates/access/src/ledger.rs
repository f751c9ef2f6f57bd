//! How much each identity and each address takes up, and how much more it may.

use core::net::IpAddr;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Holders that are looked through at once for such as hold nothing any more, at least.
const SWEEP_FROM: usize = 1024;

/// How much one identity or one address may take up; what is not named has no limit.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Quota {
    /// Receiving connections at a time: WebSockets, streams, held polls. Of an address, also sockets that carry none.
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
    Identity(Arc<str>),
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
    /// The socket that carries it, if that has a place of its own.
    socket: Option<Arc<Peer>>,
}

/// The other end of a socket. A client's socket counts as one connection of its address, or as many as it carries if
/// that is more (HTTP/2 streams). A proxy's socket does not count; each connection on it counts for its own client.
#[derive(Debug)]
pub struct Peer {
    /// Where it is; an IPv4 address has its own form.
    pub address: IpAddr,
    /// What the socket takes up.
    place: Option<Place>,
    /// How many connections it carries. It changes only under the ledger's lock.
    lasting: AtomicU32,
}

impl Peer {
    /// A proxy that is believed about its clients' addresses.
    pub fn proxy(address: IpAddr) -> Self {
        Self { address, place: None, lasting: AtomicU32::new(0) }
    }
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
        self.lock().account(&holder, now_ns).connect(&holder, quota)?;
        Ok(Place { ledger: self.clone(), holder, subscriptions: 0, socket: None })
    }

    /// Takes a place for the socket of a client.
    ///
    /// # Errors
    /// [`LimitReached`].
    pub fn accept(self: &Arc<Self>, address: IpAddr, quota: &Quota, now_ns: u64) -> Result<Peer, LimitReached> {
        let place = self.enter(Holder::at(address), quota, now_ns)?;
        Ok(Peer { place: Some(place), ..Peer::proxy(address) })
    }

    /// Takes a place for a connection of an address, carried by this peer's socket.
    ///
    /// # Errors
    /// [`LimitReached`].
    pub fn enter_on(
        self: &Arc<Self>,
        peer: &Arc<Peer>,
        holder: Holder,
        quota: &Quota,
        now_ns: u64,
    ) -> Result<Place, LimitReached> {
        if peer.place.is_none() {
            return self.enter(holder, quota, now_ns);
        }
        let mut accounts = self.lock();
        // The first has the place of the socket.
        if peer.lasting.load(Ordering::Relaxed) > 0 {
            accounts.account(&holder, now_ns).connect(&holder, quota)?;
        }
        peer.lasting.fetch_add(1, Ordering::Relaxed);
        Ok(Place { ledger: self.clone(), holder, subscriptions: 0, socket: Some(peer.clone()) })
    }

    /// Counts a publication of so many bytes, for all of these holders or for none.
    ///
    /// # Errors
    /// [`LimitReached`].
    pub fn publish<'h>(
        &self,
        holders: impl Iterator<Item = (&'h Holder, Quota)> + Clone,
        bytes: usize,
        now_ns: u64,
    ) -> Result<(), LimitReached> {
        let is_limited = |quota: &Quota| quota.publications_per_s.is_some() || quota.bytes_per_s.is_some();
        let limited = holders.filter(|(_, quota)| is_limited(quota));
        if limited.clone().next().is_none() {
            return Ok(());
        }
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let mut accounts = self.lock();
        for (holder, quota) in limited.clone() {
            accounts.account(holder, now_ns).check(holder, bytes, &quota, now_ns)?;
        }
        for (holder, _) in limited {
            let account = accounts.account(holder, now_ns);
            account.publications.take(1);
            account.bytes.take(bytes);
        }
        Ok(())
    }
}

impl Account {
    fn connect(&mut self, holder: &Holder, quota: &Quota) -> Result<(), LimitReached> {
        if let Some(max) = quota.connections
            && self.connections >= max
        {
            return Err(LimitReached(format!("at most {max} connections at a time {}", whose(holder))));
        }
        self.connections += 1;
        Ok(())
    }

    fn check(&mut self, holder: &Holder, bytes: u32, quota: &Quota, now_ns: u64) -> Result<(), LimitReached> {
        if let Some(max) = quota.publications_per_s
            && !self.publications.has(1, max, now_ns)
        {
            return Err(LimitReached(format!("at most {max} publications a second {}", whose(holder))));
        }
        if let Some(max) = quota.bytes_per_s
            && !self.bytes.has(bytes, max, now_ns)
        {
            return Err(LimitReached(format!("at most {max} bytes published a second {}", whose(holder))));
        }
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
        // The last on a socket leaves it its place.
        let is_last = self.socket.as_ref().is_some_and(|peer| peer.lasting.fetch_sub(1, Ordering::Relaxed) == 1);
        if let Some(account) = accounts.of.get_mut(&self.holder) {
            account.connections = account.connections.saturating_sub(u32::from(!is_last));
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
        let publish = |at| ledger.publish([(&ada(), quota)].into_iter(), 10, at).is_ok();
        assert!((0..4).all(|_| publish(0)));
        assert!(!publish(0) && !publish(SECOND / 4 - 1));
        assert!(publish(SECOND / 4) && !publish(SECOND / 4));
        // However long nothing came, four are there and no more.
        assert!((0..4).all(|_| publish(100 * SECOND)) && !publish(100 * SECOND));
        // A clock that goes back gives nothing.
        assert!(!publish(SECOND));
        assert!(
            ledger.publish([(&Holder::Identity("bob".into()), quota)].into_iter(), 10, 0).is_ok(),
            "each has a bucket of their own"
        );
    }

    #[test]
    fn what_is_refused_takes_nothing() {
        let ledger = Ledger::default();
        let quota = Quota { publications_per_s: Some(2), bytes_per_s: Some(100), ..Quota::default() };
        let publish = |bytes| ledger.publish([(&ada(), quota)].into_iter(), bytes, 0);
        assert!(publish(101).is_err());
        assert!(publish(60).is_ok());
        assert!(publish(60).is_err());
        let house = Holder::at(IpAddr::from([192, 0, 2, 1]));
        let small = Quota { bytes_per_s: Some(39), ..Quota::default() };
        assert!(ledger.publish([(&ada(), quota), (&house, small)].into_iter(), 40, 0).is_err());
        assert!(publish(40).is_ok(), "refused to the address, it took nothing from the identity");
        assert_eq!(publish(1).unwrap_err().to_string(), "at most 2 publications a second for one identity");
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
    fn a_socket_counts_as_what_lasts_on_it() {
        let ledger = Arc::new(Ledger::default());
        let quota = Quota { connections: Some(3), ..Quota::default() };
        let address = IpAddr::from([192, 0, 2, 1]);
        let accept = || ledger.accept(address, &quota, 0).map(Arc::new);
        let enter = |peer: &Arc<Peer>| ledger.enter_on(peer, Holder::at(address), &quota, 0);
        let socket = accept().unwrap();
        let first = enter(&socket).unwrap();
        let (second, third) = (enter(&socket).unwrap(), enter(&socket).unwrap());
        assert!(enter(&socket).is_err() && accept().is_err());
        drop(first);
        let other = accept().unwrap();
        assert!(enter(&socket).is_err(), "two last on one socket, and the other counts by itself");
        drop((second, third));
        let more = (accept().unwrap(), enter(&socket).unwrap(), enter(&other).unwrap());
        assert!(enter(&socket).is_err());
        drop((socket, other, more));
        assert!(ledger.lock().of.values().all(|account| account.connections == 0));
        // Behind a proxy each counts for its client.
        let proxy = Arc::new(Peer::proxy(IpAddr::from([10, 0, 0, 1])));
        let held = [(); 3].map(|()| enter(&proxy).unwrap());
        assert!(enter(&proxy).is_err() && ledger.accept(proxy.address, &quota, 0).is_ok());
        drop(held);
        assert!(enter(&proxy).is_ok());
    }

    #[test]
    fn who_holds_nothing_is_forgotten() {
        let ledger = Arc::new(Ledger::default());
        let quota = Quota { publications_per_s: Some(1), ..Quota::default() };
        let stays = ledger.enter(ada(), &quota, 0).unwrap();
        for n in 0..100_000_u64 {
            let holder = Holder::at(IpAddr::from((n as u32).to_be_bytes()));
            ledger.publish([(&holder, quota)].into_iter(), 1, n * SECOND / 100).unwrap();
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
