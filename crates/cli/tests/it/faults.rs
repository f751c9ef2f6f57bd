//! What goes wrong on purpose, at the server or at the generator, is reported as what it is, and nobody else is accused.

use crate::campaign::{Place, signal, wait_for};
use crate::receipts::Served;
use serde_json::Value;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What a machine that does other things meanwhile may be blamed for.
const OF_THE_MACHINE: [&str; 4] = ["noisy-neighbour", "unpinned", "probe-gaps", "few-samples"];
/// A busy machine may hold the generator up: so often is a run tried that must say one thing and no other.
const TRIES: u32 = 5;
const LOAD: Duration = Duration::from_secs(5);
/// A full thread gets this much of a core on a busy machine, too; one that is not full uses a fifth of it.
const FULL_PERCENT: f64 = 10.0;
const LENIENT_ABOUT_TIME: &str = "turn_p99_ms_max = 10000, lateness_p99_ms_max = 10000, share_percent_max = 1000";

/// A run of a server that is known by its address.
struct Measured {
    codes: Vec<String>,
    run: Value,
    /// Its cell in the report.
    point: Value,
}

impl Measured {
    fn figure(&self, name: &str) -> Option<f64> {
        self.run["figures"][name]["value"].as_f64()
    }

    fn count(&self, name: &str) -> u64 {
        self.run["counts"][name].as_u64().unwrap()
    }
}

/// Measures a hundred messages a second to five clients.
fn measure(name: &str, address: SocketAddr) -> Measured {
    let place = Place::new(name);
    let subjects = format!("[\"live=http://{address}\"]");
    let phases = format!(
        "{{ connect_ms = 10000, idle_ms = 100, warm_up_ms = 500, load_ms = {}, drain_ms = 10000, after_ms = 0 }}",
        LOAD.as_millis()
    );
    // A busy machine makes a thread late, but not use more CPU time.
    let limits = format!("{{ cpu_percent_max = {FULL_PERCENT}, {LENIENT_ABOUT_TIME} }}");
    place.experiment(&[
        ("subjects", &subjects),
        ("transports", "[\"http-streaming\"]"),
        ("clients", "[5]"),
        ("scenario", "{ kind = \"feed\", interval_us = 10000, payload_bytes = 173, by = \"publisher\" }"),
        ("phases", &phases),
        ("generator_limits", &limits),
    ]);
    let output = place.run(&["run", "experiment.toml", "--json", "--quiet"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let run = place.exported("test").remove(0);
    let point = report["experiments"][0]["series"][0]["points"][0].clone();
    assert_eq!(run["outcome"]["outcome"], "completed", "{report:#}");
    let codes = run["warnings"].as_array().unwrap().iter().map(|warning| warning["code"].as_str().unwrap().to_owned());
    Measured { codes: codes.filter(|code| !OF_THE_MACHINE.contains(&code.as_str())).collect(), run, point }
}

/// Measures until exactly these warnings are raised; what a try was warned of is printed.
fn measure_until(expected: &[&str], mut attempt: impl FnMut() -> Measured) -> Measured {
    for _ in 0..TRIES {
        let measured = attempt();
        println!("{} {:?}", measured.run["warnings"], measured.figure("generator_busiest"));
        if measured.codes == expected {
            return measured;
        }
    }
    panic!("{expected:?} were expected alone");
}

/// What lies between clients and server, and does to the lines of streams what it is told.
#[derive(Debug, Default)]
struct Front {
    /// One message in so many is blotted out.
    lost_one_in: Option<u64>,
    messages: AtomicU64,
    lost: AtomicU64,
    /// For how long one client is sent empty lines as fast as they go, after how many messages.
    flood: Option<(u64, Duration)>,
    has_flooded: AtomicBool,
}

impl Front {
    /// Begins to forward connections.
    fn start(self, server: SocketAddr) -> (Arc<Self>, SocketAddr) {
        let (this, listener) = (Arc::new(self), TcpListener::bind("127.0.0.1:0").unwrap());
        let address = listener.local_addr().unwrap();
        let front = Arc::clone(&this);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect(server).unwrap());
                client.set_nodelay(true).unwrap();
                server.set_nodelay(true).unwrap();
                let (mut up, mut down) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || {
                    // Either end may go first.
                    let _ = io::copy(&mut up, &mut down);
                    let _ = down.shutdown(std::net::Shutdown::Write);
                });
                let front = Arc::clone(&front);
                std::thread::spawn(move || front.pass(server, client));
            }
        });
        (this, address)
    }

    /// Passes on what the server sends: a message's line when it is whole, all else at once.
    fn pass(&self, mut server: TcpStream, mut client: TcpStream) -> io::Result<()> {
        const MESSAGE: &[u8] = b"[\"msg\"";
        let (mut held, mut room, mut was_message) = (Vec::new(), vec![0; 1 << 16], false);
        loop {
            let size = server.read(&mut room)?;
            if size == 0 {
                return client.shutdown(std::net::Shutdown::Write);
            }
            held.extend_from_slice(&room[..size]);
            while let Some(end) = held.iter().position(|byte| *byte == b'\n') {
                let mut line: Vec<u8> = held.drain(..=end).collect();
                let is_message = line.starts_with(MESSAGE);
                if is_message {
                    self.spoil(&mut line);
                }
                client.write_all(&line)?;
                // The end of a chunk.
                if was_message && line == b"\r\n" {
                    self.flood(&mut client)?;
                }
                was_message = is_message;
            }
            if !held.starts_with(&MESSAGE[..held.len().min(MESSAGE.len())]) {
                client.write_all(&held)?;
                held.clear();
            }
        }
    }

    /// Makes empty lines of a message that is to be lost: they mean nothing, and are as long.
    fn spoil(&self, line: &mut [u8]) {
        let number = self.messages.fetch_add(1, Ordering::Relaxed);
        if self.lost_one_in.is_some_and(|one_in| number % one_in == one_in - 1) {
            line.fill(b'\n');
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn flood(&self, client: &mut TcpStream) -> io::Result<()> {
        let Some((after, length)) = self.flood else { return Ok(()) };
        if self.messages.load(Ordering::Relaxed) < after || self.has_flooded.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let chunk = [b"10000\r\n".as_slice(), &[b'\n'; 0x10000], b"\r\n"].concat();
        let end = Instant::now() + length;
        while Instant::now() < end {
            client.write_all(&chunk)?;
        }
        Ok(())
    }
}

#[test]
fn two_per_cent_lost_are_loss_and_nothing_else() {
    let measured = measure_until(&["loss"], || {
        let served = Served::start(&[]);
        let (front, address) = Front { lost_one_in: Some(50), ..Front::default() }.start(served.address());
        let measured = measure("fault-loss", address);
        let [lost, blotted] = [measured.count("lost"), front.lost.load(Ordering::Relaxed)];
        let expected = measured.count("expected");
        // Those of the warm-up and of the feeder are no losses of the load phase.
        assert!(lost <= blotted && (expected / 60..=expected / 45).contains(&lost), "{lost} of {blotted}, {expected}");
        measured
    });
    assert!(measured.figure("latency_median").is_some() && measured.figure("response_median").is_some());
    // A hundredth takes longer than the p99, and twice as much never came.
    assert_eq!(measured.figure("latency_p99"), None);
    assert!(measured.point["figures"]["latency_p99"].is_null(), "{:#}", measured.point);
    let lacking = &measured.point["lacking"]["latency_p99"];
    assert_eq!(lacking["why"], "not-reached", "{lacking}");
    assert!(lacking["detail"].as_str().unwrap().contains(" of 2500 never came, "), "{lacking}");
}

#[test]
fn a_server_that_stalls_is_slow_and_the_generator_is_not_to_blame() {
    const STALL: Duration = Duration::from_millis(100);
    let measured = measure_until(&[], || {
        let served = Served::start(&[]);
        let process = served.id();
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let staller = std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                signal(process, "STOP");
                std::thread::park_timeout(STALL);
                signal(process, "CONT");
                std::thread::park_timeout(Duration::from_secs(2) - STALL);
            }
        });
        let measured = measure("fault-stall", served.address());
        is_over.store(true, Ordering::Relaxed);
        staller.thread().unpark();
        staller.join().unwrap();
        measured
    });
    // A twentieth of the messages fall into a stall, evenly over its 100 ms: a hundredth waits for 80 ms or longer, on a
    // busy machine for longer still.
    let p99 = measured.figure("latency_p99").unwrap();
    assert!(p99 > 60.0, "{p99}");
    assert!(measured.figure("generator_share").unwrap() < 50.0);
}

#[test]
fn a_thread_that_is_full_for_a_second_takes_latencies_away_and_accuses_nobody() {
    let flooded = || {
        let served = Served::start(&[]);
        // Five clients and the feeder at a hundred a second each: after two seconds.
        let flood = Some((1_200, Duration::from_millis(1_300)));
        let (front, address) = Front { flood, ..Front::default() }.start(served.address());
        let measured = measure("fault-full", address);
        assert!(front.has_flooded.load(Ordering::Relaxed));
        measured
    };
    // Other work on the machine may have kept the thread from being full, but not each time.
    let is_full =
        |measured: &Measured| measured.figure("generator_busiest").is_some_and(|percent| percent >= FULL_PERCENT);
    let measured =
        measure_until(&["generator-saturated"], || (1..TRIES).map(|_| flooded()).find(is_full).unwrap_or_else(flooded));
    assert!(is_full(&measured));
    assert_eq!((measured.figure("latency_p99"), measured.figure("response_median")), (None, None));
    assert!(measured.figure("delivered").unwrap() > 0.0 && measured.figure("bytes_per_delivery").is_some());
    assert_eq!(measured.count("lost"), 0);
}

/// How many publications a server has received.
fn received(server: SocketAddr) -> u64 {
    let mut socket = TcpStream::connect(server).unwrap();
    write!(socket, "GET /stats HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str::<Value>(body).unwrap()["received"].as_u64().unwrap()
}

#[test]
fn a_server_that_is_restarted_has_cut_its_connections() {
    let measured = measure_until(&["connection-cut"], || {
        let served = Served::start(&[]);
        let address = served.address();
        let restarter = std::thread::spawn(move || {
            // Fifty are of the warm-up; so it is in the middle of the load, however long it took to come to it.
            wait_for("half of the load", || (received(address) >= 300).then_some(()));
            drop(served);
            Served::start_on(&address.to_string(), &[])
        });
        let mut measured = measure("fault-restart", address);
        drop(restarter.join().unwrap());
        // What is on its way when the server ends may be lost, and what comes behind the outage is late: how much and how
        // late depends on the machine.
        assert!(measured.count("lost") < measured.count("expected") / 10, "{:#}", measured.run["counts"]);
        measured.codes.retain(|code| !["loss", "unstable"].contains(&code.as_str()));
        measured
    });
    assert!(measured.count("reconnects") >= 5, "{:#}", measured.run["counts"]);
}
