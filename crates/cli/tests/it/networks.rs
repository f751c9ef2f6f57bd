//! Experiments over networks, seen from outside: bytes against a capture, rights, and what a killed lab leaves.
//!
//! They need root, or a kernel that gives an ordinary user namespaces of its own, and `tshark`.

use crate::campaign::{Place, wait_for};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

const TRANSPORTS: &str =
    "[\"websocket\", \"sse\", \"http-streaming\", \"long-polling\", \"polling\", \"websocket-polling\"]";

/// Five clients, thirty bytes, a hundred publications, and a silent end in which everything arrives.
pub fn small(place: &Place, changes: &[(&str, &str)]) {
    let own = [
        ("transports", TRANSPORTS),
        ("networks", "[\"local\"]"),
        ("clients", "[5]"),
        ("prober", "false"),
        ("scenario", "{ kind = \"feed\", interval_us = 10000, payload_bytes = 30 }"),
        ("polling", "{ interval_ms = 50 }"),
        (
            "phases",
            "{ connect_ms = 10000, idle_ms = 200, warm_up_ms = 0, load_ms = 1000, drain_ms = 3000, after_ms = 200 }",
        ),
    ];
    let kept = own.into_iter().filter(|(key, _)| changes.iter().all(|(other, _)| other != key));
    place.experiment(&kept.chain(changes.iter().copied()).collect::<Vec<_>>());
}

/// Its runs, whose exit code a busy machine may make 8: a late link voids a run, and what it carried is counted all the same.
pub fn carried(place: &Place, arguments: &[&str]) -> (Value, Vec<Value>) {
    let (report, code) = place.report(&[&["--quiet"], arguments].concat());
    let runs = place.exported("test");
    assert!(code == 0 || code == 8 && runs.iter().any(is_late), "{code}: {report:#}");
    (report, runs)
}

fn is_late(of: &Value) -> bool {
    of["warnings"].to_string().contains("\"link-late\"")
}

fn load_of(run: &Value) -> &Value {
    &run["document"]["result"]["bytes_load"]
}

pub fn sum(of: &Value, names: &[&str]) -> i64 {
    names.iter().map(|name| of[name].as_i64().unwrap_or_else(|| panic!("{name} in {of}"))).sum()
}

/// Packets and bytes that tshark finds in a capture, for each of its interfaces.
fn totals_of(capture: &Path) -> [(i64, i64); 2] {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(capture).args(["-T", "fields", "-e", "frame.interface_name", "-e", "frame.len"]);
    let output = command.output().expect("tshark is needed to read captures; install it, e.g. apt-get install tshark");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut totals = [(0, 0); 2];
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let (interface, bytes) = line.split_once('\t').unwrap();
        let way = ["subject-to-load", "load-to-subject"].iter().position(|name| *name == interface).unwrap();
        totals[way].0 += 1;
        totals[way].1 += bytes.parse::<i64>().unwrap();
    }
    totals
}

#[test]
fn the_links_counters_equal_a_capture_and_the_clients_account_for_every_byte() {
    let place = Place::new("bytes");
    small(&place, &[]);
    let (report, runs) = carried(&place, &["--capture"]);
    assert_eq!(report["experiments"][0]["networks"], serde_json::json!(["local (nothing added)"]));
    assert_eq!(runs.len(), 6);
    for run in runs {
        let transport = run["cell"]["transport"].as_str().unwrap();
        let network = &run["document"]["network"];
        let capture = place.path(network["capture"]["file"].as_str().unwrap());
        let whole = &network["whole"];
        for (way, (packets, bytes)) in ["down", "up"].into_iter().zip(totals_of(&capture)) {
            let parties: Vec<&Value> = whole[way].as_object().unwrap().values().collect();
            let counted = |name: &str| parties.iter().map(|party| sum(party, &[name])).sum::<i64>();
            assert_eq!((counted("packets"), counted("bytes")), (packets, bytes), "{transport} {way}: link and tshark");
            assert!(bytes > 1_000, "{transport} {way}");
        }
        let uses = &run["document"]["result"]["bytes_whole"];
        for way in ["down", "up"] {
            let clients = &whole[way]["clients"];
            let told = sum(&uses[way], &["payload", "dialect", "framing", "heads", "tls"]);
            assert_eq!(
                told,
                sum(clients, &["payload_bytes"]),
                "{transport} {way}: clients and link, {uses:#} {clients:#}"
            );
            let parts = ["data_header_bytes", "payload_bytes", "retransmitted_bytes", "ack_bytes", "control_bytes"];
            assert_eq!(sum(clients, &parts), sum(clients, &["bytes"]), "{transport} {way}: {clients:#}");
        }
        if !matches!(transport, "polling" | "websocket-polling") {
            // The load begins after silence, so that nothing is under way at its borders.
            let (told, link) = (&run["document"]["result"]["bytes_load"], &network["load"]);
            for way in ["down", "up"] {
                let told = sum(&told[way], &["payload", "dialect", "framing", "heads", "tls"]);
                assert_eq!(told, sum(&link[way]["clients"], &["payload_bytes"]), "{transport} {way}: the load phase");
            }
        }
        // A poll may be under way when the load begins.
        let figures =
            ["bytes_unaccounted", "bytes_sum", "bytes_link"].map(|name| run["figures"][name]["value"].as_f64());
        if let [Some(unaccounted), Some(of_clients), Some(of_link)] = figures {
            let rest = unaccounted * sum(load_of(&run), &["deliveries"]) as f64;
            assert!(rest.abs() <= 5.0 * 700.0, "{transport}: {rest} bytes unaccounted for");
            assert!((of_clients + unaccounted - of_link).abs() < 0.01, "{transport}");
        } else {
            assert!(is_late(&run), "{run:#}");
        }
        let payload = sum(&uses["down"], &["payload"]);
        assert_eq!(payload, 30 * sum(uses, &["deliveries"]), "{transport}: nothing else is payload");
        assert_eq!(run["counts"]["lost"], 0, "{transport}");
    }
}

#[test]
fn tls_is_accounted_for_too() {
    let place = Place::new("tls-bytes");
    small(&place, &[("sockets", "{ tls = true }"), ("transports", "[\"websocket\", \"polling\"]")]);
    for run in carried(&place, &[]).1 {
        let (network, uses) = (&run["document"]["network"], &run["document"]["result"]["bytes_whole"]);
        for way in ["down", "up"] {
            let told = sum(&uses[way], &["payload", "dialect", "framing", "heads", "tls"]);
            let carried = sum(&network["whole"][way]["clients"], &["payload_bytes"]);
            assert_eq!(
                told, carried,
                "{} {way}: {uses:#} {:#} {:#}",
                run["cell"], network["whole"], run["document"]["result"]["errors"]
            );
            assert!(sum(&uses[way], &["tls"]) > 1_000, "handshakes of five clients: {uses:#}");
        }
    }
}

/// Network namespaces in which some process lives.
fn namespaces() -> BTreeSet<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let links = processes.filter_map(|entry| std::fs::read_link(entry.path().join("ns/net")).ok());
    links.map(|link| link.display().to_string()).collect()
}

fn interfaces() -> BTreeSet<String> {
    let all = std::fs::read_dir("/sys/class/net").unwrap().flatten();
    all.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Live processes whose environment has this line.
fn processes_with(line: &str) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let has_line = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == line.as_bytes())
    };
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(has_line).collect()
}

#[test]
fn a_killed_lab_leaves_no_namespace_interface_or_process() {
    let place = Place::new("killed-link");
    small(&place, &[("transports", "[\"websocket\"]"), ("repeats", "50"), ("sockets", "{ tls = true }")]);
    let before = interfaces();
    let mut lab = place.pushlab(&["run", "experiment.toml", "--quiet"]);
    let mut lab = lab.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mark = format!("PUSHLAB_STORE={}", place.store_path().display());
    let of = |pids: &[u32]| -> BTreeSet<String> {
        pids.iter()
            .filter_map(|pid| Some(std::fs::read_link(format!("/proc/{pid}/ns/net")).ok()?.display().to_string()))
            .collect()
    };
    // Lab, subject and worker, each in a namespace of its own.
    let made = wait_for("a run in namespaces", || {
        let own = of(&processes_with(&mark));
        (own.len() == 3).then_some(own)
    });
    let own = std::fs::read_link("/proc/self/ns/net").unwrap().display().to_string();
    lab.kill().unwrap();
    lab.wait().unwrap();
    let cleaned = place.prints(&["doctor", "--clean"]);
    println!("{cleaned}");
    wait_for("the end of what the lab started", || processes_with(&mark).is_empty().then_some(()));
    let left: Vec<String> = made.intersection(&namespaces()).filter(|name| **name != own).cloned().collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(interfaces(), before);
}

#[test]
fn a_machine_without_the_device_of_networks_has_its_code() {
    let place = Place::new("no-tun");
    small(&place, &[]);
    let run = place.pushlab(&["run", "experiment.toml"]);
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", "mount -t tmpfs none /dev/net && exec \"$@\"", "sh"]);
    command.arg(run.get_program()).args(run.get_args()).current_dir(place.path("")).stdin(Stdio::null());
    let output = command.env("PUSHLAB_STORE", place.store_path()).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{error}");
    assert!(error.contains("/dev/net/tun"), "{error}");
}

/// As an ordinary user, in a mount namespace of its own in which /dev/net/tun is as most distributions have it. The
/// machine's own file stays as it is.
#[test]
fn an_ordinary_user_measures_over_a_network() {
    let place = Place::new("ordinary");
    small(&place, &[("transports", "[\"sse\"]")]);
    if !pushlab_os::process::is_root() {
        carried(&place, &[]);
        return;
    }
    const SCRIPT: &str = "mount -t tmpfs none /dev/net && mknod -m 666 /dev/net/tun c 10 200 && \
                          chown -R 65534:65534 . && exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$@\"";
    let program = place.path("pushlab");
    // Where the tests are built nobody else may look.
    std::fs::copy(env!("CARGO_BIN_EXE_pushlab"), &program).unwrap();
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", SCRIPT, "sh"]).arg(&program);
    command.args(["run", "experiment.toml", "--quiet", "--json"]).current_dir(place.path("")).stdin(Stdio::null());
    command.env("PUSHLAB_STORE", place.store_path()).env("XDG_DATA_HOME", place.path(""));
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 8)), "{error}");
    let run = place.exported("test").remove(0);
    assert!(output.status.success() || is_late(&run), "{error}");
    let packets = sum(&run["document"]["network"]["whole"]["down"]["clients"], &["packets"]);
    assert!(packets > 100, "{packets}");
}
