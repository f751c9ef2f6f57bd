//! What a plan's scenario means for each part of the load, with every limit checked.

use crate::check::PAIR_BYTES;
use crate::clients::Traffic;
use crate::pacing::Pacing;
use crate::payload::{BadPayloadSize, Payload};
use crate::plan::{Plan, Scenario};
use crate::record::Audience;
use crate::rooms::{MAX_ROOMS, MAX_ROOMS_PER_CLIENT, Rooms};
use crate::shape::{BadShape, Warp};
use crate::socket::max_descriptors;
use crate::transport::{Requests, Sending};
use pushlab_wire::channel::{BadChannel, Channel};
use pushlab_wire::stamp::{MAX_SEQUENCE, MAX_SOURCE};
use std::sync::Arc;

/// Most pairs of a receiver and a source that are checked in one worker: 256 MiB, if all of them meet.
pub const MAX_TRACKED_PAIRS: u64 = 1 << 24;
/// Most publications in the load phase of one run: 256 MiB of subscriber counts.
pub const MAX_PUBLICATIONS: u64 = 1 << 26;
/// Most event loops in one worker.
pub const MAX_LOOPS: u32 = 64;
/// Descriptors that a loop needs besides its sockets: standard streams, epoll, timer, and some to spare.
const OTHER_DESCRIPTORS: u64 = 16;

/// A plan that cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum BadPlan {
    /// A number that must be larger.
    #[error("{name} is {value}: it must be {least} to {most}")]
    OutOfRange {
        /// The plan's field.
        name: &'static str,
        /// What it was.
        value: u64,
        /// The least it may be.
        least: u64,
        /// The most it may be.
        most: u64,
    },
    /// Too much to check.
    #[error(
        "{receivers} receivers of {sources} publishers or rooms each make {pairs} pairs to check, more than max_tracked_pairs \
         ({MAX_TRACKED_PAIRS}, {} MiB): use fewer clients",
        (MAX_TRACKED_PAIRS * PAIR_BYTES) >> 20
    )]
    TooManyPairs {
        /// Receivers.
        receivers: u32,
        /// Publishers, or rooms of a client.
        sources: u32,
        /// Their product.
        pairs: u64,
    },
    /// Too much to count.
    #[error("{count} publications, more than max_publications ({max}): use a longer interval or a shorter load")]
    TooManyPublications {
        /// Publications.
        count: u64,
        /// The limit.
        max: u64,
    },
    /// The kernel's limit on descriptors.
    #[error("a loop needs {needed} descriptors and may hold {limit}: use more loops, or raise ulimit -n")]
    TooFewDescriptors {
        /// What one loop needs.
        needed: u64,
        /// The limit of its table.
        limit: u64,
    },
    /// A feed without a place for its back end.
    #[error("scenario feed without backend_listen: say where the subject finds its back end")]
    NoBackEnd,
    /// See there.
    #[error(transparent)]
    Shape(#[from] BadShape),
    /// See there.
    #[error("channel {name:?}: {source}")]
    Channel {
        /// The name.
        name: String,
        /// What is wrong with it.
        source: BadChannel,
    },
    /// See there.
    #[error(transparent)]
    Payload(#[from] BadPayloadSize),
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
    /// How that changes; `None` if it does not.
    pub warp: Option<Arc<Warp>>,
    /// Deliveries of each publication; 0 in rooms, where each has its own number.
    pub receivers: u64,
    /// Size of the back end's publications; `None` where there is no back end.
    pub feed_bytes: Option<u32>,
    /// Event loops for the clients.
    pub loops: u32,
}

impl Roles {
    /// Reads a plan.
    ///
    /// # Errors
    /// See [`BadPlan`].
    pub fn of(plan: &Plan) -> Result<Self, BadPlan> {
        in_range("clients", u64::from(plan.clients), 1, u64::from(MAX_SOURCE))?;
        in_range("loops", u64::from(plan.loops), 1, u64::from(MAX_LOOPS))?;
        in_range("connect_rate", u64::from(plan.connect_rate), 1, u64::from(u32::MAX))?;
        if plan.transport.is_interval_driven() {
            in_range("poll_interval_ms", plan.poll_interval_ms, 1, 3_600_000)?;
        }
        if let Some(prober) = &plan.prober {
            in_range("the prober's interval_ms", prober.interval_ms, 1, 3_600_000)?;
        }
        for name in [&plan.channel, &upstream_channel(plan), &prober_channel(plan)] {
            Channel::parse(name).map_err(|source| BadPlan::Channel { name: name.clone(), source })?;
        }
        let mut roles = Self::of_scenario(plan)?;
        roles.warp = Warp::of(&plan.shape, &plan.scenario, &plan.phases)?.map(Arc::new);
        roles.loops = plan.loops.min(plan.clients);
        roles.check_pairs(plan)?;
        roles.check_publications(plan)?;
        roles.check_descriptors(plan, max_descriptors())?;
        Ok(roles)
    }

    fn of_scenario(plan: &Plan) -> Result<Self, BadPlan> {
        let clients = plan.clients;
        let silent = Self {
            traffic: Traffic::Silent,
            payload: None,
            audience: Audience::Nobodys,
            collector: None,
            pace: None,
            warp: None,
            receivers: 0,
            feed_bytes: None,
            loops: 1,
        };
        let all = |sources| Audience::Everybodys { sources, receivers: Some(clients) };
        let paced = |interval_ms: u64, bytes: u32, sending| {
            in_range("interval_ms", interval_ms, 1, 86_400_000)?;
            let pace = Some((interval_ms * 1_000_000, clients));
            let (traffic, payload) = (Traffic::Paced(sending), Some(Payload::new(bytes)?));
            Ok::<_, BadPlan>(Self { traffic, payload, pace, receivers: 1, ..silent.clone() })
        };
        Ok(match plan.scenario {
            Scenario::Feed { interval_us, payload_bytes } => {
                in_range("interval_us", interval_us, 1, 86_400_000_000)?;
                Payload::new(payload_bytes)?;
                if plan.backend_listen.is_none() {
                    return Err(BadPlan::NoBackEnd);
                }
                let (pace, receivers) = (Some((interval_us * 1_000, 1)), u64::from(clients));
                Self { audience: all(1), pace, receivers, feed_bytes: Some(payload_bytes), ..silent }
            }
            Scenario::Rooms { rooms, rooms_per_client, interval_us, payload_bytes } => {
                in_range("interval_us", interval_us, 1, 86_400_000_000)?;
                let rooms = draw_rooms(plan, rooms, rooms_per_client)?;
                Self {
                    traffic: Traffic::Paced(Sending::Publish),
                    payload: Some(Payload::new(payload_bytes)?),
                    pace: Some((interval_us * 1_000 * u64::from(rooms.count()), rooms.count())),
                    audience: Audience::Rooms(rooms),
                    ..silent
                }
            }
            Scenario::Chat { interval_ms, payload_bytes, .. } => {
                let base = paced(interval_ms, payload_bytes, Sending::Publish)?;
                Self { audience: all(clients), receivers: u64::from(clients), ..base }
            }
            Scenario::Echo { interval_ms, payload_bytes } => {
                Self { audience: Audience::Own, ..paced(interval_ms, payload_bytes, Sending::Echo)? }
            }
            Scenario::Upstream { interval_ms, payload_bytes } => {
                let collector = Some(Audience::Everybodys { sources: clients, receivers: None });
                Self { collector, ..paced(interval_ms, payload_bytes, Sending::Publish)? }
            }
            Scenario::Request { payload_bytes } => Self {
                traffic: Traffic::ClosedLoop,
                payload: Some(Payload::new(payload_bytes)?),
                audience: Audience::Own,
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
        let Some(Pacing { count, per_period: publishers, .. }) = self.pacing(plan, 0) else { return Ok(()) };
        if count > MAX_PUBLICATIONS {
            return Err(BadPlan::TooManyPublications { count, max: MAX_PUBLICATIONS });
        }
        let each = count / u64::from(publishers);
        if each > u64::from(MAX_SEQUENCE) {
            return Err(BadPlan::TooManyPublications { count: each, max: u64::from(MAX_SEQUENCE) });
        }
        Ok(())
    }

    /// What is published in warm-up and load, the warm-up beginning at an instant; `None` without a schedule.
    pub fn pacing(&self, plan: &Plan, start_ns: u64) -> Option<Pacing> {
        let (period_ns, publishers) = self.pace?;
        let length_ns = plan.phases.warm_up_ms.saturating_add(plan.phases.load_ms).saturating_mul(1_000_000);
        let order = self.rooms().map(|rooms| rooms.order());
        let pacing = Pacing { order, warp: self.warp.clone(), ..Pacing::endless(start_ns, period_ns, publishers) };
        Some(pacing.until(start_ns.saturating_add(length_ns)))
    }

    /// Who is in which room, where there are any.
    pub fn rooms(&self) -> Option<&Arc<Rooms>> {
        match &self.audience {
            Audience::Rooms(rooms) => Some(rooms),
            _ => None,
        }
    }

    fn check_descriptors(&self, plan: &Plan, limit: u64) -> Result<(), BadPlan> {
        let posts = self.payload.is_some() && !plan.transport.is_bidirectional();
        let each = if posts { 2 } else { 1 };
        let needed = u64::from(plan.clients.div_ceil(self.loops)) * each + OTHER_DESCRIPTORS;
        if needed > limit { Err(BadPlan::TooFewDescriptors { needed, limit }) } else { Ok(()) }
    }

    /// What clients ask.
    pub fn requests(&self, plan: &Plan) -> Requests {
        let publish_to = if self.collector.is_some() { upstream_channel(plan) } else { plan.channel.clone() };
        let requests = Requests::new(plan.target, &plan.channel, &publish_to, plan.poll_wait_s);
        match self.rooms() {
            Some(rooms) => requests.in_rooms(Arc::clone(rooms)),
            None => requests,
        }
    }
}

fn draw_rooms(plan: &Plan, rooms: u32, per_client: u32) -> Result<Arc<Rooms>, BadPlan> {
    in_range("rooms", u64::from(rooms), 1, u64::from(MAX_ROOMS))?;
    in_range("rooms_per_client", u64::from(per_client), 1, u64::from(rooms.min(MAX_ROOMS_PER_CLIENT)))?;
    // Before they are drawn: what is checked is also what is held.
    check_pairs(plan.clients, per_client)?;
    let name = format!("{}.{}", plan.channel, rooms - 1);
    Channel::parse(&name).map_err(|source| BadPlan::Channel { name, source })?;
    Ok(Arc::new(Rooms::draw(plan.clients, rooms, per_client, plan.seed)))
}

fn check_pairs(receivers: u32, sources: u32) -> Result<(), BadPlan> {
    let pairs = u64::from(receivers) * u64::from(sources);
    if pairs > MAX_TRACKED_PAIRS { Err(BadPlan::TooManyPairs { receivers, sources, pairs }) } else { Ok(()) }
}

/// The channel that clients publish to and only the collector receives.
pub fn upstream_channel(plan: &Plan) -> String {
    format!("{}.up", plan.channel)
}

/// A channel that nobody publishes to: a WebSocket needs one, even if it only sends echoes.
pub fn prober_channel(plan: &Plan) -> String {
    format!("{}.ping", plan.channel)
}

fn in_range(name: &'static str, value: u64, least: u64, most: u64) -> Result<(), BadPlan> {
    if (least..=most).contains(&value) { Ok(()) } else { Err(BadPlan::OutOfRange { name, value, least, most }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Phases, RequestHeaders, Shape};
    use pushlab_wire::transport::Transport;

    fn plan(clients: u32, scenario: Scenario) -> Plan {
        Plan {
            target: "127.0.0.1:1".parse().unwrap(),
            transport: Transport::Sse,
            clients,
            channel: "a".into(),
            scenario,
            poll_interval_ms: 500,
            poll_wait_s: 25,
            backend_listen: None,
            shape: Shape::Steady,
            headers: RequestHeaders::Minimal,
            user_list: false,
            receipts: false,
            prober: None,
            phases: Phases { connect_ms: 1, warm_up_ms: 1, idle_ms: 1, load_ms: 30_000, drain_ms: 1, after_ms: 1 },
            connect_rate: 100,
            loops: 8,
            seed: 1,
            handicap_us: 0,
        }
    }

    #[test]
    fn refusals_name_the_limit() {
        let chat = |clients| {
            Roles::of(&plan(
                clients,
                Scenario::Chat { interval_ms: 3000, payload_bytes: 71, payload_bytes_max: None, publishers: None },
            ))
        };
        assert!(chat(4096).is_ok());
        let refused = chat(4097).unwrap_err().to_string();
        assert!(refused.contains("16785409 pairs") && refused.contains("max_tracked_pairs"), "{refused}");
        let feed = Scenario::Feed { interval_us: 5000, payload_bytes: 173 };
        assert!(matches!(Roles::of(&plan(10, feed)), Err(BadPlan::NoBackEnd)));
        let echo = |bytes| Scenario::Echo { interval_ms: 1, payload_bytes: bytes };
        assert!(matches!(Roles::of(&plan(10, echo(21))), Err(BadPlan::Payload(_))));
        assert!(matches!(Roles::of(&plan(10_000, echo(22))), Err(BadPlan::TooManyPublications { .. })));
        assert!(matches!(Roles::of(&plan(0, Scenario::Idle)), Err(BadPlan::OutOfRange { name: "clients", .. })));
        let long = Plan { channel: "x".repeat(126), ..plan(1, Scenario::Idle) };
        assert!(matches!(Roles::of(&long), Err(BadPlan::Channel { .. })));
    }

    #[test]
    fn limits_count_what_the_shape_makes() {
        let echo = Scenario::Echo { interval_ms: 1, payload_bytes: 22 };
        let shaped = |factor| Plan { shape: Shape::Step { factors: vec![factor] }, ..plan(1_000, echo.clone()) };
        // 30 million at the factor 1, 67 at most.
        assert!(Roles::of(&shaped(2.2)).is_ok());
        assert!(matches!(Roles::of(&shaped(2.3)), Err(BadPlan::TooManyPublications { .. })));
        assert!(matches!(Roles::of(&shaped(-1.0)), Err(BadPlan::Shape(BadShape::Factor { .. }))));
    }

    #[test]
    fn rooms_have_limits() {
        let rooms = |clients, rooms, rooms_per_client| {
            let scenario = Scenario::Rooms { rooms, rooms_per_client, interval_us: 1_000, payload_bytes: 50 };
            Roles::of(&Plan { transport: Transport::WebSocket, loops: 64, ..plan(clients, scenario) })
        };
        let roles = rooms(20_000, 100_000, 10).unwrap();
        assert_eq!(roles.audience.sources(), 10);
        assert!(roles.rooms().unwrap().count() > 80_000);
        assert!(matches!(rooms(9, 100_001, 1), Err(BadPlan::OutOfRange { name: "rooms", most: 100_000, .. })));
        assert!(matches!(rooms(9, 100, 65), Err(BadPlan::OutOfRange { name: "rooms_per_client", most: 64, .. })));
        assert!(matches!(rooms(9, 7, 8), Err(BadPlan::OutOfRange { name: "rooms_per_client", most: 7, .. })));
        assert!(matches!(rooms((1 << 18) + 1, 64, 64), Err(BadPlan::TooManyPairs { sources: 64, .. })));
        let long = |rooms| {
            let scenario = Scenario::Rooms { rooms, rooms_per_client: 1, interval_us: 1_000, payload_bytes: 50 };
            Roles::of(&Plan { channel: "x".repeat(123), ..plan(5, scenario) })
        };
        assert!(long(10_000).is_ok());
        assert!(matches!(long(10_001), Err(BadPlan::Channel { .. })), "a name of 129 bytes");
    }

    #[test]
    fn posting_clients_need_two_descriptors() {
        let plan = plan(1000, Scenario::Request { payload_bytes: 22 });
        let roles = Roles::of_scenario(&plan).unwrap();
        assert!(matches!(roles.check_descriptors(&plan, 2015), Err(BadPlan::TooFewDescriptors { needed: 2016, .. })));
        assert!(roles.check_descriptors(&plan, 2016).is_ok());
    }
}
