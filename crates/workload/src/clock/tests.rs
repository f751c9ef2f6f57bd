use super::*;
use crate::result::WorkerClock;
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// A worker's raw clock, by the true time, which is the coordinator's.
struct RawClock {
    /// From when on, ns, what it shows then, ns, and what it gains, millionths.
    pieces: Vec<(u64, f64, f64)>,
}

impl RawClock {
    fn new(behind_ns: f64, drift_ppm: f64) -> Self {
        Self { pieces: vec![(BEGIN, BEGIN as f64 - behind_ns, -drift_ppm)] }
    }

    fn at(&self, true_ns: u64) -> u64 {
        let (from_ns, shows_ns, gains) = self.pieces.iter().rev().find(|piece| piece.0 <= true_ns).unwrap();
        let since = (true_ns - from_ns) as f64;
        (shows_ns + since + since * gains / 1e6).round() as u64
    }

    /// It jumps, and gains differently, from then on.
    fn change(&mut self, true_ns: u64, by_ns: f64, gains: f64) {
        self.pieces.push((true_ns, self.at(true_ns) as f64 + by_ns, gains));
    }
}

/// When simulations begin: doubles have all of its nanoseconds.
const BEGIN: u64 = 5_000 * SECOND;

/// A network both ways of which are shorter than this seldom, and longer often, ns.
#[derive(Debug, Clone, Copy)]
struct Network {
    there_ns: u64,
    back_ns: u64,
    /// Mean of what queues add, ns; one in ten waits twenty times as long.
    queue_ns: f64,
    lost: f64,
}

impl Network {
    fn delay(self, least_ns: u64, random: &mut fastrand::Rng) -> u64 {
        let tail = if random.f64() < 0.1 { 20.0 } else { 1.0 };
        least_ns + (-random.f64().max(1e-12).ln() * self.queue_ns * tail) as u64
    }

    /// A round trip that begins then, and when it is over; nothing is known of one that is lost.
    fn round_trip(self, true_ns: u64, raw: &RawClock, random: &mut fastrand::Rng) -> (Option<RoundTrip>, u64) {
        let received_ns = true_ns + self.delay(self.there_ns, random);
        let answered_ns = received_ns + random.u64(..50_000);
        let came_ns = answered_ns + self.delay(self.back_ns, random);
        let read = Reading { received_ns, answered_ns };
        let trip = RoundTrip { sent_ns: raw.at(true_ns), read, came_ns: raw.at(came_ns) };
        (Some(trip).filter(|_| random.f64() >= self.lost), came_ns)
    }
}

/// What a worker's clock shows, as `os::clock` would have it.
#[derive(Default)]
struct Shown {
    from_ns: u64,
    to_ns: u64,
    rate: f64,
}

impl Shown {
    fn at(&self, raw_ns: u64) -> u64 {
        let since_ns = difference(raw_ns, self.from_ns);
        self.to_ns.saturating_add_signed(since_ns + (since_ns as f64 * self.rate) as i64)
    }

    fn adjust(&mut self, adjustment: Adjustment, raw_ns: u64) {
        *self = match adjustment {
            Adjustment::Set { raw_ns, ns, rate } => Self { from_ns: raw_ns, to_ns: ns, rate },
            Adjustment::Slew { rate } => Self { from_ns: raw_ns, to_ns: self.at(raw_ns), rate },
        };
    }
}

/// Steers a clock for so long; `see` is told the true time, what the clock shows then, and whether it is set.
fn steer(
    raw: &RawClock,
    network: Network,
    seconds: u64,
    seed: u64,
    mut see: impl FnMut(u64, u64, &Steering),
) -> Result<(WorkerClock, u64), Uneven> {
    let (mut random, mut steering, mut shown) = (fastrand::Rng::with_seed(seed), Steering::new(seed), Shown::default());
    let mut now = BEGIN;
    while now < BEGIN + seconds * SECOND {
        let wait_ns = steering.wait_ns();
        if steering.error_ns().is_some() {
            // A moment between two adjustments.
            let then = now + random.u64(..wait_ns);
            see(then, shown.at(raw.at(then)), &steering);
        }
        let (trip, came) = network.round_trip(now + wait_ns, raw, &mut random);
        now = came;
        let Some(trip) = trip else { continue };
        let was_set = steering.error_ns().is_some();
        if let Some(adjustment) = steering.heard(trip, shown.at(trip.came_ns))? {
            shown.adjust(adjustment, raw.at(now));
            if !was_set {
                steering.begin();
            }
        }
    }
    Ok((steering.of_worker(0, raw.at(now), shown.at(raw.at(now))), now))
}

const LAN: Network = Network { there_ns: 50_000, back_ns: 50_000, queue_ns: 20_000.0, lost: 0.0 };

proptest! {
    /// Whatever the network does, the truth lies within the stated error: it follows from causes alone.
    #[test]
    fn the_error_holds_at_every_instant(
        seed in any::<u64>(),
        behind_ns in -4e12..4e12f64,
        drift_ppm in -200.0..200.0f64,
        (there_ns, back_ns) in (1_000u64..5 * MS, 1_000u64..5 * MS),
        queue_ns in 0.0..5e6f64,
        lost in 0.0..0.5f64,
    ) {
        let raw = RawClock::new(behind_ns, drift_ppm);
        let network = Network { there_ns, back_ns, queue_ns, lost };
        let (mut random, mut estimator) = (fastrand::Rng::with_seed(seed), Estimator::default());
        prop_assert_eq!(estimator.difference_at(0), None);
        let mut now = BEGIN;
        for _ in 0..120 {
            let (trip, came) = network.round_trip(now, &raw, &mut random);
            now = came + random.u64(..200 * MS);
            let Some(trip) = trip else { continue };
            prop_assert_eq!(estimator.heard(trip), Ok(()));
            for true_ns in [came, now, now + 3 * SECOND] {
                let known = estimator.difference_at(raw.at(true_ns)).unwrap();
                let truth = difference(true_ns, raw.at(true_ns));
                prop_assert!(known.offset_ns.abs_diff(truth) <= known.error_ns, "{known:?} {truth}");
            }
            let known = estimator.difference_at(trip.came_ns).unwrap();
            let length_ns = trip.came_ns - trip.sent_ns;
            prop_assert!(known.error_ns <= length_ns / 2 + length_ns / 1_000 + 20_000, "worse than one round trip");
        }
    }

    /// A steered clock stays within its error of the coordinator's, never goes back, and says how it differs from its own.
    #[test]
    fn a_clock_is_steered_to_the_coordinators(
        seed in any::<u64>(), behind_ms in -9_000.0..9_000.0f64, drift_ppm in -200.0..200.0f64, queue_ns in 0.0..2e5f64,
    ) {
        let raw = RawClock::new(behind_ms * 1e6, drift_ppm);
        let (mut last, mut largest) = (0, 0);
        let (clock, now) = steer(&raw, Network { queue_ns, lost: 0.2, ..LAN }, 10, seed, |true_ns, shown_ns, _| {
            assert!(shown_ns >= last, "it went back");
            last = shown_ns;
            largest = largest.max(true_ns.abs_diff(shown_ns));
        }).unwrap();
        prop_assert!(largest <= clock.error_ns, "{largest} {clock:?}");
        prop_assert!(clock.offset_ns.abs_diff((behind_ms * 1e6) as i64) <= 10 * MS, "{clock:?}");
        let elapsed = (now - BEGIN) as f64 / S;
        let sure_ppm = 2.0 * clock.error_ns as f64 / PPM / (elapsed - 2.0);
        prop_assert!((clock.drift_ppm - drift_ppm).abs() <= sure_ppm, "{clock:?} {drift_ppm}");
    }

    /// What NTP and a warm processor do to a clock is no fault, and the error covers it.
    #[test]
    fn small_changes_of_rate_are_followed(seed in any::<u64>()) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut raw = RawClock::new(5e6, 50.0);
        let mut gains = -50.0;
        for half_second in 2..60 {
            gains += 5.0 * (random.f64() - 0.5);
            if half_second % 16 == 0 {
                gains += if random.bool() { 20.0 } else { -20.0 };
            }
            raw.change(BEGIN + half_second * SECOND / 2, 0.0, gains);
        }
        let mut largest = 0;
        let found = steer(&raw, LAN, 30, seed, |true_ns, shown_ns, _| {
            largest = largest.max(true_ns.abs_diff(shown_ns));
        });
        let (clock, _) = found.unwrap();
        prop_assert!(largest <= clock.error_ns, "{largest} {clock:?}");
    }
}

#[test]
fn a_minute_on_a_lan_finds_offset_and_drift() {
    let network = Network { there_ns: 50_000, back_ns: 50_000, queue_ns: 25_000.0, lost: 0.0 };
    for seed in 0..8 {
        let (clock, _) = steer(&RawClock::new(5e6, 50.0), network, 60, seed, |_, _, _| {}).unwrap();
        assert!(clock.error_ns <= 200_000, "{clock:?}");
        // It was set after a second, and had drifted by 50 µs.
        assert!(clock.offset_ns.abs_diff(5_050_000) <= 100_000 && (clock.drift_ppm - 50.0).abs() <= 4.0, "{clock:?}");
    }
}

/// What is found when the raw clock changes after 20 s.
fn found(by_ns: f64, gains: f64, network: Network, seed: u64) -> Result<(WorkerClock, u64), Uneven> {
    let mut raw = RawClock::new(5e6, 50.0);
    raw.change(BEGIN + 20 * SECOND, by_ns, gains);
    steer(&raw, network, 40, seed, |_, _, _| {})
}

#[test]
fn a_clock_that_steps_or_changes_its_rate_is_found_and_named() {
    for seed in 0..20 {
        for by_ns in [2e7, -2e7, 3e9] {
            let Err(Uneven::Stepped { by_ns: found_ns }) = found(by_ns, -50.0, LAN, seed) else {
                panic!("a step of {by_ns} ns was not found");
            };
            let by_ns = by_ns.abs() as u64;
            assert!(found_ns <= by_ns && found_ns >= by_ns / 2, "{found_ns} of {by_ns}");
        }
        // Of a small one it may be that a slow round trip shows it first.
        assert!([3e5, -3e5].iter().all(|by_ns| found(*by_ns, -50.0, LAN, seed).is_err()));
        for gains in [150.0, -250.0] {
            assert_eq!(found(0.0, gains, LAN, seed).unwrap_err(), Uneven::Drifting, "{gains}");
        }
        assert!(found(0.0, -50.0, LAN, seed).is_ok());
        // A drift that no clock has that is in order.
        assert!(steer(&RawClock::new(0.0, 700.0), LAN, 10, seed, |_, _, _| {}).is_err());
    }
}

#[test]
fn what_cannot_have_been_tells_nothing() {
    let trip = |sent_ns, received_ns, answered_ns, came_ns| RoundTrip {
        sent_ns,
        read: Reading { received_ns, answered_ns },
        came_ns,
    };
    let mut estimator = Estimator::default();
    for impossible in [trip(5, 9, 9, 4), trip(5, 9, 8, 6), trip(u64::MAX, 0, u64::MAX, 0)] {
        assert_eq!((estimator.heard(impossible), estimator.round_trips()), (Ok(()), 0));
    }
    assert_eq!(estimator.heard(trip(100, 50_000, 50_010, 300)), Ok(()));
    assert_eq!((estimator.heard(trip(200, 60_000, 60_000, 400)), estimator.round_trips()), (Ok(()), 1), "an older one");
    assert!(estimator.heard(trip(1_000, u64::MAX, u64::MAX, 2_000)).is_err());
    assert_eq!((estimator.difference_at(3_000), estimator.round_trips()), (None, 0), "a new estimate begins");
    assert_eq!(estimator.heard(trip(0, 0, u64::MAX, u64::MAX)), Ok(()));
    let _ = (estimator.difference_at(0), estimator.difference_at(u64::MAX));
    for _ in 0..MAX_ROUND_TRIPS + 9 {
        let _ = estimator.heard(trip(u64::MAX, 7, 7, u64::MAX));
    }
    assert!(estimator.round_trips() <= MAX_ROUND_TRIPS);
}
