//! Two namespaces joined by a link: where subject and load live in an experiment with a network.

use std::fs::File;
use std::io::{self, BufWriter};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use pushlab_os::affinity;
use pushlab_os::bell::Bell;
use pushlab_os::clock::{self, CpuClock};
use pushlab_stats::Histogram;

use crate::acks::Acks;
use crate::capture::{Capture, CaptureConfig};
use crate::carrier::{Carrier, End, Published, Recorder, Shared};
use crate::core_wait::{CoreWait, CoreWaits};
use crate::direction::{Direction, Heading};
use crate::error::LinkError;
use crate::namespace::Namespace;
use crate::profile::Profile;
use crate::totals::{Accountant, DEFAULT_MAX_FLOWS, Totals};
use crate::tun::{self, Counters, Tun};

/// Where the subject is reached.
pub const SUBJECT: Ipv4Addr = Ipv4Addr::new(10, 83, 0, 1);
/// Where prober and collector come from, so that their packets are told from those of the clients.
pub const INSTRUMENTS: Ipv4Addr = Ipv4Addr::new(10, 83, 0, 3);
/// Where clients come from, unless they choose one of the addresses up to [`LAST_CLIENTS`]: each has ports for 64,511
/// connections.
pub const CLIENTS: Ipv4Addr = Ipv4Addr::new(10, 83, 1, 1);
/// The last address that clients may come from.
pub const LAST_CLIENTS: Ipv4Addr = Ipv4Addr::new(10, 83, 1, 255);
/// The network that those are in, and the length of its prefix.
const CLIENTS_NETWORK: (Ipv4Addr, u8) = (Ipv4Addr::new(10, 83, 1, 0), 24);
/// The network that all of them are in.
const NETMASK: Ipv4Addr = Ipv4Addr::new(255, 255, 0, 0);

/// What a capture gathers before it writes: the thread that carries packets does it, so not for long.
const CAPTURE_BUFFER_BYTES: usize = 64 << 10;

/// What to emulate.
#[derive(Debug, Clone)]
pub struct NetworkConfig {
    /// What the network is like.
    pub profile: Profile,
    /// Of everything that is left to chance. Both directions have their own chances, from this one number.
    pub seed: u64,
    /// Cores on which packets are carried; `None` for those of the calling thread.
    pub cores: Option<Vec<usize>>,
    /// How long clients delay acknowledgements, ms, at most [`MAX_ACK_DELAY_MS`](crate::acks::MAX_ACK_DELAY_MS): see [`crate::acks`]. `None` leaves
    /// that to their kernel.
    pub ack_delay_ms: Option<u32>,
    /// A file for every packet that is offered to the link.
    pub capture: Option<CaptureFile>,
}

/// A capture that is to be made.
#[derive(Debug, Clone)]
pub struct CaptureFile {
    /// The file; one that exists is replaced.
    pub path: PathBuf,
    /// What it says of where it was made, and its limits.
    pub config: CaptureConfig,
}

/// What a network was found to have done at its end.
#[derive(Debug)]
pub struct Report {
    /// Everything that was offered to it.
    pub totals: Totals,
    /// How late packets were handed on, after the instant that the model had for them, over the whole time.
    pub lateness: Histogram,
    /// CPU time of the thread that carried the packets, ns. The kernel's work of receiving each packet is part of it.
    pub cpu_ns: u64,
    /// How long that thread had to wait for a core. A packet that waits meanwhile to be read is late, and
    /// [`Report::lateness`] does not know: the model's delay begins when the packet is read. `None` where the kernel
    /// does not tell.
    pub core_wait: Option<CoreWait>,
    /// Packets that the kernel dropped because the thread came too late to read them. No network of the profile's kind
    /// would have: a run in which it happens is void.
    pub overflows: u64,
    /// How often the link had no room for another packet, so that it stayed with the kernel and was late: void, too.
    pub stalls: u64,
    /// Packets that the capture's limit left out, or why there is no whole capture; `None` without one.
    pub capture: Option<Result<u64, LinkError>>,
}

/// Two network namespaces and the link between them. Dropping it cuts the link; the namespaces live on for as long as
/// a process is in one, without a way to each other.
///
/// ```no_run
/// use pushlab_link::network::{Network, NetworkConfig, SUBJECT};
/// use pushlab_link::profile::Profile;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// pushlab_link::rights::become_able()?;
/// let profile = Profile::find("4g").ok_or("no such profile")?.clone();
/// let network = Network::start(NetworkConfig { profile, seed: 1, cores: None, ack_delay_ms: None, capture: None })?;
/// let server = network.subject().in_it(|| std::net::TcpListener::bind((SUBJECT, 80)))??;
/// let client = network.load().in_it(|| std::net::TcpStream::connect((SUBJECT, 80)))??;
/// # drop((server, client));
/// println!("{:?}", network.finish()?.totals);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Network {
    subject: Namespace,
    load: Namespace,
    counters: [Counters; 2],
    shared: Arc<Shared>,
    cpu: CpuClock,
    core_waits: CoreWaits,
    /// What was taken of the lateness so far.
    lateness_taken: Mutex<Histogram>,
    thread: Option<Thread>,
}

impl Network {
    /// Makes the namespaces and begins to carry packets.
    ///
    /// # Errors
    /// Any [`LinkError`] but [`LinkError::Broken`] and those of [`crate::rights`].
    pub fn start(config: NetworkConfig) -> Result<Self, LinkError> {
        let NetworkConfig { profile, seed, cores, ack_delay_ms, capture } = config;
        profile.check()?;
        let recorder = capture.map(begin_capture).transpose()?;
        let (subject, load) = (Namespace::new()?, Namespace::new()?);
        let mut seeds = fastrand::Rng::with_seed(seed);
        let mut end = |namespace: &Namespace, heading, addresses: &[Ipv4Addr]| {
            let (tun, counters) = namespace.in_it(|| Tun::new(addresses, NETMASK, profile.mtu_bytes))??;
            let way = if heading == Heading::Down { &profile.down } else { &profile.up };
            Ok::<_, LinkError>((End { tun, heading, direction: Direction::new(way, seeds.u64(..)) }, counters))
        };
        let (subject_end, subject_counters) = end(&subject, Heading::Down, &[SUBJECT])?;
        let (load_end, load_counters) = end(&load, Heading::Up, &[CLIENTS, INSTRUMENTS])?;
        load.in_it(|| tun::take_for_own(CLIENTS_NETWORK))??;
        if let Some(delay_ms) = ack_delay_ms {
            have_patience(&subject, delay_ms)?;
        }
        let acks = ack_delay_ms.map(|ms| Acks::new(u64::from(ms) * 1_000_000, Some(INSTRUMENTS.into())));
        let wake = Bell::new().map_err(|source| LinkError::Thread { step: "eventfd", source })?;
        let shared = Arc::new(Shared::new(wake));
        let accountant = Accountant::new(Some(INSTRUMENTS.into()), DEFAULT_MAX_FLOWS);
        let ends = [subject_end, load_end];
        let carrier = Carrier::new(ends, acks, profile.mtu_bytes as usize, accountant, recorder, Arc::clone(&shared));
        let (thread, cpu, core_waits) = spawn(carrier, cores)?;
        Ok(Self {
            subject,
            load,
            counters: [subject_counters, load_counters],
            shared,
            cpu,
            core_waits,
            lateness_taken: Mutex::default(),
            thread: Some(thread),
        })
    }

    /// Where the subject lives, at [`SUBJECT`].
    pub fn subject(&self) -> &Namespace {
        &self.subject
    }

    /// Where the load lives, at [`CLIENTS`] and [`INSTRUMENTS`].
    pub fn load(&self) -> &Namespace {
        &self.load
    }

    /// What was offered to the link until now: every packet as a whole, and at most the packets of one turn of its
    /// thread, 128, not yet. Costs a copy of 824 bytes.
    pub fn totals(&self) -> Totals {
        self.shared.published().totals
    }

    /// Asks for the totals of an instant of the monotonic clock, in the future as a rule; one at a time.
    pub fn mark_at(&self, at_ns: u64) {
        self.shared.mark_at(at_ns);
    }

    /// The totals of the instant that was asked for: every packet that came before it, and none that came after. Without
    /// one that came after there are no others than those of [`Self::totals`].
    pub fn marked(&self) -> Totals {
        let published = self.shared.published();
        published.marked.unwrap_or(published.totals)
    }

    /// How late packets were handed on since this was last asked. [`Report::lateness`] contains them all the same.
    pub fn take_lateness(&self) -> Histogram {
        let mut taken = Histogram::new();
        std::mem::swap(&mut taken, &mut self.shared.published().lateness);
        self.lateness_taken.lock().unwrap_or_else(PoisonError::into_inner).merge(&taken);
        taken
    }

    /// CPU time of the thread so far, ns; `None` when it has ended, which means that the link is broken.
    pub fn cpu_ns(&self) -> Option<u64> {
        self.thread.as_ref().filter(|thread| !thread.is_finished()).and_then(|_| self.cpu.read_ns())
    }

    /// How long the thread had to wait for a core so far, see [`Report::core_wait`].
    pub fn core_wait(&self) -> Option<CoreWait> {
        self.core_waits.read()
    }

    /// Packets that the kernel dropped so far, see [`Report::overflows`].
    ///
    /// # Errors
    /// [`LinkError::Broken`].
    pub fn overflows(&self) -> Result<u64, LinkError> {
        let each = self.counters.iter().map(Counters::overflows).sum::<io::Result<u64>>();
        each.map_err(|source| LinkError::Broken { step: "reading counters", source })
    }

    /// Stops carrying packets and says what was.
    ///
    /// # Errors
    /// [`LinkError::Broken`]. A capture that failed is in the report.
    pub fn finish(mut self) -> Result<Report, LinkError> {
        let (overflows, core_wait) = (self.overflows()?, self.core_wait());
        self.shared.stop();
        let thread = self.thread.take().expect("only this takes the thread, and it ends with `self`");
        let (ended, cpu_ns) = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let capture = ended?.map(Recorder::finish);
        self.take_lateness();
        let lateness = std::mem::take(&mut *self.lateness_taken.lock().unwrap_or_else(PoisonError::into_inner));
        let Published { totals, .. } = *self.shared.published();
        let stalls = self.shared.stalls();
        Ok(Report { totals, lateness, cpu_ns, core_wait, overflows, stalls, capture })
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.shared.stop();
        // Whatever it has to say, nobody asked.
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// Has the subject's kernel wait for acknowledgements that are delayed: it would otherwise send again what arrived long
/// ago, because its own receivers never wait for more than 200 ms, and the delay would not be what it is to be.
fn have_patience(subject: &Namespace, ack_delay_ms: u32) -> Result<(), LinkError> {
    // What Linux grants (`TCP_RTO_MIN`), and the delay. By a route, which has it in every kernel; the setting
    // `tcp_rto_min_us` is of 6.11.
    let rto_min_ms = 200 + ack_delay_ms;
    subject.in_it(|| tun::wait_for_acks(CLIENTS_NETWORK, rto_min_ms))??;
    // The probe for a lost last segment expects acknowledgements to be 200 ms late at most (RFC 8985, section 7.2).
    subject.set("ipv4/tcp_early_retrans", "0")
}

fn begin_capture(file: CaptureFile) -> Result<Recorder, LinkError> {
    let since_1970_ns = clock::since_1970_ns().saturating_sub(clock::monotonic_ns());
    let CaptureFile { path, config } = file;
    let opened = File::create(&path).map_err(Into::into);
    let begun = opened.and_then(|file| Capture::new(BufWriter::with_capacity(CAPTURE_BUFFER_BYTES, file), &config));
    match begun {
        Ok(capture) => Ok(Recorder { path, capture, error: None, since_1970_ns }),
        Err(source) => Err(LinkError::Capture { path, source }),
    }
}

/// It ends with its recorder, or why the link broke, and its CPU time, ns.
type Thread = JoinHandle<(Result<Option<Recorder>, LinkError>, u64)>;

fn spawn(carrier: Carrier, cores: Option<Vec<usize>>) -> Result<(Thread, CpuClock, CoreWaits), LinkError> {
    let (ready, started) = mpsc::sync_channel(1);
    let run = move || {
        if let Err(error) = cores.map_or(Ok(()), |cores| affinity::pin_to(&cores)) {
            // Whoever started this thread waits for the answer, here and below.
            let _ = ready.send(Err(error));
            return (Ok(None), 0);
        }
        clock::set_precise_wakeups();
        let cpu = CpuClock::of_this_thread();
        let _ = ready.send(Ok((cpu, CoreWaits::of_this_thread())));
        (carrier.run(), cpu.read_ns().unwrap_or(0))
    };
    let thread = thread::Builder::new()
        .name("link".to_owned())
        .spawn(run)
        .map_err(|source| LinkError::Thread { step: "start", source })?;
    match started.recv().expect("the thread answers before it does anything else") {
        Ok((cpu, core_waits)) => Ok((thread, cpu, core_waits)),
        Err(source) => {
            // It is about to end; afterwards nothing of the network is left.
            drop(thread.join());
            Err(LinkError::Thread { step: "pinning", source })
        }
    }
}
