//! What a client gets of what was published while it was away: cut off for seconds, or between two polls.

use super::gate::Gate;
use crate::check::{follow, plan};
use crate::running::Subject;
use pushlab_wire::transport::Transport;
use pushlab_workload::messages::RunEvent;
use pushlab_workload::plan::{Phase, Phases, Plan, Speaks, Target};
use pushlab_workload::result::LoadResult;
use pushlab_workload::scenario::{FeedBy, Scenario};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long clients are cut off.
pub const CUT: Duration = Duration::from_secs(5);
/// Time of the load before that.
const BEFORE_CUT: Duration = Duration::from_secs(2);
/// The load as a whole, ms: clients that pause longer after every failure are back by the end.
const CUT_LOAD_MS: u64 = 16_000;
/// Time between two publications of the run with a cut, ms.
const CUT_INTERVAL_MS: u64 = 50;
/// Clients, each of which receives everything.
const CLIENTS: u32 = 10;
/// Where the publisher's connections come from, so that they are told apart from the clients'.
const PUBLISHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 9);
const PAYLOAD_BYTES: u32 = 64;
/// Time for what is under way to arrive, ms: more than a client that was cut needs to ask again.
const DRAIN_MS: u64 = 3_000;
/// Time between two polls while some publications fall between them, ms.
const POLL_INTERVAL_MS: u64 = 500;
/// Time between two publications then, ms.
const POLLED_INTERVAL_MS: u64 = 20;
/// The same for long polls, where only the way back from an answer lies between two of them.
const HELD_INTERVAL_MS: u64 = 2;
const POLLED_LOAD_MS: u64 = 5_000;

/// What became of publications while clients were cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Everything came: the clients went on where they were.
    Resumed,
    /// Something was lost, and the server told of it at least as often as there are clients.
    GapTold,
    /// Something was lost, and nobody said so.
    Lost,
    /// The clients got nothing any more, though they could connect again.
    Gone,
}

/// What clients get that are cut off for 5 s, in a run of 16 s with 20 publications a second: counts over all clients
/// and the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AfterCut {
    /// In a word.
    pub outcome: Outcome,
    /// Deliveries that never came.
    pub lost: u64,
    /// Deliveries that should have come.
    pub expected: u64,
    /// Deliveries that came again.
    pub duplicated: u64,
    /// How often the server said that something is lost.
    pub gaps: u64,
}

/// What falls between two polls, in a run without any cut: counts over all clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BetweenPolls {
    /// Deliveries that never came.
    pub lost: u64,
    /// Deliveries that should have come.
    pub expected: u64,
    /// Time between two publications, ms.
    pub interval_ms: u64,
    /// Time between two polls, ms; `None` where the next one follows at once.
    pub poll_interval_ms: Option<u64>,
}

/// An endpoint of a subject.
pub struct Spoken<'a> {
    /// How bytes travel.
    pub transport: Transport,
    /// The dialect; `None` for the native protocol.
    pub speaks: Option<Speaks>,
    /// The `pushlab` program, which is the worker.
    pub program: &'a Path,
}

impl Spoken<'_> {
    fn plan(&self, subject: &Subject, interval_ms: u64, load_ms: u64) -> Plan {
        let scenario = Scenario::Feed {
            interval_us: interval_ms * 1_000,
            payload_bytes: PAYLOAD_BYTES,
            by: FeedBy::Publisher,
            upstream_interval_ms: None,
        };
        let plan = plan(subject.address, self.transport, self.speaks.clone(), scenario, load_ms);
        let phases = Phases { drain_ms: DRAIN_MS, ..plan.phases.clone() };
        Plan { clients: CLIENTS, instruments_from: Some(PUBLISHER), phases, ..plan }
    }

    /// Cuts all clients off for a while; `start` starts the subject. It takes 20 s.
    ///
    /// # Errors
    /// As a sentence: clients cannot subscribe, the subject dies, or somebody wants to stop.
    pub fn after_cut(
        &self,
        start: impl FnOnce() -> Result<Subject, String>,
        is_interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<AfterCut, String> {
        let mut subject = start()?;
        let gate = Gate::before(subject.address, PUBLISHER).map_err(|error| format!("no gate: {error}"))?;
        let plan = Plan { target: Target::plain(gate.address), ..self.plan(&subject, CUT_INTERVAL_MS, CUT_LOAD_MS) };
        let mut schedule = Schedule::default();
        let mut watch = |event: Option<&RunEvent>| schedule.watch(event, Instant::now(), &gate);
        let result = follow(&mut subject, &plan, self.program, &mut watch, is_interrupted);
        subject.stop();
        let found = judge(&result?)?;
        if gate.turned_away() == 0 {
            return Err("no connection was cut".to_owned());
        }
        Ok(found)
    }

    /// Time between two publications and between two polls, ms; `None` for an endpoint that does not poll.
    fn polling(&self) -> Option<(u64, Option<u64>)> {
        match self.transport {
            Transport::LongPolling => Some((HELD_INTERVAL_MS, None)),
            Transport::Polling | Transport::WebSocketPolling => Some((POLLED_INTERVAL_MS, Some(POLL_INTERVAL_MS))),
            Transport::WebSocket | Transport::Sse | Transport::HttpStreaming => None,
        }
    }

    /// Whether something falls between two polls; `None` for an endpoint that does not poll. `start` starts the subject. It
    /// takes some 8 s.
    pub fn between_polls(
        &self,
        start: impl FnOnce() -> Result<Subject, String>,
        is_interrupted: &mut dyn FnMut() -> bool,
    ) -> Option<Result<BetweenPolls, String>> {
        let (interval_ms, poll_interval_ms) = self.polling()?;
        let run = || {
            let mut subject = start()?;
            let plan = self.plan(&subject, interval_ms, POLLED_LOAD_MS);
            let plan = Plan { poll_interval_ms: poll_interval_ms.unwrap_or(plan.poll_interval_ms), ..plan };
            let result = follow(&mut subject, &plan, self.program, &mut |_| {}, is_interrupted);
            subject.stop();
            let (lost, expected) = counted(&result?)?;
            Ok(BetweenPolls { lost, expected, interval_ms, poll_interval_ms })
        };
        Some(run())
    }
}

/// When the gate is shut and opened again, counted from the beginning of the load.
#[derive(Default)]
struct Schedule {
    load: Option<Instant>,
    is_shut: bool,
    is_done: bool,
}

impl Schedule {
    fn watch(&mut self, event: Option<&RunEvent>, now: Instant, gate: &Gate) {
        if matches!(event, Some(RunEvent::Phase { phase: Phase::Load, .. })) {
            self.load = Some(now);
        }
        let Some(load) = self.load.filter(|_| !self.is_done) else { return };
        if !self.is_shut && now >= load + BEFORE_CUT {
            gate.shut();
            self.is_shut = true;
        } else if self.is_shut && now >= load + BEFORE_CUT + CUT {
            gate.open();
            self.is_done = true;
        }
    }
}

/// Deliveries lost and expected.
fn counted(result: &LoadResult) -> Result<(u64, u64), String> {
    if result.delivered > 0 {
        return Ok((result.expected.saturating_sub(result.delivered), result.expected));
    }
    let error = result.errors.first().map_or(String::new(), |error| format!("; {} × {}", error.count, error.error));
    Err(format!("none of {} deliveries came{error}", result.expected))
}

/// Deliveries in the last two seconds of the load.
fn delivered_late(result: &LoadResult) -> Option<u64> {
    let begin = result.phases.first()?.t_ns;
    let end = result.phases.iter().find(|mark| mark.phase == Phase::Drain)?.t_ns;
    let last = usize::try_from(end.checked_sub(begin)? / 1_000_000_000).ok()?;
    let seconds = result.seconds.get(last.checked_sub(2)?..last)?;
    Some(seconds.iter().map(|second| second.delivered).sum())
}

fn judge(result: &LoadResult) -> Result<AfterCut, String> {
    let (lost, expected) = counted(result)?;
    let late = delivered_late(result).ok_or("the run did not last as long as planned")?;
    let outcome = match lost {
        0 => Outcome::Resumed,
        _ if late == 0 => Outcome::Gone,
        _ if result.gaps >= u64::from(CLIENTS) => Outcome::GapTold,
        _ => Outcome::Lost,
    };
    Ok(AfterCut { outcome, lost, expected, duplicated: result.duplicated, gaps: result.gaps })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_workload::result::{PhaseMark, Second};
    use std::net::TcpListener;

    fn result(delivered: u64, gaps: u64, late: u64) -> LoadResult {
        let mark = |phase, seconds: u64| PhaseMark { phase, t_ns: 5_000_000_000 + seconds * 1_000_000_000 };
        let mut seconds = vec![Second { delivered: 100, ..Second::default() }; 22];
        // The load ends with the 18th second; what comes in the drain is late for being back.
        seconds[16..18].fill(Second { delivered: late, ..Second::default() });
        let phases = vec![mark(Phase::Connect, 0), mark(Phase::Load, 2), mark(Phase::Drain, 18)];
        LoadResult { phases, seconds, expected: 1000, delivered, gaps, ..LoadResult::default() }
    }

    #[test]
    fn what_came_after_a_cut_is_told_in_a_word() {
        let outcome = |delivered, gaps, late| judge(&result(delivered, gaps, late)).map(|found| found.outcome);
        assert_eq!(outcome(1000, 0, 100), Ok(Outcome::Resumed));
        assert_eq!(outcome(700, 10, 100), Ok(Outcome::GapTold));
        assert_eq!(outcome(700, 9, 100), Ok(Outcome::Lost), "one client was not told");
        assert_eq!(outcome(700, 0, 0), Ok(Outcome::Gone));
        assert_eq!(judge(&result(700, 0, 1)).map(|found| (found.lost, found.expected)), Ok((300, 1000)));
        assert!(outcome(0, 0, 0).unwrap_err().contains("none of 1000"));
        assert!(judge(&LoadResult { delivered: 1, ..LoadResult::default() }).is_err(), "it ended early");
    }

    #[test]
    fn the_gate_is_shut_once_for_its_time() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let gate = Gate::before(listener.local_addr().unwrap(), PUBLISHER).unwrap();
        let is_open = |gate: &Gate| {
            let before = gate.turned_away();
            let stream = std::net::TcpStream::connect(gate.address).unwrap();
            listener.set_nonblocking(true).unwrap();
            loop {
                if gate.turned_away() > before {
                    return false;
                }
                if listener.accept().is_ok() {
                    drop(stream);
                    return true;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        let mut schedule = Schedule::default();
        let begin = Instant::now();
        schedule.watch(None, begin + BEFORE_CUT + CUT, &gate);
        assert!(is_open(&gate), "the load has not begun");
        let phase = |phase| RunEvent::Phase { phase, t_ns: 0 };
        schedule.watch(Some(&phase(Phase::Load)), begin, &gate);
        assert!(is_open(&gate));
        for (after, expected) in [(BEFORE_CUT, false), (CUT, false), (BEFORE_CUT + CUT, true), (CUT * 9, true)] {
            schedule.watch(None, begin + after, &gate);
            assert_eq!(is_open(&gate), expected, "{after:?}");
        }
    }

    #[test]
    fn only_ways_that_poll_have_something_between_polls() {
        let found = |transport| {
            let spoken = Spoken { transport, speaks: None, program: Path::new("pushlab") };
            spoken.between_polls(|| Err("it was started".to_owned()), &mut || false)
        };
        for transport in [Transport::WebSocket, Transport::Sse, Transport::HttpStreaming] {
            assert_eq!(found(transport), None);
        }
        for transport in [Transport::LongPolling, Transport::Polling, Transport::WebSocketPolling] {
            assert_eq!(found(transport), Some(Err("it was started".to_owned())));
        }
    }
}
