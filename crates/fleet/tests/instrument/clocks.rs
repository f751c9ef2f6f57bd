//! The clock of a process steered after another's, over a socket.

use pushlab_fleet::clock::{Answer, ClockError, ClockPort, ClockSocket, SteeredClock};
use pushlab_os::clock::{self, monotonic_ns};
use std::net::Ipv4Addr;
use std::process::Command;
use std::time::{Duration, Instant};

const MS: u64 = 1_000_000;
/// Set for the same test in a process of its own, whose clock is a false one: where the coordinator is asked.
const COORDINATOR: &str = "PUSHLAB_TEST_COORDINATOR";
/// How far the worker's clock is from the coordinator's, ns, and what it gains on it.
const OFFSET_NS: i64 = -5_000_000;
const GAINS_PPM: f64 = -50.0;
/// How long the clock is watched.
const WATCHED: Duration = Duration::from_secs(3);

#[test]
fn a_worker_whose_clock_is_wrong_has_the_coordinators() {
    if let Ok(coordinator) = std::env::var(COORDINATOR) {
        return follow(&coordinator);
    }
    let port = ClockPort::open(Ipv4Addr::LOCALHOST.into()).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    let test = "clocks::a_worker_whose_clock_is_wrong_has_the_coordinators";
    child.args(["--exact", test, "--nocapture"]).env(COORDINATOR, port.address().to_string());
    let output = child.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Asks over a socket.
fn asker(coordinator: &str) -> impl FnMut(Duration) -> Option<Answer> + Send + 'static {
    let mut socket = ClockSocket::open(coordinator.parse().unwrap()).unwrap();
    move |within| socket.ask(within)
}

/// In a process of its own: the machine's clock is the coordinator's, and the process's is not, until it is steered.
fn follow(coordinator: &str) {
    let (before_ns, before) = (monotonic_ns(), Instant::now());
    clock::falsify(OFFSET_NS, GAINS_PPM / 1e6);
    let false_ns = monotonic_ns();
    assert!(false_ns + 4 * MS < before_ns + before.elapsed().as_nanos() as u64, "the clock is not a false one");
    let silent = SteeredClock::begin(|_| None).unwrap_err();
    assert!(matches!(silent, ClockError::NoAnswer { answers: 0 }), "{silent}");
    let (mut far, mut near) = (asker(coordinator), asker(coordinator));
    let far = SteeredClock::begin(move |within| {
        std::thread::sleep(Duration::from_millis(12));
        far(within)
    });
    assert!(matches!(far, Err(ClockError::Unsure { error_ms: 6.. })), "{far:?}");

    let steered = SteeredClock::begin(asker(coordinator)).unwrap();
    steered.begin_measuring();
    let (begun_ns, mut last_ns, mut apart_ns) = (monotonic_ns(), 0, 0);
    while monotonic_ns() < begun_ns + WATCHED.as_nanos() as u64 {
        let ns = monotonic_ns();
        assert!(ns >= last_ns, "it went back by {}", last_ns - ns);
        // What it shows lies between what was asked for before it and after it, as far as it is right.
        let reading =
            [near(WATCHED).unwrap().read.answered_ns, monotonic_ns(), near(WATCHED).unwrap().read.received_ns];
        apart_ns = reading[0].saturating_sub(reading[1]).max(reading[1].saturating_sub(reading[2])).max(apart_ns);
        let until_ns = ns + 2 * MS;
        clock::sleep_until(until_ns);
        last_ns = monotonic_ns();
        assert!(last_ns >= until_ns, "a sleep ended before its instant");
    }
    steered.check().unwrap();
    let found = steered.of_worker(1);
    assert!(apart_ns <= found.error_ns, "{apart_ns} ns apart, {found:?}");
    assert!(found.offset_ns.abs_diff(-OFFSET_NS) <= found.error_ns + MS, "{found:?}");
    let sure_ppm = 2.0 * found.error_ns as f64 / WATCHED.as_millis() as f64;
    assert!((found.drift_ppm + GAINS_PPM).abs() <= sure_ppm, "{found:?}");
}
