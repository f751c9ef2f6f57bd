//! The load generator: WebSocket deliveries that one event loop receives and checks in a second of its CPU time.
//!
//! A blaster on the subject's core writes frames as fast as they are taken, each with its own right stamp, so that
//! every check runs and every delivery has to pass it. With one frame in a write the kernel's read dominates; with 16,
//! what the generator does itself. The figure is absolute, so the detail has the limit beside it: a loop that reads
//! the same frames from the same blaster and checks nothing.

use crate::audience;
use crate::connect::{self, PATIENCE, read_until};
use crate::figure::{Figure, rounded};
use crate::frames::subscription;
use crate::limit::ANY_PORT;
use crate::processor::Cores;
use crate::scale::Scale;
use anyhow::{Context as _, anyhow, ensure};
use pushlab_load::clients::LoopConfig;
use pushlab_load::connection::Http1;
use pushlab_load::dial::Dialler;
use pushlab_load::run_state::RunState;
use pushlab_load::threads::spawn_clients;
use pushlab_load::transport::Requests;
use pushlab_load::transport::websocket::WebSocket;
use pushlab_os::affinity::pin_to;
use pushlab_os::clock::{CpuClock, monotonic_ns, sleep_until};
use pushlab_stats::median;
use pushlab_wire::http::{Headers, parse_request};
use pushlab_wire::stamp::Stamp;
use pushlab_wire::transport::Transport;
use pushlab_wire::websocket::{Opcode, encode, handshake};
use pushlab_workload::audience::Audience;
use pushlab_workload::check::Schedule;
use pushlab_workload::pacing::Pacing;
use pushlab_workload::plan::Target;
use pushlab_workload::result::Part;
use pushlab_workload::timeline::Timeline;
use pushlab_workload::traffic::Traffic;
use serde_json::json;
use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

const SECOND_NS: u64 = 1_000_000_000;
const MILLISECOND_NS: u64 = 1_000_000;
/// Publications are due every 10 ns: faster than anybody can write, so that none is early.
const INTERVAL_NS: u64 = 10;
/// Publications of one run, at most: each has a counter of its subscribers, 4 bytes.
const PUBLICATIONS_MAX: u64 = 1 << 22;
/// Time for the loop to learn that the load has begun.
const LEAD_NS: u64 = 100 * MILLISECOND_NS;

/// What one run came to.
struct Work {
    delivered: u64,
    cpu_ns: u64,
    wall_ns: u64,
    bytes: u64,
}

/// Measures with so many frames in each write.
pub fn measure(name: &'static str, frames: u64, scale: &Scale, cores: Cores) -> anyhow::Result<Figure> {
    let pair = |_| Ok((run(frames, scale, cores)?, run_limit(frames, scale, cores)?));
    let runs = (0..scale.repeats).map(pair).collect::<anyhow::Result<Vec<(Work, Work)>>>()?;
    let per_cpu_s: Vec<f64> = runs.iter().map(|(run, _)| 1e6 / run.cpu_us()).collect();
    let middle = |figure: &dyn Fn(&Work) -> f64| {
        median(&runs.iter().map(|(run, _)| figure(run)).collect::<Vec<_>>()).map(rounded)
    };
    let ratios: Vec<f64> = runs.iter().map(|(run, limit)| limit.cpu_us() / run.cpu_us()).collect();
    let limit_us: Vec<f64> = runs.iter().map(|(_, limit)| limit.cpu_us()).collect();
    let detail = json!({
        "headline": "deliveries per CPU-second of the loop; median of the repeats",
        "repeats": per_cpu_s.iter().copied().map(rounded).collect::<Vec<_>>(),
        "connections": scale.subscribers,
        "frames_per_write": frames,
        "cpu_us": middle(&Work::cpu_us),
        "limit_cpu_us": median(&limit_us).map(rounded),
        "cpu_ratio": median(&ratios).map(rounded),
        "deliveries_per_s": middle(&|run| run.delivered as f64 / (run.wall_ns as f64 / 1e9)),
        "delivery_bytes": middle(&|run| run.bytes as f64 / run.delivered as f64),
        "loop_busy": middle(&|run| run.cpu_ns as f64 / run.wall_ns as f64),
    });
    Figure::of_repeats(name, &per_cpu_s, detail)
}

/// The same beside another build's generator: our CPU time for a delivery divided by its, in turn.
pub fn measure_against(
    name: &'static str,
    of: &str,
    frames: u64,
    other: &Path,
    scale: &Scale,
    cores: Cores,
) -> anyhow::Result<Figure> {
    let ours = || run(frames, scale, cores).map(|work| work.cpu_us());
    let others = || others_cpu_us(of, other, cores);
    // Each follows the other as often.
    let pair = |repeat: u32| match repeat % 2 {
        0 => ours().and_then(|ours| Ok((ours, others()?))),
        _ => others().and_then(|others| Ok((ours()?, others))),
    };
    let pairs = (0..scale.repeats).map(pair).collect::<anyhow::Result<Vec<(f64, f64)>>>()?;
    let ratios: Vec<f64> = pairs.iter().map(|(ours, others)| ours / others).collect();
    let detail = json!({
        "headline": "CPU time of a delivery, ours / the other build's",
        "repeats": ratios.iter().copied().map(rounded).collect::<Vec<_>>(),
        "connections": scale.subscribers,
        "frames_per_write": frames,
        "cpu_us": pairs.iter().map(|(ours, _)| rounded(*ours)).collect::<Vec<_>>(),
        "other_cpu_us": pairs.iter().map(|(_, others)| rounded(*others)).collect::<Vec<_>>(),
    });
    Figure::of_repeats(name, &ratios, detail)
}

/// CPU time that another build's generator needs for a delivery, µs, as its own bench measures it.
fn others_cpu_us(of: &str, other: &Path, cores: Cores) -> anyhow::Result<f64> {
    let only = format!("generator/{of}");
    // It chooses its cores by itself, and would inherit the one of this thread.
    pin_to(&[cores.subject, cores.load])?;
    let output = Command::new(other).args(["--only", &only, "--repeats", "1"]).output();
    cores.pin_to_load()?;
    let output = output.with_context(|| format!("{} cannot be started", other.display()))?;
    let lines = String::from_utf8_lossy(&output.stdout);
    let figures = lines.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let value = figures.filter(|figure| figure["name"] == only.as_str()).find_map(|figure| figure["value"].as_f64());
    let errors = String::from_utf8_lossy(&output.stderr);
    let value = value.with_context(|| format!("{} measured no {only}: {}", other.display(), errors.trim()))?;
    Ok(1e6 / value)
}

impl Work {
    fn cpu_us(&self) -> f64 {
        self.cpu_ns as f64 / 1e3 / self.delivered as f64
    }
}

fn run(frames: u64, scale: &Scale, cores: Cores) -> anyhow::Result<Work> {
    let connections = u32::try_from(scale.subscribers)?;
    let listener = TcpListener::bind(ANY_PORT).context("cannot listen")?;
    let state = Arc::new(RunState::new(monotonic_ns(), 1));
    let (thread, cpu) = start_loop(listener.local_addr()?, connections, &state)?;
    // The loop's thread has inherited the load's core; this one blasts from the subject's.
    pin_to(&[cores.subject])?;
    let result = blast(&listener, frames, scale, &state, cpu);
    cores.pin_to_load()?;
    state.set_end(monotonic_ns());
    let work = result?;
    let result = thread.join().map_err(|_| anyhow!("the loop panicked"))??;
    let is_right = result.delivered == work.delivered && result.unknown + result.duplicated + result.reordered == 0;
    ensure!(is_right, "of {} deliveries the loop counted {}", work.delivered, of(&result));
    Ok(work)
}

fn of(result: &Part) -> String {
    let Part { delivered, unknown, duplicated, reordered, .. } = result;
    format!("{delivered}, {unknown} unknown, {duplicated} duplicated, {reordered} reordered")
}

type Loop = (JoinHandle<io::Result<Part>>, CpuClock);

fn start_loop(target: SocketAddr, connections: u32, state: &Arc<RunState>) -> anyhow::Result<Loop> {
    let config = LoopConfig {
        poll_phase_ns: 0,
        dialler: Dialler::new(target),
        hosts: None,
        clients: connections,
        lane: 0,
        lanes: 1,
        progress: 0,
        requests: Requests::new(&Target::plain(target), "blast", "blast", 0),
        traffic: Traffic::Silent,
        payload: None,
        audience: Audience::Everybodys { sources: 1, receivers: Some(connections), are_sources_clients: false },
        ignores_arrays: true,
        publishers: 0,
        has_receipts: false,
        storm: None,
        counts_drain: true,
        connect_rate: 20_000,
        poll_interval_ns: SECOND_NS,
        seed: 1,
        turns: None,
        gather_ns: 0,
        injected_delay_ns: 0,
    };
    let state = Arc::clone(state);
    let (sender, cpu) = mpsc::channel();
    let begun = move || {
        // The receiver waits for this right below.
        let _ = sender.send(CpuClock::of_this_thread());
    };
    let thread = spawn_clients::<WebSocket, Http1>(config, state, begun)?;
    Ok((thread, cpu.recv().context("the loop ended before it began")?))
}

/// Accepts everybody, begins the load, writes for a while and waits until all has been received.
fn blast(listener: &TcpListener, frames: u64, scale: &Scale, state: &RunState, cpu: CpuClock) -> anyhow::Result<Work> {
    let mut sockets = (0..scale.subscribers).map(|_| accept(listener)).collect::<anyhow::Result<Vec<_>>>()?;
    let until_ns = monotonic_ns() + u64::try_from(PATIENCE.as_nanos())?;
    while (state.subscribed() as usize) < scale.subscribers {
        ensure!(monotonic_ns() < until_ns, "only {} clients have subscribed", state.subscribed());
        sleep_until(monotonic_ns() + MILLISECOND_NS);
    }
    // Everything is load, begun long enough ago that no publication is early.
    let start_ns = (monotonic_ns() - SECOND_NS) / 100 * 100;
    let pacing = Pacing { count: PUBLICATIONS_MAX, ..Pacing::endless(start_ns, INTERVAL_NS, 1) };
    let schedule = Some(Schedule::Open { pacing: pacing.clone(), load_from: 0 });
    let (load_ns, load_end_ns) = (start_ns, u64::MAX - 1);
    let timeline = Timeline {
        idle_ns: start_ns,
        warm_up_ns: start_ns,
        load_ns,
        load_end_ns,
        schedule,
        upstream: None,
        polls: None,
    };
    state.begin(timeline);
    sleep_until(monotonic_ns() + LEAD_NS);
    let is_done = |written: &Written| {
        state.sum(|progress| &progress.load_delivered) == written.publications * scale.subscribers as u64
    };
    write_and_wait(&mut sockets, frames, scale, pacing, cpu, is_done)
}

/// The same frames, read and thrown away.
fn run_limit(frames: u64, scale: &Scale, cores: Cores) -> anyhow::Result<Work> {
    let listener = TcpListener::bind(ANY_PORT).context("cannot listen")?;
    let target = listener.local_addr()?;
    let count = scale.subscribers;
    let (received, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let (received_there, is_over_there) = (Arc::clone(&received), Arc::clone(&is_over));
    let (sender, ready) = mpsc::channel();
    let thread = std::thread::Builder::new().name("limit".into()).spawn(move || -> anyhow::Result<()> {
        let mut audience = audience::Audience::new()?;
        let request = subscription(Transport::WebSocket);
        audience.grow(count, |index| connect::open(target, 2, index, &request), None)?;
        let greetings = audience.tally.bytes;
        sender.send(CpuClock::of_this_thread())?;
        while !is_over_there.load(Ordering::Relaxed) {
            audience.read(Duration::from_millis(5))?;
            received_there.store(audience.tally.bytes - greetings, Ordering::Relaxed);
        }
        Ok(())
    })?;
    pin_to(&[cores.subject])?;
    let work = (|| {
        let mut sockets = (0..count).map(|_| accept(&listener)).collect::<anyhow::Result<Vec<_>>>()?;
        let cpu = ready.recv().context("the limit ended before it began")?;
        let is_done = |written: &Written| received.load(Ordering::Relaxed) == written.bytes * count as u64;
        let pacing = Pacing::endless(monotonic_ns() / 100 * 100, INTERVAL_NS, 1);
        let work = write_and_wait(&mut sockets, frames, scale, pacing, cpu, is_done);
        // The sockets live until the reader has stopped, for which their end would be an error.
        is_over.store(true, Ordering::Relaxed);
        thread.join().map_err(|_| anyhow!("the limit panicked"))??;
        work
    })();
    cores.pin_to_load()?;
    work
}

/// Writes for a while and waits until all has been received.
fn write_and_wait(
    sockets: &mut [TcpStream],
    frames: u64,
    scale: &Scale,
    pacing: Pacing,
    cpu: CpuClock,
    is_done: impl Fn(&Written) -> bool,
) -> anyhow::Result<Work> {
    let span_ns = u64::try_from(scale.segment.as_nanos())? * 2;
    let cpu_start = cpu.read_ns().context("the loop ended")?;
    let begun_ns = monotonic_ns();
    let written = write_until(sockets, frames, pacing, begun_ns + span_ns)?;
    let until_ns = monotonic_ns() + u64::try_from(PATIENCE.as_nanos())?;
    while !is_done(&written) {
        ensure!(monotonic_ns() < until_ns, "the loop did not receive everything");
        sleep_until(monotonic_ns() + MILLISECOND_NS);
    }
    let wall_ns = monotonic_ns() - begun_ns;
    let cpu_ns = cpu.read_ns().context("the loop ended")? - cpu_start;
    let connections = sockets.len() as u64;
    Ok(Work { delivered: written.publications * connections, bytes: written.bytes * connections, cpu_ns, wall_ns })
}

/// Answers one client's handshake.
fn accept(listener: &TcpListener) -> anyhow::Result<TcpStream> {
    let (mut stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let head = read_until(&mut stream, |found| found.ends_with(b"\r\n\r\n"))?;
    let mut headers = Headers::default();
    let (request, _) = parse_request(&head, &mut headers)?.context("a request has no end")?;
    let mut out = Vec::new();
    handshake::encode_response(&mut out, &handshake::accept(&request)?);
    encode(&mut out, Opcode::Text, b"[\"cursor\",\"bench.0\"]", None);
    stream.write_all(&out)?;
    Ok(stream)
}

/// What was written to every connection.
struct Written {
    publications: u64,
    bytes: u64,
}

fn write_until(sockets: &mut [TcpStream], frames: u64, pacing: Pacing, until_ns: u64) -> anyhow::Result<Written> {
    let mut sent = 0;
    let mut written = 0;
    let mut bytes = Vec::new();
    while monotonic_ns() < until_ns && sent + frames <= PUBLICATIONS_MAX {
        bytes.clear();
        for _ in 0..frames {
            let stamp = Stamp { source: 0, sequence: u32::try_from(sent)?, instant_ns: pacing.due_ns(sent) }.encode();
            let stamp = std::str::from_utf8(&stamp)?;
            let data = format!("{{\"stamp\":\"{stamp}\",\"text\":\"The quick brown fox jumps\"}}");
            sent += 1;
            let text = format!("[\"msg\",\"blast\",\"bench.{sent}\",{data}]");
            encode(&mut bytes, Opcode::Text, text.as_bytes(), None);
        }
        for socket in &mut *sockets {
            socket.write_all(&bytes).context("cannot write to the generator")?;
        }
        written += bytes.len() as u64;
    }
    Ok(Written { publications: sent, bytes: written })
}
