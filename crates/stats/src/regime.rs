//! Load or stress, and how a response time feels: the two ways in which a point on a chart is coloured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// CPU at or above which a subject counts as stressed, per cent of one core.
///
/// Tangen ("Real-Time Web with WebSocket", University of Oslo 2015) calls a run *load* while the server's CPU is
/// below its maximum and *stress* once it is at the maximum. His servers, like most that Pushlab measures, run on
/// one core, and a saturated core rarely shows 100 % over a window: interrupts, the generator's share and the edges
/// of the window take a few per cent. Hence 95.
pub const STRESS_CPU_PERCENT: f64 = 95.0;

/// Load or stress (Tangen 2015): whether the subject had CPU to spare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Regime {
    /// The subject stayed below one full core.
    Load,
    /// The subject reached one full core.
    Stress,
}

/// The regime of a run whose subject used `cpu_percent` of one core, mean over the load phase.
///
/// Pass [`STRESS_CPU_PERCENT`] as `limit`, or a multiple of it for a subject that uses several cores evenly. The
/// limit itself is stress. An unknown CPU (NaN) is load: nothing showed that the subject was at its maximum.
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
