//! Who is there, in which rooms, and what follows from what they do. Owns no clock and no socket: the time comes in,
//! what is to be published is asked for.

use super::names::{Name, RoomName, Text};
use crate::allowance::{Allowance, Allowances, Peer};
use pushlab_application::requests::Refusal;
use pushlab_application::secret::Secret;
use pushlab_wire::codes::ErrorCode;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant};

/// People in all: about 1 KiB each.
pub const MAX_PEOPLE: usize = 1000;
/// People from one address: 500, so that nobody takes all places alone, and a proxy's visitors have room.
pub const MAX_PEOPLE_OF_PEER: usize = 500;
/// How often one address may enter at once: 300 times, so that all who sit behind a proxy come back after a restart;
/// then once each [`ENTRY_INTERVAL`].
pub const MAX_ENTRIES: u32 = 300;
/// Five a second.
pub const ENTRY_INTERVAL: Duration = Duration::from_millis(200);
/// Rooms in all. A room takes 0.1 KiB, and as much for each that is in it.
pub const MAX_ROOMS: usize = 100;
/// Rooms that one person is in.
pub const MAX_ROOMS_EACH: usize = 8;
/// What one person may do at once: texts, joining and parting; then one each [`PACE`].
pub const MAX_BURST: u32 = 20;
/// Five texts a second, the pace of Bigestans' script (2014).
pub const PACE: Duration = Duration::from_millis(200);

/// What the channels of rooms begin with; the room's name follows.
pub const ROOM_CHANNELS: &str = "demo.chat.room.";
/// What the channels of private messages begin with; a [`Secret`] follows, which only their reader knows.
pub const INBOX_CHANNELS: &str = "demo.chat.inbox.";

/// An instant, on both clocks.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// For leases and paces: never jumps.
    pub instant: Instant,
    /// For people: ms since 1970.
    pub wall_ms: u64,
}

/// Something that happened, as its channel tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Event {
    /// What.
    pub kind: Kind,
    /// Where, unless it is private.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room: Option<RoomName>,
    /// Who did it.
    pub from: Name,
    /// To whom, if it is private.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Name>,
    /// What was said or told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Text>,
    /// When, ms since 1970.
    pub at_ms: u64,
    /// Its number: each is larger than all before it.
    pub id: u64,
}

/// Kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// To a room.
    Said,
    /// To one person.
    Told,
    /// Somebody came into a room.
    Joined,
    /// Somebody is no longer in a room.
    Left,
}

/// A room and who is in it, by name.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Room {
    /// Its name.
    pub room: RoomName,
    /// Never nobody: a room that is empty is gone.
    pub people: Vec<Name>,
}

/// All people and rooms.
#[derive(Debug)]
pub struct Gathering {
    /// How long somebody stays of whom nothing is heard.
    lease: Duration,
    people: HashMap<Secret, Person>,
    /// Who has a name, by its key.
    tokens: HashMap<String, Secret>,
    rooms: BTreeMap<RoomName, BTreeSet<Name>>,
    entries: Allowances<Peer>,
    latest_id: u64,
    /// Channel and event, oldest first. At most what one request and the end of all leases cause, because nothing more
    /// is asked of this while something is left over.
    unpublished: VecDeque<(String, Event)>,
}

#[derive(Debug)]
struct Person {
    name: Name,
    peer: Peer,
    inbox: Secret,
    rooms: BTreeSet<RoomName>,
    lease_end: Instant,
    allowance: Allowance,
}

impl Gathering {
    /// Nobody yet; who is not heard of for this long will be gone.
    pub fn new(lease: Duration) -> Self {
        Self {
            lease,
            people: HashMap::new(),
            tokens: HashMap::new(),
            rooms: BTreeMap::new(),
            entries: Allowances::new(MAX_ENTRIES, ENTRY_INTERVAL),
            latest_id: 0,
            unpublished: VecDeque::new(),
        }
    }

    /// Somebody comes, from this address. Both secrets are new.
    pub fn enter(&mut self, name: Name, peer: Peer, (token, inbox): (Secret, Secret), now: Now) -> Result<(), Refusal> {
        let taken = self.entries.take(peer, now.instant);
        taken.map_err(|wait| full("too many enter from your address; wait a moment").after(wait))?;
        if let Some(other) = self.called(name.key()) {
            let text = if other.name.is(&name) {
                format!("somebody here is called {}; choose another name", name.as_str())
            } else {
                format!("this looks like {}, who is here; choose another name", other.name.as_str())
            };
            return Err(Refusal::new(ErrorCode::NameTaken, text));
        }
        if self.people.values().filter(|person| person.peer == peer).count() >= MAX_PEOPLE_OF_PEER {
            let text = format!("{MAX_PEOPLE_OF_PEER} people are here from your address, which is all that can be");
            return Err(full(text));
        }
        if self.people.len() >= MAX_PEOPLE {
            return Err(full(format!("{MAX_PEOPLE} people are here, which is all that can be; try again later")));
        }
        self.tokens.insert(name.key().to_owned(), token);
        let allowance = Allowance::new(MAX_BURST, PACE, now.instant);
        let lease_end = now.instant + self.lease;
        self.people.insert(token, Person { name, peer, inbox, rooms: BTreeSet::new(), lease_end, allowance });
        Ok(())
    }

    /// Somebody is still there.
    pub fn beat(&mut self, token: Option<Secret>, now: Now) -> Result<(), Refusal> {
        self.person(token, now).map(drop)
    }

    /// Somebody goes, from all rooms; where they have gone already, nothing happens.
    pub fn leave(&mut self, token: Option<Secret>, now: Now) {
        let Some(person) = token.and_then(|token| self.people.remove(&token)) else { return };
        self.tokens.remove(person.name.key());
        person.rooms.into_iter().for_each(|room| self.go_out(room, person.name.clone(), now));
    }

    /// Somebody comes into a room; where they are in it already, nothing happens. Gives who is in it now.
    pub fn join(&mut self, token: Option<Secret>, room: RoomName, now: Now) -> Result<Room, Refusal> {
        let (rooms, is_new) = (self.rooms.len(), !self.rooms.contains_key(&room));
        let person = self.active(token, now)?;
        if !person.rooms.contains(&room) {
            if person.rooms.len() >= MAX_ROOMS_EACH {
                return Err(full(format!(
                    "you are in {MAX_ROOMS_EACH} rooms, which is all that can be; part from one"
                )));
            }
            if is_new && rooms >= MAX_ROOMS {
                return Err(full(format!("there are {MAX_ROOMS} rooms, which is all that can be; join one of them")));
            }
            person.rooms.insert(room.clone());
            let name = person.name.clone();
            self.rooms.entry(room.clone()).or_default().insert(name.clone());
            self.announce(Kind::Joined, room.clone(), name, now);
        }
        let people = self.rooms.get(&room).into_iter().flatten().cloned().collect();
        Ok(Room { room, people })
    }

    /// Somebody goes out of a room; where they are not in it, nothing happens.
    pub fn part(&mut self, token: Option<Secret>, room: RoomName, now: Now) -> Result<(), Refusal> {
        let person = self.active(token, now)?;
        let was_in = person.rooms.remove(&room);
        let name = person.name.clone();
        if was_in {
            self.go_out(room, name, now);
        }
        Ok(())
    }

    /// Somebody says something to a room they are in. Gives what is published.
    pub fn say(&mut self, token: Option<Secret>, room: RoomName, text: Text, now: Now) -> Result<Event, Refusal> {
        let person = self.active(token, now)?;
        if !person.rooms.contains(&room) {
            let text = format!("you are not in the room {}; join it first", room.as_str());
            return Err(Refusal::new(ErrorCode::Forbidden, text));
        }
        let from = person.name.clone();
        let channel = format!("{ROOM_CHANNELS}{}", room.as_str());
        let said =
            Event { kind: Kind::Said, room: Some(room), from, to: None, text: Some(text), at_ms: now.wall_ms, id: 0 };
        Ok(self.publish(channel, said))
    }

    /// Somebody tells somebody something. Gives what is published to the other alone.
    pub fn tell(&mut self, token: Option<Secret>, to: &Name, text: Text, now: Now) -> Result<Event, Refusal> {
        let from = self.active(token, now)?.name.clone();
        // Not whoever took a name that looks like it after its owner had gone.
        let Some(other) = self.called(to.key()).filter(|other| other.name.is(to)) else {
            return Err(Refusal::new(ErrorCode::NotFound, format!("nobody here is called {}", to.as_str())));
        };
        let channel = format!("{INBOX_CHANNELS}{}", other.inbox);
        let to = Some(other.name.clone());
        let told = Event { kind: Kind::Told, room: None, from, to, text: Some(text), at_ms: now.wall_ms, id: 0 };
        Ok(self.publish(channel, told))
    }

    /// Everybody goes whose lease has ended.
    pub fn expire(&mut self, now: Now) {
        let mut gone: Vec<(Instant, Name, Secret)> = Vec::new();
        for (token, person) in self.people.iter().filter(|(_, person)| person.lease_end <= now.instant) {
            gone.push((person.lease_end, person.name.clone(), *token));
        }
        gone.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        gone.into_iter().for_each(|(_, _, token)| self.leave(Some(token), now));
    }

    /// Every room and who is in it.
    pub fn rooms(&self) -> Vec<Room> {
        let room = |(room, people): (&RoomName, &BTreeSet<Name>)| Room {
            room: room.clone(),
            people: people.iter().cloned().collect(),
        };
        self.rooms.iter().map(room).collect()
    }

    /// Gives what is to be published, a channel and an event, to `publish`, in order, until nothing is left or it
    /// returns false; that one comes again. Returns whether nothing is left.
    pub fn poll_publications(&mut self, mut publish: impl FnMut(&str, &Event) -> bool) -> bool {
        while let Some((channel, event)) = self.unpublished.front() {
            if !publish(channel, event) {
                return false;
            }
            self.unpublished.pop_front();
        }
        true
    }

    /// Who has the name of this key.
    fn called(&self, key: &str) -> Option<&Person> {
        self.tokens.get(key).and_then(|token| self.people.get(token))
    }

    /// Whose token it is; they have been heard of.
    fn person(&mut self, token: Option<Secret>, now: Now) -> Result<&mut Person, Refusal> {
        let lease_end = now.instant + self.lease;
        let Some(person) = token.and_then(|token| self.people.get_mut(&token)) else {
            let text = "this token is nobody's, or its time is over; enter again";
            return Err(Refusal::new(ErrorCode::Unauthorized, text));
        };
        person.lease_end = lease_end;
        Ok(person)
    }

    /// The same, for what others notice.
    fn active(&mut self, token: Option<Secret>, now: Now) -> Result<&mut Person, Refusal> {
        let person = self.person(token, now)?;
        person
            .allowance
            .take(now.instant)
            .map_err(|wait| full("too much in a short time; wait a moment").after(wait))?;
        Ok(person)
    }

    fn go_out(&mut self, room: RoomName, name: Name, now: Now) {
        if let Some(people) = self.rooms.get_mut(&room) {
            people.remove(&name);
            if people.is_empty() {
                self.rooms.remove(&room);
            }
        }
        self.announce(Kind::Left, room, name, now);
    }

    fn announce(&mut self, kind: Kind, room: RoomName, from: Name, now: Now) {
        let channel = format!("{ROOM_CHANNELS}{}", room.as_str());
        self.publish(channel, Event { kind, room: Some(room), from, to: None, text: None, at_ms: now.wall_ms, id: 0 });
    }

    fn publish(&mut self, channel: String, event: Event) -> Event {
        self.latest_id += 1;
        let event = Event { id: self.latest_id, ..event };
        self.unpublished.push_back((channel, event.clone()));
        event
    }
}

fn full(text: impl Into<std::borrow::Cow<'static, str>>) -> Refusal {
    Refusal::new(ErrorCode::LimitReached, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const LEASE: Duration = Duration::from_secs(10);

    /// A gathering, its time, and what it has published.
    struct Evening {
        gathering: Gathering,
        now: Now,
        /// From where the next one enters.
        address: [u8; 4],
    }

    impl Evening {
        fn new() -> Self {
            let now = Now { instant: Instant::now(), wall_ms: 1_700_000_000_000 };
            Self { gathering: Gathering::new(LEASE), now, address: [192, 0, 2, 1] }
        }

        fn pass(&mut self, time: Duration) {
            self.now.instant += time;
            self.now.wall_ms += time.as_millis() as u64;
            self.gathering.expire(self.now);
        }

        fn enter(&mut self, who: &str) -> Result<Option<Secret>, ErrorCode> {
            let token = Secret::new().unwrap();
            let peer = Peer::from(std::net::IpAddr::from(self.address));
            let entered = self.gathering.enter(name(who), peer, (token, Secret::new().unwrap()), self.now);
            entered.map(|()| Some(token)).map_err(|refusal| refusal.code())
        }

        fn join(&mut self, token: Option<Secret>, room: &str) -> Result<Vec<String>, ErrorCode> {
            let joined = self.gathering.join(token, room_name(room), self.now).map_err(|refusal| refusal.code())?;
            assert_eq!(joined.room, room_name(room));
            Ok(joined.people.iter().map(|n| n.as_str().to_owned()).collect())
        }

        fn part(&mut self, token: Option<Secret>, room: &str) -> Result<(), ErrorCode> {
            self.gathering.part(token, room_name(room), self.now).map_err(|refusal| refusal.code())
        }

        fn say(&mut self, token: Option<Secret>, room: &str, said: &str) -> Result<Event, ErrorCode> {
            let said = self.gathering.say(token, room_name(room), text(said), self.now);
            said.map_err(|refusal| refusal.code())
        }

        fn tell(&mut self, token: Option<Secret>, to: &str, told: &str) -> Result<Event, ErrorCode> {
            let told = self.gathering.tell(token, &name(to), text(told), self.now);
            told.map_err(|refusal| refusal.code())
        }

        /// What was published since the last time: channels and events.
        fn published(&mut self) -> Vec<(String, Value)> {
            let mut published = Vec::new();
            let is_all = self.gathering.poll_publications(|channel, event| {
                published.push((channel.to_owned(), serde_json::to_value(event).unwrap()));
                true
            });
            assert!(is_all);
            published
        }

        /// The same in short: `joined lobby Ida`.
        fn news(&mut self) -> Vec<String> {
            let short = |(channel, event): (String, Value)| {
                let room = channel.strip_prefix(ROOM_CHANNELS).unwrap().to_owned();
                assert_eq!(event["room"], json!(room));
                format!("{} {room} {}", event["kind"].as_str().unwrap(), event["from"].as_str().unwrap())
            };
            self.published().into_iter().map(short).collect()
        }
    }

    fn name(text: &str) -> Name {
        Name::try_from(text.to_owned()).unwrap()
    }

    fn room_name(text: &str) -> RoomName {
        RoomName::try_from(text.to_owned()).unwrap()
    }

    fn text(text: &str) -> Text {
        Text::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn a_name_is_one_persons_until_they_leave() {
        let mut evening = Evening::new();
        let ida = evening.enter("Ida").unwrap();
        assert_eq!(evening.enter("Ida"), Err(ErrorCode::NameTaken), "not even for herself in a second window");
        assert_eq!(evening.enter("iDA"), Err(ErrorCode::NameTaken));
        let second = evening.enter("Ida 2").unwrap();
        evening.gathering.leave(ida, evening.now);
        assert!(evening.enter("IDA").is_ok());
        assert!(evening.gathering.beat(second, evening.now).is_ok(), "the second window is somebody of its own");
        assert!(evening.published().is_empty(), "nobody was in a room");
    }

    /// Digits of which none looks like another.
    fn look(n: usize) -> String {
        n.to_string().chars().map(|digit| (b'a' + digit as u8 - b'0') as char).collect()
    }

    #[test]
    fn a_name_that_looks_like_anothers_is_taken_and_gets_nothing_of_theirs() {
        let mut evening = Evening::new();
        let (ida, bo) = (evening.enter("Ida").unwrap(), evening.enter("Bo").unwrap());
        for imitation in ["lda", "1da", "ida", "Ïda", "B0", "bø"] {
            assert_eq!(evening.enter(imitation), Err(ErrorCode::NameTaken), "{imitation}");
        }
        evening.gathering.leave(ida, evening.now);
        assert!(evening.enter("lda").is_ok());
        assert_eq!(evening.tell(bo, "Ida", "it is for her alone"), Err(ErrorCode::NotFound));
        assert!(evening.tell(bo, "LDA", "but you").is_ok());
    }

    #[test]
    fn one_address_enters_at_a_pace_and_never_takes_all_places() {
        let mut evening = Evening::new();
        let burst = MAX_ENTRIES as usize;
        (0..burst).for_each(|n| assert!(evening.enter(&look(n)).is_ok()));
        assert_eq!(evening.enter("late"), Err(ErrorCode::LimitReached));
        evening.address = [192, 0, 2, 2];
        assert!(evening.enter("other").is_ok(), "others enter");
        evening.address = [192, 0, 2, 1];
        for n in burst..MAX_PEOPLE_OF_PEER {
            evening.now.instant += ENTRY_INTERVAL;
            evening.enter(&look(n)).unwrap();
        }
        evening.now.instant += ENTRY_INTERVAL;
        assert_eq!(evening.enter("late"), Err(ErrorCode::LimitReached), "all that can be from here");
        evening.address = [192, 0, 2, 2];
        assert!(evening.enter("late").is_ok());
    }

    #[test]
    fn rooms_tell_who_comes_and_goes() {
        let mut evening = Evening::new();
        let (ida, bo) = (evening.enter("Ida").unwrap(), evening.enter("Bo").unwrap());
        assert_eq!(evening.join(ida, "lobby").unwrap(), ["Ida"]);
        assert_eq!(evening.join(bo, "lobby").unwrap(), ["Bo", "Ida"]);
        assert_eq!(evening.join(bo, "lobby").unwrap(), ["Bo", "Ida"], "again, as after a reload");
        evening.join(bo, "attic").unwrap();
        assert_eq!(evening.news(), ["joined lobby Ida", "joined lobby Bo", "joined attic Bo"]);
        evening.part(ida, "lobby").unwrap();
        evening.part(ida, "lobby").unwrap();
        evening.gathering.leave(bo, evening.now);
        assert_eq!(evening.news(), ["left lobby Ida", "left attic Bo", "left lobby Bo"]);
        assert!(evening.gathering.rooms().is_empty(), "rooms without people are gone");
    }

    #[test]
    fn events_have_their_number_and_time_and_text_as_it_was() {
        let mut evening = Evening::new();
        let ida = evening.enter("Ida").unwrap();
        evening.join(ida, "lobby").unwrap();
        evening.pass(Duration::from_millis(1500));
        let script = "<script>alert('&amp;')</script> \" \\ ' OR 1=1 --";
        let said = evening.say(ida, "lobby", script).unwrap();
        let (channel, event) = evening.published().pop().unwrap();
        assert_eq!(channel, "demo.chat.room.lobby");
        let expected = json!({ "kind": "said", "room": "lobby", "from": "Ida", "text": script,
            "at_ms": 1_700_000_001_500_u64, "id": 2 });
        assert_eq!(event, expected);
        assert_eq!(serde_json::to_value(said).unwrap(), expected, "who says it is answered the same");
    }

    #[test]
    fn private_messages_go_to_one_inbox() {
        let mut evening = Evening::new();
        let (ida, bo) = (evening.enter("Ida").unwrap(), evening.enter("Bo").unwrap());
        evening.tell(ida, "BO", "psst").unwrap();
        evening.tell(bo, "Ida", "what").unwrap();
        let published = evening.published();
        assert_eq!(published.len(), 2);
        assert_ne!(published[0].0, published[1].0);
        assert!(published[0].0.starts_with(INBOX_CHANNELS) && published[0].0.len() == INBOX_CHANNELS.len() + 32);
        let expected = json!({ "kind": "told", "from": "Ida", "to": "Bo", "text": "psst",
            "at_ms": evening.now.wall_ms, "id": 1 });
        assert_eq!(published[0].1, expected);
        assert_eq!(evening.tell(ida, "Nobody", "hello"), Err(ErrorCode::NotFound));
    }

    #[test]
    fn one_speaks_only_in_rooms_one_is_in() {
        let mut evening = Evening::new();
        let (ida, bo) = (evening.enter("Ida").unwrap(), evening.enter("Bo").unwrap());
        evening.join(bo, "lobby").unwrap();
        evening.published();
        assert_eq!(evening.say(ida, "lobby", "hello"), Err(ErrorCode::Forbidden));
        assert_eq!(evening.say(ida, "no-such", "hello"), Err(ErrorCode::Forbidden));
        assert!(evening.published().is_empty());
    }

    #[test]
    fn tokens_of_nobody_do_nothing() {
        let mut evening = Evening::new();
        let ida = evening.enter("Ida").unwrap();
        evening.join(ida, "lobby").unwrap();
        evening.published();
        for forged in [None, Some(Secret::new().unwrap())] {
            let now = evening.now;
            assert_eq!(evening.gathering.beat(forged, now).unwrap_err().code(), ErrorCode::Unauthorized);
            evening.gathering.leave(forged, now);
            assert_eq!(evening.join(forged, "lobby"), Err(ErrorCode::Unauthorized));
            assert_eq!(evening.part(forged, "lobby"), Err(ErrorCode::Unauthorized));
            assert_eq!(evening.say(forged, "lobby", "hello"), Err(ErrorCode::Unauthorized));
            assert_eq!(evening.tell(forged, "Ida", "hello"), Err(ErrorCode::Unauthorized));
        }
        assert!(evening.published().is_empty());
    }

    #[test]
    fn who_is_not_heard_of_is_gone_after_the_lease() {
        let mut evening = Evening::new();
        let (ida, bo) = (evening.enter("Ida").unwrap(), evening.enter("Bo").unwrap());
        evening.join(ida, "lobby").unwrap();
        evening.join(bo, "lobby").unwrap();
        evening.news();
        for _ in 0..5 {
            evening.pass(Duration::from_secs(3));
            evening.gathering.beat(ida, evening.now).unwrap();
            if evening.now.wall_ms < 1_700_000_000_000 + LEASE.as_millis() as u64 {
                assert!(evening.news().is_empty());
            }
        }
        assert_eq!(evening.news(), ["left lobby Bo"]);
        assert_eq!(evening.gathering.beat(bo, evening.now).unwrap_err().code(), ErrorCode::Unauthorized);
        assert!(evening.enter("Bo").is_ok(), "the name is free");
        evening.pass(LEASE - Duration::from_nanos(1));
        assert!(evening.news().is_empty());
        evening.pass(Duration::from_nanos(1));
        assert_eq!(evening.news(), ["left lobby Ida"]);
    }

    #[test]
    fn whatever_one_does_shows_that_one_is_there() {
        let mut evening = Evening::new();
        let ida = evening.enter("Ida").unwrap();
        let almost = LEASE - Duration::from_millis(1);
        evening.pass(almost);
        evening.join(ida, "lobby").unwrap();
        evening.pass(almost);
        evening.say(ida, "lobby", "still here").unwrap();
        evening.pass(almost);
        evening.tell(ida, "Ida", "note to myself").unwrap();
        evening.pass(almost);
        evening.part(ida, "lobby").unwrap();
        evening.pass(almost);
        assert!(evening.gathering.beat(ida, evening.now).is_ok());
    }

    #[test]
    fn people_and_rooms_are_limited() {
        let mut evening = Evening::new();
        let mut enter = |n: usize| {
            evening.address[3] = (n / 100) as u8;
            evening.enter(&look(n)).unwrap()
        };
        let all: Vec<_> = (0..MAX_PEOPLE).map(&mut enter).collect();
        assert_eq!(evening.enter("late"), Err(ErrorCode::LimitReached));
        for n in 0..MAX_ROOMS {
            evening.join(all[n / MAX_ROOMS_EACH], &format!("r{n}")).unwrap();
        }
        let last = all[MAX_PEOPLE - 1];
        assert_eq!(evening.join(last, "one-more"), Err(ErrorCode::LimitReached));
        assert!(evening.join(last, "r0").is_ok(), "rooms that are there can be joined");
        assert_eq!(evening.join(all[0], "r99"), Err(ErrorCode::LimitReached), "{MAX_ROOMS_EACH} are all for one");
        evening.part(all[0], "r1").unwrap();
        assert!(evening.join(all[0], "r99").is_ok());
        assert!(evening.join(last, "one-more").is_ok(), "r1 is gone");
        evening.gathering.leave(last, evening.now);
        assert!(evening.enter("late").is_ok());
    }

    #[test]
    fn one_person_speaks_at_a_pace() {
        let mut evening = Evening::new();
        let (ida, bo) = (evening.enter("Ida").unwrap(), evening.enter("Bo").unwrap());
        evening.join(ida, "lobby").unwrap();
        for _ in 1..MAX_BURST {
            evening.say(ida, "lobby", "again").unwrap();
        }
        evening.published();
        let refusal = evening.gathering.say(ida, room_name("lobby"), text("and again"), evening.now).unwrap_err();
        assert_eq!(refusal.code(), ErrorCode::LimitReached);
        let response = pushlab_application::Response::from(refusal);
        assert_eq!((response.status, response.fields), (429, vec![("Retry-After".into(), "1".into())]));
        assert_eq!(evening.part(ida, "lobby"), Err(ErrorCode::LimitReached));
        assert_eq!(evening.tell(ida, "Bo", "psst"), Err(ErrorCode::LimitReached));
        assert!(evening.published().is_empty());
        assert!(evening.gathering.beat(ida, evening.now).is_ok(), "beats are free");
        assert!(evening.join(bo, "lobby").is_ok(), "others speak");
        for _ in 0..100 {
            evening.pass(PACE);
            evening.say(ida, "lobby", "as fast as the script").unwrap();
        }
    }

    #[test]
    fn what_cannot_be_published_comes_again_in_order() {
        let mut evening = Evening::new();
        let ida = evening.enter("Ida").unwrap();
        evening.join(ida, "lobby").unwrap();
        evening.say(ida, "lobby", "one").unwrap();
        let mut offered = Vec::new();
        let is_all = evening.gathering.poll_publications(|_, event| {
            offered.push(event.id);
            event.id < 2
        });
        assert!(!is_all);
        assert_eq!(offered, [1, 2]);
        let ids: Vec<Value> = evening.published().into_iter().map(|(_, event)| event["id"].clone()).collect();
        assert_eq!(ids, [json!(2)]);
    }
}
