//! What one event loop measures: every delivery checked, timed and counted, without allocating for any.

use crate::clients::LoopConfig;
use crate::run_state::{RunState, Timeline};
use crate::seconds::LoopSeconds;
use pushlab_wire::receipt::Receipt;
use pushlab_wire::stamp::Stamp;
use pushlab_workload::audience::Audience;
use pushlab_workload::check::{Recognised, Schedule, SeenTable, Verdict};
use pushlab_workload::result::{MarkedDelivery, WorkerResult};
use std::ops::Range;
use std::sync::Arc;

/// Most distinct errors that are told apart; further ones are counted together.
pub const MAX_DISTINCT_ERRORS: usize = 32;
/// A receipt mark that is no instant on its publication's way.
const UNLIKELY_MARK: &str =
    "a receipt mark of before the sending or after the delivery: is it of this host's CLOCK_MONOTONIC?";
/// Most rows of the table of deliveries; 48 bytes each.
pub const MAX_MARKED_DELIVERIES: usize = 10_000;

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

/// What one loop measured. About 2.8 MiB, most of it histograms.
///
/// What only the whole run can tell (phases, what was expected and lost, seconds, the prober's part) is still
/// empty in `result`, and its errors are in `errors`.
#[derive(Debug, Default)]
pub struct Record {
    /// Counts and histograms.
    pub result: WorkerResult,
    /// Deliveries that publications to rooms should make; in other scenarios each makes the same number.
    pub expected_in_rooms: u64,
    /// Errors.
    pub errors: ErrorTally,
}

impl Record {
    /// Adds another loop's.
    pub fn merge(&mut self, other: Self) {
        self.expected_in_rooms += other.expected_in_rooms;
        let (own, more) = (&mut self.result, other.result);
        for (own, more) in [
            (&mut own.published, more.published),
            (&mut own.delivered, more.delivered),
            (&mut own.arrived, more.arrived),
            (&mut own.duplicated, more.duplicated),
            (&mut own.reordered, more.reordered),
            (&mut own.unknown, more.unknown),
            (&mut own.gaps, more.gaps),
            (&mut own.reconnects, more.reconnects),
            (&mut own.requests, more.requests),
            (&mut own.requests_publishers, more.requests_publishers),
            (&mut own.connections_opened, more.connections_opened),
            (&mut own.bytes_sent, more.bytes_sent),
            (&mut own.bytes_received, more.bytes_received),
            (&mut own.bytes_received_in_load, more.bytes_received_in_load),
        ] {
            *own += more;
        }
        own.clock_error_ns = own.clock_error_ns.max(more.clock_error_ns);
        own.bytes_whole += more.bytes_whole;
        own.bytes_load += more.bytes_load;
        for (own, more) in [
            (&mut own.latency, &more.latency),
            (&mut own.latency_first, &more.latency_first),
            (&mut own.latency_middle, &more.latency_middle),
            (&mut own.latency_last, &more.latency_last),
            (&mut own.latency_own, &more.latency_own),
            (&mut own.latency_up, &more.latency_up),
            (&mut own.latency_down, &more.latency_down),
            (&mut own.connect, &more.connect),
            (&mut own.lateness, &more.lateness),
            (&mut own.loop_lag, &more.loop_lag),
        ] {
            own.merge(more);
        }
        // Every loop has kept its first ones, so the first of all are among them.
        own.deliveries.extend(more.deliveries);
        own.deliveries.sort_by_key(|delivery| delivery.delivered_ns);
        own.deliveries.truncate(MAX_MARKED_DELIVERIES);
        self.errors.merge(other.errors);
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
    /// Whether publications have a place for a receipt mark.
    has_receipts: bool,
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
    pub fn new(receivers: u32, config: &LoopConfig, state: Arc<RunState>) -> Self {
        Self {
            record: Record::default(),
            published_total: 0,
            delivered_total: 0,
            seconds: LoopSeconds::new(state.origin_ns()),
            seen: SeenTable::new(receivers, config.audience.sources()),
            audience: config.audience.clone(),
            schedule: None,
            load_ns: 0..0,
            state,
            ignores_arrays: config.ignores_arrays,
            has_receipts: config.has_receipts,
        }
    }

    /// Makes stamps recognisable; before that, all are unknown.
    pub fn set_timeline(&mut self, timeline: &Timeline) {
        self.schedule = timeline.schedule.clone();
        self.load_ns = timeline.load_ns..timeline.load_end_ns;
    }

    /// Whether data is no publication but a frame of the back end's own, which announces what it is going to send.
    #[inline]
    pub fn is_back_ends(&self, data: &[u8]) -> bool {
        self.ignores_arrays && data.starts_with(b"[\"")
    }

    /// Counts one delivery.
    #[inline]
    pub fn delivered(&mut self, delivery: Delivery<'_>) {
        let Some(stamp) = Stamp::find(delivery.data) else {
            self.record.result.unknown += u64::from(!self.is_back_ends(delivery.data));
            return;
        };
        let source = match &self.audience {
            Audience::Everybodys { sources, .. } if stamp.source < *sources => Some(stamp.source),
            Audience::Own if stamp.source == delivery.own_source => Some(0),
            Audience::Rooms(rooms) => rooms.place(delivery.own_source, stamp.source),
            _ => None,
        };
        let Some(source) = source else {
            return self.record.result.unknown += 1;
        };
        let Some(recognised) = self.schedule.as_ref().and_then(|schedule| schedule.recognise(&stamp)) else {
            return self.record.result.unknown += 1;
        };
        let latency = delivery.now_ns.saturating_sub(stamp.instant_ns);
        // In a closed loop an answer is all that there is; its latency is counted already.
        let is_own = self.audience.is_own(&stamp, delivery.own_source)
            && !matches!(self.schedule, Some(Schedule::Closed { .. }));
        self.delivered_total += 1;
        self.record.result.arrived += u64::from(self.load_ns.contains(&delivery.now_ns));
        self.seconds.delivered(delivery.now_ns, latency, is_own, &self.state);
        let broadcasts = self.state.broadcasts();
        let (sequence, index, is_load) = match recognised {
            Recognised::Load { sequence, index } => (sequence, index, true),
            // Publications are under way in the warm-up too, and sequence numbers run through.
            Recognised::WarmUp if broadcasts.is_some() => (stamp.sequence, 0, false),
            Recognised::WarmUp => return,
        };
        let verdict = self.seen.observe(delivery.receiver, source, sequence);
        if verdict == Verdict::Duplicate {
            return self.record.result.duplicated += u64::from(is_load);
        }
        let place = broadcasts.map(|broadcasts| broadcasts.reached(stamp.source, sequence));
        if !is_load {
            return;
        }
        if verdict == Verdict::Late {
            let is_reordered = self.is_reordered(&delivery, source, &stamp, sequence);
            self.record.result.reordered += u64::from(is_reordered);
        }
        self.record.result.delivered += 1;
        self.record.result.latency.record(latency);
        if is_own {
            self.record.result.latency_own.record(latency);
        }
        if self.has_receipts {
            self.receipt(&stamp, sequence, &delivery);
        }
        let receivers = match &self.audience {
            Audience::Everybodys { receivers: Some(receivers), .. } => *receivers,
            Audience::Rooms(rooms) => rooms.members(stamp.source).len() as u32,
            _ => return,
        };
        if let Some(place) = place.unwrap_or_else(|| self.state.count_subscriber(index)) {
            self.rank(place, receivers, latency);
        }
    }

    /// The way up and the way down, where the server says when it received the publication. Not inlined: most
    /// runs have no marks, and the way of every delivery is to stay short.
    #[inline(never)]
    fn receipt(&mut self, stamp: &Stamp, sequence: u32, delivery: &Delivery<'_>) {
        let Some(Receipt { instant_ns }) = Receipt::find(delivery.data) else { return };
        if !(stamp.instant_ns..=delivery.now_ns).contains(&instant_ns) {
            return self.record.errors.add(&UNLIKELY_MARK);
        }
        let result = &mut self.record.result;
        result.latency_up.record(instant_ns - stamp.instant_ns);
        result.latency_down.record(delivery.now_ns - instant_ns);
        if result.deliveries.len() < MAX_MARKED_DELIVERIES {
            let since_load = |instant: u64| instant.saturating_sub(self.load_ns.start);
            let (publisher, room) = match &self.audience {
                Audience::Rooms(rooms) => {
                    (rooms.publisher(stamp.source, u64::from(stamp.sequence)), Some(stamp.source))
                }
                _ => (stamp.source, None),
            };
            result.deliveries.push(MarkedDelivery {
                publisher,
                room,
                sequence,
                receiver: delivery.own_source,
                intended_ns: since_load(stamp.instant_ns),
                receipt_ns: since_load(instant_ns),
                delivered_ns: since_load(delivery.now_ns),
            });
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
    fn rank(&mut self, place: u32, receivers: u32, latency: u64) {
        if place == 1 {
            self.record.result.latency_first.record(latency);
        }
        if place == receivers.div_ceil(2) {
            self.record.result.latency_middle.record(latency);
        }
        if place == receivers {
            self.record.result.latency_last.record(latency);
        }
    }

    /// Counts a publication that was handed to a socket, and how late it was after it was due.
    pub fn published(&mut self, is_load: bool, now_ns: u64, due_ns: u64) {
        self.published_total += 1;
        self.seconds.published(now_ns, &self.state);
        if is_load {
            self.record.result.published += 1;
            self.record.result.lateness.record(now_ns.saturating_sub(due_ns));
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
    use pushlab_stats::histogram::Histogram;
    use pushlab_workload::pacing::Pacing;
    use pushlab_workload::rooms::Rooms;

    /// Of so many clients, and what is published to their rooms: 1,000 publications of which the load phase has
    /// those from `load_from` on.
    fn in_rooms(clients: u32, rooms: &Arc<Rooms>, load_from: u64) -> (Recorder, Pacing) {
        let pacing = Pacing::endless(0, 1_000 * u64::from(rooms.count()), rooms.count());
        let pacing = Pacing { count: 1_000, order: Some(rooms.order()), ..pacing };
        let schedule = Some(Schedule::Open { pacing: pacing.clone(), load_from });
        let load_ns = pacing.due_ns(load_from);
        let timeline = Timeline { idle_ns: 0, warm_up_ns: 0, load_ns, load_end_ns: u64::MAX, schedule };
        let state = Arc::new(RunState::new(0, 1));
        state.begin(timeline.clone(), 1_000);
        let audience = Audience::Rooms(Arc::clone(rooms));
        let config = LoopConfig { clients, audience, has_receipts: true, ..LoopConfig::silent() };
        let mut recorder = Recorder::new(clients, &config, state);
        recorder.set_timeline(&timeline);
        (recorder, pacing)
    }

    #[test]
    fn in_rooms_a_delivery_knows_its_publisher() {
        const LOAD_FROM: u64 = 17;
        let rooms = Arc::new(Rooms::draw(9, 4, 2, 3));
        let (mut recorder, pacing) = in_rooms(9, &rooms, LOAD_FROM);
        let mut published = [0u32; 4];
        for k in 0..100 {
            let (room, sequence) = pacing.publisher_of(k);
            let intended_ns = pacing.due_ns(k);
            let stamp = Stamp { source: room, sequence: sequence as u32, instant_ns: intended_ns };
            let data = [&stamp.encode()[..], &Receipt { instant_ns: intended_ns + 200 }.encode()].concat();
            for &member in rooms.members(room) {
                let now_ns = intended_ns + 500;
                recorder.delivered(Delivery { receiver: member, own_source: member, data: &data, now_ns });
            }
            if k < LOAD_FROM {
                continue;
            }
            let rows = &recorder.record.result.deliveries;
            let rows = &rows[rows.len() - rooms.members(room).len()..];
            let number = published[room as usize];
            published[room as usize] += 1;
            let publisher = rooms.publisher(room, sequence);
            for row in rows {
                let place = (row.publisher, row.room, row.sequence);
                assert_eq!(place, (publisher, Some(room), number), "of the load phase");
            }
            assert_eq!(rows.iter().filter(|row| row.receiver == row.publisher).count(), 1);
        }
        let result = &recorder.record.result;
        assert_eq!(result.latency_own.count(), 100 - LOAD_FROM, "everybody is in the rooms that they publish to");
        assert_eq!(result.deliveries.len() as u64, result.delivered);
        assert_eq!((result.latency_up.count(), result.latency_down.count()), (result.delivered, result.delivered));
    }

    #[test]
    fn only_members_receive_and_only_a_publishers_own_order_counts() {
        let rooms = Arc::new(Rooms::draw(6, 3, 1, 1));
        let (mut recorder, pacing) = in_rooms(6, &rooms, 0);
        let room = (0..rooms.count()).find(|&room| (2..6).contains(&rooms.members(room).len())).unwrap();
        let members = rooms.members(room).len() as u32;
        let mut hear = |receiver, source, sequence| {
            let instant_ns = pacing.due_ns(pacing.index_of(source % rooms.count(), u64::from(sequence)));
            let data = Stamp { source, sequence, instant_ns }.encode();
            recorder.delivered(Delivery { receiver, own_source: receiver, data: &data, now_ns: instant_ns + 5 });
            let WorkerResult { delivered, unknown, reordered, duplicated, .. } = recorder.record.result;
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
        let result = &recorder.record.result;
        let ranked = [&result.latency_first, &result.latency_middle, &result.latency_last];
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
