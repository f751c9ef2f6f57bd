//! Clients of others' servers: every delivery accounted for, whatever the server does to their connections.

use crate::foreign_server::{ForeignServer, Trouble};
use crate::plans::{plan, run, with_prober};
use pushlab_dialects::Dialect;
use pushlab_wire::transport::Transport;
use pushlab_workload::plan::{Phases, Plan, ProberPath, Speaks, Target};
use pushlab_workload::result::LoadResult;
use pushlab_workload::scenario::Scenario;

const CLIENTS: u32 = 5;
const BARE: [(Dialect, Transport); 5] = [
    (Dialect::Bare, Transport::WebSocket),
    (Dialect::Bare, Transport::Sse),
    (Dialect::Bare, Transport::HttpStreaming),
    (Dialect::Bare, Transport::LongPolling),
    (Dialect::Bare, Transport::Polling),
];
/// Its clients have to post twice before they are subscribed.
const HUB: (Dialect, Transport) = (Dialect::Signalr, Transport::Sse);

/// All of the load counts, so that the server's counts are the run's.
fn chat(server: &ForeignServer, (dialect, transport): (Dialect, Transport)) -> Plan {
    let path = if dialect == Dialect::Signalr { "/hub" } else { "" }.to_owned();
    let speaks = Some(Speaks { dialect, path, how: String::new(), recording: None });
    let scenario = Scenario::Chat {
        interval_ms: 10,
        payload_bytes: 71,
        payload_bytes_max: None,
        publishers: None,
        in_bursts: false,
    };
    let base = plan(server.address, transport, CLIENTS, scenario);
    let phases = Phases { warm_up_ms: 0, load_ms: 300, ..base.phases.clone() };
    Plan { speaks, phases, ..base }
}

/// What client and server both counted is the same.
fn assert_counted(result: &LoadResult, server: &ForeignServer, what: &str) {
    let (state, errors) = (server.state(), &result.errors);
    assert_eq!((result.scheduled, result.published, result.unsent), (150, 150, 0), "{what} {errors:?}");
    assert_eq!((state.published.len(), state.early), (150, 0), "{what} {errors:?}");
    assert_eq!(result.delivered, state.handed as u64, "{what} {errors:?}");
    let expected = (750, 750 - result.delivered);
    assert_eq!((result.expected, result.lost), expected, "{what} {errors:?}");
    assert_eq!((result.duplicated, result.unknown, result.gaps), (0, 0, 0), "{what} {errors:?}");
}

fn assert_whole(result: &LoadResult, server: &ForeignServer, what: &str) {
    assert_counted(result, server, what);
    // A cut client's next POST may overtake one that was under way on the connection that it gave up.
    assert_eq!((result.lost, result.reordered), (0, 0), "{what} {:?}", result.errors);
}

#[test]
fn a_server_of_others_is_called_by_its_name() {
    for way in BARE.into_iter().chain([HUB]) {
        let server = ForeignServer::start(Trouble::Nothing);
        let base = chat(&server, way);
        let target =
            Target { authority: "example.org:8443".to_owned(), path: "/native".to_owned(), ..base.target.clone() };
        assert_whole(&run(&Plan { target, ..base }), &server, &format!("{way:?}"));
        assert_eq!(server.state().hosts.iter().collect::<Vec<_>>(), ["example.org:8443"], "{way:?}");
    }
}

#[test]
fn every_delivery_of_a_dialect_is_accounted_for() {
    for way in BARE.into_iter().chain([HUB]) {
        let what = format!("{way:?}");
        let server = ForeignServer::start(Trouble::Nothing);
        let result = run(&chat(&server, way));
        assert_whole(&result, &server, &what);
        assert_eq!((result.reconnects, result.connect.count()), (0, 5), "{what}");
        assert!(result.errors.is_empty(), "{what} {:?}", result.errors);
        assert_eq!((result.latency_last.count(), result.latency_own.count()), (150, 150), "{what}");
    }
}

#[test]
fn what_clients_publish_answers_no_ping() {
    let server = ForeignServer::start(Trouble::Nothing);
    let base = with_prober(chat(&server, BARE[0]), ProberPath::SameTransport);
    let result = run(&Plan { phases: Phases { drain_ms: 100, ..base.phases.clone() }, ..base });
    assert_eq!((result.delivered, result.response_load.count()), (750, 0), "{:?}", result.errors);
    assert!(result.response_unanswered.count() > 0);
}

#[test]
fn a_cut_dialect_comes_back_and_what_it_missed_is_lost() {
    for way in BARE.into_iter().chain([HUB]) {
        let what = format!("{way:?}");
        let server = ForeignServer::start(Trouble::CutAfter(50));
        let base = chat(&server, way);
        // What is lost is waited for to the end.
        let result = run(&Plan { phases: Phases { drain_ms: 1_500, ..base.phases.clone() }, ..base });
        assert_counted(&result, &server, &what);
        assert!(result.reconnects >= 5, "{what} {}", result.reconnects);
        assert_eq!(result.connect.count(), 10, "{what}: everybody was subscribed twice");
        let cut = |error: &str| error == "the server closed the connection";
        assert!(result.errors.iter().all(|error| cut(&error.error)), "{what} {:?}", result.errors);
        if way.1.is_push() {
            assert!(result.lost > 0, "{what}: a stream of these goes on where it is");
        } else {
            assert_eq!(result.lost, 0, "{what}: a poll says where it goes on");
        }
        // At most what was on its way when the client closed.
        let late: Vec<usize> = server.state().receivers.iter().map(|receiver| receiver.late).collect();
        assert!(late.iter().all(|&late| late <= 1), "{what}: sent without being subscribed: {late:?}");
    }
}

#[test]
fn an_answer_on_a_connection_that_was_cut_is_not_the_next_ones() {
    let server = ForeignServer::start(Trouble::CutJoining(5));
    let result = run(&chat(&server, HUB));
    assert_whole(&result, &server, "cut while joining");
    let state = server.state();
    assert_eq!((state.troubled, state.receivers.len()), (5, 10), "{:?}", result.errors);
}

#[test]
fn who_is_refused_what_it_had_to_post_tries_anew() {
    let server = ForeignServer::start(Trouble::RefuseJoining(5));
    let result = run(&chat(&server, HUB));
    assert_whole(&result, &server, "refused");
    let state = server.state();
    assert_eq!((state.troubled, state.receivers.len()), (5, 10), "{:?}", result.errors);
    let refused = |error: &str| error.contains("POST to the hub was answered with 500");
    assert!(result.errors.iter().any(|error| refused(&error.error)), "{:?}", result.errors);
}

#[test]
fn an_answer_to_a_publication_is_not_that_to_what_the_protocol_client_posts() {
    let server = ForeignServer::start(Trouble::PingFirst);
    let result = run(&chat(&server, HUB));
    assert_whole(&result, &server, "pings");
    assert!(result.errors.is_empty(), "{:?}", result.errors);
    let [asked, came] = server.state().pings;
    assert!(asked == 150 && came + 5 >= asked, "{came} of {asked}; the last of each may still be on its way");
}

#[test]
fn a_server_that_closes_after_every_poll_loses_nothing() {
    let server = ForeignServer::start(Trouble::ClosePolls);
    let result = run(&chat(&server, (Dialect::Bare, Transport::LongPolling)));
    assert_whole(&result, &server, "closing");
    assert!(result.errors.is_empty(), "{:?}", result.errors);
    assert_eq!(result.connect.count(), 5, "they stay subscribed");
    assert!(result.reconnects >= 5, "{}", result.reconnects);
}
