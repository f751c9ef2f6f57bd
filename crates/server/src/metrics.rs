//! The page `/metrics` for Prometheus: the counters, and the process under Prometheus' standard names.
//!
//! All of it is made when asked for; between two readings nothing is kept or counted for it.

use crate::stats::Stats;
use pushlab_engine::Io;
use pushlab_os::{clock, system};
use pushlab_wire::exposition::{Exposition, Kind};
use std::os::unix::fs::MetadataExt as _;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// The page of a server with so many event loops. Takes some 25 µs; a server of 100,000 connections must not list
/// them for it.
pub fn page(stats: &Stats, loops: usize) -> String {
    let mut page = Exposition::default();
    page.family("pushlab_build_info", Kind::Gauge, "Always 1; the labels tell the version.")
        .sample(&[("version", env!("CARGO_PKG_VERSION"))], 1.0);
    stats.write(&mut page);
    let mut by_engine = page.family("pushlab_event_loops", Kind::Gauge, "Event loops, by how they fan out.");
    for io in Io::ALL {
        let with_uring = stats.loops_with_uring;
        let count = if io == Io::Uring { with_uring } else { loops - with_uring };
        by_engine.sample(&[("io", io.name())], count as f64);
    }
    write_process(&mut page, loops);
    page.into_text()
}

fn write_process(page: &mut Exposition, loops: usize) {
    page.family("process_cpu_seconds_total", Kind::Counter, "CPU time of the process, user and system, in seconds.")
        .sample(&[], clock::process_cpu_ns() as f64 / 1e9);
    let mut gauge = |name, help, value: Option<f64>| {
        let mut family = page.family(name, Kind::Gauge, help);
        if let Some(value) = value {
            family.sample(&[], value);
        }
    };
    gauge("process_resident_memory_bytes", "Resident memory of the process, in bytes.", resident_bytes());
    let help = "Open file descriptors. Absent with several event loops, which have tables of their own, and before \
                Linux 6.2.";
    gauge("process_open_fds", help, (loops == 1).then(open_descriptors).flatten());
    gauge("process_start_time_seconds", "When the process began, in seconds since 1970.", started_at());
}

fn resident_bytes() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: f64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * system::page_bytes() as f64)
}

/// Since Linux 6.2 the directory's size is their number, which costs no listing; before, it is 0.
fn open_descriptors() -> Option<f64> {
    let count = std::fs::metadata("/proc/self/fd").ok()?.size();
    (count > 0).then_some(count as f64)
}

/// The kernel tells the start in ticks since boot. Computed once, so that it does not tremble with the clocks.
fn started_at() -> Option<f64> {
    static STARTED_AT: OnceLock<Option<f64>> = OnceLock::new();
    *STARTED_AT.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/self/stat").ok()?;
        // The name in parentheses may hold anything; field 22 of proc(5) is the 20th behind it.
        let ticks: f64 = text.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()?;
        let age = clock::since_boot_ns() as f64 / 1e9 - ticks / system::ticks_per_second() as f64;
        Some(SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs_f64() - age)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_is_seen_as_the_kernel_sees_it() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
        let started = started_at().unwrap();
        assert!(started <= now && started > now - 24.0 * 3600.0, "{started} and {now}");
        let before = resident_bytes().unwrap();
        let filled = vec![1u8; 64 << 20];
        let more = resident_bytes().unwrap() - before;
        assert!(more > f64::from(32 << 20), "{more} for {} bytes", filled.len());
        // Other tests open and close thousands beside this one.
        let agree = || {
            let listed = std::fs::read_dir("/proc/self/fd").unwrap().count() as f64;
            open_descriptors().is_none_or(|told| (told - listed).abs() < 50.0)
        };
        assert!((0..1000).any(|_| agree()));
    }
}
