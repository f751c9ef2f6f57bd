//! Small plans.

use pushlab_fleet::Threads;
use pushlab_wire::transport::Transport;
use pushlab_workload::payload::Content;
use pushlab_workload::plan::{Phase, Phases, Plan, Prober, ProberPath, RequestHeaders, Sources, Target};
use pushlab_workload::result::LoadResult;
use pushlab_workload::scenario::{Scenario, Shape};
use std::net::SocketAddr;

pub const NO_TIME: Phases =
    Phases { connect_ms: 20_000, warm_up_ms: 0, idle_ms: 0, load_ms: 0, drain_ms: 0, after_ms: 0 };

pub fn plan(target: SocketAddr, transport: Transport, clients: u32, scenario: Scenario) -> Plan {
    Plan {
        target: Target::plain(target),
        transport,
        speaks: None,
        clients,
        channel: "a".into(),
        scenario,
        poll_interval_ms: 20,
        poll_wait_s: 5,
        backend_listen: None,
        backend_descriptor: None,
        sockets: pushlab_workload::plan::Sockets::default(),
        sources: Sources::Usual,
        instruments_from: None,
        prober_core: None,
        clients_in: pushlab_workload::plan::ClientsIn::default(),
        page_scripts: None,
        drain_stall_ms: None,
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
        prober: None,
        phases: Phases { warm_up_ms: 55, load_ms: 300, drain_ms: 20_000, ..NO_TIME },
        connect_rate: 1_000,
        loops: 2,
        workers: 1,
        seed: 7,
        repetition: None,
        injected_delay_us: 0,
    }
}

/// Pings that the seed of [`plan`] makes due in the load phase of one with a prober: 30 on average.
pub const PINGS: u64 = 36;

pub fn with_prober(plan: Plan, over: ProberPath) -> Plan {
    Plan { prober: Some(Prober { interval_ms: 10, over, closed_loop: false, subscribed: false }), ..plan }
}

pub fn run(plan: &Plan) -> LoadResult {
    Threads::run(plan, None, &mut |_| ()).unwrap()
}

/// When a phase began.
pub fn start_of(result: &LoadResult, phase: Phase) -> u64 {
    result.phases.iter().find(|mark| mark.phase == phase).unwrap().t_ns
}
