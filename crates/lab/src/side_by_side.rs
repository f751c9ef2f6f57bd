//! Runs that go side by side, each in a thread of its own.

use crate::meeting::{Beside, Meeting};
use crate::observer::RunObserver;
use crate::planner::Side;
use crate::run::{Executed, execute};
use crate::standing::Standing;
use crate::workplace::Workplace;
use pushlab_experiment::Experiment;
use pushlab_record::PlannedRun;
use pushlab_watch::Usage;
use pushlab_workload::messages::Progress;
use pushlab_workload::plan::Phase;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

/// How often it is looked whether to stop.
const LISTEN: Duration = Duration::from_millis(50);

/// What a run tells whoever watches all of them.
enum Told {
    Phase(Phase),
    Progress(Progress),
    Usage(usize, Usage, Usage),
    Waits(String),
}

/// The observer of one run among several.
struct Relay<'a> {
    number: usize,
    tell: Sender<Told>,
    is_stopped: &'a AtomicBool,
}

impl RunObserver for Relay<'_> {
    // Phases begin at the same instants, and progress is much the same: those of one are told.
    fn phase(&mut self, phase: Phase) {
        if self.number == 0 {
            let _ = self.tell.send(Told::Phase(phase));
        }
    }
    fn progress(&mut self, progress: &Progress) {
        if self.number == 0 {
            let _ = self.tell.send(Told::Progress(*progress));
        }
    }
    fn usage(&mut self, subject: Usage, generator: Usage) {
        let _ = self.tell.send(Told::Usage(self.number, subject, generator));
    }
    fn waits(&mut self, line: &str) {
        if self.number == 0 {
            let _ = self.tell.send(Told::Waits(line.to_owned()));
        }
    }
    fn is_interrupted(&mut self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }
}

/// A run, alone or beside others.
#[derive(Debug, Clone, Copy)]
pub struct Member<'a> {
    /// Which.
    pub planned: &'a PlannedRun,
    /// The experiment as it is for its cell.
    pub experiment: &'a Experiment,
    /// Its place, if it goes side by side with others.
    pub side: Option<Side>,
}

/// Executes runs side by side, each with a subject and a load of its own. What comes of each is at its place.
pub fn execute_together(members: &[Member<'_>], place: &Workplace, observer: &mut dyn RunObserver) -> Vec<Executed> {
    let meeting = Meeting::of(members.iter().filter(|member| member.side.is_some()).count() as u32);
    let is_stopped = AtomicBool::new(false);
    let (tell, told) = mpsc::channel();
    thread::scope(|scope| {
        let run = |(number, member): (usize, &Member<'_>)| {
            let beside = member.side.map(|side| Beside::new(&meeting, side));
            let mut relay = Relay { number, tell: tell.clone(), is_stopped: &is_stopped };
            let (planned, experiment) = (member.planned.clone(), member.experiment.clone());
            scope.spawn(move || execute(&planned, &experiment, place, &mut Standing::default(), beside, &mut relay))
        };
        let threads: Vec<_> = members.iter().enumerate().map(run).collect();
        drop(tell);
        let mut usage = vec![(Usage::default(), Usage::default()); members.len()];
        loop {
            match told.recv_timeout(LISTEN) {
                Ok(Told::Phase(phase)) => observer.phase(phase),
                Ok(Told::Progress(progress)) => observer.progress(&progress),
                Ok(Told::Waits(line)) => observer.waits(&line),
                Ok(Told::Usage(number, subject, generator)) => {
                    usage[number] = (subject, generator);
                    let [subjects, generators] = usage
                        .iter()
                        .fold([Usage::default(); 2], |[one, other], used| [one.plus(used.0), other.plus(used.1)]);
                    observer.usage(subjects, generators);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if observer.is_interrupted() {
                is_stopped.store(true, Ordering::Relaxed);
            }
        }
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}
