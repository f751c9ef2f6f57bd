//! One measured ratio, its goal, and how both are shown.

use anyhow::Context as _;
use pushlab_stats::{interval_of_mean, median};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// What is demanded of a figure.
#[derive(Debug, Clone, Copy)]
pub struct Goal {
    /// Name of the figure.
    pub name: &'static str,
    /// Unit of value, interval and goals.
    pub unit: &'static str,
    /// The first goal.
    pub goal: f64,
    /// Where it is to end.
    pub aim: f64,
    /// Whether less is better.
    pub is_upper_bound: bool,
    /// What of the figure has to meet it.
    pub what: What,
}

/// A part of a figure that is held against its goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The value.
    Value,
    /// The whole interval: the goal is met for certain.
    Whole,
    /// The better end of the interval: the goal is missed only if that is certain.
    BetterEnd,
    /// Nothing: there is no goal.
    Nothing,
}

const fn ratio(name: &'static str, goal: f64, aim: f64) -> Goal {
    Goal { name, unit: "ratio", goal, aim, is_upper_bound: false, what: What::Value }
}

const fn memory(name: &'static str, goal: f64, aim: f64) -> Goal {
    Goal { name, unit: "KiB", goal, aim, is_upper_bound: true, what: What::Value }
}

const fn generator(name: &'static str) -> Goal {
    Goal { name, unit: "deliveries/s", goal: 250_000.0, aim: 300_000.0, is_upper_bound: false, what: What::Value }
}

/// A ratio whose interval has to stay below the goal, which is the aim too.
const fn at_most(name: &'static str, goal: f64) -> Goal {
    Goal { name, unit: "ratio", goal, aim: goal, is_upper_bound: true, what: What::Whole }
}

/// A ratio whose interval may touch the goal, which is the aim too.
const fn not_above(name: &'static str, goal: f64) -> Goal {
    Goal { what: What::BetterEnd, ..at_most(name, goal) }
}

/// A ratio that is stated and has no goal.
const fn stated(name: &'static str) -> Goal {
    Goal { name, unit: "ratio", goal: f64::NAN, aim: f64::NAN, is_upper_bound: true, what: What::Nothing }
}

/// Another client's latency during an attack, whose goal comes with the figure, and what the attack makes the server's
/// memory grow by, MiB.
macro_rules! flood {
    ($name:literal) => {
        flood!($name, 8.0)
    };
    ($name:literal, $mib:literal) => {
        [latency(concat!("floods/", $name)), growth(concat!("floods/", $name, "-memory"), $mib)]
    };
}

/// The same where as much is kept as may be; and what the kernel holds besides, MiB.
macro_rules! hoard {
    ($name:literal) => {{
        let [latency, memory] = flood!($name, 72.0);
        [latency, memory, growth(concat!("floods/", $name, "-kernel"), 150.0)]
    }};
}

const fn latency(name: &'static str) -> Goal {
    Goal { name, unit: "ms", goal: f64::NAN, aim: f64::NAN, is_upper_bound: true, what: What::Value }
}

const fn growth(name: &'static str, goal: f64) -> Goal {
    Goal { name, unit: "MiB", goal, aim: goal, is_upper_bound: true, what: What::Value }
}

/// Ours divided by another build's.
const fn against(name: &'static str) -> Goal {
    at_most(name, 1.03)
}

/// All figures but those of attacks.
const GOALS: [Goal; 55] = [
    ratio("fanout/websocket", 0.80, 0.90),
    ratio("fanout/sse", 0.80, 0.85),
    ratio("fanout/http-streaming", 0.80, 0.85),
    against("fanout/websocket-against"),
    against("fanout/sse-against"),
    against("fanout/http-streaming-against"),
    ratio("fanout-uring/websocket", 0.80, 0.90),
    ratio("fanout-uring/sse", 0.80, 0.85),
    ratio("fanout-uring/http-streaming", 0.80, 0.85),
    at_most("http2/websocket", 1.5),
    at_most("http2/sse", 1.5),
    at_most("http2/websocket-12", 1.0),
    at_most("http2/sse-12", 1.0),
    at_most("compression/1000", 1.05),
    stated("compression/10"),
    stated("compression/1"),
    stated("compression/bytes-100"),
    stated("compression/bytes-1024"),
    stated("compression/bytes-16384"),
    at_most("rooms/1000", 1.05),
    against("rooms/1000-against"),
    at_most("rooms/1000-p99", 1.15),
    at_most("rooms/19000", 1.05),
    against("rooms/19000-against"),
    at_most("rooms/19000-p99", 1.15),
    // Nine tenths of a delivery are the kernel's, whose sockets fall out of the caches: peers grow by as much.
    Goal { goal: 2.5, ..at_most("rooms/growth", 2.0) },
    // Below 300 members we write as the peers do, so there is little to win.
    not_above("peers/100", 1.0),
    not_above("peers/100-p99", 1.0),
    at_most("peers/1000", 0.90),
    not_above("peers/1000-p99", 1.0),
    at_most("peers/9000", 0.90),
    not_above("peers/9000-p99", 1.0),
    // Of a second in which 5,000 clients are moved; what it is without is in the detail.
    Goal { unit: "ms", ..stated("handover/p99") },
    Goal { unit: "count", what: What::Whole, ..at_most("handover/refused", 0.0) },
    Goal { unit: "count", what: What::Whole, ..at_most("handover/lost", 0.0) },
    ratio("poll/replies", 0.50, 0.60),
    ratio("poll/immediate", 0.50, 0.60),
    against("poll/replies-against"),
    against("poll/immediate-against"),
    memory("memory/websocket", 2.5, 0.5),
    memory("memory/websocket-other", 2.5, 0.5),
    memory("memory/sse", 2.5, 0.5),
    memory("memory/sse-other", 2.5, 0.5),
    memory("memory/http-streaming", 2.5, 0.5),
    memory("memory/http-streaming-other", 2.5, 0.5),
    memory("memory/long-polling", 4.0, 1.0),
    memory("memory/long-polling-other", 4.0, 1.0),
    memory("memory/http2", 40.0, 40.0),
    memory("memory/http2-stream", 2.0, 2.0),
    generator("generator/websocket"),
    generator("generator/websocket-corked"),
    against("generator/websocket-against"),
    against("generator/websocket-corked-against"),
    Goal {
        name: "link/packets",
        unit: "packets/s",
        goal: 50_000.0,
        aim: 150_000.0,
        is_upper_bound: false,
        what: What::Value,
    },
    Goal { name: "link/round-trip", unit: "µs", goal: 60.0, aim: 30.0, is_upper_bound: true, what: What::Value },
];

/// Those of the attacks, which are measured last.
const FLOODS: [[Goal; 2]; 24] = [
    flood!("rapid-reset"),
    flood!("forced-reset"),
    flood!("settings"),
    flood!("ping"),
    flood!("continuation"),
    flood!("hpack"),
    flood!("tiny-windows"),
    flood!("empty-data"),
    flood!("window-update"),
    flood!("unread"),
    flood!("bombs"),
    flood!("small-bombs"),
    flood!("subscriptions"),
    flood!("polls"),
    flood!("publications"),
    flood!("upgrades"),
    // Two hashes of passwords are made at once, and each takes 19 MiB: less is guessed faster.
    flood!("log-ins", 40.0),
    flood!("tokens-rs256"),
    flood!("tokens-es256"),
    flood!("tokens-eddsa"),
    flood!("presence-one"),
    flood!("presence-rooms"),
    flood!("presence-many"),
    flood!("presence-asked"),
];

/// Those of the attacks by what the server keeps.
const HOARDS: [[Goal; 3]; 20] = [
    hoard!("slow-websocket-http1"),
    hoard!("slow-websocket-http2"),
    hoard!("slow-websocket-tls"),
    hoard!("slow-sse-http1"),
    hoard!("slow-sse-http2"),
    hoard!("slow-sse-tls"),
    hoard!("slow-streaming-http1"),
    hoard!("slow-streaming-http2"),
    hoard!("slow-streaming-tls"),
    hoard!("slow-polling-http1"),
    hoard!("slow-polling-http2"),
    hoard!("slow-polling-tls"),
    hoard!("half-head-http1"),
    hoard!("half-head-http2"),
    hoard!("half-message-http1"),
    hoard!("half-message-http2"),
    hoard!("half-body-http1"),
    hoard!("half-body-http2"),
    hoard!("half-hello-tls"),
    hoard!("half-record-tls"),
];

/// Every figure, in the order in which they are measured; those of `--against` among them.
pub fn goals() -> impl Iterator<Item = &'static Goal> {
    GOALS.iter().chain(FLOODS.as_flattened()).chain(HOARDS.as_flattened())
}

/// The confidence of every interval.
const CONFIDENCE: f64 = 0.95;

/// A figure with its 95 % interval.
pub struct Figure {
    name: &'static str,
    value: f64,
    low: f64,
    high: f64,
    repeats: usize,
    /// Its goal and aim, if they depend on what was measured beside it.
    goal: Option<f64>,
    detail: Value,
}

impl Figure {
    /// From one figure for each repeat: their median, which one disturbed repeat does not move, and the interval of
    /// their mean, which it widens. Where the median lies outside of that interval, the interval reaches to it.
    pub fn of_repeats(name: &'static str, figures: &[f64], detail: Value) -> anyhow::Result<Self> {
        let interval = interval_of_mean(figures, CONFIDENCE, 1)?;
        let value = median(figures).context("there are no repeats")?;
        let (low, high) = (interval.low.min(value), interval.high.max(value));
        Ok(Self { name, value, low, high, repeats: figures.len(), goal: None, detail })
    }

    /// With an interval that was found otherwise.
    pub fn with_interval(name: &'static str, value: f64, half: f64, repeats: usize, detail: Value) -> Self {
        Self { name, value, low: value - half, high: value + half, repeats, goal: None, detail }
    }

    /// Nothing to compare with; the detail says why.
    pub fn absent(name: &'static str, detail: Value) -> Self {
        Self { name, value: f64::NAN, low: f64::NAN, high: f64::NAN, repeats: 0, goal: None, detail }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Held against a goal of its own.
    pub fn with_goal(self, goal: f64) -> Self {
        Self { goal: Some(goal), ..self }
    }

    /// Its interval: one repeat alone has none.
    fn interval(&self) -> Option<(f64, f64)> {
        let is_known = self.repeats > 1 || self.low < self.high;
        is_known.then_some((rounded(self.low), rounded(self.high)))
    }

    fn goal(&self) -> Option<Goal> {
        let goal = *goals().find(|goal| goal.name == self.name)?;
        Some(self.goal.map_or(goal, |own| Goal { goal: own, aim: own, ..goal }))
    }

    /// One line for programs.
    pub fn to_json(&self) -> Value {
        let goal = self.goal();
        json!({
            "name": self.name,
            "value": rounded(self.value),
            "unit": goal.map(|g| g.unit),
            "low": self.interval().map(|interval| interval.0),
            "high": self.interval().map(|interval| interval.1),
            "goal": goal.map(|g| rounded(g.goal)),
            "aim": goal.map(|g| rounded(g.aim)),
            "repeats": self.repeats,
            "detail": self.detail,
        })
    }
}

impl Goal {
    fn verdict_of(&self, figure: &Figure) -> &'static str {
        if figure.value.is_nan() {
            return "not measured";
        }
        self.verdict(match (self.what, self.is_upper_bound) {
            (What::Nothing, _) => return "no goal",
            (What::Value, _) => figure.value,
            (What::Whole, true) | (What::BetterEnd, false) => figure.high,
            (What::Whole, false) | (What::BetterEnd, true) => figure.low,
        })
    }

    fn verdict(&self, value: f64) -> &'static str {
        let meets = |bound: f64| if self.is_upper_bound { value <= bound } else { value >= bound };
        match (meets(self.goal), meets(self.aim)) {
            (_, true) => "goal and aim met",
            (true, false) => "goal met",
            (false, false) => "MISSED",
        }
    }
}

/// For people.
pub fn table(figures: &[Figure]) -> String {
    let mut out =
        format!("{:<34} {:>10} {:>23} {:>7} {:>7}  {:<12}\n", "name", "value", "95 % interval", "goal", "aim", "unit");
    for figure in figures {
        let Some(goal) = figure.goal() else { continue };
        let interval = match (figure.interval(), figure.repeats) {
            (Some((low, high)), _) => format!("{low} … {high}"),
            (None, 0) => "–".to_owned(),
            (None, _) => "none of one repeat".to_owned(),
        };
        writeln!(
            out,
            "{:<34} {:>10} {:>23} {:>7} {:>7}  {:<12} {}",
            figure.name,
            rounded(figure.value),
            interval,
            bound(goal.goal),
            bound(goal.aim),
            goal.unit,
            goal.verdict_of(figure)
        )
        .expect("writing to a String cannot fail");
    }
    out
}

/// A goal, if there is one.
fn bound(goal: f64) -> String {
    if goal.is_nan() { "–".to_owned() } else { rounded(goal).to_string() }
}

/// Four significant digits are more than any of this is good for.
pub fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10f64.powi(3 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

/// The mean that suits ratios: 2 and 1/2 make 1.
pub fn geometric_mean(ratios: &[f64]) -> f64 {
    (ratios.iter().map(|r| r.ln()).sum::<f64>() / ratios.len() as f64).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_to_what_they_are_worth() {
        assert_eq!(rounded(0.923_456), 0.9235);
        assert_eq!(rounded(312_345.6), 312_300.0);
        assert_eq!(rounded(0.0), 0.0);
        assert!((geometric_mean(&[2.0, 0.5]) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_median_lies_in_its_interval() {
        let figure = Figure::of_repeats("fanout/sse", &[0.9, 0.9, 0.9, 0.9, 0.2], Value::Null).unwrap();
        assert_eq!(figure.value, 0.9);
        assert!(figure.low < 0.9 && figure.high >= 0.9);
        assert!(table(&[figure]).contains("goal and aim met"));
    }

    /// One repeat says nothing of the next: an interval without width would say that it is certain.
    #[test]
    fn one_repeat_has_no_interval() {
        let one = Figure::of_repeats("fanout/sse", &[0.9], Value::Null).unwrap();
        assert_eq!((&one.to_json()["low"], &one.to_json()["value"]), (&Value::Null, &json!(0.9)));
        let shown = table(&[one]);
        assert!(shown.contains("none of one repeat") && shown.contains("goal and aim met"), "{shown}");
        let slope = Figure::with_interval("memory/sse", 0.5, 0.1, 1, Value::Null);
        assert_eq!(slope.to_json()["low"], 0.4);
        assert!(table(&[slope]).contains("0.4 … 0.6"));
        let equal = Figure::of_repeats("fanout/sse", &[0.9, 0.9], Value::Null).unwrap();
        assert_eq!(equal.to_json()["high"], 0.9);
    }

    #[test]
    fn bounds_have_a_direction() {
        assert_eq!(GOALS[0].verdict(0.85), "goal met");
        assert_eq!(memory("a", 2.5, 0.5).verdict(0.45), "goal and aim met");
        assert_eq!(memory("a", 2.5, 0.5).verdict(2.6), "MISSED");
    }

    #[test]
    fn an_interval_may_touch_a_goal_that_is_missed_only_for_certain() {
        let goal = not_above("a", 1.0);
        let verdict = |value, half| goal.verdict_of(&Figure::with_interval("a", value, half, 5, Value::Null));
        assert_eq!(verdict(0.95, 0.01), "goal and aim met");
        assert_eq!(verdict(1.02, 0.02), "goal and aim met");
        assert_eq!(verdict(1.03, 0.02), "MISSED");
        assert_eq!(verdict(f64::NAN, f64::NAN), "not measured");
    }

    #[test]
    fn a_goal_may_come_with_the_figure_or_not_at_all() {
        let figure = |name| Figure::with_interval(name, 12.0, 1.0, 5, Value::Null);
        let flood = "floods/ping";
        assert!(table(&[figure(flood).with_goal(12.5)]).contains("goal and aim met"));
        assert!(table(&[figure(flood).with_goal(11.5)]).contains("MISSED"));
        assert_eq!(figure(flood).with_goal(11.5).to_json()["goal"], 11.5);
        let stated = figure("compression/1");
        assert!(table(std::slice::from_ref(&stated)).contains("no goal"));
        assert_eq!(stated.to_json()["goal"], Value::Null);
    }

    #[test]
    fn every_figure_has_a_name_of_its_own() {
        for (at, goal) in goals().enumerate() {
            assert!(goals().take(at).all(|other| other.name != goal.name), "{}", goal.name);
        }
    }

    #[test]
    fn beside_another_build_the_whole_interval_has_to_stay_below_the_goal() {
        let name = "fanout/sse-against";
        let goal = goals().find(|goal| goal.name == name).unwrap();
        let verdict = |value, half| goal.verdict_of(&Figure::with_interval(name, value, half, 5, Value::Null));
        assert_eq!(verdict(1.02, 0.01), "goal and aim met");
        assert_eq!(verdict(0.90, 0.10), "goal and aim met");
        assert_eq!(verdict(1.02, 0.02), "MISSED");
        assert_eq!(verdict(0.90, 0.20), "MISSED");
    }
}
