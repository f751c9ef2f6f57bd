//! How often somebody may do something.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

/// Of how many an allowance is remembered: 10,000, at most 2 MB. Beyond that those are forgotten that are whole, and if
/// that leaves more than half, all: to get there, somebody needs thousands of addresses.
const MAX_KEPT: usize = 10_000;

/// So many at once, and then one for each interval that passes (a token bucket). Takes 24 bytes.
#[derive(Debug, Clone)]
pub struct Allowance {
    interval: Duration,
    burst: u32,
    /// When everything that was taken will have come back.
    whole_at: Instant,
}

impl Allowance {
    /// An allowance that is whole. `burst` is at least 1.
    pub fn new(burst: u32, interval: Duration, now: Instant) -> Self {
        Self { interval, burst: burst.max(1), whole_at: now }
    }

    /// Takes one, or says after which time there will be one.
    pub fn take(&mut self, now: Instant) -> Result<(), Duration> {
        let whole_at = self.whole_at.max(now) + self.interval;
        let missing = whole_at - now;
        let most = self.interval * self.burst;
        if missing > most {
            return Err(missing - most);
        }
        self.whole_at = whole_at;
        Ok(())
    }
}

/// Who asks, as far as an address tells. Of IPv6 the first half counts, since one subscriber has all of the second.
/// Everybody behind one proxy, or one translator of addresses, is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Peer(IpAddr);

impl From<IpAddr> for Peer {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into(),
            v4 => v4,
        })
    }
}

/// An allowance for each of many, told apart by a key.
#[derive(Debug)]
pub struct Allowances<K> {
    burst: u32,
    interval: Duration,
    kept: HashMap<K, Allowance>,
}

impl<K: Eq + Hash> Allowances<K> {
    /// The allowance of each is this.
    pub fn new(burst: u32, interval: Duration) -> Self {
        Self { burst, interval, kept: HashMap::new() }
    }

    /// Takes one of somebody's, or says after which time there will be one.
    pub fn take(&mut self, who: K, now: Instant) -> Result<(), Duration> {
        if self.kept.len() >= MAX_KEPT && !self.kept.contains_key(&who) {
            self.kept.retain(|_, allowance| allowance.whole_at > now);
            // Else each newcomer would have all of them looked through.
            if self.kept.len() > MAX_KEPT / 2 {
                self.kept.clear();
            }
        }
        let whole = || Allowance::new(self.burst, self.interval, now);
        self.kept.entry(who).or_insert_with(whole).take(now)
    }

    /// Gives all back that somebody has taken.
    pub fn forget(&mut self, who: &K) {
        self.kept.remove(who);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_an_allowance_and_few_are_remembered() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut allowances = Allowances::new(1, second);
        assert_eq!((allowances.take(0, start), allowances.take(1, start)), (Ok(()), Ok(())));
        assert_eq!(allowances.take(0, start), Err(second));
        allowances.forget(&0);
        assert_eq!(allowances.take(0, start), Ok(()));
        for who in 2..MAX_KEPT {
            assert_eq!(allowances.take(who, start + second / 2), Ok(()));
        }
        assert_eq!(allowances.kept.len(), MAX_KEPT);
        let later = start + second * 5 / 4;
        assert_eq!(allowances.take(MAX_KEPT, later), Ok(()));
        assert!(allowances.kept.len() <= MAX_KEPT / 2, "a flood is forgotten");
        for who in 0..MAX_KEPT {
            assert_eq!(allowances.take(who, later + second * who as u32), Ok(()));
        }
        assert_eq!(allowances.take(MAX_KEPT - 1, later + second * (MAX_KEPT as u32 - 1)), Err(second), "it is known");
        assert!(allowances.kept.len() <= MAX_KEPT, "those that are whole make room");
    }

    #[test]
    fn a_peer_is_an_address_or_the_network_of_one() {
        let peer = |text: &str| Peer::from(text.parse::<IpAddr>().unwrap());
        assert_eq!(peer("2001:db8:1:2::1"), peer("2001:db8:1:2:ffff::2"));
        assert_ne!(peer("2001:db8:1:2::1"), peer("2001:db8:1:3::1"));
        assert_ne!(peer("192.0.2.1"), peer("192.0.2.2"));
        assert_eq!(peer("192.0.2.1"), peer("::ffff:192.0.2.1"));
    }

    #[test]
    fn gives_a_burst_and_then_one_for_each_interval() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let mut allowance = Allowance::new(3, second, start);
        for _ in 0..3 {
            assert_eq!(allowance.take(start), Ok(()));
        }
        assert_eq!(allowance.take(start), Err(second));
        assert_eq!(allowance.take(start + second / 4), Err(second * 3 / 4), "refused requests cost nothing");
        assert_eq!(allowance.take(start + second), Ok(()));
        assert_eq!(allowance.take(start + second), Err(second));
        let later = start + second * 100;
        let taken = (0..10).filter(|_| allowance.take(later).is_ok()).count();
        assert_eq!(taken, 3, "no more than the burst is saved up");
    }
}
