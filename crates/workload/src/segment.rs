//! Which part of the clients a worker hosts.

use serde::{Deserialize, Serialize};

/// A worker's part of the load: some of all event loops, and with them their clients.
///
/// Client i of the run belongs to loop i modulo their number, wherever that loop is: so it does not matter to a client
/// how many workers there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Which worker it is, from 0.
    pub worker: u32,
    /// Workers of the run.
    pub workers: u32,
    /// The first of its loops.
    pub first_loop: u32,
    /// How many loops it has.
    pub loops: u32,
    /// Loops of all workers together.
    pub loops_of_all: u32,
    /// Loops on its machine, whose cores they share: those of other workers there included.
    pub loops_here: u32,
}

impl Segment {
    /// Spreads so many loops over workers of one machine as evenly as it goes; there are no more workers than loops.
    pub fn spread(loops: u32, workers: u32) -> Vec<Self> {
        let loops_of_all = loops.max(1);
        let workers = workers.clamp(1, loops_of_all);
        let first_of = |worker: u32| (u64::from(worker) * u64::from(loops_of_all) / u64::from(workers)) as u32;
        let of = |worker: u32| {
            let first_loop = first_of(worker);
            let loops = first_of(worker + 1) - first_loop;
            Self { worker, workers, first_loop, loops, loops_of_all, loops_here: loops_of_all }
        };
        (0..workers).map(of).collect()
    }

    /// Puts workers on machines, of which each worker's is given.
    pub fn put_on<M: PartialEq>(segments: &mut [Self], machines: &[M]) {
        let loops: Vec<u32> = segments.iter().map(|segment| segment.loops).collect();
        for (segment, own) in segments.iter_mut().zip(machines) {
            segment.loops_here =
                loops.iter().zip(machines).filter(|(_, other)| *other == own).map(|(loops, _)| loops).sum();
        }
    }

    /// The whole load.
    pub fn whole(loops: u32) -> Self {
        let loops = loops.max(1);
        Self { worker: 0, workers: 1, first_loop: 0, loops, loops_of_all: loops, loops_here: loops }
    }

    /// Whether prober, collector, feeder and back end are here, which a run has once.
    pub fn has_instruments(&self) -> bool {
        self.worker == 0
    }

    /// How many of the first so many clients it hosts.
    pub fn clients(&self, clients: u32) -> u32 {
        (self.first_loop..self.first_loop + self.loops)
            .map(|lane| clients.saturating_sub(lane).div_ceil(self.loops_of_all))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_loop_and_every_client_is_in_one_segment() {
        for (loops, workers) in [(1, 1), (4, 2), (5, 2), (7, 3), (2, 9), (64, 64)] {
            let segments = Segment::spread(loops, workers);
            assert_eq!(segments.len() as u32, workers.min(loops));
            let mut next = 0;
            for segment in &segments {
                assert_eq!((segment.first_loop, segment.loops_of_all), (next, loops));
                assert!(segment.loops >= loops / workers.min(loops));
                next += segment.loops;
            }
            assert_eq!(next, loops);
            for clients in [1, 2, 100, 19_000] {
                assert_eq!(segments.iter().map(|segment| segment.clients(clients)).sum::<u32>(), clients);
            }
        }
        assert_eq!(Segment::spread(3, 1), [Segment::whole(3)]);
    }

    #[test]
    fn loops_share_cores_with_those_on_the_same_machine_alone() {
        let mut segments = Segment::spread(5, 3);
        let here = |segments: &[Segment]| segments.iter().map(|segment| segment.loops_here).collect::<Vec<_>>();
        assert_eq!(here(&segments), [5, 5, 5]);
        Segment::put_on(&mut segments, &["one", "other", "one"]);
        assert_eq!(segments.iter().map(|segment| segment.loops).collect::<Vec<_>>(), [1, 2, 2]);
        assert_eq!(here(&segments), [3, 2, 3]);
    }
}
