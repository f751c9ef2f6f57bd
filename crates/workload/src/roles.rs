//! What a plan's scenario means for each part of the load.

use crate::audience::Audience;
use crate::pacing::Pacing;
use crate::payload::{Form, MAX_PAYLOAD_BYTES, Payload};
use crate::phase::Periodic;
use crate::plan::{Http, Plan};
use crate::plan_checks::{BadPlan, MAX_LOOPS, MAX_PUBLICATIONS, check_channel, check_pairs, check_plan, in_range};
use crate::rooms::{MAX_ROOMS, MAX_ROOMS_PER_CLIENT, Rooms};
use crate::scenario::{FeedBy, Scenario, Shape};
use crate::shape::{Warp, storm_period_ns};
use crate::storm::Storm;
use crate::traffic::{HostLimit, MAX_PUBLISHERS, Traffic};
use pushlab_dialects::Sending;
use pushlab_wire::stamp::{MAX_SEQUENCE, RESOLUTION_NS};
use std::sync::Arc;

/// Descriptors that a loop needs besides its sockets: standard streams, epoll, timer, and some to spare.
const OTHER_DESCRIPTORS: u64 = 16;
/// Descriptors of each table of our server that it keeps for other things than connections, unless it is told how many it
/// may have.
pub const SERVER_OWN_DESCRIPTORS: u64 = 100;
/// Most publications that each client of a storm misses: what history holds of a channel, as far as that is known.
const MAX_MISSED: u64 = 10_000;
/// Longest time over which the clients of a storm come back, ms.
const MAX_RETURN_MS: u64 = 600_000;
/// Most publications of a storm for each ms of its load phase, of which they have half: one every 10 µs.
const STORM_PER_MS: u64 = 50;

/// A client that is none of those counted: it publishes to all of them.
#[derive(Debug, Clone)]
pub struct Feeder {
    /// The data that it sends.
    pub payload: Payload,
    /// Publishers that keep one publication under way each; `None`: it is one, which publishes on the schedule.
    pub publishers: Option<u32>,
}

impl Feeder {
    /// What it sends.
    pub fn traffic(&self) -> Traffic {
        self.publishers.map_or(Traffic::Paced(Sending::Publish), |_| Traffic::Broadcasts)
    }

    /// How many clients it is.
    pub fn clients(&self) -> u32 {
        self.publishers.unwrap_or(1)
    }
}

/// What the scenario means.
#[derive(Debug, Clone)]
pub struct Roles {
    /// What clients send.
    pub traffic: Traffic,
    /// The data they send.
    pub payload: Option<Payload>,
    /// What clients are to receive.
    pub audience: Audience,
    /// What the collector is to receive, if there is one.
    pub collector: Option<Audience>,
    /// Time in which each publisher publishes once, ns, and the publishers; `None` without a schedule.
    pub pace: Option<(u64, u32)>,
    /// Time in which each client publishes once beside a feed, ns; `None` where clients of a feed only receive.
    pub upstream_ns: Option<u64>,
    /// How all of it changes; `None` if it does not.
    pub warp: Option<Arc<Warp>>,
    /// How many clients publish: the first so many.
    pub publishers: u32,
    /// Deliveries of each publication; 0 in rooms, where each has its own number.
    pub receivers: u64,
    /// Whether all publishers publish at the same instants.
    in_bursts: bool,
    /// What the publications of the back end look like; `None` where there is none.
    pub feed: Option<Form>,
    /// The client that publishes to all others, where one does.
    pub feeder: Option<Feeder>,
    /// Event loops for the clients.
    pub loops: u32,
    /// How the clients of a storm are cut off, and come back; `None` in other scenarios.
    pub storm: Option<Storm>,
    /// How many connections the clients of a host share; `None` without a limit, and where nobody's connections count.
    pub hosts: Option<HostLimit>,
}

impl Roles {
    /// Reads a plan, for loops that may hold so many descriptors each.
    ///
    /// # Errors
    /// See [`BadPlan`].
    pub fn of(plan: &Plan, descriptors_max: u64) -> Result<Self, BadPlan> {
        check_plan(plan)?;
        let mut roles = Self::of_scenario(plan)?;
        roles.warp = match (&plan.turns, roles.pace) {
            (Some(turns), _) => Some(Warp::of_turns(turns, &plan.phases)),
            (None, Some(pace)) if plan.shape == Shape::Poisson => Some(Warp::of_poisson(pace, plan)?),
            (None, _) => Warp::of(&plan.shape, &plan.scenario, &plan.phases)?,
        }
        .map(Arc::new);
        roles.hosts = host_limit(plan)?;
        // The clients of a host share connections, which belong to one loop.
        let is_shared = roles.hosts.is_some_and(|hosts| hosts.clients > 1) || plan.clients_in.is_browser();
        roles.loops = match plan.http() {
            _ if plan.clients_in.is_browser() => 1,
            Http::Http2 { clients_per_connection } => loops_of_connections(plan, clients_per_connection)?,
            Http::Http11 if is_shared => 1,
            Http::Http11 => plan.loops.min(plan.clients),
        };
        roles.check_pairs(plan)?;
        roles.check_publications(plan)?;
        // A browser's clients have their sockets there.
        if !plan.clients_in.is_browser() {
            let most = if is_shared { roles.loops } else { (MAX_LOOPS * plan.workers).min(plan.clients) };
            roles.loops = roles.loops_within(plan, descriptors_max, most)?;
        }
        Ok(roles)
    }

    fn silent() -> Self {
        Self {
            traffic: Traffic::Silent,
            payload: None,
            audience: Audience::Nobodys,
            collector: None,
            pace: None,
            upstream_ns: None,
            warp: None,
            publishers: 0,
            receivers: 0,
            in_bursts: false,
            feed: None,
            feeder: None,
            loops: 1,
            storm: None,
            hosts: None,
        }
    }

    /// Everybody receives what so many publish who are no clients.
    fn fed(clients: u32, sources: u32) -> Self {
        let audience = Audience::Everybodys { sources, receivers: Some(clients), are_sources_clients: false };
        Self { audience, receivers: u64::from(clients), ..Self::silent() }
    }

    /// Everybody receives what a back end or a feeder publishes, and may send beside it. No collector receives that:
    /// what the server did for it would be charged to the clients, and over long polling as much as they cost themselves.
    fn feed(plan: &Plan, interval_us: u64, form: Form, by: FeedBy, upstream_ms: Option<u64>) -> Result<Self, BadPlan> {
        in_range("interval_us", interval_us, 1, 86_400_000_000)?;
        let payload = Payload::of(form)?;
        if by == FeedBy::BackEnd && plan.backend_listen.is_none() {
            return Err(BadPlan::NoBackEnd);
        }
        let (feed, feeder) = match by {
            FeedBy::BackEnd => (Some(form), None),
            FeedBy::Publisher => (None, Some(Feeder { payload: payload.clone(), publishers: None })),
        };
        let fed = Self { pace: Some((interval_us * 1_000, 1)), feed, feeder, ..Self::fed(plan.clients, 1) };
        let Some(interval_ms) = upstream_ms else { return Ok(fed) };
        in_range("upstream_interval_ms", interval_ms, 1, 86_400_000)?;
        Ok(Self {
            traffic: Traffic::Upstream,
            payload: Some(payload),
            upstream_ns: Some(interval_ms * 1_000_000),
            publishers: plan.clients,
            ..fed
        })
    }

    /// Everybody is cut off, and misses what a feeder publishes.
    fn storm(plan: &Plan, missed: u32, form: Form, storm: Storm) -> Result<Self, BadPlan> {
        in_range("missed", u64::from(missed), 1, MAX_MISSED)?;
        in_range("return_over_ms", storm.return_over_ns / 1_000_000, 0, MAX_RETURN_MS)?;
        in_range("phases.load_ms of a storm", plan.phases.load_ms, u64::from(missed).div_ceil(STORM_PER_MS), u64::MAX)?;
        let feeder = Feeder { payload: Payload::of(form)?, publishers: None };
        Ok(Self {
            pace: Some((storm_period_ns(missed, &plan.phases), 1)),
            feeder: Some(feeder),
            storm: Some(storm),
            ..Self::fed(plan.clients, 1)
        })
    }

    fn of_scenario(plan: &Plan) -> Result<Self, BadPlan> {
        let clients = plan.clients;
        let silent = Self::silent();
        let form = |bytes| form_of(plan, bytes);
        let paced = |interval_ms: u64, publishers: u32, form: Form, sending| {
            in_range("interval_ms", interval_ms, 1, 86_400_000)?;
            let pace = Some((interval_ms * 1_000_000, publishers));
            let (traffic, payload) = (Traffic::Paced(sending), Some(Payload::of(form)?));
            Ok::<_, BadPlan>(Self { traffic, payload, pace, publishers, receivers: 1, ..silent.clone() })
        };
        Ok(match plan.scenario {
            Scenario::Feed { interval_us, payload_bytes, by, upstream_interval_ms } => {
                Self::feed(plan, interval_us, form(payload_bytes), by, upstream_interval_ms)?
            }
            Scenario::FanOut { publishers, payload_bytes } => {
                in_range("publishers", u64::from(publishers), 1, u64::from(MAX_PUBLISHERS))?;
                let feeder = Feeder { payload: Payload::of(form(payload_bytes))?, publishers: Some(publishers) };
                Self { feeder: Some(feeder), ..Self::fed(clients, publishers) }
            }
            Scenario::Storm { missed, payload_bytes, return_over_ms, outage } => {
                Self::storm(plan, missed, form(payload_bytes), Storm::new(outage, return_over_ms))?
            }
            Scenario::Rooms { rooms, rooms_per_client, interval_us, payload_bytes } => {
                in_range("interval_us", interval_us, 1, 86_400_000_000)?;
                let payload = Some(Payload::of(form(payload_bytes))?);
                let rooms = draw_rooms(plan, rooms, rooms_per_client)?;
                Self {
                    traffic: Traffic::Paced(Sending::Publish),
                    payload,
                    pace: Some((interval_us * 1_000 * u64::from(rooms.count()), rooms.count())),
                    // Members take turns.
                    publishers: clients,
                    audience: Audience::Rooms(rooms),
                    ..silent
                }
            }
            Scenario::Chat { interval_ms, payload_bytes, payload_bytes_max, publishers, in_bursts } => {
                let publishers = publishers.unwrap_or(clients);
                let form = chat_form(plan, form(payload_bytes), payload_bytes_max, publishers)?;
                let audience =
                    Audience::Everybodys { sources: publishers, receivers: Some(clients), are_sources_clients: true };
                let base = paced(interval_ms, publishers, form, Sending::Publish)?;
                Self { audience, receivers: u64::from(clients), in_bursts, ..base }
            }
            Scenario::Echo { interval_ms, payload_bytes, .. } => {
                Self { audience: Audience::Own, ..paced(interval_ms, clients, form(payload_bytes), Sending::Echo)? }
            }
            Scenario::Upstream { interval_ms, payload_bytes } => {
                // The collector is no client, so none of these are its own.
                let collected = Audience::Everybodys { sources: clients, receivers: None, are_sources_clients: false };
                let base = paced(interval_ms, clients, form(payload_bytes), Sending::Publish)?;
                Self { collector: Some(collected), ..base }
            }
            Scenario::Request { payload_bytes } => Self {
                traffic: Traffic::ClosedLoop,
                payload: Some(Payload::of(form(payload_bytes))?),
                audience: Audience::Own,
                publishers: clients,
                receivers: 1,
                ..silent
            },
            Scenario::Idle => silent,
        })
    }

    fn check_pairs(&self, plan: &Plan) -> Result<(), BadPlan> {
        let collected = self.collector.as_ref().map_or(0, Audience::sources);
        check_pairs(plan.clients, self.audience.sources())?;
        check_pairs(1, collected)
    }

    fn check_publications(&self, plan: &Plan) -> Result<(), BadPlan> {
        for pacing in [self.pacing(plan, 0), self.upstream(plan, 0)].into_iter().flatten() {
            let Pacing { count, per_period: publishers, .. } = pacing;
            if pacing.first_at(plan.phases.warm_up_ms.saturating_mul(1_000_000)) >= count {
                return Err(BadPlan::NothingDue { load_ms: plan.phases.load_ms });
            }
            if count > MAX_PUBLICATIONS {
                return Err(BadPlan::TooManyPublications { count, max: MAX_PUBLICATIONS });
            }
            let each = count / u64::from(publishers);
            if each > u64::from(MAX_SEQUENCE) {
                return Err(BadPlan::TooManyPublications { count: each, max: u64::from(MAX_SEQUENCE) });
            }
        }
        Ok(())
    }

    /// What is published in warm-up and load, the warm-up beginning at an instant; `None` without a schedule. The first is
    /// due within the time between two, where the repetition says.
    pub fn pacing(&self, plan: &Plan, start_ns: u64) -> Option<Pacing> {
        let (period_ns, publishers) = self.pace?;
        let order = self.rooms().map(|rooms| rooms.order());
        let steady = Pacing { order, in_bursts: self.in_bursts, ..Pacing::endless(0, period_ns, publishers) };
        Some(self.in_run(steady, plan, start_ns))
    }

    /// The same of what clients publish beside a feed.
    pub fn upstream(&self, plan: &Plan, start_ns: u64) -> Option<Pacing> {
        let steady = Pacing::endless(0, self.upstream_ns?, self.publishers);
        Some(self.in_run(steady, plan, start_ns))
    }

    /// What is due of an endless schedule in warm-up and load.
    fn in_run(&self, steady: Pacing, plan: &Plan, start_ns: u64) -> Pacing {
        let length_ns = plan.phases.warm_up_ms.saturating_add(plan.phases.load_ms).saturating_mul(1_000_000);
        // A pace that changes has no period, and begins where its shape does.
        let repetition = plan.repetition.filter(|_| self.warp.is_none());
        let spacing_ns =
            if steady.in_bursts { steady.period_ns } else { steady.period_ns / u64::from(steady.per_period) };
        let phase_ns = repetition.map_or(0, |own| own.phase_ns(Periodic::Publications, plan.seed, spacing_ns));
        // As exact as stamps are.
        let first_ns = start_ns.saturating_add(phase_ns - phase_ns % RESOLUTION_NS);
        let pacing = Pacing { start_ns: first_ns, warp: self.warp.clone(), ..steady };
        pacing.until(start_ns.saturating_add(length_ns))
    }

    /// Whether what is sent follows what has come, so that nobody knows beforehand how much it will be.
    pub fn is_closed_loop(&self) -> bool {
        self.traffic == Traffic::ClosedLoop || self.feeder.as_ref().is_some_and(|feeder| feeder.publishers.is_some())
    }

    /// Whether who receives is not always who has published, so that latencies have two clocks where these have.
    pub fn are_latencies_one_way(&self) -> bool {
        self.audience != Audience::Own || self.collector.is_some()
    }

    /// Clients of the collector or the feeder, if there is one.
    pub fn instruments(&self) -> u32 {
        u32::from(self.collector.is_some()) + self.feeder.as_ref().map_or(0, Feeder::clients)
    }

    /// Who is in which room, where there are any.
    pub fn rooms(&self) -> Option<&Arc<Rooms>> {
        match &self.audience {
            Audience::Rooms(rooms) => Some(rooms),
            _ => None,
        }
    }

    /// As many loops as are wanted, or as many more as it takes for each to have descriptors enough.
    fn loops_within(&self, plan: &Plan, limit: u64, most: u32) -> Result<u32, BadPlan> {
        let enough = (self.loops..=most).find(|&loops| self.descriptors(plan, loops) <= limit);
        enough.ok_or_else(|| BadPlan::TooFewDescriptors { loops: most, needed: self.descriptors(plan, most), limit })
    }

    /// How many loops a server needs for these clients, each of which may hold so many descriptors. The kernel spreads
    /// connections over loops as they come, so that each gets room for a tenth more than its share.
    pub fn loops_of_server(&self, plan: &Plan, limit: u64) -> u32 {
        let all = self.descriptors(plan, 1);
        let limit = limit.saturating_sub(SERVER_OWN_DESCRIPTORS).max(1);
        let loops = (all + all / 10).div_ceil(limit);
        if all <= limit { 1 } else { u32::try_from(loops).unwrap_or(u32::MAX) }
    }

    /// Connections that all clients may have at once.
    pub(crate) fn connections(&self, plan: &Plan) -> u64 {
        self.descriptors(plan, 1) - OTHER_DESCRIPTORS
    }

    /// Descriptors that each of so many loops needs.
    pub(crate) fn descriptors(&self, plan: &Plan, loops: u32) -> u64 {
        // A dialect may have to post before it is subscribed.
        let posts = !plan.publishes_in_frames() && (self.payload.is_some() || plan.speaks.is_some());
        let share = |clients: u32| u64::from(clients.div_ceil(loops));
        let sockets = share(plan.clients)
            + if posts { share(if plan.speaks.is_some() { plan.clients } else { self.publishers }) } else { 0 };
        let of_hosts = self.hosts.map(|HostLimit { connections_max, clients }| {
            share(plan.clients).div_ceil(u64::from(clients)) * u64::from(connections_max)
        });
        of_hosts.map_or(sockets, |most| most.min(sockets)) + OTHER_DESCRIPTORS
    }
}

/// What a plan's publications of a size look like.
fn form_of(plan: &Plan, bytes: u32) -> Form {
    Form { content: plan.content, has_receipt: plan.receipts, seed: plan.seed, ..Form::fixed(bytes) }
}

/// What the publications of a chat look like, if it can be.
fn chat_form(plan: &Plan, least: Form, bytes_max: Option<u32>, publishers: u32) -> Result<Form, BadPlan> {
    in_range("publishers", u64::from(publishers), 1, u64::from(plan.clients))?;
    Payload::of(least)?;
    if let Some(max) = bytes_max {
        let [max, least, most] = [max, least.bytes, MAX_PAYLOAD_BYTES].map(u64::from);
        in_range("payload_bytes_max", max, least, most)?;
    }
    Ok(Form { bytes_max, ..least })
}

/// As many loops as are wanted, or fewer, so that the clients of a connection are of one loop and the connections as
/// many as with a single one.
fn loops_of_connections(plan: &Plan, clients_each: u32) -> Result<u32, BadPlan> {
    let Plan { clients, workers, .. } = *plan;
    let connections = |loops: u32| -> u64 {
        (0..loops).map(|lane| u64::from((clients - lane).div_ceil(loops).div_ceil(clients_each))).sum()
    };
    let wanted = plan.loops.max(workers).min(clients);
    let loops = (1..=wanted).rev().find(|&loops| connections(loops) == connections(1)).unwrap_or(1);
    if loops < workers.min(clients) {
        return Err(BadPlan::SplitConnections { workers });
    }
    Ok(loops)
}

fn host_limit(plan: &Plan) -> Result<Option<HostLimit>, BadPlan> {
    if let Http::Http2 { clients_per_connection } = plan.http() {
        return Ok(Some(HostLimit { connections_max: 1, clients: clients_per_connection }));
    }
    // Connections that end with their answers are given and taken as those of a host are, of which there is no limit.
    let of_one_request = (!plan.sockets.keep_alive).then_some(u32::MAX);
    let connections_max = plan.sockets.connections_per_host_max.or(of_one_request);
    let Some(connections_max) = connections_max else { return Ok(None) };
    let (clients, most) = (plan.sockets.clients_per_host, u64::from(u32::MAX));
    in_range("sockets.connections_per_host_max", u64::from(connections_max), 1, most)?;
    in_range("sockets.clients_per_host", u64::from(clients), 1, most)?;
    // WebSockets do not count.
    Ok((!plan.transport.is_bidirectional()).then_some(HostLimit { connections_max, clients }))
}

fn draw_rooms(plan: &Plan, rooms: u32, per_client: u32) -> Result<Arc<Rooms>, BadPlan> {
    in_range("rooms", u64::from(rooms), 1, u64::from(MAX_ROOMS))?;
    in_range("rooms_per_client", u64::from(per_client), 1, u64::from(rooms.min(MAX_ROOMS_PER_CLIENT)))?;
    // Before they are drawn: what is checked is also what is held.
    check_pairs(plan.clients, per_client)?;
    check_channel(format!("{}.{}", plan.channel, rooms - 1))?;
    Ok(Arc::new(Rooms::draw(plan.clients, rooms, per_client, plan.seed)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phase::Repetition;
    use crate::plan::fixtures::plan;
    use crate::plan::{ClientKind, ClientsIn, HttpVersion, Sockets, Sources, Speaks, Target, TlsTarget, Trust};
    use crate::plan_checks::MAX_PAGES;
    use crate::scenario::Shape;
    use crate::shape::BadShape;
    use pushlab_dialects::Dialect;
    use pushlab_wire::transport::Transport;

    #[test]
    fn over_the_repeats_a_feed_begins_in_every_part_of_its_period() {
        const REPEATS: u32 = 8;
        let feed = Scenario::Feed {
            interval_us: 8_000,
            payload_bytes: 100,
            by: FeedBy::Publisher,
            upstream_interval_ms: None,
        };
        let start_ns = |number: Option<u32>, shape| {
            let repetition = number.map(|number| Repetition { number, of: REPEATS, seed: 5 });
            let seed = u64::from(number.unwrap_or(0));
            let plan = Plan { shape, repetition, seed, ..plan(9, feed.clone()) };
            let pacing = roles_of(&plan).unwrap().pacing(&plan, 7_000_000_000).unwrap();
            assert!(pacing.due_ns(pacing.count - 1) < 7_000_000_000 + 30_001_000_000);
            pacing.start_ns - 7_000_000_000
        };
        let phases: Vec<u64> = (1..=REPEATS).map(|number| start_ns(Some(number), Shape::Steady)).collect();
        assert!(phases.iter().all(|phase_ns| phase_ns % RESOLUTION_NS == 0), "{phases:?}");
        let mut parts: Vec<u64> = phases.iter().map(|phase_ns| phase_ns / 1_000_000).collect();
        parts.sort_unstable();
        assert_eq!(parts, (0..u64::from(REPEATS)).collect::<Vec<_>>());
        assert_eq!(start_ns(None, Shape::Steady), 0, "a plan of before");
        let step = Shape::Step { factors: vec![1.0, 2.0] };
        assert_eq!(start_ns(Some(3), step), 0, "what changes its pace begins with its shape");
    }

    fn roles_of(plan: &Plan) -> Result<Roles, BadPlan> {
        Roles::of(plan, 20_000)
    }

    #[test]
    fn beside_a_feed_each_client_publishes_at_its_own_interval() {
        let feed = |upstream_interval_ms| Scenario::Feed {
            interval_us: 500_000,
            payload_bytes: 100,
            by: FeedBy::Publisher,
            upstream_interval_ms,
        };
        let with = |upstream_ms| plan(10, feed(upstream_ms));
        let silent = roles_of(&with(None)).unwrap();
        assert_eq!((silent.traffic, silent.upstream(&with(None), 0)), (Traffic::Silent, None));
        let plan = with(Some(2_000));
        let roles = roles_of(&plan).unwrap();
        assert_eq!((roles.traffic, roles.publishers, roles.collector.is_some()), (Traffic::Upstream, 10, false));
        assert_eq!(roles.pacing(&plan, 0), silent.pacing(&plan, 0), "the feed is the same");
        let upstream = roles.upstream(&plan, 0).unwrap();
        let length_ms = plan.phases.warm_up_ms + plan.phases.load_ms;
        assert_eq!((upstream.per_period, upstream.count), (10, length_ms.div_ceil(200)));
        for refused in [Some(0), Some(86_400_001)] {
            let why = roles_of(&with(refused)).unwrap_err().to_string();
            assert!(why.contains("upstream_interval_ms"), "{why}");
        }
    }

    #[test]
    fn refusals_name_the_limit() {
        let chat = |clients| {
            roles_of(&plan(
                clients,
                Scenario::Chat {
                    interval_ms: 3000,
                    payload_bytes: 71,
                    payload_bytes_max: None,
                    publishers: None,
                    in_bursts: false,
                },
            ))
        };
        assert!(chat(4096).is_ok());
        let refused = chat(4097).unwrap_err().to_string();
        assert!(refused.contains("16785409 pairs") && refused.contains("max_tracked_pairs"), "{refused}");
        let feed =
            Scenario::Feed { interval_us: 5000, payload_bytes: 173, by: FeedBy::BackEnd, upstream_interval_ms: None };
        assert!(matches!(roles_of(&plan(10, feed)), Err(BadPlan::NoBackEnd)));
        let echo = |bytes| Scenario::Echo { interval_ms: 1, payload_bytes: bytes, streamed: false };
        assert!(matches!(roles_of(&plan(10, echo(21))), Err(BadPlan::Payload(_))));
        assert!(matches!(roles_of(&plan(10_000, echo(22))), Err(BadPlan::TooManyPublications { .. })));
        assert!(matches!(roles_of(&plan(0, Scenario::Idle)), Err(BadPlan::OutOfRange { name: "clients", .. })));
        let long = Plan { channel: "x".repeat(126), ..plan(1, Scenario::Idle) };
        assert!(matches!(roles_of(&long), Err(BadPlan::Channel { .. })));
        let nothing = |interval_ms, load_ms| {
            let echo = plan(1, Scenario::Echo { interval_ms, payload_bytes: 22, streamed: false });
            roles_of(&Plan { phases: crate::plan::Phases { load_ms, ..echo.phases.clone() }, ..echo }).map(drop)
        };
        assert!(matches!(nothing(60_000, 800), Err(BadPlan::NothingDue { load_ms: 800 })));
        assert!(matches!((nothing(20, 1), nothing(20, 20)), (Err(BadPlan::NothingDue { .. }), Ok(()))));
    }

    #[test]
    fn a_feeder_is_no_client() {
        let fan_out = |publishers| Scenario::FanOut { publishers, payload_bytes: 22 };
        let feed =
            Scenario::Feed { interval_us: 5000, payload_bytes: 22, by: FeedBy::Publisher, upstream_interval_ms: None };
        for (scenario, traffic) in
            [(feed, Traffic::Paced(Sending::Publish)), (fan_out(MAX_PUBLISHERS), Traffic::Broadcasts)]
        {
            let plan = plan(10, scenario);
            let roles = roles_of(&plan).unwrap();
            assert_eq!(roles.feeder.as_ref().map(Feeder::traffic), Some(traffic));
            assert_eq!(
                (roles.traffic, roles.publishers, roles.receivers, roles.feed.map(|form| form.bytes)),
                (Traffic::Silent, 0, 10, None)
            );
            assert_eq!(roles.is_closed_loop(), roles.pacing(&plan, 0).is_none());
            let long = Plan { channel: "x".repeat(122), ..plan };
            assert!(matches!(roles_of(&long), Err(BadPlan::Channel { .. })), "the feeder's is too long");
        }
        for publishers in [0, MAX_PUBLISHERS + 1] {
            let refused = roles_of(&plan(10, fan_out(publishers))).unwrap_err().to_string();
            assert_eq!(refused, format!("publishers is {publishers}: it must be 1 to 1024"));
        }
        let shaped = Plan { shape: Shape::Ramp { from: 0.0, to: 1.0 }, ..plan(10, fan_out(8)) };
        assert!(matches!(roles_of(&shaped), Err(BadPlan::Shape(BadShape::FanOut))));
    }

    #[test]
    fn clients_that_share_connections_are_of_one_loop() {
        let roles = |transport, connections_per_host_max, clients_per_host| {
            let sockets = Sockets { connections_per_host_max, clients_per_host, ..Sockets::default() };
            roles_of(&Plan { transport, sockets, ..plan(100, Scenario::Idle) })
        };
        let hosts = |clients| Some(HostLimit { connections_max: 6, clients });
        let shared = roles(Transport::Polling, Some(6), 10).unwrap();
        assert_eq!((shared.loops, shared.hosts), (1, hosts(10)));
        let apart = roles(Transport::Sse, Some(6), 1).unwrap();
        assert_eq!((apart.loops, apart.hosts), (8, hosts(1)));
        for unlimited in [roles(Transport::WebSocket, Some(6), 10), roles(Transport::Sse, None, 10)] {
            let unlimited = unlimited.unwrap();
            assert_eq!((unlimited.loops, unlimited.hosts), (8, None));
        }
        let sockets = Sockets { keep_alive: false, ..Sockets::default() };
        let closing = Plan { transport: Transport::Polling, sockets, ..plan(100, Scenario::Idle) };
        let of_one_request = roles_of(&closing).unwrap();
        let unlimited = HostLimit { connections_max: u32::MAX, clients: 1 };
        assert_eq!((of_one_request.loops, of_one_request.hosts), (8, Some(unlimited)));
        assert_eq!(of_one_request.descriptors(&closing, 1), 100 + OTHER_DESCRIPTORS);
        assert_eq!(roles_of(&Plan { transport: Transport::WebSocket, ..closing }).unwrap().hosts, None);
        let refused = roles(Transport::WebSocket, Some(0), 10).unwrap_err().to_string();
        assert!(refused.starts_with("sockets.connections_per_host_max is 0"), "{refused}");
        let refused = roles(Transport::WebSocket, Some(6), 0).unwrap_err().to_string();
        assert!(refused.starts_with("sockets.clients_per_host is 0"), "{refused}");
        let plan = plan(100, Scenario::Idle);
        assert_eq!(shared.descriptors(&plan, 1), 60 + OTHER_DESCRIPTORS, "ten hosts");
    }

    #[test]
    fn clients_that_share_a_connection_of_http2_are_of_one_loop() {
        let of = |clients, loops, workers, clients_per_host| {
            let sockets = Sockets { http_version: HttpVersion::Http2, clients_per_host, ..Sockets::default() };
            let target = Plan { loops, workers, sockets, ..plan(clients, Scenario::Idle) };
            roles_of(&target)
                .map(|roles| (roles.loops, roles.hosts.map(|hosts| (hosts.connections_max, hosts.clients))))
        };
        assert_eq!(of(100, 8, 1, 1).unwrap(), (8, Some((1, 1))));
        assert_eq!(of(100, 8, 1, 100).unwrap(), (1, Some((1, 100))));
        // Two loops would make 18 connections of a hundred clients, where one makes 17.
        assert_eq!([96, 100, 12, 13].map(|clients| of(clients, 8, 1, 6).unwrap().0), [8, 1, 2, 3]);
        assert_eq!(of(96, 1, 4, 6).unwrap().0, 4);
        let refused = of(100, 1, 2, 100).unwrap_err().to_string();
        assert!(refused.contains("split clients that share an HTTP/2 connection"), "{refused}");
        let speaks = Speaks { dialect: Dialect::Bare, path: "/".to_owned(), how: String::new(), recording: None };
        let sockets = Sockets { http_version: HttpVersion::Http2, ..Sockets::default() };
        let foreign = Plan { speaks: Some(speaks), sockets, ..plan(1, Scenario::Idle) };
        assert!(roles_of(&foreign).unwrap_err().to_string().contains("over HTTP/1.1 only"));
    }

    #[test]
    fn publishers_and_sizes_are_within_their_limits() {
        let chat = |payload_bytes, payload_bytes_max, publishers| {
            let scenario =
                Scenario::Chat { interval_ms: 3000, payload_bytes, payload_bytes_max, publishers, in_bursts: false };
            Plan { receipts: true, ..plan(10, scenario) }
        };
        let roles = roles_of(&chat(33, Some(33), Some(3))).unwrap();
        assert_eq!((roles.publishers, roles.receivers, roles.audience.sources()), (3, 10, 3));
        assert_eq!(roles_of(&chat(33, None, None)).unwrap().publishers, 10);
        let refusal = |plan: &Plan| roles_of(plan).unwrap_err().to_string();
        assert_eq!(refusal(&chat(40, None, Some(0))), "publishers is 0: it must be 1 to 10");
        assert_eq!(refusal(&chat(40, None, Some(11))), "publishers is 11: it must be 1 to 10");
        assert_eq!(refusal(&chat(40, Some(39), None)), "payload_bytes_max is 39: it must be 40 to 1048576");
        let short =
            "payload_bytes is 32: it must be 33 (a stamp and the place for a receipt mark, in quotes) to 1048576";
        assert_eq!(refusal(&chat(32, Some(200), None)), short);
        let echo = Plan {
            receipts: true,
            ..plan(1, Scenario::Echo { interval_ms: 1000, payload_bytes: 32, streamed: false })
        };
        assert_eq!(refusal(&echo), short);
        let rooms = Scenario::Rooms { rooms: 2, rooms_per_client: 1, interval_us: 1_000, payload_bytes: 32 };
        assert_eq!(refusal(&Plan { receipts: true, ..plan(4, rooms) }), short);
        let listing = Plan { user_list: true, transport: Transport::WebSocketPolling, ..plan(1, Scenario::Idle) };
        assert!(matches!(roles_of(&listing), Err(BadPlan::UserList)));
        let rooms = Scenario::Rooms { rooms: 2, rooms_per_client: 1, interval_us: 1_000, payload_bytes: 40 };
        let newest = Plan { poll_newest_count: Some(1), transport: Transport::Polling, ..plan(4, rooms) };
        assert!(matches!(roles_of(&newest), Err(BadPlan::NewestInRooms)));
        assert!(roles_of(&Plan { transport: Transport::Sse, ..newest.clone() }).is_ok());
        let many = Plan { poll_newest_count: Some(101), ..newest };
        assert_eq!(refusal(&many), "polling.newest is 101: it must be 1 to 100");
    }

    #[test]
    fn only_publishers_need_a_second_descriptor() {
        let scenario = Scenario::Chat {
            interval_ms: 3000,
            payload_bytes: 71,
            payload_bytes_max: None,
            publishers: Some(8),
            in_bursts: false,
        };
        let plan = plan(1000, scenario);
        let roles = Roles::of_scenario(&plan).unwrap();
        assert_eq!(roles.descriptors(&plan, 8), 125 + 1 + OTHER_DESCRIPTORS);
    }

    #[test]
    fn limits_count_what_the_shape_makes() {
        let echo = Scenario::Echo { interval_ms: 1, payload_bytes: 22, streamed: false };
        let shaped = |factor| Plan { shape: Shape::Step { factors: vec![factor] }, ..plan(1_000, echo.clone()) };
        // 30 million at the factor 1, 67 at most.
        assert!(roles_of(&shaped(2.2)).is_ok());
        assert!(matches!(roles_of(&shaped(2.3)), Err(BadPlan::TooManyPublications { .. })));
        assert!(matches!(roles_of(&shaped(-1.0)), Err(BadPlan::Shape(BadShape::Factor { .. }))));
        let random = |scenario| roles_of(&Plan { shape: Shape::Poisson, ..plan(1_000, scenario) });
        assert!(matches!(random(echo.clone()), Err(BadPlan::Shape(BadShape::Instants { .. }))));
        assert!(matches!(random(Scenario::Request { payload_bytes: 22 }), Err(BadPlan::Shape(BadShape::Answers))));
        assert!(matches!(random(Scenario::Idle), Err(BadPlan::Shape(BadShape::Idle))));
    }

    #[test]
    fn rooms_have_limits() {
        let rooms = |clients, rooms, rooms_per_client| {
            let scenario = Scenario::Rooms { rooms, rooms_per_client, interval_us: 1_000, payload_bytes: 50 };
            roles_of(&Plan { transport: Transport::WebSocket, loops: 64, ..plan(clients, scenario) })
        };
        let roles = rooms(20_000, 100_000, 10).unwrap();
        assert_eq!((roles.audience.sources(), roles.publishers), (10, 20_000), "everybody has a turn");
        assert!(roles.rooms().unwrap().count() > 80_000);
        assert!(matches!(rooms(9, 100_001, 1), Err(BadPlan::OutOfRange { name: "rooms", most: 100_000, .. })));
        assert!(matches!(rooms(9, 100, 65), Err(BadPlan::OutOfRange { name: "rooms_per_client", most: 64, .. })));
        assert!(matches!(rooms(9, 7, 8), Err(BadPlan::OutOfRange { name: "rooms_per_client", most: 7, .. })));
        assert!(matches!(rooms((1 << 18) + 1, 64, 64), Err(BadPlan::TooManyPairs { sources: 64, .. })));
        let long = |rooms| {
            let scenario = Scenario::Rooms { rooms, rooms_per_client: 1, interval_us: 1_000, payload_bytes: 50 };
            roles_of(&Plan { channel: "x".repeat(123), ..plan(5, scenario) })
        };
        assert!(long(10_000).is_ok());
        assert!(matches!(long(10_001), Err(BadPlan::Channel { .. })), "a name of 129 bytes");
        let listing = Plan { channel: "x".repeat(123), user_list: true, ..plan(5, Scenario::Idle) };
        assert!(matches!(roles_of(&listing), Err(BadPlan::Channel { .. })), "the list of users' is as long");
    }

    #[test]
    fn a_browser_has_its_limits() {
        let within = |pages| Plan {
            clients_in: ClientsIn::of(ClientKind::Chromium, pages),
            ..plan(300, Scenario::Echo { interval_ms: 100, payload_bytes: 50, streamed: false })
        };
        let roles = roles_of(&within(MAX_PAGES)).unwrap();
        assert_eq!(roles.loops, 1);
        let refusal = |plan: Plan| roles_of(&plan).unwrap_err().to_string();
        for pages in [0, MAX_PAGES + 1] {
            assert_eq!(refusal(within(pages)), format!("clients_in.pages is {pages}: it must be 1 to 200"));
        }
        assert_eq!(refusal(Plan { clients: 3, ..within(4) }), "clients_in.pages is 4: it must be 1 to 3");
        let sockets = Sockets { nagle: true, ..Sockets::default() };
        assert!(refusal(Plan { sockets, ..within(1) }).contains("of sockets, only"));
        let bare = || Some(Speaks { dialect: Dialect::Bare, path: String::new(), how: String::new(), recording: None });
        let foreign = |page_scripts| Plan { speaks: bare(), page_scripts, ..within(1) };
        assert!(refusal(foreign(None)).contains("has no client for pages"));
        assert_eq!(roles_of(&foreign(Some(Vec::new()))).unwrap().loops, 1);
        let scenario = Scenario::Request { payload_bytes: 50 };
        assert!(refusal(Plan { scenario, ..within(1) }).contains("a closed loop"));
        let trusting = |trust| {
            let target = Target { tls: Some(TlsTarget { server_name: "a".into(), trust }), ..within(1).target };
            let sockets = Sockets { tls: true, http_version: HttpVersion::Http2, ..Sockets::default() };
            Plan { target, sockets, ..within(1) }
        };
        assert!(refusal(trusting(Trust::System)).contains("that the lab starts"));
        assert_eq!(roles_of(&trusting(Trust::Certificate("own.pem".into()))).unwrap().loops, 1);
        let sockets = trusting(Trust::System).sockets;
        assert!(refusal(Plan { sockets, ..within(1) }).contains("set sockets.tls"));
        let sockets = Sockets { ack_delay_ms: Some(200), ..Sockets::default() };
        assert_eq!(roles_of(&Plan { sockets, ..within(1) }).unwrap().loops, 1, "the link delays acknowledgements");
    }

    #[test]
    fn pages_grow_with_clients_where_it_is_said_how_many_share_one() {
        let each = |clients_per_page| ClientsIn { clients_per_page, ..ClientsIn::of(ClientKind::Firefox, 4) };
        let pages = |clients_per_page, clients| each(clients_per_page).for_clients(clients).pages;
        assert_eq!([pages(Some(2), 60), pages(Some(2), 5), pages(Some(7), 3), pages(None, 60)], [30, 3, 1, 4]);
    }

    #[test]
    fn preferences_are_firefoxs_and_what_it_takes() {
        type Set = fn(&mut ClientsIn);
        let with = |kind, set: Set| {
            let mut clients_in = ClientsIn::of(kind, 2);
            set(&mut clients_in);
            roles_of(&Plan { clients_in, ..plan(4, Scenario::Idle) }).map(drop).map_err(|error| error.to_string())
        };
        let sets: [(Set, Set); 4] = [
            (|c| c.connections_per_host_max = Some(255), |c| c.connections_per_host_max = Some(256)),
            (|c| c.connections_max = Some(65_535), |c| c.connections_max = Some(0)),
            (|c| c.websockets_max = Some(1), |c| c.websockets_max = Some(65_536)),
            (|c| c.hidden_timer_min_ms = Some(4), |c| c.hidden_timer_min_ms = Some(60_001)),
        ];
        for (good, bad) in sets {
            assert_eq!(with(ClientKind::Firefox, good), Ok(()));
            assert!(with(ClientKind::Firefox, bad).unwrap_err().contains("it must be 1 to "));
            for kind in [ClientKind::Chromium, ClientKind::Native] {
                let error = with(kind, good).unwrap_err();
                assert!(error.contains("is Firefox's preference ") && error.contains("kind = \"firefox\""), "{error}");
            }
        }
    }

    #[test]
    fn a_target_and_its_sources_can_be_used_as_they_are() {
        let base = plan(40_001, Scenario::Idle);
        let refusal = |plan: Plan| roles_of(&plan).unwrap_err().to_string();
        let named = |authority: &str, path: &str| {
            let (authority, path) = (authority.to_owned(), path.to_owned());
            Plan { target: Target { authority, path, ..base.target.clone() }, ..base.clone() }
        };
        for (authority, path) in [("example.org", ""), ("[::1]:80", "/a/b")] {
            assert!(roles_of(&named(authority, path)).is_ok(), "{authority} {path}");
        }
        for bad in ["", "a/b", "ada@a", "a\r\nX: y", "a b"] {
            assert!(refusal(named(bad, "")).contains("it must be HOST or HOST:PORT"), "{bad:?}");
        }
        for bad in ["/", "a", "/a/", "/a?b", "/a b"] {
            assert!(refusal(named("a", bad)).contains("begin with a slash and not end with one"), "{bad:?}");
        }
        let from = |first: [u8; 4], clients_each| Plan {
            sources: Sources::From { first: first.into(), clients_each },
            ..base.clone()
        };
        assert!(roles_of(&from([255, 255, 255, 253], 20_000)).is_ok());
        assert!(refusal(from([255, 255, 255, 254], 20_000)).contains("too few for 40001 clients"));
        assert!(refusal(from([10, 0, 0, 1], 0)).starts_with("sources.clients_each is 0"));
    }

    #[test]
    fn posting_clients_need_two_descriptors() {
        let rooms = Scenario::Rooms { rooms: 9, rooms_per_client: 2, interval_us: 1_000, payload_bytes: 22 };
        for scenario in [Scenario::Request { payload_bytes: 22 }, rooms] {
            let plan = plan(1000, scenario);
            let roles = Roles::of_scenario(&plan).unwrap();
            assert_eq!(roles.descriptors(&plan, 1), 2000 + OTHER_DESCRIPTORS);
        }
    }

    #[test]
    fn there_are_as_many_loops_as_their_descriptors_take() {
        let clients = |clients, loops, limit| {
            let plan = Plan { loops, ..plan(clients, Scenario::Idle) };
            Roles::of(&plan, limit).map(|roles| roles.loops)
        };
        assert_eq!(clients(60_000, 1, 20_000).unwrap(), 4, "descriptors besides the sockets count");
        assert_eq!(clients(60_000, 6, 20_000).unwrap(), 6, "as many as are asked for, if those suffice");
        assert_eq!(clients(59_952, 1, 20_000).unwrap(), 3);
        for (clients, loops) in [(19_884, 1), (19_885, 2), (20_000, 2), (60_000, 4), (200_000, 12)] {
            let plan = plan(clients, Scenario::Idle);
            let roles = Roles::of_scenario(&plan).unwrap();
            assert_eq!(roles.loops_of_server(&plan, 20_000), loops, "{clients}");
        }
        let refused = clients(64 * 100 + 1, 1, 100 + OTHER_DESCRIPTORS).unwrap_err();
        assert!(matches!(refused, BadPlan::TooFewDescriptors { loops: 64, needed: 117, limit: 116 }), "{refused}");
        let sockets = Sockets { connections_per_host_max: Some(6), clients_per_host: 2, ..Sockets::default() };
        let shared = Plan { sockets, transport: Transport::Polling, ..plan(100, Scenario::Idle) };
        assert!(matches!(Roles::of(&shared, 99), Err(BadPlan::TooFewDescriptors { loops: 1, .. })));
    }
}
