//! What goes wrong in a fleet is told by name, and the rest goes on.

use crate::campaign::{Place, children, signal, wait_for};
use crate::fleet::Fleet;
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Longer than anything takes to be found out.
const PHASES: &str =
    "{ connect_ms = 10000, idle_ms = 100, warm_up_ms = 100, load_ms = 20000, drain_ms = 3000, after_ms = 50 }";

/// The worker of this name, which the fleet started itself.
fn joiner(fleet: &Fleet<'_>, name: &str) -> u32 {
    *children(&fleet.up, name).first().expect("it lives")
}

/// The process that hosts a run for a worker.
pub fn hosting(worker: u32) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{worker}/task/{worker}/children")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// A run on two of a fleet's workers, whose clients connect.
fn begin(place: &Place, fleet: &Fleet<'_>) -> Child {
    place.experiment(&[("transports", "[\"websocket\"]"), ("phases", PHASES)]);
    let arguments = [&["run", "experiment.toml", "--quiet"], &fleet.arguments("2")[..]].concat();
    let mut command = place.pushlab(&arguments);
    let run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Of the two, the second has no other threads than these before its clients connect.
    let has_loops =
        |process: u32| std::fs::read_dir(format!("/proc/{process}/task")).is_ok_and(|task| task.count() > 2);
    wait_for("the load", || hosting(joiner(fleet, "worker-2")).filter(|process| has_loops(*process)));
    run
}

/// How the only run of a result was tried before it came to its end.
pub fn earlier(place: &Place, result: &str) -> Vec<Value> {
    let runs = place.exported(result);
    runs[0]["earlier"].as_array().unwrap_or_else(|| panic!("{:#}", runs[0])).clone()
}

#[test]
fn a_worker_that_dies_or_hangs_is_named_and_replaced() {
    for (victim, how, why) in [
        ("joiner", "KILL", "worker-1: it has said nothing for 5 s"),
        ("process", "KILL", "worker-1: its process ended with signal 9"),
        ("joiner", "STOP", "worker-1: it has said nothing for 5 s"),
        ("process", "STOP", "worker-1: worker 1 of 2 said nothing within 8 s"),
    ] {
        let place = Place::new(&format!("fleet-{victim}-{how}"));
        let fleet = Fleet::up(&place, 3);
        let run = begin(&place, &fleet);
        let worker = joiner(&fleet, "worker-1");
        let process = hosting(worker).unwrap();
        signal(if victim == "joiner" { worker } else { process }, how);
        let output = run.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{victim} {how}: {said}");
        let earlier = earlier(&place, "1");
        assert_eq!(earlier.len(), 1, "{victim} {how}: {earlier:#?}");
        let detail = earlier[0]["detail"].as_str().unwrap();
        assert!(detail.contains(why), "{victim} {how}: {detail}");
        if (victim, how) == ("joiner", "STOP") {
            signal(worker, "CONT");
        } else {
            wait_for("the process to end", || (!Path::new(&format!("/proc/{process}")).exists()).then_some(()));
        }
    }
}

#[test]
fn workers_of_a_lab_that_dies_are_free_again_and_end_what_they_did() {
    let place = Place::new("fleet-lab");
    let fleet = Fleet::up(&place, 2);
    let mut run = begin(&place, &fleet);
    let processes: Vec<u32> =
        ["worker-1", "worker-2"].iter().map(|name| hosting(joiner(&fleet, name)).unwrap()).collect();
    for process in &processes {
        let told = |what: &str| std::fs::read_to_string(format!("/proc/{process}/{what}")).unwrap();
        let (environment, arguments) = (told("environ"), told("cmdline"));
        let clock = environment.split('\0').find_map(|variable| variable.strip_prefix("PUSHLAB_LAB_CLOCK="));
        let (_, word) = clock.and_then(|clock| clock.split_once(' ')).expect(&environment);
        assert!(!arguments.contains(word), "{arguments}");
    }
    signal(run.id(), "KILL");
    run.wait().unwrap();
    fleet.await_workers(2);
    for process in processes {
        wait_for("the process to end", || (!Path::new(&format!("/proc/{process}")).exists()).then_some(()));
    }
}

#[test]
fn a_broker_that_dies_ends_the_campaign_which_says_how_to_go_on() {
    let place = Place::new("fleet-broker");
    let fleet = Fleet::up(&place, 2);
    let run = begin(&place, &fleet);
    let broker = *children(&fleet.up, "nats-server").first().unwrap();
    signal(broker, "KILL");
    let output = run.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("start it again") && said.contains("the same command"), "{said}");
    assert_eq!(place.runs_done(), 0, "no run counts as done that had no workers");
}

#[test]
fn workers_that_cannot_be_used_are_told_with_the_reason() {
    let place = Place::new("fleet-unfit");
    let mut fleet = Fleet::up(&place, 1);
    let limited = |command: &mut Command| {
        let mut limited = Command::new("sh");
        limited.args(["-c", "ulimit -n 64; exec \"$0\" \"$@\""]);
        limited.arg(command.get_program()).args(command.get_args());
        *command = limited;
    };
    fleet.join("narrow", limited);
    place.experiment(&[("transports", "[\"websocket\"]"), ("clients", "[20000]"), ("loops", "2")]);
    let arguments = [&["run", "experiment.toml"], &fleet.arguments("2")[..]].concat();
    let (code, said) = place.fails(&arguments);
    assert!(code == 1 && said.contains("1 of 2 workers are there"), "{code}: {said}");
    assert!(said.contains("narrow has 64 descriptors"), "{said}");
}
