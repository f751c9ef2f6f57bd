//! Runs as their figures, whether they were measured or printed.

use super::reasons::in_words;
use super::timeline::timeline;
use pushlab_experiment::cell::Cell;
use pushlab_record::measure::{MEASURES, Times, is_withheld, quantile_of, times_of};
use pushlab_record::{Outcome, RunRecord};
use pushlab_report::Timeline;
use pushlab_stats::{Arrivals, Warning};
use pushlab_store::Bound;
use pushlab_workload::result::WorkerClock;
use std::collections::BTreeMap;

/// One run as a report sees it.
#[derive(Debug, Clone)]
pub struct RunValues {
    /// Which point.
    pub cell: Cell,
    /// Which repetition, from 1.
    pub repeat: u32,
    /// Which machine measured it, from 1, where results of several are pooled; else 0.
    pub machine: u32,
    /// How often it was tried; only the last try is here.
    pub attempts: u32,
    /// Why it was tried again each time; empty where only the number is known.
    pub tried_again: Vec<String>,
    /// Whether it failed, and why.
    pub failure: Option<String>,
    /// What makes it less certain.
    pub warnings: Vec<Warning>,
    /// Figures by the metric's name.
    pub figures: BTreeMap<String, f64>,
    /// The times of which some figures are quantiles, where they are known.
    pub times: BTreeMap<Times, Arrivals>,
    /// How exact they are, where a study says less than a number.
    pub bounds: BTreeMap<String, Bound>,
    /// Lost, duplicated and reordered deliveries, where they are known.
    pub wrong: [Option<u64>; 3],
    /// What happened over time, where it was measured.
    pub timeline: Option<Timeline>,
    /// What a study gives of its seconds, by the metric's name; empty elsewhere.
    pub published_seconds: BTreeMap<String, Vec<f64>>,
    /// Clocks of workers on machines other than the coordinator's.
    pub clocks: Vec<WorkerClock>,
    /// Command line of the subject, with `PORT` for the port of this run; empty where it is not known.
    pub command: Vec<String>,
    /// Wall-clock length of the whole run, ms; 0 where it is not known.
    pub took_ms: u64,
    /// Why nothing but its clients tells of the subject, where that is so.
    pub unobserved: Option<String>,
    /// What the network of its cell was like, in words; `None` where there was none, or it is not known.
    pub network: Option<String>,
}

impl RunValues {
    /// Of a measured run: every metric that it has, but for those that its warnings take away.
    pub fn of(record: &RunRecord) -> Self {
        let figures = MEASURES.iter().filter_map(|(metric, of)| {
            if is_withheld(metric, &record.warnings) {
                return None;
            }
            let value = of(record).filter(|value| value.is_finite())?;
            Some(((*metric).to_owned(), value))
        });
        let failure = match &record.outcome {
            Outcome::Completed => None,
            Outcome::Failed { reason, .. } => Some(in_words(reason)),
        };
        let wrong = record.result.as_ref().map_or([None; 3], |r| {
            let unsent = r.owed() - r.expected;
            [r.lost_silently() + unsent, r.duplicated, r.reordered].map(Some)
        });
        Self {
            cell: record.planned.cell.clone(),
            repeat: record.planned.repeat,
            machine: 0,
            attempts: record.attempts,
            tried_again: record.earlier.iter().map(|attempt| attempt.reason.clone()).collect(),
            failure,
            warnings: record.warnings.clone(),
            figures: figures.collect(),
            times: times_of(record),
            bounds: BTreeMap::new(),
            wrong,
            timeline: timeline(record),
            published_seconds: BTreeMap::new(),
            clocks: record.result.as_ref().map_or_else(Vec::new, |result| result.clocks.clone()),
            command: without_port(&record.subject_command, record.plan.as_ref().map(|plan| plan.target.address.port())),
            took_ms: record.took_ms,
            unobserved: record.unobserved.clone(),
            network: record.network.as_ref().map(|network| network.profile.to_string()),
        }
    }

    /// Of a run that is yet to be done.
    pub fn planned(cell: Cell) -> Self {
        Self {
            cell,
            repeat: 1,
            machine: 0,
            attempts: 1,
            tried_again: Vec::new(),
            failure: None,
            warnings: Vec::new(),
            figures: BTreeMap::new(),
            times: BTreeMap::new(),
            bounds: BTreeMap::new(),
            wrong: [None; 3],
            timeline: None,
            published_seconds: BTreeMap::new(),
            clocks: Vec::new(),
            command: Vec::new(),
            took_ms: 0,
            unobserved: None,
            network: None,
        }
    }

    /// Whether it was measured what this figure is taken from, be it enough for the figure or not.
    pub fn measured(&self, metric: &str) -> bool {
        let has_times = || quantile_of(metric).is_some_and(|(times, _)| self.times.contains_key(&times));
        self.figures.contains_key(metric) || has_times()
    }

    /// Whether this figure is a quantile that falls among what never came.
    pub fn has_not_reached(&self, metric: &str) -> bool {
        let Some((times, quantile)) = quantile_of(metric) else { return false };
        self.times.get(&times).is_some_and(|own| own.lack(quantile, 0).is_some())
    }

    /// Whether its figures count.
    pub fn counts(&self) -> bool {
        self.failure.is_none() && !self.is_void()
    }

    /// Whether a warning takes it out of the figures.
    pub fn is_void(&self) -> bool {
        self.failure.is_none() && self.warnings.iter().any(Warning::is_void)
    }
}

/// A command line as it is for all runs that were started alike: only the port differs from run to run.
fn without_port(command: &[String], port: Option<u16>) -> Vec<String> {
    let port = port.map(|port| port.to_string());
    let put_out = |word: &String| match port.as_ref().and_then(|port| word.strip_suffix(port.as_str())) {
        Some(before) if !before.ends_with(|c: char| c.is_ascii_digit()) => format!("{before}PORT"),
        _ => word.clone(),
    };
    command.iter().map(put_out).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_does_not_tell_one_start_from_another() {
        let words = |port: u16| {
            ["node", "a.mjs", "54321"]
                .map(str::to_owned)
                .into_iter()
                .chain([format!("--at=[::1]:{port}"), port.to_string()])
        };
        let first = without_port(&words(4321).collect::<Vec<_>>(), Some(4321));
        assert_eq!(first, ["node", "a.mjs", "54321", "--at=[::1]:PORT", "PORT"]);
        assert_eq!(without_port(&words(8000).collect::<Vec<_>>(), Some(8000)), first);
        assert_eq!(without_port(&first, None), first);
    }
}
