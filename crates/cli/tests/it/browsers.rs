//! Clients in real browsers: nothing lost, limits and slowed timers seen, nothing left behind.

use crate::campaign::{Place, children, signal, wait_for, write_program};
use crate::receipts::{Served, assert_whole};
use crate::worker::{self, Run};
use pushlab_dialects::Dialect;
use pushlab_stats::histogram::Histogram;
use pushlab_wire::transport::Transport;
use pushlab_workload::plan::{
    ClientKind, ClientsIn, HttpVersion, Phase, Phases, Plan, Sockets, Speaks, Target, TlsTarget, Trust,
};
use pushlab_workload::scenario::Scenario;
use rcgen::{CertificateParams, KeyPair};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

const BROWSERS: [ClientKind; 2] = [ClientKind::Chromium, ClientKind::Firefox];

/// Length of a load phase in which a page posts even on a busy machine: what it posts later does not count.
const LOAD_MS: u64 = 3_000;

/// The ten publications over a longer time.
fn at_leisure(mut plan: Plan) -> Plan {
    if let Scenario::Chat { interval_ms, .. } = &mut plan.scenario {
        *interval_ms = LOAD_MS / 10;
    }
    plan.phases.load_ms = LOAD_MS;
    plan
}

fn within(kind: ClientKind, pages: u32) -> ClientsIn {
    ClientsIn::of(kind, pages)
}

#[test]
fn nothing_is_lost_over_any_transport_in_any_browser() {
    let served = Served::start(&[]);
    for kind in BROWSERS {
        for transport in Transport::ALL {
            let clients_in = within(kind, 2);
            let result =
                served.measure(transport, |plan| at_leisure(Plan { clients: 3, clients_in, receipts: false, ..plan }));
            assert_whole(&result, 10, 3, transport);
            assert_eq!(result.latency_own.count(), 10, "{kind:?} {transport}");
            assert_eq!((result.connect.count(), result.lateness.count()), (3, 10), "{kind:?} {transport}");
            let (error_ns, median_ns) = (result.clock_error_ns.unwrap(), result.latency.quantile(0.5).unwrap());
            // At most half of the fastest of many round trips; a delivery of usual speed takes longer than that, and
            // more so on a busy machine.
            assert!(error_ns > 0 && error_ns < median_ns, "{kind:?} {transport}: {error_ns} {median_ns}");
            if transport == Transport::Polling {
                // Each client every 20 ms, once though timers fire a little early; and the posts.
                let most = 3 * (LOAD_MS / 20 + 1) + result.published;
                assert!(result.requests <= most, "{kind:?}: {} of {most}", result.requests);
            }
            assert_eq!(result.requests_publishers > 0, !transport.is_bidirectional(), "{kind:?} {transport}");
        }
        let scenario = Scenario::Echo { interval_ms: 100, payload_bytes: 60, streamed: false };
        for transport in [Transport::WebSocket, Transport::Sse] {
            let scenario = scenario.clone();
            let result = served.measure(transport, |plan| Plan {
                scenario,
                clients_in: within(kind, 1),
                receipts: false,
                ..plan
            });
            assert_whole(&result, 10, 1, transport);
        }
    }
}

/// A library with an adapter, as a framework's client is, over our own server: publications go by `XMLHttpRequest`, and
/// the first connection of each client ends after a moment.
const LIBRARY: &str = r#"
globalThis.Toy = class {
  constructor(address, onFrame) {
    this.source = new EventSource(`${address}/sse?channel=room`);
    this.source.onopen = () => onFrame(["open"]);
    this.source.onmessage = ({ data }) => onFrame(JSON.parse(data));
  }
};
"#;
const ADAPTER: &str = r#"
let opened = 0;
globalThis.framework = {
  connect({ target, path, how, transport, publishes_to, channels, onSubscribed, onData, onClosed }) {
    if (path !== "/toy" || how !== "xhr" || transport !== "long-polling" || `${channels}` !== "room") return {};
    const toy = new globalThis.Toy(target, ([kind, ...rest]) => {
      if (kind === "open") onSubscribed();
      if (kind === "msg") onData(rest.at(-1));
    });
    opened += 1;
    if (opened <= CUTS) setTimeout(() => (toy.source.close(), onClosed("cut on purpose")), 100);
    const post = (route, data) => new Promise((resolve) => {
      const request = new XMLHttpRequest();
      request.open("POST", target + route);
      request.setRequestHeader("content-type", "application/json");
      request.onload = () => resolve(request.response);
      request.send(data);
    });
    return {
      publish: (channel, data) => post(`/publish?channel=${channel === publishes_to ? channel : "none"}`, data),
      echo: async (data) => onData(JSON.parse(await post("/echo", data))),
    };
  },
};
"#;

/// What a plan needs so that its pages speak as the library above does, whose first connections are cut.
fn in_library(plan: Plan, cuts: u32) -> Plan {
    let file = |name: &str, text: &str| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{:x}.{name}.js", fastrand::u64(..)));
        std::fs::write(&path, text).unwrap();
        path
    };
    let adapter = ADAPTER.replace("CUTS", &cuts.to_string());
    let speaks = Speaks { dialect: Dialect::SockJs, path: "/toy".into(), how: "xhr".into(), recording: None };
    let page_scripts = Some(vec![file("library", LIBRARY), file("adapter", &adapter)]);
    Plan { speaks: Some(speaks), page_scripts, receipts: false, ..plan }
}

#[test]
fn pages_are_clients_by_a_frameworks_library_and_its_requests_count() {
    let served = Served::start(&[]);
    for kind in BROWSERS {
        let over = Transport::LongPolling;
        let library = |plan| in_library(at_leisure(Plan { clients: 3, clients_in: within(kind, 2), ..plan }), 0);
        let result = served.measure(over, library);
        assert_whole(&result, 10, 3, over);
        assert_eq!((result.connect.count(), result.latency_own.count(), result.reconnects), (3, 10, 0), "{kind:?}");
        assert!((1..=12).contains(&result.requests), "{kind:?} {}", result.requests);
        assert_eq!(result.requests_publishers, 0, "one of three publishes, and whose request one is, is not known");
        let scenario = Scenario::Echo { interval_ms: LOAD_MS / 5, payload_bytes: 60, streamed: false };
        let library = |plan| in_library(at_leisure(Plan { scenario, clients_in: within(kind, 1), ..plan }), 0);
        let result = served.measure(over, library);
        assert_whole(&result, 10, 1, over);
        assert!(result.requests > 0 && result.requests_publishers == result.requests, "{kind:?}: all publish");
    }
}

#[test]
fn a_client_whose_framework_gives_up_opens_again() {
    let served = Served::start(&[]);
    for kind in BROWSERS {
        let result = served.measure(Transport::LongPolling, |plan| {
            let phases = Phases { connect_ms: 5_000, load_ms: 2_000, ..plan.phases.clone() };
            let plan = Plan { scenario: Scenario::Idle, phases, clients: 2, clients_in: within(kind, 1), ..plan };
            in_library(plan, 1)
        });
        assert_eq!((result.reconnects, result.unsubscribed), (1, 0), "{kind:?} {:?}", result.errors);
    }
}

#[test]
fn a_subject_without_a_client_for_pages_is_refused_with_those_that_have_one() {
    let (place, served) = (Place::new("no-page-client"), Served::start(&[]));
    let subjects = format!("[\"pushlab\", \"any=sockjs+http://{}/sockjs\"]", served.address());
    place.experiment(&[
        ("subjects", &subjects),
        ("transports", "[\"websocket\"]"),
        ("prober", "false"),
        ("scenario", "{ kind = \"chat\", interval_ms = 300, payload_bytes = 71 }"),
        ("clients_in", "{ kind = \"firefox\" }"),
    ]);
    let (code, error) = place.fails(&["run", "experiment.toml"]);
    assert!(code == 3 && error.contains("any has no client for a browser's pages over websocket"), "{code} {error}");
    assert!(error.contains("sockjs (websocket, eventsource, xhr-streaming, xhr)"), "{error}");
}

#[test]
fn the_seventh_event_stream_of_a_browser_starves_and_is_told() {
    let served = Served::start(&[]);
    for kind in BROWSERS {
        for (transport, unsubscribed) in [(Transport::Sse, 6), (Transport::WebSocket, 0)] {
            let result = served.measure(transport, |plan| Plan {
                clients: 12,
                scenario: Scenario::Idle,
                phases: Phases { connect_ms: 4_000, ..plan.phases.clone() },
                clients_in: within(kind, 3),
                receipts: false,
                ..plan
            });
            assert_eq!(result.unsubscribed, unsubscribed, "{kind:?} {transport} {:?}", result.errors);
            assert_eq!(result.connect.count(), 12 - unsubscribed, "{kind:?} {transport}");
        }
    }
}

/// A server that speaks TLS, and how clients of a plan reach it.
fn serve_secure(options: &[&str]) -> (Served, TlsTarget) {
    let key = KeyPair::generate().unwrap();
    let made = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().self_signed(&key).unwrap();
    let name = fastrand::u64(..);
    let file = |end: &str, text: String| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name:x}.{end}.pem"));
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (certificate, key) = (file("certificate", made.pem()), file("key", key.serialize_pem()));
    let served = Served::start(&[&["--tls-certificate", &certificate, "--tls-key", &key], options].concat());
    (served, TlsTarget { server_name: "127.0.0.1".to_owned(), trust: Trust::Certificate(made.pem()) })
}

#[test]
fn over_tls_browsers_speak_the_version_of_http_that_was_chosen() {
    let transports = [Transport::WebSocket, Transport::LongPolling];
    for (options, http_version, unsubscribed, transports) in
        [(&[][..], HttpVersion::Http2, 0, &transports[..]), (&["--no-http2"][..], HttpVersion::Http11, 6, &[][..])]
    {
        let (served, tls) = serve_secure(options);
        for kind in BROWSERS {
            let reached = |plan: Plan| Plan {
                target: Target { tls: Some(tls.clone()), ..plan.target },
                sockets: Sockets { tls: true, http_version, ..Sockets::default() },
                clients_in: within(kind, 3),
                receipts: false,
                ..plan
            };
            let many = served.measure(Transport::Sse, |plan| Plan {
                clients: 12,
                scenario: Scenario::Idle,
                phases: Phases { connect_ms: 4_000, ..plan.phases.clone() },
                ..reached(plan)
            });
            assert_eq!(many.unsubscribed, unsubscribed, "{kind:?} {http_version:?} {:?}", many.errors);
            for &transport in transports {
                let result = served.measure(transport, |plan| Plan { clients: 3, ..reached(plan) });
                assert_whole(&result, 10, 3, transport);
            }
        }
    }
}

#[test]
fn a_browser_takes_no_other_certificate() {
    let (served, _) = serve_secure(&[]);
    let (_other, tls) = serve_secure(&[]);
    for kind in BROWSERS {
        let plan = served.plan(Transport::Sse);
        let plan = Plan {
            target: Target { tls: Some(tls.clone()), ..plan.target },
            sockets: Sockets { tls: true, http_version: HttpVersion::Http2, ..Sockets::default() },
            clients_in: within(kind, 1),
            receipts: false,
            phases: Phases { connect_ms: 2_000, ..plan.phases },
            ..plan
        };
        let mut run = worker::begin(&plan, |_| ());
        let why = worker::outcome(&mut run).unwrap_err().to_string();
        assert!(why.contains("0 of 2 clients were subscribed"), "{kind:?} {why}");
    }
}

#[test]
fn timers_of_hidden_pages_are_slowed_down() {
    let served = Served::start(&[]);
    for kind in BROWSERS {
        let requests_of = |clients_in| {
            let result = served.measure(Transport::Polling, |plan| Plan {
                scenario: Scenario::Idle,
                poll_interval_ms: 50,
                phases: Phases { idle_ms: 1_000, load_ms: 3_000, ..plan.phases.clone() },
                clients_in,
                receipts: false,
                ..plan
            });
            result.requests
        };
        let hidden_in = ClientsIn { hidden: true, ..within(kind, 2) };
        let (visible, hidden) = (requests_of(within(kind, 2)), requests_of(hidden_in));
        assert!(visible > 4 * hidden && hidden > 0, "{kind:?}: {visible} visible and {hidden} hidden");
        if kind == ClientKind::Firefox {
            let tuned = requests_of(ClientsIn { hidden_timer_min_ms: Some(4), ..hidden_in });
            assert!(tuned > 3 * hidden, "{tuned} with short timers, {hidden} without");
        }
    }
}

/// A worker whose browser has so many pages, in a folder for temporary files.
fn working(served: &Served, clients_in: ClientsIn, temporary: &Path, path: Option<&Path>) -> Run {
    let plan = served.plan(Transport::WebSocket);
    let phases = Phases { load_ms: 60_000, ..plan.phases.clone() };
    let plan = Plan { clients: 3, phases, clients_in, receipts: false, ..plan };
    worker::begin(&plan, |command| {
        command.env("TMPDIR", temporary);
        if let Some(path) = path {
            let own = std::env::var("PATH").unwrap();
            command.env("PATH", format!("{}:{own}", path.display()));
        }
    })
}

/// A worker whose browser's load has begun.
fn loading(served: &Served, clients_in: ClientsIn, temporary: &Path) -> Run {
    let mut run = working(served, clients_in, temporary, None);
    worker::until(&mut run, Phase::Load);
    run
}

/// A folder for temporary files of a short name: sockets are made in it.
fn temporary(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("{name}{:x}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    folder
}

/// Processes whose command line names a folder.
fn naming(folder: &Path) -> usize {
    let word = folder.to_str().unwrap();
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(word)).count()
}

/// Longest time from a fault to the recorded failure: a browser starts and connects before it is noticed.
const FAILS_WITHIN: Duration = Duration::from_secs(60);

/// Why a worker fails, which it does in time, and leaves nothing.
fn failure(mut run: Run, temporary: &Path) -> String {
    let began = Instant::now();
    let reason = worker::outcome(&mut run).unwrap_err().to_string();
    assert!(began.elapsed() < FAILS_WITHIN, "{:?}", began.elapsed());
    assert!(!run.fleet_mut().child.wait().unwrap().success());
    assert_eq!(std::fs::read_dir(temporary).unwrap().count(), 0, "the profile is gone");
    assert_eq!(naming(temporary), 0, "and all of its processes");
    std::fs::remove_dir(temporary).unwrap();
    reason
}

/// The browser of a worker.
fn browser_of(worker: &Child) -> u32 {
    wait_for("the browser", || children(worker, "pushlab-browser").first().copied())
}

#[test]
fn a_browser_that_is_killed_is_a_failure_and_leaves_nothing() {
    let served = Served::start(&[]);
    for kind in BROWSERS {
        let temporary = temporary("b");
        let run = loading(&served, within(kind, 3), &temporary);
        signal(browser_of(&run.fleet().child), "KILL");
        let reason = failure(run, &temporary);
        assert!(reason.contains("ended with signal: 9"), "{reason}");
    }
}

#[test]
fn a_browser_that_is_stopped_is_a_failure_and_leaves_nothing() {
    let served = Served::start(&[]);
    for (kind, hidden) in [(ClientKind::Chromium, false), (ClientKind::Firefox, true)] {
        let temporary = temporary("s");
        let run = loading(&served, ClientsIn { hidden, ..within(kind, 2) }, &temporary);
        signal(browser_of(&run.fleet().child), "STOP");
        let reason = failure(run, &temporary);
        assert!(reason.contains("has said nothing for"), "{reason}");
    }
}

/// Puts a program in the place of Firefox.
fn instead_of_firefox(folder: &Path, script: &str) -> PathBuf {
    let programs = folder.with_extension("bin");
    std::fs::create_dir(&programs).unwrap();
    let program = programs.join("firefox-esr");
    write_program(&program, script);
    programs
}

#[test]
fn a_browser_that_never_reports_is_a_failure_and_leaves_nothing() {
    let served = Served::start(&[]);
    let temporary = temporary("n");
    let programs = instead_of_firefox(&temporary, "#!/bin/sh\necho 'no display' >&2\nsleep 600 &\nwait");
    let run = working(&served, within(ClientKind::Firefox, 2), &temporary, Some(&programs));
    let reason = failure(run, &temporary);
    assert!(reason.contains("0 of 2 pages of firefox were ready within"), "{reason}");
    assert!(reason.contains("it said no display"), "{reason}");
    std::fs::remove_dir_all(programs).unwrap();
}

/// A browser whose only page is hidden, or hidden and shown again, after its first round trips.
const TURNING: &str = r#"#!/bin/sh
for url; do :; done
at=0
say() {
  curl -sf -o /dev/null "${url%%/?page*}/report?page=0&sent=$at.2&answered=$at.1" --data "{
    \"hidden\": $1, \"visibility_changes\": $2, \"subscribed\": 1, \"deliveries\": [], \"published\": [],
    \"requests\": [], \"connects\": [], \"gaps\": 0, \"reconnects\": 0, \"errors\": [] }"
  at=$((at + 1))
}
while [ $at -lt 100 ]; do say false 0; done
while say NOW; do sleep 0.1; done
sleep 600 & wait
"#;

#[test]
fn a_page_that_is_hidden_or_shown_meanwhile_is_a_failure() {
    let served = Served::start(&[]);
    for now in ["true 1", "false 2"] {
        let temporary = temporary("v");
        let programs = instead_of_firefox(&temporary, &TURNING.replace("NOW", now));
        let run = working(&served, within(ClientKind::Firefox, 1), &temporary, Some(&programs));
        let reason = failure(run, &temporary);
        assert!(reason.contains("page 0 of firefox did not stay visible"), "{now}: {reason}");
        std::fs::remove_dir_all(programs).unwrap();
    }
}

#[test]
fn a_browser_stands_back_for_its_worker_and_cannot_change_that() {
    let served = Served::start(&[]);
    for kind in BROWSERS {
        let temporary = temporary("p");
        let mut run = loading(&served, within(kind, 1), &temporary);
        let [own, browsers] = [run.fleet().child.id(), browser_of(&run.fleet().child)].map(niceness_in_group);
        let least = own.iter().max().unwrap() + 5;
        assert!(browsers.len() > 20, "{kind:?}: {browsers:?}");
        assert!(browsers.iter().all(|&nice| nice >= least), "{kind:?}: {browsers:?}, {least} wanted");
        let worker = &mut run.fleet_mut().child;
        worker.kill().unwrap();
        worker.wait().unwrap();
        wait_for("the end of the browser", || (naming(&temporary) == 0).then_some(()));
        std::fs::remove_dir(&temporary).unwrap();
    }
}

/// Of each thread in the process group of a process: fields 5 and 19 of `/proc/PID/task/TID/stat`, proc(5).
fn niceness_in_group(leader: u32) -> Vec<i64> {
    let fields = |path: &Path| -> Option<(i64, i64)> {
        let line = std::fs::read_to_string(path.join("stat")).ok()?;
        let fields: Vec<&str> = line.rsplit_once(')')?.1.split_whitespace().collect();
        Some((fields[2].parse().ok()?, fields[16].parse().ok()?))
    };
    let group = fields(Path::new(&format!("/proc/{leader}"))).unwrap().0;
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let threads = all.filter_map(|entry| std::fs::read_dir(entry.path().join("task")).ok()).flatten().flatten();
    threads.filter_map(|entry| fields(&entry.path())).filter(|(of, _)| *of == group).map(|(_, nice)| nice).collect()
}

#[test]
fn a_killed_worker_leaves_neither_browser_nor_profile() {
    let served = Served::start(&[]);
    for kind in BROWSERS {
        let temporary = temporary("w");
        let mut run = loading(&served, within(kind, 1), &temporary);
        assert!(naming(&temporary) >= 2, "the browser, and who cleans up after it");
        let worker = &mut run.fleet_mut().child;
        worker.kill().unwrap();
        worker.wait().unwrap();
        wait_for("the end of the browser", || (naming(&temporary) == 0).then_some(()));
        std::fs::remove_dir(&temporary).unwrap();
    }
}

#[test]
fn a_path_that_is_too_long_for_sockets_is_said() {
    let place = Place::new("a-name-that-is-so-long-that-no-address-of-a-socket-could-hold-it");
    place.experiment(&[("transports", "[\"websocket\"]"), ("clients_in", "{ kind = \"chromium\" }")]);
    let output = place.pushlab(&["run", "experiment.toml", "--quiet"]).env("TMPDIR", place.path("")).output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", String::from_utf8_lossy(&output.stderr));
    let why = place.exported("test")[0]["outcome"].to_string();
    assert!(why.contains("set TMPDIR to a shorter one"), "{why}");
}

#[test]
fn a_browser_that_is_not_there_is_left_out_with_what_to_install() {
    let place = Place::new("no-browser");
    let variants = "[{ name = \"native\" }, { name = \"firefox\", clients_in = { kind = \"firefox\" } }]";
    place.experiment(&[("transports", "[\"websocket\"]"), ("variants", variants)]);
    let nowhere = place.path("nowhere");
    let output = place.pushlab(&["run", "experiment.toml", "--quiet"]).env("PATH", &nowhere).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{error}");
    assert!(error.contains("left out: test, variant firefox: firefox is not on the PATH"), "{error}");
    assert!(error.contains("apt-get install firefox-esr"), "{error}");
    assert_eq!(place.runs_done(), 1);
    place.experiment(&[("clients_in", "{ kind = \"chromium\" }")]);
    let output = place.pushlab(&["run", "experiment.toml"]).env("PATH", &nowhere).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("nothing can be measured") && error.contains("apt-get install chromium"), "{error}");
}

#[test]
fn an_experiment_compares_a_browser_with_native_clients() {
    let place = Place::new("browser");
    let variants = "[{ name = \"native\" }, { name = \"chromium\", clients_in = { kind = \"chromium\", pages = 2 } }]";
    let columns = "[\"bytes_server\", \"bytes_per_delivery\", \"clock_error\", \"generator_cpu\"]";
    place.experiment(&[
        ("transports", "[\"sse\"]"),
        ("variants", variants),
        ("columns", columns),
        ("prober", "false"),
        ("scenario", "{ kind = \"feed\", interval_us = 20000, payload_bytes = 173 }"),
        (
            "phases",
            "{ connect_ms = 10000, idle_ms = 100, warm_up_ms = 300, load_ms = 2000, drain_ms = 3000, after_ms = 50 }",
        ),
    ]);
    let (report, code) = place.report(&["--quiet"]);
    assert_eq!(code, 0, "{report:#}");
    let runs = place.exported("test");
    let run = |variant: &str| runs.iter().find(|run| run["cell"]["variant"] == variant).unwrap();
    let figure = |variant: &str, name: &str| run(variant)["figures"][name]["value"].as_f64();
    let bytes = ["native", "chromium"].map(|variant| figure(variant, "bytes_server").unwrap());
    assert!((bytes[1] / bytes[0] - 1.0).abs() < 0.1, "an event is as large to either: {bytes:?}");
    assert_eq!(figure("chromium", "bytes_per_delivery"), None);
    assert_eq!(figure("native", "clock_error"), None);
    assert!(figure("chromium", "clock_error").unwrap() > 0.0);
    let cpu = ["native", "chromium"].map(|variant| figure(variant, "generator_cpu").unwrap());
    assert!(cpu[1] > cpu[0], "the browser's CPU time is in it: {cpu:?}");
}

#[test]
fn pages_behind_a_network_reach_the_server_through_it() {
    let place = Place::new("far-pages");
    let variant = |name: &str, kind: &str| format!("{{ name = \"{name}\", clients_in = {{ kind = \"{kind}\" }} }}");
    let variants = ["native", "chromium", "firefox"].map(|kind| variant(kind, kind)).join(", ");
    place.experiment(&[
        ("transports", "[\"websocket\", \"polling\"]"),
        ("variants", &format!("[{variants}]")),
        ("networks", "[\"far\"]"),
        ("network.far", "{ down = { delay_ms = 60 }, up = { delay_ms = 40 } }"),
        ("clients", "[3]"),
        ("polling", "{ interval_ms = 100 }"),
        ("prober", "false"),
        ("scenario", "{ kind = \"chat\", interval_ms = 200, payload_bytes = 100 }"),
        (
            "phases",
            "{ connect_ms = 20000, idle_ms = 100, warm_up_ms = 500, load_ms = 2000, drain_ms = 20000, after_ms = 50 }",
        ),
    ]);
    let (report, code) = place.report(&["--quiet"]);
    assert_eq!(code, 0, "{report:#}");
    let runs = place.exported("test");
    assert_eq!(runs.len(), 6);
    for run in &runs {
        let cell = &run["cell"];
        let figure = |name: &str| run["figures"][name]["value"].as_f64();
        // Of the histogram: the figures are withheld where a busy machine let packets out late.
        let latency: Histogram = serde_json::from_value(run["histograms"]["latency"].clone()).unwrap();
        let median = latency.quantile_ms(0.5).unwrap();
        assert!(median >= 100.0, "{cell}: up and down take 100 ms, not {median}");
        assert_eq!((run["counts"]["lost"].as_u64(), figure("subscribed")), (Some(0), Some(3.0)), "{cell}");
        // All of it went over the link, and as the clients'.
        let link = &run["document"]["network"]["load"];
        let payload = |way: &str, whose: &str| link[way][whose]["payload_bytes"].as_u64().unwrap();
        let deliveries = run["document"]["result"]["bytes_load"]["deliveries"].as_u64().unwrap();
        let delivered = run["counts"]["delivered"].as_u64().unwrap();
        // What was published in the warm-up may come in the load phase: at most three messages of each of three clients.
        assert!((delivered..=delivered + 27).contains(&deliveries), "{cell}: {deliveries} and {delivered}");
        assert!(payload("down", "clients") > 100 * deliveries, "{cell}: {link:#}");
        assert_eq!((payload("up", "instruments"), payload("down", "instruments")), (0, 0), "{cell}");
        assert!(figure("bytes_link").unwrap() > 100.0 && figure("packets_per_delivery").unwrap() > 0.1, "{cell}");
        let is_native = cell["variant"] == "native";
        assert_eq!(figure("bytes_payload").is_some(), is_native, "{cell}: a browser does not tell what its bytes are");
    }
    // A delivery takes as many bytes, whoever reads them. How many packets they fill is up to a busy machine.
    let bytes = |variant: &str| {
        let is_it = |run: &&Value| run["cell"]["variant"] == variant && run["cell"]["transport"] == "websocket";
        let document = &runs.iter().find(is_it).unwrap()["document"];
        document["network"]["load"]["down"]["clients"]["payload_bytes"].as_f64().unwrap()
            / document["result"]["bytes_load"]["deliveries"].as_f64().unwrap()
    };
    for browser in ["chromium", "firefox"] {
        let ratio = bytes(browser) / bytes("native");
        assert!((0.8..1.25).contains(&ratio), "{browser}: {ratio}");
    }
}
