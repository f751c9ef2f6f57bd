//! The link between namespaces: what it can carry, and what it adds when it is to add nothing.
//!
//! Both are measured with UDP of 64 bytes through the profile `local`, on a network of their own for each repeat.

use crate::figure::{Figure, rounded};
use crate::processor::Cores;
use crate::scale::Scale;
use anyhow::{Context as _, bail, ensure};
use pushlab_link::network::{CLIENTS, Network, NetworkConfig, SUBJECT};
use pushlab_link::profile::Profile;
use pushlab_os::affinity::pin_to;
use pushlab_os::clock::monotonic_ns;
use pushlab_stats::median;
use serde_json::json;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// UDP payload of a packet of 64 bytes.
const PAYLOAD: [u8; 36] = [0; 36];
/// A packet that takes longer never comes.
const PATIENCE: Duration = Duration::from_secs(1);

/// Measures what the name says.
pub fn measure(name: &'static str, scale: &Scale, cores: Cores) -> anyhow::Result<Figure> {
    match name {
        "link/packets" => packets(name, scale, cores),
        "link/round-trip" => round_trip(name, scale, cores),
        _ => bail!("nothing measures {name}"),
    }
}

fn network(core: usize) -> anyhow::Result<Network> {
    let profile = Profile::find("local").context("there is a profile `local`")?.clone();
    Ok(Network::start(NetworkConfig { profile, seed: 1, cores: Some(vec![core]), ack_delay_ms: None, capture: None })?)
}

/// Packets that the thread carries in a second of its CPU time, the kernel's delivery to a socket included, while the
/// other core sends and receives as much as it can.
fn packets(name: &'static str, scale: &Scale, cores: Cores) -> anyhow::Result<Figure> {
    let (mut per_cpu_s, mut per_s, mut late_us) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..scale.repeats {
        let network = network(cores.subject)?;
        let subject = network.subject().in_it(|| UdpSocket::bind((SUBJECT, 0)))??;
        let load = network.load().in_it(|| UdpSocket::bind((CLIENTS, 0)))??;
        subject.connect(load.local_addr()?)?;
        load.set_read_timeout(Some(Duration::from_millis(20)))?;
        let is_over = AtomicBool::new(false);
        let state = || anyhow::Ok((network.totals().down.sum().packets, network.cpu_ns().context("the link broke")?));
        let (before, after, wall_ns) = thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let _ = load.recv(&mut [0; 64]);
                }
            });
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let _ = subject.send(&PAYLOAD);
                }
            });
            thread::sleep(scale.warm_up);
            let (begin_ns, before) = (monotonic_ns(), state());
            network.take_lateness();
            thread::sleep(scale.segment);
            // On a busy machine a short segment may pass before the link's thread runs.
            let carried = |from: u64| network.totals().down.sum().packets > from;
            let patience = Instant::now() + 10 * PATIENCE;
            while before.as_ref().is_ok_and(|(from, _)| !carried(*from)) && Instant::now() < patience {
                thread::sleep(scale.segment);
            }
            let (after, wall_ns) = (state(), monotonic_ns() - begin_ns);
            late_us.extend(network.take_lateness().quantile(0.99).map(|ns| ns as f64 / 1e3));
            is_over.store(true, Ordering::Relaxed);
            (before, after, wall_ns)
        });
        let ((packets_before, cpu_before), (packets_after, cpu_after)) = (before?, after?);
        ensure!(packets_after > packets_before, "nothing was carried");
        let packets = (packets_after - packets_before) as f64;
        per_cpu_s.push(packets / (cpu_after - cpu_before).max(1) as f64 * 1e9);
        per_s.push(packets / wall_ns as f64 * 1e9);
    }
    let detail = json!({
        "headline": "packets per CPU-second of the link's thread; median of the repeats",
        "packet_bytes": PAYLOAD.len() + 28,
        "packets_per_s": median(&per_s).map(rounded),
        "cpu_us": median(&per_cpu_s).map(|packets| rounded(1e6 / packets)),
        "late_us_p99": median(&late_us).map(rounded),
    });
    Figure::of_repeats(name, &per_cpu_s, detail)
}

/// The median round trip through the link less that of loopback, between the same cores; the link's thread has the
/// load's.
fn round_trip(name: &'static str, scale: &Scale, cores: Cores) -> anyhow::Result<Figure> {
    let (mut added, mut through_link, mut through_loopback) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..scale.repeats {
        let network = network(cores.load)?;
        let bind = |address: Ipv4Addr| move || UdpSocket::bind((address, 0));
        let local = (bind(Ipv4Addr::LOCALHOST)()?, bind(Ipv4Addr::LOCALHOST)()?);
        let linked = (network.subject().in_it(bind(SUBJECT))??, network.load().in_it(bind(CLIENTS))??);
        let loopback_us = ping_us(&local, scale, cores)?;
        let link_us = ping_us(&linked, scale, cores)?;
        added.push(link_us - loopback_us);
        through_link.push(link_us);
        through_loopback.push(loopback_us);
    }
    let detail = json!({
        "headline": "median round trip through the link less that of loopback; median of the repeats",
        "link_us": median(&through_link).map(rounded),
        "loopback_us": median(&through_loopback).map(rounded),
    });
    Figure::of_repeats(name, &added, detail)
}

/// The median round trip of one packet at a time between two sockets, the subject's and the load's.
fn ping_us((subject, load): &(UdpSocket, UdpSocket), scale: &Scale, cores: Cores) -> anyhow::Result<f64> {
    load.connect(subject.local_addr()?)?;
    subject.connect(load.local_addr()?)?;
    load.set_read_timeout(Some(PATIENCE))?;
    subject.set_read_timeout(Some(PATIENCE))?;
    let mut round_trips_us = Vec::new();
    thread::scope(|scope| {
        let echo = scope.spawn(|| {
            pin_to(&[cores.subject])?;
            let mut packet = PAYLOAD;
            // An empty packet is the last.
            while subject.recv(&mut packet)? > 0 {
                subject.send(&packet)?;
            }
            anyhow::Ok(())
        });
        let begin_ns = monotonic_ns();
        let end_ns = begin_ns + (scale.warm_up + scale.segment).as_nanos() as u64;
        let mut sent_ns = begin_ns;
        while sent_ns < end_ns {
            load.send(&PAYLOAD)?;
            load.recv(&mut [0; 64]).context("no answer")?;
            let now_ns = monotonic_ns();
            if now_ns > begin_ns + scale.warm_up.as_nanos() as u64 {
                round_trips_us.push((now_ns - sent_ns) as f64 / 1e3);
            }
            sent_ns = now_ns;
        }
        load.send(&[])?;
        echo.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    median(&round_trips_us).context("no packet came back")
}
