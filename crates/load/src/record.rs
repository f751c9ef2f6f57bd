//! What one event loop measures: every delivery checked, timed and counted, without allocating for any.

use crate::check::{Recognised, Schedule, SeenTable, Verdict};
use crate::rooms::Rooms;
use crate::run_state::{RunState, Timeline};
use crate::seconds::LoopSeconds;
use pushlab_stats::histogram::Histogram;
use pushlab_wire::stamp::Stamp;
use std::ops::Range;
use std::sync::Arc;

/// Most distinct errors that are told apart; further ones are counted together.
pub const MAX_DISTINCT_ERRORS: usize = 32;

/// Errors with their counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErrorTally {
    counts: Vec<(String, u64)>,
    others: u64,
}

impl ErrorTally {
    /// Counts an error.
    pub fn add(&mut self, error: &impl ToString) {
        self.add_n(error.to_string(), 1);
    }

    fn add_n(&mut self, error: String, count: u64) {
        if let Some((_, known)) = self.counts.iter_mut().find(|(known, _)| *known == error) {
            *known += count;
        } else if self.counts.len() < MAX_DISTINCT_ERRORS {
            self.counts.push((error, count));
        } else {
            self.others += count;
        }
    }

    /// Adds another tally.
    pub fn merge(&mut self, other: Self) {
        self.others += other.others;
        other.counts.into_iter().for_each(|(error, count)| self.add_n(error, count));
    }

    /// Errors and their counts, the most frequent first.
    pub fn into_sorted(mut self) -> Vec<(String, u64)> {
        self.counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        if self.others > 0 {
            self.counts.push(("other errors".into(), self.others));
        }
        self.counts
    }
}

/// What was measured. About 1.5 MiB, most of it histograms; one for each loop.
#[derive(Debug, Default)]
pub struct Record {
    /// Publications of the load phase handed to a socket.
    pub published: u64,
    /// Deliveries that those to rooms should make; other scenarios multiply.
    pub expected_in_rooms: u64,
    /// Deliveries of the load phase, each counted once.
    pub delivered: u64,
    /// Deliveries of any publication that arrived within the load phase.
    pub arrived: u64,
    /// Received again.
    pub duplicated: u64,
    /// Received after a later one of the same publisher; in rooms, as far as a room's last 64 tell.
    pub reordered: u64,
    /// Without a stamp, with one that nobody was to send, or of a room that the client is not in.
    pub unknown: u64,
    /// Gap frames.
    pub gaps: u64,
    /// Connections opened again.
    pub reconnects: u64,
    /// HTTP requests written in the load phase.
    pub requests: u64,
    /// Bytes written in the load phase.
    pub bytes_sent: u64,
    /// Bytes read in the load and drain phases.
    pub bytes_received: u64,
    /// Intended instant to delivery.
    pub latency: Histogram,
    /// To the first subscriber.
    pub latency_first: Histogram,
    /// To the median subscriber.
    pub latency_middle: Histogram,
    /// To the last subscriber.
    pub latency_last: Histogram,
    /// TCP connect to the first subscription answer.
    pub connect: Histogram,
    /// Intended instant to the write.
    pub lateness: Histogram,
    /// Duration of the loop's turns in the load phase.
    pub loop_lag: Histogram,
    /// Errors.
    pub errors: ErrorTally,
}

impl Record {
    /// Adds another loop's.
    pub fn merge(&mut self, other: Self) {
        self.published += other.published;
        self.expected_in_rooms += other.expected_in_rooms;
        self.delivered += other.delivered;
        self.arrived += other.arrived;
        self.duplicated += other.duplicated;
        self.reordered += other.reordered;
        self.unknown += other.unknown;
        self.gaps += other.gaps;
        self.reconnects += other.reconnects;
        self.requests += other.requests;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        for (own, more) in [
            (&mut self.latency, &other.latency),
            (&mut self.latency_first, &other.latency_first),
            (&mut self.latency_middle, &other.latency_middle),
            (&mut self.latency_last, &other.latency_last),
            (&mut self.connect, &other.connect),
            (&mut self.lateness, &other.lateness),
            (&mut self.loop_lag, &other.loop_lag),
        ] {
            own.merge(more);
        }
        self.errors.merge(other.errors);
    }
}

/// Whose publications a receiver is to get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Audience {
    /// Nobody's.
    Nobodys,
    /// Those of so many publishers.
    Everybodys {
        /// Publishers.
        sources: u32,
        /// Receivers in the whole process, to find the first, median and last of each publication; `None` does
        /// not look for them.
        receivers: Option<u32>,
    },
    /// Its own alone.
    Own,
    /// Those to the rooms that it is in; a stamp's source is the room.
    Rooms(Arc<Rooms>),
}

impl Audience {
    /// Sources that are told apart for each receiver.
    pub fn sources(&self) -> u32 {
        match self {
            Self::Nobodys => 0,
            Self::Everybodys { sources, .. } => *sources,
            Self::Own => 1,
            Self::Rooms(rooms) => rooms.per_client(),
        }
    }

    /// Whether the first, median and last subscriber of each publication are looked for.
    pub fn is_ranked(&self) -> bool {
        matches!(self, Self::Everybodys { receivers: Some(_), .. } | Self::Rooms(_))
    }
}

/// Checks and times the deliveries of one loop.
#[derive(Debug)]
pub struct Recorder {
    /// What was measured so far.
    pub record: Record,
    /// Publications sent in any phase.
    pub published_total: u64,
    /// Deliveries received in any phase.
    pub delivered_total: u64,
    seconds: LoopSeconds,
    seen: SeenTable,
    audience: Audience,
    schedule: Option<Schedule>,
    /// The load phase; empty until it is known.
    load_ns: Range<u64>,
    state: Arc<RunState>,
    /// Whether the subject may pass the back end's own frames on: arrays, which are no publications.
    ignores_arrays: bool,
}

/// A delivery, and to whom.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    /// The receiver's place in this loop.
    pub receiver: u32,
    /// The client's number in the run, which is also its number as a publisher.
    pub own_source: u32,
    /// The data.
    pub data: &'a [u8],
    /// When it was read, ns.
    pub now_ns: u64,
}

impl Recorder {
    /// For so many receivers.
    pub fn new(receivers: u32, audience: Audience, ignores_arrays: bool, state: Arc<RunState>) -> Self {
        Self {
            record: Record::default(),
            published_total: 0,
            delivered_total: 0,
            seconds: LoopSeconds::new(state.origin_ns()),
            seen: SeenTable::new(receivers, audience.sources()),
            audience,
            schedule: None,
            load_ns: 0..0,
            state,
            ignores_arrays,
        }
    }

    /// Makes stamps recognisable; before that, all are unknown.
    pub fn set_timeline(&mut self, timeline: &Timeline) {
        self.schedule = timeline.schedule.clone();
        self.load_ns = timeline.load_ns..timeline.load_end_ns;
    }

    /// Counts one delivery.
    #[inline]
    pub fn delivered(&mut self, delivery: Delivery<'_>) {
        let Some(stamp) = Stamp::find(delivery.data) else {
            if !(self.ignores_arrays && delivery.data.starts_with(b"[\"")) {
                self.record.unknown += 1;
            }
            return;
        };
        let source = match &self.audience {
            Audience::Everybodys { sources, .. } if stamp.source < *sources => Some(stamp.source),
            Audience::Own if stamp.source == delivery.own_source => Some(0),
            Audience::Rooms(rooms) => rooms.place(delivery.own_source, stamp.source),
            _ => None,
        };
        let Some(source) = source else {
            return self.record.unknown += 1;
        };
        let Some(recognised) = self.schedule.as_ref().and_then(|schedule| schedule.recognise(&stamp)) else {
            return self.record.unknown += 1;
        };
        let latency = delivery.now_ns.saturating_sub(stamp.instant_ns);
        self.delivered_total += 1;
        self.record.arrived += u64::from(self.load_ns.contains(&delivery.now_ns));
        self.seconds.delivered(delivery.now_ns, latency, &self.state);
        let Recognised::Load { sequence, index } = recognised else { return };
        match self.seen.observe(delivery.receiver, source, sequence) {
            Verdict::Duplicate => return self.record.duplicated += 1,
            Verdict::Late => self.record.reordered += u64::from(self.is_reordered(&delivery, source, &stamp, sequence)),
            Verdict::New => {}
        }
        self.record.delivered += 1;
        self.record.latency.record(latency);
        match &self.audience {
            Audience::Everybodys { receivers: Some(receivers), .. } => self.rank(index, *receivers, latency),
            Audience::Rooms(rooms) => self.rank(index, rooms.members(stamp.source).len() as u32, latency),
            _ => {}
        }
    }

    /// Whether a late delivery came after a later one of the same publisher. In a room publishers take turns, and
    /// those of two may overtake each other before the subject orders them.
    #[cold]
    fn is_reordered(&self, delivery: &Delivery<'_>, source: u32, stamp: &Stamp, sequence: u32) -> bool {
        let Audience::Rooms(rooms) = &self.audience else { return true };
        self.seen.has_later(delivery.receiver, source, sequence, rooms.members(stamp.source).len() as u32)
    }

    /// First, median and last subscriber: a loop sees deliveries in the order of time, so counting is enough.
    #[inline]
    fn rank(&mut self, index: u64, receivers: u32, latency: u64) {
        let Some(place) = self.state.count_subscriber(index) else { return };
        if place == 1 {
            self.record.latency_first.record(latency);
        }
        if place == receivers.div_ceil(2) {
            self.record.latency_middle.record(latency);
        }
        if place == receivers {
            self.record.latency_last.record(latency);
        }
    }

    /// Counts a publication that was handed to a socket, and how late.
    pub fn published(&mut self, is_load: bool, now_ns: u64, intended_ns: u64) {
        self.published_total += 1;
        self.seconds.published(now_ns, &self.state);
        if is_load {
            self.record.published += 1;
            self.record.lateness.record(now_ns.saturating_sub(intended_ns));
        }
    }

    /// Counts the deliveries that a publication should make, if it is one to a room.
    pub fn published_in_room(&mut self, is_load: bool, room: u32) {
        if let (true, Audience::Rooms(rooms)) = (is_load, &self.audience) {
            self.record.expected_in_rooms += rooms.members(room).len() as u64;
        }
    }

    /// Hands whole seconds that have passed to the run.
    pub fn pass_time(&mut self, now_ns: u64) {
        self.seconds.pass_time(now_ns, &self.state);
    }

    /// Hands in the last, unfinished second.
    pub fn finish(mut self) -> Record {
        self.seconds.finish(&self.state);
        self.record
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pacing::Pacing;

    #[test]
    fn only_members_receive_and_only_a_publishers_own_order_counts() {
        let rooms = Arc::new(Rooms::draw(6, 3, 1, 1));
        let state = Arc::new(RunState::new(0, 1));
        let pacing = Pacing::endless(0, 1_000 * u64::from(rooms.count()), rooms.count());
        let pacing = Pacing { count: 1_000, order: Some(rooms.order()), ..pacing };
        let schedule = Some(Schedule::Open { pacing: pacing.clone(), load_from: 0 });
        let timeline = Timeline { idle_ns: 0, warm_up_ns: 0, load_ns: 0, load_end_ns: u64::MAX, schedule };
        state.begin(timeline.clone(), 1_000);
        let mut recorder = Recorder::new(6, Audience::Rooms(Arc::clone(&rooms)), false, state);
        recorder.set_timeline(&timeline);
        let room = (0..rooms.count()).find(|&room| (2..6).contains(&rooms.members(room).len())).unwrap();
        let members = rooms.members(room).len() as u32;
        let mut hear = |receiver, source, sequence| {
            let instant_ns = pacing.due_ns(pacing.index_of(source % rooms.count(), u64::from(sequence)));
            let data = Stamp { source, sequence, instant_ns }.encode();
            recorder.delivered(Delivery { receiver, own_source: receiver, data: &data, now_ns: instant_ns + 5 });
            let Record { delivered, unknown, reordered, duplicated, .. } = recorder.record;
            (delivered, unknown, reordered, duplicated)
        };
        let member = rooms.members(room)[0];
        let stranger = (0..6).find(|&client| rooms.place(client, room).is_none()).unwrap();
        assert_eq!(hear(stranger, room, 0), (0, 1, 0, 0));
        assert_eq!(hear(member, rooms.count(), 0), (0, 2, 0, 0), "no such room");
        assert_eq!(hear(member, room, members), (1, 2, 0, 0));
        assert_eq!(hear(member, room, 1), (2, 2, 0, 0), "overtaken by those of other members");
        assert_eq!(hear(member, room, 0), (3, 2, 1, 0), "overtaken by its own publisher's next");
        assert_eq!(hear(member, room, 0), (3, 2, 1, 1));
        assert_eq!(hear(member, room, 3 * members), (4, 2, 1, 1));
        assert_eq!(hear(member, room, 2 * members - 1), (5, 2, 1, 1), "a whole turn late, and its next is late too");
        let everybody: Vec<u32> = rooms.members(room).to_vec();
        for client in everybody {
            hear(client, room, 9 * members);
        }
        let ranked = [&recorder.record.latency_first, &recorder.record.latency_middle, &recorder.record.latency_last];
        assert_eq!(ranked.map(Histogram::count), [6, if members <= 2 { 6 } else { 1 }, 1]);
        recorder.published_in_room(true, room);
        recorder.published_in_room(false, room);
        assert_eq!(recorder.record.expected_in_rooms, u64::from(members));
    }

    #[test]
    fn distinct_errors_are_bounded_and_none_is_dropped() {
        let mut tally = ErrorTally::default();
        (0..40).for_each(|i| tally.add(&format!("error {i}")));
        tally.add(&"error 3");
        let mut both = ErrorTally::default();
        both.merge(tally.clone());
        both.merge(tally);
        let sorted = both.into_sorted();
        assert_eq!(sorted.len(), MAX_DISTINCT_ERRORS + 1);
        assert_eq!(sorted[0], ("error 3".into(), 4));
        assert_eq!(sorted.last().unwrap(), &("other errors".into(), 16));
        assert_eq!(sorted.iter().map(|(_, n)| n).sum::<u64>(), 82);
    }
}
