//! How fast one event loop receives and checks.
//!
//! A blaster on core 0 writes WebSocket frames, each with its own right stamp, to all connections as fast as they
//! take them; the loop on core 1 receives and checks them. Prints deliveries per second of the loop's CPU time,
//! and beside it the same for a raw loop that reads and looks at nothing: what the kernel alone costs.
//!
//! `cargo run --release -p pushlab-load --example blast -- [connections] [seconds]`

use mio::{Events, Interest, Poll, Token};
use pushlab_load::check::Schedule;
use pushlab_load::clients::{self, LoopConfig, Traffic};
use pushlab_load::clock::{ThreadCpu, now_ns, pin_to_core, sleep_until};
use pushlab_load::pacing::Pacing;
use pushlab_load::record::Audience;
use pushlab_load::run_state::{RunState, Timeline};
use pushlab_load::transport::Requests;
use pushlab_load::transport::websocket::WebSocket;
use pushlab_wire::http::{Headers, parse_request};
use pushlab_wire::stamp::Stamp;
use pushlab_wire::websocket::{Opcode, encode, handshake};
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const SECOND_NS: u64 = 1_000_000_000;
/// Publications are due every 10 ns: faster than anybody can write, so that none is early.
const INTERVAL_NS: u64 = 10;
/// Tells the raw loop to end.
const OVER: u64 = u64::MAX;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u32>());
    let connections = arguments.next().and_then(Result::ok).unwrap_or(1_000);
    let seconds = arguments.next().and_then(Result::ok).unwrap_or(3);
    println!("{connections} connections, frames of about 100 bytes, {seconds} s each");
    for frames in [1, 2, 4, 16] {
        raw(connections, frames, u64::from(seconds) * SECOND_NS)?;
        blast(connections, frames, u64::from(seconds) * SECOND_NS)?;
    }
    Ok(())
}

/// The same traffic into a loop that only reads.
fn raw(connections: u32, frames: u32, span_ns: u64) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let target = listener.local_addr()?;
    pin_to_core(1)?;
    let (sender, cpu) = std::sync::mpsc::channel();
    let received = Arc::new(AtomicU64::new(0));
    let shared = Arc::clone(&received);
    let thread = std::thread::spawn(move || {
        sender.send(ThreadCpu::of_this_thread()).expect("main waits for it");
        read_all(target, connections, &shared)
    });
    let cpu = cpu.recv().map_err(io::Error::other)?;
    pin_to_core(0)?;
    let mut sockets = (0..connections).map(|_| accept(&listener)).collect::<io::Result<Vec<_>>>()?;
    sleep_until(now_ns() + 200_000_000);
    received.store(0, Ordering::Relaxed);
    let (cpu_start, begun_ns) = (cpu.read_ns().unwrap_or(0), now_ns());
    let pacing = Pacing::endless(begun_ns / 100 * 100, INTERVAL_NS, 1);
    let (sent, bytes) = write_until(&mut sockets, frames, pacing, begun_ns + span_ns)?;
    while received.load(Ordering::Relaxed) < bytes {
        sleep_until(now_ns() + 1_000_000);
    }
    let (wall_ns, cpu_ns) = (now_ns() - begun_ns, cpu.read_ns().unwrap_or(0) - cpu_start);
    received.store(OVER, Ordering::Relaxed);
    thread.join().expect("the loop does not panic")?;
    print("raw reads", frames, sent * u64::from(connections), wall_ns, cpu_ns);
    Ok(())
}

fn read_all(target: SocketAddr, connections: u32, received: &AtomicU64) -> io::Result<()> {
    let mut poll = Poll::new()?;
    let mut events = Events::with_capacity(1024);
    let mut streams = Vec::new();
    for i in 0..connections {
        let mut stream = TcpStream::connect(target)?;
        let mut request = Vec::new();
        handshake::encode_request(&mut request, "raw", "/ws", [0; 16]);
        stream.write_all(&request)?;
        stream.set_nonblocking(true)?;
        let mut stream = mio::net::TcpStream::from_std(stream);
        poll.registry().register(&mut stream, Token(i as usize), Interest::READABLE)?;
        streams.push(stream);
    }
    let mut buffer = vec![0; 64 * 1024];
    while received.load(Ordering::Relaxed) != OVER {
        poll.poll(&mut events, Some(std::time::Duration::from_millis(20)))?;
        for event in &events {
            let stream = &mut streams[event.token().0];
            loop {
                match stream.read(&mut buffer) {
                    Ok(size) if size == buffer.len() => {
                        received.fetch_add(size as u64, Ordering::Relaxed);
                    }
                    Ok(size) => {
                        received.fetch_add(size as u64, Ordering::Relaxed);
                        break;
                    }
                    Err(_) => break,
                }
            }
        }
    }
    Ok(())
}

/// One run with so many frames in each write.
fn blast(connections: u32, frames: u32, span_ns: u64) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let target = listener.local_addr()?;
    let state = Arc::new(RunState::new(now_ns(), 1));
    pin_to_core(1)?;
    let shared = Arc::clone(&state);
    let (sender, cpu) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        sender.send(ThreadCpu::of_this_thread()).expect("main waits for it");
        clients::run::<WebSocket>(config(target, connections), shared)
    });
    let cpu = cpu.recv().map_err(io::Error::other)?;
    pin_to_core(0)?;
    let mut sockets = (0..connections).map(|_| accept(&listener)).collect::<io::Result<Vec<_>>>()?;
    while state.subscribed() < connections {
        sleep_until(now_ns() + 1_000_000);
    }
    // Everything is load, begun long enough ago that no publication is early.
    let start_ns = (now_ns() - SECOND_NS) / 100 * 100;
    let pacing = Pacing { count: 1 << 30, ..Pacing::endless(start_ns, INTERVAL_NS, 1) };
    let schedule = Some(Schedule::Open { pacing, load_from: 0 });
    let (load_ns, load_end_ns) = (start_ns, u64::MAX - 1);
    state.begin(Timeline { idle_ns: start_ns, warm_up_ns: start_ns, load_ns, load_end_ns, schedule }, 1 << 24);
    sleep_until(now_ns() + 200_000_000);
    let cpu_start = cpu.read_ns().unwrap_or(0);
    let begun_ns = now_ns();
    let (sent, _) = write_until(&mut sockets, frames, pacing, begun_ns + span_ns)?;
    let expected = sent * u64::from(connections);
    while state.sum(|p| &p.load_delivered) < expected && now_ns() < begun_ns + 4 * span_ns {
        sleep_until(now_ns() + 1_000_000);
    }
    let wall_ns = now_ns() - begun_ns;
    let cpu_ns = cpu.read_ns().unwrap_or(0) - cpu_start;
    state.set_end(now_ns());
    let record = thread.join().expect("the loop does not panic")?;
    assert_eq!((record.unknown, record.duplicated, record.reordered), (0, 0, 0), "every stamp is right");
    assert_eq!(record.delivered, expected, "nothing is lost");
    print("received and checked", frames, expected, wall_ns, cpu_ns);
    Ok(())
}

fn config(target: SocketAddr, connections: u32) -> LoopConfig {
    LoopConfig {
        target,
        clients: connections,
        lane: 0,
        lanes: 1,
        progress: 0,
        requests: Requests::new(target, "blast", "blast", 0),
        traffic: Traffic::Silent,
        payload: None,
        audience: Audience::Everybodys { sources: 1, receivers: Some(connections) },
        ignores_arrays: true,
        connect_rate: 20_000,
        poll_interval_ns: SECOND_NS,
        seed: 1,
        handicap_ns: 0,
    }
}

fn accept(listener: &TcpListener) -> io::Result<TcpStream> {
    let (mut stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let mut headers = Headers::default();
    let (request, _) = parse_request(&head, &mut headers).map_err(io::Error::other)?.expect("the head is whole");
    let mut out = Vec::new();
    handshake::encode_response(&mut out, &handshake::accept(&request).map_err(io::Error::other)?);
    encode(&mut out, Opcode::Text, b"[\"cursor\",\"bench.0\"]", None);
    stream.write_all(&out)?;
    Ok(stream)
}

/// Returns how many publications were written to every connection, and bytes to all together.
fn write_until(sockets: &mut [TcpStream], frames: u32, pacing: Pacing, until_ns: u64) -> io::Result<(u64, u64)> {
    let (mut sent, mut total) = (0, 0);
    let mut bytes = Vec::new();
    while now_ns() < until_ns {
        bytes.clear();
        for _ in 0..frames {
            let stamp = Stamp { source: 0, sequence: sent as u32, instant_ns: pacing.due_ns(sent) };
            let stamp = String::from_utf8(stamp.encode().to_vec()).map_err(io::Error::other)?;
            let text = format!(
                "[\"msg\",\"blast\",\"bench.{}\",{{\"stamp\":\"{stamp}\",\"text\":\"The quick brown fox jumps\"}}]",
                sent + 1
            );
            encode(&mut bytes, Opcode::Text, text.as_bytes(), None);
            sent += 1;
        }
        for socket in &mut *sockets {
            socket.write_all(&bytes)?;
            total += bytes.len() as u64;
        }
    }
    Ok((sent, total))
}

fn print(what: &str, frames: u32, deliveries: u64, wall_ns: u64, cpu_ns: u64) {
    let count = deliveries as f64;
    println!(
        "{frames:>2} frames a write, {what:<20}: {:>9.0} deliveries per core-second ({:.2} µs each), {:>9.0} per \
         second of wall time, loop busy {:.0} %",
        count / (cpu_ns as f64 / 1e9),
        cpu_ns as f64 / 1e3 / count,
        count / (wall_ns as f64 / 1e9),
        100.0 * cpu_ns as f64 / wall_ns as f64,
    );
}
