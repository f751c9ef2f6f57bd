//! A worker or an agent that joins a fleet: it says what it is, waits for a lab to take it, and runs what that lab says.
//!
//! Each run is a process of its own, so that what goes wrong there ends the run and not the worker.

use crate::address::{Access, Address, unique};
use crate::child::Child;
use crate::clock::tell_clock;
use crate::connection::{BusError, Connection};
use crate::heard::Heard;
use crate::names::{ANY, sender_of};
use crate::words::{BEAT, FromLab, Presence, Role, SILENCE_MAX, ToLab};
use pushlab_os::limits;
use pushlab_probe::machine::{MachineFacts, addresses, physical_cores, usable_cpus};
use pushlab_wire::pieces::{Broken, Cutter, PieceDecoder};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, TcpListener};
use std::os::fd::AsRawFd as _;
use std::process::Command;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

/// How often it looks after signals and its own clock.
const WATCH: Duration = Duration::from_millis(100);
/// Most messages that wait to be worked on; pieces are up to 256 KiB, but those that come are orders of some KiB.
const HEARD_MAX: usize = 1_000;
/// Most runs at a time: those that go side by side, and one that is just ending.
const RUNS_MAX: usize = 16;
/// Time from the first failed attempt to reach the broker to the next; it doubles up to [`RETRY_MAX`].
const RETRY_MIN: Duration = Duration::from_millis(500);
/// Longest time between two attempts.
const RETRY_MAX: Duration = Duration::from_secs(10);

/// Makes the command that does its part of a run for a lab, on its standard input and output; it is told whether the lab
/// is on this machine, whose clock both then have.
pub type Host = Box<dyn Fn(&str, bool) -> Command>;

/// How one joins.
pub struct JoinConfig {
    /// Where the fleet meets.
    pub address: Address,
    /// How it is let in.
    pub access: Access,
    /// What people call it.
    pub name: String,
    /// What it joins as.
    pub joins_as: JoinsAs,
    /// The command for its part of a run.
    pub host: Host,
}

/// What one joins as.
pub enum JoinsAs {
    /// A host of clients.
    Worker {
        /// Where others reach it; the address of the interface towards the broker by default.
        ip: Option<IpAddr>,
        /// Physical cores, the first ones, that it leaves to others.
        spare_cores: usize,
    },
    /// Somebody who watches the servers of this machine.
    Agent {
        /// Where clients reach them, besides the addresses of its interfaces.
        addresses: Vec<IpAddr>,
    },
}

impl JoinsAs {
    /// What it can do then, the cores on which its processes run (any, if there are none), and that in words.
    fn role(&self, broker: &Address) -> io::Result<(Role, Vec<usize>, String)> {
        match self {
            Self::Worker { ip, spare_cores } => {
                let mut cores = physical_cores(&usable_cpus());
                // On a machine that has no more, there is nothing to spare.
                cores.drain(..(*spare_cores).min(cores.len().saturating_sub(1)));
                let numbers = cores.iter().map(|cpu| cpu.number).collect();
                let (cores, descriptors) = (cores.len() as u32, limits::descriptors().soft);
                let address = ip.map_or_else(|| broker.own_ip(), Ok)?;
                let says = format!("cores: {cores}, descriptors: {descriptors}, reached at {address}");
                Ok((Role::Worker { cores, descriptors, address }, numbers, says))
            }
            Self::Agent { addresses: more } => {
                let addresses: Vec<IpAddr> = more.iter().copied().chain(addresses()).collect();
                let all: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
                let says = format!("watches servers at {}", all.join(", "));
                Ok((Role::Agent { addresses }, Vec::new(), says))
            }
        }
    }
}

/// Joins, and works until it is told to stop; `say` is given a line for each change of its state. A broker that is not
/// there is waited for.
///
/// # Errors
/// What waiting does not fix: a broker that rejects these credentials or denies the rights for this part, or a file
/// that cannot be read.
pub fn join(config: &JoinConfig, say: &mut dyn FnMut(&str), is_over: &mut dyn FnMut() -> bool) -> Result<(), BusError> {
    let mut wait = RETRY_MIN;
    loop {
        match Connection::open(&config.address, &config.access, &config.name) {
            Ok(connection) => return Joiner::new(config, &connection)?.work(say, is_over),
            Err(error @ BusError::Unreachable { .. }) => {
                if wait == RETRY_MIN {
                    say(&format!("{error}; trying again"));
                }
            }
            Err(error) => return Err(error),
        }
        let retry_at = Instant::now() + wait;
        wait = RETRY_MAX.min(2 * wait);
        while Instant::now() < retry_at {
            if is_over() {
                return Ok(());
            }
            std::thread::sleep(WATCH);
        }
    }
}

/// The name of this machine.
pub fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    Some(name.trim()).filter(|name| !name.is_empty()).unwrap_or("worker").to_owned()
}

/// What names this boot of this machine, and so its monotonic clock.
pub fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

/// The lab that has it.
struct Lab {
    id: String,
    heard: Instant,
    decoder: PieceDecoder,
    cutter: Cutter,
}

struct Joiner<'a> {
    config: &'a JoinConfig,
    connection: &'a Connection,
    presence: Presence,
    /// Its role in words.
    says: String,
    cores: Vec<usize>,
    events: SyncSender<Heard>,
    heard: Receiver<Heard>,
    lab: Option<Lab>,
    listeners: BTreeMap<u64, TcpListener>,
    runs: BTreeMap<u64, Child>,
    told: Instant,
    is_away: bool,
}

impl<'a> Joiner<'a> {
    fn new(config: &'a JoinConfig, connection: &'a Connection) -> Result<Self, BusError> {
        let (role, cores, says) = config.joins_as.role(&config.address)?;
        let presence = Presence {
            id: config.access.new_id(&config.address)?,
            name: config.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            machine: MachineFacts::read(Duration::ZERO),
            boot: boot_id(),
            role,
            lab: None,
            leaves: false,
        };
        let (events, heard) = mpsc::sync_channel(HEARD_MAX);
        let this = Self {
            config,
            connection,
            presence,
            says,
            cores,
            events,
            heard,
            lab: None,
            listeners: BTreeMap::new(),
            runs: BTreeMap::new(),
            told: Instant::now(),
            is_away: false,
        };
        this.listen_to_labs()?;
        this.tell_presence();
        Ok(this)
    }

    fn listen_to_labs(&self) -> Result<(), BusError> {
        let names = &self.config.address.names;
        // What finds no room is found missing by its number.
        let events = self.events.clone();
        self.connection.subscribe(names.to_worker(&self.presence.id, ANY), move |subject, piece| {
            let _ = events.try_send(Heard::Piece { lab: sender_of(subject).to_owned(), piece: piece.to_vec() });
        })?;
        let events = self.events.clone();
        self.connection.subscribe(names.labs(ANY), move |subject, _| {
            let _ = events.try_send(Heard::Beat { lab: sender_of(subject).to_owned() });
        })?;
        let events = self.events.clone();
        self.connection.subscribe(names.call(), move |_, _| drop(events.try_send(Heard::Called)))
    }

    fn work(mut self, say: &mut dyn FnMut(&str), is_over: &mut dyn FnMut() -> bool) -> Result<(), BusError> {
        say(&format!("waits for work at {}; {}", self.config.address, self.says));
        while !is_over() {
            match self.heard.recv_timeout(WATCH) {
                Ok(heard) => self.take(heard, say),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            self.look_after_time(say);
            self.connection.check_rights()?;
        }
        self.let_go();
        self.runs.clear();
        self.presence.leaves = true;
        self.tell_presence();
        say("left");
        Ok(())
    }

    fn tell_presence(&self) {
        let text = serde_json::to_vec(&self.presence).unwrap_or_default();
        // Of a broker that is away it is told elsewhere.
        let _ = self.connection.publish(self.config.address.names.presence(&self.presence.id), text);
    }

    fn look_after_time(&mut self, say: &mut dyn FnMut(&str)) {
        let is_away = self.connection.away_for().is_some();
        if is_away != std::mem::replace(&mut self.is_away, is_away) {
            say(if is_away { "the broker is away; trying again" } else { "the broker is back" });
        }
        if self.told.elapsed() >= BEAT {
            self.told = Instant::now();
            if !is_away {
                self.tell_presence();
            }
        }
        if self.lab.as_ref().is_some_and(|lab| lab.heard.elapsed() > SILENCE_MAX) {
            say(&format!("the lab has said nothing for {} s; free again", SILENCE_MAX.as_secs()));
            self.let_go();
        }
        // One that is dropped is killed; its end comes as it does of others.
        let overdue: Vec<u64> = self.runs.iter().filter(|(_, child)| child.is_overdue()).map(|(run, _)| *run).collect();
        for run in overdue {
            self.runs.remove(&run);
            self.say_to_lab(&ToLab::Ended { run, how: "its process did not end, and was killed".to_owned() });
        }
    }

    fn take(&mut self, heard: Heard, say: &mut dyn FnMut(&str)) {
        match heard {
            Heard::Called => self.tell_presence(),
            Heard::Beat { lab } => {
                self.lab.iter_mut().filter(|own| own.id == lab).for_each(|own| own.heard = Instant::now());
            }
            // What one says that is to end, nobody waits for.
            Heard::Line { run, .. } if self.runs.get(&run).is_none_or(Child::is_ending) => {}
            Heard::Line { run, line } => match RawValue::from_string(line) {
                Ok(line) => self.say_to_lab(&ToLab::Line { run, line }),
                Err(error) => self.end_run(run, &format!("its process wrote invalid JSON: {error}")),
            },
            Heard::Ended { run, errors } => {
                if let Some(mut child) = self.runs.remove(&run) {
                    let how = child.how(&errors);
                    self.say_to_lab(&ToLab::Ended { run, how });
                }
            }
            Heard::Piece { lab, piece } => self.take_piece(&lab, &piece, say),
        }
    }

    fn take_piece(&mut self, from: &str, piece: &[u8], say: &mut dyn FnMut(&str)) {
        let is_own = self.lab.as_ref().is_some_and(|lab| lab.id == from);
        let mut another = PieceDecoder::default();
        let decoder = self.lab.as_mut().filter(|_| is_own).map_or(&mut another, |lab| &mut lab.decoder);
        let word = match decoder.take(piece) {
            Ok(None) => return,
            Ok(Some(message)) => serde_json::from_slice::<FromLab>(&message).map_err(|_| Broken::Foreign),
            Err(broken) => Err(broken),
        };
        match word {
            Ok(FromLab::Reserve) => self.reserve(from, another, say),
            Ok(word) if is_own => self.obey(word, say),
            Err(broken) if is_own => {
                say(&format!("{broken}; free again"));
                self.let_go();
            }
            // Of a lab that has given this one up, or that was given up.
            Ok(_) | Err(_) => {}
        }
    }

    fn reserve(&mut self, lab: &str, decoder: PieceDecoder, say: &mut dyn FnMut(&str)) {
        let Ok(stream) = unique() else { return };
        let mut cutter = Cutter::new(stream);
        if self.lab.as_ref().is_some_and(|own| own.id != lab) {
            return self.send(lab, &mut cutter, &ToLab::Taken);
        }
        // One that reserves anew has been taken in its own place.
        let decoder = self.lab.as_mut().map_or(decoder, |own| std::mem::take(&mut own.decoder));
        self.let_go();
        self.lab = Some(Lab { id: lab.to_owned(), heard: Instant::now(), decoder, cutter });
        self.presence.lab = Some(lab.to_owned());
        self.say_to_lab(&ToLab::Reserved);
        self.tell_presence();
        say("reserved by a lab");
    }

    fn obey(&mut self, word: FromLab, say: &mut dyn FnMut(&str)) {
        match word {
            FromLab::Reserve => {}
            FromLab::Listen { run } => {
                let answer =
                    self.listen(run).unwrap_or_else(|error| ToLab::NotListening { run, why: error.to_string() });
                self.say_to_lab(&answer);
            }
            FromLab::Start { run, boot, clock } => {
                let listener = self.listeners.remove(&run);
                let lab = self.lab.as_ref().map_or("", |lab| &lab.id);
                let mut command = (self.config.host)(lab, boot == boot_id());
                clock.into_iter().for_each(|clock| tell_clock(&mut command, clock));
                let started = match self.runs.len() < RUNS_MAX {
                    true => Child::start(command, &self.cores, listener, run, &self.events),
                    false => Err(io::Error::other(format!("it already has a part in {RUNS_MAX} runs"))),
                };
                match started {
                    Ok(child) => drop(self.runs.insert(run, child)),
                    Err(error) => {
                        self.say_to_lab(&ToLab::Ended { run, how: format!("its process cannot start: {error}") })
                    }
                }
            }
            FromLab::Line { run, line } => self.runs.get_mut(&run).into_iter().for_each(|child| child.tell(line.get())),
            FromLab::End { run } => {
                self.listeners.remove(&run);
                self.runs.get_mut(&run).into_iter().for_each(Child::end);
            }
            FromLab::Release => {
                self.let_go();
                say("free again");
            }
        }
    }

    fn listen(&mut self, run: u64) -> io::Result<ToLab> {
        // Of runs that came to nothing before they had a process.
        while self.listeners.len() >= RUNS_MAX {
            self.listeners.pop_first();
        }
        let Role::Worker { address, .. } = self.presence.role else {
            return Err(io::Error::other("an agent hosts no back end"));
        };
        let listener = TcpListener::bind((address, 0))?;
        let (address, descriptor) = (listener.local_addr()?, listener.as_raw_fd());
        self.listeners.insert(run, listener);
        Ok(ToLab::Listening { run, address, descriptor })
    }

    fn end_run(&mut self, run: u64, how: &str) {
        if self.runs.remove(&run).is_some() {
            self.say_to_lab(&ToLab::Ended { run, how: how.to_owned() });
        }
    }

    /// Is nobody's again, and ends what was begun for whoever had it.
    fn let_go(&mut self) {
        if self.lab.take().is_none() {
            return;
        }
        self.listeners.clear();
        self.runs.values_mut().for_each(Child::end);
        self.presence.lab = None;
        self.tell_presence();
    }

    fn say_to_lab(&mut self, word: &ToLab) {
        // What a run of a lab that is gone says, nobody wants to hear.
        let Some(mut lab) = self.lab.take() else { return };
        self.send(&lab.id, &mut lab.cutter, word);
        self.lab = Some(lab);
    }

    fn send(&self, lab: &str, cutter: &mut Cutter, word: &ToLab) {
        let text = serde_json::to_vec(word).unwrap_or_default();
        let subject = self.config.address.names.to_lab(lab, &self.presence.id);
        for piece in cutter.cut(&text, self.connection.message_bytes_max()).unwrap_or_default() {
            // What is not sent is missed by its number.
            let _ = self.connection.publish(subject.clone(), piece);
        }
    }
}
