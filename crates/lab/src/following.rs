//! Following a run from its first phase to its end, whoever brings that about.

use crate::meeting::Beside;
use crate::observer::{LISTEN, RunObserver};
use crate::target::Target;
use crate::warming::Warming;
use crate::workers::RunWorkers;
use pushlab_experiment::Experiment;
use pushlab_fleet::Load;
use pushlab_record::PlannedRun;
use pushlab_watch::LatestUsage;
use pushlab_workload::messages::{LoadError, Progress, RunEvent};
use pushlab_workload::plan::Phase;
use pushlab_workload::result::LoadResult;
use std::time::{Duration, Instant};

/// Time that a run may take beyond its phases.
const SLACK: Duration = Duration::from_secs(30);
/// Time for a subject's death to show after the worker noticed broken connections.
const DEATH_NOTICE: Duration = Duration::from_millis(300);
/// How long a subject may be silent while load is due: more than any pause of a garbage collector, and so little that
/// the failure is recorded within 30 s.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// The same where clients live in a browser: one of which nothing is heard is itself found out after 25 s.
const SILENCE_IN_BROWSER_MAX: Duration = Duration::from_secs(26);

/// How a run ended.
pub(crate) enum Ended {
    Done(Box<LoadResult>),
    Failed {
        reason: String,
        phase: Option<Phase>,
        /// Whether it was the load that failed, while the subject lived.
        is_of_load: bool,
    },
    /// The subject is not steady at the end of a warm-up that may be longer.
    Cold {
        detail: String,
    },
    /// The subject hangs.
    Silent {
        reason: String,
        phase: Option<Phase>,
    },
    Interrupted,
}

/// What it takes to follow a run.
pub(crate) struct Follow<'a> {
    experiment: &'a Experiment,
    silence_max: Duration,
    /// Longest time for a browser to be there.
    start_max: Duration,
    used: &'a [LatestUsage; 2],
}

impl<'a> Follow<'a> {
    pub(crate) fn of(planned: &PlannedRun, experiment: &'a Experiment, used: &'a [LatestUsage; 2]) -> Self {
        let clients_in = experiment.clients_in.for_clients(planned.cell.clients);
        let start_max = Duration::from_millis(if clients_in.is_browser() { clients_in.start_max_ms() } else { 0 });
        Self { experiment, silence_max: silence_max(planned, experiment), start_max, used }
    }

    /// Waits for the end of the run, whichever comes first: the worker's, the subject's, the observer's or the
    /// deadline. A subject that is silent for too long has come to its end too.
    pub(crate) fn to_the_end(
        &self,
        target: &mut Target,
        load: &mut Load<RunWorkers>,
        mut beside: Option<&mut Beside<'_>>,
        observer: &mut dyn RunObserver,
        warming: &mut Warming,
        on_phase: &mut dyn FnMut(&mut Target, Phase, u64) -> Result<(), String>,
    ) -> Ended {
        let phases = &self.experiment.phases;
        let longest = Duration::from_millis(self.experiment.run_ms() + phases.connect_ms + phases.drain_ms) + SLACK;
        let longest = longest + self.start_max;
        let deadline = Instant::now() + longest;
        let mut phase = None;
        loop {
            if observer.is_interrupted() {
                return Ended::Interrupted;
            }
            observer.usage(self.used[0].read(), self.used[1].read());
            if let Some(begin_ns) = beside.as_ref().and_then(|beside| beside.begin_ns()) {
                load.begin_at(begin_ns);
            }
            let mut is_of_load = false;
            let reason = match load.listen(LISTEN) {
                Some(RunEvent::Ready) => {
                    beside.iter_mut().for_each(|beside| beside.is_ready());
                    continue;
                }
                Some(RunEvent::Phase { phase: next, t_ns }) => {
                    phase = Some(next);
                    if let Err(reason) = on_phase(target, next, t_ns) {
                        return Ended::Failed { reason, phase, is_of_load: false };
                    }
                    if let Some(detail) = warming.is_too_short(self.experiment).filter(|_| next == Phase::Load) {
                        return Ended::Cold { detail };
                    }
                    observer.phase(next);
                    continue;
                }
                Some(RunEvent::Progress(progress)) => {
                    observer.progress(&progress);
                    if phase == Some(Phase::WarmUp) {
                        warming.note(&progress, self.used[0].read());
                    }
                    match (silence(&progress, self.silence_max), target.death()) {
                        (Some(reason), None) => return Ended::Silent { reason, phase },
                        _ => continue,
                    }
                }
                Some(RunEvent::Done { result }) => return Ended::Done(result),
                Some(RunEvent::Failed(error)) => {
                    is_of_load = matches!(error, LoadError::Worker { .. } | LoadError::Silent { .. });
                    Some(load.fleet().told(&error))
                }
                None if Instant::now() > deadline => {
                    Some(format!("the run did not end within {} s", longest.as_secs()))
                }
                None => target.blindness().inspect(|_| is_of_load = true),
            };
            if reason.is_some() {
                // A worker that fails may only have noticed first what happened to the subject.
                std::thread::sleep(DEATH_NOTICE);
            }
            let death = target.death();
            is_of_load &= death.is_none();
            if let Some(reason) = death.or(reason) {
                return Ended::Failed { reason, phase, is_of_load };
            }
        }
    }
}

/// What is wrong with a subject that has been silent for so long.
fn silence(progress: &Progress, silence_max: Duration) -> Option<String> {
    let silent = Duration::from_millis(progress.silent_ms);
    (silent >= silence_max).then(|| {
        let (silent_s, outstanding) = (silent.as_secs(), progress.outstanding);
        format!(
            "the subject went silent: it delivered nothing for {silent_s} s while {outstanding} deliveries were outstanding"
        )
    })
}

/// How long the subject may be silent. What was published is not expected before a round trip through the network, of
/// which the delay may vary, and, where clients ask at an interval, not before one asks.
fn silence_max(planned: &PlannedRun, experiment: &Experiment) -> Duration {
    let least = if experiment.clients_in.is_browser() { SILENCE_IN_BROWSER_MAX } else { SILENCE_MAX };
    let profile = planned.cell.network.as_ref().and_then(|name| experiment.network(name));
    let travels_ms = profile.map_or(0.0, |profile| 2.0 * profile.round_trip_ms()) as u64;
    let asks_ms = if planned.cell.transport.is_interval_driven() { experiment.polling.interval_ms } else { 0 };
    least + Duration::from_millis(travels_ms + asks_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_given_up_when_it_has_been_silent_for_too_long() {
        let silent = |silent_ms| Progress { silent_ms, outstanding: 3_214, ..Progress::default() };
        assert_eq!(silence(&silent(0), SILENCE_MAX), None);
        assert_eq!(silence(&silent(9_999), SILENCE_MAX), None);
        let why = silence(&silent(10_000), SILENCE_MAX).unwrap();
        assert!(why.ends_with("it delivered nothing for 10 s while 3214 deliveries were outstanding"), "{why}");
        assert_eq!(silence(&silent(10_000), SILENCE_MAX + Duration::from_millis(1)), None, "over a slow network");
    }
}
