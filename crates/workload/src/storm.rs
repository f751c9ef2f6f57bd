//! How the clients of a storm are cut off, when each comes back, and what becomes of it: who has caught up and when, who
//! was told that messages are gone, and who was left in the belief that none are.

use crate::result::Part;
use crate::scenario::Outage;
use std::collections::HashMap;
use std::ops::Range;

/// How the clients of a storm are cut off, and come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Storm {
    /// What cuts them off.
    pub outage: Outage,
    /// Time over which they come back, ns.
    pub return_over_ns: u64,
}

impl Storm {
    /// Clients that are cut off so, and come back over so many milliseconds.
    pub fn new(outage: Outage, return_over_ms: u64) -> Self {
        Self { outage, return_over_ns: return_over_ms.saturating_mul(1_000_000) }
    }

    /// How long after the first a client comes back, ns: client i of N after i/N of the time.
    pub fn share_ns(&self, client: u32, clients: u32) -> u64 {
        (u128::from(self.return_over_ns) * u128::from(client) / u128::from(clients.max(1))) as u64
    }
}

/// Clients that were cut off, and come back to what they missed. 8 bytes for each client, and 12 or more while it keeps
/// in mind when it is to come back.
#[derive(Debug, Clone, Default)]
pub struct Returns {
    /// Publications that each of them missed.
    missed: u32,
    /// While everybody is away, ns: who is cut off comes back at the end or later.
    away_ns: Range<u64>,
    clients: Vec<Return>,
    /// After how long the server wants to see a client again, ns, until that is cut off.
    told_ns: HashMap<u32, u64>,
    /// Clients that have obeyed that.
    told_when: u64,
    /// Publications that are missing to clients that were told so.
    gone: u64,
}

/// One client.
#[derive(Debug, Clone, Copy, Default)]
struct Return {
    /// Of the publications that it missed, those that it has got by now.
    received: u32,
    /// Whether it is subscribed again.
    is_back: bool,
    /// Whether the server has said that something is gone.
    is_told: bool,
}

impl Returns {
    /// Of so many clients, each of which misses so many publications while all are away.
    pub fn new(clients: u32, missed: u64, away_ns: Range<u64>) -> Self {
        let missed = u32::try_from(missed).unwrap_or(u32::MAX);
        Self { missed, away_ns, clients: vec![Return::default(); clients as usize], ..Self::default() }
    }

    /// Whether all of them are to be away at an instant: who is cut off then is cut off by design.
    pub fn are_away(&self, now_ns: u64) -> bool {
        !self.clients.is_empty() && self.away_ns.contains(&now_ns)
    }

    /// The server wants to see a client again after so many milliseconds. Who is none of them, as an instrument is, comes
    /// back as soon as it can.
    pub fn told_when(&mut self, client: u32, after_ms: u64) {
        if (client as usize) < self.clients.len() {
            self.told_ns.insert(client, after_ms.saturating_mul(1_000_000));
        }
    }

    /// When a client is to come back that was cut off now: after what the server has said, or after its own share, from
    /// the instant at which everybody may. `None`: that is up to the client.
    pub fn return_ns(&mut self, client: u32, share_ns: u64, now_ns: u64) -> Option<u64> {
        let told_ns = self.told_ns.remove(&client);
        self.told_when += u64::from(told_ns.is_some());
        match self.are_away(now_ns) {
            true => Some(self.away_ns.end.saturating_add(told_ns.unwrap_or(share_ns))),
            false => told_ns.map(|after_ns| now_ns.saturating_add(after_ns)),
        }
    }

    /// A client is subscribed. The first time after everybody was away: how long after it might come back, ns.
    pub fn is_back(&mut self, client: u32, now_ns: u64) -> Option<u64> {
        let after_ns = now_ns.checked_sub(self.away_ns.end)?;
        let own = self.clients.get_mut(client as usize)?;
        (!std::mem::replace(&mut own.is_back, true)).then_some(after_ns)
    }

    /// A client was told that something is gone.
    pub fn is_told(&mut self, client: u32) {
        let Some(own) = self.clients.get_mut(client as usize) else { return };
        if !std::mem::replace(&mut own.is_told, true) {
            self.gone += u64::from(self.missed.saturating_sub(own.received));
        }
    }

    /// A client got one of the publications that it missed, for the first time. With the last of them it has caught up:
    /// how long after it might come back, ns.
    #[inline]
    pub fn received(&mut self, client: u32, now_ns: u64) -> Option<u64> {
        let own = self.clients.get_mut(client as usize)?;
        own.received += 1;
        self.gone -= u64::from(own.is_told && own.received <= self.missed);
        (own.received == self.missed).then(|| now_ns.saturating_sub(self.away_ns.end))
    }

    /// Whether they may be back at an instant.
    #[inline]
    pub fn have_begun(&self, now_ns: u64) -> bool {
        !self.clients.is_empty() && now_ns >= self.away_ns.end
    }

    /// Publications that are missing to clients that were told so: whoever waits for all others need not wait for these.
    pub fn gone(&self) -> u64 {
        self.gone
    }

    /// Counts those for whom something is missing at the end, by what they know of it. Who never came back knows enough.
    pub fn count(&self, part: &mut Part) {
        part.told_when += self.told_when;
        part.lost_told += self.gone;
        for Return { received, is_back, is_told } in &self.clients {
            part.told_gap += u64::from(*is_told);
            part.recovered_falsely += u64::from(*received < self.missed && *is_back && !is_told);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_is_what_it_knows() {
        let mut returns = Returns::new(5, 3, 500..1_000);
        assert!(!returns.have_begun(999) && returns.have_begun(1_000));
        // All of it; some of it, and it was told; some of it, and it was not; nothing; it never came back.
        let gets = [3, 1, 2, 0, 0];
        for (client, gets) in (0..).zip(gets) {
            let times: Vec<Option<u64>> = (0..gets).map(|n| returns.received(client, 1_000 + n)).collect();
            assert_eq!(times.iter().flatten().copied().collect::<Vec<_>>(), if gets == 3 { vec![2] } else { vec![] });
        }
        (0..4).for_each(|client| assert_eq!(returns.is_back(client, 1_007), Some(7)));
        returns.is_told(1);
        let mut part = Part::default();
        returns.count(&mut part);
        assert_eq!((part.told_gap, part.lost_told, part.recovered_falsely), (1, 2, 2));
        assert_eq!((returns.received(9, 0), returns.is_back(9, 1_000)), (None, None), "nobody's");
    }

    #[test]
    fn a_client_is_back_once_and_not_before_it_may_be() {
        let mut returns = Returns::new(1, 1, 500..1_000);
        assert_eq!(returns.is_back(0, 999), None, "it was never away");
        assert_eq!([returns.is_back(0, 1_003), returns.is_back(0, 1_009)], [Some(3), None]);
    }

    #[test]
    fn what_clients_were_told_is_gone_need_not_be_waited_for() {
        let mut returns = Returns::new(2, 3, 0..10);
        returns.received(0, 20);
        returns.is_told(0);
        returns.is_told(0);
        assert_eq!(returns.gone(), 2);
        // A server may keep some of what it calls gone.
        returns.received(0, 21);
        assert_eq!(returns.gone(), 1);
        returns.received(1, 21);
        returns.received(0, 22);
        assert_eq!(returns.gone(), 0);
    }

    #[test]
    fn who_is_cut_off_while_all_are_away_comes_back_when_it_may_or_later_when_the_server_has_said_so() {
        const MS: u64 = 1_000_000;
        let storm = Storm::new(Outage::Restart, 400);
        let mut returns = Returns::new(4, 1, 100 * MS..200 * MS);
        returns.told_when(2, 7);
        let at = [99, 100, 199, 200].map(|ms| ms * MS);
        let back = |returns: &mut Returns, client, now_ns| returns.return_ns(client, storm.share_ns(client, 4), now_ns);
        assert_eq!(at.map(|now_ns| back(&mut returns, 1, now_ns)), [None, Some(300 * MS), Some(300 * MS), None]);
        assert_eq!(back(&mut returns, 2, 150 * MS), Some(207 * MS), "exactly then");
        assert_eq!(back(&mut returns, 2, 150 * MS), Some(400 * MS), "once");
        returns.told_when(3, 5);
        returns.told_when(3, 60);
        assert_eq!(back(&mut returns, 3, 250 * MS), Some(310 * MS), "the last word counts");
        let mut part = Part::default();
        returns.count(&mut part);
        assert_eq!(part.told_when, 2);
    }

    #[test]
    fn where_there_is_no_storm_nobody_is_away_or_obeys() {
        let mut returns = Returns::new(0, 5, 100..200);
        returns.told_when(0, 7);
        assert_eq!(
            (returns.are_away(150), returns.have_begun(250), returns.return_ns(0, 0, 250)),
            (false, false, None)
        );
    }
}
