//! Two servers side by side: each with its publisher and subscribers, measured in turn.
//!
//! Both are fresh processes with their subscribers connected throughout. Each load runs in the order of
//! [`crate::scale::ORDER`]: a drift of the machine hits both alike, and each side follows itself as often as the other.
//! Segments that follow each other make pairs, and a load's ratio is the median of its pairs', because one disturbed
//! segment must not move it.

use crate::audience::{Audience, Peer};
use crate::connect::PATIENCE;
use crate::figure::{geometric_mean, rounded};
use crate::publisher::Publisher;
use crate::scale::{Load, ORDER, Scale};
use crate::subject::Subject;
use anyhow::{Context as _, ensure};
use pushlab_stats::median;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// What one side did in one segment.
#[derive(Debug, Clone, Copy)]
pub struct Work {
    deliveries: u64,
    cpu_ns: u64,
    bytes: u64,
    reads: u64,
    elapsed: Duration,
    /// Publications that left later than a whole interval after their instant.
    late: u64,
}

/// The two sides' work in segments that follow each other: the baseline's, then ours.
pub type Pair = (Work, Work);

/// A server or limit, its publisher and its subscribers.
pub struct Side<P: Peer> {
    /// The process.
    pub subject: Subject,
    /// Who publishes to it.
    pub publisher: Publisher,
    /// Who is connected to it.
    pub audience: Audience<P>,
    /// Subscribers on all connections.
    pub subscribers: usize,
}

/// Who is compared, and how.
pub struct Terms<'a> {
    /// What the baseline is called.
    pub baseline: &'a str,
    /// The ratio of what a delivery costs the baseline and us.
    pub ratio: &'a dyn Fn(f64, f64) -> f64,
}

/// Measures both with each load; adds the pairs of segments to those of earlier repeats, and gives the geometric mean of
/// the loads' ratios.
pub fn compare<A: Peer, B: Peer>(
    base: &mut Side<A>,
    ours: &mut Side<B>,
    loads: &[Load],
    scale: &Scale,
    terms: &Terms<'_>,
    pairs: &mut Vec<Vec<Pair>>,
) -> anyhow::Result<f64> {
    pairs.resize_with(loads.len(), Vec::new);
    let mut ratios = Vec::new();
    for (load, pairs) in loads.iter().zip(pairs) {
        base.run(*load, scale.warm_up)?;
        ours.run(*load, scale.warm_up)?;
        let (mut of_base, mut of_ours) = (Vec::new(), Vec::new());
        for is_base in ORDER {
            match is_base {
                true => of_base.push(base.run(*load, scale.segment)?),
                false => of_ours.push(ours.run(*load, scale.segment)?),
            }
        }
        let segments: Vec<Pair> = of_base.into_iter().zip(of_ours).collect();
        let of_segments: Vec<f64> =
            segments.iter().map(|(base, ours)| (terms.ratio)(base.cpu_us(), ours.cpu_us())).collect();
        ratios.push(median(&of_segments).context("there are no segments")?);
        pairs.extend(segments);
    }
    Ok(geometric_mean(&ratios))
}

impl<P: Peer> Side<P> {
    /// Publishes for some time and waits until all of it has been delivered.
    pub fn run(&mut self, load: Load, duration: Duration) -> anyhow::Result<Work> {
        let subscribers = self.subscribers as u64;
        let cpu_before = self.subject.cpu_ns()?;
        let seen = &self.audience.tally;
        let (deliveries, bytes, reads) = (seen.deliveries, seen.bytes, seen.reads);
        let start = Instant::now();
        let mut published = 0;
        let mut late = 0;
        let mut until = start + duration + PATIENCE;
        loop {
            let received = self.audience.tally.deliveries - deliveries;
            let under_way = published - received / subscribers;
            let elapsed = start.elapsed();
            let is_over = elapsed >= duration && published > 0;
            if is_over && received >= published * subscribers {
                break;
            }
            let mut timeout = Duration::from_millis(10);
            if !is_over {
                let due = load.due(elapsed, published, under_way);
                if due.count > 0 {
                    late += due.late;
                    self.publisher.publish(due.count)?;
                    published += due.count;
                    until = Instant::now() + PATIENCE;
                }
                timeout = due.next;
            }
            self.audience.read(timeout)?;
            ensure!(Instant::now() < until, "deliveries are missing: {received} of {}", published * subscribers);
        }
        let elapsed = start.elapsed();
        // What the subject does behind its last write belongs to it.
        std::thread::sleep(Duration::from_millis(2));
        let seen = &self.audience.tally;
        let received = seen.deliveries - deliveries;
        ensure!(received == published * subscribers, "{received} deliveries of {published} publications");
        Ok(Work {
            deliveries: received,
            cpu_ns: self.subject.cpu_ns()? - cpu_before,
            bytes: seen.bytes - bytes,
            reads: seen.reads - reads,
            elapsed,
            late,
        })
    }
}

impl Work {
    /// Processor time of the subject for a delivery.
    pub fn cpu_us(self) -> f64 {
        self.cpu_ns as f64 / 1000.0 / self.deliveries as f64
    }

    /// Bytes of the socket for a delivery.
    pub fn delivery_bytes(self) -> f64 {
        self.bytes as f64 / self.deliveries as f64
    }

    fn per_second(self) -> f64 {
        self.deliveries as f64 / self.elapsed.as_secs_f64()
    }

    /// Who is behind corks more and pays less for a delivery: without this, a disturbed run looks like a fast one.
    fn deliveries_per_read(self) -> f64 {
        self.deliveries as f64 / self.reads as f64
    }
}

/// Each load for the reader: medians over the pairs of segments of all repeats.
pub fn details(loads: &[Load], pairs: &[Vec<Pair>], terms: &Terms<'_>) -> Vec<Value> {
    loads.iter().zip(pairs).map(|(load, pairs)| detail(*load, pairs, terms)).collect()
}

fn detail(load: Load, pairs: &[Pair], terms: &Terms<'_>) -> Value {
    let name = terms.baseline;
    let middle = |figure: &dyn Fn(&Pair) -> f64| median(&pairs.iter().map(figure).collect::<Vec<_>>()).map(rounded);
    json!({
        "load": load,
        "cpu_ratio": middle(&|(base, ours)| (terms.ratio)(base.cpu_us(), ours.cpu_us())),
        "throughput_ratio": middle(&|(base, ours)| ours.per_second() / base.per_second()),
        (format!("{name}_cpu_us")): middle(&|(base, _)| base.cpu_us()),
        "ours_cpu_us": middle(&|(_, ours)| ours.cpu_us()),
        (format!("{name}_deliveries_per_s")): middle(&|(base, _)| base.per_second()),
        "ours_deliveries_per_s": middle(&|(_, ours)| ours.per_second()),
        (format!("{name}_bytes")): middle(&|(base, _)| base.delivery_bytes()),
        "ours_bytes": middle(&|(_, ours)| ours.delivery_bytes()),
        (format!("{name}_deliveries_per_read")): middle(&|(base, _)| base.deliveries_per_read()),
        "ours_deliveries_per_read": middle(&|(_, ours)| ours.deliveries_per_read()),
        (format!("{name}_late")): middle(&|(base, _)| base.late as f64),
        "ours_late": middle(&|(_, ours)| ours.late as f64),
    })
}
