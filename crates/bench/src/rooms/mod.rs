//! Rooms: each subscriber is in ten of a hundred, drawn at random, so that hardly two want the same. Our server's
//! processor time per delivery and latency, divided by those of the best of the peers that are installed.
//!
//! In each repeat every side is a fresh server with a load of its own, all connected throughout, and takes a segment in
//! each of several rounds, whose order changes: what follows of a drift hits all alike. A repeat's ratio is the median
//! over its rounds. All get the same rate: deliveries of 100,000 a second, or less where one could not take that.
//!
//! Our server runs as for its users: larger rooms are written to through io_uring, where the kernel allows it.
//!
//! Writes are counted by the subscribers' kernel, as segments with data: `/proc/PID/io` does not count `send`, and
//! counting system calls by a tracepoint needs tracefs, which is often not there.

pub mod load;
mod side;

use crate::figure::{Figure, rounded};
use crate::processor::Cores;
use crate::scale::{Load, Scale};
use anyhow::Context as _;
use load::{PER_CLIENT, Plan};
use pushlab_stats::median;
use serde_json::{Map, Value, json};
use side::{Segment, Side};
use std::time::Duration;

/// Deliveries a second, if all can take them.
const DELIVERIES_PER_S: f64 = 100_000.0;
/// Of what the slowest side can take, so much is asked of all: latency is that of delivering, not of a queue.
const OF_CAPACITY: f64 = 0.6;
/// Publications on their way while it is tried how much a side can take.
const WINDOW: u32 = 8;
/// Rounds of a repeat.
const ROUNDS: usize = 4;
/// Segments are longer than those of other figures, because a publication to a room of 1,900 is a larger piece of work.
const LONGER: u32 = 3;

/// The servers that stand beside ours, each with what makes it wait in the kernel instead of asking again and again.
const PEERS: [(&str, &[(&str, &str)]); 2] = [("bun", &[]), ("uwebsockets", &[("BLOCKS", "1")])];
/// How our own side is called.
const OURS: &str = "pushlab";

/// All segments of one side at one size, by repeat.
type Repeats = Vec<Vec<Segment>>;

/// What was measured with one number of subscribers.
struct Measured {
    clients: u32,
    publications_per_s: u32,
    /// Ours, and then the peers.
    sides: Vec<(&'static str, Repeats)>,
    /// Peers that are not there, and why.
    absent: Map<String, Value>,
    /// Why there are no cache misses, if there are none.
    no_misses: Option<String>,
    /// Whether ours could write through io_uring.
    has_ring: bool,
}

/// Measures what is asked for by name.
pub fn measure(names: &[&'static str], scale: &Scale, cores: Cores) -> anyhow::Result<Vec<Figure>> {
    let asked = |name: &&&'static str| name.starts_with("rooms/");
    let is_asked = |name: &str| names.contains(&name);
    let mut measured = [None, None];
    for (place, clients) in ["rooms/1000", "rooms/19000"].into_iter().zip(scale.rooms).enumerate() {
        let (name, clients) = clients;
        if is_asked("rooms/growth") || names.iter().any(|asked| asked.starts_with(name)) {
            measured[place] = Some(measure_size(clients, scale, cores)?);
        }
    }
    let figure = |&name: &&'static str| match (name, &measured) {
        ("rooms/growth", [Some(few), Some(many)]) => growth(name, few, many),
        ("rooms/1000" | "rooms/1000-p99", [Some(measured), _])
        | ("rooms/19000" | "rooms/19000-p99", [_, Some(measured)]) => {
            let of: fn(&Segment) -> f64 = if name.ends_with("p99") { |s| s.p99_ms } else { |s| s.cpu_us };
            measured.figure(name, of)
        }
        _ => anyhow::bail!("nothing measures {name}"),
    };
    names.iter().filter(asked).map(figure).collect()
}

fn measure_size(clients: u32, scale: &Scale, cores: Cores) -> anyhow::Result<Measured> {
    let rooms = Plan::rooms(clients);
    let members = f64::from(clients) * f64::from(PER_CLIENT) / f64::from(rooms.count());
    let segment = scale.segment * LONGER;
    let mut measured = Measured {
        clients,
        publications_per_s: 0,
        sides: Vec::new(),
        absent: Map::new(),
        no_misses: None,
        has_ring: false,
    };
    for repeat in 0..scale.repeats {
        let mut sides = gather(clients, cores, &mut measured)?;
        if repeat == 0 {
            let rate = DELIVERIES_PER_S.min(OF_CAPACITY * capacity(&mut sides, scale.warm_up)?);
            measured.publications_per_s = ((rate / members).round() as u32).max(1);
            measured.sides = sides.iter().map(|side| (side.name, Vec::new())).collect();
        }
        let load = Load::PerSecond(measured.publications_per_s);
        let mut segments = vec![Vec::new(); sides.len()];
        for side in &mut sides {
            side.run(load, scale.warm_up)?;
        }
        for round in 0..ROUNDS {
            let mut order: Vec<usize> = (0..sides.len()).collect();
            order.rotate_left(round / 2 % sides.len());
            if round % 2 == 1 {
                order.reverse();
            }
            for index in order {
                segments[index].push(sides[index].run(load, segment)?);
            }
        }
        for (segments, (_, repeats)) in segments.into_iter().zip(&mut measured.sides) {
            repeats.push(segments);
        }
    }
    Ok(measured)
}

/// A fresh one of every side that is to be had.
fn gather(clients: u32, cores: Cores, measured: &mut Measured) -> anyhow::Result<Vec<Side>> {
    let mut sides = vec![Side::ours(OURS, clients, cores).context("our server")?];
    for (index, (name, environment)) in PEERS.into_iter().enumerate() {
        match side::find(name) {
            Err(why) => drop(measured.absent.insert(name.to_owned(), why.to_string().into())),
            Ok(installed) => {
                let family = 21 + u8::try_from(index)?;
                let side = Side::peer(name, installed, environment, clients, family, cores);
                sides.push(side.with_context(|| format!("the peer {name}"))?);
            }
        }
    }
    measured.no_misses = sides[0].why_no_misses();
    measured.has_ring = sides[0].has_ring()?;
    Ok(sides)
}

/// Deliveries a second that the slowest side can take.
fn capacity(sides: &mut [Side], duration: Duration) -> anyhow::Result<f64> {
    let mut lowest = f64::INFINITY;
    for side in sides {
        // The first of a virtual machine's publications are interpreted.
        side.run(Load::Saturation { window_max: WINDOW }, duration)?;
        lowest = lowest.min(side.run(Load::Saturation { window_max: WINDOW }, duration)?.per_second);
    }
    Ok(lowest)
}

impl Measured {
    /// Our side's figure divided by that of the peer in whom it is lowest.
    fn figure(&self, name: &'static str, of: fn(&Segment) -> f64) -> anyhow::Result<Figure> {
        let best = self.sides[1..].iter().min_by(|a, b| middle(&a.1, of).total_cmp(&middle(&b.1, of)));
        let sides: Map<String, Value> = self.sides.iter().map(|side| (side.0.to_owned(), describe(&side.1))).collect();
        let mut detail = json!({
            "headline": "ours / the best peer's: median of the repeats, of which each has the median of its rounds",
            "clients": self.clients,
            "publications_per_s": self.publications_per_s,
            "best_peer": best.map(|side| side.0),
            "sides": sides,
            "absent": self.absent,
            "writes": "segments with data that the subscribers' kernel counted (tcp_info)",
            "no_cache_misses": self.no_misses,
            "ours_has_ring": self.has_ring,
        });
        let Some((_, theirs)) = best else { return Ok(Figure::absent(name, detail)) };
        let ratios = ratios(&self.sides[0].1, theirs, of);
        detail["repeats"] = ratios.iter().copied().map(rounded).collect();
        Figure::of_repeats(name, &ratios, detail)
    }
}

/// How much more a delivery costs among many.
fn growth(name: &'static str, few: &Measured, many: &Measured) -> anyhow::Result<Figure> {
    let cpu: fn(&Segment) -> f64 = |segment| segment.cpu_us;
    let each = |of: &Repeats| of.iter().map(|rounds| middle(std::slice::from_ref(rounds), cpu)).collect::<Vec<_>>();
    let of = |(few, many): (&Repeats, &Repeats)| -> Vec<f64> {
        each(few).iter().zip(each(many)).map(|(few, many)| many / few).collect()
    };
    let sides = few.sides.iter().zip(&many.sides);
    let all: Map<String, Value> = sides
        .map(|((side, few), (_, many))| {
            let repeats = of((few, many));
            ((*side).to_owned(), json!(median(&repeats).map(rounded)))
        })
        .collect();
    let ratios = of((&few.sides[0].1, &many.sides[0].1));
    let detail = json!({
        "headline": "CPU per delivery among the many / among the few; median of the repeats",
        "clients": [few.clients, many.clients],
        "sides": all,
        "repeats": ratios.iter().copied().map(rounded).collect::<Vec<_>>(),
    });
    Figure::of_repeats(name, &ratios, detail)
}

fn middle(repeats: &[Vec<Segment>], of: fn(&Segment) -> f64) -> f64 {
    median(&repeats.iter().flatten().map(of).collect::<Vec<_>>()).unwrap_or(f64::NAN)
}

/// For each repeat, the median over its rounds of ours divided by theirs.
fn ratios(ours: &Repeats, theirs: &Repeats, of: fn(&Segment) -> f64) -> Vec<f64> {
    let of_rounds = |(ours, theirs): (&Vec<Segment>, &Vec<Segment>)| {
        let rounds: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| of(ours) / of(theirs)).collect();
        median(&rounds)
    };
    ours.iter().zip(theirs).filter_map(of_rounds).collect()
}

/// One side for the reader: medians over all its segments.
fn describe(repeats: &Repeats) -> Value {
    let misses: Option<Vec<f64>> = repeats.iter().flatten().map(|segment| segment.misses).collect();
    json!({
        "cpu_us": rounded(middle(repeats, |s| s.cpu_us)),
        "p50_ms": rounded(middle(repeats, |s| s.p50_ms)),
        "p99_ms": rounded(middle(repeats, |s| s.p99_ms)),
        "writes_per_delivery": rounded(middle(repeats, |s| s.writes)),
        "cache_misses_per_delivery": misses.and_then(|misses| median(&misses)).map(rounded),
        "deliveries_per_s": rounded(middle(repeats, |s| s.per_second)),
        "late": rounded(middle(repeats, |s| s.late)),
    })
}
