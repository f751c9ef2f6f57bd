//! Whether an assertion holds.

use super::samples::{CONFIDENCE, PointSamples};
use super::wording::digits;
use pushlab_experiment::assertion::{Assertion, Relation, Side, Term};
use pushlab_report::{Agreement, Estimate, WhyLacking};
use pushlab_stats::{difference, interval_of_mean};

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

/// Judges an assertion. `find` gives the places of the one series that bears the words, or says why there is none.
///
/// It is confirmed when every place confirms it, and refuted when one refutes it; the latter at a confidence
/// corrected for the number of places (Bonferroni), or chance alone would refute true assertions.
pub fn judge(assertion: &Assertion, find: &dyn Fn(&Term) -> Result<Vec<PointSamples>, String>, seed: u64) -> Judgement {
    let undecided = |detail: String| Judgement {
        outcome: Agreement::Undecided,
        somewhere: Agreement::Undecided,
        by_means: None,
        detail,
        figures: Vec::new(),
    };
    let left = match find(&assertion.left) {
        Ok(points) => points,
        Err(why) => return undecided(why),
    };
    let right = match &assertion.right {
        Side::Number(_) => None,
        Side::Term(term) => match find(term) {
            Ok(points) => Some((term.factor, points)),
            Err(why) => return undecided(why),
        },
    };
    // A side that has a place of its own is taken there, whatever the rest of the assertion says of places.
    let is_wanted = |own: Option<f64>, point: &PointSamples| match own {
        Some(at) => at == point.x,
        None => assertion.at.is_none_or(|at| at == point.x) && assertion.under.is_none_or(|r| Some(r) == point.regime),
    };
    let right_at = match &assertion.right {
        Side::Term(term) => term.at,
        Side::Number(_) => None,
    };
    let (mut places, mut shown) = (Vec::new(), Vec::new());
    for point in left.iter().filter(|point| is_wanted(assertion.left.at, point)) {
        let samples = scaled(&point.samples, assertion.left.factor);
        match (&right, &assertion.right) {
            (None, Side::Number(number)) => {
                places.push((point.x, samples, Other::Number(*number)));
                shown.push([Some(point.shown), None]);
            }
            (Some((factor, points)), _) => {
                let beside = right_at.unwrap_or(point.x);
                let other = points.iter().find(|other| other.x == beside && is_wanted(right_at, other));
                places.extend(other.map(|o| (point.x, samples, Other::Samples(scaled(&o.samples, *factor)))));
                shown.extend(other.map(|o| [Some(point.shown), Some(o.shown)]));
            }
            (None, Side::Term(_)) => {}
        }
    }
    let count = places.len().max(1) as f64;
    let corrected = 1.0 - (1.0 - CONFIDENCE) / count;
    let judged: Vec<(f64, Agreement)> = places
        .iter()
        .map(|(x, left, right)| (*x, at_place(assertion.relation, left, right, [CONFIDENCE, corrected], seed)))
        .collect();
    // That it holds nowhere needs no correction: every place has to say so (Berger 1982, intersection-union tests).
    let levels = [corrected, CONFIDENCE];
    let for_alarm = places.iter().map(|(_, left, right)| at_place(assertion.relation, left, right, levels, seed));
    let somewhere = somewhere(&for_alarm.collect::<Vec<_>>());
    let (outcome, detail) = conclude(&judged);
    let by_means = places.iter().map(|(_, left, right)| holds_by_means(assertion.relation, left, right));
    let by_means = by_means.reduce(|all, one| all && one);
    let by_means = by_means.map(|holds| if holds { Agreement::Confirmed } else { Agreement::Refuted });
    let lines = places.iter().zip(&shown).map(|((x, ..), sides)| figures(assertion, *x, sides));
    Judgement { outcome, somewhere, by_means, detail, figures: lines.collect() }
}

/// `at 300: cpu(websocket) = 45.1 % (44.0 to 46.2), cpu(sse) = 31.0 % (30.1 to 31.9)`. Of each side what is shown of it, if
/// it was reached.
fn figures(assertion: &Assertion, x: f64, [left, right]: &[Option<Option<Estimate>>; 2]) -> String {
    let side = |term: &Term, shown: &Option<Estimate>| {
        let Some(figure) = shown else { return format!("{term} is {}", WhyLacking::NotReached.words()) };
        let of = |value: f64| digits(value * term.factor);
        let value = format!("{term} = {} {}", of(figure.value), term.metric.unit);
        let ends = (figure.runs > 1).then(|| format!(" ({} to {})", of(figure.low), of(figure.high)));
        value.trim_end().to_owned() + &ends.unwrap_or_default()
    };
    let other = match &assertion.right {
        Side::Term(term) => right.as_ref().map(|right| side(term, right)),
        Side::Number(_) => None,
    };
    let sides: Vec<String> = left.iter().map(|left| side(&assertion.left, left)).chain(other).collect();
    format!("at {x}: {}", sides.join(", "))
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

/// Whether it holds of the means, whatever their intervals.
fn holds_by_means(relation: Relation, left: &[f64], right: &Other) -> bool {
    let (left, right) = (pushlab_stats::mean(left).unwrap_or(0.0), right.mean());
    match relation {
        Relation::Less => left < right,
        Relation::Greater => left > right,
        Relation::About(percent) => (left - right).abs() <= right.abs() * percent / 100.0,
    }
}

enum Other {
    Number(f64),
    Samples(Vec<f64>),
}

impl Other {
    fn mean(&self) -> f64 {
        match self {
            Self::Number(number) => *number,
            Self::Samples(samples) => pushlab_stats::mean(samples).unwrap_or(0.0),
        }
    }
}

/// Whether both sides are one and the same number throughout, such as no requests at all.
fn is_equal(left: &[f64], right: &Other) -> bool {
    let Some(&first) = left.first() else { return false };
    let same = |values: &[f64]| values.iter().all(|&value| value == first);
    match right {
        Other::Number(number) => same(left) && *number == first,
        Other::Samples(samples) => same(left) && samples.len() > 1 && same(samples),
    }
}

fn scaled(samples: &[f64], factor: f64) -> Vec<f64> {
    samples.iter().map(|sample| sample * factor).collect()
}

/// The interval of left less `factor` × right; `None` with too few runs.
fn gap(left: &[f64], factor: f64, right: &Other, confidence: f64, seed: u64) -> Option<(f64, f64)> {
    if left.len() < 2 {
        return None;
    }
    let interval = match right {
        Other::Number(number) => {
            let own = interval_of_mean(left, confidence, seed).ok()?;
            return Some((own.low - factor * number, own.high - factor * number));
        }
        Other::Samples(right) if right.len() < 2 => return None,
        Other::Samples(right) => difference(left, &scaled(right, factor), confidence, seed).ok()?,
    };
    Some((interval.low, interval.high))
}

/// Where a quantile was not reached on one side it is longer than any time; on both sides, or with a single run, nobody
/// knows.
fn beyond_measure(relation: Relation, left: &[f64], right: &Other) -> Option<Agreement> {
    let is_beyond = |samples: &[f64]| samples.iter().any(|sample| sample.is_infinite());
    let (right_is_beyond, is_sure) = match right {
        Other::Number(_) => (false, left.len() > 1),
        Other::Samples(right) => (is_beyond(right), left.len() > 1 && right.len() > 1),
    };
    let holds = match (is_beyond(left), right_is_beyond) {
        (false, false) => return None,
        (true, true) => return Some(Agreement::Undecided),
        _ if !is_sure => return Some(Agreement::Undecided),
        (true, false) => relation == Relation::Greater,
        (false, true) => relation == Relation::Less,
    };
    Some(if holds { Agreement::Confirmed } else { Agreement::Refuted })
}

/// One place; `levels` are the confidences at which the assertion is confirmed and refuted.
fn at_place(relation: Relation, left: &[f64], right: &Other, [confirm, refute]: [f64; 2], seed: u64) -> Agreement {
    if let Some(agreement) = beyond_measure(relation, left, right) {
        return agreement;
    }
    let gap = |factor: f64, confidence: f64| gap(left, factor, right, confidence, seed);
    let (holds, fails) = match relation {
        Relation::Less => {
            (gap(1.0, confirm).is_some_and(|(_, high)| high < 0.0), gap(1.0, refute).is_some_and(|(low, _)| low >= 0.0))
        }
        Relation::Greater => {
            (gap(1.0, confirm).is_some_and(|(low, _)| low > 0.0), gap(1.0, refute).is_some_and(|(_, high)| high <= 0.0))
        }
        // Two one-sided tests (Schuirmann 1987): equivalence is shown, not assumed from a lack of difference.
        Relation::About(_) if is_equal(left, right) => (left.len() > 1, false),
        Relation::About(percent) => {
            let share = percent / 100.0;
            let [near, far] = if right.mean() < 0.0 { [1.0 + share, 1.0 - share] } else { [1.0 - share, 1.0 + share] };
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

fn conclude(judged: &[(f64, Agreement)]) -> (Agreement, String) {
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
        let places: Vec<String> =
            judged.iter().filter(|(_, outcome)| *outcome == wanted).map(|(x, _)| x.to_string()).collect();
        (!places.is_empty()).then(|| format!("{word} at {}", places.join(", ")))
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
                samples: samples.to_vec(),
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
}
