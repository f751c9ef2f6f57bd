//! The process of an agent: beside the server, for one run.

use super::{Order, Report, Seen, TELL};
use crate::{CounterReader, CounterWatch, MachineWatch, Watched, sample};
use pushlab_fleet::clock::SteeredClock;
use pushlab_fleet::lines;
use pushlab_os::clock::from_raw;
use pushlab_probe::{Sample, Sampler, listeners};
use pushlab_record::CounterSample;
use pushlab_workload::phase::Periodic;
use pushlab_workload::plan::Target;
use std::io::{self, Read, Write};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

/// Most samples and orders that wait: those of some 50 s. A lab to which nothing is told for so long has given the run up.
const EVENTS_MAX: usize = 1_000;

/// Which server of its machine an agent watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct Beside {
    /// The first of its processes; by default, whichever listens at its port.
    pub process: Option<u32>,
    /// Its port, if it is not the one that clients connect to.
    pub port: Option<u16>,
}

enum Event {
    Order(Result<Order, String>),
    Sample(Box<Sample>),
    Over,
}

/// Reads orders from `input` and writes reports to `output`, a JSON text a line, until it is told to end or `input` ends;
/// returns whether it came to the end of a run. The clock is steered after the lab's, unless they are one.
///
/// # Errors
/// When `output` cannot be written, or there is no thread left.
pub fn serve(
    input: impl Read + Send + 'static,
    mut output: impl Write,
    clock: Option<&SteeredClock>,
    server: Beside,
) -> io::Result<bool> {
    let (events, heard) = mpsc::sync_channel(EVENTS_MAX);
    // Nobody listens any more when it is done.
    let orders = events.clone();
    lines::hear(input, move |order| orders.send(order.map_or(Event::Over, Event::Order)).is_ok())?;
    let mut say = |report: &Report| lines::say(&mut output, report);
    let report = match attempt(&events, &heard, clock, server, &mut say)? {
        Ok(None) => return Ok(false),
        Ok(Some(seen)) => Report::Done(Box::new(seen)),
        Err(why) => Report::Failed(why),
    };
    say(&report)?;
    Ok(matches!(report, Report::Done(_)))
}

/// What it saw; nothing if nobody wants to know it any more. The outer error is that of saying something.
fn attempt(
    events: &SyncSender<Event>,
    heard: &Receiver<Event>,
    clock: Option<&SteeredClock>,
    server: Beside,
    say: &mut dyn FnMut(&Report) -> io::Result<()>,
) -> io::Result<Result<Option<Seen>, String>> {
    let mut watching: Option<Watching> = None;
    let (mut sampled, mut told, mut has_gone) = (Vec::new(), Instant::now(), false);
    loop {
        match heard.recv_timeout(TELL) {
            Ok(Event::Over) | Err(RecvTimeoutError::Disconnected) => return Ok(Ok(None)),
            Ok(Event::Order(Err(why))) => return Ok(Err(format!("an order cannot be read: {why}"))),
            Ok(Event::Order(Ok(Order::Watch { target, delay_ns }))) => {
                match Watching::begin(server, target, Duration::from_nanos(delay_ns), events.clone()) {
                    Ok(begun) => watching = Some(begun),
                    Err(why) => return Ok(Err(why)),
                }
                say(&Report::Watching)?;
            }
            Ok(Event::Order(Ok(order))) => {
                let Some(watching) = &mut watching else { return Ok(Err("it was not told what to watch".to_owned())) };
                match order {
                    Order::Count { interval_ns, delay_ns } => {
                        let [interval, delay] = [interval_ns, delay_ns].map(Duration::from_nanos);
                        if let Err(why) = watching.count(interval, delay) {
                            return Ok(Err(why));
                        }
                    }
                    Order::Phase(phase) => watching.machine.phase(phase),
                    Order::Watch { .. } | Order::End => break,
                }
            }
            Ok(Event::Sample(sample)) => {
                if sample.processes == 0 && !has_gone {
                    has_gone = true;
                    say(&Report::Gone)?;
                }
                sampled.push(*sample);
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if watching.is_some() && told.elapsed() >= TELL {
            told = Instant::now();
            say(&Report::Samples(std::mem::take(&mut sampled)))?;
        }
    }
    let seen = watching.map(Watching::finish);
    sampled.extend(heard.try_iter().filter_map(|event| match event {
        Event::Sample(sample) => Some(*sample),
        Event::Order(_) | Event::Over => None,
    }));
    say(&Report::Samples(sampled))?;
    let is_even = clock.map_or(Ok(()), SteeredClock::check);
    Ok(is_even.map(|()| seen).map_err(|error| error.to_string()))
}

/// A server that is watched.
struct Watching {
    target: Target,
    sampler: Sampler,
    counters: Option<CounterWatch>,
    machine: MachineWatch,
}

impl Watching {
    fn begin(server: Beside, target: Target, delay: Duration, events: SyncSender<Event>) -> Result<Self, String> {
        let port = server.port.unwrap_or(target.address.port());
        let pids = match server.process {
            Some(process) => vec![process],
            None => listeners(port).map_err(|error| error.to_string())?,
        };
        let watched =
            Watched { pids: &pids, ports: vec![port], what: Periodic::SubjectSamples, delay, are_told_only: true };
        let sampler = sample(watched, move |sample| {
            // Nobody listens any more when it is done, and nobody misses what finds no room.
            let _ = events.try_send(Event::Sample(Box::new(sample.clone())));
        })?;
        Ok(Self { target, sampler, counters: None, machine: MachineWatch::of(pids.first().copied()) })
    }

    fn count(&mut self, interval: Duration, delay: Duration) -> Result<(), String> {
        let reader = CounterReader::new(&self.target, None).map_err(|error| error.to_string())?;
        self.counters = Some(CounterWatch::start(reader, interval, delay));
        Ok(())
    }

    fn finish(self) -> Seen {
        // The server's clock is its machine's.
        let of_lab = |sample: CounterSample| CounterSample { t_ns: from_raw(sample.t_ns), ..sample };
        let counters = self.counters.map(CounterWatch::finish).unwrap_or_default();
        Seen {
            ticks_missed: self.sampler.finish().ticks_missed,
            counters: counters.into_iter().map(of_lab).collect(),
            machine: self.machine.load,
            tcp: self.machine.tcp,
            kernel: self.machine.kernel(),
        }
    }
}
