//! What is shown while a campaign runs.

use crate::output::plain;
use crate::signals;
use indicatif::{ProgressBar, ProgressStyle};
use pushlab_analysis::report::in_words;
use pushlab_experiment::Experiment;
use pushlab_lab::Observer;
use pushlab_record::{Outcome, PlannedRun, RunRecord};
use pushlab_workload::plan::Phase;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How often a line reports progress where no bar can be drawn.
const LINE_EVERY: Duration = Duration::from_secs(20);

/// A bar with the time left, or a line now and then if there is no terminal; and a line for every run that went wrong.
pub struct Progress {
    is_quiet: bool,
    is_interrupted: bool,
    bar: ProgressBar,
    /// Planned length of a run of each experiment, ms; where runs go side by side, of its share.
    lengths: HashMap<String, u64>,
    label: String,
    runs: usize,
    runs_done: usize,
    last_line: Instant,
}

impl Progress {
    /// For these experiments; quiet shows nothing.
    pub fn new(experiments: &[Experiment], is_quiet: bool) -> Self {
        let lengths = experiments.iter().map(|e| (e.name.clone(), e.whole_ms() / e.runs().max(1) as u64)).collect();
        let bar = ProgressBar::hidden();
        let (label, last_line) = (String::new(), Instant::now());
        Self { is_quiet, is_interrupted: false, bar, lengths, label, runs: 0, runs_done: 0, last_line }
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
        let phase = format!("{phase:?}").to_lowercase();
        self.bar.set_message(format!("{} · {phase}", self.label));
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
        self.is_interrupted |= signals::wait(Duration::ZERO);
        self.is_interrupted
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
