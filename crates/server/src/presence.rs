//! Who is in a channel: identities that subscribe to it, over any connection.
//!
//! Joins and leaves are told in batches, so that they cost as much as there are people who came or went, not that times
//! those who are told. Somebody who comes back within [`LINGER`] was never away: a poll that is asked again, a connection
//! that was cut, a page that was loaded again.

use crate::distributor::Distributor;
use pushlab_access::{Access, Holder, LiveAccess};
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

/// What the connections of one event loop mean for presence. Who came by the rules that it has seen goes by them, whatever
/// rules are in force by then.
#[derive(Debug)]
pub struct Attendance {
    presence: Arc<Presence>,
    rules: Arc<Access>,
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
    /// Who is in the channels of which the rules in force say that it is told.
    pub fn new(access: Arc<LiveAccess>) -> Self {
        Self { access, rooms: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Rooms> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn join<'c>(&self, identity: &str, channels: impl Iterator<Item = &'c Channel>) {
        let mut channels = channels.peekable();
        if channels.peek().is_none() {
            return;
        }
        let mut rooms = self.lock();
        for channel in channels {
            if rooms.of.len() >= MAX_ROOMS && !rooms.of.contains_key(channel) {
                continue;
            }
            let room = rooms.of.entry(channel.clone()).or_default();
            let identity: Arc<str> = identity.into();
            let stay = room.people.entry(identity.clone()).or_default();
            stay.connections += 1;
            stay.away_since = None;
            if !stay.is_told {
                room.changed.insert(identity);
                rooms.changed.insert(channel.clone());
            }
        }
    }

    fn leave<'c>(&self, identity: &str, channels: impl Iterator<Item = &'c Channel>, now: Duration) {
        let mut channels = channels.peekable();
        if channels.peek().is_none() {
            return;
        }
        let mut rooms = self.lock();
        let Rooms { of, changed } = &mut *rooms;
        for channel in channels {
            let Some(room) = of.get_mut(channel) else { continue };
            let Some(stay) = room.people.get_mut(identity) else { continue };
            stay.connections = stay.connections.saturating_sub(1);
            if stay.connections == 0 {
                stay.away_since = Some(now);
                room.changed.insert(identity.into());
                changed.insert(channel.clone());
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

impl Attendance {
    /// Of connections that come from now on.
    pub fn new(presence: Arc<Presence>) -> Self {
        let rules = presence.access.rules();
        Self { presence, rules }
    }

    /// A connection of somebody subscribes to these channels.
    pub fn join(&self, holder: Option<&Holder>, channels: &[Channel]) {
        let Some(Holder::Identity(identity)) = holder else { return };
        self.presence.join(identity, channels.iter().filter(|channel| self.rules.tells_presence(channel.as_str())));
    }

    /// A connection of somebody subscribes to these channels no more.
    pub fn leave(&self, holder: Option<&Holder>, channels: &[Channel], now: Duration) {
        let Some(Holder::Identity(identity)) = holder else { return };
        let told = channels.iter().filter(|channel| self.rules.tells_presence(channel.as_str()));
        self.presence.leave(identity, told, now);
    }

    /// Goes over to the rules in force. If these tell of other channels, every connection is to be [moved](Self::move_over)
    /// from those before, which are returned.
    pub fn follow(&mut self) -> Option<Arc<Access>> {
        let before = std::mem::replace(&mut self.rules, self.presence.access.rules());
        (!before.tells_presence_as(&self.rules)).then_some(before)
    }

    /// A connection of somebody that subscribed to these channels by other rules counts by those of now.
    pub fn move_over(&self, before: &Access, holder: Option<&Holder>, channels: &[Channel], now: Duration) {
        let Some(Holder::Identity(identity)) = holder else { return };
        let is_told = |rules: &Access, channel: &Channel| rules.tells_presence(channel.as_str());
        let is_new = |channel: &&Channel| !is_told(before, channel) && is_told(&self.rules, channel);
        let is_old = |channel: &&Channel| is_told(before, channel) && !is_told(&self.rules, channel);
        self.presence.join(identity, channels.iter().filter(is_new));
        self.presence.leave(identity, channels.iter().filter(is_old), now);
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
    use pushlab_log::MemoryLog;
    use pushlab_wire::cursor::Epoch;

    const SECOND: Duration = Duration::from_secs(1);

    struct World {
        access: Arc<LiveAccess>,
        presence: Arc<Presence>,
        attendance: Attendance,
        distributor: Arc<Distributor>,
        seen: u64,
    }

    impl World {
        fn new() -> Self {
            let access = Arc::new(LiveAccess::new(rules("presence = [\"room:*\"]")));
            let presence = Arc::new(Presence::new(access.clone()));
            let log = MemoryLog::new(Epoch::from_number(1), pushlab_log::Limits::default());
            let limits = InboxLimits { max_messages: 10_000, max_bytes: usize::MAX };
            let distributor =
                Distributor::new(Box::new(log), limits, Duration::ZERO, false, Vec::new(), std::time::Instant::now());
            Self { access, attendance: Attendance::new(presence.clone()), presence, distributor, seen: 0 }
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

    fn rules(text: &str) -> Access {
        Access::read(text, "access.toml", &mut |_| unreachable!()).unwrap()
    }

    fn somebody(name: &str) -> Holder {
        Holder::Identity(name.into())
    }

    #[test]
    fn people_come_once_and_go_with_their_last_connection() {
        let mut world = World::new();
        let channels = ["room:1", "hall"].map(|name| Channel::parse(name).unwrap());
        let (ada, bob) = (somebody("ada"), somebody("bob"));
        world.attendance.join(Some(&ada), &channels);
        world.attendance.join(Some(&ada), &channels);
        world.attendance.join(None, &channels);
        world.attendance.join(Some(&bob), &channels);
        assert_eq!(world.told(0), ["{\"joined\":[\"ada\",\"bob\"],\"count\":2}]"]);
        assert!(world.told(1).is_empty());
        world.attendance.leave(Some(&ada), &channels, SECOND);
        world.attendance.leave(Some(&bob), &channels, SECOND);
        assert!(world.told(5).is_empty(), "ada has a connection left, bob may come back");
        world.attendance.join(Some(&bob), &channels);
        world.attendance.leave(Some(&bob), &channels, SECOND * 5);
        world.attendance.leave(Some(&ada), &channels, SECOND * 5);
        assert!(world.told(9).is_empty());
        assert_eq!(world.told(10), ["{\"left\":[\"ada\",\"bob\"],\"count\":0}]"]);
        assert!(world.presence.lock().of.is_empty() && world.presence.lock().changed.is_empty());
        assert!(world.presence.present(&world.distributor, &channels[1]).is_none(), "of the hall it is not told");
    }

    #[test]
    fn who_was_never_told_of_is_not_told_to_have_gone() {
        let mut world = World::new();
        let channels = [Channel::parse("room:1").unwrap()];
        world.attendance.join(Some(&somebody("ada")), &channels);
        world.attendance.leave(Some(&somebody("ada")), &channels, Duration::ZERO);
        assert!(world.told(1).is_empty() && world.told(7).is_empty());
        assert!(world.presence.lock().of.is_empty());
    }

    /// A loop that has not heard of new rules yet keeps to those by which its people came.
    #[test]
    fn new_rules_count_whoever_is_there() {
        let mut world = World::new();
        let channels = ["room:1", "hall"].map(|name| Channel::parse(name).unwrap());
        let (ada, bob) = (somebody("ada"), somebody("bob"));
        let mut late = Attendance::new(world.presence.clone());
        world.attendance.join(Some(&ada), &channels);
        late.join(Some(&ada), &channels);
        late.join(Some(&bob), &channels);
        assert_eq!(world.told(0), ["{\"joined\":[\"ada\",\"bob\"],\"count\":2}]"]);
        assert!(world.attendance.follow().is_none());
        world.access.replace(rules("presence = [\"hall\"]"));
        let before = world.attendance.follow().unwrap();
        world.attendance.move_over(&before, Some(&ada), &channels, SECOND);
        late.leave(Some(&bob), &channels, SECOND);
        assert!(world.presence.present(&world.distributor, &channels[0]).is_none());
        assert_eq!(world.told(6), ["{\"left\":[\"bob\"],\"count\":1}]"], "the other loop still counts her");
        let hall = world.presence.present(&world.distributor, &channels[1]).unwrap();
        assert_eq!(hall.identities, ["ada"]);
        let before = late.follow().unwrap();
        late.move_over(&before, Some(&ada), &channels, SECOND * 6);
        assert_eq!(world.told(11), ["{\"left\":[\"ada\"],\"count\":0}]"]);
        for attendance in [&world.attendance, &late] {
            attendance.leave(Some(&ada), &channels, SECOND * 11);
        }
        assert!(world.told(16).is_empty() && world.presence.lock().of.is_empty());
    }

    /// A thousand who come, and are told to all who are there, are one message: what a thousand messages to each of a
    /// thousand would be a million deliveries.
    #[test]
    fn those_who_come_together_are_told_together() {
        let mut world = World::new();
        let channels = [Channel::parse("room:1").unwrap()];
        for n in 0..2500 {
            world.attendance.join(Some(&somebody(&format!("p{n:04}"))), &channels);
        }
        let told = world.told(0);
        assert_eq!(told.len(), 3);
        assert!(told[0].starts_with("{\"joined\":[\"p0000\",") && told[2].ends_with("\"count\":2500}]"), "{}", told[2]);
        let present = world.presence.present(&world.distributor, &channels[0]).unwrap();
        assert_eq!((present.count, present.identities.len()), (2500, MAX_NAMES));
        assert_eq!(present.cursor, world.distributor.head().to_string());
    }
}
