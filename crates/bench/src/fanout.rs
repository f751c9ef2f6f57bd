//! Fan-out: processor time per delivery of the limit, divided by ours. 1 is as good as raw sockets can be.
//!
//! `fanout` has a `write` for each subscriber on both sides, `fanout-uring` many sends in one call of io_uring.
//!
//! The headline is the geometric mean over *all* loads: low rates, where a publication costs a wake-up and a write
//! each, count as much as saturation, where corking hides what a server does besides. The detail has each load.
//!
//! In each repeat both sides are fresh processes with their subscribers connected throughout. Each load runs in the
//! order limit, ours, ours, limit, ours, limit, limit, ours: a drift of the machine hits both alike, and each side
//! follows itself as often as the other. Segments that follow each other make pairs, and a repeat's ratio is the median
//! of its pairs', because one disturbed segment must not move it.
//!
//! With `--against`, the server of another build takes the limit's place, and its processor time divides ours.

use crate::audience::Audience;
use crate::baseline::Baseline;
use crate::connect::PATIENCE;
use crate::delivery;
use crate::figure::{Figure, geometric_mean, rounded};
use crate::frames::{PAYLOAD, subscription};
use crate::processor::Cores;
use crate::publisher::Publisher;
use crate::scale::{Load, ORDER, Scale};
use crate::subject::{Role, Subject};
use anyhow::{Context as _, ensure};
use pushlab_server::Io;
use pushlab_stats::median;
use pushlab_wire::transport::Transport;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// What one side did in one segment.
#[derive(Debug, Clone, Copy)]
struct Work {
    deliveries: u64,
    cpu_ns: u64,
    bytes: u64,
    reads: u64,
    elapsed: Duration,
    /// Publications that left later than a whole interval after their instant.
    late: u64,
}

/// The baseline or our server, its publisher and its subscribers.
struct Side {
    subject: Subject,
    publisher: Publisher,
    audience: Audience,
}

/// Measures one transport.
pub fn measure(
    name: &'static str,
    transport: Transport,
    io: Io,
    scale: &Scale,
    cores: Cores,
) -> anyhow::Result<Figure> {
    let mut headlines = Vec::new();
    let mut pairs: Vec<Vec<(Work, Work)>> = vec![Vec::new(); scale.loads.len()];
    let mut delivery_bytes = 0;
    for _ in 0..scale.repeats {
        let (mut base, mut ours) = sides(transport, io, scale, cores, &mut delivery_bytes)?;
        let mut ratios = Vec::new();
        for (load, pairs) in scale.loads.iter().zip(&mut pairs) {
            base.run(*load, scale.warm_up)?;
            ours.run(*load, scale.warm_up)?;
            let (mut of_base, mut of_ours) = (Vec::new(), Vec::new());
            for is_base in ORDER {
                let (side, works) = if is_base { (&mut base, &mut of_base) } else { (&mut ours, &mut of_ours) };
                works.push(side.run(*load, scale.segment)?);
            }
            let segments: Vec<(Work, Work)> = of_base.into_iter().zip(of_ours).collect();
            let of_segments: Vec<f64> =
                segments.iter().map(|(base, ours)| scale.baseline.ratio(base.cpu_us(), ours.cpu_us())).collect();
            ratios.push(median(&of_segments).context("there are no segments")?);
            pairs.extend(segments);
        }
        headlines.push(geometric_mean(&ratios));
    }
    let loads =
        scale.loads.iter().zip(&pairs).map(|(load, pairs)| detail(&scale.baseline, *load, pairs)).collect::<Vec<_>>();
    let ratio = scale.baseline.ratio_in_words();
    let detail = json!({
        "headline": format!("geometric mean over the loads of (CPU per delivery, {ratio}); median of the repeats"),
        "repeats": headlines.iter().copied().map(rounded).collect::<Vec<_>>(),
        "subscribers": scale.subscribers,
        "payload_bytes": PAYLOAD.len(),
        "delivery_bytes": delivery_bytes,
        "loads": loads,
    });
    Figure::of_repeats(name, &headlines, detail)
}

/// A fresh pair: the baseline and ours. The limit delivers the very bytes that our server was seen to deliver.
fn sides(
    transport: Transport,
    io: Io,
    scale: &Scale,
    cores: Cores,
    delivery_bytes: &mut usize,
) -> anyhow::Result<(Side, Side)> {
    let request = subscription(transport);
    let publisher_of = |server: &Subject| {
        let mut publisher = Publisher::to_server(server.address())?;
        let delivery = delivery::learn(transport, server, &mut publisher)?;
        server.ensure_io(io)?;
        anyhow::Ok((publisher, delivery))
    };
    let server = Subject::start(Role::Server { core: cores.subject, io: io.into() })?;
    let (publisher, delivery) = publisher_of(&server)?;
    *delivery_bytes = delivery.len();
    let start_limit = |family| {
        let limit = Subject::start(Role::LimitOfFanout { core: cores.subject, uring: io == Io::Uring })?;
        let publisher = Publisher::to_limit(limit.address(), &delivery)?;
        Side::new(limit, publisher, scale, family, &request)
    };
    let ours = if scale.is_null_test { start_limit(0)? } else { Side::new(server, publisher, scale, 0, &request)? };
    let Some(program) = scale.baseline.program() else { return Ok((start_limit(1)?, ours)) };
    let other = Subject::start_server(Some(program), cores.subject)?;
    let (publisher, _) = publisher_of(&other)?;
    Ok((Side::new(other, publisher, scale, 1, &request)?, ours))
}

impl Side {
    fn new(subject: Subject, publisher: Publisher, scale: &Scale, family: u8, request: &[u8]) -> anyhow::Result<Self> {
        let mut audience = Audience::new()?;
        audience.grow(scale.subscribers, subject.address(), family, |_| request, None)?;
        Ok(Self { subject, publisher, audience })
    }

    /// Publishes for some time and waits until all of it has been delivered.
    fn run(&mut self, load: Load, duration: Duration) -> anyhow::Result<Work> {
        let subscribers = self.audience.len() as u64;
        let cpu_before = self.subject.cpu_ns()?;
        let (deliveries, bytes, reads) = (self.audience.deliveries, self.audience.bytes, self.audience.reads);
        let start = Instant::now();
        let mut published = 0;
        let mut late = 0;
        let mut until = start + duration + PATIENCE;
        loop {
            let received = self.audience.deliveries - deliveries;
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
        let received = self.audience.deliveries - deliveries;
        ensure!(received == published * subscribers, "{received} deliveries of {published} publications");
        Ok(Work {
            deliveries: received,
            cpu_ns: self.subject.cpu_ns()? - cpu_before,
            bytes: self.audience.bytes - bytes,
            reads: self.audience.reads - reads,
            elapsed,
            late,
        })
    }
}

impl Work {
    fn cpu_us(self) -> f64 {
        self.cpu_ns as f64 / 1000.0 / self.deliveries as f64
    }

    fn per_second(self) -> f64 {
        self.deliveries as f64 / self.elapsed.as_secs_f64()
    }
}

/// One load for the reader: medians over the pairs of segments of all repeats.
fn detail(baseline: &Baseline, load: Load, pairs: &[(Work, Work)]) -> Value {
    let name = baseline.name();
    let middle =
        |figure: &dyn Fn(&(Work, Work)) -> f64| median(&pairs.iter().map(figure).collect::<Vec<_>>()).map(rounded);
    let bytes = |work: &Work| work.bytes as f64 / work.deliveries as f64;
    // Who is behind corks more and pays less for a delivery: without this, a disturbed run looks like a fast one.
    let corked = |work: &Work| work.deliveries as f64 / work.reads as f64;
    json!({
        "load": load,
        "cpu_ratio": middle(&|(base, ours)| baseline.ratio(base.cpu_us(), ours.cpu_us())),
        "throughput_ratio": middle(&|(base, ours)| ours.per_second() / base.per_second()),
        (format!("{name}_cpu_us")): middle(&|(base, _)| base.cpu_us()),
        "ours_cpu_us": middle(&|(_, ours)| ours.cpu_us()),
        (format!("{name}_deliveries_per_s")): middle(&|(base, _)| base.per_second()),
        "ours_deliveries_per_s": middle(&|(_, ours)| ours.per_second()),
        (format!("{name}_bytes")): middle(&|(base, _)| bytes(base)),
        "ours_bytes": middle(&|(_, ours)| bytes(ours)),
        (format!("{name}_deliveries_per_read")): middle(&|(base, _)| corked(base)),
        "ours_deliveries_per_read": middle(&|(_, ours)| corked(ours)),
        (format!("{name}_late")): middle(&|(base, _)| base.late as f64),
        "ours_late": middle(&|(_, ours)| ours.late as f64),
    })
}
