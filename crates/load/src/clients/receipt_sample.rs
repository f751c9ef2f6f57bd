//! On which connections the kernel is to note when what comes in came.

use super::config::LoopConfig;

/// Of how many connections one is in the sample.
const ONE_IN: u32 = 16;
/// Connections of a run that are in it at least, if there are so many.
const LEAST: u32 = 8;

/// Takes every so many-th connection that a loop opens, from a seeded one on.
#[derive(Debug)]
pub(super) struct ReceiptSample {
    one_in: u32,
    passed: u32,
}

impl ReceiptSample {
    /// The share of one loop.
    pub fn of(config: &LoopConfig) -> Self {
        let own = config.own_clients();
        let connections =
            config.hosts.map_or(own, |hosts| own.div_ceil(hosts.clients).saturating_mul(hosts.connections_max));
        let wanted = connections.div_ceil(ONE_IN).max(LEAST.div_ceil(config.lanes));
        let one_in = (connections / wanted.max(1)).max(1);
        let seed = config.seed.rotate_left(17) ^ u64::from(config.lane);
        Self { one_in, passed: fastrand::Rng::with_seed(seed).u32(..one_in) }
    }

    /// Whether the connection that is opened next is in it.
    pub fn takes_next(&mut self) -> bool {
        let is_taken = self.passed == 0;
        self.passed = if is_taken { self.one_in - 1 } else { self.passed - 1 };
        is_taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_workload::traffic::HostLimit;

    fn taken(clients: u32, lanes: u32, seed: u64, hosts: Option<HostLimit>) -> Vec<Vec<u32>> {
        let of_loop = |lane| {
            let config = LoopConfig { clients, lane, lanes, seed, hosts, ..LoopConfig::silent() };
            let connections = hosts.map_or(config.own_clients(), |hosts| config.own_clients().div_ceil(hosts.clients));
            let mut sample = ReceiptSample::of(&config);
            (0..connections).filter(|_| sample.takes_next()).collect()
        };
        (0..lanes).map(of_loop).collect()
    }

    #[test]
    fn of_many_connections_a_sixteenth_is_taken_and_of_few_eight() {
        for (clients, lanes, least, most) in
            [(1_000, 1, 62, 67), (1_000, 4, 62, 68), (100, 1, 8, 9), (100, 4, 8, 12), (5, 2, 5, 5)]
        {
            for seed in 0..50 {
                let taken = taken(clients, lanes, seed, None);
                let all: usize = taken.iter().map(Vec::len).sum();
                assert!((least..=most).contains(&all), "{clients} {lanes} {seed}: {taken:?}");
                assert!(taken.iter().all(|of_loop| !of_loop.is_empty()), "every loop is seen: {taken:?}");
            }
        }
    }

    #[test]
    fn which_it_is_the_seed_says() {
        assert_eq!(taken(1_000, 1, 7, None), taken(1_000, 1, 7, None));
        let firsts: std::collections::HashSet<u32> = (0..50).map(|seed| taken(1_000, 1, seed, None)[0][0]).collect();
        assert!(firsts.len() > 8, "{firsts:?}");
    }

    #[test]
    fn clients_that_share_a_connection_are_seen_too() {
        let hosts = Some(HostLimit { connections_max: 1, clients: 100 });
        assert_eq!(taken(1_000, 1, 7, hosts)[0].len(), 10);
    }
}
