//! A worker against the server: what passes between the two, told apart by direction.

use crate::worker;
use pushlab_wire::transport::Transport;
use pushlab_workload::payload::Content;
use pushlab_workload::plan::{ClientsIn, Phases, Plan, RequestHeaders, Sources, Target};
use pushlab_workload::result::LoadResult;
use pushlab_workload::scenario::{Scenario, Shape};
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

/// A server that ends with the test.
pub struct Served {
    process: Child,
    address: SocketAddr,
}

impl Served {
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_on("127.0.0.1:0", arguments)
    }

    pub fn start_on(address: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pushlab"));
        // As the lab starts it: pages of a browser that is the load come from another site.
        let open = [("PUSHLAB_ALLOW_ORIGIN", "*"), ("PUSHLAB_OPEN", "true")];
        let command = command.args(["serve", "--listen", address, "--json"]).args(arguments).envs(open);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
        Self { process, address: ready["listening"].as_str().unwrap().parse().unwrap() }
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Two clients, the first of which publishes.
    pub fn plan(&self, transport: Transport) -> Plan {
        Plan {
            target: Target::plain(self.address),
            transport,
            speaks: None,
            clients: 2,
            channel: "room".into(),
            scenario: Scenario::Chat {
                interval_ms: 50,
                payload_bytes: 60,
                payload_bytes_max: Some(160),
                publishers: Some(1),
                in_bursts: false,
            },
            poll_interval_ms: 20,
            poll_wait_s: 5,
            prober: None,
            phases: Phases {
                connect_ms: 20_000,
                warm_up_ms: 75,
                idle_ms: 0,
                load_ms: 500,
                drain_ms: 20_000,
                after_ms: 0,
            },
            connect_rate: 1_000,
            loops: 2,
            workers: 1,
            seed: 3,
            repetition: None,
            injected_delay_us: 0,
            shape: Shape::Steady,
            is_told_to_begin: false,
            turns: None,
            headers: RequestHeaders::Minimal,
            compression_from: None,
            content: Content::Filler,
            poll_newest_count: None,
            poll_after_publication_ms: None,
            user_list: false,
            receipts: true,
            backend_listen: None,
            backend_descriptor: None,
            sockets: pushlab_workload::plan::Sockets::default(),
            sources: Sources::Usual,
            instruments_from: None,
            prober_core: None,
            clients_in: ClientsIn::default(),
            page_scripts: None,
            drain_stall_ms: None,
        }
    }

    /// What that measures; `change` makes it another plan.
    pub fn measure(&self, transport: Transport, change: impl FnOnce(Plan) -> Plan) -> LoadResult {
        let plan = change(self.plan(transport));
        let mut run = worker::begin(&plan, |_| ());
        let result = worker::outcome(&mut run).unwrap();
        assert!(run.fleet_mut().child.wait().unwrap().success());
        result
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // A server that has ended already is what is wanted.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub fn assert_whole(result: &LoadResult, publications: u64, receivers: u64, transport: Transport) {
    let counts = (result.published, result.expected, result.delivered, result.lost);
    let expected = (publications, publications * receivers, publications * receivers, 0);
    assert_eq!(counts, expected, "{transport} {:?}", result.errors);
    assert!(result.errors.is_empty(), "{transport} {:?}", result.errors);
    assert_eq!((result.duplicated, result.reordered, result.unknown), (0, 0, 0), "{transport}");
}

#[test]
fn receipts_split_every_delivery_into_the_way_up_and_the_way_down() {
    let served = Served::start(&["--mark-receipts"]);
    for transport in Transport::ALL {
        let result = served.measure(transport, |plan| plan);
        assert_whole(&result, 10, 2, transport);
        let counts = (result.latency_up.count(), result.latency_down.count(), result.latency_own.count());
        assert_eq!(counts, (20, 20, 10), "{transport}");
        assert_eq!(result.deliveries.len(), 20, "{transport}");
        let mut rows: Vec<_> = result.deliveries.iter().map(|row| (row.sequence, row.receiver)).collect();
        rows.sort_unstable();
        let all: Vec<_> = (0..10).flat_map(|sequence| [(sequence, 0), (sequence, 1)]).collect();
        assert_eq!(rows, all, "{transport}");
        let mut receipts = [None; 10];
        for row in &result.deliveries {
            assert_eq!(row.publisher, 0);
            assert!(row.intended_ns <= row.receipt_ns && row.receipt_ns <= row.delivered_ns, "{transport} {row:?}");
            let receipt = receipts[row.sequence as usize].get_or_insert(row.receipt_ns);
            assert_eq!(*receipt, row.receipt_ns, "a publication is received once");
        }
        // What the histograms hold is what the rows say, to a bucket's width.
        let near = |quantile: Option<u64>, rows: &mut dyn Iterator<Item = u64>| {
            let (quantile, exact) = (quantile.unwrap(), rows.max().unwrap());
            assert!(quantile.abs_diff(exact) <= exact / 500 + 128, "{transport}: {quantile} {exact}");
        };
        let rows = || result.deliveries.iter();
        near(result.latency_up.quantile(1.0), &mut rows().map(|row| row.receipt_ns - row.intended_ns));
        near(result.latency_down.quantile(1.0), &mut rows().map(|row| row.delivered_ns - row.receipt_ns));
        near(result.latency.quantile(1.0), &mut rows().map(|row| row.delivered_ns - row.intended_ns));
        match transport {
            Transport::WebSocket | Transport::WebSocketPolling => assert_eq!(result.requests, 0, "{transport}"),
            // One for each message, and the receiver none. What was due in the warm-up, two at
            // most, may be sent when it is over, and so with the load.
            Transport::Sse | Transport::HttpStreaming => {
                assert!((1..=12).contains(&result.requests), "{transport}: {}", result.requests);
            }
            // The receiver asks too.
            Transport::LongPolling | Transport::Polling => {
                assert!(result.requests > result.requests_publishers, "{transport}");
            }
        }
        let is_asking = matches!(transport, Transport::LongPolling | Transport::Polling);
        let of_publisher = result.requests_publishers;
        assert!(
            if is_asking { of_publisher > 10 } else { of_publisher == result.requests },
            "{transport} {of_publisher}"
        );
        assert_eq!((result.connections_opened, result.reconnects), (0, 0), "{transport}");
    }
}

#[test]
fn echoes_are_marked_too_and_a_server_that_marks_nothing_leaves_nothing() {
    let marking = Served::start(&["--mark-receipts"]);
    let plain = Served::start(&[]);
    for transport in [Transport::WebSocket, Transport::Sse] {
        let scenario = Scenario::Echo { interval_ms: 50, payload_bytes: 33, streamed: false };
        let echo = |plan| Plan { scenario: scenario.clone(), ..plan };
        for (served, marks) in [(&marking, 20), (&plain, 0)] {
            let result = served.measure(transport, echo);
            assert_whole(&result, 20, 1, transport);
            assert_eq!((result.latency_up.count(), result.deliveries.len() as u64), (marks, marks), "{transport}");
            assert_eq!(result.latency_own.count(), 20, "{transport}");
        }
    }
}

#[test]
fn rooms_say_who_published_what_to_which() {
    let served = Served::start(&["--mark-receipts"]);
    for transport in Transport::ALL {
        let scenario = Scenario::Rooms { rooms: 4, rooms_per_client: 2, interval_us: 10_000, payload_bytes: 60 };
        let result = served.measure(transport, |plan| Plan { clients: 8, scenario, ..plan });
        assert_eq!((result.published, result.lost), (50, 0), "{transport} {:?}", result.errors);
        assert!(result.errors.is_empty(), "{transport} {:?}", result.errors);
        let rows = &result.deliveries;
        let counts = (result.latency_up.count(), result.latency_own.count(), rows.len() as u64);
        assert_eq!(counts, (result.delivered, 50, result.delivered), "{transport}");
        let own: std::collections::BTreeSet<_> = rows
            .iter()
            .filter(|row| row.publisher == row.receiver)
            .map(|row| (row.room.unwrap(), row.sequence))
            .collect();
        assert_eq!(own.len(), 50, "each publication comes back to its publisher over {transport}");
        let of_all: std::collections::BTreeSet<_> =
            rows.iter().map(|row| (row.room.unwrap(), row.sequence, row.publisher, row.receipt_ns)).collect();
        assert_eq!(of_all.len(), 50, "each is received once and from one client over {transport}");
    }
}

#[test]
fn a_browsers_requests_and_its_list_of_users_are_answered() {
    let served = Served::start(&["--mark-receipts"]);
    for transport in Transport::ALL {
        let user_list = transport != Transport::WebSocketPolling;
        let result = served.measure(transport, |plan| Plan { headers: RequestHeaders::Browser, user_list, ..plan });
        assert_whole(&result, 10, 2, transport);
        assert_eq!(result.latency_up.count(), 20, "{transport}");
        if transport == Transport::Polling {
            let each = result.bytes_sent / result.requests;
            assert!((400..1_000).contains(&each), "{each} bytes for a request");
        }
    }
}
