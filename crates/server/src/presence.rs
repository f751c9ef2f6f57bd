//! Who is in a channel: identities that subscribe to it, over any connection.
//!
//! Joins and leaves are told in batches, so that they cost as much as there are people who came or went, not that times
//! those who are told. Somebody who comes back within [`LINGER`] was never away: a poll that is asked again, a connection
//! that was cut, a page that was loaded again.

use crate::distributor::Distributor;
use pushlab_access::{Holder, LiveAccess};
use pushlab_application::Present;
use pushlab_session::gate::PRESENCE;
use pushlab_wire::channel::Channel;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long somebody without a connection still counts as there.
const LINGER: Duration = Duration::from_secs(5);
/// Names in one message, or in one answer: with the longest names that a token can have it fits an answer.
const MAX_NAMES: usize = 1000;
/// Channels of which it is told who is there; those beyond have nobody. With one identity in each 25 MiB.
const MAX_ROOMS: usize = 100_000;

/// Who is where.
#[derive(Debug)]
pub struct Presence {
    access: Arc<LiveAccess>,
    rooms: Mutex<Rooms>,
}

#[derive(Debug, Default)]
struct Rooms {
    of: HashMap<Channel, Room>,
    /// Those with something to tell, now or later.
    changed: HashSet<Channel>,
}

#[derive(Debug, Default)]
struct Room {
    people: BTreeMap<Arc<str>, Stay>,
    /// Those of whom something is to be told, now or later.
    changed: BTreeSet<Arc<str>>,
    /// How many others know of.
    told: usize,
}

#[derive(Debug, Default)]
struct Stay {
    connections: u32,
    /// Others know of them.
    is_told: bool,
    /// Since when they have no connection.
    away_since: Option<Duration>,
}

/// What is told.
#[derive(Serialize)]
struct Change<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    joined: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left: Vec<&'a str>,
    /// How many are there.
    count: usize,
}

impl Presence {
    /// Who is in the channels of which these rules say that it is told.
    pub fn new(access: Arc<LiveAccess>) -> Self {
        Self { access, rooms: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Rooms> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection of somebody subscribes to these channels.
    pub fn join(&self, holder: Option<&Holder>, channels: &[Channel]) {
        let Some(Holder::Identity(identity)) = holder else { return };
        let rules = self.access.rules();
        let told: Vec<&Channel> = channels.iter().filter(|channel| rules.tells_presence(channel.as_str())).collect();
        if told.is_empty() {
            return;
        }
        let mut rooms = self.lock();
        for channel in told {
            if rooms.of.len() >= MAX_ROOMS && !rooms.of.contains_key(channel) {
                continue;
            }
            let room = rooms.of.entry(channel.clone()).or_default();
            let identity: Arc<str> = identity.as_ref().into();
            let stay = room.people.entry(identity.clone()).or_default();
            stay.connections += 1;
            stay.away_since = None;
            if !stay.is_told && stay.connections == 1 {
                room.changed.insert(identity);
                rooms.changed.insert(channel.clone());
            }
        }
    }

    /// A connection of somebody subscribes to these channels no more.
    pub fn leave(&self, holder: Option<&Holder>, channels: &[Channel], now: Duration) {
        let Some(Holder::Identity(identity)) = holder else { return };
        let mut rooms = self.lock();
        let Rooms { of, changed } = &mut *rooms;
        for channel in channels {
            let Some(room) = of.get_mut(channel) else { continue };
            let Some(stay) = room.people.get_mut(&**identity) else { continue };
            stay.connections = stay.connections.saturating_sub(1);
            if stay.connections > 0 {
                continue;
            }
            if stay.is_told {
                stay.away_since = Some(now);
                room.changed.insert(identity.as_ref().into());
                changed.insert(channel.clone());
                continue;
            }
            // Nobody knows of them: whoever comes and goes between two messages, however often, leaves nothing behind.
            room.people.remove(&**identity);
            room.changed.remove(&**identity);
            if room.people.is_empty() {
                of.remove(channel);
                changed.remove(channel);
            }
        }
    }

    /// Tells what has changed.
    pub fn tell(&self, distributor: &Distributor, now: Duration) {
        let mut rooms = self.lock();
        let Rooms { of, changed } = &mut *rooms;
        changed.retain(|channel| {
            let Some(room) = of.get_mut(channel) else { return false };
            let (joined, left) = room.settle(now);
            let count = room.told;
            // Several messages where they are very many; the count is right behind the last.
            for names in joined.chunks(MAX_NAMES) {
                publish(distributor, channel, &Change { joined: texts(names), left: Vec::new(), count });
            }
            for names in left.chunks(MAX_NAMES) {
                publish(distributor, channel, &Change { joined: Vec::new(), left: texts(names), count });
            }
            let is_waited_for = !room.changed.is_empty();
            if room.people.is_empty() {
                of.remove(channel);
            }
            is_waited_for
        });
    }

    /// Who is in a channel, as was told up to a cursor; `None` where it is not told.
    pub fn present(&self, distributor: &Distributor, channel: &Channel) -> Option<Present> {
        if !self.access.rules().tells_presence(channel.as_str()) {
            return None;
        }
        let rooms = self.lock();
        let room = rooms.of.get(channel);
        let told = room.into_iter().flat_map(|room| &room.people).filter(|(_, stay)| stay.is_told);
        let identities = told.take(MAX_NAMES).map(|(identity, _)| identity.to_string()).collect();
        let count = room.map_or(0, |room| room.told);
        // While nobody can tell of a change: who subscribes after it hears of each.
        Some(Present { count, identities, cursor: distributor.head().to_string() })
    }
}

impl Room {
    /// Who has come and who has gone, as is to be told now.
    fn settle(&mut self, now: Duration) -> (Vec<Arc<str>>, Vec<Arc<str>>) {
        let (mut joined, mut left) = (Vec::new(), Vec::new());
        let Self { people, changed, told } = self;
        changed.retain(|identity| {
            let Some(stay) = people.get_mut(identity) else { return false };
            match stay.away_since {
                None => {
                    if !stay.is_told {
                        stay.is_told = true;
                        *told += 1;
                        joined.push(identity.clone());
                    }
                    false
                }
                Some(since) if now.saturating_sub(since) < LINGER => true,
                Some(_) => {
                    if stay.is_told {
                        *told -= 1;
                        left.push(identity.clone());
                    }
                    people.remove(identity);
                    false
                }
            }
        });
        (joined, left)
    }
}

fn texts(names: &[Arc<str>]) -> Vec<&str> {
    names.iter().map(|name| &**name).collect()
}

fn publish(distributor: &Distributor, channel: &Channel, change: &Change<'_>) {
    let data = serde_json::to_string(change).expect("names and numbers always serialise");
    // A channel whose name leaves no room for the prefix has no channel for this. Where the server is behind, those who ask
    // again get the whole.
    let _ = distributor.publish(&format!("{PRESENCE}{channel}"), &data, std::time::Instant::now());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inbox::InboxLimits;
    use pushlab_access::Access;
    use pushlab_log::MemoryLog;
    use pushlab_wire::cursor::Epoch;

    const SECOND: Duration = Duration::from_secs(1);

    struct World {
        presence: Presence,
        distributor: Arc<Distributor>,
        seen: u64,
    }

    impl World {
        fn new() -> Self {
            let access = Access::read("presence = [\"room:*\"]", "access.toml", &mut |_| unreachable!()).unwrap();
            let log = MemoryLog::new(Epoch::from_number(1), pushlab_log::Limits::default());
            let limits = InboxLimits { max_messages: 10_000, max_bytes: usize::MAX };
            let distributor =
                Distributor::new(Box::new(log), limits, Duration::ZERO, false, Vec::new(), std::time::Instant::now());
            Self { presence: Presence::new(Arc::new(LiveAccess::new(access))), distributor, seen: 0 }
        }

        /// What is told to the channel's subscribers, in this second.
        fn told(&mut self, second: u32) -> Vec<String> {
            self.presence.tell(&self.distributor, SECOND * second);
            let channel = Channel::parse("presence:room:1").unwrap();
            let after = self.distributor.cursor(self.seen);
            let replay = self.distributor.read_now(&[channel], Some(after), usize::MAX).unwrap();
            self.seen = replay.up_to;
            replay
                .messages
                .iter()
                .map(|message| String::from_utf8_lossy(message.text.without_cursor()[1]).into_owned())
                .collect()
        }
    }

    fn somebody(name: &str) -> Holder {
        Holder::Identity(name.into())
    }

    #[test]
    fn people_come_once_and_go_with_their_last_connection() {
        let mut world = World::new();
        let channels = ["room:1", "hall"].map(|name| Channel::parse(name).unwrap());
        let (ada, bob) = (somebody("ada"), somebody("bob"));
        world.presence.join(Some(&ada), &channels);
        world.presence.join(Some(&ada), &channels);
        world.presence.join(None, &channels);
        world.presence.join(Some(&bob), &channels);
        assert_eq!(world.told(0), ["{\"joined\":[\"ada\",\"bob\"],\"count\":2}]"]);
        assert!(world.told(1).is_empty());
        world.presence.leave(Some(&ada), &channels, SECOND);
        world.presence.leave(Some(&bob), &channels, SECOND);
        assert!(world.told(5).is_empty(), "ada has a connection left, bob may come back");
        world.presence.join(Some(&bob), &channels);
        world.presence.leave(Some(&bob), &channels, SECOND * 5);
        world.presence.leave(Some(&ada), &channels, SECOND * 5);
        assert!(world.told(9).is_empty());
        assert_eq!(world.told(10), ["{\"left\":[\"ada\",\"bob\"],\"count\":0}]"]);
        assert!(world.presence.lock().of.is_empty() && world.presence.lock().changed.is_empty());
        assert!(world.presence.present(&world.distributor, &channels[1]).is_none(), "of the hall it is not told");
    }

    #[test]
    fn who_was_never_told_of_is_not_told_to_have_gone() {
        let mut world = World::new();
        let channels = [Channel::parse("room:1").unwrap()];
        world.presence.join(Some(&somebody("ada")), &channels);
        world.presence.join(Some(&somebody("bob")), &channels);
        world.presence.leave(Some(&somebody("ada")), &channels, Duration::ZERO);
        assert_eq!(world.presence.lock().of[&channels[0]].people.len(), 1, "nothing is kept of her");
        world.presence.leave(Some(&somebody("bob")), &channels, Duration::ZERO);
        assert!(world.presence.lock().of.is_empty() && world.presence.lock().changed.is_empty());
        assert!(world.told(1).is_empty() && world.told(7).is_empty());
    }

    /// A thousand who come, and are told to all who are there, are one message: what a thousand messages to each of a
    /// thousand would be a million deliveries.
    #[test]
    fn those_who_come_together_are_told_together() {
        let mut world = World::new();
        let channels = [Channel::parse("room:1").unwrap()];
        for n in 0..2500 {
            world.presence.join(Some(&somebody(&format!("p{n:04}"))), &channels);
        }
        let told = world.told(0);
        assert_eq!(told.len(), 3);
        assert!(told[0].starts_with("{\"joined\":[\"p0000\",") && told[2].ends_with("\"count\":2500}]"), "{}", told[2]);
        let present = world.presence.present(&world.distributor, &channels[0]).unwrap();
        assert_eq!((present.count, present.identities.len()), (2500, MAX_NAMES));
        assert_eq!(present.cursor, world.distributor.head().to_string());
    }
}
