//! Whether the clients of a run fit on this machine, said before anything runs.

use crate::experiments;
use crate::planned::{named, plan_of};
use pushlab_bus::Seats;
use pushlab_experiment::Experiment;
use pushlab_experiment::cell::Cell;
use pushlab_experiment::subject::OURS;
use pushlab_os::limits;
use pushlab_probe::machine::{Check, Room, Verdict};
use pushlab_record::PlannedRun;
use pushlab_subjects::named::Server;
use pushlab_wire::transport::Transport;
use pushlab_workload::needs::{Needs, ServerKind};
use pushlab_workload::plan::Plan;
use pushlab_workload::plan_checks::BadPlan;

/// The preset of silent clients.
const SILENT: &str = "cometd-idle";
/// Share of the available memory that clients may be computed to take, per cent: what they send and receive needs some.
const MEMORY_PERCENT_MAX: u64 = 90;
/// Share of a source address's ports up to which connecting stays fast, per cent.
const PORTS_PERCENT_MAX: u64 = 50;

const WHY_DESCRIPTORS: &str = "Each connection takes a descriptor at either end. Each of our event loops has a table of \
                               its own; other servers have a single one.";
const FIX_DESCRIPTORS: &str = "ulimit -n 1048576, or LimitNOFILE= in the unit file; or use fewer clients";

/// Why a cell cannot be run.
#[derive(Debug)]
pub(crate) enum Unfit {
    /// On any machine.
    Subject(String),
    /// By this one's loops.
    Plan(Box<BadPlan>),
    /// For want of room.
    Room(Check),
}

/// What so many silent clients of our server need over a transport, and whether this machine has it.
///
/// # Errors
/// As a sentence: there cannot be so many.
pub fn check_clients(clients: u32, transport: Transport) -> Result<Vec<Check>, String> {
    let mut experiment = experiments::load(SILENT, None).map_err(|error| error.to_string())?;
    experiment.subjects = vec![OURS.to_owned()];
    (experiment.transports, experiment.clients) = (vec![transport], vec![clients]);
    experiment.check("--clients").map_err(|error| error.to_string())?;
    let cell = experiment.cells().pop().ok_or("our server has every transport")?;
    match needs(&experiment, cell, Seats { cores: 1, descriptors: limits::descriptors().soft }) {
        Ok((needs, server)) => Ok(checks(&needs, server, &Room::read())),
        Err(Unfit::Room(check)) => Ok(vec![check]),
        Err(Unfit::Subject(why)) => Err(why),
        Err(Unfit::Plan(why)) => Ok(vec![Check {
            name: "descriptors",
            verdict: Verdict::Bad,
            found: why.to_string(),
            why: WHY_DESCRIPTORS,
            fix: FIX_DESCRIPTORS,
        }]),
    }
}

/// Refuses a cell that cannot be run with what the load has at its disposal, and so much room on the machine; `None` where
/// the clients are elsewhere.
pub(crate) fn check_cell(experiment: &Experiment, cell: Cell, seats: Seats, room: Option<&Room>) -> Result<(), Unfit> {
    let is_browser = experiment.clients_in.is_browser();
    let (needs, server) = needs(experiment, cell, seats)?;
    // What a browser takes is not known here, and beside it the rest is little.
    let checks = room.filter(|_| !is_browser).map_or_else(Vec::new, |room| checks(&needs, server, room));
    checks.into_iter().find(|check| check.verdict == Verdict::Bad).map_or(Ok(()), |check| Err(Unfit::Room(check)))
}

/// What the clients of a cell need, and whose server they are of.
fn needs(experiment: &Experiment, cell: Cell, seats: Seats) -> Result<(Needs, ServerKind), Unfit> {
    let planned = PlannedRun { order: 1, repeat: 1, seed: 1, cell };
    let named = named(&planned.cell, experiment).map_err(Unfit::Subject)?;
    let mut plan: Plan = plan_of(&planned, experiment, seats.cores as usize).map_err(Unfit::Subject)?;
    let server = match &named.server {
        Server::Ours(_) => ServerKind::Ours,
        Server::Catalogued(..) => ServerKind::Foreign,
        Server::External(external) => {
            // One that cannot be found now is told of where it is to be reached.
            plan.target.address = external.target().map_or(plan.target.address, |target| target.address);
            ServerKind::Elsewhere
        }
    };
    let needs = Needs::of(&plan, server, seats.descriptors);
    needs.map(|needs| (needs, server)).map_err(|error| Unfit::Plan(Box::new(error)))
}

/// Each thing that clients need, what there is of it, and what to do where that is too little.
fn checks(needs: &Needs, server: ServerKind, room: &Room) -> Vec<Check> {
    let unless_above = |needed: u64, there: Option<u64>| match there {
        None => Verdict::Unknown,
        Some(there) if needed > there => Verdict::Bad,
        Some(_) => Verdict::Ok,
    };
    let known = |there: Option<u64>| there.map_or_else(|| "an unknown number".to_owned(), |there| there.to_string());
    let Needs { loops, server_loops, loop_descriptors, server_descriptors, sockets, sources, .. } = *needs;
    let (tables, table) = match server {
        ServerKind::Ours => {
            (format!("{server_loops} event loops of the server with {server_descriptors} each"), room.descriptors)
        }
        ServerKind::Foreign => {
            (format!("a server with {server_descriptors} in a single table"), room.descriptors_raised)
        }
        ServerKind::Elsewhere => ("a server elsewhere".to_owned(), None),
    };
    let is_short = unless_above(loop_descriptors, room.descriptors);
    let is_server_short = table.map_or(Verdict::Ok, |_| unless_above(server_descriptors, table));
    let mut checks = vec![
        Check {
            name: "descriptors",
            verdict: is_short.max(is_server_short),
            found: format!(
                "{loops} event loops of the load with {loop_descriptors} descriptors each, {tables}; a table holds {}",
                known(room.descriptors)
            ),
            why: WHY_DESCRIPTORS,
            fix: FIX_DESCRIPTORS,
        },
        Check {
            name: "open-files",
            verdict: unless_above(sockets, room.files),
            found: format!("{sockets} sockets; the machine may open {} more files", known(room.files)),
            why: "The kernel limits the files of all processes together.",
            fix: "sysctl -w fs.file-max=10000000",
        },
        Check {
            name: "watches",
            verdict: unless_above(sockets, room.watches),
            found: format!("{sockets} sockets; a user may watch {}", known(room.watches)),
            why: "Each socket is registered with its event loop's epoll.",
            fix: "sysctl -w fs.epoll.max_user_watches=10000000",
        },
        check_ports(needs, sources, room),
        check_memory(needs, server, room),
    ];
    if room.tracked.is_some() {
        checks.push(Check {
            name: "conntrack",
            verdict: unless_above(needs.connections, room.tracked),
            found: format!("{} connections; the firewall tracks {} more", needs.connections, known(room.tracked)),
            why: "A stateful firewall tracks every connection, and drops the packets of new ones when its table is full.",
            fix: "sysctl -w net.netfilter.nf_conntrack_max=1000000",
        });
    }
    checks
}

fn check_ports(needs: &Needs, sources: u32, room: &Room) -> Check {
    let each = u64::from(needs.source_clients);
    let verdict = match room.ports {
        None => Verdict::Unknown,
        Some(ports) if each > ports => Verdict::Bad,
        Some(ports) if each * 100 > ports * PORTS_PERCENT_MAX => Verdict::Warn,
        Some(_) => Verdict::Ok,
    };
    let addresses = if sources == 1 { "1 source address".to_owned() } else { format!("{sources} source addresses") };
    let ports = room.ports.map_or_else(|| "an unknown number of".to_owned(), |ports| ports.to_string());
    Check {
        name: "addresses",
        verdict,
        found: format!("{addresses} with up to {each} clients each; an address has {ports} ports"),
        why: "Each connection from one address to one server takes a local port, and the kernel takes long to find \
              one of the last half.",
        fix: "sysctl -w net.ipv4.ip_local_port_range='1024 65535', or use fewer clients",
    }
}

fn check_memory(needs: &Needs, server: ServerKind, room: &Room) -> Check {
    let verdict = match room.memory_bytes {
        None => Verdict::Unknown,
        Some(there) if needs.bytes() > there / 100 * MEMORY_PERCENT_MAX => Verdict::Bad,
        Some(_) => Verdict::Ok,
    };
    let gib = |bytes: u64| format!("{:.1}", bytes as f64 / f64::from(1 << 30));
    let of_server = match server {
        ServerKind::Ours => format!("the server {}, ", gib(needs.server_bytes)),
        ServerKind::Foreign => "the server unknown, ".to_owned(),
        ServerKind::Elsewhere => String::new(),
    };
    let there = room.memory_bytes.map_or_else(|| "unknown".to_owned(), |there| format!("{} GiB", gib(there)));
    Check {
        name: "client-memory",
        verdict,
        found: format!(
            "{} GiB, from measurements of a client: {of_server}the load {}, the kernel {}; available: {there}",
            gib(needs.bytes()),
            gib(needs.load_bytes),
            gib(needs.kernel_bytes)
        ),
        why: "A connection takes kernel memory at both ends, and a machine that runs out of it kills processes.",
        fix: "stop what uses memory, or use fewer clients",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEATS: Seats = Seats { cores: 1, descriptors: 20_000 };
    const MUCH: Room = Room {
        descriptors: Some(20_000),
        descriptors_raised: Some(20_000),
        files: Some(1 << 21),
        watches: Some(1 << 22),
        ports: Some(28_232),
        tracked: None,
        memory_bytes: Some(16 << 30),
    };

    fn found(changes: &str, room: &Room) -> Result<(), Unfit> {
        let text = format!(
            "name = \"t\"\ntitle = \"T\"\nrepeats = 1\n{changes}\n\
             scenario = {{ kind = \"rooms\", rooms = 100, rooms_per_client = 10, interval_us = 1000000, payload_bytes = 50 }}\n\
             phases = {{ connect_ms = 1, warm_up_ms = 0, idle_ms = 0, load_ms = 1000, drain_ms = 0, after_ms = 0 }}\n"
        );
        let experiment = experiments::parse(&text, None, "t").unwrap();
        experiment.cells().into_iter().try_for_each(|cell| check_cell(&experiment, cell, SEATS, Some(room)))
    }

    fn name(refused: Result<(), Unfit>) -> &'static str {
        match refused {
            Ok(()) => "",
            Err(Unfit::Room(check)) => check.name,
            Err(other) => panic!("{other:?}"),
        }
    }

    fn of(clients: u32) -> Needs {
        let mut experiment = experiments::load(SILENT, None).unwrap();
        experiment.subjects = vec![OURS.to_owned()];
        (experiment.transports, experiment.clients) = (vec![Transport::WebSocket], vec![clients]);
        needs(&experiment, experiment.cells().remove(0), SEATS).unwrap().0
    }

    #[test]
    fn each_want_is_told() {
        let is_bad = |room: &Room| {
            let all = checks(&of(50_000), ServerKind::Ours, room);
            all.into_iter().filter(|check| check.verdict == Verdict::Bad).map(|check| check.name).collect::<Vec<_>>()
        };
        let descriptors = Some(limits::descriptors().soft);
        let much = Room { descriptors, ..MUCH };
        assert_eq!(is_bad(&much), [""; 0]);
        for (name, room) in [
            ("descriptors", Room { descriptors: Some(100), ..much }),
            ("open-files", Room { files: Some(99_999), ..much }),
            ("watches", Room { watches: Some(99_999), ..much }),
            ("addresses", Room { ports: Some(9_999), ..much }),
            ("client-memory", Room { memory_bytes: Some(200 << 20), ..much }),
            ("conntrack", Room { tracked: Some(49_999), ..much }),
        ] {
            assert_eq!(is_bad(&room), [name]);
        }
        let few = checks(&of(50_000), ServerKind::Ours, &Room { ports: Some(19_999), ..much });
        assert_eq!(few.iter().filter(|check| check.verdict == Verdict::Warn).count(), 1, "more than half of them");
        let unknown = checks(&of(50_000), ServerKind::Ours, &Room::default());
        assert!(unknown.iter().all(|check| check.verdict == Verdict::Unknown));
    }

    #[test]
    fn a_foreign_server_that_cannot_hold_its_clients_is_refused_and_ours_is_not() {
        let cells =
            |subject: &str| format!("subjects = [\"{subject}\"]\ntransports = [\"websocket\"]\nclients = [50000]");
        // Whatever this process may open: the room says what a server may.
        let room = Room { descriptors: Some(limits::descriptors().soft), ..MUCH };
        assert_eq!(name(found(&cells("pushlab"), &room)), "");
        assert_eq!(name(found(&cells("cometd"), &room)), "descriptors");
        assert_eq!(name(found(&cells("here=http://127.0.0.1:1"), &room)), "", "it is somebody else's");
    }

    #[test]
    fn more_clients_than_there_may_be_are_refused_in_a_sentence() {
        let refused = check_clients(1_000_001, Transport::WebSocket).unwrap_err();
        assert!(refused.contains("1000001") && refused.contains("1000000"), "{refused}");
        assert!(check_clients(2, Transport::Sse).unwrap().iter().all(|check| check.verdict != Verdict::Bad));
    }
}
