//! The clock of a process steered after another's, over a socket.

use pushlab_fleet::clock::{ClockError, SteeredClock, answer};
use pushlab_os::clock::{self, monotonic_ns};
use pushlab_workload::clock::Reading;
use std::net::UdpSocket;
use std::process::Command;
use std::time::Duration;

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
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (address, test) = (socket.local_addr().unwrap(), "clocks::a_worker_whose_clock_is_wrong_has_the_coordinators");
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture"]).env(COORDINATOR, address.to_string());
    std::thread::spawn(move || {
        let mut number = [0; 8];
        while let Ok((_, from)) = socket.recv_from(&mut number) {
            let reading = answer(monotonic_ns());
            let said = [number, reading.received_ns.to_be_bytes(), reading.answered_ns.to_be_bytes()].concat();
            socket.send_to(&said, from).unwrap();
        }
    });
    let output = child.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Asks over a socket; each question has its number, so that a late answer is none.
fn asker(coordinator: &str) -> impl FnMut(Duration) -> Option<Reading> + Send + 'static {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(coordinator).unwrap();
    let mut asked = 0_u64;
    move |within| {
        asked += 1;
        socket.send(&asked.to_be_bytes()).ok()?;
        socket.set_read_timeout(Some(within)).ok()?;
        let mut said = [0; 24];
        loop {
            socket.recv(&mut said).ok()?;
            let [number, received_ns, answered_ns] =
                [0, 8, 16].map(|at| u64::from_be_bytes(std::array::from_fn(|byte| said[at + byte])));
            if number == asked {
                return Some(Reading { received_ns, answered_ns });
            }
        }
    }
}

/// In a process of its own: the machine's clock is the coordinator's, and the process's is not, until it is steered.
fn follow(coordinator: &str) {
    let before_ns = monotonic_ns();
    clock::falsify(OFFSET_NS, GAINS_PPM / 1e6);
    assert!(monotonic_ns() < before_ns + 4 * MS, "the clock is not a false one");
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
        let reading = [near(WATCHED).unwrap().answered_ns, monotonic_ns(), near(WATCHED).unwrap().received_ns];
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
