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
    /// Much of the delivery latency was the generator's own.
    GeneratorShare,
    /// Much of the response time was the prober's own.
    ProberShare,
    /// Clocks differ by an unknown amount that is larger than what was measured across them.
    OneWayUnsure,
    /// A CPU quota, as containers have them, held up the generator or the subject.
    CpuQuota,
    /// Most of the load was never sent, or nothing was due.
    Unsent,
    /// Clients received other clients' messages in place of answers.
    Misdirected,
    /// Clients that poll at an interval polled only in their own turns.
    PolledInTurns,
}

/// How much a warning takes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The run says nothing about the subject.
    Void,
    /// Some of its figures say nothing about the subject and are left out; the others count.
    Withheld,
    /// The run counts, with this caveat.
    Warning,
}

/// Figures of a run that a warning can take away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figures {
    /// Every one.
    All,
    /// Latency of deliveries.
    Latency,
    /// Those of them that begin on one clock and end on another: all but round trips.
    OneWay,
    /// Response time of pings while the load runs.
    Response,
}

/// A row of the table of warnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WarningKind {
    /// The code.
    pub code: WarningCode,
    /// The code as text, as in files.
    pub name: &'static str,
    /// The figures that it takes away.
    pub withholds: &'static [Figures],
    /// What it means and what to do, for people.
    pub message: &'static str,
}

/// Every warning there is, in the order of [`WarningCode`].
pub const WARNINGS: &[WarningKind] = &[
    WarningKind {
        code: WarningCode::GeneratorSaturated,
        name: "generator-saturated",
        withholds: &[Figures::Latency, Figures::Response],
        message: "A thread of the load generator, or all of its cores together, had no CPU to spare for a second \
                  or longer. Latencies include the time spent waiting for it and are left out; counts and the \
                  server's CPU, memory and bytes stand. Give the generator more cores or event loops, or lower \
                  the rate or the number of clients.",
    },
    WarningKind {
        code: WarningCode::LongTurns,
        name: "long-turns",
        withholds: &[Figures::All],
        message: "The generator's loop was held up although it had CPU to spare, and every latency includes that \
                  delay. Look for other processes on its cores, for CPU throttling, and for a hypervisor that \
                  takes time.",
    },
    WarningKind {
        code: WarningCode::Lateness,
        name: "lateness",
        withholds: &[Figures::All],
        message: "Publications left later than scheduled, so the subject was not under the planned load. Lower \
                  the rate, or give the generator more cores.",
    },
    WarningKind {
        code: WarningCode::Loss,
        name: "loss",
        withholds: &[],
        message: "Some deliveries never arrived. Latency quantiles count them as longer than anything measured; \
                  means leave them out. Look at the subject's queue limits and policy, and at disconnections.",
    },
    WarningKind {
        code: WarningCode::Duplication,
        name: "duplication",
        withholds: &[],
        message: "Some deliveries arrived more than once; only the first counts. Within one connection that is a \
                  fault of the subject; across reconnections the subject may promise no more than at-least-once \
                  delivery.",
    },
    WarningKind {
        code: WarningCode::Reordering,
        name: "reordering",
        withholds: &[],
        message: "Some deliveries overtook earlier ones of the same publisher. \
                  The subject does not keep the order that its transport promises.",
    },
    WarningKind {
        code: WarningCode::Overloaded,
        name: "overloaded",
        withholds: &[],
        message: "The subject delivered fewer messages a second than were published for its subscribers, so its \
                  backlog kept growing, and latencies only reflect how long the load lasted. Lower the rate to \
                  learn the latency of a server that keeps up.",
    },
    WarningKind {
        code: WarningCode::Unstable,
        name: "unstable",
        withholds: &[],
        message: "A figure was still rising or falling while it was measured, so its mean depends on the length \
                  of the run. Make the warm-up longer; if it keeps rising under constant load, the subject does \
                  not sustain it.",
    },
    WarningKind {
        code: WarningCode::FewSamples,
        name: "few-samples",
        withholds: &[],
        message: "A figure rests on too few measurements, most often a high percentile. Make the load phase \
                  longer or repeat the run more often.",
    },
    WarningKind {
        code: WarningCode::ProbeGaps,
        name: "probe-gaps",
        withholds: &[],
        message: "The probe missed readings, so CPU and memory have gaps. Give the probe a core that the load \
                  does not saturate.",
    },
    WarningKind {
        code: WarningCode::SubjectRestarted,
        name: "subject-restarted",
        withholds: &[Figures::All],
        message: "The subject's process ended and another took its place, so the figures mix two processes. Look \
                  at the subject's log for the crash.",
    },
    WarningKind {
        code: WarningCode::ClockError,
        name: "clock-error",
        withholds: &[],
        message: "The offset between two clocks, of hosts or of a browser's page and its worker, is uncertain, \
                  and the uncertainty is large beside the latencies measured across them: each may be off by that \
                  much. Between hosts, bring the coordinator nearer to its workers, or measure on one; a browser \
                  needs cores with time to spare.",
    },
    WarningKind {
        code: WarningCode::NoisyNeighbour,
        name: "noisy-neighbour",
        withholds: &[],
        message: "Another process or guest used CPU during the run. \
                  Stop it, or measure on a machine of your own; compare CPU time per delivery, which suffers least.",
    },
    WarningKind {
        code: WarningCode::Unpinned,
        name: "unpinned",
        withholds: &[],
        message: "Subject and generator could run on the same cores and take CPU from each other. \
                  Pin them to different cores; the machine needs at least two.",
    },
    WarningKind {
        code: WarningCode::LinkLate,
        name: "link-late",
        withholds: &[Figures::All],
        message: "The emulated network held packets for too long, or broke, so the run's network was not the one \
                  it names. Lower the rate or the number of clients, or give the load more cores.",
    },
    WarningKind {
        code: WarningCode::CaptureCut,
        name: "capture-cut",
        withholds: &[],
        message: "The capture does not hold every packet; the link's counters do. If the disk is full, make room; \
                  if the capture reached its size limit, measure for a shorter time.",
    },
    WarningKind {
        code: WarningCode::GeneratorBound,
        name: "generator-bound",
        withholds: &[],
        message: "In a closed loop the load generator was the slower side and the subject had time to spare: the \
                  rate is a lower bound; the subject's CPU time per delivery stands. Give the generator more \
                  cores.",
    },
    WarningKind {
        code: WarningCode::PageHidden,
        name: "page-hidden",
        withholds: &[],
        message: "The page was in the background while it measured, where browsers slow timers down: latencies \
                  may be longer than the network's own. Measure again with the page in front.",
    },
    WarningKind {
        code: WarningCode::ConnectionCut,
        name: "connection-cut",
        withholds: &[],
        message: "Connections ended while they were measured and were resumed, and the longest latencies are \
                  those of messages that waited for reconnection. Look at what cuts connections on the way: \
                  proxies, time-outs, radio.",
    },
    WarningKind {
        code: WarningCode::Uncompressed,
        name: "uncompressed",
        withholds: &[],
        message: "Clients asked for compression, but most messages arrived uncompressed, so the run does not show \
                  what compression costs. Check the subject's options, and any proxy between it and the clients.",
    },
    WarningKind {
        code: WarningCode::GeneratorShare,
        name: "generator-share",
        withholds: &[Figures::Latency],
        message: "Much of the latency was the load generator's own: publications left late, or what the kernel \
                  had already received waited to be read. Latencies of deliveries are left out; all else stands. \
                  Give the generator more cores or event loops, or lower the rate or the number of clients.",
    },
    WarningKind {
        code: WarningCode::ProberShare,
        name: "prober-share",
        withholds: &[Figures::Response],
        message: "Much of the response time was the prober's own: pings left late, or answers that the kernel had \
                  already received waited to be read. Response times under load are left out; all else stands. \
                  Give the generator one core more than its event loops need.",
    },
    WarningKind {
        code: WarningCode::OneWayUnsure,
        name: "one-way-unsure",
        withholds: &[Figures::OneWay],
        message: "The offset between two clocks, of hosts or of a browser's page and its worker, is uncertain by as \
                  much as the latencies measured across them or more. These are left out; round trips, counts and \
                  all else stand. Bring the coordinator nearer to its workers, or measure on one host; a browser needs \
                  cores with time to spare.",
    },
    WarningKind {
        code: WarningCode::CpuQuota,
        name: "cpu-quota",
        withholds: &[Figures::Latency, Figures::Response],
        message: "A CPU quota, such as a container's, stopped the generator or the server until its next period. \
                  Latencies and response times include these stops and are left out; counts and the server's CPU, \
                  memory and bytes stand. Remove the quota (Docker: --cpus, Kubernetes: limits.cpu), raise it, or \
                  give the container cores of its own (--cpuset-cpus).",
    },
    WarningKind {
        code: WarningCode::Unsent,
        name: "unsent",
        withholds: &[Figures::All],
        message: "Most publications of the load phase were never sent, so the run says nothing about a subject under \
                  this load. Lower the rate, make the load phase longer than the interval, or find out what keeps the \
                  subject from reading.",
    },
    WarningKind {
        code: WarningCode::Misdirected,
        name: "misdirected",
        withholds: &[Figures::All],
        message: "Clients that expect echoes received those of others: the subject broadcasts, so its CPU time, \
                  bytes and latencies are not those of an echo. Measure an endpoint that answers the sender alone, or \
                  use scenario chat.",
    },
    WarningKind {
        code: WarningCode::PolledInTurns,
        name: "polled-in-turns",
        withholds: &[Figures::Latency],
        message: "Clients polled only in their own run's turns, so messages waited while other runs had theirs, and \
                  latencies are left out. Remove turns_ms to measure them.",
    },
];

impl WarningCode {
    /// The code's row in [`WARNINGS`].
    pub fn kind(self) -> &'static WarningKind {
        // The table is in the order of the enum, which a test holds; a missing row would not survive it.
        &WARNINGS[self as usize]
    }

    /// How much it takes away.
    pub fn severity(self) -> Severity {
        match self.kind().withholds {
            [] => Severity::Warning,
            figures if figures.contains(&Figures::All) => Severity::Void,
            _ => Severity::Withheld,
        }
    }

    /// Whether it takes these figures away.
    pub fn withholds(self, figures: Figures) -> bool {
        self.kind().withholds.iter().any(|withheld| *withheld == Figures::All || *withheld == figures)
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

    #[test]
    fn the_table_is_in_the_order_of_the_enum_and_names_match_the_files() {
        for (index, kind) in WARNINGS.iter().enumerate() {
            assert_eq!(kind.code as usize, index, "{}", kind.name);
            assert_eq!(serde_json::to_string(&kind.code).unwrap(), format!("\"{}\"", kind.name));
            assert!(kind.message.ends_with('.') && !kind.message.contains("  "), "{}", kind.name);
        }
        assert_eq!(WarningCode::PolledInTurns as usize + 1, WARNINGS.len(), "every code has a row");
    }

    #[test]
    fn a_warning_takes_away_all_some_or_none_of_the_figures() {
        use WarningCode::{GeneratorBound, GeneratorSaturated, LongTurns};
        assert_eq!(LongTurns.severity(), Severity::Void);
        assert!(LongTurns.withholds(Figures::Latency) && LongTurns.withholds(Figures::Response));
        assert_eq!(GeneratorSaturated.severity(), Severity::Withheld);
        assert!(GeneratorSaturated.withholds(Figures::Latency) && !GeneratorSaturated.withholds(Figures::All));
        assert!(!Warning::new(GeneratorSaturated, "").is_void(), "its counts stand");
        assert_eq!(GeneratorBound.severity(), Severity::Warning);
        assert!(!GeneratorBound.withholds(Figures::Latency));
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
