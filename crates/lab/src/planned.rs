//! What the worker of a run is told.

use pushlab_experiment::Experiment;
use pushlab_experiment::cell::Cell;
use pushlab_experiment::subject::name_of;
use pushlab_record::PlannedRun;
use pushlab_subjects::named::Named;
use pushlab_workload::phase::Repetition;
use pushlab_workload::plan::{self, Plan, Sockets, Sources, TlsTarget, Trust};
use std::net::{Ipv4Addr, SocketAddr};

/// Channel of all traffic.
pub const CHANNEL: &str = "lab";

/// The subject of a cell.
pub fn named(cell: &Cell, experiment: &Experiment) -> Result<Named, String> {
    let text = experiment.subjects.iter().find(|text| name_of(text) == cell.subject);
    Named::parse(text.map_or(&cell.subject, |text| text))
}

/// What the ends of a run's connections are.
pub struct Ends {
    /// How clients reach the subject.
    pub target: plan::Target,
    /// Where the back end listens, if there is one, and by which descriptor the worker inherits that.
    pub backend_listen: Option<SocketAddr>,
    /// See there.
    pub backend_descriptor: Option<i32>,
    /// From where clients come.
    pub sources: Sources,
    /// From where instruments come.
    pub instruments_from: Option<Ipv4Addr>,
    /// The core of the prober, where it has its own.
    pub prober_core: Option<usize>,
}

/// What a worker would be told, with addresses and files that stand for those of the run.
///
/// # Errors
/// When the subject is not known any more.
pub fn plan_of(planned: &PlannedRun, experiment: &Experiment, cores: usize) -> Result<Plan, String> {
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let (server_name, trust) = (anywhere.ip().to_string(), Trust::Certificate("made for the run".into()));
    let tls = experiment.sockets.tls.then_some(TlsTarget { server_name, trust });
    let ends = Ends {
        target: plan::Target { tls, ..plan::Target::plain(anywhere) },
        backend_listen: Some(anywhere),
        backend_descriptor: None,
        sources: Sources::Usual,
        instruments_from: None,
        prober_core: None,
    };
    let named = named(&planned.cell, experiment)?;
    if experiment.clients_in.is_browser() {
        named.page_scripts(planned.cell.transport)?;
    }
    Ok(plan(planned, &named, experiment, &ends, cores))
}

/// Which repetition of its cell a run is.
pub fn repetition(planned: &PlannedRun, experiment: &Experiment) -> Repetition {
    // FNV-1a: any number that is the cell's own, today and on any machine.
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let seed = planned.cell.label().bytes().fold(0xcbf2_9ce4_8422_2325, mix);
    Repetition { number: planned.repeat, of: experiment.repeats, seed }
}

/// What the worker of a run is told.
pub fn plan(planned: &PlannedRun, named: &Named, experiment: &Experiment, ends: &Ends, cores: usize) -> Plan {
    Plan {
        target: ends.target.clone(),
        transport: planned.cell.transport,
        speaks: named.speaks(planned.cell.transport),
        clients: planned.cell.clients,
        channel: CHANNEL.to_owned(),
        scenario: experiment.scenario.clone(),
        poll_interval_ms: experiment.polling.interval_ms,
        poll_wait_s: experiment.polling.wait_s,
        // A ping needs an answer for the sender alone.
        prober: experiment.prober.clone().filter(|_| named.answers_pings(planned.cell.transport)),
        phases: experiment.phases.clone(),
        connect_rate: experiment.connect_rate,
        loops: experiment.loops.unwrap_or_else(|| u32::try_from(cores).unwrap_or(1).max(1)),
        workers: experiment.workers.unwrap_or(1),
        seed: planned.seed,
        repetition: Some(repetition(planned, experiment)),
        injected_delay_us: experiment.injected_delay_us,
        backend_listen: ends.backend_listen,
        backend_descriptor: ends.backend_descriptor,
        sockets: Sockets {
            delayed_acks: experiment.sockets.delayed_acks && !named.waits_for_acks(planned.cell.transport),
            ..experiment.sockets.clone()
        },
        sources: ends.sources,
        instruments_from: ends.instruments_from,
        prober_core: ends.prober_core,
        clients_in: experiment.clients_in.for_clients(planned.cell.clients),
        // One that has none is refused before anything runs.
        page_scripts: match experiment.clients_in.is_browser() {
            true => named.page_scripts(planned.cell.transport).ok().flatten(),
            false => None,
        },
        drain_stall_ms: None,
        shape: experiment.shape.clone(),
        is_told_to_begin: false,
        turns: None,
        headers: experiment.headers,
        compression_from: experiment.compression_from,
        content: experiment.content,
        poll_newest_count: experiment.polling.newest,
        poll_after_publication_ms: experiment.polling.phase_ms,
        user_list: experiment.polling.user_list,
        // What others have no mark for.
        receipts: experiment.receipts && named.is_ours(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments;
    use pushlab_wire::transport::Transport;
    use pushlab_workload::phase::Periodic;
    use pushlab_workload::scenario::Shape;

    #[test]
    fn every_repeat_of_a_cell_begins_to_publish_in_another_part_of_the_period() {
        let experiment = experiments::load("tangen-broadcast", None).unwrap();
        assert!(experiment.repeats > 2);
        let parts = |cell: &Cell| -> Vec<u64> {
            let phase = |repeat| {
                let planned = PlannedRun { order: 1, repeat, seed: u64::from(repeat), cell: cell.clone() };
                let repetition = plan_of(&planned, &experiment, 1).unwrap().repetition.unwrap();
                repetition.phase_ns(Periodic::Publications, planned.seed, 1_000 * u64::from(experiment.repeats)) / 1_000
            };
            (1..=experiment.repeats).map(phase).collect()
        };
        let cells = experiment.cells();
        let orders: Vec<Vec<u64>> = cells.iter().map(parts).collect();
        for order in &orders {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..u64::from(experiment.repeats)).collect::<Vec<_>>());
        }
        assert!(orders.iter().any(|order| *order != orders[0]), "each cell in an order of its own: {orders:?}");
    }

    #[test]
    fn the_load_has_the_shape_of_the_experiment_and_lasts_as_long() {
        let mut experiment = experiments::load("tangen-broadcast", None).unwrap();
        experiment.shape = Shape::Step { factors: vec![0.5, 2.0] };
        experiment.phases.load_ms = 300;
        let planned = PlannedRun { order: 1, repeat: 1, seed: 1, cell: experiment.cells().remove(0) };
        let plan = plan_of(&planned, &experiment, 1).unwrap();
        assert_eq!((plan.shape, plan.phases, plan.turns), (experiment.shape.clone(), experiment.phases.clone(), None));
    }

    #[test]
    fn who_waits_for_acknowledgements_gets_them_at_once() {
        let experiment = experiments::load("peers-fan-out", None).unwrap();
        assert!(experiment.sockets.delayed_acks);
        let is_delayed = |subject: &str, transport| {
            let mut cell = experiment.cells().into_iter().find(|cell| cell.transport == transport).unwrap();
            subject.clone_into(&mut cell.subject);
            let planned = PlannedRun { order: 1, repeat: 1, seed: 1, cell };
            plan_of(&planned, &experiment, 1).unwrap().sockets.delayed_acks
        };
        for subject in ["pushlab", "node-bare"] {
            assert!(is_delayed(subject, Transport::WebSocket) && is_delayed(subject, Transport::Sse), "{subject}");
        }
        assert!(!is_delayed("nchan", Transport::WebSocket) && !is_delayed("nchan", Transport::Sse));
        assert!(is_delayed("nchan", Transport::HttpStreaming), "these do not wait");
    }
}
