//! Who is in which room, and who publishes there.

use crate::pacing::Pacing;
use crate::shuffle::Shuffle;
use std::ops::Range;

/// Most rooms of a run: the channels that the server of this project has by default.
pub const MAX_ROOMS: u32 = 100_000;
/// Most rooms of a client: the channels that the server of this project gives a connection by default.
pub const MAX_ROOMS_PER_CLIENT: u32 = 64;

/// The rooms of a run. 8 bytes for each place that a client takes in a room, shared by all loops; at most 128 MiB
/// ([`crate::plan_checks::MAX_TRACKED_PAIRS`] places).
///
/// Rooms that nobody is in do not exist: those that do are numbered from 0. A room's members take turns at publishing,
/// beginning with one that the seed gives, so a publication's room and its number there say who publishes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rooms {
    per_client: u32,
    /// The rooms of one client after the other, each in order of number.
    of_clients: Vec<u32>,
    /// Where each room's members begin, and where the last one's end.
    starts: Vec<u32>,
    /// The members of one room after the other, each in order of number.
    members: Vec<u32>,
    /// The place among its members of each room's first publisher.
    first: Vec<u32>,
    order: Shuffle,
}

impl Rooms {
    /// Draws `per_client` different rooms for each client.
    ///
    /// # Panics
    /// When there are fewer rooms than that, or no clients.
    pub fn draw(clients: u32, rooms: u32, per_client: u32, seed: u64) -> Self {
        assert!(clients > 0 && (1..=rooms).contains(&per_client), "the plan is checked before");
        let mut rng = fastrand::Rng::with_seed(seed ^ 0x72_6f_6f_6d_73);
        let mut of_clients = Vec::with_capacity(clients as usize * per_client as usize);
        for _ in 0..clients {
            // Floyd's way (Bentley, "A sample of brilliance", 1987): one draw for each room, however many there are.
            let start = of_clients.len();
            for highest in rooms - per_client..rooms {
                let drawn = rng.u32(0..=highest);
                let is_taken = of_clients[start..].contains(&drawn);
                of_clients.push(if is_taken { highest } else { drawn });
            }
            of_clients[start..].sort_unstable();
        }
        let mut sizes = vec![0u32; rooms as usize];
        of_clients.iter().for_each(|&room| sizes[room as usize] += 1);
        let (mut starts, mut numbers) = (vec![0], vec![0; rooms as usize]);
        for (&size, number) in sizes.iter().zip(&mut numbers).filter(|(size, _)| **size > 0) {
            *number = starts.len() as u32 - 1;
            starts.push(starts[starts.len() - 1] + size);
        }
        of_clients.iter_mut().for_each(|room| *room = numbers[*room as usize]);
        let mut ends = starts.clone();
        let mut members = vec![0; of_clients.len()];
        for (client, rooms) in (0..).zip(of_clients.chunks(per_client as usize)) {
            for &room in rooms {
                members[ends[room as usize] as usize] = client;
                ends[room as usize] += 1;
            }
        }
        let first = starts.windows(2).map(|pair| rng.u32(0..pair[1] - pair[0])).collect::<Vec<_>>();
        let order = Shuffle::new(first.len() as u32, rng.u64(..));
        Self { per_client, of_clients, starts, members, first, order }
    }

    /// How many rooms have members.
    pub fn count(&self) -> u32 {
        self.first.len() as u32
    }

    /// How many rooms each client is in.
    pub fn per_client(&self) -> u32 {
        self.per_client
    }

    /// The order in which rooms get publications.
    pub fn order(&self) -> Shuffle {
        self.order
    }

    /// The rooms that a client is in, in order of number.
    #[inline]
    pub fn of_client(&self, client: u32) -> &[u32] {
        let start = client as usize * self.per_client as usize;
        &self.of_clients[start..start + self.per_client as usize]
    }

    /// Which of a client's rooms one is; `None` if it is not in there, or there is no such room.
    #[inline]
    pub fn place(&self, client: u32, room: u32) -> Option<u32> {
        self.of_client(client).binary_search(&room).ok().map(|place| place as u32)
    }

    /// A room's members, in order of number; never empty.
    #[inline]
    pub fn members(&self, room: u32) -> &[u32] {
        let room = room as usize;
        &self.members[self.starts[room] as usize..self.starts[room + 1] as usize]
    }

    /// Who publishes a room's publication with this number.
    #[inline]
    pub fn publisher(&self, room: u32, sequence: u64) -> u32 {
        let members = self.members(room);
        members[((sequence + u64::from(self.first[room as usize])) % members.len() as u64) as usize]
    }

    /// The first publication from `k` on that a client is to publish, with `pacing` of these rooms. Costs a binary
    /// search for each of the client's rooms.
    pub fn next_of(&self, client: u32, k: u64, pacing: &Pacing) -> u64 {
        let round = k / u64::from(self.count());
        let next_in = |&room: &u32| {
            let members = self.members(room);
            let count = members.len() as u64;
            let place = members.binary_search(&client).expect("a client is a member of its rooms") as u64;
            let is_at = (round + u64::from(self.first[room as usize])) % count;
            let sequence = round + (place + count - is_at) % count;
            let index = pacing.index_of(room, sequence);
            // This round's may be over.
            if index < k { pacing.index_of(room, sequence + count) } else { index }
        };
        self.of_client(client).iter().map(next_in).min().expect("a client is in at least one room")
    }

    /// Deliveries that publications `span` make.
    pub fn deliveries(&self, span: Range<u64>, pacing: &Pacing) -> u64 {
        let rooms = u64::from(self.count());
        let of = |k: u64| self.members(pacing.publisher_of(k).0).len() as u64;
        // In a whole round each room has its turn, so only the rounds at both ends are counted one by one.
        let (first_round, end_round) = (span.start.div_ceil(rooms), span.end / rooms);
        if end_round <= first_round {
            return span.map(of).sum();
        }
        let ends = (span.start..first_round * rooms).chain(end_round * rooms..span.end);
        (end_round - first_round) * self.members.len() as u64 + ends.map(of).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pacing(rooms: &Rooms) -> Pacing {
        Pacing { order: Some(rooms.order()), ..Pacing::endless(0, u64::from(rooms.count()) * 1_000, rooms.count()) }
    }

    proptest! {
        #[test]
        fn both_directions_agree(clients in 1u32..40, rooms in 1u32..30, per_client in 1u32..30, seed: u64) {
            let per_client = per_client.min(rooms);
            let rooms = Rooms::draw(clients, rooms, per_client, seed);
            for client in 0..clients {
                let own = rooms.of_client(client);
                prop_assert_eq!(own.len() as u32, per_client);
                prop_assert!(own.is_sorted_by(|a, b| a < b), "different ones, in order");
                for room in 0..rooms.count() + 1 {
                    let place = own.iter().position(|&other| other == room).map(|place| place as u32);
                    prop_assert_eq!(rooms.place(client, room), place);
                    if room < rooms.count() {
                        prop_assert_eq!(rooms.members(room).contains(&client), place.is_some());
                    }
                }
            }
            let sizes = (0..rooms.count()).map(|room| rooms.members(room).len());
            prop_assert!(sizes.clone().all(|size| size > 0));
            prop_assert_eq!(sizes.sum::<usize>() as u32, clients * per_client);
        }

        #[test]
        fn publications_are_found_again(clients in 1u32..30, rooms in 1u32..12, per_client in 1u32..12, seed: u64, from in 0u64..100) {
            let rooms = Rooms::draw(clients, rooms, per_client.min(rooms), seed);
            let pacing = pacing(&rooms);
            let publisher = |k| {
                let (room, sequence) = pacing.publisher_of(k);
                rooms.publisher(room, sequence)
            };
            let mut deliveries = 0;
            for k in 0..200 {
                prop_assert_eq!(rooms.deliveries(from..from + k, &pacing), deliveries);
                deliveries += rooms.members(pacing.publisher_of(from + k).0).len() as u64;
            }
            for client in 0..clients {
                let expected = (from..).find(|&k| publisher(k) == client).unwrap();
                prop_assert_eq!(rooms.next_of(client, from, &pacing), expected);
                prop_assert!(rooms.next_of(client, expected + 1, &pacing) > expected);
            }
        }
    }

    #[test]
    fn sets_differ_and_members_take_turns() {
        let rooms = Rooms::draw(1_000, 100, 10, 7);
        let sets: std::collections::HashSet<&[u32]> = (0..1_000).map(|client| rooms.of_client(client)).collect();
        assert_eq!(sets.len(), 1_000);
        assert_ne!(rooms, Rooms::draw(1_000, 100, 10, 8));
        assert_eq!(rooms, Rooms::draw(1_000, 100, 10, 7));
        let members = rooms.members(42);
        let mut publishers: Vec<u32> = (5..5 + members.len() as u64).map(|n| rooms.publisher(42, n)).collect();
        publishers.sort_unstable();
        assert_eq!(publishers, members);
    }
}
