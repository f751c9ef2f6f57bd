//! Whether a foreign server does what it is said to do at every endpoint: broadcasts arrive at everybody,
//! each once and in order, and an echo comes back.

use crate::fleet;
use crate::install::Installed;
use crate::manifest::{Endpoint, Fault, Loses, Manifest};
use crate::running::{ForeignStart, Subject};
use pushlab_wire::transport::Transport;
use pushlab_workload::messages::{Progress, RunEvent};
use pushlab_workload::payload::Content;
use pushlab_workload::plan::{ClientsIn, Phases, Plan, RequestHeaders, Sockets, Sources, Speaks, Target};
use pushlab_workload::result::LoadResult;
use pushlab_workload::scenario::{Scenario, Shape};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Subscribers.
pub const CLIENTS: u32 = 50;
/// Broadcasts that are checked, where nothing else is asked for.
pub const PUBLICATIONS: u32 = 10_000;
/// Time between two broadcasts, ms.
const INTERVAL_MS: u64 = 2;
/// Echoes of each client.
const ECHOES: u64 = 20;
/// Longest time for what is under way to arrive, and for what a slow server has not let its publisher send yet, ms: at
/// 10,000 broadcasts one that takes one every 120 ms can be checked (SignalR in Go answers each post after 50).
const DRAIN_MS: u64 = 1_200_000;
/// So long must nothing have come before what is missing counts as lost, ms: longer than any server here holds a poll
/// (25 s), after which another may bring what had waited.
const STALL_MS: u64 = 40_000;
/// Time beyond what a worker may take after which it is given up.
const SLACK: Duration = Duration::from_secs(15);
/// How long the worker is listened to before looking whether to stop.
const LISTEN: Duration = Duration::from_millis(50);

/// How a check is to be done.
#[derive(Debug, Clone)]
pub struct CheckOptions {
    /// The `pushlab` program, which is the worker.
    pub program: PathBuf,
    /// Broadcasts.
    pub publications: u32,
    /// Where the first client's conversation is written: `NAME-ENDPOINT.jsonl`.
    pub recordings: Option<PathBuf>,
    /// Where the subject writes its standard error.
    pub logs: PathBuf,
}

/// What a check found on one endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// Deliveries that should have come.
    pub expected: u64,
    /// Those that came, each counted once.
    pub delivered: u64,
    /// Those that came again.
    pub duplicated: u64,
    /// Those that came after a later one.
    pub reordered: u64,
    /// Echoes wanted, and those that came; none where the subject has none.
    pub echoes: Option<(u64, u64)>,
    /// What went wrong on the way, the most frequent first.
    pub errors: Vec<(String, u64)>,
}

/// What a check comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judged {
    /// Everything came, once and in order.
    Whole,
    /// What went wrong is what its manifest says.
    AsAdmitted,
    /// It is not.
    Failed,
}

impl Checked {
    /// What went wrong, each kind once.
    pub fn faults(&self) -> Vec<Fault> {
        let found = [
            (Fault::Loss, self.lost() > 0),
            (Fault::Repeats, self.duplicated > 0),
            (Fault::Order, self.reordered > 0),
            (Fault::Echoes, self.echoes.is_some_and(|(wanted, came)| wanted != came)),
        ];
        found.into_iter().filter(|(_, is_there)| *is_there).map(|(fault, _)| fault).collect()
    }

    /// What it comes to where this is admitted. To deliver or echo nothing at all, or to lose more than the admitted
    /// share, is a failure, whatever is admitted.
    pub fn judged(&self, admitted: Option<&Loses>) -> Judged {
        let comes_at_all = self.delivered > 0 && self.echoes.is_none_or(|(_, came)| came > 0);
        let faults = self.faults();
        let is_admitted =
            |loses: &Loses| faults.iter().all(|fault| loses.admits(*fault)) && loses.allows(self.lost(), self.expected);
        if !comes_at_all || self.delivered > self.expected {
            Judged::Failed
        } else if faults.is_empty() {
            Judged::Whole
        } else if admitted.is_some_and(is_admitted) {
            Judged::AsAdmitted
        } else {
            Judged::Failed
        }
    }

    /// Deliveries that never came.
    pub fn lost(&self) -> u64 {
        self.expected.saturating_sub(self.delivered)
    }
}

/// Starts the subject and checks one of its endpoints.
///
/// # Errors
/// As a sentence: it does not start, clients cannot subscribe, it dies, or somebody wants to stop.
pub fn check(
    manifest: &Manifest,
    installed: &Installed,
    endpoint: &Endpoint,
    options: &CheckOptions,
    is_interrupted: &mut dyn FnMut() -> bool,
) -> Result<Checked, String> {
    let start = ForeignStart {
        manifest,
        installed,
        host: Ipv4Addr::LOCALHOST,
        port: None,
        namespace: None,
        feed: None,
        compression_from: None,
        logs_collections: false,
        environment: &[],
        cores: &[],
        log: options.logs.join(format!("{}-{}.log", manifest.name, endpoint.name)),
    };
    let mut subject = Subject::start_foreign(start).map_err(|error| error.to_string())?;
    let recording =
        options.recordings.as_ref().map(|folder| folder.join(format!("{}-{}.jsonl", manifest.name, endpoint.name)));
    let mut speaks = Speaks { recording, ..endpoint.speaks() };
    // The first client publishes and receives like all others.
    let broadcast = Scenario::Chat {
        interval_ms: INTERVAL_MS,
        payload_bytes: 64,
        payload_bytes_max: None,
        publishers: Some(1),
        in_bursts: false,
    };
    let load_ms = u64::from(options.publications) * INTERVAL_MS;
    let plan = plan(subject.address, endpoint.transport, Some(speaks.clone()), broadcast, load_ms);
    let result = follow(&mut subject, &plan, &options.program, &mut |_| {}, is_interrupted)?;
    let mut checked = Checked {
        expected: u64::from(options.publications) * u64::from(CLIENTS),
        delivered: result.delivered,
        duplicated: result.duplicated,
        reordered: result.reordered,
        echoes: None,
        errors: result.errors.iter().map(|error| (error.error.clone(), error.count)).collect(),
    };
    let unsent = u64::from(options.publications).saturating_sub(result.published);
    if unsent > 0 {
        checked.errors.insert(0, ("a broadcast that the server left no time to publish".to_owned(), unsent));
    }
    if manifest.echo {
        speaks.recording = None;
        let echo = Scenario::Echo { interval_ms: 50, payload_bytes: 64, streamed: false };
        let plan = self::plan(subject.address, endpoint.transport, Some(speaks), echo, ECHOES * 50);
        let result = follow(&mut subject, &plan, &options.program, &mut |_| {}, is_interrupted)?;
        checked.echoes = Some((result.expected, result.delivered));
        checked.errors.extend(result.errors.iter().map(|error| (error.error.clone(), error.count)));
    }
    subject.stop();
    Ok(checked)
}

/// Clients that receive everything; without a dialect they speak the native protocol.
pub(crate) fn plan(
    target: SocketAddr,
    transport: Transport,
    speaks: Option<Speaks>,
    scenario: Scenario,
    load_ms: u64,
) -> Plan {
    Plan {
        target: Target::plain(target),
        transport,
        speaks,
        clients: CLIENTS,
        channel: "check".to_owned(),
        scenario,
        poll_interval_ms: 100,
        poll_wait_s: 25,
        prober: None,
        phases: Phases { connect_ms: 20_000, warm_up_ms: 0, idle_ms: 200, load_ms, drain_ms: DRAIN_MS, after_ms: 0 },
        connect_rate: 1_000,
        loops: 1,
        workers: 1,
        seed: 1,
        repetition: None,
        injected_delay_us: 0,
        shape: Shape::Steady,
        is_told_to_begin: false,
        turns: None,
        headers: RequestHeaders::Minimal,
        compression_from: None,
        content: Content::Filler,
        poll_newest_count: None,
        poll_after_publication_ms: None,
        user_list: false,
        receipts: false,
        backend_listen: None,
        backend_descriptor: None,
        sockets: Sockets::default(),
        sources: Sources::Usual,
        instruments_from: None,
        prober_core: None,
        clients_in: ClientsIn::default(),
        page_scripts: None,
        drain_stall_ms: Some(STALL_MS),
    }
}

/// Carries out a plan against a running subject. `watch` is told what happens, many times a second: mostly
/// nothing.
///
/// # Errors
/// As [`check`].
pub(crate) fn follow(
    subject: &mut Subject,
    plan: &Plan,
    program: &Path,
    watch: &mut dyn FnMut(Option<&RunEvent>),
    is_interrupted: &mut dyn FnMut() -> bool,
) -> Result<LoadResult, String> {
    let mut patience = Patience::new(plan, Instant::now());
    let (mut load, _) = fleet::begin(program, plan, &[], None, None)?;
    loop {
        let event = load.listen(LISTEN);
        watch(event.as_ref());
        let why = match event {
            Some(RunEvent::Done { result }) => return Ok(*result),
            Some(RunEvent::Failed(error)) => Some(error.to_string()),
            Some(RunEvent::Progress(progress)) => {
                patience.saw(progress, Instant::now());
                None
            }
            None if Instant::now() > patience.end => {
                Some("it did not end in its time, and nothing came any more".to_owned())
            }
            Some(RunEvent::Ready | RunEvent::Phase { .. }) | None => None,
        };
        if let Some(why) = subject.death().or(why) {
            return Err(why);
        }
        if is_interrupted() {
            return Err("interrupted".to_owned());
        }
    }
}

/// When a worker is given up. It has the time of its phases, and of what may follow them as much as it makes use of.
struct Patience {
    end: Instant,
    /// Time beyond the last change after which it should have ended by itself.
    beyond: Duration,
    /// What was published and delivered.
    seen: (u64, u64),
}

impl Patience {
    fn new(plan: &Plan, now: Instant) -> Self {
        let Phases { connect_ms, warm_up_ms, idle_ms, load_ms, drain_ms, after_ms } = plan.phases;
        let beyond = Duration::from_millis(plan.drain_stall_ms.unwrap_or(drain_ms).min(drain_ms) + after_ms) + SLACK;
        let phases = Duration::from_millis(connect_ms + warm_up_ms + idle_ms + load_ms);
        Self { end: now + phases + beyond, beyond, seen: (0, 0) }
    }

    fn saw(&mut self, progress: Progress, now: Instant) {
        let seen = (progress.published, progress.delivered);
        if seen != self.seen {
            self.seen = seen;
            self.end = self.end.max(now + self.beyond);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slow server is waited for, and a worker that hangs is not.
    #[test]
    fn a_worker_is_waited_for_while_something_comes() {
        let begun = Instant::now();
        let target = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let scenario = Scenario::Echo { interval_ms: 50, payload_bytes: 64, streamed: false };
        let plan = plan(target, Transport::WebSocket, None, scenario, 20_000);
        let mut patience = Patience::new(&plan, begun);
        let beyond = Duration::from_millis(STALL_MS) + SLACK;
        let first = patience.end;
        assert_eq!(first, begun + Duration::from_millis(20_000 + 200 + 20_000) + beyond);
        let at = |seconds: u64| begun + Duration::from_secs(seconds);
        let seen = |published, delivered| Progress { connected: 50, published, delivered, ..Progress::default() };
        patience.saw(seen(1, 0), at(1));
        assert_eq!(patience.end, first, "no sooner than after its phases");
        for (progress, second) in [(seen(1, 1), 70), (seen(2, 1), 100), (seen(2, 51), 130)] {
            patience.saw(progress, at(second));
            assert_eq!(patience.end, at(second) + beyond);
            patience.saw(progress, at(second + 20));
            assert_eq!(patience.end, at(second) + beyond, "what is the same as before is no progress");
        }
    }

    fn checked(delivered: u64, duplicated: u64, reordered: u64, echoes: u64) -> Checked {
        let echoes = Some((1_000, echoes));
        Checked { expected: 500, delivered, duplicated, reordered, echoes, errors: Vec::new() }
    }

    /// Admits these faults, and a loss of four fifths.
    fn admitting(what: &[Fault]) -> Loses {
        let loss_percent_max = what.contains(&Fault::Loss).then_some(80);
        Loses { what: what.to_vec(), loss_percent_max, why: "threads".to_owned() }
    }

    #[test]
    fn a_check_passes_with_the_faults_that_are_admitted_and_no_others() {
        use Fault::{Echoes, Loss, Order, Repeats};
        let whole = checked(500, 0, 0, 1_000);
        assert_eq!((whole.judged(None), whole.judged(Some(&admitting(&[Order])))), (Judged::Whole, Judged::Whole));
        for (found, fault) in [
            (checked(499, 0, 0, 1_000), Loss),
            (checked(500, 1, 0, 1_000), Repeats),
            (checked(500, 0, 1, 1_000), Order),
            (checked(500, 0, 0, 990), Echoes),
        ] {
            let others: Vec<Fault> = [Loss, Repeats, Order, Echoes].into_iter().filter(|one| *one != fault).collect();
            assert_eq!(found.faults(), [fault]);
            assert_eq!(found.judged(Some(&admitting(&[fault]))), Judged::AsAdmitted, "{fault:?}");
            assert_eq!(found.judged(None), Judged::Failed, "{fault:?}");
            assert_eq!(found.judged(Some(&admitting(&others))), Judged::Failed, "{fault:?}");
        }
        let both = checked(400, 0, 7, 1_000);
        assert_eq!(both.judged(Some(&admitting(&[Order]))), Judged::Failed, "what is lost as well was not admitted");
        assert_eq!(both.judged(Some(&admitting(&[Order, Loss]))), Judged::AsAdmitted);
    }

    #[test]
    fn more_than_the_admitted_share_must_not_be_lost() {
        let loses = admitting(&[Fault::Loss, Fault::Order, Fault::Repeats]);
        assert_eq!(checked(100, 3, 7, 1_000).judged(Some(&loses)), Judged::AsAdmitted, "80 % are lost");
        for delivered in [99, 1] {
            assert_eq!(checked(delivered, 3, 7, 1_000).judged(Some(&loses)), Judged::Failed, "{delivered} of 500");
        }
    }

    #[test]
    fn every_echo_is_needed_where_their_loss_is_not_admitted() {
        let loses = admitting(&[Fault::Loss, Fault::Repeats, Fault::Order]);
        assert_eq!(checked(400, 0, 0, 1_000).judged(Some(&loses)), Judged::AsAdmitted);
        for echoes in [999, 1_001] {
            assert_eq!(checked(400, 0, 0, echoes).judged(Some(&loses)), Judged::Failed, "{echoes} of 1,000");
        }
    }

    #[test]
    fn nothing_at_all_is_a_failure_whatever_is_admitted() {
        let all = admitting(&[Fault::Loss, Fault::Repeats, Fault::Order, Fault::Echoes]);
        assert_eq!(checked(0, 0, 0, 1_000).judged(Some(&all)), Judged::Failed);
        assert_eq!(checked(500, 0, 0, 0).judged(Some(&all)), Judged::Failed);
        assert_eq!(Checked::default().judged(Some(&all)), Judged::Failed, "nothing was even expected");
        let no_echo = Checked { expected: 5, delivered: 5, ..Checked::default() };
        assert_eq!(no_echo.judged(None), Judged::Whole);
    }
}
