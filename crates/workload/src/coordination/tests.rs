//! Whole runs of a fleet that is simulated: workers without sockets, messages that are late and overtake each other.

use super::*;
use crate::plan::fixtures::plan;
use crate::plan::{Phases, Prober, ProberPath};
use crate::scenario::Scenario;
use crate::turns::Turns;
use pushlab_stats::histogram::Histogram;

/// A simulated worker: every client publishes and receives as planned.
struct Simulated {
    plan: Option<(Plan, Roles, Segment)>,
    origin_ns: u64,
    timeline: Option<Timeline>,
    after_ns: Option<u64>,
    is_done: bool,
    next_second: usize,
    /// Says nothing from then on.
    hangs_from_ns: u64,
    /// Clients that never connect.
    missing: u32,
    /// Time for a delivery, ns.
    latency_ns: u64,
    /// Whether the server says of each that it is gone, instead of bringing it.
    calls_gone: bool,
    /// Whether the server refuses every publication.
    refuses: bool,
    /// Whether it has refused a client that is not subscribed.
    is_refused: bool,
}

impl Simulated {
    fn new() -> Self {
        Self {
            plan: None,
            origin_ns: 0,
            timeline: None,
            after_ns: None,
            is_done: false,
            next_second: 0,
            hangs_from_ns: u64::MAX,
            missing: 0,
            latency_ns: 3 * MS,
            calls_gone: false,
            refuses: false,
            is_refused: false,
        }
    }

    fn take(&mut self, order: Order, now: u64) -> Vec<Message> {
        match order {
            Order::Prepare { plan, segment } => {
                let roles = Roles::of(&plan, 20_000).unwrap();
                self.plan = Some((*plan, roles, segment));
                return vec![Message::Prepared];
            }
            Order::Connect { origin_ns } => self.origin_ns = origin_ns,
            Order::Begin { idle_ns } => {
                let (plan, roles, _) = self.plan.as_ref().unwrap();
                self.timeline = Some(Timeline::of(plan, roles, idle_ns));
            }
            Order::Finish { after_ns } => self.after_ns = Some(after_ns),
            Order::Abandon => return self.done(now),
        }
        Vec::new()
    }

    /// Own publications of the load phase that are due by an instant, by their numbers.
    fn published_by(&self, instant: u64) -> impl Iterator<Item = u64> + '_ {
        let (_, _, segment) = self.plan.as_ref().unwrap();
        let open = self.timeline.as_ref().and_then(|timeline| match &timeline.schedule {
            Some(Schedule::Open { pacing, load_from }) => Some((pacing, *load_from)),
            _ => None,
        });
        open.into_iter().flat_map(move |(pacing, load_from)| {
            (load_from..pacing.count)
                .take_while(move |k| pacing.due_ns(*k) <= instant)
                .filter(move |k| is_own(segment, pacing.publisher_of(*k).0))
                .map(move |k| k - load_from)
        })
    }

    /// All publications of the load phase that have reached everybody here by an instant.
    fn reached_by(&self, instant: u64) -> u64 {
        match self.timeline.as_ref().and_then(|timeline| timeline.schedule.as_ref()) {
            Some(Schedule::Open { pacing, load_from }) => {
                (*load_from..pacing.count).filter(|k| pacing.due_ns(*k) + self.latency_ns <= instant).count() as u64
            }
            _ => 0,
        }
    }

    fn own_clients(&self) -> u32 {
        let (plan, _, segment) = self.plan.as_ref().unwrap();
        segment.clients(plan.clients)
    }

    fn turn(&mut self, now: u64) -> Vec<Message> {
        if self.is_done || self.origin_ns == 0 || now > self.hangs_from_ns {
            return Vec::new();
        }
        let (plan, roles, segment) = self.plan.as_ref().unwrap();
        if self.after_ns.is_some_and(|after_ns| now >= after_ns + plan.phases.after_ms * MS) {
            return self.done(now);
        }
        let published = self.published_by(now).count() as u64;
        let reached = self.reached_by(now) * u64::from(self.own_clients());
        let (delivered, load_gone) = if self.calls_gone { (0, reached) } else { (reached, 0) };
        let delivered = if self.refuses { 0 } else { delivered };
        let mut messages = vec![Message::State(WorkerState {
            t_ns: now,
            subscribed: self.own_clients() - self.missing,
            instruments: if segment.has_instruments() { roles.instruments() } else { 0 },
            has_prober: segment.has_instruments(),
            published,
            delivered,
            load_published: published,
            load_delivered: delivered,
            load_gone,
            refused: u64::from(self.is_refused) + if self.refuses { published } else { 0 },
            ..WorkerState::default()
        })];
        while now >= self.origin_ns + (self.next_second as u64 + 1) * S {
            messages.push(self.second());
        }
        messages
    }

    fn second(&mut self) -> Message {
        self.next_second += 1;
        let latency = (0..u64::from(self.own_clients())).map(|client| MS * (client + 1));
        let mut histogram = Histogram::new();
        latency.for_each(|latency| histogram.record(latency));
        let part = crate::seconds::SecondPart { published: 1, latency: Some(Box::new(histogram)), latency_own: None };
        Message::Second { index: self.next_second - 1, part }
    }

    fn done(&mut self, now: u64) -> Vec<Message> {
        self.is_done = true;
        let mut messages = vec![self.second()];
        let mut part = Part::default();
        let own = u64::from(self.own_clients());
        part.published = self.published_by(now).count() as u64;
        part.delivered = self.reached_by(now) * own;
        let count = self.timeline.as_ref().map_or(0, Timeline::load_count);
        part.ranks = crate::ranks::Ranks::new(count);
        for publication in 0..self.reached_by(now) {
            for client in 0..own {
                part.ranks.reached(publication, self.latency_ns + client);
                part.latency.record(self.latency_ns + client);
            }
        }
        part.errors.add(&"refused");
        if self.is_refused {
            part.refused.add(&"/sse answered 403 not for you");
        }
        part.unsubscribed = 1;
        messages.push(Message::Done { part: Box::new(part), seconds: self.next_second });
        messages
    }
}

fn is_own(segment: &Segment, client: u32) -> bool {
    (segment.first_loop..segment.first_loop + segment.loops).contains(&(client % segment.loops_of_all))
}

/// What came of a simulated run: events in order, and how it ended.
struct Ran {
    phases: Vec<(Phase, u64)>,
    progress: Vec<Progress>,
    result: Result<LoadResult, LoadError>,
    orders: Vec<Vec<&'static str>>,
}

/// How long a run that is ready waits for those beside it, ns.
const WAIT_NS: u64 = 3 * S;

/// Runs a plan on simulated workers. Every message is under way for as long as `delay` says, so that messages overtake
/// each other where that differs.
fn simulate(
    plan: &Plan,
    mut workers: Vec<Simulated>,
    mut delay: impl FnMut() -> u64,
    gone: Option<(usize, u64)>,
) -> Ran {
    let roles = Roles::of(plan, 20_000).unwrap();
    let segments = Segment::spread(roles.loops, workers.len() as u32);
    let plan = Plan { loops: roles.loops, workers: workers.len() as u32, ..plan.clone() };
    let mut now = S;
    let mut coordinator = Coordinator::new(plan, roles, &segments, now);
    // As texts, which is how they travel: a thousand parts take some gigabytes otherwise.
    let mut under_way: Vec<(u64, usize, String)> = Vec::new();
    let text = |message: Message| serde_json::to_string(&message).unwrap();
    let mut ran = Ran {
        phases: Vec::new(),
        progress: Vec::new(),
        result: Err(LoadError::Worker { worker: 0, workers: 0, reason: String::new() }),
        orders: vec![Vec::new(); workers.len()],
    };
    let mut ready_ns = None;
    for step in 0..2_000_000u64 {
        assert!(step < 1_999_999, "the run does not end");
        while let Some(output) = coordinator.next(now) {
            match output {
                Output::Order(worker, order) => {
                    ran.orders[worker].push(match order {
                        Order::Prepare { .. } => "prepare",
                        Order::Connect { .. } => "connect",
                        Order::Begin { .. } => "begin",
                        Order::Finish { .. } => "finish",
                        Order::Abandon => "abandon",
                    });
                    let said = workers[worker].take(order, now);
                    under_way.extend(said.into_iter().map(|message| (now + delay(), worker, text(message))));
                }
                Output::Event(RunEvent::Ready) => ready_ns = Some(now),
                Output::Event(RunEvent::Phase { phase, t_ns }) => ran.phases.push((phase, t_ns)),
                Output::Event(RunEvent::Progress(progress)) => ran.progress.push(progress),
                Output::Event(RunEvent::Done { result }) => ran.result = Ok(*result),
                Output::Event(RunEvent::Failed(error)) => ran.result = Err(error),
            }
        }
        if coordinator.is_over() {
            return ran;
        }
        if ready_ns.is_some_and(|ready_ns| now >= ready_ns + WAIT_NS) {
            coordinator.begin_at(now + LEAD_NS);
        }
        let (due, later) = under_way.into_iter().partition::<Vec<_>, _>(|(at_ns, _, _)| *at_ns <= now);
        under_way = later;
        for (_, worker, text) in due {
            coordinator.heard(worker, serde_json::from_str(&text).unwrap(), now);
        }
        if let Some((worker, _)) = gone.filter(|(_, at_ns)| now >= *at_ns) {
            coordinator.gone(worker, "it ended with signal 9".to_owned());
        }
        if step % 20 == 0 {
            for (index, worker) in workers.iter_mut().enumerate() {
                let said = worker.turn(now);
                under_way.extend(said.into_iter().map(|message| (now + delay(), index, text(message))));
            }
        }
        assert!(coordinator.wake_ns(now) > now);
        now += MS;
    }
    ran
}

fn chat(clients: u32) -> Plan {
    let scenario = Scenario::Chat {
        interval_ms: 200,
        payload_bytes: 71,
        payload_bytes_max: None,
        publishers: None,
        in_bursts: false,
    };
    let phases =
        Phases { connect_ms: 2_000, warm_up_ms: 300, idle_ms: 100, load_ms: 1_500, drain_ms: 5_000, after_ms: 50 };
    let prober =
        Some(Prober { interval_ms: 50, over: ProberPath::SameTransport, closed_loop: false, subscribed: false });
    Plan { phases, prober, loops: 4, ..plan(clients, scenario) }
}

fn fleet(workers: usize) -> Vec<Simulated> {
    (0..workers).map(|_| Simulated::new()).collect()
}

#[test]
fn what_clients_were_told_is_gone_is_waited_for_a_second_and_no_longer() {
    let drain_ns = |calls_gone: bool, latency_ns| {
        let worker = || Simulated { calls_gone, latency_ns, ..Simulated::new() };
        let ran = simulate(&chat(10), vec![worker(), worker()], || 0, None);
        let at = |wanted| ran.phases.iter().find(|(phase, _)| *phase == wanted).unwrap().1;
        at(Phase::After) - at(Phase::Drain)
    };
    assert!(drain_ns(false, 3 * MS) <= 2 * LEAD_NS);
    let quiet_ns = QUIET_NS..QUIET_NS + LEAD_NS;
    assert!(quiet_ns.contains(&drain_ns(true, 3 * MS)), "{}", drain_ns(true, 3 * MS));
    assert_eq!(drain_ns(true, 60 * S), 5 * S, "nobody was told anything: the whole drain");
}

#[test]
fn one_that_takes_turns_begins_when_it_is_told_to_and_sends_in_its_turns() {
    let turns = Turns { own: 1, of: 3, length_ms: 20 };
    let plan = Plan { is_told_to_begin: true, turns: Some(turns), ..chat(10) };
    let ran = simulate(&plan, fleet(2), || 0, None);
    let result = ran.result.unwrap();
    let at = |wanted| ran.phases.iter().find(|(phase, _)| *phase == wanted).unwrap().1;
    assert!(at(Phase::Idle) >= at(Phase::Connect) + WAIT_NS + LEAD_NS);
    // 18 of each 60 ms, in which the ten clients publish as often as they do in 200 ms all the time.
    assert_eq!(result.published, 75 * 18 / 60);
    assert_eq!((result.delivered, result.lost), (result.published * 10, 0));
    assert!(ran.orders.iter().all(|orders| *orders == ["prepare", "connect", "begin", "finish"]));
}

#[test]
fn clients_that_poll_at_an_interval_do_so_in_their_turns() {
    let turns = Turns { own: 1, of: 3, length_ms: 20 };
    let plan = Plan {
        transport: pushlab_wire::transport::Transport::Polling,
        poll_interval_ms: 10,
        turns: Some(turns),
        ..chat(10)
    };
    let timeline = Timeline::of(&plan, &Roles::of(&plan, 20_000).unwrap(), 5 * S);
    let polls = timeline.polls.unwrap();
    let under_load = (0..).map(|k| polls.due_ns(k)).take_while(|due_ns| *due_ns < timeline.load_end_ns);
    let offsets: Vec<u64> = under_load.map(|due_ns| due_ns - timeline.warm_up_ns).collect();
    assert!(offsets.iter().all(|offset_ns| turns.is_own(*offset_ns)), "{offsets:?}");
    // Ten clients, each every 10 ms of 18 in 60, and afterwards without a pause.
    let all_ms = (timeline.load_end_ns - timeline.warm_up_ns) / MS;
    assert!(offsets.len().abs_diff(all_ms as usize * 18 / 60) <= 18, "{} in {all_ms} ms", offsets.len());
    let after = [0, 1].map(|next| polls.due_ns((offsets.len() + next) as u64));
    assert_eq!(after[1] - after[0], MS);
    assert_eq!(Timeline::of(&chat(10), &Roles::of(&chat(10), 20_000).unwrap(), 5 * S).polls, None);
}

#[test]
fn late_messages_that_overtake_each_other_change_nothing_that_is_measured() {
    let alone = simulate(&chat(10), fleet(1), || 0, None).result.unwrap();
    assert_eq!((alone.published, alone.delivered, alone.lost, alone.unsent), (75, 750, 0, 0));
    assert_eq!((alone.latency_first.count(), alone.latency_last.count()), (75, 75));
    for seed in 0..8 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let ran = simulate(&chat(10), fleet(4), || rng.u64(..300) * MS, None);
        let result = ran.result.unwrap();
        let counts = |result: &LoadResult| {
            let LoadResult { scheduled, published, unsent, expected, delivered, lost, .. } = result;
            [*scheduled, *published, *unsent, *expected, *delivered, *lost]
        };
        assert_eq!(counts(&result), counts(&alone), "seed {seed}");
        assert_eq!(result.latency.count(), 750);
        assert_eq!((result.latency_first.count(), result.latency_last.count()), (75, 75), "seed {seed}");
        assert_eq!(result.errors.iter().map(|error| error.count).sum::<u64>(), 4);
        // The last second is cut short wherever its worker ends.
        assert!(result.seconds.iter().take(result.seconds.len() - 1).all(|second| second.delivered == 10), "{seed}");
        let phases: Vec<Phase> = ran.phases.iter().map(|(phase, _)| *phase).collect();
        assert_eq!(phases, [Phase::Connect, Phase::Idle, Phase::WarmUp, Phase::Load, Phase::Drain, Phase::After]);
        assert!(ran.phases.is_sorted_by_key(|(_, t_ns)| *t_ns));
        assert!(ran.orders.iter().all(|orders| *orders == ["prepare", "connect", "begin", "finish"]));
    }
}

#[test]
fn progress_is_that_of_all() {
    let ran = simulate(&chat(10), fleet(4), || 5 * MS, None);
    assert!(ran.progress.len() >= 2);
    let last = ran.progress.last().unwrap();
    assert_eq!(last.connected, 10);
    assert!(last.published > 30 && last.delivered > 300 && last.outstanding < 50, "{last:?}");
}

#[test]
fn nobody_begins_before_all_are_connected() {
    let mut workers = fleet(3);
    workers[2].missing = 1;
    let ran = simulate(&chat(10), workers, || 0, None);
    let Err(LoadError::NotConnected { connected, clients, error, .. }) = ran.result else { panic!("{:?}", ran.phases) };
    assert_eq!((connected, clients, error.as_str()), (9, 10, "refused (3 times)"));
    assert_eq!(ran.phases.len(), 1);
    assert!(ran.orders.iter().all(|orders| *orders == ["prepare", "connect", "abandon"]));
}

#[test]
fn a_client_that_is_refused_for_good_ends_the_run_at_once() {
    let mut workers = fleet(3);
    (workers[2].missing, workers[2].is_refused) = (1, true);
    let ran = simulate(&chat(10), workers, || 0, None);
    let Err(LoadError::NotConnected { connect_ms, error, .. }) = ran.result else { panic!("{:?}", ran.phases) };
    assert_eq!(error, "/sse answered 403 not for you (1 times)", "and not what came more often");
    assert!(connect_ms < 100, "it was tried for {connect_ms} ms");
}

#[test]
fn who_refuses_what_is_published_is_not_silent() {
    let silent_ms = |refuses| {
        let worker = || Simulated { refuses, latency_ns: 60 * S, ..Simulated::new() };
        let mut plan = Plan { prober: None, ..chat(4) };
        (plan.phases.load_ms, plan.phases.drain_ms) = (5_000, 100);
        let ran = simulate(&plan, vec![worker(), worker()], || 0, None);
        ran.progress.iter().map(|progress| progress.silent_ms).max().unwrap()
    };
    assert!(silent_ms(false) > 2_000 && silent_ms(true) == 0, "{}, {}", silent_ms(false), silent_ms(true));
}

#[test]
fn a_worker_that_ends_fails_the_run_and_is_named() {
    let ran = simulate(&chat(10), fleet(3), || MS, Some((1, 2 * S)));
    let error = ran.result.unwrap_err();
    assert_eq!(error.to_string(), "worker 2 of 3: it ended with signal 9");
    assert!(ran.orders.iter().all(|orders| orders.last() == Some(&"abandon")), "{:?}", ran.orders);
}

#[test]
fn a_worker_that_hangs_fails_the_run_and_is_named() {
    for (hangs_from_ns, what, seconds) in [
        (S + 1_700 * MS, "said nothing", 8),
        (0, "said nothing", 8),
        // Within the last phase: it has been told to finish.
        (S + 1_985 * MS, "did not say what it measured", 10),
    ] {
        let mut workers = fleet(2);
        workers[1].hangs_from_ns = hangs_from_ns;
        let mut plan = chat(4);
        // Longer than a hanging worker is waited for.
        plan.phases.connect_ms = 60_000;
        plan.phases.drain_ms = 60_000;
        let error = simulate(&plan, workers, || 0, None).result.unwrap_err();
        let LoadError::Silent { worker: 1, workers: 2, within_s, .. } = error else { panic!("{error}") };
        assert_eq!(within_s, seconds);
        assert!(error.to_string().contains(what), "{error}");
    }
}

/// The machine sleeps for a minute: nobody said anything meanwhile, and nobody is to blame.
#[test]
fn who_was_not_asked_has_heard_no_silence() {
    let mut plan = chat(4);
    plan.phases.load_ms = 120_000;
    let roles = Roles::of(&plan, 20_000).unwrap();
    let mut coordinator = Coordinator::new(plan, roles, &Segment::spread(4, 2), S);
    for worker in [0, 1] {
        coordinator.heard(worker, Message::Prepared, S);
        let state = WorkerState { t_ns: S, subscribed: 2, has_prober: true, ..WorkerState::default() };
        coordinator.heard(worker, Message::State(state), S);
    }
    let failed = |coordinator: &mut Coordinator, now: u64| {
        std::iter::from_fn(|| coordinator.next(now))
            .any(|output| matches!(output, Output::Event(RunEvent::Failed(LoadError::Silent { .. }))))
    };
    assert!(!failed(&mut coordinator, 2 * S) && !failed(&mut coordinator, 62 * S));
    assert!((63..=70).all(|second| !failed(&mut coordinator, second * S)));
    assert!(failed(&mut coordinator, 71 * S), "and then they were silent indeed");
}

#[test]
fn a_worker_that_never_gets_ready_is_named() {
    let plan = chat(4);
    let roles = Roles::of(&plan, 20_000).unwrap();
    let mut coordinator = Coordinator::new(plan, roles, &Segment::spread(4, 2), S);
    while coordinator.next(S).is_some() {}
    coordinator.heard(0, Message::Prepared, S);
    assert!(coordinator.next(S + 10 * S).is_none());
    let outputs: Vec<Output> = std::iter::from_fn(|| coordinator.next(S + 11 * S)).collect();
    let Some(Output::Event(RunEvent::Failed(error))) = outputs.last() else { panic!("{outputs:?}") };
    assert_eq!(error.to_string(), "worker 2 of 2 did not get ready within 10 s");
}

/// Each says what it says at other times than all others, as on a network.
#[test]
fn a_thousand_workers_are_led_and_merged_as_one() {
    let scenario = Scenario::Chat {
        interval_ms: 200,
        payload_bytes: 71,
        payload_bytes_max: None,
        publishers: Some(10),
        in_bursts: false,
    };
    let plan = Plan { scenario, loops: 1_000, workers: 1_000, ..chat(1_000) };
    let mut rng = fastrand::Rng::with_seed(1);
    let ran = simulate(&plan, fleet(1_000), || rng.u64(..100) * MS, None);
    let result = ran.result.unwrap();
    assert_eq!((result.published, result.delivered, result.lost), (75, 75_000, 0));
    assert_eq!((result.latency.count(), result.latency_last.count()), (75_000, 75));
    assert_eq!(result.errors.iter().map(|error| error.count).sum::<u64>(), 1_000);
    assert!(ran.orders.iter().all(|orders| *orders == ["prepare", "connect", "begin", "finish"]));
}
