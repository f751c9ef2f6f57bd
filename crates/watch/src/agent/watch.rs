//! The lab's end of an agent in one run.

use super::{Order, Report, Seen};
use crate::{LatestUsage, Phases, SAMPLE_INTERVAL};
use pushlab_bus::{Crew, Lines, Said, read};
use pushlab_probe::{MachineLoad, Recording, Sample, SamplerConfig, TcpActivity};
use pushlab_record::{CounterSample, KernelMemory};
use pushlab_workload::phase::Periodic;
use pushlab_workload::plan::{Phase, Target};
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time for it to learn the lab's clock and to find the server.
const BEGIN_WITHIN: Duration = Duration::from_secs(15);
/// Time for it to tell the rest.
const END_WITHIN: Duration = Duration::from_secs(5);
/// An agent that says nothing for longer hangs: it tells its samples four times a second.
const SILENCE_MAX: Duration = Duration::from_secs(8);

/// What an agent sees of a server, over all runs in which it is measured.
pub struct Agent {
    crew: Arc<Crew>,
    at: IpAddr,
    is_of_this_machine: bool,
    /// In the run that goes on.
    watch: Option<Watch>,
}

/// What was seen from beside a server.
pub struct FromBeside {
    /// Its processes.
    pub recording: Recording,
    /// Its own counters, if it is ours.
    pub counters: Vec<CounterSample>,
    /// What TCP did on its machine.
    pub tcp: Option<TcpActivity>,
    /// What its kernel held.
    pub kernel: Option<KernelMemory>,
    /// Its machine, if that is not the lab's.
    pub elsewhere: Option<Elsewhere>,
}

/// The machine of a server, if that is not the lab's.
#[derive(Debug, Clone, Copy)]
pub struct Elsewhere {
    /// How busy it was in the load phase.
    pub load: Option<MachineLoad>,
}

impl Agent {
    /// The agent that watches servers at an address.
    pub fn new(crew: Arc<Crew>, at: IpAddr, is_of_this_machine: bool) -> Self {
        Self { crew, at, is_of_this_machine, watch: None }
    }

    /// Has it watch a server that clients reach so.
    ///
    /// # Errors
    /// As a sentence.
    pub fn begin(&mut self, target: &Target, used: &LatestUsage, phases: Phases) -> Result<(), String> {
        let delay = phases.delay(Periodic::SubjectSamples, SAMPLE_INTERVAL);
        self.watch = Some(Watch::begin(&self.crew, self.at, target, delay, used.clone())?);
        Ok(())
    }

    /// Has it read the counters of a server that is ours.
    pub fn count(&self, interval: Duration, phases: Phases) {
        let delay = phases.delay(Periodic::Counters, interval);
        self.tell(&Order::Count { interval_ns: nanoseconds(interval), delay_ns: nanoseconds(delay) });
    }

    /// A phase begins.
    pub fn phase(&self, phase: Phase) {
        self.tell(&Order::Phase(phase));
    }

    fn tell(&self, order: &Order) {
        self.watch.iter().for_each(|watch| watch.lines.tell(0, order));
    }

    /// Why the server is not there any more, if so.
    pub fn death(&self) -> Option<String> {
        let watch = self.watch.as_ref()?;
        watch.heard().has_gone.then(|| format!("the server's processes have ended, says {}", watch.name))
    }

    /// Why it does not see the server any more, if so.
    pub fn failure(&self) -> Option<String> {
        self.watch.as_ref()?.heard().lost.clone()
    }

    /// Ends watching; what it saw, if it watched.
    ///
    /// # Errors
    /// As a sentence, when it did not tell all of it.
    pub fn finish(&mut self) -> Option<Result<FromBeside, String>> {
        let is_here = self.is_of_this_machine;
        Some(self.watch.take()?.finish().map(|(samples, seen)| FromBeside {
            recording: Recording { samples, ticks_missed: seen.ticks_missed, ..Recording::default() },
            counters: seen.counters,
            tcp: seen.tcp,
            kernel: seen.kernel,
            elsewhere: (!is_here).then_some(Elsewhere { load: seen.machine }),
        }))
    }
}

fn nanoseconds(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

/// An agent's process of one run.
struct Watch {
    lines: Lines,
    name: String,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    heard: Mutex<Heard>,
    changed: Condvar,
}

/// What it has told.
#[derive(Default)]
struct Heard {
    is_watching: bool,
    samples: Vec<Sample>,
    has_gone: bool,
    seen: Option<Seen>,
    /// Why nothing more comes.
    lost: Option<String>,
}

impl Watch {
    fn begin(crew: &Crew, at: IpAddr, target: &Target, delay: Duration, used: LatestUsage) -> Result<Self, String> {
        let (lines, said, name) = crew.watch(at)?;
        let shared = Arc::new(Shared::default());
        let (own, of) = (Arc::clone(&shared), name.clone());
        let listen = move || own.listen(&said, &of, &used);
        std::thread::Builder::new().name("agent".into()).spawn(listen).map_err(|error| error.to_string())?;
        lines.tell(0, &Order::Watch { target: target.clone(), delay_ns: nanoseconds(delay) });
        let watch = Self { lines, name, shared };
        let heard = watch.await_until(BEGIN_WITHIN, |heard| heard.is_watching);
        match (heard.is_watching, &heard.lost) {
            (true, _) => {}
            (false, Some(why)) => return Err(why.clone()),
            (false, None) => {
                return Err(format!("{}: it did not start watching within {} s", watch.name, BEGIN_WITHIN.as_secs()));
            }
        }
        drop(heard);
        Ok(watch)
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.shared.heard()
    }

    /// Waits until something holds, it is lost, or the time is over.
    fn await_until(&self, within: Duration, is_so: impl Fn(&Heard) -> bool) -> MutexGuard<'_, Heard> {
        let deadline = Instant::now() + within;
        let mut heard = self.heard();
        while !is_so(&heard) && heard.lost.is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            heard = self.shared.changed.wait_timeout(heard, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        heard
    }

    fn finish(self) -> Result<(Vec<Sample>, Seen), String> {
        self.lines.tell(0, &Order::End);
        let mut heard = self.await_until(END_WITHIN, |heard| heard.seen.is_some());
        match (heard.seen.take(), heard.lost.take()) {
            (Some(seen), _) => Ok((std::mem::take(&mut heard.samples), seen)),
            (None, Some(why)) => Err(why),
            (None, None) => {
                Err(format!("{}: it did not report what it saw within {} s", self.name, END_WITHIN.as_secs()))
            }
        }
    }
}

impl Shared {
    fn heard(&self) -> MutexGuard<'_, Heard> {
        // No step leaves anything half done.
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what comes, until it is all or too long in coming.
    fn listen(&self, said: &Receiver<Said>, name: &str, used: &LatestUsage) {
        loop {
            let report = match said.recv_timeout(SILENCE_MAX) {
                Ok((_, said)) => read::<Report>(said),
                Err(RecvTimeoutError::Timeout) => {
                    Err(format!("{name}: its process said nothing for {} s", SILENCE_MAX.as_secs()))
                }
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let mut heard = self.heard();
            match report {
                Ok(Report::Watching) => heard.is_watching = true,
                Ok(Report::Samples(samples)) => {
                    samples.last().into_iter().for_each(|sample| used.note(sample));
                    let room = SamplerConfig::default().samples_max.saturating_sub(heard.samples.len());
                    heard.samples.extend(samples.into_iter().take(room));
                }
                Ok(Report::Gone) => heard.has_gone = true,
                Ok(Report::Done(seen)) => heard.seen = Some(*seen),
                Ok(Report::Failed(why)) => heard.lost = Some(format!("{name}: {why}")),
                Err(why) => heard.lost = Some(why),
            }
            let is_over = heard.seen.is_some() || heard.lost.is_some();
            drop(heard);
            self.changed.notify_all();
            if is_over {
                return;
            }
        }
    }
}
