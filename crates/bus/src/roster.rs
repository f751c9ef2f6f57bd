//! Who is there, which workers and agents are this lab's, and what they say: a thread takes what comes, others wait for it.

use crate::address::{Address, unique};
use crate::connection::Connection;
use crate::words::{BEAT, FromLab, Presence, Role, SILENCE_MAX, ToLab};
use pushlab_wire::pieces::{Broken, Cutter, PieceDecoder};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often it is looked who has fallen silent.
pub const WATCH: Duration = Duration::from_millis(100);
/// Time for workers to end the processes of a run; then they are killed there.
const END_WITHIN: Duration = Duration::from_secs(4);
/// Most workers that are known at a time, some 600 bytes each.
const KNOWN_MAX: usize = 10_000;
/// Whoever has not looked for longer cannot tell who was silent meanwhile: the machine slept, or this process did.
const LOOKED_MAX: Duration = Duration::from_secs(3);

/// What the lab's threads share.
pub struct Shared {
    /// Where the fleet meets.
    pub address: Address,
    /// The way there.
    pub connection: Connection,
    /// This lab's name among others.
    pub id: String,
    state: Mutex<State>,
    /// Notified whenever something of it has.
    pub changed: Condvar,
}

/// What is known by now.
#[derive(Default)]
pub struct State {
    /// Everybody who has said who he is, by his id.
    pub known: BTreeMap<String, Known>,
    /// Streams to and from those that were asked.
    links: BTreeMap<String, Link>,
    /// This lab's workers, in the order of names, in which they host segments.
    pub seats: Vec<String>,
    /// This lab's agents.
    pub agents: Vec<String>,
    /// The runs that go on.
    pub runs: BTreeMap<u64, Run>,
    /// What became of listeners that were asked for.
    pub listeners: BTreeMap<u64, Result<(SocketAddr, i32), String>>,
}

/// A worker or an agent, whosever it is.
pub struct Known {
    /// What it is.
    pub presence: Presence,
    heard: Instant,
}

/// Streams to and from one of them.
struct Link {
    cutter: Cutter,
    decoder: PieceDecoder,
    /// When the streams began.
    asked: Instant,
}

/// What one of those who take part in a run says, or why it is gone. It is not read before it is wanted, since what a
/// thousand workers measured takes little room as text and much otherwise.
pub type Said = (usize, Result<Box<RawValue>, String>);

/// A run that goes on, or what an agent sees of one.
pub struct Run {
    /// Who takes part; `None` once one has ended or is lost, so that it is told once.
    pub workers: Vec<Option<String>>,
    /// Where what they say goes.
    pub said: Sender<Said>,
}

/// What comes from the broker.
pub enum Heard {
    Presence(Box<Presence>),
    Piece { worker: String, piece: Vec<u8> },
    Over,
}

impl Shared {
    /// Nobody is known yet.
    pub fn new(address: Address, connection: Connection, id: String) -> Self {
        Self { address, connection, id, state: Mutex::default(), changed: Condvar::new() }
    }

    /// All of it, for as long as nobody else needs it.
    pub fn state(&self) -> MutexGuard<'_, State> {
        // No step leaves anything half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells whoever listens.
    pub fn publish(&self, subject: String, message: Vec<u8>) {
        // That the broker is away shows by itself.
        let _ = self.connection.publish(subject, message);
    }

    /// Tells one worker.
    pub fn send(&self, state: &mut State, worker: &str, word: &FromLab) {
        let Some(link) = state.links.get_mut(worker) else { return };
        let text = serde_json::to_vec(word).unwrap_or_default();
        let subject = self.address.names.to_worker(worker, &self.id);
        for piece in link.cutter.cut(&text, self.connection.message_bytes_max()).unwrap_or_default() {
            self.publish(subject.clone(), piece);
        }
    }

    /// Tells one worker of a run something.
    pub fn tell(&self, worker: &str, word: &FromLab) {
        self.send(&mut self.state(), worker, word);
    }

    /// Asks as many free workers as are missing; gives the names of this lab's, and why others cannot be used.
    pub fn reserve(
        &self,
        wanted: usize,
        fits: &dyn Fn(&Presence) -> Result<(), String>,
        unfit: &mut Vec<String>,
    ) -> Vec<String> {
        let mut state = self.state();
        let names: Vec<String> = state.seats.iter().map(|id| state.name_of(id)).collect();
        let missing = wanted.saturating_sub(names.len());
        let is_worker = |presence: &Presence| matches!(presence.role, Role::Worker { .. });
        let free = self.free(&state, unfit, &is_worker, fits);
        free.iter().take(missing).for_each(|id| self.ask_to_be_ours(&mut state, id));
        names
    }

    /// Whether an agent that watches servers at an address is this lab's; if not, asks a free one, once all have said that
    /// they are there, and says why others cannot be used.
    pub fn reserve_agent(&self, address: IpAddr, asked_on: &str, is_settled: bool, unfit: &mut Vec<String>) -> bool {
        let mut state = self.state();
        if state.agent_at(address, asked_on).is_some() {
            return true;
        }
        let watches = |presence: &Presence| presence.watches(address, asked_on);
        let free = self.free(&state, unfit, &watches, &|_| Ok(()));
        free.iter().take(usize::from(is_settled)).for_each(|id| self.ask_to_be_ours(&mut state, id));
        false
    }

    /// Who is nobody's yet and can be used, in the order of names; and why others cannot.
    fn free(
        &self,
        state: &State,
        unfit: &mut Vec<String>,
        is_wanted: &dyn Fn(&Presence) -> bool,
        fits: &dyn Fn(&Presence) -> Result<(), String>,
    ) -> Vec<String> {
        let mut free: Vec<&Presence> = Vec::new();
        let there = state.known.values().map(|known| &known.presence);
        for presence in there.filter(|one| is_wanted(one) && !state.is_own(&one.id)) {
            let why = match &presence.lab {
                Some(lab) if *lab != self.id => Err("is another lab's".to_owned()),
                _ if presence.version != env!("CARGO_PKG_VERSION") => {
                    Err(format!("has version {}, and this is {}", presence.version, env!("CARGO_PKG_VERSION")))
                }
                _ => fits(presence),
            };
            match why {
                Ok(()) => free.push(presence),
                Err(why) => unfit.push(format!("{} {why}", presence.name)),
            }
        }
        free.sort_by_key(|one| (&one.name, &one.id));
        free.into_iter().map(|one| one.id.clone()).collect()
    }

    fn ask_to_be_ours(&self, state: &mut State, id: &str) {
        if state.links.get(id).is_none_or(|link| link.asked.elapsed() >= SILENCE_MAX) {
            self.ask(state, id, &FromLab::Reserve);
        }
    }

    /// Begins new streams to and from a worker, with a word to it.
    fn ask(&self, state: &mut State, worker: &str, word: &FromLab) {
        // Without a number of its own there is no stream, and it is asked again.
        let Ok(stream) = unique() else { return };
        let (cutter, decoder) = (Cutter::new(stream), PieceDecoder::default());
        state.links.insert(worker.to_owned(), Link { cutter, decoder, asked: Instant::now() });
        self.send(state, worker, word);
    }

    /// Takes what comes, until it is over.
    pub fn route(&self, heard: &Receiver<Heard>) {
        let (mut beat, mut looked) = (Instant::now(), Instant::now());
        loop {
            match heard.recv_timeout(WATCH) {
                Ok(Heard::Over) => return,
                Ok(Heard::Presence(presence)) => self.take_presence(*presence),
                Ok(Heard::Piece { worker, piece }) => self.take_piece(&worker, &piece),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            if beat.elapsed() >= BEAT && self.connection.away_for().is_none() {
                beat = Instant::now();
                self.publish(self.address.names.labs(&self.id), Vec::new());
            }
            if looked.elapsed() > LOOKED_MAX {
                self.state().known.values_mut().for_each(|known| known.heard = Instant::now());
            }
            looked = Instant::now();
            self.look_for_silence();
        }
    }

    fn take_presence(&self, presence: Presence) {
        let mut state = self.state();
        let (id, lab) = (presence.id.clone(), presence.lab.clone());
        if presence.leaves {
            self.lose(&mut state, &id, "it has left");
            state.known.remove(&id);
        } else if state.known.len() < KNOWN_MAX || state.known.contains_key(&id) {
            let presence = presence.on_a_line();
            state.known.insert(id.clone(), Known { presence, heard: Instant::now() });
            let is_own = lab.as_ref() == Some(&self.id);
            let is_seat = state.is_own(&id);
            // What it said before it heard the last word to it may still be under way.
            let is_settled = state.links.get(&id).is_none_or(|link| link.asked.elapsed() > SILENCE_MAX);
            if is_seat && !is_own && is_settled {
                self.lose(&mut state, &id, "it gave up the run: it had not heard from this lab, or missed a message");
            } else if is_own && !is_seat && is_settled {
                // It was given up, and lives.
                self.ask(&mut state, &id, &FromLab::Release);
            }
        }
        self.changed.notify_all();
    }

    fn take_piece(&self, worker: &str, piece: &[u8]) {
        let mut state = self.state();
        let Some(link) = state.links.get_mut(worker) else { return };
        let word = match link.decoder.take(piece) {
            Ok(None) => return,
            Ok(Some(message)) => serde_json::from_slice::<ToLab>(&message).map_err(|_| Broken::Foreign),
            Err(broken) => Err(broken),
        };
        match word {
            Ok(ToLab::Reserved) => {
                let role = state.known.get(worker).map(|known| &known.presence.role);
                match role {
                    _ if state.is_own(worker) => {}
                    Some(Role::Agent { .. }) => state.agents.push(worker.to_owned()),
                    Some(Role::Worker { .. }) => {
                        state.seats.push(worker.to_owned());
                        let mut seats = std::mem::take(&mut state.seats);
                        seats.sort_by_cached_key(|id| (state.name_of(id), id.clone()));
                        state.seats = seats;
                    }
                    // It has left meanwhile.
                    None => {}
                }
            }
            Ok(ToLab::Taken) => {}
            Ok(ToLab::Listening { run, address, descriptor }) => {
                state.listeners.insert(run, Ok((address, descriptor)));
            }
            Ok(ToLab::NotListening { run, why }) => drop(state.listeners.insert(run, Err(why))),
            Ok(ToLab::Line { run, line }) => state.said(run, worker, Ok(line)),
            Ok(ToLab::Ended { run, how }) => {
                let how = format!("{}: {how}", state.name_of(worker));
                state.ended(run, worker, &how);
            }
            Err(broken) => {
                self.send(&mut state, worker, &FromLab::Release);
                self.lose(&mut state, worker, &broken.to_string());
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    fn look_for_silence(&self) {
        let away = self.connection.away_for().filter(|away| *away > SILENCE_MAX);
        let mut state = self.state();
        let is_silent = |known: &Known| away.is_some() || known.heard.elapsed() > SILENCE_MAX;
        let silent: Vec<String> =
            state.known.iter().filter(|(_, known)| is_silent(known)).map(|(id, _)| id.clone()).collect();
        if silent.is_empty() {
            return;
        }
        let why = match away {
            Some(away) => format!("the broker at {} has been away for {} s", self.address, away.as_secs()),
            None => format!("it has said nothing for {} s", SILENCE_MAX.as_secs()),
        };
        for id in silent {
            self.lose(&mut state, &id, &why);
            state.known.remove(&id);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// One is not this lab's any more; the runs that it had a part in learn why.
    fn lose(&self, state: &mut State, id: &str, why: &str) {
        let name = state.name_of(id);
        state.seats.retain(|seat| seat != id);
        state.agents.retain(|agent| agent != id);
        state.links.remove(id);
        let runs: Vec<u64> = state.runs.keys().copied().collect();
        runs.into_iter().for_each(|run| state.ended(run, id, &format!("{name}: {why}")));
    }

    /// Ends what is left of a run, and waits until it has: the next run would measure what still goes on.
    pub fn end(&self, run: u64) {
        let mut state = self.state();
        let left: Vec<String> =
            state.runs.get(&run).into_iter().flat_map(|run| run.workers.iter().flatten().cloned()).collect();
        left.iter().for_each(|worker| self.send(&mut state, worker, &FromLab::End { run }));
        let deadline = Instant::now() + END_WITHIN;
        while state.goes_on(run) && Instant::now() < deadline {
            state = self.changed.wait_timeout(state, WATCH).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.runs.remove(&run);
        state.listeners.remove(&run);
    }
}

impl State {
    /// Whether a worker or an agent is this lab's.
    fn is_own(&self, id: &str) -> bool {
        self.seats.iter().chain(&self.agents).any(|own| own == id)
    }

    /// This lab's agent for an address.
    pub fn agent_at(&self, address: IpAddr, asked_on: &str) -> Option<String> {
        let watches = |id: &&String| self.known.get(*id).is_some_and(|known| known.presence.watches(address, asked_on));
        self.agents.iter().find(watches).cloned()
    }

    /// What people call one of them; its id once it is gone.
    pub fn name_of(&self, id: &str) -> String {
        self.known.get(id).map_or_else(|| id.to_owned(), |known| known.presence.name.clone())
    }

    /// Whether somebody has not said that its part of a run is over.
    fn goes_on(&self, run: u64) -> bool {
        self.runs.get(&run).is_some_and(|run| run.workers.iter().any(Option::is_some))
    }

    fn said(&mut self, run: u64, worker: &str, line: Result<Box<RawValue>, String>) {
        let Some(run) = self.runs.get(&run) else { return };
        if let Some(index) = run.workers.iter().position(|own| own.as_deref() == Some(worker)) {
            // Nobody listens when the run is over already.
            let _ = run.said.send((index, line));
        }
    }

    /// One's part of a run is over. Whoever leads it knows what to think of that: of one that is done, nothing.
    fn ended(&mut self, run: u64, worker: &str, how: &str) {
        self.said(run, worker, Err(how.to_owned()));
        let Some(run) = self.runs.get_mut(&run) else { return };
        run.workers.iter_mut().filter(|own| own.as_deref() == Some(worker)).for_each(|own| *own = None);
    }
}
