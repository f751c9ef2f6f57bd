//! What goes wrong in a fleet is told by name, and the rest goes on.

use crate::campaign::{Place, children, signal, wait_for};
use crate::fleet::Fleet;
use crate::receipts::Served;
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// The worker of this name, which the fleet started itself.
fn joiner(fleet: &Fleet<'_>, name: &str) -> u32 {
    *children(&fleet.up, name).first().expect("it lives")
}

/// The process that hosts a run for a worker.
pub fn hosting(worker: u32) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{worker}/task/{worker}/children")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// A run in a phase: its clients connect for two seconds, and the drain lasts until all have polled once more.
fn begin(place: &Place, subject: &str, arguments: &[&str], phase: &str) -> Child {
    place.experiment(&[
        ("subjects", &format!("[{subject:?}]")),
        ("transports", "[\"polling\"]"),
        ("polling", "{ interval_ms = 1500 }"),
        ("clients", "[4]"),
        ("connect_rate", "2"),
        ("scenario", "{ kind = \"chat\", interval_ms = 100, payload_bytes = 71 }"),
        (
            "phases",
            "{ connect_ms = 10000, idle_ms = 100, warm_up_ms = 100, load_ms = 3000, drain_ms = 6000, after_ms = 50 }",
        ),
    ]);
    // It is interrupted when its standard input ends, which is for as long as the child lives.
    let mut command = place.pushlab(&[&["run", "experiment.toml", "--live-lines"], arguments].concat());
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut run = piped.spawn().unwrap();
    let mut lines = BufReader::new(run.stdout.take().unwrap()).lines().map_while(Result::ok);
    let is_in = |line: &String| {
        let state: Value = serde_json::from_str(line).unwrap();
        state["run"]["phase"] == phase
    };
    if lines.find(is_in).is_none() {
        panic!("it never came to {phase}: {}", end_of(run).1);
    }
    // Read to the end: what cannot be written would be waited with.
    std::thread::spawn(move || lines.for_each(drop));
    run
}

/// The exit code of a run and what it said, as it ends by itself.
fn end_of(mut run: Child) -> (i32, String) {
    // Waiting would close it.
    let input = run.stdin.take();
    let Output { status, stderr, .. } = run.wait_with_output().unwrap();
    drop(input);
    (status.code().unwrap(), String::from_utf8_lossy(&stderr).into_owned())
}

/// How the only run of a result was tried before it came to its end.
pub fn earlier(place: &Place, result: &str) -> Vec<Value> {
    let runs = place.exported(result);
    runs[0]["earlier"].as_array().unwrap_or_else(|| panic!("{:#}", runs[0])).clone()
}

/// Waits until a process has ended.
fn await_end(process: u32) {
    wait_for("the process to end", || (!Path::new(&format!("/proc/{process}")).exists()).then_some(()));
}

/// What happens to one of two workers, in a phase of a run; a third one takes its place.
fn a_worker_is_lost(victim: &str, how: &str, phase: &str, why: &str) {
    let place = Place::new(&format!("fleet-{victim}-{how}-{phase}"));
    let fleet = Fleet::up(&place, 3);
    let run = begin(&place, "pushlab", &fleet.arguments("2"), phase);
    let worker = joiner(&fleet, "worker-1");
    is_lost(&place, run, worker, (victim, how, phase), why);
}

/// Something happens to a worker, an agent or its process of a run: it is named, and the run is tried again without it.
fn is_lost(place: &Place, run: Child, joiner: u32, (victim, how, phase): (&str, &str, &str), why: &str) {
    let process = hosting(joiner).unwrap();
    signal(if victim == "joiner" { joiner } else { process }, how);
    let (code, said) = end_of(run);
    assert_eq!(code, 0, "{victim} {how} {phase}: {said}");
    let earlier = earlier(place, "1");
    assert_eq!(earlier.len(), 1, "{victim} {how} {phase}: {earlier:#?}");
    let detail = earlier[0]["detail"].as_str().unwrap();
    assert!(detail.contains(why), "{victim} {how} {phase}: {detail}");
    // What it started goes on for as long as it hangs; a process that hangs is killed.
    if (victim, how) == ("joiner", "STOP") {
        signal(joiner, "CONT");
    }
    await_end(process);
}

#[test]
fn a_worker_that_dies_is_named_and_replaced() {
    for phase in ["connect", "load", "drain"] {
        a_worker_is_lost("joiner", "KILL", phase, "worker-1: it has said nothing for 5 s");
    }
    a_worker_is_lost("process", "KILL", "load", "worker-1: its process ended with signal 9");
}

#[test]
fn a_worker_that_hangs_is_named_and_replaced() {
    for phase in ["connect", "load", "drain"] {
        a_worker_is_lost("joiner", "STOP", phase, "worker-1: it has said nothing for 5 s");
    }
    a_worker_is_lost("process", "STOP", "load", "worker-1: worker 1 of 2 said nothing within 8 s");
}

/// A fleet with so many workers and an agent, and a server beside that, as a subject.
fn beside<'a>(place: &'a Place, workers: usize, agent: &str) -> (Fleet<'a>, u32, Served, String) {
    let mut fleet = Fleet::up(place, workers);
    let agent = fleet.join_as("agent", agent, |_| {});
    let served = Served::start(&[]);
    let subject = format!("live=http://{}", served.address());
    (fleet, agent, served, subject)
}

/// What happens to one of two agents beside a server, in a phase of a run; the other one takes its place.
fn an_agent_is_lost(victim: &str, how: &str, phase: &str, why: &str) {
    let place = Place::new(&format!("agent-{victim}-{how}-{phase}"));
    let (mut fleet, agent, _served, subject) = beside(&place, 0, "agent-1");
    fleet.join_as("agent", "agent-2", |_| {});
    let run = begin(&place, &subject, &["--fleet", &fleet.url], phase);
    is_lost(&place, run, agent, (victim, how, phase), why);
}

#[test]
fn an_agent_that_dies_is_named_and_replaced() {
    for phase in ["connect", "load", "drain"] {
        an_agent_is_lost("joiner", "KILL", phase, "agent-1: it ");
    }
    an_agent_is_lost("process", "KILL", "load", "agent-1: its process ended with signal 9");
}

#[test]
fn an_agent_that_hangs_is_named_and_replaced() {
    for phase in ["connect", "load", "drain"] {
        an_agent_is_lost("joiner", "STOP", phase, "agent-1: it ");
    }
    an_agent_is_lost("process", "STOP", "load", "agent-1: it");
}

#[test]
fn a_campaign_without_its_agent_ends_and_says_how_to_go_on() {
    let place = Place::new("agent-gone");
    let (fleet, agent, _served, subject) = beside(&place, 0, "beside");
    let run = begin(&place, &subject, &["--fleet", &fleet.url], "load");
    signal(agent, "KILL");
    let (code, said) = end_of(run);
    assert!(
        code == 5
            && said.contains("no usable agent")
            && said.contains("start it again")
            && said.contains("the same command"),
        "{code}: {said}"
    );
    assert_eq!(place.runs_done(), 0, "no run counts as done that was not seen");
}

#[test]
fn the_death_of_a_server_beside_an_agent_is_the_servers() {
    let place = Place::new("agent-server");
    let (fleet, _agent, served, subject) = beside(&place, 0, "beside");
    let run = begin(&place, &subject, &["--fleet", &fleet.url], "load");
    signal(served.id(), "KILL");
    let (code, said) = end_of(run);
    assert_eq!(code, 4, "{said}");
    let runs = place.exported("1");
    let reason = runs[0]["outcome"]["reason"].as_str().unwrap();
    assert!(reason.contains("the server's processes have ended, says beside"), "{reason}");
    assert_eq!(runs[0]["attempts"], 1, "it is no failure of the instrument");
}

#[test]
fn workers_and_agents_of_a_lab_that_dies_are_free_again_and_end_what_they_did() {
    let place = Place::new("fleet-lab");
    let (fleet, agent, _served, subject) = beside(&place, 2, "beside");
    let mut run = begin(&place, &subject, &fleet.arguments("2"), "load");
    let joiners = [joiner(&fleet, "worker-1"), joiner(&fleet, "worker-2"), agent];
    let processes = joiners.map(|joiner| hosting(joiner).unwrap());
    for process in &processes {
        let told = |what: &str| std::fs::read_to_string(format!("/proc/{process}/{what}")).unwrap();
        let (environment, arguments) = (told("environ"), told("cmdline"));
        let clock = environment.split('\0').find_map(|variable| variable.strip_prefix("PUSHLAB_LAB_CLOCK="));
        let (_, word) = clock.and_then(|clock| clock.split_once(' ')).expect(&environment);
        assert!(!arguments.contains(word), "{arguments}");
    }
    signal(run.id(), "KILL");
    run.wait().unwrap();
    fleet.await_workers(3);
    processes.into_iter().for_each(await_end);
}

/// What happens to the broker, in a phase of a run: the campaign ends, and what it had begun.
fn the_broker_is_lost(how: &str, phase: &str) {
    let place = Place::new(&format!("fleet-broker-{how}-{phase}"));
    let fleet = Fleet::up(&place, 2);
    let run = begin(&place, "pushlab", &fleet.arguments("2"), phase);
    let processes = ["worker-1", "worker-2"].map(|name| hosting(joiner(&fleet, name)).unwrap());
    let broker = *children(&fleet.up, "nats-server").first().unwrap();
    signal(broker, how);
    let (code, said) = end_of(run);
    assert_eq!(code, 5, "{how} {phase}: {said}");
    assert!(said.contains("start it again") && said.contains("the same command"), "{how} {phase}: {said}");
    assert_eq!(place.runs_done(), 0, "no run counts as done that had no workers");
    processes.into_iter().for_each(await_end);
    if how == "STOP" {
        signal(broker, "CONT");
    }
}

#[test]
fn a_broker_that_dies_ends_the_campaign_which_says_how_to_go_on() {
    ["connect", "load", "drain"].into_iter().for_each(|phase| the_broker_is_lost("KILL", phase));
}

#[test]
fn a_broker_that_hangs_ends_the_campaign_which_says_how_to_go_on() {
    ["connect", "load", "drain"].into_iter().for_each(|phase| the_broker_is_lost("STOP", phase));
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
