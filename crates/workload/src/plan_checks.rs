//! Whether a plan can be run at all: its limits, and what does not go together.

use crate::check::PAIR_BYTES;
use crate::payload::BadPayloadSize;
use crate::plan::{ClientKind, Http, HttpVersion, Plan, Sockets, Sources, Target, Trust};
use crate::scenario::{Scenario, Shape};
use crate::shape::BadShape;
use crate::turns::{LENGTH_MS, Turns};
use core::net::{Ipv4Addr, SocketAddr};
use pushlab_dialects::{Dialect, Refused, Topic, Turn};
use pushlab_wire::channel::{BadChannel, Channel};
use pushlab_wire::stamp::MAX_SOURCE;
use pushlab_wire::transport::Transport;

/// Most pairs of a receiver and a source that are checked in one worker: 256 MiB, if all of them meet.
pub const MAX_TRACKED_PAIRS: u64 = 1 << 24;
/// Most publications in the load phase of one run: 256 MiB of subscriber counts.
pub const MAX_PUBLICATIONS: u64 = 1 << 26;
/// Most event loops in one worker.
pub const MAX_LOOPS: u32 = 64;
/// Most workers of a run. The lab hears all of them, some 4 KiB a second each.
pub const MAX_WORKERS: u32 = 1_000;
/// Most messages that a poll brings again: a client remembers so many stamps, of 24 bytes each.
pub const MAX_NEWEST: u32 = 100;
/// Largest echo that opens an event stream, bytes: three times as many stand in the head of a request at worst.
pub const MAX_STREAMED_BYTES: u64 = 4_096;
/// Most pages of a browser: 100 MiB or so each.
pub const MAX_PAGES: u32 = 200;

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
    /// Nothing to measure.
    #[error("no publication is due in a load phase of {load_ms} ms: make it longer, or the interval shorter")]
    NothingDue {
        /// Length of the load phase.
        load_ms: u64,
    },
    /// The kernel's limit on descriptors.
    #[error(
        "each of {loops} loops needs {needed} descriptors and may hold {limit}: raise ulimit -n, or use fewer clients{}",
        if *loops == 1 { "; clients that share connections must be in the same loop" } else { "" }
    )]
    TooFewDescriptors {
        /// As many loops as there may be.
        loops: u32,
        /// What one loop needs.
        needed: u64,
        /// The limit of its table.
        limit: u64,
    },
    /// Something that one process has to see all of.
    #[error("workers is {workers}, but {why}, which needs a single process: leave workers at 1 and set loops instead")]
    OneWorker {
        /// What was asked for.
        workers: u32,
        /// What it is.
        why: &'static str,
    },
    /// Clients that share a connection have to be in one process.
    #[error(
        "workers is {workers}, which would split clients that share an HTTP/2 connection: use fewer workers, or a number of \
         clients that gives each worker whole groups of clients_per_host"
    )]
    SplitConnections {
        /// What was asked for.
        workers: u32,
    },
    /// A feed without a place for its back end.
    #[error(
        "scenario feed without backend_listen: say where the subject finds its back end, or feed by = \"publisher\""
    )]
    NoBackEnd,
    /// A WebSocket that is polled covers the channels it was opened with, so it has no second question to ask.
    #[error("user_list over websocket-polling: a poll covers the connection's own channel; use transport polling")]
    UserList,
    /// The newest messages are those of one channel.
    #[error("polling.newest asks for the newest messages of one channel, but clients in rooms have several")]
    NewestInRooms,
    /// Polls stay in step with publications only at one interval.
    #[error("polling.phase_ms: {0}")]
    PollPhase(&'static str),
    /// Only two dialects have it.
    #[error(
        "scenario echo with streamed = true: dialect {dialect} cannot answer an echo with an event stream: leave out the subjects that speak it"
    )]
    Streamed {
        /// What the clients speak.
        dialect: String,
    },
    /// The dialect has no such way to speak.
    #[error(transparent)]
    Dialect(#[from] Refused),
    /// A ping needs an answer for the sender alone, which a dialect may not have.
    #[error(
        "a prober over {transport} in dialect {dialect}: pings are echoes over WebSockets, or plain POSTs: use no prober"
    )]
    Prober {
        /// How the clients receive.
        transport: Transport,
        /// What they speak.
        dialect: String,
    },
    /// A prober that receives as clients do is one of them on a WebSocket, and knows its pings among all that comes.
    #[error("prober.subscribed: {0}")]
    SubscribedProber(&'static str),
    /// What cannot stand in a request.
    #[error("the target's {name} is {text:?}: {wanted}")]
    Target {
        /// `authority` or `path`.
        name: &'static str,
        /// What it was.
        text: String,
        /// What it must be.
        wanted: &'static str,
    },
    /// Only our own dialect is spoken over HTTP/2.
    #[error("the load speaks dialect {dialect} over HTTP/1.1 only: set http_version = \"1.1\"")]
    Http2 {
        /// What the clients speak.
        dialect: String,
    },
    /// Not every way to speak lets each request have a connection of its own.
    #[error("sockets.keep_alive = false: {0}")]
    KeepAlive(&'static str),
    /// Addresses beyond the last there is.
    #[error("source addresses from {first} on, with {clients_each} clients each, are too few for {clients} clients")]
    Sources {
        /// The first source address.
        first: Ipv4Addr,
        /// Clients of each.
        clients_each: u32,
        /// All clients.
        clients: u32,
    },
    /// The instruments' source address is one of IPv4.
    #[error("instruments_from {from} cannot reach {target}: give the subject an IPv4 address")]
    Instruments {
        /// The source address.
        from: Ipv4Addr,
        /// The subject.
        target: SocketAddr,
    },
    /// A browser does not do everything that native clients do.
    #[error("clients in a browser: {0}")]
    InBrowser(&'static str),
    /// Only Firefox has preferences for its connections.
    #[error("{key} is Firefox's preference {name}, which nothing else has: leave it out, or set kind = \"firefox\"")]
    NotFirefox {
        /// The plan's field.
        key: &'static str,
        /// As Firefox calls it.
        name: &'static str,
    },
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

/// Everything that can be said of a plan without knowing what its scenario means.
///
/// # Errors
/// See [`BadPlan`].
pub(crate) fn check_plan(plan: &Plan) -> Result<(), BadPlan> {
    in_range("clients", u64::from(plan.clients), 1, u64::from(MAX_SOURCE))?;
    in_range("workers", u64::from(plan.workers), 1, u64::from(MAX_WORKERS))?;
    in_range("loops", u64::from(plan.loops), 1, u64::from(MAX_LOOPS * plan.workers))?;
    check_workers(plan)?;
    check_subscribed_prober(plan)?;
    in_range("connect_rate", u64::from(plan.connect_rate), 1, u64::from(u32::MAX))?;
    if plan.transport.is_interval_driven() {
        in_range("poll_interval_ms", plan.poll_interval_ms, 1, 3_600_000)?;
    }
    if let Some(bytes) = plan.compression_from {
        in_range("compression_from", u64::from(bytes), 1, u64::from(u32::MAX))?;
    }
    if let Some(prober) = &plan.prober {
        in_range("the prober's interval_ms", prober.interval_ms, 1, 3_600_000)?;
    }
    check_target(&plan.target)?;
    check_sockets(plan)?;
    check_http(plan)?;
    check_keep_alive(plan)?;
    check_dialect(plan)?;
    check_browser(plan)?;
    if let Some(Turns { own, of, length_ms }) = plan.turns {
        let [shortest, longest] = LENGTH_MS;
        in_range("turns.length_ms", length_ms, shortest, longest)?;
        in_range("turns.own", own.into(), 0, u64::from(of.max(1)) - 1)?;
    }
    if plan.user_list && plan.transport == Transport::WebSocketPolling {
        return Err(BadPlan::UserList);
    }
    if let Some(count) = plan.newest_count() {
        in_range("polling.newest", u64::from(count), 1, u64::from(MAX_NEWEST))?;
        if matches!(plan.scenario, Scenario::Rooms { .. }) {
            return Err(BadPlan::NewestInRooms);
        }
    }
    check_poll_phase(plan)?;
    check_streamed(plan)?;
    let users = plan.user_list.then(|| plan.users_channel());
    let own = [plan.channel.clone(), plan.upstream_channel(), plan.prober_channel()];
    let feeders = plan.scenario.has_feeder().then(|| plan.feeder_channel());
    for name in own.into_iter().chain(users).chain(feeders) {
        check_channel(name)?;
    }
    Ok(())
}

/// Whether each echo can open an event stream.
fn check_streamed(plan: &Plan) -> Result<(), BadPlan> {
    let Scenario::Echo { payload_bytes, .. } = plan.scenario else { return Ok(()) };
    if !plan.echoes_in_streams() {
        return Ok(());
    }
    // It stands in the target of a request, where most of it is escaped.
    in_range("payload_bytes of an echo with streamed = true", u64::from(payload_bytes), 1, MAX_STREAMED_BYTES)?;
    match &plan.speaks {
        Some(speaks) if speaks.dialect != Dialect::Bare => Err(BadPlan::Streamed { dialect: speaks.dialect.name() }),
        _ => Ok(()),
    }
}

/// Whether clients can ask so long after each of their publications.
fn check_poll_phase(plan: &Plan) -> Result<(), BadPlan> {
    let Some(after_ms) = plan.poll_after_publication_ms.filter(|_| plan.transport.is_interval_driven()) else {
        return Ok(());
    };
    in_range("polling.phase_ms", after_ms, 0, plan.poll_interval_ms.saturating_sub(1))?;
    // With other numbers of publishers than one or all, the i-th publisher and the i-th client have other places.
    let is_in_step = match plan.scenario {
        Scenario::Chat { interval_ms, publishers, in_bursts: false, .. } => {
            interval_ms == plan.poll_interval_ms && publishers.is_none_or(|some| some == 1 || some == plan.clients)
        }
        _ => false,
    };
    if !is_in_step {
        let why = "it needs a chat without bursts, in which one client or all of them publish at the polling interval: set \
                   both interval_ms to the same value";
        return Err(BadPlan::PollPhase(why));
    }
    if plan.shape != Shape::Steady || plan.turns.is_some() {
        return Err(BadPlan::PollPhase("the interval of publications must not change: leave shape and turns_ms out"));
    }
    Ok(())
}

/// Whether what a plan has one of can be reached by so many workers.
fn check_workers(plan: &Plan) -> Result<(), BadPlan> {
    let refusals = [
        (matches!(plan.scenario, Scenario::FanOut { .. }), "scenario fan-out counts whom each publication has reached"),
        (plan.clients_in.is_browser(), "one browser hosts all clients"),
        (
            plan.http() == Http::Http11 && plan.sockets.clients_per_host > 1,
            "the clients of a host share their connections",
        ),
    ];
    let why = refusals.into_iter().find(|(is_single, _)| plan.workers > 1 && *is_single);
    why.map_or(Ok(()), |(_, why)| Err(BadPlan::OneWorker { workers: plan.workers, why }))
}

/// Whether a prober can receive what the clients do.
fn check_subscribed_prober(plan: &Plan) -> Result<(), BadPlan> {
    let is_known = plan.speaks.as_ref().is_none_or(|speaks| speaks.dialect == Dialect::Bare);
    let refusals = [
        (
            plan.transport != Transport::WebSocket || !plan.pings_in_frames(),
            "it needs transport websocket and over = \"same-transport\"",
        ),
        (plan.compression_from.is_some(), "the prober does not ask for compression: leave compression_from out"),
        (
            !is_known,
            "only our own server and those of dialect bare let one connection ask for both: leave the other subjects out",
        ),
        (matches!(plan.scenario, Scenario::Rooms { .. }), "clients in rooms have no channel in common"),
    ];
    let why = refusals.into_iter().find(|(is_refused, _)| plan.prober_is_subscribed() && *is_refused);
    why.map_or(Ok(()), |(_, why)| Err(BadPlan::SubscribedProber(why)))
}

/// Whether a plan's dialect can do what the plan wants.
fn check_dialect(plan: &Plan) -> Result<(), BadPlan> {
    let Some(speaks) = &plan.speaks else { return Ok(()) };
    let topic = Topic {
        transport: Some(plan.transport),
        path: speaks.path.clone(),
        how: speaks.how.clone(),
        ..Topic::default()
    };
    speaks.dialect.protocol_client().open(&mut Turn::new(&topic, &mut Vec::new(), &mut |_| ()))?;
    let has_pings = speaks.dialect == Dialect::Bare || plan.pings_in_frames();
    match &plan.prober {
        Some(_) if !has_pings => Err(BadPlan::Prober { transport: plan.transport, dialect: speaks.dialect.name() }),
        _ => Ok(()),
    }
}

fn check_target(target: &Target) -> Result<(), BadPlan> {
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#'));
    let bad = |name, text: &str, wanted| Err(BadPlan::Target { name, text: text.to_owned(), wanted });
    let Target { authority, path, .. } = target;
    if authority.is_empty() || authority.contains(['/', '@']) || !is_plain(authority) {
        return bad("authority", authority, "it must be HOST or HOST:PORT");
    }
    if !path.is_empty() && (!path.starts_with('/') || path.ends_with('/') || !is_plain(path)) {
        return bad("path", path, "it must be empty, or begin with a slash and not end with one");
    }
    Ok(())
}

fn check_sockets(plan: &Plan) -> Result<(), BadPlan> {
    let most = i32::MAX as u64;
    for (name, bytes) in [
        ("sockets.send_buffer_bytes", plan.sockets.send_buffer_bytes),
        ("sockets.receive_buffer_bytes", plan.sockets.receive_buffer_bytes),
    ] {
        bytes.map_or(Ok(()), |bytes| in_range(name, u64::from(bytes), 1, most))?;
    }
    let target = plan.target.address;
    if let Sources::From { first, clients_each } = plan.sources {
        in_range("sources.clients_each", u64::from(clients_each), 1, u64::from(u32::MAX))?;
        if first.to_bits().checked_add((plan.clients - 1) / clients_each).is_none() {
            return Err(BadPlan::Sources { first, clients_each, clients: plan.clients });
        }
    }
    match plan.instruments_from {
        Some(from) if target.is_ipv6() => Err(BadPlan::Instruments { from, target }),
        _ => Ok(()),
    }
}

/// Whether the version of HTTP can be spoken.
fn check_http(plan: &Plan) -> Result<(), BadPlan> {
    let Http::Http2 { clients_per_connection } = plan.http() else { return Ok(()) };
    in_range("sockets.clients_per_host", u64::from(clients_per_connection), 1, u64::from(u32::MAX))?;
    match &plan.speaks {
        Some(speaks) => Err(BadPlan::Http2 { dialect: speaks.dialect.name() }),
        None => Ok(()),
    }
}

/// Whether each request can have a connection of its own.
fn check_keep_alive(plan: &Plan) -> Result<(), BadPlan> {
    let is_other = plan.speaks.as_ref().is_some_and(|speaks| speaks.dialect != Dialect::Bare);
    let refusals = [
        (plan.http() != Http::Http11, "over HTTP/2 a connection carries many requests: set http_version = \"1.1\""),
        (is_other, "of other dialects, bare alone opens a connection for each request: leave such subjects out"),
    ];
    let why = refusals.into_iter().find(|(is_asked, _)| !plan.sockets.keep_alive && *is_asked);
    why.map_or(Ok(()), |(_, why)| Err(BadPlan::KeepAlive(why)))
}

/// What a browser cannot do, or this worker not in one.
fn check_browser(plan: &Plan) -> Result<(), BadPlan> {
    for preference in plan.clients_in.preferences() {
        let Some(value) = preference.value else { continue };
        if plan.clients_in.kind != ClientKind::Firefox {
            return Err(BadPlan::NotFirefox { key: preference.key, name: preference.name });
        }
        in_range(preference.key, u64::from(value), 1, u64::from(preference.most))?;
    }
    if !plan.clients_in.is_browser() {
        return Ok(());
    }
    let most = u64::from(plan.clients.min(MAX_PAGES));
    in_range("clients_in.pages", u64::from(plan.clients_in.pages), 1, most)?;
    // The link delays acknowledgements, not the browser.
    let Sockets { tls, http_version, ack_delay_ms, .. } = plan.sockets;
    let trust = plan.target.tls.as_ref().map(|tls| &tls.trust);
    let refusals = [
        (
            plan.speaks.is_some() && plan.page_scripts.is_none(),
            "the subject has no client for pages: its manifest needs a table [browser]",
        ),
        (
            plan.sockets != Sockets { tls, http_version, ack_delay_ms, ..Sockets::default() },
            "of sockets, only tls, http_version and ack_delay_ms can be set: use a variant with native clients for the rest",
        ),
        (trust.is_none() && http_version == HttpVersion::Http2, "it speaks HTTP/2 over TLS alone: set sockets.tls"),
        (trust == Some(&Trust::System), "over TLS it takes the certificate of a subject that the lab starts, no other"),
        (
            matches!(plan.scenario, Scenario::FanOut { .. } | Scenario::Request { .. }),
            "a closed loop would wait for the pages' reports: use a scenario on a schedule",
        ),
        (
            matches!(plan.scenario, Scenario::Storm { .. }),
            "scenario storm cuts connections, which are the browser's own: use native clients",
        ),
        (
            plan.compression_from.is_some(),
            "it does not report which messages came compressed: leave compression_from out",
        ),
        (plan.newest_count().is_some(), "its polls say what they have: leave polling.newest out"),
        (plan.echoes_in_streams(), "its pages echo by POST: leave streamed out"),
        (plan.poll_after_publication_ns().is_some(), "its pages decide when they poll: leave polling.phase_ms out"),
        (plan.receipts, "its clock is not exact enough to tell the way up from the way down: leave receipts out"),
    ];
    refusals.into_iter().find(|(is_asked, _)| *is_asked).map_or(Ok(()), |(_, why)| Err(BadPlan::InBrowser(why)))
}

pub(crate) fn check_channel(name: String) -> Result<(), BadPlan> {
    Channel::parse(&name).map(drop).map_err(|source| BadPlan::Channel { name, source })
}

pub(crate) fn check_pairs(receivers: u32, sources: u32) -> Result<(), BadPlan> {
    let pairs = u64::from(receivers) * u64::from(sources);
    if pairs > MAX_TRACKED_PAIRS { Err(BadPlan::TooManyPairs { receivers, sources, pairs }) } else { Ok(()) }
}

pub(crate) fn in_range(name: &'static str, value: u64, least: u64, most: u64) -> Result<(), BadPlan> {
    if (least..=most).contains(&value) { Ok(()) } else { Err(BadPlan::OutOfRange { name, value, least, most }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::fixtures::plan;
    use crate::roles::Roles;

    #[test]
    fn polls_are_in_step_with_publications_at_one_interval_alone() {
        let chat = |interval_ms, publishers, in_bursts| Scenario::Chat {
            interval_ms,
            payload_bytes: 40,
            payload_bytes_max: None,
            publishers,
            in_bursts,
        };
        let polling = |scenario| Plan {
            poll_interval_ms: 200,
            poll_after_publication_ms: Some(199),
            transport: Transport::Polling,
            ..plan(4, scenario)
        };
        for publishers in [None, Some(1), Some(4)] {
            assert!(Roles::of(&polling(chat(200, publishers, false)), 20_000).is_ok(), "{publishers:?}");
        }
        let why = |plan: &Plan| Roles::of(plan, 20_000).unwrap_err().to_string();
        for scenario in [chat(400, None, false), chat(200, Some(2), false), chat(200, None, true), Scenario::Idle] {
            assert!(why(&polling(scenario)).contains("publish at the polling interval"));
        }
        let in_step = polling(chat(200, None, false));
        let late = Plan { poll_after_publication_ms: Some(200), ..in_step.clone() };
        assert_eq!(why(&late), "polling.phase_ms is 200: it must be 0 to 199");
        let shaped = Plan { shape: Shape::Step { factors: vec![1.0, 2.0] }, ..in_step.clone() };
        assert!(why(&shaped).contains("leave shape"));
        let pushed = Plan { transport: Transport::Sse, ..polling(Scenario::Idle) };
        assert!(Roles::of(&pushed, 20_000).is_ok(), "nobody polls");
    }
}
