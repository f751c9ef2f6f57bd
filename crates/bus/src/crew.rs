//! The lab's end: which workers there are, which of them are this lab's, and what they say.

use crate::address::{Access, Address, unique};
use crate::connection::{BusError, Connection};
use crate::joined::Joined;
use crate::joiner::boot_id;
use crate::names::{ANY, sender_of};
use crate::roster::{Heard, Run, Shared, WATCH};
use crate::words::{BEAT, Presence, SILENCE_MAX, ToWorker};
use pushlab_fleet::clock::{ClockPort, answer};
use pushlab_fleet::{Division, Load};
use pushlab_os::clock::monotonic_ns;
use pushlab_workload::plan::Plan;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Most messages that wait to be worked on, each up to 256 KiB: a thousand workers end at the same instant. One that
/// finds no room is missed by its number, and fails the run.
const HEARD_MAX: usize = 8_192;
/// Time for all that are free to have said so: the first of them by name are taken.
const SETTLE: Duration = Duration::from_millis(500);
/// Time for a worker to open a listener.
const LISTEN_WITHIN: Duration = Duration::from_secs(5);
/// Time for all workers to say who they are.
const CALL_WITHIN: Duration = Duration::from_secs(2);

/// What somebody who waits for workers is told and asks.
pub trait Watcher {
    /// Who is there, whenever that has changed.
    fn tell(&mut self, line: &str);
    /// Whether to stop waiting.
    fn is_interrupted(&mut self) -> bool;
}

/// Why there are too few workers.
#[derive(Debug, thiserror::Error)]
pub enum CrewError {
    /// Too few have come in time.
    #[error(
        "{there} of {wanted} workers are there after {within_s} s{}{}: start more with `pushlab worker --join {address}`",
        if .names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) },
        .unfit.iter().map(|why| format!("; {why}")).collect::<String>()
    )]
    TooFew {
        /// This lab's.
        there: usize,
        /// Asked for.
        wanted: usize,
        /// How long they were waited for.
        within_s: u64,
        /// What they are called.
        names: Vec<String>,
        /// Who is there and cannot be used, and why.
        unfit: Vec<String>,
        /// Where more can join.
        address: String,
    },
    /// The broker is away.
    #[error("the broker at {address} has been away for {away_s} s: start it again")]
    Away {
        /// Where it was.
        address: String,
        /// For how long.
        away_s: u64,
    },
    /// See there.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// Whoever waited does not want to any more.
    #[error("interrupted while waiting for workers")]
    Interrupted,
}

/// What the lab has at its disposal: the least of what each of its workers has, as all do alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seats {
    /// Physical cores of all of them together.
    pub cores: u32,
    /// Descriptors that one loop may hold on any of them.
    pub descriptors: u64,
}

/// Workers that have joined a fleet, as many as are this lab's. They are let go when it is dropped.
pub struct Crew {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    events: SyncSender<Heard>,
    clock: Option<ClockPort>,
}

impl Crew {
    /// Connects to the broker, as a lab that has no workers yet.
    ///
    /// # Errors
    /// See [`BusError`].
    pub fn open(address: &Address, access: &Access) -> Result<Self, BusError> {
        let id = format!("{:016x}", unique()?);
        let connection = Connection::open(address, access, &format!("pushlab lab {id}"))?;
        let (events, heard) = mpsc::sync_channel(HEARD_MAX);
        let sender: SyncSender<Heard> = events.clone();
        connection.subscribe(address.names.presence(), move |_, text| {
            if let Ok(presence) = serde_json::from_slice(text) {
                let _ = sender.try_send(Heard::Presence(presence));
            }
        })?;
        let sender = events.clone();
        connection.subscribe(address.names.to_lab(&id, ANY), move |subject, piece| {
            let _ = sender.try_send(Heard::Piece { worker: sender_of(subject).to_owned(), piece: piece.to_vec() });
        })?;
        connection.answer(address.names.clock(&id), |_| {
            let reading = answer(monotonic_ns());
            serde_json::to_vec(&reading).unwrap_or_default()
        })?;
        let shared = Arc::new(Shared::new(address.clone(), connection, id));
        shared.publish(shared.address.names.call(), Vec::new());
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("crew".into()).spawn(move || own.route(&heard))?;
        Ok(Self { shared, thread: Some(thread), events, clock: None })
    }

    /// Has its clock asked directly as well, at this address of the machine, and not through the broker alone.
    ///
    /// # Errors
    /// When the address is not the machine's, or there is no thread left.
    pub fn tell_time_at(&mut self, ip: IpAddr) -> io::Result<()> {
        self.clock = Some(ClockPort::open(ip)?);
        Ok(())
    }

    /// Everybody who is there, in the order of names.
    pub fn list(&self) -> Vec<Presence> {
        std::thread::sleep(CALL_WITHIN);
        let state = self.shared.state();
        let mut there: Vec<Presence> = state.known.values().map(|known| known.presence.clone()).collect();
        there.sort_by(|one, other| (&one.name, &one.id).cmp(&(&other.name, &other.id)));
        there
    }

    /// Waits until so many workers are this lab's that fit; those that are lost are replaced.
    ///
    /// # Errors
    /// See [`CrewError`].
    pub fn gather(
        &self,
        wanted: usize,
        within: Duration,
        fits: &dyn Fn(&Presence) -> Result<(), String>,
        watcher: &mut dyn Watcher,
    ) -> Result<(), CrewError> {
        let (begun, mut told) = (Instant::now(), String::new());
        loop {
            if let Some(away) = self.shared.connection.away_for().filter(|away| *away > SILENCE_MAX) {
                let address = self.shared.address.to_string();
                return Err(CrewError::Away { address, away_s: away.as_secs() });
            }
            if self.own().len() >= wanted {
                return Ok(());
            }
            let mut unfit = Vec::new();
            let asked = if begun.elapsed() < SETTLE { 0 } else { wanted };
            let names = self.shared.reserve(asked, fits, &mut unfit);
            if watcher.is_interrupted() {
                return Err(CrewError::Interrupted);
            }
            let line = waiting(wanted, &names, &unfit);
            if line != told && begun.elapsed() > BEAT {
                watcher.tell(&line);
                told = line;
            }
            if begun.elapsed() > within {
                let (there, within_s, address) = (names.len(), within.as_secs(), self.shared.address.to_string());
                return Err(CrewError::TooFew { there, wanted, within_s, names, unfit, address });
            }
            let state = self.shared.state();
            drop(self.shared.changed.wait_timeout(state, WATCH));
        }
    }

    /// What its workers can do.
    pub fn seats(&self) -> Seats {
        let own = self.own();
        let descriptors = own.iter().map(|presence| presence.descriptors).min().unwrap_or(0);
        Seats { cores: own.iter().map(|presence| presence.cores).sum(), descriptors }
    }

    /// Its workers, in the order in which they host segments.
    pub fn own(&self) -> Vec<Presence> {
        let state = self.shared.state();
        state.seats.iter().filter_map(|id| Some(state.known.get(id)?.presence.clone())).collect()
    }

    /// Has the first worker open a listener for the back end of a run: its address, and the descriptor by which the run's
    /// process inherits it.
    ///
    /// # Errors
    /// As a sentence.
    pub fn listen(&self, run: u64) -> Result<(SocketAddr, i32), String> {
        let shared = &self.shared;
        let mut state = shared.state();
        let first = state.seats.first().cloned().ok_or("no worker is left that could host the back end")?;
        shared.send(&mut state, &first, &ToWorker::Listen { run });
        let deadline = Instant::now() + LISTEN_WITHIN;
        loop {
            if let Some(answer) = state.listeners.remove(&run) {
                return answer.map_err(|why| format!("the back end cannot listen: {why}"));
            }
            if Instant::now() > deadline || state.seats.first() != Some(&first) {
                return Err("the worker that was to host the back end is gone".to_owned());
            }
            state = shared.changed.wait_timeout(state, WATCH).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Begins a run of a plan on its workers.
    ///
    /// # Errors
    /// As a sentence: a plan that cannot be run, or too few workers.
    pub fn begin(&self, run: u64, plan: &Plan) -> Result<(Load<Joined>, Plan), String> {
        let division = Division::among(plan, self.seats().descriptors);
        let division = division.map_err(|error| format!("the plan cannot be run: {error}"))?;
        let plan = division.plan.clone();
        let workers = division.workers();
        let (said, messages) = mpsc::channel();
        let mut state = self.shared.state();
        let Some(seats) = state.seats.get(..workers).map(<[String]>::to_vec) else {
            return Err(format!("{} of {workers} workers are left", state.seats.len()));
        };
        let machine = |id: &String| state.known.get(id).map_or_else(|| id.clone(), |known| known.presence.boot.clone());
        let machines: Vec<String> = seats.iter().map(machine).collect();
        state.runs.insert(run, Run { workers: seats.iter().cloned().map(Some).collect(), said });
        let clock = self.clock.as_ref().map(ClockPort::address);
        for worker in &seats {
            self.shared.send(&mut state, worker, &ToWorker::Start { run, boot: boot_id(), clock });
        }
        drop(state);
        let fleet = Joined { shared: Arc::clone(&self.shared), run, workers: seats, messages };
        Ok((Load::begin(fleet, division.on(&machines)), plan))
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        for worker in std::mem::take(&mut state.seats) {
            self.shared.send(&mut state, &worker, &ToWorker::Release);
        }
        drop(state);
        self.shared.connection.flush();
        // One that is full is read until this is found.
        let _ = self.events.send(Heard::Over);
        if let Some(thread) = self.thread.take() {
            // It does nothing that could fail.
            let _ = thread.join();
        }
    }
}

fn waiting(wanted: usize, names: &[String], unfit: &[String]) -> String {
    let there = if names.is_empty() { "none yet".to_owned() } else { names.join(", ") };
    let unfit: String = unfit.iter().map(|why| format!("; {why}")).collect();
    format!("waiting for workers: {} of {wanted} ({there}){unfit}", names.len())
}
