//! Whether an assertion holds.

use super::samples::{CONFIDENCE, PointSamples};
use super::sides::{Find, LINE_PLACES_MIN, SidePoint, Wanted, blocks, side, wanted_points};
use super::wording::digits;
use pushlab_experiment::assertion::{Assertion, Claim, Relation, Side, Term};
use pushlab_report::{Agreement, Estimate, WhyLacking};
use pushlab_stats::{difference, interval_of_mean, slope};

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Over all places.
    pub outcome: Agreement,
    /// What an alarm asks: confirmed where some place confirms it, at a confidence corrected for the number of places;
    /// refuted where every place refutes it.
    pub somewhere: Agreement,
    /// What the means alone say, over all places; `None` where there is none.
    pub by_means: Option<Agreement>,
    /// In words, by place.
    pub detail: String,
    /// What both sides measured, a line for each place.
    pub figures: Vec<String>,
}

/// What is compared at one place.
#[derive(Debug)]
struct Place {
    /// On the axis; `None` for figures of the whole axis.
    x: Option<f64>,
    left: Vec<(u32, f64)>,
    right: Other,
    /// What both sides are, in words.
    line: String,
}

/// What the left side is compared with.
#[derive(Debug)]
enum Other {
    Number(f64),
    Samples(Vec<(u32, f64)>),
    /// Of the same repeats as the left side, in the same order.
    Paired(Vec<(u32, f64)>),
}

/// How both sides of a place are to relate.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Test {
    Less,
    Greater,
    /// Within this share of the right side.
    About(f64),
    /// Within this share of the right side from 0.
    Small(f64),
}

/// Judges an assertion. `find` gives the places of the one series that bears the words, or says why there is none.
///
/// It is confirmed when every place confirms it, and refuted when one refutes it; the latter at a confidence
/// corrected for the number of places (Bonferroni), or chance alone would refute true assertions.
pub fn judge(assertion: &Assertion, find: Find<'_>, seed: u64) -> Judgement {
    let places = match places(assertion, find, seed) {
        Ok(places) => places,
        Err(detail) => {
            let (outcome, somewhere, figures) = (Agreement::Undecided, Agreement::Undecided, Vec::new());
            return Judgement { outcome, somewhere, by_means: None, detail, figures };
        }
    };
    let test = match &assertion.claim {
        Claim::Compares(Relation::Less, _) | Claim::Falls => Test::Less,
        Claim::Compares(Relation::Greater, _) | Claim::Grows => Test::Greater,
        Claim::Compares(Relation::About(percent), _) => Test::About(percent / 100.0),
        Claim::GrowsEvenly(percent) => Test::Small(percent / 100.0),
    };
    let judge = Judge { test, is_log: assertion.left.is_ratio(), in_every_run: assertion.in_every_run, seed };
    let count = places.len().max(1) as f64;
    let corrected = 1.0 - (1.0 - CONFIDENCE) / count;
    let judged: Vec<(Option<f64>, Agreement)> =
        places.iter().map(|place| (place.x, judge.at(place, [CONFIDENCE, corrected]))).collect();
    // That it holds nowhere needs no correction: every place has to say so (Berger 1982, intersection-union tests).
    let for_alarm: Vec<Agreement> = places.iter().map(|place| judge.at(place, [corrected, CONFIDENCE])).collect();
    let (outcome, detail) = conclude(&judged);
    // What is claimed of the axis as a whole holds nowhere by itself.
    let is_of_places = matches!(assertion.claim, Claim::Compares(..));
    let somewhere = if is_of_places { somewhere(&for_alarm) } else { outcome };
    let by_means: Option<Vec<bool>> = places.iter().map(|place| judge.holds_by_means(place)).collect();
    let by_means = by_means.filter(|all| !all.is_empty()).map(|all| match all.iter().all(|holds| *holds) {
        true => Agreement::Confirmed,
        false => Agreement::Refuted,
    });
    let figures = places.iter().map(|place| judge.line(place)).collect();
    Judgement { outcome, somewhere, by_means, detail, figures }
}

/// Where both sides have figures.
fn places(assertion: &Assertion, find: Find<'_>, seed: u64) -> Result<Vec<Place>, String> {
    let wanted = Wanted { at: assertion.at, under: assertion.under };
    let term = &assertion.left;
    let right = match &assertion.claim {
        Claim::GrowsEvenly(_) => return along_line(term, wanted, find),
        Claim::Grows | Claim::Falls => return Ok(steps(term, &side(term, wanted, find, seed)?)),
        Claim::Compares(_, right) => right,
    };
    let left = side(term, wanted, find, seed)?;
    let others = match right {
        Side::Number(_) => Vec::new(),
        Side::Term(other) => side(other, wanted, find, seed)?,
    };
    let place = |point: &SidePoint| {
        let own = told(term, point.shown.as_ref());
        let (right, line) = match right {
            Side::Number(number) if term.is_ratio() => (Other::Number(number.ln()), own),
            Side::Number(number) => (Other::Number(*number), own),
            Side::Term(other) => {
                let found = others.iter().find(|one| one.x == other.at.or(point.x))?;
                (Other::Samples(scaled(found, other)), format!("{own}, {}", told(other, found.shown.as_ref())))
            }
        };
        Some(Place { x: point.x, left: scaled(point, term), right, line })
    };
    Ok(left.iter().filter_map(place).collect())
}

/// Each place on the axis against the one before.
fn steps(term: &Term, points: &[SidePoint]) -> Vec<Place> {
    let step = |pair: &[SidePoint]| {
        let [before, here] = pair else { return None };
        let line =
            format!("{}, {} at {}", told(term, here.shown.as_ref()), value(term, before.shown.as_ref()), before.x?);
        Some(Place { x: here.x, left: scaled(here, term), right: Other::Samples(scaled(before, term)), line })
    };
    points.windows(2).filter_map(step).collect()
}

/// How far each place is off a straight line, and how much the line rises over all places; a line for each repeat.
fn along_line(term: &Term, wanted: Wanted, find: Find<'_>) -> Result<Vec<Place>, String> {
    let points = wanted_points(term, wanted, find)?;
    if points.len() < LINE_PLACES_MIN {
        return Err(format!("{} places are too few to tell how it grows: {LINE_PLACES_MIN} are needed", points.len()));
    }
    let (mut rises, mut off) = (Vec::new(), vec![Vec::new(); points.len()]);
    for (repeat, block) in blocks(&points) {
        let line = slope(&block, CONFIDENCE).map_err(|error| error.to_string())?;
        let reach = points[points.len() - 1].x - points[0].x;
        rises.push((repeat, term.factor * line.per_unit * reach));
        for (own, (x, value)) in off.iter_mut().zip(block) {
            own.push((repeat, term.factor * (value - line.intercept - line.per_unit * x)));
        }
    }
    let rise = pushlab_stats::mean(&values(&rises));
    let place = |(point, left): (&PointSamples, Vec<(u32, f64)>)| {
        let share = pushlab_stats::mean(&values(&left)).zip(rise).map(|(off, rise)| 100.0 * off / rise);
        let share = share.map_or(String::new(), |share| format!(", {share:+.1} % of the rise off the line"));
        let line = told(term, point.shown.as_ref()) + &share;
        Place { x: Some(point.x), left, right: Other::Paired(rises.clone()), line }
    };
    Ok(points.iter().zip(off).map(place).collect())
}

/// `cpu(websocket) = 45.1 % (44.0 to 46.2)`: what is shown of a side, if it was reached.
fn told(term: &Term, shown: Option<&Estimate>) -> String {
    match shown {
        Some(_) => format!("{term} = {}", value(term, shown)),
        None => format!("{term} is {}", WhyLacking::NotReached.words()),
    }
}

fn value(term: &Term, shown: Option<&Estimate>) -> String {
    let Some(figure) = shown else { return WhyLacking::NotReached.words().to_owned() };
    let of = |value: f64| digits(value * term.factor);
    let value = format!("{} {}", of(figure.value), term.unit());
    let ends = (figure.runs > 1).then(|| format!(" ({} to {})", of(figure.low), of(figure.high)));
    value.trim_end().to_owned() + &ends.unwrap_or_default()
}

/// A side's samples, times its factor.
fn scaled(point: &SidePoint, term: &Term) -> Vec<(u32, f64)> {
    let scaled = |value: f64| if term.is_ratio() { value + term.factor.ln() } else { value * term.factor };
    point.samples.iter().map(|(repeat, value)| (*repeat, scaled(*value))).collect()
}

fn values(samples: &[(u32, f64)]) -> Vec<f64> {
    samples.iter().map(|(_, value)| *value).collect()
}

fn somewhere(places: &[Agreement]) -> Agreement {
    if places.contains(&Agreement::Confirmed) {
        Agreement::Confirmed
    } else if !places.is_empty() && places.iter().all(|place| *place == Agreement::Refuted) {
        Agreement::Refuted
    } else {
        Agreement::Undecided
    }
}

impl Other {
    /// Its values; a number is one.
    fn values(&self) -> Vec<f64> {
        match self {
            Self::Number(number) => vec![*number],
            Self::Samples(samples) | Self::Paired(samples) => values(samples),
        }
    }

    /// Its value in a repeat, where it has one.
    fn of(&self, repeat: u32) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Samples(samples) | Self::Paired(samples) => {
                samples.iter().find(|(own, _)| *own == repeat).map(|(_, value)| *value)
            }
        }
    }

    fn has_spread(&self) -> bool {
        matches!(self, Self::Number(_)) || self.values().len() > 1
    }
}

/// How places are judged.
struct Judge {
    test: Test,
    /// Whether the samples are logarithms.
    is_log: bool,
    in_every_run: bool,
    seed: u64,
}

impl Judge {
    /// One place; `levels` are the confidences at which the assertion is confirmed and refuted.
    fn at(&self, place: &Place, [confirm, refute]: [f64; 2]) -> Agreement {
        if self.in_every_run {
            return self.in_runs(place);
        }
        let (left, right) = (values(&place.left), &place.right);
        if let Some(agreement) = self.beyond_measure(&left, right) {
            return agreement;
        }
        let gap = |factor: f64, confidence: f64| self.gap(&left, factor, right, confidence);
        let (holds, fails) = match self.test {
            Test::Less => (
                gap(1.0, confirm).is_some_and(|(_, high)| high < 0.0),
                gap(1.0, refute).is_some_and(|(low, _)| low >= 0.0),
            ),
            Test::Greater => (
                gap(1.0, confirm).is_some_and(|(low, _)| low > 0.0),
                gap(1.0, refute).is_some_and(|(_, high)| high <= 0.0),
            ),
            // Two one-sided tests (Schuirmann 1987): equivalence is shown, not assumed from a lack of difference.
            Test::About(_) if is_equal(&left, right) => (left.len() > 1, false),
            Test::About(_) | Test::Small(_) => {
                let [near, far] = self.ends(right);
                (
                    gap(far, confirm).is_some_and(|(_, high)| high < 0.0)
                        && gap(near, confirm).is_some_and(|(low, _)| low > 0.0),
                    gap(far, refute).is_some_and(|(low, _)| low >= 0.0)
                        || gap(near, refute).is_some_and(|(_, high)| high <= 0.0),
                )
            }
        };
        match (holds, fails) {
            (_, true) => Agreement::Refuted,
            (true, false) => Agreement::Confirmed,
            (false, false) => Agreement::Undecided,
        }
    }

    /// The multiples of the right side between which the left one is to be.
    fn ends(&self, right: &Other) -> [f64; 2] {
        match self.test {
            Test::Small(share) => [-share, share],
            Test::About(share) if !self.is_log && average(right) < 0.0 => [1.0 + share, 1.0 - share],
            Test::About(share) => [1.0 - share, 1.0 + share],
            Test::Less | Test::Greater => [1.0, 1.0],
        }
    }

    /// The interval of left less `factor` × right, or of the logarithm of their quotient; `None` with too few runs.
    fn gap(&self, left: &[f64], factor: f64, right: &Other, confidence: f64) -> Option<(f64, f64)> {
        if left.len() < 2 || !right.has_spread() {
            return None;
        }
        let mean = |samples: &[f64]| interval_of_mean(samples, confidence, self.seed).ok();
        let (interval, less) = match right {
            Other::Number(number) if self.is_log => (mean(left)?, number + factor.max(0.0).ln()),
            Other::Number(number) => (mean(left)?, factor * number),
            Other::Samples(samples) if self.is_log => {
                (difference(left, &values(samples), confidence, self.seed).ok()?, factor.max(0.0).ln())
            }
            Other::Samples(samples) => {
                let right: Vec<f64> = samples.iter().map(|(_, value)| factor * value).collect();
                (difference(left, &right, confidence, self.seed).ok()?, 0.0)
            }
            Other::Paired(samples) => {
                let gaps = left.iter().zip(samples).map(|(left, (_, right))| left - factor * right);
                (mean(&gaps.collect::<Vec<_>>())?, 0.0)
            }
        };
        Some((interval.low - less, interval.high - less))
    }

    /// Where a quantile was not reached on one side it is longer than any time, and no spread is less than any; where
    /// both sides are so, not all runs are, or there is a single one, nobody knows.
    fn beyond_measure(&self, left: &[f64], right: &Other) -> Option<Agreement> {
        let is_sure = left.len() > 1 && right.has_spread();
        let (left, right) = (end(left), end(&right.values()));
        if left == Some(0.0) && right == Some(0.0) {
            return None;
        }
        let (Some(left), Some(right)) = (left, right) else { return Some(Agreement::Undecided) };
        if left == right || !is_sure {
            return Some(Agreement::Undecided);
        }
        let holds = match self.test {
            Test::Less => left < right,
            Test::Greater => left > right,
            Test::About(_) | Test::Small(_) => false,
        };
        Some(if holds { Agreement::Confirmed } else { Agreement::Refuted })
    }

    /// Whether it holds in each of the runs that there are: one that contradicts refutes it.
    fn in_runs(&self, place: &Place) -> Agreement {
        let pairs = pairs(place);
        if pairs.len() < 2 || pairs.iter().any(|(left, right)| left.is_infinite() && right.is_infinite()) {
            return Agreement::Undecided;
        }
        let holds = pairs.iter().all(|(left, right)| self.holds(*left, *right));
        if holds { Agreement::Confirmed } else { Agreement::Refuted }
    }

    /// Whether it holds of the means, whatever their intervals; `None` where there is none.
    fn holds_by_means(&self, place: &Place) -> Option<bool> {
        if self.in_every_run {
            let pairs = pairs(place);
            return (!pairs.is_empty()).then(|| pairs.iter().all(|(left, right)| self.holds(*left, *right)));
        }
        let mean = pushlab_stats::mean(&values(&place.left))?;
        Some(self.holds(mean, pushlab_stats::mean(&place.right.values())?))
    }

    fn holds(&self, left: f64, right: f64) -> bool {
        let [left, right] = if self.is_log { [left, right].map(f64::exp) } else { [left, right] };
        match self.test {
            Test::Less => left < right,
            Test::Greater => left > right,
            Test::About(share) => (left - right).abs() <= right.abs() * share,
            Test::Small(share) => left.abs() <= right * share,
        }
    }

    /// `at 300: cpu(websocket) = 45.1 % (44.0 to 46.2), cpu(sse) = 31.0 % (30.1 to 31.9)`.
    fn line(&self, place: &Place) -> String {
        let at = place.x.map_or("over the axis".to_owned(), |x| format!("at {x}"));
        if !self.in_every_run {
            return format!("{at}: {}", place.line);
        }
        let pairs = pairs(place);
        let held = pairs.iter().filter(|(left, right)| self.holds(*left, *right)).count();
        format!("{at}, in {held} of {} runs: {}", pairs.len(), place.line)
    }
}

/// Both sides in each repeat that has both.
fn pairs(place: &Place) -> Vec<(f64, f64)> {
    place.left.iter().filter_map(|(repeat, left)| Some((*left, place.right.of(*repeat)?))).collect()
}

fn average(right: &Other) -> f64 {
    pushlab_stats::mean(&right.values()).unwrap_or(0.0)
}

/// Plus or minus infinity where all samples are, 0 where all are finite; `None` where only some are.
fn end(samples: &[f64]) -> Option<f64> {
    let first = samples.first().copied().filter(|first| first.is_infinite()).unwrap_or(0.0);
    let is_alike = |sample: &f64| if first == 0.0 { sample.is_finite() } else { *sample == first };
    samples.iter().all(is_alike).then_some(first)
}

/// Whether both sides are one and the same number throughout, such as no requests at all.
fn is_equal(left: &[f64], right: &Other) -> bool {
    let Some(&first) = left.first() else { return false };
    right.has_spread() && left.iter().chain(&right.values()).all(|&value| value == first)
}

fn conclude(judged: &[(Option<f64>, Agreement)]) -> (Agreement, String) {
    let is_any = |wanted| judged.iter().any(|(_, outcome)| *outcome == wanted);
    let outcome = if is_any(Agreement::Refuted) {
        Agreement::Refuted
    } else if judged.is_empty() || is_any(Agreement::Undecided) {
        Agreement::Undecided
    } else {
        Agreement::Confirmed
    };
    if judged.is_empty() {
        return (outcome, "no point has figures for both sides".to_owned());
    }
    let named =
        [(Agreement::Confirmed, "confirmed"), (Agreement::Refuted, "refuted"), (Agreement::Undecided, "undecided")];
    let parts = named.into_iter().filter_map(|(wanted, word)| {
        let own: Vec<Option<f64>> = judged.iter().filter(|(_, outcome)| *outcome == wanted).map(|(x, _)| *x).collect();
        let places: Vec<String> = own.iter().flatten().map(f64::to_string).collect();
        let over = if places.is_empty() { "over the axis".to_owned() } else { format!("at {}", places.join(", ")) };
        (!own.is_empty()).then(|| format!("{word} {over}"))
    });
    (outcome, parts.collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_stats::Regime;

    fn judged(text: &str, websocket: &[&[f64]], sse: &[&[f64]]) -> Judgement {
        let points = |all: &[&[f64]]| -> Vec<PointSamples> {
            let regime = |i| if i == 0 { Regime::Load } else { Regime::Stress };
            let point = |(i, samples): (usize, &&[f64])| PointSamples {
                x: i as f64,
                regime: Some(regime(i)),
                samples: (1..).zip(samples.iter().copied()).collect(),
                shown: interval_of_mean(samples, CONFIDENCE, 1).ok().map(|i| Estimate {
                    value: i.value,
                    low: i.low,
                    high: i.high,
                    runs: i.runs,
                    bound: None,
                }),
            };
            all.iter().enumerate().map(point).collect()
        };
        let find = |term: &Term| match term.words[0].as_str() {
            "websocket" => Ok(points(websocket)),
            "sse" => Ok(points(sse)),
            other => Err(format!("no series bears {other}")),
        };
        judge(&Assertion::parse(text).unwrap(), &find, 1)
    }

    #[test]
    fn what_was_not_reached_is_longer_than_any_time() {
        let beyond: &[f64] = &[f64::INFINITY; 3];
        let outcome = |text: &str, a: &[f64], b: &[f64]| judged(text, &[a], &[b]).outcome;
        assert_eq!(outcome("p99(websocket) < 50", beyond, LOW), Agreement::Refuted);
        assert_eq!(outcome("p99(websocket) > 50", beyond, LOW), Agreement::Confirmed);
        assert_eq!(outcome("p99(websocket) > 50", &[f64::INFINITY], LOW), Agreement::Undecided, "a single run");
        assert_eq!(outcome("p99(websocket) < p99(sse)", LOW, beyond), Agreement::Confirmed);
        assert_eq!(outcome("p99(websocket) ≈ p99(sse) within 10 %", beyond, LOW), Agreement::Refuted);
        assert_eq!(outcome("p99(websocket) < p99(sse)", beyond, beyond), Agreement::Undecided);
        let told = judged("p99(websocket) < p99(sse)", &[beyond], &[LOW]).figures;
        assert!(told[0].starts_with("at 0: p99(websocket) is not reached, p99(sse) = 1.00 ms"), "{told:?}");
    }

    const LOW: &[f64] = &[1.0, 1.1, 0.9];
    const HIGH: &[f64] = &[2.0, 2.1, 1.9];

    #[test]
    fn intervals_decide() {
        let outcome = |text: &str, a: &[&[f64]], b: &[&[f64]]| judged(text, a, b).outcome;
        assert_eq!(outcome("cpu(websocket) < cpu(sse)", &[LOW], &[HIGH]), Agreement::Confirmed);
        assert_eq!(outcome("cpu(websocket) > cpu(sse)", &[LOW], &[HIGH]), Agreement::Refuted);
        assert_eq!(outcome("cpu(websocket) < cpu(sse)", &[LOW], &[&[0.5, 2.0, 1.0]]), Agreement::Undecided);
        assert_eq!(outcome("cpu(websocket) < cpu(sse)", &[&[1.0]], &[HIGH]), Agreement::Undecided, "one run");
        assert_eq!(outcome("cpu(websocket) < 0.25 × cpu(sse)", &[LOW], &[HIGH]), Agreement::Refuted);
        assert_eq!(outcome("cpu(websocket) < 1.5 %", &[LOW], &[]), Agreement::Confirmed);
        assert_eq!(outcome("cpu(websocket) ≈ cpu(sse) within 40 %", &[LOW], &[LOW]), Agreement::Confirmed);
        assert_eq!(outcome("cpu(websocket) ≈ cpu(sse) within 1 %", &[LOW], &[LOW]), Agreement::Undecided);
        assert_eq!(outcome("cpu(websocket) ≈ cpu(sse) within 20 %", &[LOW], &[HIGH]), Agreement::Refuted);
        let (none, falling) = ([0.0; 3], [-10.0, -10.1, -9.9]);
        assert_eq!(outcome("cpu(websocket) ≈ cpu(sse)", &[&none], &[&none]), Agreement::Confirmed);
        assert_eq!(outcome("cpu(websocket) ≈ cpu(sse)", &[&falling], &[&falling]), Agreement::Confirmed);
    }

    #[test]
    fn one_place_refutes_and_all_confirm() {
        let both = judged("cpu(websocket) < cpu(sse)", &[LOW, HIGH], &[HIGH, LOW]);
        assert_eq!((both.outcome, both.detail.as_str()), (Agreement::Refuted, "confirmed at 0; refuted at 1"));
        let at = judged("cpu(websocket) < cpu(sse) at 0", &[LOW, HIGH], &[HIGH, LOW]);
        assert_eq!(at.outcome, Agreement::Confirmed);
        let under = judged("cpu(websocket) < cpu(sse) under stress", &[LOW, HIGH], &[HIGH, LOW]);
        assert_eq!((under.outcome, under.detail.as_str()), (Agreement::Refuted, "refuted at 1"));
        let unknown = judged("cpu(websocket) < cpu(pigeon)", &[LOW], &[LOW]);
        assert_eq!((unknown.outcome, unknown.detail.as_str()), (Agreement::Undecided, "no series bears pigeon"));
    }

    #[test]
    fn each_side_may_have_its_own_place() {
        let of = |text: &str| {
            let judged = judged(text, &[LOW, HIGH], &[HIGH, HIGH]);
            (judged.outcome, judged.detail)
        };
        let at_1 = "confirmed at 1".to_owned();
        assert_eq!(of("cpu(websocket at 1) > 1.5 × cpu(websocket at 0)"), (Agreement::Confirmed, at_1.clone()));
        assert_eq!(of("cpu(websocket at 1) > cpu(websocket at 0) under load").1, at_1, "the place says where");
        assert_eq!(of("cpu(websocket at 1) ≈ cpu(sse) within 20 %"), (Agreement::Confirmed, at_1));
        assert_eq!(of("cpu(websocket at 7) > cpu(websocket at 0)").0, Agreement::Undecided);
    }

    #[test]
    fn what_single_numbers_say_is_told_and_decides_nothing() {
        let of = |text: &str| {
            let judged = judged(text, &[&[1.0], &[1.0]], &[&[2.0], &[1.05]]);
            (judged.outcome, judged.by_means)
        };
        let undecided = Agreement::Undecided;
        assert_eq!(of("cpu(websocket) < cpu(sse)"), (undecided, Some(Agreement::Confirmed)));
        assert_eq!(of("cpu(websocket) > cpu(sse)"), (undecided, Some(Agreement::Refuted)));
        assert_eq!(of("cpu(websocket) ≈ cpu(sse) within 10 %"), (undecided, Some(Agreement::Refuted)), "at one of two");
        assert_eq!(of("cpu(websocket) ≈ cpu(sse) within 10 % at 1"), (undecided, Some(Agreement::Confirmed)));
        assert_eq!(of("cpu(websocket) < cpu(sse) at 7"), (undecided, None));
    }

    #[test]
    fn what_was_judged_is_told_with_its_interval() {
        let told = judged("2 × cpu(websocket) < cpu(sse)", &[LOW], &[&[4.0]]).figures;
        assert_eq!(told.len(), 1);
        assert!(told[0].starts_with("at 0: 2 × cpu(websocket) = 2.00 % (1."), "{told:?}");
        assert!(told[0].ends_with("), cpu(sse) = 4.00 %"), "one run has no interval: {told:?}");
    }

    #[test]
    fn an_alarm_is_raised_by_one_place_and_silenced_by_all() {
        let wide = &[0.5, 2.0, 1.0][..];
        let alarm = |left: &[&[f64]]| judged("cpu(websocket) < 1.5 %", left, &[]).somewhere;
        assert_eq!(alarm(&[HIGH, LOW]), Agreement::Confirmed);
        assert_eq!(alarm(&[HIGH, HIGH]), Agreement::Refuted);
        assert_eq!(alarm(&[HIGH, wide]), Agreement::Undecided);
        assert_eq!(alarm(&[]), Agreement::Undecided);
    }

    /// Numbers of a normal distribution, the same for the same seed.
    struct Normal(u64);

    impl Normal {
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((self.0 >> 11) as f64 + 0.5) / (1u64 << 53) as f64
        }

        fn next(&mut self) -> f64 {
            (-2.0 * self.uniform().ln()).sqrt() * (2.0 * std::f64::consts::PI * self.uniform()).cos()
        }

        /// Ten runs at each place, normal around the truth.
        fn runs(&mut self, truth: &[f64], deviation: f64) -> Vec<Vec<f64>> {
            truth.iter().map(|truth| (0..10).map(|_| truth + deviation * self.next()).collect()).collect()
        }

        /// The shares of 300 experiments in which an assertion is called confirmed, and refuted.
        fn shares(&mut self, mut once: impl FnMut(&mut Self) -> Agreement) -> [f64; 2] {
            let all: Vec<Agreement> = (0..300).map(|_| once(self)).collect();
            let share = |wanted| all.iter().filter(|outcome| **outcome == wanted).count() as f64 / all.len() as f64;
            [share(Agreement::Confirmed), share(Agreement::Refuted)]
        }
    }

    fn outcome(text: &str, websocket: &[Vec<f64>], sse: &[Vec<f64>]) -> Agreement {
        let websocket: Vec<&[f64]> = websocket.iter().map(Vec::as_slice).collect();
        let sse: Vec<&[f64]> = sse.iter().map(Vec::as_slice).collect();
        judged(text, &websocket, &sse).outcome
    }

    const LINE: [f64; 6] = [10.0, 30.0, 50.0, 70.0, 90.0, 110.0];
    const PARABOLA: [f64; 6] = [10.0, 14.0, 26.0, 46.0, 74.0, 110.0];
    /// Half above the line and half below, so that no parabola tells it from one.
    const STEP: [f64; 6] = [10.0, 10.0, 10.0, 110.0, 110.0, 110.0];
    const FLAT: [f64; 6] = [10.0; 6];

    #[test]
    fn even_growth_is_told_from_a_curve_a_step_and_none() {
        let mut normal = Normal(1);
        let evenly = |truth: &[f64], deviation: f64, normal: &mut Normal| {
            outcome("cpu(websocket) grows evenly within 10 %", &normal.runs(truth, deviation), &[])
        };
        assert_eq!(evenly(&LINE, 3.0, &mut normal), Agreement::Confirmed);
        assert_eq!(evenly(&PARABOLA, 3.0, &mut normal), Agreement::Refuted);
        assert_eq!(evenly(&STEP, 3.0, &mut normal), Agreement::Refuted);
        assert_eq!(evenly(&FLAT, 3.0, &mut normal), Agreement::Undecided, "who knows whether it grows");
        assert_eq!(evenly(&LINE.map(|y| 120.0 - y), 3.0, &mut normal), Agreement::Refuted, "it falls");
        assert_eq!(evenly(&LINE, 40.0, &mut normal), Agreement::Undecided, "too much noise");
        let single: Vec<Vec<f64>> = LINE.map(|y| vec![y]).to_vec();
        let alone = "cpu(websocket) grows evenly";
        assert_eq!(outcome(alone, &single, &[]), Agreement::Undecided, "one run");
        let few = judged(alone, &[LOW, HIGH], &[]);
        assert_eq!((few.outcome, few.figures.len()), (Agreement::Undecided, 0));
        assert!(few.detail.starts_with("2 places are too few"), "{}", few.detail);
        let told = judged(alone, &[&[1.0, 1.1], &[2.0, 2.1], &[6.0, 6.1]], &[]).figures;
        assert!(
            told[1].contains("at 1: cpu(websocket) = 2.05 % (")
                && told[1].ends_with(", -20.0 % of the rise off the line"),
            "{told:?}"
        );
    }

    #[test]
    fn what_is_just_not_even_is_rarely_called_even_and_what_just_is_rarely_not() {
        // The second place of three is off its line by 10 % of the rise, on the margin itself.
        let border = [0.0, 65.0, 100.0];
        let line = pushlab_stats::slope(&[(0.0, 0.0), (1.0, 65.0), (2.0, 100.0)], 0.95).unwrap();
        assert!((65.0 - line.intercept - line.per_unit - 10.0).abs() < 1e-9);
        let even = "cpu(websocket) grows evenly";
        let on_border = Normal(7).shares(|normal| outcome(even, &normal.runs(&border, 5.0), &[]));
        assert!(on_border.iter().all(|share| *share < 0.06), "{on_border:?}");
        let straight = Normal(8).shares(|normal| outcome(even, &normal.runs(&LINE, 12.0), &[]));
        assert!(straight[1] < 0.01, "{straight:?}");
    }

    #[test]
    fn growth_and_fall_are_from_place_to_place() {
        let mut normal = Normal(2);
        let runs = normal.runs(&PARABOLA, 0.5);
        assert_eq!(outcome("cpu(websocket) grows", &runs, &[]), Agreement::Confirmed);
        assert_eq!(outcome("cpu(websocket) falls", &runs, &[]), Agreement::Refuted);
        assert_eq!(outcome("cpu(websocket) grows", &normal.runs(&FLAT, 0.5), &[]), Agreement::Undecided);
        let one_step_back = normal.runs(&[1.0, 5.0, 4.0, 9.0], 0.1);
        assert_eq!(outcome("cpu(websocket) grows", &one_step_back, &[]), Agreement::Refuted);
        let told = judged("cpu(websocket) grows", &[LOW, HIGH], &[]);
        assert_eq!((told.outcome, told.detail.as_str()), (Agreement::Confirmed, "confirmed at 1"));
        assert!(told.figures[0].ends_with(", 1.00 % (0.752 to 1.25) at 0"), "{:?}", told.figures);
        let alarm = judged("cpu(websocket) grows", &[LOW, HIGH, LOW], &[]);
        assert_eq!(alarm.somewhere, Agreement::Refuted, "an alarm is about the whole axis, too");
    }

    #[test]
    fn what_disturbs_a_whole_repeat_cancels_in_a_quotient() {
        let mut normal = Normal(3);
        let disturbed: Vec<f64> = (0..10).map(|_| (0.8 * normal.next()).exp()).collect();
        let mut side = |truth: f64| disturbed.iter().map(|own| truth * own * (1.0 + 0.02 * normal.next())).collect();
        let (websocket, sse): (Vec<f64>, Vec<f64>) = (side(2.0), side(1.0));
        let (websocket, sse) = ([websocket], [sse]);
        assert_eq!(outcome("cpu(websocket) > 1.8 × cpu(sse)", &websocket, &sse), Agreement::Undecided);
        let of = |text: &str| outcome(text, &websocket, &sse);
        assert_eq!(of("cpu(websocket) / cpu(sse) > 1.8"), Agreement::Confirmed);
        assert_eq!(of("cpu(websocket) / cpu(sse) > 2.2"), Agreement::Refuted);
        assert_eq!(of("cpu(websocket) / cpu(sse) ≈ 2 within 5 %"), Agreement::Confirmed);
        assert_eq!(of("cpu(websocket) / cpu(sse) > 3 × cpu(sse) / cpu(websocket)"), Agreement::Confirmed);
        assert_eq!(of("cpu(websocket) / cpu(sse) > 5 × cpu(sse) / cpu(websocket)"), Agreement::Refuted);
        let told = judged("0.5 × cpu(websocket) / cpu(sse) > 2", &[&[4.0, 8.0]], &[&[1.0, 2.0]]);
        assert_eq!(told.figures, ["at 0: 0.5 × cpu(websocket) / cpu(sse) = 2.00 (2.00 to 2.00)"]);
    }

    #[test]
    fn a_quotient_is_of_places_or_along_them() {
        let of = |text: &str| {
            let judged = judged(text, &[&[8.0, 8.1], &[8.0, 8.1]], &[&[1.0, 1.0], &[4.0, 4.0]]);
            (judged.outcome, judged.by_means)
        };
        let yes = (Agreement::Confirmed, Some(Agreement::Confirmed));
        assert_eq!(of("cpu(websocket) / cpu(sse) falls"), yes);
        assert_eq!(of("cpu(websocket at 0) / cpu(sse at 0) > cpu(websocket at 1) / cpu(sse at 1)"), yes);
        assert_eq!(of("cpu(sse) / cpu(sse at 1) < 0.3 at 0"), yes);
        assert_eq!(of("cpu(websocket) / cpu(sse) > 3"), (Agreement::Refuted, Some(Agreement::Refuted)));
        let unreached = judged("cpu(websocket) / cpu(sse) > 3", &[&[f64::INFINITY; 3]], &[LOW]).outcome;
        assert_eq!(unreached, Agreement::Confirmed);
        let nobody_knows = judged("cpu(websocket) / cpu(sse) > 3", &[&[f64::INFINITY; 3]], &[&[f64::INFINITY; 3]]);
        assert_eq!(nobody_knows.outcome, Agreement::Undecided);
    }

    #[test]
    fn spreads_are_known_by_their_own_uncertainty() {
        let mut normal = Normal(7);
        let (calm, wild) = (normal.runs(&[100.0], 3.0), normal.runs(&[100.0], 30.0));
        let of = |text: &str| outcome(text, &calm, &wild);
        assert_eq!(of("spread(cpu, websocket) < 10 %"), Agreement::Confirmed);
        assert_eq!(of("spread(cpu, websocket) > 10 %"), Agreement::Refuted);
        assert_eq!(of("spread(cpu, sse) < 30 %"), Agreement::Undecided);
        assert_eq!(of("spread(cpu, websocket) < spread(cpu, sse)"), Agreement::Confirmed);
        assert_eq!(of("spread(cpu, websocket) > 0.5 × spread(cpu, sse)"), Agreement::Refuted);
        let none = judged("spread(cpu, websocket) < 1 %", &[&[5.0; 3]], &[]);
        assert_eq!(
            (none.outcome, none.figures[0].as_str()),
            (Agreement::Confirmed, "at 0: spread(cpu, websocket) = 0.00 %")
        );
        assert_eq!(judged("spread(cpu, websocket) < 1 %", &[&[5.0, 5.0, 5.0, 9.0]], &[]).outcome, Agreement::Undecided);
        assert!(
            judged("spread(cpu, websocket) < 1 %", &[&[5.0; 2]], &[]).figures.is_empty(),
            "two runs have no spread"
        );
    }

    #[test]
    fn a_spread_on_its_limit_is_rarely_called_below_or_above() {
        let below = "spread(cpu, websocket) < 20 %";
        let even = Normal(9).shares(|normal| outcome(below, &normal.runs(&[100.0], 20.0), &[]));
        assert!(even.iter().all(|share| *share < 0.06), "{even:?}");
        let sigma = 0.04f64.ln_1p().sqrt();
        let skewed = Normal(10)
            .shares(|normal| outcome(below, &[(0..10).map(|_| (sigma * normal.next()).exp()).collect()], &[]));
        assert!(skewed.iter().all(|share| *share < 0.08), "{skewed:?}");
    }

    #[test]
    fn slopes_are_per_step_of_the_axis() {
        let mut normal = Normal(5);
        let (steep, even) = (normal.runs(&LINE, 2.0), normal.runs(&LINE.map(|y| y / 4.0), 2.0));
        let of = |text: &str| outcome(text, &steep, &even);
        assert_eq!(of("slope(cpu, websocket) ≈ 20 % within 5 %"), Agreement::Confirmed);
        assert_eq!(of("slope(cpu, websocket) > 3 × slope(cpu, sse)"), Agreement::Confirmed);
        assert_eq!(of("slope(cpu, websocket) > 5 × slope(cpu, sse)"), Agreement::Refuted);
        assert_eq!(of("slope(cpu, websocket) > 4 × slope(cpu, sse)"), Agreement::Undecided);
        let told = judged("slope(cpu, websocket) > 0", &[&[1.0, 1.0], &[2.0, 2.0], &[3.0, 3.0]], &[]);
        assert_eq!(told.detail, "confirmed over the axis");
        assert_eq!(told.figures, ["over the axis: slope(cpu, websocket) = 1.00 % (1.00 to 1.00)"]);
        assert_eq!(judged("slope(cpu, websocket) > 0", &[LOW, HIGH], &[]).outcome, Agreement::Undecided, "two places");
    }

    #[test]
    fn full_is_where_the_cpu_of_each_repeat_levels_off() {
        let mut normal = Normal(6);
        let early = normal.runs(&[40.0, 92.0, 92.0, 92.0], 0.2);
        let late = normal.runs(&[20.0, 50.0, 92.0, 92.0], 0.2);
        let never = normal.runs(&[10.0, 20.0, 30.0, 40.0], 0.2);
        let of = |text: &str| outcome(text, &early, &late);
        assert_eq!(of("full(websocket) < full(sse)"), Agreement::Confirmed);
        assert_eq!(of("full(websocket) > full(sse)"), Agreement::Refuted);
        assert_eq!(of("full(sse) > 1"), Agreement::Confirmed);
        assert_eq!(of("full(websocket) ≈ full(websocket) within 1 %"), Agreement::Confirmed);
        assert_eq!(outcome("full(websocket) < full(sse)", &early, &never), Agreement::Confirmed);
        assert_eq!(outcome("full(websocket) < full(sse)", &never, &never), Agreement::Undecided);
        let mut some = late.clone();
        some[3][0] = 60.0;
        assert_eq!(
            outcome("full(websocket) < full(sse)", &early, &some),
            Agreement::Undecided,
            "not all runs are full"
        );
        let told = judged("full(websocket) < 3", &[&[95.0, 96.0], &[95.0, 96.0]], &[]).figures;
        assert_eq!(told, ["over the axis: full(websocket) = 0.00 (0.00 to 0.00)"]);
    }

    #[test]
    fn every_run_is_asked_and_one_contradicts() {
        let of = |text: &str, a: &[f64], b: &[f64]| {
            let judged = judged(text, &[a], &[b]);
            (judged.outcome, judged.figures[0].split(':').next().unwrap_or_default().to_owned())
        };
        let than = "cpu(websocket) < cpu(sse) in every run";
        let runs = |count: &str| format!("at 0, in {count} runs");
        assert_eq!(of(than, &[1.0, 5.0, 2.0], &[2.0, 6.0, 3.0]), (Agreement::Confirmed, runs("3 of 3")), "by repeat");
        assert_eq!(of(than, &[1.0, 5.0, 4.0], &[2.0, 6.0, 3.0]), (Agreement::Refuted, runs("2 of 3")));
        assert_eq!(of(than, &[1.0, 5.0], &[2.0]), (Agreement::Undecided, runs("1 of 1")), "a single pair");
        assert_eq!(of("cpu(websocket) < 5 in every run", LOW, LOW).0, Agreement::Confirmed);
        assert_eq!(of("cpu(websocket) < 1.05 in every run", LOW, LOW).0, Agreement::Refuted);
        assert_eq!(of("cpu(websocket) < 5 in every run", &[f64::INFINITY; 2], LOW).0, Agreement::Refuted);
        assert_eq!(
            of("cpu(websocket) < cpu(sse) in every run", &[f64::INFINITY; 2], &[f64::INFINITY; 2]).0,
            Agreement::Undecided
        );
    }
}
