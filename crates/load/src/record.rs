//! What one event loop measures: every delivery checked, timed and counted, without allocating for any.

use crate::clients::LoopConfig;
use crate::run_state::RunState;
use crate::seconds::LoopSeconds;
use pushlab_wire::receipt::Receipt;
use pushlab_wire::stamp::Stamp;
use pushlab_workload::audience::Audience;
use pushlab_workload::check::{Recognised, Schedule, SeenTable, Verdict};
use pushlab_workload::ranks::Ranks;
use pushlab_workload::result::{MAX_MARKED_DELIVERIES, MarkedDelivery, Part};
use pushlab_workload::storm::Returns;
use pushlab_workload::timeline::Timeline;
use pushlab_workload::traffic::Traffic;
use std::ops::Range;
use std::sync::Arc;

/// A receipt mark that is no instant on its publication's way.
const UNLIKELY_MARK: &str =
    "a receipt mark of before the sending or after the delivery: is it of this host's CLOCK_MONOTONIC?";
/// Checks and times the deliveries of one loop.
#[derive(Debug)]
pub struct Recorder {
    /// What was measured so far.
    pub part: Part,
    /// Publications sent in any phase.
    pub published_total: u64,
    /// Deliveries received in any phase.
    pub delivered_total: u64,
    /// Publications and attempts to subscribe that were refused.
    pub refused_total: u64,
    /// How long what was read last had waited to be read, ns, where that is known.
    pub waited_ns: Option<u64>,
    seconds: LoopSeconds,
    seen: SeenTable,
    /// What each receiver was brought last, so many stamps for each, where polls ask for so many of the newest messages;
    /// else empty.
    newest: Vec<Option<Stamp>>,
    /// How many messages polls ask for then.
    newest_each: usize,
    /// Messages that these polls brought again.
    pub repeated: u64,
    audience: Audience,
    /// Whether the clients are those of a storm.
    is_storm: bool,
    /// Those, once the phases are known; nobody in other scenarios.
    pub returns: Returns,
    receivers: u32,
    schedule: Option<Schedule>,
    /// The load phase; empty until it is known.
    load_ns: Range<u64>,
    state: Arc<RunState>,
    /// Whether the subject may pass the back end's own frames on: arrays, which are no publications.
    ignores_arrays: bool,
    /// Whether publications have a place for a receipt mark.
    has_receipts: bool,
    /// Whether clients publish beside a feed: what nobody receives, so that no delivery is due.
    is_upstream: bool,
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
    /// Whether the server says that it has it from another server of its cluster.
    pub is_relayed: bool,
    /// When it was read, ns.
    pub now_ns: u64,
}

impl Recorder {
    /// For so many receivers.
    pub fn new(receivers: u32, config: &LoopConfig, state: Arc<RunState>) -> Self {
        let newest_each = config.requests.newest().unwrap_or(0) as usize;
        Self {
            part: Part::default(),
            published_total: 0,
            delivered_total: 0,
            refused_total: 0,
            waited_ns: None,
            seconds: LoopSeconds::new(state.origin_ns()),
            seen: SeenTable::new(receivers, config.audience.sources()),
            newest: vec![None; receivers as usize * newest_each],
            newest_each,
            repeated: 0,
            audience: config.audience.clone(),
            is_storm: config.storm.is_some(),
            returns: Returns::default(),
            receivers,
            schedule: None,
            load_ns: 0..0,
            state,
            ignores_arrays: config.ignores_arrays,
            has_receipts: config.has_receipts,
            is_upstream: config.traffic == Traffic::Upstream,
        }
    }

    /// Makes stamps recognisable; before that, all are unknown.
    pub fn set_timeline(&mut self, timeline: &Timeline) {
        self.schedule = timeline.schedule.clone();
        if self.audience.is_ranked() {
            self.part.ranks = Ranks::new(timeline.load_count());
        }
        self.load_ns = timeline.load_ns..timeline.load_end_ns;
        let receivers = if self.is_storm { self.receivers } else { 0 };
        self.returns = Returns::new(receivers, timeline.load_count(), self.load_ns.clone());
    }

    /// Whether data is no publication but a frame of the back end's own, which announces what it is going to send.
    #[inline]
    pub fn is_back_ends(&self, data: &[u8]) -> bool {
        self.ignores_arrays && data.starts_with(b"[\"")
    }

    /// Counts a refusal, of which the subject gave a reason.
    #[cold]
    pub fn refused(&mut self, why: &impl ToString) {
        self.part.errors.add(why);
        self.part.refused.add(why);
        self.refused_total += 1;
    }

    /// Counts one delivery; whether it is one that its receiver was to get, for the first time.
    #[inline]
    pub fn delivered(&mut self, delivery: Delivery<'_>) -> bool {
        let Some(stamp) = Stamp::find(delivery.data) else {
            self.part.unknown += u64::from(!self.is_back_ends(delivery.data));
            return false;
        };
        let source = match &self.audience {
            Audience::Everybodys { sources, .. } if stamp.source < *sources => Some(stamp.source),
            Audience::Own if stamp.source == delivery.own_source => Some(0),
            Audience::Rooms(rooms) => rooms.place(delivery.own_source, stamp.source),
            _ => None,
        };
        let schedule = self.schedule.as_ref().filter(|_| source.is_some());
        let (Some(source), Some(recognised)) = (source, schedule.and_then(|schedule| schedule.recognise(&stamp)))
        else {
            self.part.unknown += 1;
            self.part.misdirected += u64::from(self.audience == Audience::Own && source.is_none());
            return false;
        };
        if self.is_repeated(delivery.receiver, &stamp) {
            self.repeated += 1;
            return false;
        }
        let latency = delivery.now_ns.saturating_sub(stamp.instant_ns);
        // In a closed loop an answer is all that there is; its latency is counted already.
        let is_own = self.audience.is_own(&stamp, delivery.own_source)
            && !matches!(self.schedule, Some(Schedule::Closed { .. }));
        self.delivered_total += 1;
        self.part.arrived += u64::from(self.load_ns.contains(&delivery.now_ns));
        self.seconds.delivered(delivery.now_ns, latency, is_own, &self.state);
        let broadcasts = self.state.broadcasts();
        let (sequence, index, is_load) = match recognised {
            // What came before the cut may come again after it, and sequence numbers run through.
            Recognised::Load { index, .. } if self.is_storm => (stamp.sequence, index, true),
            Recognised::WarmUp if self.is_storm => (stamp.sequence, 0, false),
            Recognised::Load { sequence, index } => (sequence, index, true),
            // Publications are under way in the warm-up too, and sequence numbers run through.
            Recognised::WarmUp if broadcasts.is_some() => (stamp.sequence, 0, false),
            Recognised::WarmUp => return true,
        };
        let verdict = self.seen.observe(delivery.receiver, source, sequence);
        if verdict == Verdict::Duplicate {
            let is_counted = is_load || self.returns.have_begun(delivery.now_ns);
            self.part.duplicated += u64::from(is_counted);
            return false;
        }
        let place = broadcasts.map(|broadcasts| broadcasts.reached(stamp.source, sequence));
        if !is_load {
            return true;
        }
        if verdict == Verdict::Late {
            let is_reordered = self.is_reordered(&delivery, source, &stamp, sequence);
            self.part.reordered += u64::from(is_reordered);
        }
        self.part.delivered += 1;
        self.note_return(&delivery);
        self.note_latency(latency, is_own, delivery.is_relayed);
        if self.has_receipts {
            self.receipt(&stamp, sequence, &delivery);
        }
        match (place.flatten(), &self.audience) {
            (Some(place), Audience::Everybodys { receivers: Some(receivers), .. }) => {
                self.rank(place, *receivers, latency);
            }
            _ => self.part.ranks.reached(index, latency),
        }
        true
    }

    /// Takes down how long a delivery took, and apart where it came back to its publisher or crossed a cluster.
    fn note_latency(&mut self, latency: u64, is_own: bool, is_relayed: bool) {
        self.part.latency.record(latency);
        if let Some(waited_ns) = self.waited_ns {
            self.part.read_wait.record(waited_ns);
        }
        if is_own {
            self.part.latency_own.record(latency);
        }
        if is_relayed {
            self.part.latency_cross_node.record(latency);
        }
    }

    /// Takes down when a client of a storm has everything that it missed.
    #[inline]
    fn note_return(&mut self, delivery: &Delivery<'_>) {
        if let Some(after_ns) = self.returns.received(delivery.receiver, delivery.now_ns) {
            self.part.caught_up.record(after_ns);
        }
    }

    /// Counts that a receiver was told that messages are gone.
    pub fn told_gap(&mut self, receiver: u32, now_ns: u64) {
        self.part.gaps += 1;
        if self.returns.have_begun(now_ns) {
            self.returns.is_told(receiver);
        }
    }

    /// Whether a poll for the newest messages has brought one of those that the client was brought last: that is what it
    /// asked for, so it is neither a delivery nor a duplicate.
    #[inline]
    fn is_repeated(&mut self, receiver: u32, stamp: &Stamp) -> bool {
        if self.newest.is_empty() {
            return false;
        }
        let from = receiver as usize * self.newest_each;
        let last = &mut self.newest[from..from + self.newest_each];
        if last.contains(&Some(*stamp)) {
            return true;
        }
        last.rotate_left(1);
        last[self.newest_each - 1] = Some(*stamp);
        false
    }

    /// The way up and the way down, where the server says when it received the publication. Not inlined: most
    /// runs have no marks, and the way of every delivery is to stay short.
    #[inline(never)]
    fn receipt(&mut self, stamp: &Stamp, sequence: u32, delivery: &Delivery<'_>) {
        let Some(Receipt { instant_ns }) = Receipt::find(delivery.data) else { return };
        if !(stamp.instant_ns..=delivery.now_ns).contains(&instant_ns) {
            return self.part.errors.add(&UNLIKELY_MARK);
        }
        let result = &mut self.part;
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

    /// First and last subscriber of a publication that is counted over all loops.
    #[inline]
    fn rank(&mut self, place: u32, receivers: u32, latency: u64) {
        if place == 1 {
            self.part.latency_first.record(latency);
        }
        if place == receivers {
            self.part.latency_last.record(latency);
        }
    }

    /// Counts a publication that was handed to a socket, and how late it was after it was due.
    pub fn published(&mut self, is_load: bool, now_ns: u64, due_ns: u64) {
        if is_load {
            self.part.lateness.record(now_ns.saturating_sub(due_ns));
        }
        if self.is_upstream {
            self.part.upstream += u64::from(is_load);
            return;
        }
        self.published_total += 1;
        self.seconds.published(now_ns, &self.state);
        if is_load {
            self.part.published += 1;
            self.part.published_after += u64::from(now_ns >= self.load_ns.end);
        }
    }

    /// Counts the deliveries that a publication should make, if it is one to a room.
    pub fn published_in_room(&mut self, is_load: bool, room: u32) {
        if let (true, Audience::Rooms(rooms)) = (is_load, &self.audience) {
            self.part.expected_in_rooms += rooms.members(room).len() as u64;
        }
    }

    /// Hands whole seconds that have passed to the run.
    pub fn pass_time(&mut self, now_ns: u64) {
        self.seconds.pass_time(now_ns, &self.state);
    }

    /// Hands in the last, unfinished second.
    pub fn finish(mut self) -> Part {
        self.seconds.finish(&self.state);
        self.returns.count(&mut self.part);
        self.part
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_workload::pacing::Pacing;
    use pushlab_workload::rooms::Rooms;

    /// A run whose load phase begins with one of these publications.
    fn of_schedule(pacing: &Pacing, load_from: u64) -> Timeline {
        let schedule = Some(Schedule::Open { pacing: pacing.clone(), load_from });
        Timeline {
            idle_ns: 0,
            warm_up_ns: 0,
            load_ns: pacing.due_ns(load_from),
            load_end_ns: u64::MAX,
            schedule,
            upstream: None,
            polls: None,
        }
    }

    /// Of so many clients, and what is published to their rooms: 1,000 publications of which the load phase has
    /// those from `load_from` on.
    fn in_rooms(clients: u32, rooms: &Arc<Rooms>, load_from: u64) -> (Recorder, Pacing) {
        let pacing = Pacing::endless(0, 1_000 * u64::from(rooms.count()), rooms.count());
        let pacing = Pacing { count: 1_000, order: Some(rooms.order()), ..pacing };
        let timeline = of_schedule(&pacing, load_from);
        let state = Arc::new(RunState::new(0, 1));
        state.begin(timeline.clone());
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
                recorder.delivered(Delivery {
                    receiver: member,
                    own_source: member,
                    data: &data,
                    is_relayed: false,
                    now_ns,
                });
            }
            if k < LOAD_FROM {
                continue;
            }
            let rows = &recorder.part.deliveries;
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
        let result = &recorder.part;
        assert_eq!(result.latency_own.count(), 100 - LOAD_FROM, "everybody is in the rooms that they publish to");
        assert_eq!(result.deliveries.len() as u64, result.delivered);
        assert_eq!((result.latency_up.count(), result.latency_down.count()), (result.delivered, result.delivered));
    }

    #[test]
    fn what_was_relayed_is_also_counted_apart() {
        let rooms = Arc::new(Rooms::draw(1, 1, 1, 1));
        let (mut recorder, pacing) = in_rooms(1, &rooms, 2);
        for (sequence, is_relayed) in [(1, true), (2, false), (3, true), (4, true)] {
            let instant_ns = pacing.due_ns(u64::from(sequence));
            let now_ns = instant_ns + if is_relayed { 5_000_000 } else { 1_000_000 };
            let data = Stamp { source: 0, sequence, instant_ns }.encode();
            recorder.delivered(Delivery { receiver: 0, own_source: 0, data: &data, is_relayed, now_ns });
        }
        let Part { latency, latency_cross_node, .. } = &recorder.part;
        assert_eq!((latency.count(), latency_cross_node.count()), (3, 2), "of the load phase");
        let same_node = latency.without(latency_cross_node).unwrap();
        assert!(same_node.max().unwrap() < 2_000_000 && latency_cross_node.min().unwrap() > 4_000_000);
    }

    #[test]
    fn what_a_poll_for_the_newest_messages_brings_again_counts_once() {
        let pacing = Pacing { count: 100, ..Pacing::endless(0, 1_000_000, 1) };
        let timeline = of_schedule(&pacing, 2);
        let newest = [1, 1, 2, 2, 2, 3, 5, 5, 2];
        // Windows of up to three, and the first of them again.
        let three = [1, 1, 2, 1, 2, 3, 2, 3, 5, 2, 3, 5, 1];
        for (sequences, count, expected) in [
            (&newest[..], Some(1), (3, 1, 4)),
            (&newest, None, (3, 4, 8)),
            (&three, Some(3), (3, 0, 4)),
            (&three, Some(2), (3, 3, 7)),
        ] {
            let state = Arc::new(RunState::new(0, 1));
            state.begin(timeline.clone());
            let audience = Audience::Everybodys { sources: 1, receivers: None, are_sources_clients: false };
            let silent = LoopConfig { audience, ..LoopConfig::silent() };
            let requests = silent.requests.clone();
            let requests = count.map_or(requests.clone(), |count| requests.for_newest(count));
            let mut recorder = Recorder::new(1, &LoopConfig { requests, ..silent }, state);
            recorder.set_timeline(&timeline);
            for &sequence in sequences {
                let instant_ns = pacing.due_ns(u64::from(sequence));
                let data = Stamp { source: 0, sequence, instant_ns }.encode();
                recorder.delivered(Delivery {
                    receiver: 0,
                    own_source: 0,
                    data: &data,
                    is_relayed: false,
                    now_ns: instant_ns + 5,
                });
            }
            let Part { delivered, duplicated, latency, .. } = &recorder.part;
            // The last comes out of order: that is a fault of the server's, whatever was asked for.
            assert_eq!((*delivered, *duplicated, recorder.delivered_total - 1), expected, "newest: {count:?}");
            assert_eq!(latency.count(), 3);
        }
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
            recorder.delivered(Delivery {
                receiver,
                own_source: receiver,
                data: &data,
                is_relayed: false,
                now_ns: instant_ns + 5,
            });
            let Part { delivered, unknown, reordered, duplicated, .. } = recorder.part;
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
        let result = &recorder.part;
        let (first, last) = result.ranks.latencies(|_| u64::from(members));
        assert_eq!((first.count(), last.count()), (6, 1));
        recorder.published_in_room(true, room);
        recorder.published_in_room(false, room);
        assert_eq!(recorder.part.expected_in_rooms, u64::from(members));
    }
}
