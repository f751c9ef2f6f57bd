//! Numbers that others published, or that R prints for its own data sets.

use pushlab_stats::distribution::student_t_quantile;
use pushlab_stats::{
    Family, Pair, TestKind, compare_family, contrast, effect_size, interval_of_mean, mean, slope, variance,
};

#[track_caller]
fn close(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{found} is not {expected} ± {tolerance}");
}

/// Hours of sleep gained with two drugs by ten patients (Cushny and Peebles 1905, in Student's "The probable error of
/// a mean", *Biometrika* 6, 1908; `sleep` in R).
const SLEEP: [[f64; 10]; 2] =
    [[0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0], [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]];

/// p of one comparison at a confidence that leaves room for the wanted test.
fn p(a: &[f64], b: &[f64], is_paired: bool, confidence: f64, test: TestKind) -> f64 {
    let family = Family { confidence, relevant_change: 0.0, seed: 1 };
    let found = compare_family(&[Pair { a, b, is_paired, margin: 0.1 }], &family).unwrap()[0].significance.unwrap();
    assert_eq!(found.test, test);
    found.p
}

#[test]
fn student_and_welch_on_the_sleep_data() {
    // R: t.test(extra ~ group, data = sleep), and the same paired.
    let [first, second] = &SLEEP;
    close(p(first, second, false, 0.999_99, TestKind::Welch), 0.079_39, 5e-6);
    close(p(first, second, true, 0.999, TestKind::PairedT), 0.002_833, 5e-7);
    // The bootstrap is no t interval, but it must be near Welch's -3.365 to 0.205 and Student's -2.460 to -0.700.
    let welch = contrast(first, 1.0, second, 0.95, 1).unwrap();
    close(welch.value, -1.58, 1e-12);
    close(welch.low, -3.365, 0.15);
    close(welch.high, 0.205, 0.15);
    let differences: Vec<f64> = first.iter().zip(second).map(|(a, b)| a - b).collect();
    let paired = interval_of_mean(&differences, 0.95, 1).unwrap();
    close(paired.low, -2.460, 0.25);
    close(paired.high, -0.700, 0.25);
}

#[test]
fn rank_tests_on_the_examples_of_hollander_and_wolfe() {
    // Nonparametric Statistical Methods (1973), p. 69: permeability of the chorioamnion. R: W = 35, p = 0.1272 one-sided.
    let at_term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
    let early = [1.15, 0.88, 0.90, 0.74, 1.21];
    close(p(&at_term, &early, false, 0.95, TestKind::MannWhitney), 2.0 * 0.1272, 1e-4);
    // Cliff's delta is 2·W/(n·m) − 1.
    close(effect_size(&at_term, &early).unwrap().delta, 2.0 * 35.0 / 50.0 - 1.0, 1e-15);
    // P. 29: depression before and after a therapy. R: V = 40, p = 0.01953 one-sided.
    #[allow(clippy::approx_constant, reason = "3.14 was measured")]
    let (before, after) = (
        [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30],
        [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29],
    );
    close(p(&before, &after, true, 0.95, TestKind::SignedRank), 2.0 * 0.019_53, 1e-5);
}

#[test]
fn least_squares_on_anscombes_first_set() {
    // "Graphs in Statistical Analysis", The American Statistician 27 (1973). R: slope 0.5001, standard error 0.1179.
    let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
    let y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
    let points: Vec<(f64, f64)> = x.into_iter().zip(y).collect();
    let found = slope(&points, 0.95).unwrap();
    close(found.per_unit, 0.500_09, 5e-6);
    close(found.intercept, 3.000_09, 5e-6);
    close(found.r2, 0.666_54, 5e-6);
    close((found.high - found.per_unit) / student_t_quantile(0.025, 9.0), 0.117_91, 5e-6);
}

#[test]
fn least_squares_on_a_certified_data_set() {
    // NIST Statistical Reference Datasets, Norris (ozone monitors); certified values.
    let y = [
        0.1, 338.8, 118.1, 888.0, 9.2, 228.1, 668.5, 998.5, 449.1, 778.9, 559.2, 0.3, 0.1, 778.1, 668.8, 339.3, 448.9,
        10.8, 557.7, 228.3, 998.0, 888.8, 119.6, 0.3, 0.6, 557.6, 339.3, 888.0, 998.5, 778.9, 10.2, 117.6, 228.9,
        668.4, 449.2, 0.2,
    ];
    let x = [
        0.2, 337.4, 118.2, 884.6, 10.1, 226.5, 666.3, 996.3, 448.6, 777.0, 558.2, 0.4, 0.6, 775.5, 666.9, 338.0, 447.5,
        11.6, 556.0, 228.1, 995.8, 887.6, 120.2, 0.3, 0.3, 556.8, 339.1, 887.2, 999.0, 779.0, 11.1, 118.3, 229.2,
        669.1, 448.9, 0.5,
    ];
    let points: Vec<(f64, f64)> = x.into_iter().zip(y).collect();
    let found = slope(&points, 0.95).unwrap();
    close(found.per_unit, 1.002_116_818_020_45, 1e-12);
    close(found.intercept, -0.262_323_073_774_029, 1e-10);
    close(found.r2, 0.999_993_745_883_712, 1e-13);
    let error = (found.high - found.per_unit) / student_t_quantile(0.025, 34.0);
    close(error, 0.429_796_848_199_937e-3, 1e-12);
}

#[test]
fn moments_of_certified_data_sets() {
    // NIST Statistical Reference Datasets, NumAcc1, 3 and 4: large means with small deviations, rounded when read.
    let first = [10_000_001.0, 10_000_003.0, 10_000_002.0];
    assert_eq!((mean(&first), variance(&first)), (Some(10_000_002.0), Some(1.0)));
    for level in [1_000_000.0, 10_000_000.0] {
        let mut values = vec![level + 0.2];
        values.extend([level + 0.1, level + 0.3].repeat(500));
        close(mean(&values).unwrap(), level + 0.2, 2e-9);
        close(variance(&values).unwrap().sqrt(), 0.1, 1e-9);
    }
}

#[test]
fn student_quantiles_to_many_digits() {
    // R: qt(0.975, c(1, 5, 10, 30)), qt(0.995, 4.5)
    for (tail, freedom, expected) in [
        (0.025, 1.0, 12.706_204_736_174_7),
        (0.025, 5.0, 2.570_581_835_636_3),
        (0.025, 10.0, 2.228_138_851_964_9),
        (0.025, 30.0, 2.042_272_456_301_2),
    ] {
        close(student_t_quantile(tail, freedom), expected, 1e-10 * expected);
    }
}
