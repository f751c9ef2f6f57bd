//! What became of the clients of a storm: who has caught up and when, who was told that messages are gone, and who was
//! left in the belief that none are.

use crate::result::Part;

/// Clients that were cut off, and come back to what they missed. 8 bytes for each client.
#[derive(Debug, Clone)]
pub struct Returns {
    /// Publications that each of them missed.
    missed: u32,
    /// When they may come back, ns.
    back_ns: u64,
    clients: Vec<Return>,
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
    /// Of so many clients, each of which misses so many publications before they may come back at an instant.
    pub fn new(clients: u32, missed: u64, back_ns: u64) -> Self {
        let missed = u32::try_from(missed).unwrap_or(u32::MAX);
        Self { missed, back_ns, clients: vec![Return::default(); clients as usize] }
    }

    /// A client is subscribed again.
    pub fn is_back(&mut self, client: u32) {
        if let Some(own) = self.clients.get_mut(client as usize) {
            own.is_back = true;
        }
    }

    /// A client was told that something is gone.
    pub fn is_told(&mut self, client: u32) {
        if let Some(own) = self.clients.get_mut(client as usize) {
            own.is_told = true;
        }
    }

    /// A client got one of the publications that it missed, for the first time. With the last of them it has caught up:
    /// how long after it might come back, ns.
    #[inline]
    pub fn received(&mut self, client: u32, now_ns: u64) -> Option<u64> {
        let own = self.clients.get_mut(client as usize)?;
        own.received += 1;
        (own.received == self.missed).then(|| now_ns.saturating_sub(self.back_ns))
    }

    /// Whether an instant is of the storm.
    #[inline]
    pub fn has_begun(&self, now_ns: u64) -> bool {
        now_ns >= self.back_ns
    }

    /// Counts those for whom something is missing at the end, by what they know of it. Who never came back knows enough.
    pub fn count(&self, part: &mut Part) {
        for Return { received, is_back, is_told } in &self.clients {
            let missing = u64::from(self.missed - received.min(&self.missed));
            part.told_gap += u64::from(*is_told);
            part.lost_told += if *is_told { missing } else { 0 };
            part.recovered_falsely += u64::from(missing > 0 && *is_back && !is_told);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_is_what_it_knows() {
        let mut returns = Returns::new(5, 3, 1_000);
        assert!(!returns.has_begun(999) && returns.has_begun(1_000));
        // All of it; some of it, and it was told; some of it, and it was not; nothing; it never came back.
        let gets = [3, 1, 2, 0, 0];
        for (client, gets) in (0..).zip(gets) {
            let times: Vec<Option<u64>> = (0..gets).map(|n| returns.received(client, 1_000 + n)).collect();
            assert_eq!(times.iter().flatten().copied().collect::<Vec<_>>(), if gets == 3 { vec![2] } else { vec![] });
        }
        (0..4).for_each(|client| returns.is_back(client));
        returns.is_told(1);
        let mut part = Part::default();
        returns.count(&mut part);
        assert_eq!((part.told_gap, part.lost_told, part.recovered_falsely), (1, 2, 2));
        assert_eq!(returns.received(9, 0), None, "nobody's");
    }
}
