//! Steady state: how often a series that stands still seems to move, and one that moves to stand still.

use crate::draw::{series, share};
use fastrand::Rng;
use pushlab_stats::{Steady, steady_state};

const TRIALS: u32 = 300;
const SIZES: [usize; 5] = [10, 20, 30, 60, 300];

/// Share of series that are reported as moving, for each of [`SIZES`].
fn reported(carry: f64, spread: f64, level: fn(f64) -> f64) -> [f64; 5] {
    SIZES.map(|n| {
        let mut rng = Rng::with_seed(n as u64);
        share(TRIALS, |_| matches!(steady_state(&series(&mut rng, n, carry, spread, level)), Steady::Trend { .. }))
    })
}

/// Autocorrelation, spread, level over the window, and a bound for each of [`SIZES`].
type Row = (f64, f64, fn(f64) -> f64, [f64; 5]);

fn check(title: &str, rows: &[Row], is_alarm: bool) {
    let mut table = format!("{title}, by {SIZES:?} points; autocorrelation and spread first\n");
    let mut wrong = Vec::new();
    for (carry, spread, level, bounds) in rows {
        let found = reported(*carry, *spread, *level);
        let shares = found.map(|share| format!("{share:.3}")).join(" ");
        table.push_str(&format!("{carry:<4} {spread:<5} {shares}\n"));
        for ((n, found), bound) in SIZES.iter().zip(found).zip(bounds) {
            if if is_alarm { found > *bound } else { found < *bound } {
                wrong.push(format!("{n} points, carry {carry}, spread {spread}: {found}, bound {bound}"));
            }
        }
    }
    print!("{table}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// From 60 points the test allows for autocorrelation; below, [`steady_state`] says why it does not.
#[test]
fn false_alarms() {
    let flat: fn(f64) -> f64 = |_| 1.0;
    let rows = [
        (0.0, 0.04, flat, [0.01, 0.01, 0.01, 0.01, 0.01]),
        (0.0, 0.3, flat, [0.03, 0.03, 0.03, 0.02, 0.02]),
        (0.5, 0.04, flat, [0.04, 0.05, 0.05, 0.02, 0.01]),
        (0.5, 0.3, flat, [0.07, 0.12, 0.15, 0.06, 0.05]),
        (0.7, 0.3, flat, [0.14, 0.25, 0.3, 0.09, 0.06]),
        (0.9, 0.04, flat, [0.08, 0.14, 0.14, 0.05, 0.01]),
        (0.9, 0.3, flat, [0.25, 0.45, 0.55, 0.15, 0.12]),
    ];
    check("share of steady series reported", &rows, true);
}

#[test]
fn a_rise_is_found() {
    let rise: fn(f64) -> f64 = |x| 1.0 + 0.3 * x;
    let rows = [
        (0.0, 0.02, rise, [0.95, 0.99, 0.99, 0.99, 0.99]),
        (0.0, 0.05, rise, [0.7, 0.95, 0.99, 0.99, 0.99]),
        (0.5, 0.05, rise, [0.7, 0.95, 0.97, 0.85, 0.99]),
    ];
    check("share of rises by 30 % found", &rows, false);
}

#[test]
fn a_step_is_found() {
    let step: fn(f64) -> f64 = |x| if x < 0.5 { 1.0 } else { 1.3 };
    // Ten points, five on each level, cannot be told from chance at 1 %: the statistic is 25 ± 6 of 45.
    let rows = [
        (0.0, 0.02, step, [0.0, 0.8, 0.95, 0.95, 0.99]),
        (0.0, 0.05, step, [0.0, 0.8, 0.95, 0.9, 0.99]),
        (0.5, 0.05, step, [0.0, 0.7, 0.9, 0.35, 0.99]),
    ];
    check("share of steps by 30 % found", &rows, false);
    // Without any noise a step is still one.
    for n in [20, 60, 300] {
        let clean: Vec<f64> = (0..n).map(|i| if i < n / 2 { 1.0 } else { 1.3 }).collect();
        assert_ne!(steady_state(&clean), Steady::Steady, "{n} points");
    }
}

#[test]
fn a_warm_up_is_found() {
    let decay: fn(f64) -> f64 = |x| 1.0 + (-x / 0.2).exp();
    let rows = [
        (0.0, 0.02, decay, [0.95, 0.99, 0.99, 0.97, 0.99]),
        (0.0, 0.05, decay, [0.9, 0.99, 0.99, 0.97, 0.99]),
        (0.5, 0.05, decay, [0.85, 0.97, 0.99, 0.85, 0.99]),
    ];
    check("share of falls from twice the level found", &rows, false);
}

#[test]
fn short_series_are_refused_not_judged() {
    let mut rng = Rng::with_seed(1);
    for n in 0..10 {
        assert_eq!(steady_state(&series(&mut rng, n, 0.0, 0.01, |x| 1.0 + x)), Steady::TooShort, "{n} points");
    }
}
