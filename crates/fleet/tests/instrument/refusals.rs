//! What a server refuses is told as the server says it.

use crate::native_server::{NativeServer, Refuse};
use crate::plans::{NO_TIME, plan, run, with_prober};
use pushlab_fleet::{RunError, Threads};
use pushlab_wire::transport::Transport;
use pushlab_workload::messages::LoadError;
use pushlab_workload::plan::{Phases, Plan, ProberPath};
use pushlab_workload::scenario::Scenario;

const CHAT: Scenario =
    Scenario::Chat { interval_ms: 100, payload_bytes: 71, payload_bytes_max: None, publishers: None, in_bursts: false };

#[test]
fn refused_publications_are_told_over_every_transport() {
    for transport in Transport::ALL {
        let server = NativeServer::refusing(Refuse::Publications);
        let base = plan(server.address, transport, 5, CHAT);
        let result = run(&Plan { phases: Phases { drain_ms: 100, ..base.phases.clone() }, ..base });
        let said = result.refusals().unwrap_or_else(|| panic!("{transport} {:?}", result.errors));
        let expected = if transport.is_bidirectional() {
            "error frame: forbidden not for you"
        } else {
            "/publish answered 403 not for you"
        };
        assert!(said.starts_with(expected), "{transport}: {said}");
        assert!(result.refused[0].count >= 5 && result.delivered == 0, "{transport} {:?}", result.refused);
    }
}

/// The reason why a run of clients ended that were never subscribed, and how long that took.
fn why_not_connected(plan: &Plan) -> (String, u64) {
    match Threads::run(plan, None, &mut |_| ()) {
        Err(RunError::Load(LoadError::NotConnected { error, connect_ms, .. })) => (error, connect_ms),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_subscription_that_is_refused_for_good_is_not_tried_again() {
    for transport in Transport::ALL {
        for status in [301, 401, 403, 404, 426] {
            let server = NativeServer::refusing(Refuse::Everything(status));
            let (error, connect_ms) = why_not_connected(&plan(server.address, transport, 5, CHAT));
            let text = if status < 400 { "(a redirect): use http://elsewhere/" } else { "not for you" };
            assert!(error.contains(&format!("answered {status} {text} (")), "{transport}: {error}");
            assert!(connect_ms < NO_TIME.connect_ms, "{transport}: it was tried for {connect_ms} ms");
        }
    }
    let server = NativeServer::refusing(Refuse::Everything(503));
    let base = plan(server.address, Transport::Sse, 1, CHAT);
    let brief = Plan { phases: Phases { connect_ms: 300, ..base.phases.clone() }, ..base };
    assert_eq!(why_not_connected(&brief).1, 300, "that may pass");
}

#[test]
fn a_prober_that_is_refused_for_good_ends_the_run() {
    let server = NativeServer::refusing(Refuse::Everything(403));
    let idle = with_prober(plan(server.address, Transport::WebSocket, 1, Scenario::Idle), ProberPath::SameTransport);
    let (error, connect_ms) = why_not_connected(&idle);
    assert!(error.contains("403 not for you"), "{error}");
    assert!(connect_ms < NO_TIME.connect_ms);
}
