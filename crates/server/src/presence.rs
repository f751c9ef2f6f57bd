//! Who is in a channel, as it is told to others.
//!
//! Joins and leaves are told in batches, so that they cost as much as there are people who came or went, not that times
//! those who are told.

use crate::distributor::Distributor;
use pushlab_access::presence::Rooms;
use pushlab_access::{Access, Holder, LiveAccess};
use pushlab_application::Present;
use pushlab_session::gate::PRESENCE;
use pushlab_wire::channel::Channel;
use serde::Serialize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Names in one message, or in one answer: with the longest names that a token can have it fits an answer.
const MAX_NAMES: usize = 1000;

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

    /// Tells what has changed.
    pub fn tell(&self, distributor: &Distributor, now: Duration) {
        self.lock().tell(now, |channel, change| {
            let count = change.count;
            // Several messages where they are very many; the count is right behind the last.
            for names in change.joined.chunks(MAX_NAMES) {
                publish(distributor, channel, &Change { joined: texts(names), left: Vec::new(), count });
            }
            for names in change.left.chunks(MAX_NAMES) {
                publish(distributor, channel, &Change { joined: Vec::new(), left: texts(names), count });
            }
        });
    }

    /// Who is in a channel, as was told up to a cursor; `None` where it is not told.
    pub fn present(&self, distributor: &Distributor, channel: &Channel) -> Option<Present> {
        if !self.access.rules().tells_presence(channel.as_str()) {
            return None;
        }
        let rooms = self.lock();
        let (count, identities) = rooms.present(channel, MAX_NAMES);
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
        self.count(holder, channels, None, Some(&self.rules), Duration::ZERO);
    }

    /// A connection of somebody subscribes to these channels no more.
    pub fn leave(&self, holder: Option<&Holder>, channels: &[Channel], now: Duration) {
        self.count(holder, channels, Some(&self.rules), None, now);
    }

    /// Goes over to the rules in force. If these tell of other channels, every connection is to be [moved](Self::move_over)
    /// from those before, which are returned.
    pub fn follow(&mut self) -> Option<Arc<Access>> {
        let before = std::mem::replace(&mut self.rules, self.presence.access.rules());
        (!before.tells_presence_as(&self.rules)).then_some(before)
    }

    /// A connection of somebody that subscribed to these channels by other rules counts by those of now.
    pub fn move_over(&self, before: &Access, holder: Option<&Holder>, channels: &[Channel], now: Duration) {
        self.count(holder, channels, Some(before), Some(&self.rules), now);
    }

    /// Counts where the rules by which somebody is there tell of another channel than those by which they were.
    fn count(
        &self,
        holder: Option<&Holder>,
        channels: &[Channel],
        before: Option<&Access>,
        after: Option<&Access>,
        now: Duration,
    ) {
        let Some(Holder::Identity(identity)) = holder else { return };
        for channel in channels {
            let [was, is] =
                [before, after].map(|rules| rules.is_some_and(|rules| rules.tells_presence(channel.as_str())));
            match (was, is) {
                (false, true) => self.presence.lock().join(identity, channel),
                (true, false) => self.presence.lock().leave(identity, channel, now),
                _ => {}
            }
        }
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
            let distributor = Distributor::new(
                Box::new(log),
                Arc::default(),
                limits,
                Duration::ZERO,
                false,
                Vec::new(),
                std::time::Instant::now(),
            );
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
        let text = format!("{text}\n[token]\n[[token.key]]\nalgorithm = \"HS256\"\nfile = \"secret\"");
        Access::read(&text, "access.toml", &mut |_| Ok(b"0123456789abcdef0123456789abcdef".to_vec())).unwrap()
    }

    fn somebody(name: &str) -> Holder {
        Holder::Identity(name.into())
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
        assert!(world.told(16).is_empty(), "of the room nobody is told twice");
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
