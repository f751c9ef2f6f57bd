//! What is measured: by one part of the load, and by all of it together.
//!
//! An event loop, a worker and a whole fleet measure the same quantities, each of its own clients. Each quantity has one
//! rule by which parts are put together, so that parts merged in any order give what one part would have measured that
//! saw everything.

use crate::busy::BusiestSecond;
use crate::errors::{ErrorCount, ErrorTally};
use crate::plan::Phase;
use crate::ranks::Ranks;
use pushlab_stats::histogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// Most rows of the table of deliveries; 48 bytes each.
pub const MAX_MARKED_DELIVERIES: usize = 10_000;

/// Makes [`Part`] and [`LoadResult`] of one list: what is counted is added up, histograms are united.
macro_rules! measured {
    (
        counts { $($(#[$count_meta:meta])* $count:ident,)* }
        histograms { $($(#[$histogram_meta:meta])* $histogram:ident,)* }
        of_a_run {
            $($(#[$run_count_meta:meta])* $run_count:ident,)*
        }
    ) => {
        /// What a part of the load measured: an event loop, a worker, or several of them merged. About 2.5 MiB, most of
        /// it histograms. Counts and histograms cover the publications whose intended instant lies in the load phase.
        #[derive(Debug, Clone, Default, Serialize, Deserialize)]
        pub struct Part {
            $($(#[$count_meta])* pub $count: u64,)*
            $($(#[$histogram_meta])* pub $histogram: Histogram,)*
            /// What clients' bytes were for, from the first connection to the end of the run.
            pub bytes_whole: ClientBytes,
            /// The same of the load and drain phases.
            pub bytes_load: ClientBytes,
            /// How far the instants that a browser's pages told may be off, ns: the largest.
            pub clock_error_ns: Option<u64>,
            /// How the clocks of workers on other machines did, in the order of the workers.
            pub clocks: Vec<WorkerClock>,
            /// The busiest second of a thread: that of the busiest.
            #[serde(default)]
            pub busiest: Option<BusiestSecond>,
            /// The first of the marked deliveries, in the order of arrival.
            pub deliveries: Vec<MarkedDelivery>,
            /// Whom each publication has reached.
            pub ranks: Ranks,
            /// Errors.
            pub errors: ErrorTally,
            /// Those of them with which the subject refused publications, or clients that were not subscribed.
            pub refused: ErrorTally,
            /// Publications of the back end in each second, which it tells at the end.
            pub fed: Vec<u64>,
            /// Deliveries that publications to rooms should make; in other scenarios each makes the same number.
            pub expected_in_rooms: u64,
        }

        impl Part {
            /// Adds what another part measured.
            pub fn merge(&mut self, other: Self) {
                $(self.$count += other.$count;)*
                $(self.$histogram.merge(&other.$histogram);)*
                self.bytes_whole += other.bytes_whole;
                self.bytes_load += other.bytes_load;
                self.clock_error_ns = self.clock_error_ns.max(other.clock_error_ns);
                self.clocks.extend(other.clocks);
                self.clocks.sort_by_key(|clock| clock.worker);
                self.busiest = BusiestSecond::busier(self.busiest, other.busiest);
                // Each part has kept its first ones, so the first of all are among them.
                self.deliveries.extend(other.deliveries);
                self.deliveries.sort_by_key(|delivery| (delivery.delivered_ns, delivery.receiver, delivery.sequence));
                self.deliveries.truncate(MAX_MARKED_DELIVERIES);
                self.ranks.merge(other.ranks);
                self.errors.merge(other.errors);
                self.refused.merge(other.refused);
                self.fed.resize(self.fed.len().max(other.fed.len()), 0);
                self.fed.iter_mut().zip(other.fed).for_each(|(own, more)| *own += more);
                self.expected_in_rooms += other.expected_in_rooms;
            }

            /// All of it as a run's result, in which what only the whole run tells is still empty. Whether there are
            /// latencies that begin on one worker's clock and end on another's is the coordinator's to say.
            pub(crate) fn into_result(self, is_across: bool) -> LoadResult {
                LoadResult {
                    $($count: self.$count,)*
                    $($histogram: self.$histogram,)*
                    bytes_whole: self.bytes_whole,
                    bytes_load: self.bytes_load,
                    clock_error_ns: sum_of_errors(self.clock_error_ns, &self.clocks, is_across),
                    clocks: self.clocks,
                    busiest: self.busiest,
                    deliveries: self.deliveries,
                    errors: self.errors.into_sorted(),
                    refused: self.refused.into_sorted(),
                    ..LoadResult::default()
                }
            }
        }

        /// What the load measured in one run. Counts and histograms cover the publications whose intended instant lies
        /// in the load phase; warm-up is left out. All instants are on the monotonic clock of the coordinator's host.
        #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
        pub struct LoadResult {
            $($(#[$count_meta])* #[serde(default)] pub $count: u64,)*
            $($(#[$run_count_meta])* #[serde(default)] pub $run_count: u64,)*
            $($(#[$histogram_meta])* #[serde(default)] pub $histogram: Histogram,)*
            /// When each phase began: name and ns.
            pub phases: Vec<PhaseMark>,
            /// When the run ended, ns.
            pub end_ns: u64,
            /// Distinct errors with their counts: connection errors, HTTP statuses, error frames.
            pub errors: Vec<ErrorCount>,
            /// Those of them with which the subject refused publications, or clients that were not subscribed.
            #[serde(default)]
            pub refused: Vec<ErrorCount>,
            /// Per second since the first phase began. The warm-up is in here too, so that steady state can be judged.
            pub seconds: Vec<Second>,
            /// What clients' bytes were for, from the first connection to the end of the run.
            #[serde(default)]
            pub bytes_whole: ClientBytes,
            /// The same of the load and drain phases.
            #[serde(default)]
            pub bytes_load: ClientBytes,
            /// How far a one-way latency may be off because two clocks measured it, ns: the errors of the two workers, and
            /// of the page of a browser, of whose clocks the least is known. `None` where there is but one clock.
            #[serde(default)]
            pub clock_error_ns: Option<u64>,
            /// The clocks of workers on machines other than the coordinator's, in the order of the workers.
            #[serde(default)]
            pub clocks: Vec<WorkerClock>,
            /// The second of the load phase in which a thread of the load was busiest, of all threads and seconds. `None`
            /// for records from before it was measured, and for clients in a browser, whose threads are its own.
            #[serde(default)]
            pub busiest: Option<BusiestSecond>,
            /// Every delivery of the load phase in the order of arrival, where receipts are marked; at most 10,000.
            #[serde(default)]
            pub deliveries: Vec<MarkedDelivery>,
        }

        impl LoadResult {
            /// Every count, by its name.
            pub fn counts(&mut self) -> impl Iterator<Item = (&'static str, &mut u64)> {
                [
                    $((stringify!($count), &mut self.$count),)*
                    $((stringify!($run_count), &mut self.$run_count),)*
                    ("end_ns", &mut self.end_ns),
                ]
                .into_iter()
            }

            /// Pings that were due in the load phase, whether answered or not.
            pub fn pings(&self) -> u64 {
                self.response_load.count() + self.response_unanswered.count()
            }

            /// With what the subject refused publications and clients, most often first; `None` if it did not.
            pub fn refusals(&self) -> Option<String> {
                const NAMED_MAX: usize = 3;
                let said = |refused: &ErrorCount| format!("{} ({} times)", refused.error, refused.count);
                let named = self.refused.iter().take(NAMED_MAX).map(said);
                named.reduce(|all, next| format!("{all}; {next}"))
            }

            /// Deliveries that never came, and of which nobody was told that they are gone.
            pub fn lost_silently(&self) -> u64 {
                self.lost.saturating_sub(self.lost_told)
            }

            /// Deliveries that the publications due in the load phase should have made. What could not be sent counts
            /// with what one that was sent should make: a subject that stops reading owes it like one that loses it.
            pub fn owed(&self) -> u64 {
                if self.unsent == 0 || self.published == 0 {
                    return self.expected.max(self.unsent);
                }
                let unsent = u128::from(self.expected) * u128::from(self.unsent) / u128::from(self.published);
                self.expected.saturating_add(u64::try_from(unsent).unwrap_or(u64::MAX))
            }

            /// Every histogram, by its name.
            pub fn histograms(&mut self) -> impl Iterator<Item = (&'static str, &mut Histogram)> {
                [
                    $((stringify!($histogram), &mut self.$histogram),)*
                ]
                .into_iter()
            }
        }
    };
}

measured! {
    counts {
        /// Publications due in the load phase that were handed to a socket by clients, the back end or the feeder.
        published,
        /// Of those, handed to a socket only after the load phase.
        published_after,
        /// Publications of clients beside a feed, due in the load phase, that were handed to a socket.
        upstream,
        /// Deliveries received, each counted once.
        delivered,
        /// Of those delivered, those that came in a compressed message or body.
        delivered_compressed,
        /// Deliveries of any publication that arrived while the load phase lasted: the throughput, over its length.
        arrived,
        /// Received again.
        duplicated,
        /// Received after a later one of the same publisher; in rooms, as far as a room's last 64 tell.
        reordered,
        /// Deliveries without a stamp, with one that nobody sent, or of a room that the client is not in.
        unknown,
        /// Of those, messages of other clients where each is to receive its own alone: what a subject does that
        /// broadcasts instead of answering.
        misdirected,
        /// Gap frames received.
        gaps,
        /// Clients of a storm that the server told when to come back, and that did.
        told_when,
        /// Clients of a storm that were told, when they came back, that messages are gone.
        told_gap,
        /// Deliveries that never came to those.
        lost_told,
        /// Clients of a storm that were subscribed again and told nothing, though messages never came to them.
        recovered_falsely,
        /// Connections that failed or were cut, and were opened again.
        reconnects,
        /// HTTP requests sent in the load phase, those of prober and feeder left out.
        requests,
        /// Of those, by clients that publish.
        requests_publishers,
        /// HTTP requests sent in the idle phase, those of prober and feeder left out.
        requests_idle,
        /// Answers to clients' polls that came in the load phase, those to polls for the list of users among them; those of
        /// the feeder left out.
        polls,
        /// Of those, without a message.
        polls_empty,
        /// Connections that clients opened in the load phase, those of prober and feeder left out.
        connections_opened,
        /// Clients' receiving connections that failed or were cut in the load phase, those of prober and feeder left out.
        connections_cut,
        /// Bytes on clients' sockets, both ways, until the idle phase began, which is when everybody is subscribed.
        bytes_opening,
        /// Bytes written to clients' sockets in the load phase.
        bytes_sent,
        /// Bytes read from clients' sockets in the load and drain phases.
        bytes_received,
        /// Of those, in the load phase.
        bytes_received_in_load,
        /// CPU time of the load's threads in the load phase, ns.
        cpu_load_ns,
        /// Clients that were not subscribed when the load began, because a host's connections were used up.
        unsubscribed,
    }
    histograms {
        /// Intended instant to delivery, every delivery.
        latency,
        /// Intended instant to the first subscriber of each publication; feed, fan-out, chat and rooms only, and of the
        /// first 4,194,304 publications, as the next. On a schedule it follows from the ranks of all parts.
        latency_first,
        /// Intended instant to the last subscriber of each publication that reached all.
        latency_last,
        /// Intended instant to delivery, of clients' own publications alone: the round trip. Chat, rooms and echo only.
        latency_own,
        /// Intended instant to delivery, of deliveries that crossed from one server of a cluster to another; only where the
        /// server says which did.
        latency_cross_node,
        /// Intended instant to the server's receipt mark, once for each delivery that bears one.
        latency_up,
        /// The server's receipt mark to delivery.
        latency_down,
        /// Prober's response time in the idle phase.
        response_idle,
        /// Prober's response time in the load phase, from its intended instant; of pings that were answered.
        response_load,
        /// How long those pings of the load phase had been waited for that were unanswered at the end.
        response_unanswered,
        /// Time from the instant at which the clients of a storm might come back until one was subscribed again.
        back,
        /// The same until one had everything that it missed.
        caught_up,
        /// Time from the TCP connect to the first subscription answer; where a host's connections are limited, waiting
        /// for one included.
        connect,
        /// How late the generator sent: from the intended instant, or from when the transport let the client send, to
        /// the write; load phase.
        lateness,
        /// How long deliveries on a sample of the connections had been at this host before they were read, by the kernel's
        /// clock: the last of those read at once. With the lateness it is the generator's own share of the latency.
        read_wait,
        /// What of the response times of the load phase was the prober's own: how late it sent, and how long the answer had
        /// been at this host before it was read.
        response_own,
        /// Duration of the turns of the event loops: how long an event may have waited for the generator.
        turn_duration,
    }
    of_a_run {
        /// Publications that were due in the load phase.
        scheduled,
        /// Of those, never sent: the socket was still blocked at the end.
        unsent,
        /// Publications of clients beside a feed that were due in the load phase and never sent.
        upstream_unsent,
        /// Deliveries that should have come: publications × receivers, or the members of each one's room.
        expected,
        /// Expected and never received.
        lost,
    }
}

/// What the bytes on clients' sockets were for; those of prober, collector and feeder are not in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientBytes {
    /// Deliveries that they brought, whenever published; one that came again counts again.
    pub deliveries: u64,
    /// HTTP requests that clients sent, handshakes of WebSockets included.
    pub requests: u64,
    /// From the subject to the clients.
    pub down: ByteUses,
    /// From the clients to the subject.
    pub up: ByteUses,
}

impl AddAssign for ClientBytes {
    fn add_assign(&mut self, more: Self) {
        self.deliveries += more.deliveries;
        self.requests += more.requests;
        self.down += more.down;
        self.up += more.up;
    }
}

/// What the bytes of one direction were for. Together they are all bytes that TCP carried for the sockets: those read
/// (down), and those given to sockets to be sent (up), of which a connection that is cut may not have sent the last.
///
/// The borders are those of layers. A *text* is what the transport carries whole: the text of a WebSocket message, the
/// line of a stream without its end, the data of an event, the body of an answer or a POST. Texts are payload and
/// dialect; heads are heads; what is HTTP/2's own is that; all else is framing. So the cursor is dialect in `["msg",channel,cursor,data]`, and framing
/// in an event stream, whose own field `id` carries it. `docs/networks.md` shows it byte by byte.
///
/// A text counts in the phase in which its last byte comes. Where its first ones came in an earlier phase, they were
/// counted there, and framing takes up the difference; over a whole run there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ByteUses {
    /// Data of publications and echoes, as delivered or sent: JSON text.
    pub payload: u64,
    /// The rest of the texts: envelope, channel, cursor, the array around the reply to a poll, and messages of the
    /// dialect's own (cursors, gaps, errors, pongs, polls, answers to publications). Also lists of users.
    pub dialect: u64,
    /// What the transport puts around texts: heads, masks and control frames of a WebSocket, heads and ends of chunks,
    /// line ends, all of an event stream but the data, heartbeats without text. Also what came and was no whole
    /// message, and the bodies of refusals.
    pub framing: u64,
    /// Heads of HTTP requests and responses with the blank line, handshakes of WebSockets among them; with HTTP/2, as
    /// they are compressed.
    pub heads: u64,
    /// HTTP/2's own: heads of frames, and frames that are neither head nor body of a message.
    #[serde(default)]
    pub http2_frames: u64,
    /// TLS: records, handshakes.
    pub tls: u64,
}

impl ByteUses {
    /// All bytes.
    pub fn total(&self) -> u64 {
        self.payload + self.dialect + self.framing + self.heads + self.http2_frames + self.tls
    }
}

impl AddAssign for ByteUses {
    fn add_assign(&mut self, more: Self) {
        self.payload += more.payload;
        self.dialect += more.dialect;
        self.framing += more.framing;
        self.heads += more.heads;
        self.http2_frames += more.http2_frames;
        self.tls += more.tls;
    }
}

/// A worker's clock, which was steered after the coordinator's while the load ran.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerClock {
    /// Which worker, from 0.
    pub worker: u32,
    /// How far the coordinator's clock was ahead of that of the worker's machine, ns, when the worker joined.
    pub offset_ns: i64,
    /// What it has gained on it since, millionths.
    pub drift_ppm: f64,
    /// How far the steered clock may have been off, ns: the largest of any instant of the load and drain phases.
    pub error_ns: u64,
}

/// How far a latency may be off that begins on one worker's clock and ends on another's: by the sum of the two largest
/// errors. A worker that has the coordinator's own clock is not off. A page's error is against its worker's clock, and comes
/// on top. It follows from the clocks of all workers, which are kept one by one, so that merging stays in any order.
fn sum_of_errors(of_pages_ns: Option<u64>, clocks: &[WorkerClock], is_across: bool) -> Option<u64> {
    let mut errors: Vec<u64> = clocks.iter().map(|clock| clock.error_ns).collect();
    errors.sort_unstable();
    let of_workers = errors.iter().rev().take(2).copied().reduce(u64::saturating_add).filter(|_| is_across);
    [of_pages_ns, of_workers].into_iter().flatten().reduce(u64::saturating_add)
}

/// One delivery with the server's receipt mark: a row of a table of messages. Instants are ns after the load phase
/// began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MarkedDelivery {
    /// Who published: the client's number.
    pub publisher: u32,
    /// To which room, where clients are in rooms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<u32>,
    /// Which of the publisher's publications in the load phase, from 0; in rooms, which of the room's.
    pub sequence: u32,
    /// Who received: the client's number.
    pub receiver: u32,
    /// When it was to be sent.
    pub intended_ns: u64,
    /// When the server received it.
    pub receipt_ns: u64,
    /// When it was delivered.
    pub delivered_ns: u64,
}

/// When a phase began.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PhaseMark {
    /// Which.
    pub phase: Phase,
    /// Monotonic clock, ns.
    pub t_ns: u64,
}

/// One second of the run; the last may be shorter.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
pub struct Second {
    /// Publications sent.
    pub published: u64,
    /// Deliveries received.
    pub delivered: u64,
    /// Median delivery latency, ns; `None` where nothing was delivered.
    pub latency_median_ns: Option<u64>,
    /// 99th percentile of delivery latency, ns.
    pub latency_p99_ns: Option<u64>,
    /// Median latency of clients' own publications, ns; `None` where none came back.
    #[serde(default)]
    pub latency_own_median_ns: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::busy::LoadThread;
    use crate::messages::Message;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use pushlab_wire::pieces::{Cutter, PieceDecoder};

    /// A part in which nothing is as it is by default; numbers differ with the seed.
    fn part(seed: u64) -> Part {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut part = Part::default();
        let mut result = part.clone().into_result(false);
        // Every count and histogram there is, by way of the names that both have.
        let mut fields = serde_json::to_value(&part).unwrap();
        for (name, _) in result.counts() {
            if let Some(field) = fields.get_mut(name) {
                *field = rng.u64(1..1_000).into();
            }
        }
        for (name, _) in result.histograms() {
            let mut histogram = Histogram::new();
            (0..5).for_each(|_| histogram.record(rng.u64(1..1_000_000)));
            fields[name] = serde_json::to_value(&histogram).unwrap();
        }
        part = serde_json::from_value(fields).unwrap();
        part.bytes_whole.down.payload = rng.u64(1..100);
        part.bytes_load.up.tls = rng.u64(1..100);
        part.clock_error_ns = Some(rng.u64(1..100));
        let (worker, offset_ns, drift_ppm) = (seed as u32, rng.i64(-9..9), rng.f64());
        part.clocks = vec![WorkerClock { worker, offset_ns, drift_ppm, error_ns: rng.u64(1..100) }];
        part.busiest = Some(BusiestSecond {
            thread: LoadThread::Clients,
            number: rng.u32(..9),
            from_ns: 0,
            span_ns: rng.u64(1..9),
            cpu_ns: rng.u64(1..9),
        });
        part.deliveries = (0..5)
            .map(|sequence| MarkedDelivery {
                publisher: 1,
                room: None,
                sequence,
                receiver: rng.u32(..),
                intended_ns: 1,
                receipt_ns: 2,
                delivered_ns: rng.u64(1..50),
            })
            .collect();
        part.deliveries.sort_by_key(|delivery| delivery.delivered_ns);
        part.errors.add(&format_args!("error {}", seed % 2));
        part.refused.add(&"refused");
        part.fed = (0..rng.usize(1..4)).map(|_| rng.u64(1..9)).collect();
        part.expected_in_rooms = rng.u64(1..100);
        part
    }

    #[test]
    fn every_field_has_its_rule_and_the_order_of_merging_does_not_matter() {
        let merged = |order: [u64; 4]| {
            let mut whole = Part::default();
            order.into_iter().for_each(|seed| whole.merge(part(seed)));
            whole
        };
        // The order in which errors came is not kept, only how often each did.
        let fields_of = |mut whole: Part| {
            let errors = [&mut whole.errors, &mut whole.refused].map(|all| std::mem::take(all).into_sorted());
            (serde_json::to_value(whole).unwrap(), serde_json::to_value(errors).unwrap())
        };
        let whole = merged([1, 2, 3, 4]);
        let fields = serde_json::to_value(&whole).unwrap();
        let alone = [1, 2, 3, 4].map(|seed| serde_json::to_value(part(seed)).unwrap());
        for (name, value) in fields.as_object().unwrap() {
            if let Some(count) = value.as_u64().filter(|_| name != "clock_error_ns") {
                assert_eq!(count, alone.iter().map(|part| part[name].as_u64().unwrap()).sum::<u64>(), "{name}");
            }
            assert!(alone.iter().any(|part| part[name] != *value) || name == "ranks", "{name} was not merged");
        }
        assert_eq!(whole.clock_error_ns, [1, 2, 3, 4].map(|seed| part(seed).clock_error_ns).into_iter().max().unwrap());
        for order in [[4, 3, 2, 1], [2, 4, 1, 3]] {
            assert!(fields_of(merged(order)) == fields_of(whole.clone()), "{order:?}");
        }
        assert_eq!(
            (whole.latency.count(), whole.deliveries.len(), whole.errors.clone().into_sorted().len()),
            (20, 20, 2)
        );
    }

    #[test]
    fn what_two_clocks_measure_is_off_by_the_errors_of_the_worst_two() {
        let clock = |(worker, error_ns)| WorkerClock { worker, offset_ns: 0, drift_ppm: 0.0, error_ns };
        let of = |pages, errors: &[u64], is_across| {
            let clocks = (0..).zip(errors.iter().copied()).map(clock).collect();
            Part { clock_error_ns: pages, clocks, ..Part::default() }.into_result(is_across).clock_error_ns
        };
        assert_eq!((of(None, &[], true), of(Some(7), &[], false)), (None, Some(7)));
        assert_eq!((of(None, &[20, 50, 40], true), of(Some(7), &[20, 50], true)), (Some(90), Some(77)));
        // The other worker has the coordinator's clock; or what is measured are round trips.
        assert_eq!((of(None, &[20], true), of(None, &[20], false)), (Some(20), None));
    }

    /// What clients of one worker, or of all, measured of these deliveries: publication, latency and client.
    fn measured(deliveries: &[(u64, u64, u32)], is_own: impl Fn(u32) -> bool) -> Part {
        let mut part = Part { ranks: Ranks::new(40), ..Part::default() };
        for &(publication, latency_ns, client) in deliveries.iter().filter(|(_, _, client)| is_own(*client)) {
            part.delivered += 1;
            part.latency.record(latency_ns);
            part.ranks.reached(publication, latency_ns);
            part.bytes_whole.down.payload += latency_ns % 100;
            part.errors.add(&format_args!("error {}", latency_ns % 3));
            let second = BusiestSecond {
                thread: LoadThread::Clients,
                number: client,
                from_ns: 0,
                span_ns: 1_000_000_000,
                cpu_ns: latency_ns % 1_000_000_000,
            };
            part.busiest = BusiestSecond::busier(part.busiest, Some(second));
            part.deliveries.push(MarkedDelivery {
                publisher: 0,
                room: None,
                sequence: publication as u32,
                receiver: client,
                intended_ns: 0,
                receipt_ns: 0,
                delivered_ns: latency_ns,
            });
        }
        part
    }

    /// The way from a worker to its coordinator on another machine.
    fn sent(part: Part, piece_bytes_max: usize) -> Part {
        let message = serde_json::to_vec(&Message::Done { part: Box::new(part), seconds: 0 }).unwrap();
        let (mut cutter, mut decoder) = (Cutter::new(1), PieceDecoder::default());
        let pieces = cutter.cut(&message, piece_bytes_max).unwrap();
        let came = pieces.iter().find_map(|piece| decoder.take(piece).unwrap()).unwrap();
        match serde_json::from_slice(&came).unwrap() {
            Message::Done { part, .. } => *part,
            other => panic!("{other:?}"),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn what_workers_send_merges_to_what_one_would_have_measured(
            deliveries in vec((0..40_u64, 1..2_000_000_000_u64, 0..1_000_u32), 0..200),
            workers in 1..8_u32,
            seed in any::<u64>(),
            piece_bytes_max in 64..100_000_usize,
        ) {
            // Each part sees its deliveries in the order of time.
            let mut deliveries = deliveries;
            deliveries.sort_by_key(|(_, latency_ns, _)| *latency_ns);
            let mut parts: Vec<Part> =
                (0..workers).map(|worker| measured(&deliveries, |client| client % workers == worker)).collect();
            fastrand::Rng::with_seed(seed).shuffle(&mut parts);
            let [mut merged, mut alone] = [Part::default(), Part::default()];
            parts.into_iter().for_each(|part| merged.merge(sent(part, piece_bytes_max)));
            alone.merge(measured(&deliveries, |_| true));
            let errors = [&mut merged, &mut alone].map(|part| std::mem::take(&mut part.errors).into_sorted());
            let [merged, alone] = [merged, alone].map(|part| serde_json::to_value(part).unwrap());
            prop_assert_eq!(merged, alone);
            let [of_merged, of_alone] = errors.map(|errors| serde_json::to_value(errors).unwrap());
            prop_assert_eq!(of_merged, of_alone);
        }
    }

    #[test]
    fn of_too_many_deliveries_the_first_of_all_are_kept() {
        let rows = |from: u64| {
            let row = |at: u64| MarkedDelivery {
                publisher: 0,
                room: None,
                sequence: 0,
                receiver: 0,
                intended_ns: 0,
                receipt_ns: 0,
                delivered_ns: 2 * at + from,
            };
            Part { deliveries: (0..MAX_MARKED_DELIVERIES as u64).map(row).collect(), ..Part::default() }
        };
        let mut whole = rows(0);
        whole.merge(rows(1));
        let instants: Vec<u64> = whole.deliveries.iter().map(|delivery| delivery.delivered_ns).collect();
        assert_eq!(instants, (0..MAX_MARKED_DELIVERIES as u64).collect::<Vec<_>>());
    }
}
