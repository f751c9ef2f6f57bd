//! One way through the network, as a value: packets and the time come in, packets come out at their due instant.
//!
//! A packet waits in the queue, is sent at the rate, may be lost on the medium, and arrives after the delay. All of
//! that is decided when it is offered, from one seeded random number generator, so the same packets at the same
//! instants have the same fates and delays.
//!
//! ```
//! use pushlab_link::direction::{Direction, Fate};
//! use pushlab_link::profile::Way;
//!
//! let way = Way { delay_ms: 20.0, rate_kbit_s: Some(1000), ..Way::default() };
//! let mut direction = Direction::new(&way, 1);
//! assert_eq!(direction.offer(0, 1250, "a packet"), Fate::Accepted);
//! // 10,000 bits at a million bits a second, and the delay.
//! assert_eq!(direction.due_ns(), Some(30_000_000));
//! assert!(direction.take_due(29_999_999).is_none());
//! assert_eq!(direction.take_due(30_000_000).expect("it is due").packet, "a packet");
//! ```

use crate::loss::LossState;
use crate::profile::{Jitter, Way};
use fastrand::Rng;
use std::collections::VecDeque;

/// Most that packets between offer and due instant may hold, bytes, with [`PACKET_COST_BYTES`] for each in addition
/// to its own: the worst-case memory of one direction. A packet that finds no room meets [`Fate::QueueFull`]. At a
/// delay of 300 ms that happens from 7 Gbit/s on.
pub const MAX_HELD_BYTES: u64 = 256 << 20;
/// What a packet is reckoned to cost beside its bytes.
pub const PACKET_COST_BYTES: u64 = 128;

/// Which way a packet goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Heading {
    /// From the subject to the load.
    Down,
    /// From the load to the subject.
    Up,
}

/// What becomes of an offered packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It arrives, after those before it.
    Accepted,
    /// It arrives, held back so that later ones may overtake it.
    HeldBack,
    /// The medium lost it, after it used the rate.
    Lost,
    /// The queue had no room; it used nothing.
    QueueFull,
}

impl Fate {
    /// Whether the packet arrives.
    pub fn arrives(self) -> bool {
        matches!(self, Self::Accepted | Self::HeldBack)
    }
}

/// A packet that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due<P> {
    /// When it is to arrive, so that the caller knows how late it is.
    pub due_ns: u64,
    /// Its length as offered.
    pub bytes: u32,
    /// What was offered.
    pub packet: P,
}

/// One way through the network.
#[derive(Debug)]
pub struct Direction<P> {
    link: Transmitter,
    delay: Delay,
    loss: LossState,
    reorder_probability: f64,
    reorder_extra_ns: u64,
    /// Of what is decided for each packet: loss and order, so that they do not depend on when packets come.
    random: Rng,
    /// Of how the delay varies, which is drawn for each interval in which there are packets.
    delays: Rng,
    /// Due instant of the last packet, without what it is held back: none after it arrives earlier.
    last_due_ns: u64,
    /// Both ascend, as the extra delay is the same for all that are held back.
    in_order: VecDeque<Due<P>>,
    held_back: VecDeque<Due<P>>,
    held_bytes: u64,
}

impl<P> Direction<P> {
    /// An idle direction. `way` must have passed [`crate::profile::Profile::check`]; what did not is cut to what
    /// can be.
    pub fn new(way: &Way, seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let delays = random.fork();
        let (reorder_probability, extra_ms) = way.reorder.map_or((0.0, 0.0), |r| (r.probability, r.extra_ms));
        Self {
            link: Transmitter::new(way),
            delay: Delay::new(way),
            loss: LossState::new(way.loss),
            reorder_probability,
            reorder_extra_ns: nanoseconds(extra_ms),
            random,
            delays,
            last_due_ns: 0,
            in_order: VecDeque::new(),
            held_back: VecDeque::new(),
            held_bytes: 0,
        }
    }

    /// Takes a packet of `bytes` at `now_ns`, which never decreases from call to call. One that does not arrive is
    /// dropped.
    pub fn offer(&mut self, now_ns: u64, bytes: u32, packet: P) -> Fate {
        let cost = u64::from(bytes) + PACKET_COST_BYTES;
        if self.held_bytes + cost > MAX_HELD_BYTES {
            return Fate::QueueFull;
        }
        let Some(sent_ns) = self.link.send(now_ns, bytes) else { return Fate::QueueFull };
        if self.loss.next_lost(&mut self.random) {
            return Fate::Lost;
        }
        let arrival_ns = sent_ns.saturating_add(self.delay.at(sent_ns, &mut self.delays));
        let due_ns = arrival_ns.max(self.last_due_ns);
        self.last_due_ns = due_ns;
        self.held_bytes += cost;
        if self.reorder_probability > 0.0 && self.random.f64() < self.reorder_probability {
            let due_ns = due_ns.saturating_add(self.reorder_extra_ns);
            self.held_back.push_back(Due { due_ns, bytes, packet });
            return Fate::HeldBack;
        }
        self.in_order.push_back(Due { due_ns, bytes, packet });
        Fate::Accepted
    }

    /// When the next packet is due.
    pub fn due_ns(&self) -> Option<u64> {
        let fronts = [self.in_order.front(), self.held_back.front()];
        fronts.into_iter().flatten().map(|due| due.due_ns).min()
    }

    /// The next packet that is due at `now_ns` or before.
    pub fn take_due(&mut self, now_ns: u64) -> Option<Due<P>> {
        let due_ns = self.due_ns().filter(|&due_ns| due_ns <= now_ns)?;
        let in_order = self.in_order.front().is_some_and(|due| due.due_ns == due_ns);
        let due = if in_order { self.in_order.pop_front() } else { self.held_back.pop_front() }?;
        self.held_bytes -= u64::from(due.bytes) + PACKET_COST_BYTES;
        Some(due)
    }

    /// Packets and bytes that wait for their transmission to begin.
    pub fn waiting(&mut self, now_ns: u64) -> (usize, u64) {
        self.link.settle(now_ns);
        (self.link.waiting.len(), self.link.waiting_bytes)
    }

    /// Packets between offer and due instant, those that wait included.
    pub fn len(&self) -> usize {
        self.in_order.len() + self.held_back.len()
    }

    /// Whether no packet is between offer and due instant.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The queue and the rate. Instants are exact: what a nanosecond does not hold is carried as a fraction with the
/// rate as its denominator, so that no rounding adds up.
#[derive(Debug)]
struct Transmitter {
    /// `None`: packets take no time.
    rate_kbit_s: Option<u64>,
    queue_packets: usize,
    queue_bytes: u64,
    /// End of the last transmission: nanoseconds, and a rest in units of 1 ns / rate.
    free_ns: u64,
    free_rest: u64,
    /// When the transmission of each waiting packet begins, and its length.
    waiting: VecDeque<(u64, u32)>,
    waiting_bytes: u64,
}

/// A byte at 1 kbit/s, in nanoseconds.
const BYTE_NS_AT_1_KBIT_S: u64 = 8_000_000;

impl Transmitter {
    fn new(way: &Way) -> Self {
        Self {
            rate_kbit_s: way.rate_kbit_s.map(|rate| rate.max(1)),
            queue_packets: way.queue_packets as usize,
            queue_bytes: way.queue_bytes.unwrap_or(u64::MAX),
            free_ns: 0,
            free_rest: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
        }
    }

    /// Forgets the packets whose transmission has begun.
    fn settle(&mut self, now_ns: u64) {
        while let Some((_, bytes)) = self.waiting.pop_front_if(|(begin_ns, _)| *begin_ns <= now_ns) {
            self.waiting_bytes -= u64::from(bytes);
        }
    }

    /// When the packet's last bit is sent; `None` if the queue is full.
    fn send(&mut self, now_ns: u64, bytes: u32) -> Option<u64> {
        let Some(rate) = self.rate_kbit_s else { return Some(now_ns) };
        self.settle(now_ns);
        let free_ns = self.free_ns + u64::from(self.free_rest > 0);
        if free_ns > now_ns {
            let queued = self.waiting_bytes + u64::from(bytes);
            if self.waiting.len() >= self.queue_packets || queued > self.queue_bytes {
                return None;
            }
            self.waiting.push_back((free_ns, bytes));
            self.waiting_bytes = queued;
        } else {
            (self.free_ns, self.free_rest) = (now_ns, 0);
        }
        let rest = self.free_rest + u64::from(bytes) * BYTE_NS_AT_1_KBIT_S;
        self.free_ns = self.free_ns.saturating_add(rest / rate);
        self.free_rest = rest % rate;
        Some(self.free_ns + u64::from(self.free_rest > 0))
    }
}

/// Delay and its variation.
#[derive(Debug)]
struct Delay {
    delay_ns: u64,
    jitter_ns: f64,
    jitter: Jitter,
    interval_ns: u64,
    /// Which interval the draw holds for, and the delay it gave.
    drawn: Option<(u64, u64)>,
}

impl Delay {
    fn new(way: &Way) -> Self {
        Self {
            delay_ns: nanoseconds(way.delay_ms),
            jitter_ns: nanoseconds(way.jitter_ms) as f64,
            jitter: way.jitter,
            interval_ns: nanoseconds(way.jitter_interval_ms).max(1),
            drawn: None,
        }
    }

    /// The delay of a packet sent at `sent_ns`.
    fn at(&mut self, sent_ns: u64, random: &mut Rng) -> u64 {
        if self.jitter_ns == 0.0 {
            return self.delay_ns;
        }
        let interval = sent_ns / self.interval_ns;
        match self.drawn {
            Some((of, delay_ns)) if of == interval => delay_ns,
            _ => {
                let delay_ns = self.draw(random);
                self.drawn = Some((interval, delay_ns));
                delay_ns
            }
        }
    }

    fn draw(&self, random: &mut Rng) -> u64 {
        let units = match self.jitter {
            Jitter::Uniform => 2.0 * random.f64() - 1.0,
            Jitter::Normal => normal(random).clamp(-4.0, 4.0),
            Jitter::Exponential => (-(1.0 - random.f64()).ln()).min(10.0),
        };
        let delay = self.delay_ns as f64 + units * self.jitter_ns;
        delay.round().max(0.0) as u64
    }
}

/// A standard normal number (Box and Muller, A Note on the Generation of Random Normal Deviates, 1958).
fn normal(random: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.f64()).cos()
}

/// Negative and absurd numbers give 0 and the largest; a checked profile has none.
fn nanoseconds(ms: f64) -> u64 {
    (ms * 1e6).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::Loss;
    use crate::profile::Reorder;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn drain(direction: &mut Direction<usize>) -> Vec<Due<usize>> {
        std::iter::from_fn(|| direction.take_due(u64::MAX)).collect()
    }

    /// Offers packets of these gaps (ns) and lengths, each numbered; their instants and fates.
    fn offer_all(direction: &mut Direction<usize>, packets: &[(u64, u32)]) -> Vec<(u64, Fate)> {
        let mut now_ns = 0;
        let mut offer = |(number, &(gap_ns, bytes)): (usize, &(u64, u32))| {
            now_ns += gap_ns;
            (now_ns, direction.offer(now_ns, bytes, number))
        };
        packets.iter().enumerate().map(&mut offer).collect()
    }

    fn traffic() -> impl Strategy<Value = Vec<(u64, u32)>> {
        // Bursts and pauses.
        let gap_ns = prop_oneof![Just(0), 0..100_000_u64, 0..50 * MS];
        prop::collection::vec((gap_ns, 20..=1500_u32), 1..300)
    }

    fn jitter() -> impl Strategy<Value = Jitter> {
        prop_oneof![Just(Jitter::Uniform), Just(Jitter::Normal), Just(Jitter::Exponential)]
    }

    proptest! {
        #[test]
        fn packets_come_out_at_the_rate_to_the_nanosecond(packets in traffic(), rate in 1..10_000_000_u64) {
            let way = Way { rate_kbit_s: Some(rate), ..Way::default() };
            let mut direction = Direction::new(&way, 1);
            let offered = offer_all(&mut direction, &packets);
            // In units of 1 ns / rate nothing is rounded.
            let (mut free, scale) = (0_u128, u128::from(rate));
            for due in drain(&mut direction) {
                let (now_ns, bytes) = (u128::from(offered[due.packet].0), u128::from(packets[due.packet].1));
                free = free.max(now_ns * scale) + bytes * 8_000_000;
                prop_assert_eq!(u128::from(due.due_ns), free.div_ceil(scale));
            }
        }

        #[test]
        fn order_is_kept_whatever_the_jitter(
            packets in traffic(), jitter in jitter(), rate_kbit_s in prop::option::of(100..100_000_u64), seed: u64,
        ) {
            let way = Way { delay_ms: 10.0, jitter_ms: 9.0, jitter, rate_kbit_s, ..Way::default() };
            let mut direction = Direction::new(&way, seed);
            offer_all(&mut direction, &packets);
            let dues = drain(&mut direction);
            prop_assert!(dues.is_sorted_by(|a, b| a.packet < b.packet && a.due_ns <= b.due_ns));
        }

        #[test]
        fn delay_stays_within_its_bounds(packets in traffic(), jitter in jitter(), seed: u64) {
            let way = Way { delay_ms: 10.0, jitter_ms: 2.0, jitter, ..Way::default() };
            let (least, most) = match jitter {
                Jitter::Uniform => (8 * MS, 12 * MS),
                Jitter::Normal => (2 * MS, 18 * MS),
                Jitter::Exponential => (10 * MS, 30 * MS),
            };
            let mut direction = Direction::new(&way, seed);
            let offered = offer_all(&mut direction, &packets);
            for due in drain(&mut direction) {
                let delay_ns = due.due_ns - offered[due.packet].0;
                prop_assert!((least..=most).contains(&delay_ns), "{delay_ns}");
            }
        }

        #[test]
        fn the_queue_stays_within_its_limits(
            packets in traffic(), queue_packets in 1..20_u32, queue_bytes in prop::option::of(1500..20_000_u64),
        ) {
            let way = Way { rate_kbit_s: Some(500), queue_packets, queue_bytes, ..Way::default() };
            let mut direction = Direction::new(&way, 1);
            let mut now_ns = 0;
            for (number, &(gap_ns, bytes)) in packets.iter().enumerate() {
                now_ns += gap_ns;
                let before = direction.waiting(now_ns);
                let fate = direction.offer(now_ns, bytes, number);
                let (waiting, waiting_bytes) = direction.waiting(now_ns);
                prop_assert!(waiting <= queue_packets as usize && waiting_bytes <= queue_bytes.unwrap_or(u64::MAX));
                let full = before.0 == queue_packets as usize
                    || queue_bytes.is_some_and(|most| before.1 + u64::from(bytes) > most);
                prop_assert!(fate == Fate::Accepted || full, "{fate:?} with {before:?} waiting");
                prop_assert!(fate == Fate::Accepted || (waiting, waiting_bytes) == before);
            }
        }

        #[test]
        fn what_is_accepted_comes_out_once(packets in traffic(), seed: u64) {
            let mut direction = Direction::new(&disturbed(), seed);
            let offered = offer_all(&mut direction, &packets);
            let arrives = |&number: &usize| offered[number].1.arrives();
            let expected: Vec<usize> = (0..packets.len()).filter(arrives).collect();
            prop_assert_eq!(direction.len(), expected.len());
            let dues = drain(&mut direction);
            prop_assert!(dues.is_sorted_by_key(|due| due.due_ns));
            let mut found: Vec<usize> = dues.iter().map(|due| due.packet).collect();
            found.sort_unstable();
            prop_assert_eq!(found, expected);
            prop_assert!(direction.is_empty() && direction.held_bytes == 0);
        }

        #[test]
        fn the_same_seed_gives_the_same_fates_and_instants(packets in traffic(), seed: u64) {
            let run = || {
                let mut direction = Direction::new(&disturbed(), seed);
                (offer_all(&mut direction, &packets), drain(&mut direction))
            };
            prop_assert_eq!(run(), run());
        }
    }

    fn disturbed() -> Way {
        Way {
            delay_ms: 10.0,
            jitter_ms: 5.0,
            jitter: Jitter::Normal,
            rate_kbit_s: Some(5000),
            queue_packets: 40,
            loss: Some(Loss::Bursty { p_good_to_bad: 0.1, p_bad_to_good: 0.4, loss_good: 0.01, loss_bad: 0.9 }),
            reorder: Some(Reorder { probability: 0.1, extra_ms: 3.0 }),
            ..Way::default()
        }
    }

    #[test]
    fn another_seed_gives_other_fates() {
        let fates = |seed| offer_all(&mut Direction::new(&disturbed(), seed), &[(10 * MS, 100); 200]);
        assert_ne!(fates(1), fates(2));
    }

    #[test]
    fn a_day_at_an_odd_rate_does_not_drift() {
        // 1500 bytes at 7 kbit/s take 1714285714 2/7 ns: rounding would add up to 14 µs.
        let way = Way { rate_kbit_s: Some(7), queue_packets: 60_000, ..Way::default() };
        let mut direction = Direction::new(&way, 1);
        let packets = 50_400;
        for number in 0..packets {
            assert_eq!(direction.offer(0, 1500, number), Fate::Accepted);
        }
        let last = drain(&mut direction).pop().expect("all were accepted");
        assert_eq!(last.due_ns, packets as u64 * 12_000_000_000 / 7);
    }

    #[test]
    fn delays_are_distributed_as_said() {
        let draws = 20_000;
        for (seed, jitter, mean_ms, deviation_ms) in [
            (1, Jitter::Uniform, 20.0, 4.0 / 3.0_f64.sqrt()),
            (2, Jitter::Normal, 20.0, 4.0),
            (3, Jitter::Exponential, 24.0, 4.0),
        ] {
            let way = Way { delay_ms: 20.0, jitter_ms: 4.0, jitter, ..Way::default() };
            let mut direction = Direction::new(&way, seed);
            // Far enough apart that none waits for another, and each has a draw of its own.
            let offered = offer_all(&mut direction, &vec![(100 * MS, 100); draws]);
            let delay_ms = |due: Due<usize>| (due.due_ns - offered[due.packet].0) as f64 / 1e6;
            let delays: Vec<f64> = drain(&mut direction).into_iter().map(delay_ms).collect();
            let mean = delays.iter().sum::<f64>() / draws as f64;
            let variance = delays.iter().map(|delay| (delay - mean).powi(2)).sum::<f64>() / draws as f64;
            assert!((mean - mean_ms).abs() < 5.0 * deviation_ms / (draws as f64).sqrt(), "{jitter:?}: {mean}");
            assert!((variance.sqrt() / deviation_ms - 1.0).abs() < 0.05, "{jitter:?}: {}", variance.sqrt());
        }
    }

    #[test]
    fn busy_traffic_is_not_delayed_more_than_moderate() {
        let mean_ms = |gap_ns: u64| {
            let way = Way { delay_ms: 20.0, jitter_ms: 5.0, jitter: Jitter::Exponential, ..Way::default() };
            let mut direction = Direction::new(&way, 4);
            let packets = (20_000 * MS / gap_ns) as usize;
            let offered = offer_all(&mut direction, &vec![(gap_ns, 100); packets]);
            let delay = |due: Due<usize>| (due.due_ns - offered[due.packet].0) as f64 / 1e6;
            drain(&mut direction).into_iter().map(delay).sum::<f64>() / packets as f64
        };
        let (moderate, busy) = (mean_ms(5 * MS), mean_ms(MS / 50));
        assert!((busy / moderate - 1.0).abs() < 0.05, "{busy} and {moderate}");
    }

    #[test]
    fn losses_use_the_rate_and_have_their_share() {
        let loss = Some(Loss::Independent { probability: 0.1 });
        let way = Way { rate_kbit_s: Some(8000), queue_packets: 100_000, loss, ..Way::default() };
        let mut direction = Direction::new(&way, 5);
        let fates = offer_all(&mut direction, &[(0, 1000); 50_000]);
        let lost = fates.iter().filter(|(_, fate)| *fate == Fate::Lost).count() as f64;
        // Five standard deviations: sqrt(50,000 × 0.1 × 0.9) is 67.
        assert!((lost - 5000.0).abs() < 335.0, "{lost}");
        let last = drain(&mut direction).pop().expect("most arrive");
        assert_eq!(last.due_ns, (last.packet as u64 + 1) * MS);
    }

    #[test]
    fn later_packets_overtake_those_held_back() {
        let way = Way { delay_ms: 5.0, reorder: Some(Reorder { probability: 0.2, extra_ms: 2.5 }), ..Way::default() };
        let mut direction = Direction::new(&way, 6);
        let offered = offer_all(&mut direction, &[(MS, 100); 1000]);
        let dues = drain(&mut direction);
        for due in &dues {
            let held = offered[due.packet].1 == Fate::HeldBack;
            assert_eq!(due.due_ns - offered[due.packet].0, if held { 7_500_000 } else { 5 * MS });
        }
        let overtaken = dues.windows(2).filter(|pair| pair[0].packet > pair[1].packet).count();
        assert!(overtaken > 100, "{overtaken}");
    }

    #[test]
    fn what_is_held_is_bounded() {
        let way = Way { delay_ms: 10_000.0, ..Way::default() };
        let mut direction = Direction::new(&way, 7);
        let most = (MAX_HELD_BYTES / (u64::from(u16::MAX) + PACKET_COST_BYTES)) as usize;
        for number in 0..most {
            assert_eq!(direction.offer(0, u32::from(u16::MAX), number), Fate::Accepted);
        }
        assert_eq!(direction.offer(0, u32::from(u16::MAX), most), Fate::QueueFull);
        direction.take_due(u64::MAX).expect("it is due");
        assert_eq!(direction.offer(0, u32::from(u16::MAX), most), Fate::Accepted);
    }
}
