//! Who is in which channels: identities, each over any number of connections.
//!
//! Who came and who went is told in batches. Somebody who comes back within five seconds was never away: a poll that is
//! asked again, a connection that was cut, a page that was loaded again.

use pushlab_wire::channel::Channel;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// How long somebody without a connection still counts as there.
const LINGER: Duration = Duration::from_secs(5);
/// Channels of which it is told who is there; those beyond have nobody. With one identity in each 25 MiB.
const MAX_ROOMS: usize = 100_000;

/// Identities in channels, each counted once for each channel; those beyond are not shown. About 60 MiB.
const MAX_STAYS: usize = 500_000;

/// Who is where.
#[derive(Debug, Default)]
pub struct Rooms {
    of: HashMap<Channel, Room>,
    /// Those with something to tell, now or later.
    changed: HashSet<Channel>,
    /// How many are in how many channels, all together.
    stays: usize,
}

/// What is to be told of a channel.
#[derive(Debug, PartialEq, Eq)]
pub struct Change {
    /// Who has come.
    pub joined: Vec<Arc<str>>,
    /// Who has gone.
    pub left: Vec<Arc<str>>,
    /// How many are there after that.
    pub count: usize,
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

impl Rooms {
    /// A connection of somebody subscribes to a channel.
    pub fn join(&mut self, identity: &Arc<str>, channel: &Channel) {
        if self.of.len() >= MAX_ROOMS && !self.of.contains_key(channel) {
            return;
        }
        let has_room = self.stays < MAX_STAYS;
        let room = self.of.entry(channel.clone()).or_default();
        let stay = match room.people.get_mut(identity) {
            Some(stay) => stay,
            None if has_room => {
                self.stays += 1;
                room.people.entry(Arc::clone(identity)).or_default()
            }
            None => return self.forget_empty(channel),
        };
        stay.connections += 1;
        stay.away_since = None;
        if !stay.is_told && stay.connections == 1 {
            room.changed.insert(Arc::clone(identity));
            self.changed.insert(channel.clone());
        }
    }

    /// A connection of somebody subscribes to a channel no more.
    pub fn leave(&mut self, identity: &Arc<str>, channel: &Channel, now: Duration) {
        let Some(room) = self.of.get_mut(channel) else { return };
        let Some(stay) = room.people.get_mut(identity) else { return };
        stay.connections = stay.connections.saturating_sub(1);
        if stay.connections > 0 {
            return;
        }
        if stay.is_told {
            stay.away_since = Some(now);
            room.changed.insert(Arc::clone(identity));
            self.changed.insert(channel.clone());
            return;
        }
        // Nobody knows of them: whoever comes and goes between two messages, however often, leaves nothing behind.
        room.people.remove(identity);
        room.changed.remove(identity);
        self.stays -= 1;
        self.forget_empty(channel);
    }

    fn forget_empty(&mut self, channel: &Channel) {
        if self.of.get(channel).is_some_and(|room| room.people.is_empty()) {
            self.of.remove(channel);
            self.changed.remove(channel);
        }
    }

    /// Tells what has changed since it was asked last.
    pub fn tell(&mut self, now: Duration, mut tell: impl FnMut(&Channel, Change)) {
        let Self { of, changed, stays } = self;
        changed.retain(|channel| {
            let Some(room) = of.get_mut(channel) else { return false };
            let before = room.people.len();
            let change = room.settle(now);
            *stays -= before - room.people.len();
            if !change.joined.is_empty() || !change.left.is_empty() {
                tell(channel, change);
            }
            let is_waited_for = !room.changed.is_empty();
            if room.people.is_empty() {
                of.remove(channel);
            }
            is_waited_for
        });
    }

    /// Who is in a channel, as was told: how many, and some of them by name.
    pub fn present(&self, channel: &Channel, max_names: usize) -> (usize, Vec<String>) {
        let room = self.of.get(channel);
        let told = room.into_iter().flat_map(|room| &room.people).filter(|(_, stay)| stay.is_told);
        let names = told.take(max_names).map(|(identity, _)| identity.to_string()).collect();
        (room.map_or(0, |room| room.told), names)
    }
}

impl Room {
    /// Who has come and who has gone, as is to be told now.
    fn settle(&mut self, now: Duration) -> Change {
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
        Change { joined, left, count: self.told }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// What is told in this second.
    fn told(rooms: &mut Rooms, second: u32) -> Vec<Change> {
        let mut told = Vec::new();
        rooms.tell(SECOND * second, |_, change| told.push(change));
        told
    }

    fn change(joined: &[&str], left: &[&str], count: usize) -> Change {
        let names = |names: &[&str]| names.iter().map(|&name| name.into()).collect();
        Change { joined: names(joined), left: names(left), count }
    }

    #[test]
    fn people_come_once_and_go_with_their_last_connection() {
        let (mut rooms, room) = (Rooms::default(), Channel::parse("room:1").unwrap());
        for who in ["ada", "ada", "bob"] {
            rooms.join(&who.into(), &room);
        }
        assert_eq!(told(&mut rooms, 0), [change(&["ada", "bob"], &[], 2)]);
        assert!(told(&mut rooms, 1).is_empty());
        rooms.leave(&"ada".into(), &room, SECOND);
        rooms.leave(&"bob".into(), &room, SECOND);
        assert!(told(&mut rooms, 5).is_empty(), "ada has a connection left, bob may come back");
        rooms.join(&"bob".into(), &room);
        rooms.leave(&"bob".into(), &room, SECOND * 5);
        rooms.leave(&"ada".into(), &room, SECOND * 5);
        assert!(told(&mut rooms, 9).is_empty());
        assert_eq!(told(&mut rooms, 10), [change(&[], &["ada", "bob"], 0)]);
        assert!(rooms.of.is_empty() && rooms.changed.is_empty());
    }

    #[test]
    fn who_was_never_told_of_is_not_told_to_have_gone() {
        let (mut rooms, room) = (Rooms::default(), Channel::parse("room:1").unwrap());
        rooms.join(&"ada".into(), &room);
        rooms.join(&"bob".into(), &room);
        rooms.leave(&"ada".into(), &room, Duration::ZERO);
        assert_eq!(rooms.of[&room].people.len(), 1, "nothing is kept of her");
        rooms.leave(&"bob".into(), &room, Duration::ZERO);
        assert!(rooms.of.is_empty() && rooms.changed.is_empty());
        assert!(told(&mut rooms, 1).is_empty() && told(&mut rooms, 7).is_empty());
    }

    #[test]
    fn rooms_are_bounded() {
        let mut rooms = Rooms::default();
        for n in 0..=MAX_ROOMS {
            rooms.join(&"ada".into(), &Channel::parse(&format!("room:{n}")).unwrap());
        }
        assert_eq!(rooms.of.len(), MAX_ROOMS);
    }

    #[test]
    fn only_so_many_are_shown() {
        let mut rooms = Rooms::default();
        let channels: Vec<Channel> = (0..100).map(|n| Channel::parse(&format!("room:{n}")).unwrap()).collect();
        let identities: Vec<Arc<str>> = (0..MAX_STAYS / channels.len()).map(|n| format!("{n}").into()).collect();
        channels.iter().for_each(|channel| identities.iter().for_each(|identity| rooms.join(identity, channel)));
        let (one, more) = (&channels[0], Channel::parse("room:more").unwrap());
        let late: Arc<str> = "late".into();
        [one, &more].into_iter().for_each(|channel| rooms.join(&late, channel));
        assert_eq!((rooms.of.len(), rooms.of[one].people.len()), (channels.len(), identities.len()));
        rooms.join(&identities[0], one);
        rooms.leave(&late, one, Duration::ZERO);
        rooms.leave(&identities[1], one, Duration::ZERO);
        rooms.join(&late, one);
        assert!(rooms.of[one].people.contains_key(&late), "there is room again");
    }
}
