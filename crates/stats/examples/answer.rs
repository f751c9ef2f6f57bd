//! Answers questions in JSON, one a line, from standard input: how programs in other languages check this crate.
//!
//! `{"quantile": {"sorted": [1, 2, 4], "q": 0.5}}` gives `2.0`; a refusal gives `{"error": "…"}`.
#![allow(clippy::disallowed_macros, reason = "a program says what it found")]

use pushlab_stats::distribution::{normal_cdf, student_t_quantile, student_t_tail};
use pushlab_stats::{
    Family, Histogram, Pair, Steady, compare_family, contrast, effect_size, holm, interval_of_mean, mean, median,
    quantile, rank, ratio, slope, steady_state, trend, variance,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::BufRead;

/// A question: a function's name and its arguments.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Question {
    Quantile { sorted: Vec<f64>, q: f64 },
    Histogram { ns: Vec<u64>, q: f64 },
    Moments { values: Vec<f64> },
    StudentTQuantile { tail: f64, freedom: f64 },
    StudentTTail { t: f64, freedom: f64 },
    NormalCdf { z: f64 },
    IntervalOfMean { values: Vec<f64>, confidence: f64 },
    Contrast { a: Vec<f64>, factor: f64, b: Vec<f64>, confidence: f64 },
    Ratio { a: Vec<f64>, b: Vec<f64>, confidence: f64 },
    EffectSize { a: Vec<f64>, b: Vec<f64> },
    Rank { entries: Vec<Vec<f64>> },
    Slope { points: Vec<(f64, f64)>, confidence: f64 },
    Trend { points: Vec<(f64, f64)>, confidence: f64 },
    Holm { p: Vec<f64> },
    Compare { a: Vec<f64>, b: Vec<f64>, is_paired: bool, confidence: f64 },
    SteadySlope { values: Vec<f64> },
}

const SEED: u64 = 1;

fn answer(question: Question) -> Result<Value, Box<dyn std::error::Error>> {
    Ok(match question {
        Question::Quantile { sorted, q } => json!(quantile(&sorted, q)),
        Question::Histogram { ns, q } => {
            let mut histogram = Histogram::new();
            ns.into_iter().for_each(|ns| histogram.record(ns));
            json!(histogram.quantile(q))
        }
        Question::Moments { values } => json!([mean(&values), variance(&values), median(&values)]),
        Question::StudentTQuantile { tail, freedom } => json!(student_t_quantile(tail, freedom)),
        Question::StudentTTail { t, freedom } => json!(student_t_tail(t, freedom)),
        Question::NormalCdf { z } => json!(normal_cdf(z)),
        Question::IntervalOfMean { values, confidence } => json!(interval_of_mean(&values, confidence, SEED)?),
        Question::Contrast { a, factor, b, confidence } => json!(contrast(&a, factor, &b, confidence, SEED)?),
        Question::Ratio { a, b, confidence } => json!(ratio(&a, &b, confidence, SEED)?),
        Question::EffectSize { a, b } => json!(effect_size(&a, &b)),
        Question::Rank { entries } => {
            let mut places = rank(&entries.into_iter().enumerate().collect::<Vec<_>>(), 0.95, SEED)?;
            places.sort_by_key(|place| place.key);
            json!(places.iter().map(|place| place.rank).collect::<Vec<_>>())
        }
        Question::Slope { points, confidence } => json!(slope(&points, confidence)?),
        Question::Trend { points, confidence } => json!(trend(&points, confidence)?),
        Question::Holm { p } => json!(holm(&p)),
        Question::Compare { a, b, is_paired, confidence } => {
            let family = Family { confidence, relevant_change: 0.0, seed: SEED };
            json!(compare_family(&[Pair { a: &a, b: &b, is_paired, margin: 0.0 }], &family)?[0])
        }
        Question::SteadySlope { values } => match steady_state(&values) {
            Steady::Trend { slope_per_sample, .. } => json!(slope_per_sample),
            Steady::Steady | Steady::TooShort => Value::Null,
        },
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for line in std::io::stdin().lock().lines() {
        let answered = answer(serde_json::from_str(&line?)?);
        println!("{}", answered.unwrap_or_else(|error| json!({ "error": error.to_string() })));
    }
    Ok(())
}
