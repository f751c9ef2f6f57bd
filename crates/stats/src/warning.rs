//! Warnings: typed reasons to believe a result less, stored with it.
//!
//! A run is judged from numbers that were recorded anyway, by named limits that an experiment may override. The
//! codes are part of the results format: renaming one is a breaking change.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a warning is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WarningCode {
    /// The generator used all the CPU it had.
    GeneratorSaturated,
    /// Turns of the generator's loops took long although it had CPU to spare. Before: `loop-lag`.
    #[serde(alias = "loop-lag")]
    LongTurns,
    /// Publications left long after their intended instants.
    Lateness,
    /// Deliveries never came.
    Loss,
    /// Deliveries came more than once.
    Duplication,
    /// Deliveries came out of order.
    Reordering,
    /// The subject delivered less than the schedule asked for.
    Overloaded,
    /// A series still rose or fell while it was measured.
    Unstable,
    /// Too few measurements for the figure.
    FewSamples,
    /// The probe missed ticks.
    ProbeGaps,
    /// The subject's process was replaced during the run.
    SubjectRestarted,
    /// Clocks of two hosts, or of a browser's page and its worker, differ by an unknown amount that matters.
    ClockError,
    /// Another process or guest took CPU.
    NoisyNeighbour,
    /// Server and load were free to use the same cores.
    Unpinned,
    /// The emulated network was not what it should be.
    LinkLate,
    /// The capture does not hold every packet.
    CaptureCut,
    /// In a closed loop the generator had less time to spare than the subject.
    GeneratorBound,
    /// The page that measured was not seen meanwhile.
    PageHidden,
    /// Connections did not last for the measurement.
    ConnectionCut,
    /// Clients asked for compression, and the subject did not compress.
    Uncompressed,
}

/// How much a warning takes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The run says nothing about the subject.
    Void,
    /// The run counts, with this caveat.
    Warning,
}

/// A row of the table of warnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WarningKind {
    /// The code.
    pub code: WarningCode,
    /// The code as text, as in files.
    pub name: &'static str,
    /// How much it takes away.
    pub severity: Severity,
    /// What it means and what to do, for people.
    pub message: &'static str,
}

/// Every warning there is, in the order of [`WarningCode`].
pub const WARNINGS: &[WarningKind] = &[
    WarningKind {
        code: WarningCode::GeneratorSaturated,
        name: "generator-saturated",
        severity: Severity::Void,
        message: "The load generator ran out of CPU, so its figures describe itself and not the subject. \
                  Give it more cores or workers, or lower the rate or the number of clients.",
    },
    WarningKind {
        code: WarningCode::LongTurns,
        name: "long-turns",
        severity: Severity::Void,
        message: "The generator's loop was held up although it had CPU to spare, and what it held up is in every \
                  latency. Look for other processes on its cores, for CPU throttling, and for a hypervisor that takes \
                  time.",
    },
    WarningKind {
        code: WarningCode::Lateness,
        name: "lateness",
        severity: Severity::Void,
        message: "Publications left later than scheduled, so the subject never met the load it should have. \
                  Lower the rate, or give the generator more cores.",
    },
    WarningKind {
        code: WarningCode::Loss,
        name: "loss",
        severity: Severity::Warning,
        message: "Some deliveries never arrived; latencies cover only those that did. \
                  Look at the subject's queue limits and policy, and at disconnections.",
    },
    WarningKind {
        code: WarningCode::Duplication,
        name: "duplication",
        severity: Severity::Warning,
        message: "Some deliveries arrived more than once; only the first counts. \
                  Within one connection that is a fault of the subject; across reconnections it may be its promise.",
    },
    WarningKind {
        code: WarningCode::Reordering,
        name: "reordering",
        severity: Severity::Warning,
        message: "Some deliveries overtook earlier ones of the same publisher. \
                  The subject does not keep the order that its transport promises.",
    },
    WarningKind {
        code: WarningCode::Overloaded,
        name: "overloaded",
        severity: Severity::Warning,
        message: "The subject delivered fewer messages a second than were published for its subscribers, so its backlog \
                  grew all the time and latencies say how long the load lasted. \
                  Lower the rate to learn the latency of a server that keeps up.",
    },
    WarningKind {
        code: WarningCode::Unstable,
        name: "unstable",
        severity: Severity::Warning,
        message: "A figure still rose or fell while it was measured, so its mean depends on the length of the run. \
                  Make the warm-up longer; if it keeps rising under constant load, the subject does not sustain it.",
    },
    WarningKind {
        code: WarningCode::FewSamples,
        name: "few-samples",
        severity: Severity::Warning,
        message: "Too few measurements stand behind a figure, above all behind high percentiles. \
                  Make the load phase longer or repeat the run more often.",
    },
    WarningKind {
        code: WarningCode::ProbeGaps,
        name: "probe-gaps",
        severity: Severity::Warning,
        message: "The probe missed ticks, so CPU and memory have holes. \
                  Give the probe a core that the load does not saturate.",
    },
    WarningKind {
        code: WarningCode::SubjectRestarted,
        name: "subject-restarted",
        severity: Severity::Void,
        message: "The subject's process ended and another took its place, so the figures mix two lives of it. \
                  Look at the subject's log for the crash.",
    },
    WarningKind {
        code: WarningCode::ClockError,
        name: "clock-error",
        severity: Severity::Warning,
        message: "The offset between two clocks, of hosts or of a browser's page and its worker, is known less well than \
                  the latencies measured across them: read them as that much more or less. Between hosts, synchronize \
                  the clocks (chrony, PTP) or measure on one; a browser needs cores with time to spare.",
    },
    WarningKind {
        code: WarningCode::NoisyNeighbour,
        name: "noisy-neighbour",
        severity: Severity::Warning,
        message: "Another process or guest used CPU during the run. \
                  Stop it, or measure on a machine of your own; compare CPU time per delivery, which suffers least.",
    },
    WarningKind {
        code: WarningCode::Unpinned,
        name: "unpinned",
        severity: Severity::Warning,
        message: "Subject and generator could run on the same cores and take CPU from each other. \
                  Pin them to different cores; the machine needs at least two.",
    },
    WarningKind {
        code: WarningCode::LinkLate,
        name: "link-late",
        severity: Severity::Void,
        message: "The emulated network held packets longer than it was to, or broke, so that the run had another \
                  network than it says. Lower the rate or the number of clients, or give the load more cores.",
    },
    WarningKind {
        code: WarningCode::CaptureCut,
        name: "capture-cut",
        severity: Severity::Warning,
        message: "The capture does not hold every packet; the link's counters do. Where the disk is full, make room; where \
                  the capture has reached its greatest size, measure for a shorter time.",
    },
    WarningKind {
        code: WarningCode::GeneratorBound,
        name: "generator-bound",
        severity: Severity::Warning,
        message: "In a closed loop the load generator was the slower side and the subject had time to spare: its rate is a \
                  lower bound, its CPU time per delivery stands. Give the generator more cores.",
    },
    WarningKind {
        code: WarningCode::PageHidden,
        name: "page-hidden",
        severity: Severity::Warning,
        message: "The page was in the background while it measured, where browsers slow timers down: latencies may be \
                  longer than the network makes them. Measure again with the page in front.",
    },
    WarningKind {
        code: WarningCode::ConnectionCut,
        name: "connection-cut",
        severity: Severity::Warning,
        message: "Connections ended while they were measured and were resumed, and the longest latencies are those of \
                  messages that waited for that. Look at what ends connections on the way: proxies, time-outs, radio.",
    },
    WarningKind {
        code: WarningCode::Uncompressed,
        name: "uncompressed",
        severity: Severity::Warning,
        message: "Clients asked for compression, and most messages came as they are, so the run says nothing of what \
                  compression costs. Look at the subject's options, and at what stands between it and the clients.",
    },
];

impl WarningCode {
    /// The code's row in [`WARNINGS`].
    pub fn kind(self) -> &'static WarningKind {
        // The table is in the order of the enum, which a test holds; a missing row would not survive it.
        &WARNINGS[self as usize]
    }

    /// Void or warning.
    pub fn severity(self) -> Severity {
        self.kind().severity
    }

    /// What it means and what to do.
    pub fn message(self) -> &'static str {
        self.kind().message
    }
}

impl fmt::Display for WarningCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind().name)
    }
}

/// A warning raised by a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// What it is about.
    pub code: WarningCode,
    /// The numbers: what was found and what the limit is.
    pub detail: String,
}

impl Warning {
    /// A warning with its numbers.
    pub fn new(code: WarningCode, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }

    /// Whether it takes the run out of the figures.
    pub fn is_void(&self) -> bool {
        self.code.severity() == Severity::Void
    }
}

/// What the generator may do before a run is void.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GeneratorLimits {
    /// CPU, per cent of each core it was given, from which it counts as saturated. Default 95: a full core rarely
    /// shows 100 over a window.
    pub cpu_percent_max: f64,
    /// 99th percentile of the duration of a loop's turn, ms, above which the run is void: so long may an event have waited.
    /// Default 10, as for lateness.
    #[serde(alias = "loop_lag_p99_ms_max")]
    pub turn_p99_ms_max: f64,
    /// 99th percentile of lateness (intended instant to write), ms, above which the run is void. Default 10: a
    /// tenth of what a person notices, and two slots of a feed at 200 publications a second.
    pub lateness_p99_ms_max: f64,
}

impl Default for GeneratorLimits {
    fn default() -> Self {
        Self { cpu_percent_max: 95.0, turn_p99_ms_max: 10.0, lateness_p99_ms_max: 10.0 }
    }
}

/// What the generator did during a load phase.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GeneratorLoad {
    /// Its CPU, per cent of *one* core: 180 is nearly two cores.
    pub cpu_percent: f64,
    /// Cores it was given; at least 1.
    pub cores: u32,
    /// 99th percentile of its loop's lag, ms.
    pub turn_p99_ms: f64,
    /// 99th percentile of its publications' lateness, ms; 0 when it published nothing.
    pub lateness_p99_ms: f64,
}

/// Warnings about the generator, each of which voids the run: saturated CPU, lateness, and lag without saturation,
/// whose cause is elsewhere but which is in every latency all the same. A figure that is NaN (not
/// measured) raises nothing.
pub fn generator_warnings(load: &GeneratorLoad, limits: &GeneratorLimits) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let cores = load.cores.max(1);
    let cpu_max = limits.cpu_percent_max * f64::from(cores);
    let saturated = load.cpu_percent >= cpu_max;
    if saturated {
        let detail = format!("CPU {:.0} % of one core, limit {cpu_max:.0} % on {cores} core(s)", load.cpu_percent);
        warnings.push(Warning::new(WarningCode::GeneratorSaturated, detail));
    }
    if load.turn_p99_ms > limits.turn_p99_ms_max && !saturated {
        let (turn, limit) = (load.turn_p99_ms, limits.turn_p99_ms_max);
        let detail =
            format!("turns of the loop took p99 {turn:.1} ms, limit {limit} ms, at CPU {:.0} %", load.cpu_percent);
        warnings.push(Warning::new(WarningCode::LongTurns, detail));
    }
    if load.lateness_p99_ms > limits.lateness_p99_ms_max {
        let (late, limit) = (load.lateness_p99_ms, limits.lateness_p99_ms_max);
        warnings.push(Warning::new(WarningCode::Lateness, format!("lateness p99 {late:.1} ms, limit {limit} ms")));
    }
    warnings
}

/// What receivers found by checking every stamp.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeliveryCounts {
    /// Deliveries that should have come.
    pub expected: u64,
    /// Of those, never received.
    pub lost: u64,
    /// Received again after the first time.
    pub duplicated: u64,
    /// Received after a later one of the same publisher.
    pub reordered: u64,
}

/// Warnings about delivery. There is no tolerance: transports over TCP lose nothing, so one loss is worth a sentence.
pub fn delivery_warnings(counts: &DeliveryCounts) -> Vec<Warning> {
    let found = [
        (WarningCode::Loss, counts.lost, "lost"),
        (WarningCode::Duplication, counts.duplicated, "duplicated"),
        (WarningCode::Reordering, counts.reordered, "reordered"),
    ];
    let share = |count: u64| 100.0 * count as f64 / counts.expected.max(1) as f64;
    found
        .into_iter()
        .filter(|(_, count, _)| *count > 0)
        .map(|(code, count, word)| {
            let detail = format!("{count} of {} deliveries {word} ({:.3} %)", counts.expected, share(count));
            Warning::new(code, detail)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALM: GeneratorLoad = GeneratorLoad { cpu_percent: 40.0, cores: 1, turn_p99_ms: 0.3, lateness_p99_ms: 0.5 };

    fn codes(load: GeneratorLoad) -> Vec<WarningCode> {
        generator_warnings(&load, &GeneratorLimits::default()).into_iter().map(|warning| warning.code).collect()
    }

    #[test]
    fn the_table_is_in_the_order_of_the_enum_and_names_match_the_files() {
        for (index, kind) in WARNINGS.iter().enumerate() {
            assert_eq!(kind.code as usize, index, "{}", kind.name);
            assert_eq!(serde_json::to_string(&kind.code).unwrap(), format!("\"{}\"", kind.name));
            assert!(kind.message.ends_with('.') && !kind.message.contains("  "), "{}", kind.name);
        }
        assert_eq!(WarningCode::Uncompressed as usize + 1, WARNINGS.len(), "every code has a row");
    }

    #[test]
    fn a_calm_generator_raises_nothing() {
        assert_eq!(codes(CALM), []);
        let unknown = GeneratorLoad { cpu_percent: f64::NAN, turn_p99_ms: f64::NAN, ..CALM };
        assert_eq!(codes(unknown), []);
    }

    #[test]
    fn saturation_is_of_the_cores_given() {
        assert_eq!(codes(GeneratorLoad { cpu_percent: 95.0, ..CALM }), [WarningCode::GeneratorSaturated]);
        assert_eq!(codes(GeneratorLoad { cpu_percent: 180.0, cores: 2, ..CALM }), []);
        assert_eq!(codes(GeneratorLoad { cpu_percent: 190.0, cores: 2, ..CALM }), [WarningCode::GeneratorSaturated]);
    }

    #[test]
    fn lag_and_saturation_are_told_apart() {
        let lagging = GeneratorLoad { turn_p99_ms: 11.0, ..CALM };
        assert_eq!(codes(lagging), [WarningCode::LongTurns]);
        assert_eq!(WarningCode::LongTurns.severity(), Severity::Void);
        assert_eq!(codes(GeneratorLoad { cpu_percent: 99.0, ..lagging }), [WarningCode::GeneratorSaturated]);
    }

    #[test]
    fn lateness_is_void_above_its_limit_not_at_it() {
        assert_eq!(codes(GeneratorLoad { lateness_p99_ms: 10.0, ..CALM }), []);
        let warnings =
            generator_warnings(&GeneratorLoad { lateness_p99_ms: 10.1, ..CALM }, &GeneratorLimits::default());
        assert!(warnings.len() == 1 && warnings[0].is_void(), "{warnings:?}");
        let lenient = GeneratorLimits { lateness_p99_ms_max: 50.0, ..GeneratorLimits::default() };
        assert!(generator_warnings(&GeneratorLoad { lateness_p99_ms: 10.1, ..CALM }, &lenient).is_empty());
    }

    #[test]
    fn limits_come_from_a_file_with_defaults() {
        let limits: GeneratorLimits = serde_json::from_str(r#"{"cpu_percent_max": 80}"#).unwrap();
        assert_eq!((limits.cpu_percent_max, limits.lateness_p99_ms_max), (80.0, 10.0));
        assert!(serde_json::from_str::<GeneratorLimits>(r#"{"cpu": 80}"#).is_err());
    }

    #[test]
    fn every_loss_is_worth_a_sentence() {
        assert!(delivery_warnings(&DeliveryCounts { expected: 1_000, ..DeliveryCounts::default() }).is_empty());
        let counts = DeliveryCounts { expected: 1_000, lost: 1, duplicated: 0, reordered: 3 };
        let warnings = delivery_warnings(&counts);
        assert_eq!(warnings.len(), 2);
        assert_eq!(warnings[0], Warning::new(WarningCode::Loss, "1 of 1000 deliveries lost (0.100 %)"));
        assert_eq!(warnings[1].code, WarningCode::Reordering);
        let none_expected = DeliveryCounts { duplicated: 2, ..DeliveryCounts::default() };
        assert_eq!(delivery_warnings(&none_expected).len(), 1);
    }
}
