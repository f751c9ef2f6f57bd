//! Fan-out: processor time per delivery of the limit, divided by ours. 1 is as good as raw sockets can be.
//!
//! The headline is the geometric mean over *all* loads: low rates, where a publication costs a wake-up and a write
//! each, count as much as saturation, where corking hides what a server does besides. The detail has each load.
//!
//! In each repeat both sides are fresh processes with their subscribers connected throughout; each load runs
//! limit, ours, ours, limit, so that a slow drift of the machine hits both alike.

use crate::audience::Audience;
use crate::connect::PATIENCE;
use crate::figure::{Figure, geometric_mean, rounded};
use crate::frames::{PAYLOAD, learn_delivery, subscription};
use crate::processor::Cores;
use crate::publisher::Publisher;
use crate::scale::{Load, Scale};
use crate::subject::{Role, Subject};
use anyhow::ensure;
use pushlab_stats::median;
use pushlab_wire::transport::Transport;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Publications on their way in an open loop, at most: a subject that is this far behind has not failed, but more
/// would only measure its queue.
const OPEN_WINDOW_MAX: u64 = 256;

/// What one side did in one or more segments.
#[derive(Debug, Default, Clone, Copy)]
struct Work {
    deliveries: u64,
    cpu_ns: u64,
    bytes: u64,
    elapsed: Duration,
    /// Publications that left later than a whole interval after their instant.
    late: u64,
}

/// The limit or our server, its publisher and its subscribers.
struct Side {
    subject: Subject,
    publisher: Publisher,
    audience: Audience,
}

/// Measures one transport.
pub fn measure(name: &'static str, transport: Transport, scale: &Scale, cores: Cores) -> anyhow::Result<Figure> {
    let mut headlines = Vec::new();
    let mut pairs: Vec<Vec<(Work, Work)>> = vec![Vec::new(); scale.loads.len()];
    let mut delivery_bytes = 0;
    for _ in 0..scale.repeats {
        let (mut limit, mut ours) = sides(transport, scale, cores, &mut delivery_bytes)?;
        let mut ratios = Vec::new();
        for (load, pairs) in scale.loads.iter().zip(&mut pairs) {
            limit.run(*load, scale.warm_up)?;
            ours.run(*load, scale.warm_up)?;
            let first = limit.run(*load, scale.segment)?;
            let ours = ours.run(*load, scale.segment)?.plus(ours.run(*load, scale.segment)?);
            let limit = first.plus(limit.run(*load, scale.segment)?);
            ratios.push(limit.cpu_us() / ours.cpu_us());
            pairs.push((limit, ours));
        }
        headlines.push(geometric_mean(&ratios));
    }
    let loads = scale.loads.iter().zip(&pairs).map(|(load, pairs)| detail(*load, pairs)).collect::<Vec<_>>();
    let detail = json!({
        "headline": "geometric mean over the loads of (CPU per delivery of the limit / ours); median of the repeats",
        "repeats": headlines.iter().copied().map(rounded).collect::<Vec<_>>(),
        "subscribers": scale.subscribers,
        "payload_bytes": PAYLOAD.len(),
        "delivery_bytes": delivery_bytes,
        "loads": loads,
    });
    Figure::of_repeats(name, &headlines, detail)
}

/// A fresh pair. The limit delivers the very bytes that our server was seen to deliver.
fn sides(
    transport: Transport,
    scale: &Scale,
    cores: Cores,
    delivery_bytes: &mut usize,
) -> anyhow::Result<(Side, Side)> {
    let server = Subject::start(Role::Server { core: cores.subject })?;
    let mut publisher = Publisher::to_server(server.address())?;
    let delivery = learn_delivery(transport, &server, &mut publisher)?;
    *delivery_bytes = delivery.len();
    let ours = Side::new(server, publisher, scale, 0, &subscription(transport))?;
    let limit = Subject::start(Role::LimitOfFanout { core: cores.subject })?;
    let publisher = Publisher::to_limit(limit.address(), &delivery)?;
    let limit = Side::new(limit, publisher, scale, 1, b"")?;
    Ok((limit, ours))
}

impl Side {
    fn new(
        subject: Subject,
        publisher: Publisher,
        scale: &Scale,
        family: u8,
        request: &[u8],
    ) -> anyhow::Result<Self> {
        let mut audience = Audience::new()?;
        audience.grow(scale.subscribers, subject.address(), family, request, None)?;
        Ok(Self { subject, publisher, audience })
    }

    /// Publishes for some time and waits until all of it has been delivered.
    fn run(&mut self, load: Load, duration: Duration) -> anyhow::Result<Work> {
        let subscribers = self.audience.len() as u64;
        let cpu_before = self.subject.cpu_ns()?;
        let (deliveries, bytes) = (self.audience.deliveries, self.audience.bytes);
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
                let due = due(load, elapsed, published, under_way);
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
            elapsed,
            late,
        })
    }
}

/// What is to be published now.
struct Due {
    count: u64,
    late: u64,
    /// Time until something more may be due.
    next: Duration,
}

fn due(load: Load, elapsed: Duration, published: u64, under_way: u64) -> Due {
    match load {
        Load::Saturation { window_max } => {
            let count = u64::from(window_max).saturating_sub(under_way);
            Due { count, late: 0, next: Duration::from_millis(10) }
        }
        Load::PerSecond(rate) => {
            let scheduled = (elapsed.as_secs_f64() * f64::from(rate)) as u64 + 1;
            let count = scheduled.saturating_sub(published).min(OPEN_WINDOW_MAX.saturating_sub(under_way));
            let next = Duration::from_secs_f64((published + count) as f64 / f64::from(rate)).saturating_sub(elapsed);
            Due { count, late: count.saturating_sub(1), next: next.min(Duration::from_millis(10)) }
        }
    }
}

impl Work {
    fn plus(self, other: Self) -> Self {
        Self {
            deliveries: self.deliveries + other.deliveries,
            cpu_ns: self.cpu_ns + other.cpu_ns,
            bytes: self.bytes + other.bytes,
            elapsed: self.elapsed + other.elapsed,
            late: self.late + other.late,
        }
    }

    fn cpu_us(self) -> f64 {
        self.cpu_ns as f64 / 1000.0 / self.deliveries as f64
    }

    fn per_second(self) -> f64 {
        self.deliveries as f64 / self.elapsed.as_secs_f64()
    }
}

/// One load for the reader: medians over the repeats.
fn detail(load: Load, pairs: &[(Work, Work)]) -> Value {
    let middle = |figure: &dyn Fn(&(Work, Work)) -> f64| {
        median(&pairs.iter().map(figure).collect::<Vec<_>>()).map(rounded)
    };
    let bytes = |work: &Work| work.bytes as f64 / work.deliveries as f64;
    json!({
        "load": load,
        "cpu_ratio": middle(&|(limit, ours)| limit.cpu_us() / ours.cpu_us()),
        "throughput_ratio": middle(&|(limit, ours)| ours.per_second() / limit.per_second()),
        "limit_cpu_us": middle(&|(limit, _)| limit.cpu_us()),
        "ours_cpu_us": middle(&|(_, ours)| ours.cpu_us()),
        "limit_deliveries_per_s": middle(&|(limit, _)| limit.per_second()),
        "ours_deliveries_per_s": middle(&|(_, ours)| ours.per_second()),
        "limit_bytes": middle(&|(limit, _)| bytes(limit)),
        "ours_bytes": middle(&|(_, ours)| bytes(ours)),
        "limit_late": middle(&|(limit, _)| limit.late as f64),
        "ours_late": middle(&|(_, ours)| ours.late as f64),
    })
}
