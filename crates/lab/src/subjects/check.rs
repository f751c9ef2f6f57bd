//! Whether a foreign server does what it is said to do, over every way to speak to it: broadcasts arrive at everybody,
//! each once and in order, and an echo comes back.

use super::install::Installed;
use super::manifest::{Fault, Manifest, Way};
use super::running::{ForeignStart, Subject};
use crate::worker::{Said, Worker};
use pushlab_load::plan::{
    ClientsIn, Phases, Plan, RequestHeaders, Scenario, Shape, Sockets, Speaks, WorkerEvent, WorkerResult,
};
use pushlab_wire::transport::Transport;
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
/// Time for what is under way to arrive, ms.
const DRAIN_MS: u64 = 20_000;
/// Time beyond the phases after which a check is given up.
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
    /// Where the first client's conversation is written: `NAME-WAY.jsonl`.
    pub recordings: Option<PathBuf>,
    /// Where the subject writes its standard error.
    pub logs: PathBuf,
}

/// What a check found on one way.
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

    /// What it comes to where these faults are admitted. To deliver or echo nothing at all is a failure, whatever is
    /// admitted.
    pub fn judged(&self, admitted: &[Fault]) -> Judged {
        let comes_at_all = self.delivered > 0 && self.echoes.is_none_or(|(_, came)| came > 0);
        let faults = self.faults();
        if !comes_at_all || self.delivered > self.expected {
            Judged::Failed
        } else if faults.is_empty() {
            Judged::Whole
        } else if faults.iter().all(|fault| admitted.contains(fault)) {
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

/// Starts the subject and checks one way to speak to it.
///
/// # Errors
/// As a sentence: it does not start, clients cannot subscribe, it dies, or somebody wants to stop.
pub fn check(
    manifest: &Manifest,
    installed: &Installed,
    way: &Way,
    options: &CheckOptions,
    is_interrupted: &mut dyn FnMut() -> bool,
) -> Result<Checked, String> {
    let start = ForeignStart {
        manifest,
        installed,
        host: Ipv4Addr::LOCALHOST,
        namespace: None,
        feed: None,
        environment: &[],
        cores: &[],
        log: options.logs.join(format!("{}-{}.log", manifest.name, way.name)),
    };
    let mut subject = Subject::start_foreign(start).map_err(|error| error.to_string())?;
    let recording =
        options.recordings.as_ref().map(|folder| folder.join(format!("{}-{}.jsonl", manifest.name, way.name)));
    let mut speaks = Speaks { recording, ..way.speaks() };
    // The first client publishes and receives like all others.
    let broadcast =
        Scenario::Chat { interval_ms: INTERVAL_MS, payload_bytes: 64, payload_bytes_max: None, publishers: Some(1) };
    let load_ms = u64::from(options.publications) * INTERVAL_MS;
    let plan = plan(subject.address, way.transport, Some(speaks.clone()), broadcast, load_ms);
    let result = follow(&mut subject, &plan, &options.program, &mut |_| {}, is_interrupted)?;
    let mut checked = Checked {
        expected: result.expected,
        delivered: result.delivered,
        duplicated: result.duplicated,
        reordered: result.reordered,
        echoes: None,
        errors: result.errors.iter().map(|error| (error.error.clone(), error.count)).collect(),
    };
    if manifest.echo {
        speaks.recording = None;
        let echo = Scenario::Echo { interval_ms: 50, payload_bytes: 64 };
        let plan = self::plan(subject.address, way.transport, Some(speaks), echo, ECHOES * 50);
        let result = follow(&mut subject, &plan, &options.program, &mut |_| {}, is_interrupted)?;
        checked.echoes = Some((result.expected, result.delivered));
        checked.errors.extend(result.errors.iter().map(|error| (error.error.clone(), error.count)));
    }
    subject.stop();
    Ok(checked)
}

/// Clients that receive everything; without a dialect they speak the native protocol.
pub(super) fn plan(
    target: SocketAddr,
    transport: Transport,
    speaks: Option<Speaks>,
    scenario: Scenario,
    load_ms: u64,
) -> Plan {
    Plan {
        target,
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
        seed: 1,
        handicap_us: 0,
        shape: Shape::Steady,
        headers: RequestHeaders::Minimal,
        user_list: false,
        receipts: false,
        backend_listen: None,
        backend_descriptor: None,
        sockets: Sockets::default(),
        certificate: None,
        instruments_from: None,
        clients_in: ClientsIn::default(),
    }
}

/// Carries out a plan against a running subject. `watch` is told what the worker says, many times a second: mostly
/// nothing.
///
/// # Errors
/// As [`check`].
pub(super) fn follow(
    subject: &mut Subject,
    plan: &Plan,
    program: &Path,
    watch: &mut dyn FnMut(&Said),
    is_interrupted: &mut dyn FnMut() -> bool,
) -> Result<WorkerResult, String> {
    let phases = &plan.phases;
    let longest = Duration::from_millis(phases.connect_ms + phases.idle_ms + phases.load_ms + phases.drain_ms) + SLACK;
    let deadline = Instant::now() + longest;
    let mut worker = Worker::start(program, plan, &[], None, None)
        .map_err(|error| format!("cannot start the worker {}: {error}", program.display()))?;
    loop {
        let said = worker.listen(LISTEN);
        watch(&said);
        let why = match said {
            Said::Event(WorkerEvent::Done { result }) => return Ok(*result),
            Said::Event(WorkerEvent::Failed { reason }) | Said::Gone(reason) => Some(reason),
            Said::Nothing if Instant::now() > deadline => Some(format!("it did not end within {longest:?}")),
            Said::Event(_) | Said::Nothing => None,
        };
        if let Some(why) = subject.death().or(why) {
            return Err(why);
        }
        if is_interrupted() {
            return Err("interrupted".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(delivered: u64, duplicated: u64, reordered: u64, echoes: u64) -> Checked {
        let echoes = Some((1_000, echoes));
        Checked { expected: 500, delivered, duplicated, reordered, echoes, errors: Vec::new() }
    }

    #[test]
    fn a_check_passes_with_the_faults_that_are_admitted_and_no_others() {
        use Fault::{Echoes, Loss, Order, Repeats};
        let whole = checked(500, 0, 0, 1_000);
        assert_eq!((whole.judged(&[]), whole.judged(&[Order])), (Judged::Whole, Judged::Whole));
        for (found, fault) in [
            (checked(499, 0, 0, 1_000), Loss),
            (checked(500, 1, 0, 1_000), Repeats),
            (checked(500, 0, 1, 1_000), Order),
            (checked(500, 0, 0, 990), Echoes),
        ] {
            let others: Vec<Fault> = [Loss, Repeats, Order, Echoes].into_iter().filter(|one| *one != fault).collect();
            assert_eq!(found.faults(), [fault]);
            assert_eq!(found.judged(&[fault]), Judged::AsAdmitted, "{fault:?}");
            assert_eq!((found.judged(&[]), found.judged(&others)), (Judged::Failed, Judged::Failed), "{fault:?}");
        }
        let both = checked(400, 0, 7, 1_000);
        assert_eq!(both.judged(&[Order]), Judged::Failed, "what is lost as well was not admitted");
        assert_eq!(both.judged(&[Order, Loss]), Judged::AsAdmitted);
    }

    #[test]
    fn nothing_at_all_is_a_failure_whatever_is_admitted() {
        let all = [Fault::Loss, Fault::Repeats, Fault::Order, Fault::Echoes];
        assert_eq!(checked(0, 0, 0, 1_000).judged(&all), Judged::Failed);
        assert_eq!(checked(500, 0, 0, 0).judged(&all), Judged::Failed);
        assert_eq!(Checked::default().judged(&all), Judged::Failed, "nothing was even expected");
        let no_echo = Checked { expected: 5, delivered: 5, ..Checked::default() };
        assert_eq!(no_echo.judged(&[]), Judged::Whole);
    }
}
