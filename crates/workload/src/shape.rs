//! How the load's intensity changes: a map between the time in which a schedule is steady and the real one.
//!
//! A schedule of steady pace lives in *steady time*; while the factor is 2, two of its nanoseconds pass in each real
//! one. Sender and checker compute the same map, so a stamp's instant is recognised to the nanosecond.

use crate::plan::{Phases, Plan};
use crate::scenario::{Scenario, Shape};
use crate::turns::Turns;
use pushlab_wire::stamp::RESOLUTION_NS;

/// Largest factor.
pub const MAX_FACTOR: f64 = 1_000.0;
/// Most steps of a shape.
pub const MAX_STEPS: usize = 64;
/// Most publications of a Poisson process, on average: at 40 bytes each, the map takes 40 MB.
pub const MAX_INSTANTS: u64 = 1_000_000;

/// Publications of a storm's warm-up: clients learn from them where they are.
const BEFORE_STORM: u32 = 3;

/// Time between two publications that clients of a storm miss, ns: together they take half of the load phase, so that all
/// clients are gone before the first and none is back before the last.
pub fn storm_period_ns(missed: u32, phases: &Phases) -> u64 {
    phases.load_ms.saturating_mul(1_000_000) / 2 / u64::from(missed.max(1))
}

/// A shape that no load can have.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BadShape {
    /// Negative, too large, or no number.
    #[error("the shape's factor is {factor}: it must be 0 to {MAX_FACTOR}")]
    Factor {
        /// What it was.
        factor: f64,
    },
    /// More clients than there are.
    #[error(
        "the shape's factor is {factor}: for scenario request it is the share of clients that ask, 0 to 1; use more \
         clients"
    )]
    Share {
        /// What it was.
        factor: f64,
    },
    /// Every factor is 0.
    #[error("every factor of the shape is 0: nothing would ever be sent; use scenario idle for that")]
    Nothing,
    /// No step, or too many.
    #[error("the shape has {count} factors: it must have 1 to {MAX_STEPS}")]
    Steps {
        /// How many it has.
        count: usize,
    },
    /// A spike that has no length or does not end in time.
    #[error(
        "a spike at {at_ms} ms of {length_ms} ms: it must last at least 1 ms and lie within the load phase, which lasts \
         {load_ms} ms"
    )]
    Spike {
        /// When it begins.
        at_ms: u64,
        /// How long it lasts.
        length_ms: u64,
        /// Length of the load phase.
        load_ms: u64,
    },
    /// Nothing to change the intensity of.
    #[error("scenario idle sends nothing: its shape must be steady")]
    Idle,
    /// A rate that is the scenario's own.
    #[error(
        "scenario storm publishes while nobody is connected: its shape must be steady; use another number of missed"
    )]
    Storm,
    /// Each client's next message follows from the answer to its last.
    #[error("scenario request sends each message after the answer to the last: its shape cannot be poisson")]
    Answers,
    /// A map that would take too much memory.
    #[error(
        "shape poisson allows at most {MAX_INSTANTS} publications in warm-up and load, on average, not {count}: shorten \
         them or lower the rate"
    )]
    Instants {
        /// How many there would be on average.
        count: u64,
    },
    /// No rate to change.
    #[error("scenario fan-out follows its deliveries: its shape must be steady; use another window")]
    FanOut,
}

/// Part of the time in which the factor changes evenly, if at all.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Segment {
    /// Where it begins in steady time, ns.
    steady_ns: f64,
    /// Where it begins in real time, ns.
    real_ns: u64,
    /// Real length, ns; at least 1.
    length_ns: u64,
    from: f64,
    to: f64,
}

/// The map of one run's warm-up and load, both times counted from the beginning of the warm-up. At most
/// [`MAX_STEPS`] + 2 segments of 40 bytes, or one for each publication of a Poisson process.
#[derive(Debug, Clone, PartialEq)]
pub struct Warp {
    /// In order; the last has no end and the factor 1.
    segments: Vec<Segment>,
}

impl Warp {
    /// The map of a steady load that is on in a run's turns alone.
    pub fn of_turns(turns: &Turns, phases: &Phases) -> Self {
        let total_ns = phases.warm_up_ms.saturating_add(phases.load_ms).saturating_mul(1_000_000);
        Self::join(turns.parts(total_ns).into_iter().map(|(length_ns, factor)| (length_ns, factor, factor)))
    }

    /// The map that turns the evenly spaced instants of a pace (period in ns, publishers) into a Poisson process.
    ///
    /// # Errors
    /// Where these are too many, or the scenario has no pace of its own.
    pub fn of_poisson((period_ns, publishers): (u64, u32), plan: &Plan) -> Result<Self, BadShape> {
        check(&plan.scenario, [1.0].into_iter())?;
        let spacing_ns = (period_ns / u64::from(publishers.max(1))).max(1);
        let total_ns = plan.phases.warm_up_ms.saturating_add(plan.phases.load_ms).saturating_mul(1_000_000);
        let count = total_ns / spacing_ns;
        if count > MAX_INSTANTS {
            return Err(BadShape::Instants { count });
        }
        let mut rng = fastrand::Rng::with_seed(plan.seed ^ 0x70_6f_69_73);
        let mut left_ns = total_ns;
        // The last one ends after the load phase, if not with it.
        let gaps = std::iter::from_fn(|| {
            let begins = left_ns > 0;
            let gap_ns = -(1.0 - rng.f64()).ln() * spacing_ns as f64;
            // As exact as stamps are, whatever the last digit of a logarithm on this machine.
            let gap_ns = ((gap_ns / RESOLUTION_NS as f64).round() as u64).max(1) * RESOLUTION_NS;
            let factor = spacing_ns as f64 / gap_ns as f64;
            left_ns = left_ns.saturating_sub(gap_ns);
            begins.then_some((gap_ns, factor, factor))
        });
        Ok(Self::join(gaps))
    }

    /// The map of what clients of a storm receive before they are cut off, and of what they miss.
    fn of_storm(missed: u32, phases: &Phases) -> Self {
        const MS: u64 = 1_000_000;
        let [warm_up_ns, load_ns] = [phases.warm_up_ms, phases.load_ms].map(|ms| ms.saturating_mul(MS));
        let period_ns = storm_period_ns(missed, phases);
        // Half a period more than the last takes, so that no rounding moves one over a border.
        let before = (f64::from(BEFORE_STORM) - 0.5) * period_ns as f64 / warm_up_ns.max(1) as f64;
        let quiet_ns = load_ns / 4;
        let missed_ns = period_ns * u64::from(missed);
        let parts = [
            (warm_up_ns, before),
            (quiet_ns, 0.0),
            (missed_ns, 1.0),
            (load_ns.saturating_sub(quiet_ns + missed_ns), 0.0),
        ];
        let parts = parts.into_iter().filter(|(length_ns, _)| *length_ns > 0);
        Self::join(parts.map(|(length_ns, factor)| (length_ns, factor, factor)))
    }

    /// The map of a shape; `None` for a steady rate, and for `Poisson`, whose map is [`Self::of_poisson`]. The warm-up has the factor with which the load
    /// phase begins.
    ///
    /// # Errors
    /// See [`BadShape`].
    pub fn of(shape: &Shape, scenario: &Scenario, phases: &Phases) -> Result<Option<Self>, BadShape> {
        const MS: u64 = 1_000_000;
        let load_ns = phases.load_ms.saturating_mul(MS);
        let parts: Vec<(u64, f64, f64)> = match *shape {
            Shape::Steady => {
                return Ok(match *scenario {
                    Scenario::Storm { missed, .. } => Some(Self::of_storm(missed, phases)),
                    _ => None,
                });
            }
            Shape::Poisson if matches!(scenario, Scenario::Request { .. }) => return Err(BadShape::Answers),
            Shape::Poisson => return check(scenario, [1.0].into_iter()).map(|()| None),
            Shape::Ramp { from, to } => vec![(load_ns, from, to)],
            Shape::Spike { factor, at_ms, length_ms } => {
                let rest_ms = phases.load_ms.checked_sub(at_ms).and_then(|rest| rest.checked_sub(length_ms));
                let Some(rest_ms) = rest_ms.filter(|_| length_ms > 0) else {
                    return Err(BadShape::Spike { at_ms, length_ms, load_ms: phases.load_ms });
                };
                let parts = [(at_ms, 1.0), (length_ms, factor), (rest_ms, 1.0)];
                parts.into_iter().map(|(ms, factor)| (ms.saturating_mul(MS), factor, factor)).collect()
            }
            Shape::Step { ref factors } => {
                if !(1..=MAX_STEPS).contains(&factors.len()) {
                    return Err(BadShape::Steps { count: factors.len() });
                }
                let edge = |i: usize| (u128::from(load_ns) * i as u128 / factors.len() as u128) as u64;
                factors.iter().enumerate().map(|(i, &factor)| (edge(i + 1) - edge(i), factor, factor)).collect()
            }
        };
        check(scenario, parts.iter().flat_map(|&(_, from, to)| [from, to]))?;
        let parts = parts.into_iter().filter(|&(length_ns, ..)| length_ns > 0);
        let first = parts.clone().next().map_or(1.0, |(_, from, _)| from);
        let warm_up = (phases.warm_up_ms.saturating_mul(MS), first, first);
        Ok(Some(Self::join([warm_up].into_iter().filter(|&(length_ns, ..)| length_ns > 0).chain(parts))))
    }

    fn join(parts: impl Iterator<Item = (u64, f64, f64)>) -> Self {
        let mut next = Segment { steady_ns: 0.0, real_ns: 0, length_ns: u64::MAX, from: 1.0, to: 1.0 };
        let mut segments = Vec::new();
        for (length_ns, from, to) in parts {
            segments.push(Segment { length_ns, from, to, ..next });
            next.steady_ns += (from + to) / 2.0 * length_ns as f64;
            next.real_ns = next.real_ns.saturating_add(length_ns);
        }
        segments.push(next);
        Self { segments }
    }

    /// When an instant of steady time really is. Never decreases; instants at which the factor is 0 are never
    /// the answer.
    #[inline]
    pub fn real_ns(&self, steady_ns: u64) -> u64 {
        let steady = steady_ns as f64;
        // Segments of factor 0 begin in steady time where the next one does, which is the one wanted.
        let place = self.segments.partition_point(|segment| segment.steady_ns <= steady) - 1;
        let Segment { steady_ns: begin, real_ns, length_ns, from, to } = self.segments[place];
        let passed = steady - begin;
        let offset = if passed <= 0.0 {
            0.0
        } else if from == to {
            passed / from
        } else {
            // passed = from · x + slope · x² / 2, solved for x in the form that loses no digits and needs no slope
            // other than 0.
            let slope = (to - from) / length_ns as f64;
            let square = from * from + 2.0 * slope * passed;
            2.0 * passed / (from + square.max(0.0).sqrt())
        };
        real_ns.saturating_add((offset as u64).min(length_ns))
    }

    /// The factor at a real instant.
    pub fn factor_at(&self, real_ns: u64) -> f64 {
        let place = self.segments.partition_point(|segment| segment.real_ns <= real_ns) - 1;
        let Segment { real_ns: begin, length_ns, from, to, .. } = self.segments[place];
        from + (to - from) * ((real_ns - begin) as f64 / length_ns as f64)
    }
}

fn check(scenario: &Scenario, factors: impl Iterator<Item = f64>) -> Result<(), BadShape> {
    let mut is_nothing = true;
    for factor in factors {
        if !(0.0..=MAX_FACTOR).contains(&factor) {
            return Err(BadShape::Factor { factor });
        }
        if matches!(scenario, Scenario::Request { .. }) && factor > 1.0 {
            return Err(BadShape::Share { factor });
        }
        is_nothing &= factor == 0.0;
    }
    match scenario {
        Scenario::Idle => Err(BadShape::Idle),
        Scenario::FanOut { .. } => Err(BadShape::FanOut),
        Scenario::Storm { .. } => Err(BadShape::Storm),
        _ if is_nothing => Err(BadShape::Nothing),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ECHO: Scenario = Scenario::Echo { interval_ms: 1, payload_bytes: 22, streamed: false };

    fn phases(warm_up_ms: u64, load_ms: u64) -> Phases {
        Phases { connect_ms: 0, warm_up_ms, idle_ms: 0, load_ms, drain_ms: 0, after_ms: 0 }
    }

    fn warp(shape: &Shape, warm_up_ms: u64, load_ms: u64) -> Result<Warp, BadShape> {
        Ok(Warp::of(shape, &ECHO, &phases(warm_up_ms, load_ms))?.unwrap())
    }

    fn any_factor() -> impl Strategy<Value = f64> {
        prop_oneof![Just(0.0), Just(1.0), Just(MAX_FACTOR), 0.001..10.0f64]
    }

    proptest! {
        #[test]
        fn time_never_goes_back_and_each_part_gets_its_share(
            warm_up in 0u64..50, load in 1u64..5_000, factors in prop::collection::vec(any_factor(), 1..=MAX_STEPS),
        ) {
            prop_assume!(factors.iter().any(|&factor| factor > 0.0));
            let warp = warp(&Shape::Step { factors }, warm_up, load).unwrap();
            for pair in warp.segments.windows(2) {
                let [here, next] = pair else { unreachable!() };
                prop_assert_eq!(here.real_ns + here.length_ns, next.real_ns);
                let steady = next.steady_ns - here.steady_ns;
                for tenth in 0..10 {
                    let at = (here.steady_ns + steady * f64::from(tenth) / 10.0) as u64;
                    let real = warp.real_ns(at);
                    prop_assert!(real <= warp.real_ns(at + 1));
                    if here.from > 0.0 && at as f64 >= here.steady_ns {
                        let expected = here.real_ns as f64 + (at as f64 - here.steady_ns) / here.from;
                        prop_assert!((real as f64 - expected).abs() <= 1.0, "{} {}", real, expected);
                    }
                }
            }
        }

        #[test]
        fn a_ramp_is_the_inverse_of_its_integral(from in any_factor(), to in any_factor(), load in 1u64..100_000_000, part in 0.0..1.0f64) {
            prop_assume!(from != to);
            let warp = warp(&Shape::Ramp { from, to }, 0, load).unwrap();
            let length = load as f64 * 1e6;
            let x = part * length;
            let integral = |x: f64| from * x + (to - from) * x * x / 2.0 / length;
            let steady = integral(x) as u64;
            let real = warp.real_ns(steady) as f64;
            let slack = integral(length) * 1e-12;
            prop_assert!(integral(real) <= steady as f64 + slack && steady as f64 <= integral(real + 1.0) + slack);
        }

        #[test]
        fn a_ramp_from_one_to_one_changes_nothing(at in 0u64..1 << 50, warm_up in 0u64..50, load in 0u64..5_000) {
            prop_assert_eq!(warp(&Shape::Ramp { from: 1.0, to: 1.0 }, warm_up, load).unwrap().real_ns(at), at);
        }
    }

    #[test]
    fn the_warm_up_has_the_factor_with_which_the_load_begins() {
        let factor = |shape, at_ms: u64| warp(&shape, 100, 1_000).unwrap().factor_at(at_ms * 1_000_000);
        let ramp = Shape::Ramp { from: 0.5, to: 2.5 };
        assert_eq!([0, 99, 100, 600].map(|at| factor(ramp.clone(), at)), [0.5, 0.5, 0.5, 1.5]);
        let step = Shape::Step { factors: vec![3.0, 0.0, 1.0, 2.0] };
        assert_eq!([0, 349, 350, 600, 1_099].map(|at| factor(step.clone(), at)), [3.0, 3.0, 0.0, 1.0, 2.0]);
        let spike = |at_ms| Shape::Spike { factor: 9.0, at_ms, length_ms: 10 };
        assert_eq!([0, 100, 109, 110].map(|at| factor(spike(0), at)), [9.0, 9.0, 9.0, 1.0]);
        assert_eq!([0, 199, 200, 209, 210].map(|at| factor(spike(100), at)), [1.0, 1.0, 9.0, 9.0, 1.0]);
        assert_eq!(factor(spike(990), 1_099), 9.0);
    }

    #[test]
    fn impossible_shapes_are_refused() {
        for factor in [-0.1, MAX_FACTOR + 1.0, f64::INFINITY] {
            let refused = warp(&Shape::Ramp { from: 1.0, to: factor }, 0, 9).unwrap_err();
            assert_eq!(refused, BadShape::Factor { factor });
        }
        assert!(matches!(warp(&Shape::Ramp { from: f64::NAN, to: 1.0 }, 0, 9), Err(BadShape::Factor { .. })));
        assert!(warp(&Shape::Ramp { from: 0.0, to: MAX_FACTOR }, 0, 9).is_ok());
        assert_eq!(warp(&Shape::Step { factors: vec![0.0; 3] }, 0, 9), Err(BadShape::Nothing));
        for count in [0, MAX_STEPS + 1] {
            assert_eq!(warp(&Shape::Step { factors: vec![1.0; count] }, 0, 9), Err(BadShape::Steps { count }));
        }
        assert!(warp(&Shape::Step { factors: vec![1.0; MAX_STEPS] }, 0, 9).is_ok());
        for (at_ms, length_ms, is_good) in [(0, 9, true), (5, 4, true), (5, 5, false), (10, 1, false), (3, 0, false)] {
            assert_eq!(
                warp(&Shape::Spike { factor: 2.0, at_ms, length_ms }, 0, 9).is_ok(),
                is_good,
                "{at_ms} {length_ms}"
            );
        }
        let silent = Warp::of(&Shape::Ramp { from: 0.0, to: 1.0 }, &Scenario::Idle, &phases(0, 9));
        assert_eq!(silent, Err(BadShape::Idle));
        assert_eq!(Warp::of(&Shape::Steady, &Scenario::Idle, &phases(0, 9)), Ok(None));
        let request = Scenario::Request { payload_bytes: 22 };
        let share = Warp::of(&Shape::Step { factors: vec![0.5, 1.5] }, &request, &phases(0, 9));
        assert_eq!(share, Err(BadShape::Share { factor: 1.5 }));
    }
}
