//! Our server beside its peers: its processor time per delivery and latency, divided by those of the best of the peers
//! that are installed.
//!
//! In `rooms` each subscriber is in ten of a hundred rooms, drawn at random, so that hardly two want the same. In `peers`
//! all are in one room and nowhere else, so that each publication goes to everybody.
//!
//! In each repeat every side is a fresh server with a load of its own, all connected throughout, and takes a segment in
//! each of several rounds, whose order changes: what follows of a drift hits all alike. A repeat's ratio is the median
//! over its rounds. All get the same rate: deliveries of 100,000 a second, or less where one could not take that.
//!
//! Our server runs as for its users: larger rooms are written to through io_uring, where the kernel allows it. In `peers`
//! it stands there a second time, with plain writes, to show what the ring brings; the ratio does not know of it.
//!
//! With `--against`, the server of another build takes the peers' place, and both write plainly.
//!
//! Writes are counted by the subscribers' kernel, as segments with data: `/proc/PID/io` does not count `send`, and
//! counting system calls by a tracepoint needs tracefs, which is often not there.

pub mod load;
mod side;

use crate::baseline::{AGAINST, Baseline};
use crate::figure::{Figure, rounded};
use crate::processor::Cores;
use crate::scale::{Load, Scale};
use crate::subject::FanOut;
use anyhow::Context as _;
use load::{Shape, mean_members};
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

/// The servers that stand beside ours.
const PEERS: [&str; 2] = ["bun", "socketify"];
/// Our own side, first of all sides.
const OURS: (&str, FanOut) = ("pushlab", FanOut::Auto);
/// Our own side without a ring.
const OURS_WRITE: (&str, FanOut) = ("pushlab-write", FanOut::Write);
/// What `--against` puts in the peers' place, and our own side then.
const OTHER_BUILD: &str = "other";
const OURS_AGAINST: (&str, FanOut) = ("pushlab", FanOut::Write);
/// Source addresses of the first side; each has its own.
const FIRST_FAMILY: u8 = 20;
/// Ends the name of a figure of latency.
const P99: &str = "-p99";
/// The figure that needs both sizes of rooms.
const GROWTH: &str = "rooms/growth";

/// All segments of one side at one size, by repeat.
type Repeats = Vec<Vec<Segment>>;

/// What is measured at once, on the same sides.
#[derive(Debug, Clone, Copy)]
struct Size {
    /// Name of its figure of processor time.
    name: &'static str,
    shape: Shape,
    /// Our own sides, as for users first.
    ours: &'static [(&'static str, FanOut)],
}

/// What was measured of one size.
struct Measured {
    size: Size,
    publications_per_s: u32,
    /// Ours, as for users first, and then the peers.
    sides: Vec<(&'static str, Repeats)>,
    /// Peers that are not there, and why.
    absent: Map<String, Value>,
    /// Why there are no cache misses, if there are none.
    no_misses: Option<String>,
    /// Whether ours could write through io_uring.
    has_ring: bool,
}

/// Measures the figure of a name, and those others of `names` that come with it.
pub fn measure(name: &str, names: &[&'static str], scale: &Scale, cores: Cores) -> anyhow::Result<Vec<Figure>> {
    let names: Vec<&'static str> = names.iter().copied().filter(|other| group(other) == group(name)).collect();
    let sizes = sizes(scale).into_iter().filter(|size| names.iter().any(|name| size.is_needed_for(name)));
    let measured = sizes.map(|size| measure_size(size, scale, cores)).collect::<anyhow::Result<Vec<_>>>()?;
    let figure = |&name: &&'static str| {
        if let (GROWTH, [few, many]) = (name, &measured[..]) {
            return growth(name, few, many);
        }
        let measured = measured.iter().find(|measured| measured.size.is_needed_for(name));
        let of: fn(&Segment) -> f64 = if name.ends_with(P99) { |s| s.p99_ms } else { |s| s.cpu_us };
        measured.with_context(|| format!("nothing measures {name}"))?.figure(name, of)
    };
    names.iter().map(figure).collect()
}

/// What is measured together has one group: all of rooms, whose growth needs both sizes, but of peers each size.
fn group(name: &str) -> &str {
    if name.starts_with("rooms/") { "rooms" } else { name.strip_suffix(P99).unwrap_or(name) }
}

fn sizes(scale: &Scale) -> Vec<Size> {
    let rooms = ["rooms/1000", "rooms/19000"].into_iter().zip(scale.rooms);
    let rooms = rooms.map(|(name, clients)| Size { name, shape: Shape::rooms(clients), ours: &[OURS] });
    let peers = ["peers/100", "peers/1000", "peers/9000"].into_iter().zip(scale.peers);
    let ours = &[OURS, OURS_WRITE];
    rooms.chain(peers.map(|(name, clients)| Size { name, shape: Shape::broadcast(clients), ours })).collect()
}

impl Size {
    fn is_needed_for(&self, figure: &str) -> bool {
        let plain = [P99, AGAINST].iter().find_map(|end| figure.strip_suffix(end)).unwrap_or(figure);
        self.name == plain || figure == GROWTH && group(self.name) == group(GROWTH)
    }
}

fn measure_size(size: Size, scale: &Scale, cores: Cores) -> anyhow::Result<Measured> {
    let members = mean_members(&size.shape.draw());
    let segment = scale.segment * LONGER;
    let mut measured = Measured {
        size,
        publications_per_s: 0,
        sides: Vec::new(),
        absent: Map::new(),
        no_misses: None,
        has_ring: false,
    };
    for repeat in 0..scale.repeats {
        let mut sides = gather(&scale.baseline, cores, &mut measured)?;
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
fn gather(baseline: &Baseline, cores: Cores, measured: &mut Measured) -> anyhow::Result<Vec<Side>> {
    let Size { shape, ours, .. } = measured.size;
    let mut families = FIRST_FAMILY..=u8::MAX;
    let mut family = || families.next().context("there are more sides than source addresses");
    let mut sides = Vec::new();
    if let Baseline::Other(program) = baseline {
        sides.push(Side::ours(OURS_AGAINST, None, shape, family()?, cores)?);
        sides.push(Side::ours((OTHER_BUILD, FanOut::Write), Some(program), shape, family()?, cores)?);
        return Ok(sides);
    }
    for &own in ours {
        let side = Side::ours(own, None, shape, family()?, cores);
        sides.push(side.with_context(|| format!("our server, {}", own.0))?);
    }
    for name in PEERS {
        match side::find(name) {
            Err(why) => drop(measured.absent.insert(name.to_owned(), why.to_string().into())),
            Ok(installed) => {
                let side = Side::peer(name, installed, shape, family()?, cores);
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
    /// Our side's figure divided by that of the peer in whom it is lowest, or by that of another build.
    fn figure(&self, name: &'static str, of: fn(&Segment) -> f64) -> anyhow::Result<Figure> {
        let peers = self.sides.iter().filter(|side| side.0 == OTHER_BUILD || PEERS.contains(&side.0));
        let best = peers.min_by(|a, b| middle(&a.1, of).total_cmp(&middle(&b.1, of)));
        let sides: Map<String, Value> = self.sides.iter().map(|side| (side.0.to_owned(), describe(&side.1))).collect();
        let mut detail = json!({
            "headline": "ours / the best peer's, or the other build's: median of the repeats, of which each has the median of its rounds",
            "clients": self.size.shape.clients,
            "rooms": self.size.shape.rooms,
            "rooms_per_client": self.size.shape.rooms_per_client,
            "publications_per_s": self.publications_per_s,
            "best_peer": best.map(|side| side.0),
            "sides": sides,
            "absent": self.absent,
            "writes": "segments with data that the subscribers' kernel counted (tcp_info)",
            "no_cache_misses": self.no_misses,
            "ours_has_ring": self.has_ring,
        });
        if let Some((_, plain)) = self.sides.iter().find(|side| side.0 == OURS_WRITE.0) {
            let ratio = median(&ratios(&self.sides[0].1, plain, of));
            detail["ratio_to_plain_writes"] = ratio.map(rounded).into();
        }
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
        "clients": [few.size.shape.clients, many.size.shape.clients],
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::goals;

    fn segment(cpu_us: f64) -> Segment {
        Segment { cpu_us, p50_ms: 1.0, p99_ms: 2.0, writes: 1.0, misses: None, per_second: 1e5, late: 0.0 }
    }

    fn measured(sides: &[(&'static str, f64)]) -> Measured {
        let size = sizes(&Scale::full()).into_iter().find(|size| size.name == "peers/1000").unwrap();
        let sides = sides.iter().map(|&(name, cpu_us)| (name, vec![vec![segment(cpu_us); ROUNDS]; 2])).collect();
        Measured { size, publications_per_s: 100, sides, absent: Map::new(), no_misses: None, has_ring: true }
    }

    #[test]
    fn every_figure_has_its_size() {
        let sizes = sizes(&Scale::full());
        let of = |name| sizes.iter().filter(|size| size.is_needed_for(name)).collect::<Vec<_>>();
        for goal in goals().filter(|goal| goal.name.starts_with("rooms/") || goal.name.starts_with("peers/")) {
            match (goal.name, &of(goal.name)[..]) {
                (GROWTH, [few, many]) => assert!(few.shape.clients < many.shape.clients),
                (name, [size]) => assert!(size.name.ends_with(&format!("/{}", size.shape.clients)), "{name}: {size:?}"),
                (name, sizes) => panic!("{name}: {sizes:?}"),
            }
        }
    }

    #[test]
    fn only_rooms_are_measured_all_at_once() {
        assert_eq!(group("rooms/1000"), group(GROWTH));
        assert_eq!(group("peers/1000"), group("peers/1000-p99"));
        assert_ne!(group("peers/100"), group("peers/1000"));
    }

    #[test]
    fn plain_writes_are_shown_but_are_no_peer() {
        let sides = [("pushlab", 2.0), ("pushlab-write", 1.0), ("bun", 5.0), ("socketify", 4.0)];
        let figure = measured(&sides).figure("peers/1000", |s| s.cpu_us).unwrap().to_json();
        assert_eq!((&figure["value"], &figure["detail"]["best_peer"]), (&json!(0.5), &json!("socketify")));
        assert_eq!(figure["detail"]["ratio_to_plain_writes"], 2.0);
        assert_eq!(figure["detail"]["sides"]["pushlab-write"]["cpu_us"], 1.0);
        let alone = measured(&sides[..2]).figure("peers/1000", |s| s.cpu_us).unwrap().to_json();
        assert!(alone["value"].is_null() && alone["detail"]["best_peer"].is_null());
    }
}
