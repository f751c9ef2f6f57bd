//! What is measured, and therefore wants the machine for itself: the suite `measured` runs this module alone.

use crate::feed_server::Faults;
use crate::feeds::run_feed;
use pushlab_os::process::set_niceness;
use pushlab_workload::plan::{Phases, Plan};
use pushlab_workload::result::LoadResult;

/// Messages of 50 ms.
const WINDOW: usize = 10;

/// What deliveries took beyond the delay, ns: the median of the window in which it is lowest.
fn lowest_median(result: &LoadResult, delay_ns: u64) -> i64 {
    let mut windows = vec![Vec::new(); 300 / WINDOW];
    for row in &result.deliveries {
        windows[row.sequence as usize / WINDOW].push((row.delivered_ns - row.intended_ns) as i64 - delay_ns as i64);
    }
    let median = |mut window: Vec<i64>| {
        window.sort_unstable();
        window[window.len() / 2]
    };
    windows.into_iter().map(median).min().unwrap()
}

/// The acceptance test of the instrument. A busy machine holds up the fake server too, but not all the time: what the
/// instrument adds it adds in each window, and to the fastest deliveries.
#[test]
fn known_delays_come_back() {
    let thread = std::fs::read_link("/proc/thread-self").unwrap();
    // Before what else runs here, and so do the threads that it starts, where that is allowed.
    let _ = set_niceness(thread.file_name().unwrap().to_str().unwrap().parse().unwrap(), -20);
    for delay_ms in [5u64, 50] {
        let faults = Faults { delay_ns: delay_ms * 1_000_000, receipt_ns: Some(0), ..Faults::default() };
        let (result, _) = run_feed(faults, |plan| Plan {
            loops: 1,
            receipts: true,
            phases: Phases { load_ms: 1_500, ..plan.phases.clone() },
            ..plan
        });
        assert_eq!((result.delivered, result.lost, result.deliveries.len()), (1_200, 0, 1_200));
        let early = result.deliveries.iter().find(|row| row.delivered_ns < row.intended_ns + faults.delay_ns);
        assert!(early.is_none(), "nothing arrives before it was sent: {early:?}");
        let tenth = result.latency.quantile(0.1).unwrap() as i64 - faults.delay_ns as i64;
        let median = lowest_median(&result, faults.delay_ns);
        let told = format!("delay {delay_ms} ms: the fastest tenth is {tenth} ns off, the lowest median {median} ns");
        println!("{told}");
        assert!(tenth <= 300_000 && median <= 300_000, "{told}");
    }
}
