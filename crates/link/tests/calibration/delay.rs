use std::thread;
use std::time::{Duration, Instant};

use pushlab_link::profile::{Jitter, Profile, Way, profiles};

use crate::traffic::{HEADER_BYTES, network, pair, profile, quantile, receive};

const PINGS: u32 = 250;
const INTERVAL: Duration = Duration::from_millis(14);
const PAYLOAD_BYTES: usize = 36;

/// Round trips, ms, of pings that are sent at a steady interval.
fn ping(profile: Profile, seed: u64) -> Vec<f64> {
    let network = network(profile, seed);
    let (subject, load) = pair(&network);
    let (sent, arrived) = thread::scope(|scope| {
        scope.spawn(|| {
            let mut datagram = [0; PAYLOAD_BYTES];
            while subject.recv(&mut datagram).is_ok() {
                subject.send(&datagram).unwrap();
            }
        });
        let receiver = scope.spawn(|| receive(&load));
        let (start, mut sent) = (Instant::now(), Vec::new());
        for number in 0..PINGS {
            thread::sleep((start + INTERVAL * number).saturating_duration_since(Instant::now()));
            let mut datagram = [0; PAYLOAD_BYTES];
            datagram[..4].copy_from_slice(&number.to_le_bytes());
            sent.push(Instant::now());
            load.send(&datagram).unwrap();
        }
        (sent, receiver.join().unwrap())
    });
    arrived.iter().map(|&(number, at)| (at - sent[number as usize]).as_secs_f64() * 1e3).collect()
}

/// Delay and transmission, ms, of a ping one way.
fn fixed_ms(way: &Way) -> f64 {
    let bits = (PAYLOAD_BYTES + HEADER_BYTES) as f64 * 8.0;
    way.delay_ms + way.rate_kbit_s.map_or(0.0, |rate| bits / rate as f64)
}

/// What varies is left out here: it has a test of its own. By the fastest tenth: a busy machine holds up the rest.
pub fn each_profile_has_its_delay() {
    let measure = |name: &str| {
        let mut profile = profile(name);
        (profile.down.jitter_ms, profile.up.jitter_ms) = (0.0, 0.0);
        let expected = fixed_ms(&profile.down) + fixed_ms(&profile.up);
        let found = quantile(ping(profile, 1), 0.1);
        println!("  {name}: {found:.3} ms, set {expected:.3} ms");
        assert!((found - expected).abs() <= (0.05 * expected).max(0.3), "{name}: {found} ms instead of {expected} ms");
    };
    thread::scope(|scope| {
        profiles().iter().for_each(|(name, _)| drop(scope.spawn(|| measure(name))));
    });
}

/// Against the distribution itself, by the largest distance between both (Kolmogorov and Smirnov). A busy machine makes
/// pings late but never early, so pings without jitter run alongside, and the share of them that is late is allowed here too.
pub fn jitter_has_its_distribution() {
    let late_share = || {
        let down = Way { delay_ms: 20.0, ..Way::default() };
        let profile = Profile { down, up: Way::default(), ..profile("local") };
        let late = ping(profile, 7).into_iter().filter(|ms| *ms > 20.4).count();
        late as f64 / f64::from(PINGS)
    };
    let distances = |jitter, cumulative: fn(f64) -> f64| {
        // One draw for each ping, and none that could overtake the one before it by more than a rare chance.
        let down = Way { delay_ms: 20.0, jitter_ms: 4.0, jitter, jitter_interval_ms: 10.0, ..Way::default() };
        let profile = Profile { down, up: Way::default(), ..profile("local") };
        let mut units: Vec<f64> = ping(profile, 7).iter().map(|ms| (ms - 20.0) / 4.0).collect();
        units.sort_by(f64::total_cmp);
        let count = units.len() as f64;
        let places = || units.iter().enumerate().map(|(i, &unit)| (i as f64, cumulative(unit)));
        let late = places().map(|(i, expected)| expected - i / count).fold(0.0, f64::max);
        let early = places().map(|(i, expected)| (i + 1.0) / count - expected).fold(0.0, f64::max);
        // What chance exceeds once in 1000 times, and what the link's own 0.2 ms move a distribution this wide.
        (jitter, early, late, 1.95 / count.sqrt() + 0.05)
    };
    let (late_share, measured) = thread::scope(|scope| {
        let control = scope.spawn(late_share);
        let uniform = scope.spawn(|| distances(Jitter::Uniform, |unit| ((unit + 1.0) / 2.0).clamp(0.0, 1.0)));
        let exponential =
            scope.spawn(|| distances(Jitter::Exponential, |unit| if unit > 0.0 { 1.0 - (-unit).exp() } else { 0.0 }));
        (control.join().unwrap(), [uniform, exponential].map(|one| one.join().unwrap()))
    });
    for (jitter, early, late, bound) in measured {
        println!(
            "  {jitter:?}: early by {early:.3}, late by {late:.3}, bound {bound:.3}; {late_share:.3} of others are late"
        );
        assert!(early < bound, "{jitter:?}: {early} earlier than what was set");
        assert!(late < bound + late_share, "{jitter:?}: {late} later than what was set, where {late_share} are late");
    }
}
