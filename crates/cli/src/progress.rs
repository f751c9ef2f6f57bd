//! What is shown while a campaign runs.

use crate::output::plain;
use crate::signals;
use indicatif::{ProgressBar, ProgressStyle};
use pushlab_analysis::report::in_words;
use pushlab_experiment::Experiment;
use pushlab_lab::Observer;
use pushlab_record::{Outcome, PlannedRun, RunRecord};
use pushlab_workload::messages;
use pushlab_workload::plan::Phase;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How often a line reports progress where no bar can be drawn.
const LINE_EVERY: Duration = Duration::from_secs(20);

/// Clients of a run from which on it is told how far their connecting is, where no bar can be drawn: fewer are there soon.
const TOLD_CLIENTS_MIN: u32 = 10_000;

/// The clients of a run while they connect.
#[derive(Debug, Clone, Copy)]
struct Connecting {
    clients: u32,
    /// When it was told last how many there were, and how many.
    told: (Instant, u32),
}

impl Connecting {
    /// How far they are, and at this rate for how long: `connected 34000 of 200000, 4010/s, 42s left`.
    fn told(&mut self, connected: u32, now: Instant) -> String {
        let (then, before) = std::mem::replace(&mut self.told, (now, connected));
        let gone_s = now.saturating_duration_since(then).as_secs_f64();
        let rate = f64::from(connected.saturating_sub(before)) / gone_s;
        let counted = format!("connected {connected} of {}", self.clients);
        let left = Duration::try_from_secs_f64(f64::from(self.clients.saturating_sub(connected)) / rate);
        match left {
            Ok(left) if rate > 0.0 && rate.is_finite() => {
                format!(
                    "{counted}, {rate:.0}/s, {} left",
                    humantime::format_duration(Duration::from_secs(left.as_secs()))
                )
            }
            _ => counted,
        }
    }
}

/// A bar with the time left, or a line now and then if there is no terminal; and a line for every run that went wrong.
pub struct Progress {
    is_quiet: bool,
    bar: ProgressBar,
    /// Planned length of a run of each experiment, ms; where runs go side by side, of its share.
    lengths: HashMap<String, u64>,
    label: String,
    /// Of the run that goes on, until all are.
    connecting: Option<Connecting>,
    runs: usize,
    runs_done: usize,
    last_line: Instant,
}

impl Progress {
    /// For these experiments; quiet shows nothing.
    pub fn new(experiments: &[Experiment], is_quiet: bool) -> Self {
        let lengths = experiments.iter().map(|e| (e.name.clone(), e.whole_ms() / e.runs().max(1) as u64)).collect();
        let bar = ProgressBar::hidden();
        let (label, connecting, last_line) = (String::new(), None, Instant::now());
        Self { is_quiet, bar, lengths, label, connecting, runs: 0, runs_done: 0, last_line }
    }

    fn length(&self, run: &PlannedRun) -> u64 {
        self.lengths.get(&run.cell.experiment).copied().unwrap_or(0)
    }

    fn say(&self, line: &str) {
        if self.is_quiet {
            return;
        }
        // A bar that is not drawn (no terminal) swallows its lines.
        if self.bar.is_hidden() { eprintln!("{line}") } else { self.bar.println(plain(line)) }
    }
}

impl Observer for Progress {
    fn begin(&mut self, planned: &[PlannedRun], done: usize, id: i64) {
        if self.is_quiet {
            return;
        }
        (self.runs, self.runs_done) = (planned.len(), done);
        let total: u64 = planned.iter().map(|run| self.length(run)).sum();
        let left: u64 = planned[done.min(planned.len())..].iter().map(|run| self.length(run)).sum();
        let about = Duration::from_secs(left / 1000);
        let verb = if done > 0 { format!("going on after {done} of") } else { "doing".to_owned() };
        eprintln!("{verb} {} runs, about {}, kept as result {id}", planned.len(), humantime::format_duration(about));
        self.bar = ProgressBar::new(total);
        let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {elapsed} gone, {eta} left  {msg}");
        self.bar.set_style(style.expect("the template is valid"));
        self.bar.set_position(total - left);
        self.bar.reset_eta();
        self.bar.enable_steady_tick(Duration::from_millis(500));
    }

    fn run(&mut self, planned: &PlannedRun) {
        self.label = plain(&planned.label()).into_owned();
        self.connecting = Some(Connecting { clients: planned.cell.clients, told: (Instant::now(), 0) });
        self.bar.set_message(self.label.clone());
        if self.bar.is_hidden() && self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            let left = Duration::from_secs(self.bar.eta().as_secs());
            let left = humantime::format_duration(left);
            self.say(&format!(
                "{} of {} runs done, {left} left; now {}",
                self.runs_done.min(self.runs),
                self.runs,
                self.label
            ));
        }
    }

    fn phase(&mut self, phase: Phase) {
        match &mut self.connecting {
            // What came before was the subject's start.
            Some(connecting) if phase == Phase::Connect => connecting.told = (Instant::now(), 0),
            connecting => *connecting = None,
        }
        let phase = format!("{phase:?}").to_lowercase();
        self.bar.set_message(format!("{} · {phase}", self.label));
    }

    fn progress(&mut self, progress: &messages::Progress) {
        let Some(connecting) = &mut self.connecting else { return };
        let now = Instant::now();
        if !self.bar.is_hidden() {
            let told = connecting.told(progress.connected, now);
            self.bar.set_message(format!("{} · {told}", self.label));
        } else if connecting.clients >= TOLD_CLIENTS_MIN && self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = now;
            let told = connecting.told(progress.connected, now);
            self.say(&format!("{}: {told}", self.label));
        }
    }

    fn recorded(&mut self, record: &RunRecord) {
        self.bar.inc(self.length(&record.planned));
        self.runs_done += 1;
        if let Outcome::Failed { reason, .. } = &record.outcome {
            self.say(&format!("failed: {}: {}", record.planned.label(), in_words(reason)));
        }
        for warning in record.warnings.iter().filter(|d| d.is_void()) {
            self.say(&format!("void: {}: {}: {}", record.planned.label(), warning.code, warning.detail));
        }
    }

    fn waits(&mut self, line: &str) {
        self.say(line);
    }

    fn is_interrupted(&mut self) -> bool {
        signals::has_come()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connecting_is_told_with_its_rate_and_what_is_left() {
        let begun = Instant::now();
        let mut connecting = Connecting { clients: 200_000, told: (begun, 0) };
        let at = |s| begun + Duration::from_secs(s);
        assert_eq!(connecting.told(8_000, at(2)), "connected 8000 of 200000, 4000/s, 48s left");
        assert_eq!(connecting.told(8_000, at(3)), "connected 8000 of 200000");
        assert_eq!(connecting.told(10_000, at(4)), "connected 10000 of 200000, 2000/s, 1m 35s left");
        assert_eq!(connecting.told(10_500, at(4)), "connected 10500 of 200000", "no time has passed");
        assert_eq!(connecting.told(9_000, at(5)), "connected 9000 of 200000", "some were cut");
        assert_eq!(connecting.told(200_000, at(6)), "connected 200000 of 200000, 191000/s, 0s left");
    }
}
