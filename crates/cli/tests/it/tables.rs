//! More clients than a table of descriptors holds: server and load get several.

use crate::campaign::{Place, children, signal, wait_for};
use serde_json::Value;
use std::process::{Command, Stdio};

/// Descriptors of a table: what the lab itself takes, and little more.
const TABLE: u64 = 300;

/// `pushlab` and all that it starts, with tables that are so small.
fn pushlab(place: &Place, arguments: &[&str]) -> Command {
    let usual = place.pushlab(arguments);
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -n {TABLE}; exec \"$0\" \"$@\"")]).arg(usual.get_program());
    command.args(usual.get_args()).current_dir(usual.get_current_dir().unwrap()).stdin(Stdio::null());
    command.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

#[test]
fn server_and_load_get_as_many_tables_as_the_clients_take() {
    let place = Place::new("tables");
    place.experiment(&[
        ("transports", "[\"websocket\"]"),
        ("clients", "[400]"),
        ("scenario", "{ kind = \"rooms\", rooms = 20, rooms_per_client = 5, interval_us = 10000, payload_bytes = 71 }"),
    ]);
    let output = pushlab(&place, &["run", "experiment.toml", "--json", "--quiet"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let run = &place.exported("test")[0];
    let count = |name: &str| run["counts"][name].as_u64().unwrap_or_else(|| panic!("{name}: {run:#}"));
    // All of them all the time: more than one table holds, so they were in several at either end.
    assert_eq!((count("delivered"), count("lost"), count("reconnects")), (count("expected"), 0, 0));
    assert_eq!(run["document"]["plan"]["clients"], 400);
    assert_eq!(run["document"]["plan"]["loops"], 2);
    let command: Vec<&str> =
        run["document"]["subject_command"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(command.contains(&"--cores=3"), "{command:?}");
}

#[test]
fn what_no_table_holds_is_refused_before_anything_runs() {
    let place = Place::new("too-many");
    place.experiment(&[("transports", "[\"websocket\"]"), ("clients", "[30000]")]);
    let said = |arguments: &[&str]| {
        let output = pushlab(&place, arguments).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    };
    let sentence = "each of 64 loops needs 485 descriptors and may hold 300: raise ulimit -n";
    let (code, refusal) = said(&["run", "experiment.toml"]);
    assert!(code == Some(3) && refusal.contains(sentence), "{refusal}");
    assert!(place.rows().is_empty());
    let (code, told) = said(&["doctor", "--clients", "30000"]);
    assert!(code == Some(7) && told.contains(sentence), "{told}");
    let (_, told) = said(&["doctor", "--clients", "1000", "--transport", "sse"]);
    let fits = "4 event loops of the load with 266 descriptors each, 6 event loops of the server with 183 each; a table holds 300";
    assert!(told.contains(fits), "{told}");
    assert_eq!(said(&["doctor", "--clients", "9", "--transport", "pigeon"]).0, Some(2));
}

#[test]
fn who_interrupts_while_clients_connect_does_not_wait_for_them() {
    let place = Place::new("connecting");
    let (clients, rate) = (("clients", "[4000]"), ("connect_rate", "40"));
    let phases =
        "{ connect_ms = 200000, idle_ms = 50, warm_up_ms = 50, load_ms = 400, drain_ms = 3000, after_ms = 50 }";
    place.experiment(&[("transports", "[\"websocket\"]"), ("phases", phases), clients, rate]);
    let lab = place.pushlab(&["run", "experiment.toml"]).stderr(Stdio::piped()).spawn().unwrap();
    let worker = wait_for("the worker", || children(&lab, "worker").first().copied());
    let server = children(&lab, "serve")[0];
    let open = |pid: u32| std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
    // More than it has without clients.
    wait_for("connections", || (open(server) > 100).then_some(()));
    signal(lab.id(), "INT");
    let output = lab.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", String::from_utf8_lossy(&output.stderr));
    let is_there = |pid: u32| std::path::Path::new(&format!("/proc/{pid}")).exists();
    assert!(!is_there(worker) && !is_there(server) && place.rows().is_empty());
}
