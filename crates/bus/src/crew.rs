//! The lab's end: who is there, who is this lab's, and what they say.

use crate::address::{Access, Address, unique};
use crate::connection::{BusError, Connection};
use crate::joined::{Joined, Lines};
use crate::joiner::boot_id;
use crate::names::{ANY, sender_of};
use crate::roster::{Heard, Run, Said, Shared, State, WATCH};
use crate::words::{BEAT, FromLab, Presence, Role, SILENCE_MAX};
use pushlab_fleet::clock::{ClockPort, answer};
use pushlab_fleet::{Division, Load};
use pushlab_os::clock::monotonic_ns;
use pushlab_workload::plan::Plan;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, MutexGuard, PoisonError};
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
    /// An agent that watched at the beginning does not any more.
    #[error(
        "no usable agent for the server at {at} after {within_s} s{}: start it again with \
         `pushlab agent --join {address}`",
        .unfit.iter().map(|why| format!("; {why}")).collect::<String>()
    )]
    NoAgent {
        /// Where the server is.
        at: IpAddr,
        /// How long it was waited for.
        within_s: u64,
        /// Who is there and cannot be used, and why.
        unfit: Vec<String>,
        /// Where it can join.
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
    #[error("interrupted while waiting for workers or agents")]
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

impl Seats {
    /// What a worker has; an agent has none.
    pub fn of(presence: &Presence) -> Option<Self> {
        match presence.role {
            Role::Worker { cores, descriptors, .. } => Some(Self { cores, descriptors }),
            Role::Agent { .. } => None,
        }
    }
}

/// Workers and agents that have joined a fleet, as many as are this lab's. They are let go when it is dropped.
pub struct Crew {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    events: SyncSender<Heard>,
    clock: Option<ClockPort>,
}

impl Crew {
    /// Connects to the broker, as a lab that has nobody yet.
    ///
    /// # Errors
    /// See [`BusError`].
    pub fn open(address: &Address, access: &Access) -> Result<Self, BusError> {
        let id = access.new_id(address)?;
        let connection = Connection::open(address, access, &format!("pushlab lab {id}"))?;
        let (events, heard) = mpsc::sync_channel(HEARD_MAX);
        let sender: SyncSender<Heard> = events.clone();
        connection.subscribe(address.names.presence(ANY), move |subject, text| {
            let presence = serde_json::from_slice::<Box<Presence>>(text);
            // Nobody says what another is.
            if let Some(presence) = presence.ok().filter(|presence| presence.id == sender_of(subject)) {
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
    ///
    /// # Errors
    /// [`BusError::Forbidden`].
    pub fn list(&self) -> Result<Vec<Presence>, BusError> {
        std::thread::sleep(CALL_WITHIN);
        self.shared.connection.check_rights()?;
        let state = self.shared.state();
        let mut there: Vec<Presence> = state.known.values().map(|known| known.presence.clone()).collect();
        there.sort_by(|one, other| (&one.name, &one.id).cmp(&(&other.name, &other.id)));
        Ok(there)
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
            self.broker_is_there()?;
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

    /// Whether somebody says that he watches servers at an address, whether he is to be had or not.
    pub fn is_watched(&self, address: IpAddr) -> bool {
        let asked_on = boot_id();
        let deadline = Instant::now() + CALL_WITHIN;
        let mut state = self.shared.state();
        while !state.known.values().any(|known| known.presence.watches(address, &asked_on)) {
            if Instant::now() >= deadline {
                return false;
            }
            state = self.shared.changed.wait_timeout(state, WATCH).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Whether this lab's agent for an address is on the lab's machine.
    pub fn is_of_this_machine(&self, address: IpAddr) -> bool {
        let asked_on = boot_id();
        let state = self.shared.state();
        let agent = state.agent_at(address, &asked_on).and_then(|id| state.known.get(&id));
        agent.is_some_and(|known| known.presence.boot == asked_on)
    }

    /// Which share of this lab's workers is on the lab's machine.
    pub fn share_here(&self) -> f64 {
        let (own, here) = (self.own(), boot_id());
        own.iter().filter(|presence| presence.boot == here).count() as f64 / own.len().max(1) as f64
    }

    /// Waits until an agent that watches servers at an address is this lab's.
    ///
    /// # Errors
    /// See [`CrewError`].
    pub fn gather_agent(&self, at: IpAddr, within: Duration, watcher: &mut dyn Watcher) -> Result<(), CrewError> {
        let (begun, asked_on, mut has_told) = (Instant::now(), boot_id(), false);
        loop {
            self.broker_is_there()?;
            let mut unfit = Vec::new();
            let is_settled = begun.elapsed() >= SETTLE;
            if self.shared.reserve_agent(at, &asked_on, is_settled, &mut unfit) {
                return Ok(());
            }
            if watcher.is_interrupted() {
                return Err(CrewError::Interrupted);
            }
            if !has_told && begun.elapsed() > BEAT {
                watcher.tell(&format!("waiting for the agent that watches the server at {at}"));
                has_told = true;
            }
            if begun.elapsed() > within {
                let (within_s, address) = (within.as_secs(), self.shared.address.to_string());
                return Err(CrewError::NoAgent { at, within_s, unfit, address });
            }
            let state = self.shared.state();
            drop(self.shared.changed.wait_timeout(state, WATCH));
        }
    }

    fn broker_is_there(&self) -> Result<(), CrewError> {
        self.shared.connection.check_rights()?;
        match self.shared.connection.away_for().filter(|away| *away > SILENCE_MAX) {
            Some(away) => Err(CrewError::Away { address: self.shared.address.to_string(), away_s: away.as_secs() }),
            None => Ok(()),
        }
    }

    /// What its workers can do.
    pub fn seats(&self) -> Seats {
        let own = self.own();
        let nobody = Seats { cores: 0, descriptors: u64::MAX };
        own.iter().filter_map(Seats::of).fold(nobody, |all, own| Seats {
            cores: all.cores + own.cores,
            descriptors: all.descriptors.min(own.descriptors),
        })
    }

    /// Its workers, in the order in which they host segments.
    pub fn own(&self) -> Vec<Presence> {
        let state = self.shared.state();
        state.seats.iter().filter_map(|id| Some(state.known.get(id)?.presence.clone())).collect()
    }

    /// Its agents.
    pub fn agents(&self) -> Vec<Presence> {
        let state = self.shared.state();
        state.agents.iter().filter_map(|id| Some(state.known.get(id)?.presence.clone())).collect()
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
        shared.send(&mut state, &first, &FromLab::Listen { run });
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
        let state = self.shared.state();
        let Some(seats) = state.seats.get(..workers).map(<[String]>::to_vec) else {
            return Err(format!("{} of {workers} workers are left", state.seats.len()));
        };
        let machine = |id: &String| state.known.get(id).map_or_else(|| id.clone(), |known| known.presence.boot.clone());
        let machines: Vec<String> = seats.iter().map(machine).collect();
        let (lines, messages) = self.start(state, run, seats);
        Ok((Load::begin(Joined { lines, messages }, division.on(&machines)), plan))
    }

    /// Has this lab's agent watch the server at an address: lines to it, its name, and what it says.
    ///
    /// # Errors
    /// As a sentence, when there is none.
    pub fn watch(&self, at: IpAddr) -> Result<(Lines, Receiver<Said>, String), String> {
        let run = unique().map_err(|error| error.to_string())?;
        let state = self.shared.state();
        let agent = state.agent_at(at, &boot_id());
        let agent = agent.ok_or_else(|| format!("the agent that watched the server at {at} is gone"))?;
        let name = state.name_of(&agent);
        let (lines, said) = self.start(state, run, vec![agent]);
        Ok((lines, said, name))
    }

    /// Starts processes of a run with those who take part in it.
    fn start(&self, mut state: MutexGuard<'_, State>, run: u64, parts: Vec<String>) -> (Lines, Receiver<Said>) {
        let (said, heard) = mpsc::channel();
        state.runs.insert(run, Run { workers: parts.iter().cloned().map(Some).collect(), said });
        let clock = self.clock.as_ref().map(ClockPort::address);
        for part in &parts {
            self.shared.send(&mut state, part, &FromLab::Start { run, boot: boot_id(), clock });
        }
        drop(state);
        (Lines { shared: Arc::clone(&self.shared), run, parts }, heard)
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        let agents = std::mem::take(&mut state.agents);
        for own in std::mem::take(&mut state.seats).into_iter().chain(agents) {
            self.shared.send(&mut state, &own, &FromLab::Release);
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
