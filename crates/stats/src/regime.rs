//! Load or stress, and how a response time feels: the two ways in which a point on a chart is coloured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// CPU at or above which a subject counts as stressed, per cent of one core.
///
/// Tangen ("Real-Time Web with WebSocket", University of Oslo 2015) calls a run *load* while the server's CPU is
/// below its maximum and *stress* once it is at the maximum. His servers, like most that Pushlab measures, run on
/// one core, and a saturated core rarely shows 100 % over a window: interrupts, the generator's share and the edges
/// of the window take a few per cent. Hence 95.
const STRESS_CPU_PERCENT: f64 = 95.0;

/// Share of its highest CPU from which a series that has levelled off is at its maximum. In Tangen's chat the plateau is at
/// 92 to 94 %; with any share from 0.977 to 0.991, each of his six series is full from the number of clients that he names.
const PLATEAU_SHARE: f64 = 0.985;
/// A series that levels off below this, per cent of one core, is limited by something else than its core.
const PLATEAU_CPU_PERCENT_MIN: f64 = 85.0;

/// The CPU at or above which a subject counts as stressed, per cent of one core, from its mean CPU at each place of an axis
/// of rising demand: its plateau where the last two places or more are on one, else [`STRESS_CPU_PERCENT`].
pub fn stress_limit(cpu_percent: &[f64]) -> f64 {
    let highest = cpu_percent.iter().copied().fold(0.0, f64::max);
    let limit = highest * PLATEAU_SHARE;
    let is_plateau = cpu_percent.len() >= 2 && cpu_percent.iter().rev().take(2).all(|&cpu| cpu >= limit);
    if is_plateau && highest >= PLATEAU_CPU_PERCENT_MIN { limit } else { STRESS_CPU_PERCENT }
}

/// Load or stress (Tangen 2015): whether the subject had CPU to spare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Regime {
    /// The subject stayed below its maximum.
    Load,
    /// The subject was at its maximum.
    Stress,
}

/// The regime of a run whose subject used `cpu_percent` of one core, mean over the load phase.
///
/// Pass [`stress_limit`] as `limit`, or a multiple of it for a subject that uses several cores evenly. The limit itself is
/// stress. An unknown CPU (NaN) is load: nothing showed that the subject was at its maximum.
pub fn regime(cpu_percent: f64, limit: f64) -> Regime {
    if cpu_percent >= limit { Regime::Stress } else { Regime::Load }
}

/// How a response time feels, by the limits of Nielsen (*Usability Engineering*, 1993, chapter 5): 0.1, 1 and 10 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Band {
    /// Below 0.1 s: feels immediate.
    Instant,
    /// Below 1 s: noticed, thought not interrupted.
    Noticeable,
    /// Below 10 s: attention only just kept.
    Slow,
    /// 10 s or more: attention lost.
    Lost,
}

impl Band {
    /// The band of a response time in milliseconds. NaN is [`Band::Lost`]: no response came.
    pub fn of_response_ms(response_ms: f64) -> Self {
        if response_ms < 100.0 {
            Self::Instant
        } else if response_ms < 1_000.0 {
            Self::Noticeable
        } else if response_ms < 10_000.0 {
            Self::Slow
        } else {
            Self::Lost
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_stress() {
        assert_eq!(regime(94.9, STRESS_CPU_PERCENT), Regime::Load);
        assert_eq!(regime(95.0, STRESS_CPU_PERCENT), Regime::Stress);
        assert_eq!(regime(180.0, 2.0 * STRESS_CPU_PERCENT), Regime::Load);
        assert_eq!(regime(f64::NAN, STRESS_CPU_PERCENT), Regime::Load);
    }

    #[test]
    fn a_series_is_full_from_its_plateau_on() {
        let full_from = |cpu: &[f64]| {
            let limit = stress_limit(cpu);
            cpu.iter().position(|&cpu| regime(cpu, limit) == Regime::Stress)
        };
        // Tangen 2015, means of ten runs at 1, 50, 100 … 500 clients: chat by SSE and WebSocket, broadcast likewise.
        assert_eq!(full_from(&[0.1, 8.9, 26.5, 38.1, 50.3, 63.3, 84.0, 92.8, 92.4, 92.4, 92.3]), Some(7), "350");
        assert_eq!(full_from(&[0.0, 7.4, 26.6, 43.5, 55.6, 71.2, 90.9, 94.3, 94.1, 94.1, 94.0]), Some(7), "350");
        assert_eq!(full_from(&[8.7, 30.6, 54.5, 82.5, 95.3, 98.3, 98.6, 98.9, 99.0, 99.1, 99.2]), Some(5), "250");
        assert_eq!(full_from(&[8.1, 30.4, 49.8, 70.1, 82.4, 90.3, 96.1, 98.0, 98.4, 98.4, 98.3]), Some(7), "350");
        assert_eq!(full_from(&[10.0, 60.0, 96.0]), Some(2), "a last place alone is no plateau");
        assert_eq!(full_from(&[94.0, 30.0]), None, "nor is a first one");
        assert_eq!(full_from(&[40.0, 41.0, 41.0]), None, "something else than the core is the limit");
        assert_eq!(full_from(&[]), None);
    }

    #[test]
    fn bands_begin_at_their_limits() {
        let cases = [(0.0, Band::Instant), (99.999, Band::Instant), (100.0, Band::Noticeable), (1_000.0, Band::Slow)];
        for (response, band) in cases {
            assert_eq!(Band::of_response_ms(response), band, "{response} ms");
        }
        assert_eq!(Band::of_response_ms(9_999.0), Band::Slow);
        assert_eq!(Band::of_response_ms(10_000.0), Band::Lost);
        assert_eq!(Band::of_response_ms(f64::NAN), Band::Lost);
        assert_eq!(serde_json::to_string(&Band::Noticeable).unwrap(), "\"noticeable\"");
    }
}
