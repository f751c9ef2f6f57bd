//! Prints what a process tree does, a line each 50 ms, and at the end what watching it cost.
//!
//! `cargo run -p pushlab-probe --example watch -- PID [LINES] [PORT…]`

use pushlab_probe::{Probe, ProbeConfig, Sample, Sampler, SamplerConfig};
use std::sync::mpsc;

/// Lines printed unless told otherwise: two seconds.
const LINES: usize = 40;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let pid = arguments.next().ok_or("usage: watch PID [LINES] [PORT…]")?.parse()?;
    let lines = arguments.next().map_or(Ok(LINES), |lines| lines.parse())?;
    let ports = arguments.map(|port| port.parse()).collect::<Result<Vec<u16>, _>>()?;

    let (sender, samples) = mpsc::channel();
    let probe = Probe::new(pid, ProbeConfig { ports, ..ProbeConfig::default() })?;
    let sampler = Sampler::start(probe, SamplerConfig::default(), move |sample| drop(sender.send(sample.clone())))?;
    println!("   cpu %  rss MiB  pss MiB  proc  threads     fds  voluntary  involuntary   lo KiB  tcp");
    let mut last: Option<Sample> = None;
    for sample in samples.iter().take(lines) {
        if let Some(last) = last.replace(sample.clone()) {
            print_line(&last, &sample);
        }
    }
    let recording = sampler.finish();
    let share = 100.0 * recording.cpu_ns as f64 / recording.wall_ns.max(1) as f64;
    println!("sampler: {share:.2} % of a core, {} ticks missed", recording.ticks_missed);
    for cost in recording.costs {
        let (mean, period) = (cost.cost_mean_ns as f64 / 1e3, cost.period_ns as f64 / 1e6);
        let failure = cost.failure.unwrap_or_default();
        println!("{:>12?}: {:5} reads, {mean:8.1} µs each, period {period:.1} ms {failure}", cost.reader, cost.reads);
    }
    if let Some(error) = recording.ended {
        println!("{error}");
    }
    Ok(())
}

fn print_line(last: &Sample, now: &Sample) {
    let cpu = 100.0 * (now.cpu_ns - last.cpu_ns) as f64 / now.t_ns.saturating_sub(last.t_ns).max(1) as f64;
    let mib = |bytes: u64| format!("{:.1}", bytes as f64 / 1_048_576.0);
    let or_dash = |value: Option<u64>| value.map_or("-".to_owned(), |value| value.to_string());
    let loopback = now.loopback.zip(last.loopback).map(|(now, last)| now.bytes.saturating_sub(last.bytes) / 1024);
    let tcp = now.tcp.map_or("-".to_owned(), |tcp| format!("{} est, {} wait", tcp.established, tcp.time_wait));
    println!(
        "{cpu:8.1} {:>8} {:>8} {:5} {:8} {:>7} {:>10} {:>12} {:>8}  {tcp}",
        mib(now.rss_bytes),
        now.pss_bytes.map_or("-".to_owned(), mib),
        now.processes,
        now.threads,
        or_dash(now.descriptors),
        or_dash(now.ctx_voluntary),
        or_dash(now.ctx_involuntary),
        or_dash(loopback),
    );
}
