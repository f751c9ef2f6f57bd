//! A server that the lab did not start, seen by an agent beside it.

use crate::campaign::{Place, wait_for};
use crate::fleet::Fleet;
use crate::receipts::Served;
use serde_json::Value;
use std::process::{Command, Stdio};

/// As much work for the server as tests beside others can bear.
const BUSY: (&str, &str) = ("scenario", "{ kind = \"chat\", interval_ms = 20, payload_bytes = 100 }");

fn subjects(served: &Served) -> String {
    format!("[\"pushlab\", \"live=http://{}\"]", served.address())
}

/// The run of a subject among those of the result that was stored last.
fn run_of(place: &Place, result: &str, subject: &str) -> Value {
    let runs = place.exported(result);
    runs.into_iter().find(|run| run["cell"]["subject"] == subject).expect("it was measured")
}

/// CPU time that a process has used, ns, as the kernel counts it for its scheduler.
fn used_ns(process: u32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let used = |task: std::fs::DirEntry| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        text.split_whitespace().next().and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0)
    };
    tasks.flatten().map(used).sum()
}

/// A column of whole numbers of one of its series.
fn column(run: &Value, series: &str, name: &str) -> Vec<u64> {
    let named = |list: &Value, name: &str| {
        let list = list.as_array().unwrap_or_else(|| panic!("{run:#}"));
        list.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name}: {run:#}")).clone()
    };
    let column = named(&named(&run["series"], series)["columns"], name);
    column["values"]["integers"].as_array().unwrap().iter().map(|value| value.as_u64().unwrap()).collect()
}

#[test]
fn a_server_beside_an_agent_is_seen_as_one_that_the_lab_started() {
    let place = Place::new("agent");
    let mut fleet = Fleet::up(&place, 2);
    fleet.join_as("agent", "beside", |_| {});
    let served = Served::start(&[]);
    place.experiment(&[("subjects", &subjects(&served)), ("transports", "[\"websocket\"]"), ("clients", "[20]"), BUSY]);
    let before_ns = used_ns(served.id());
    // With the load on this machine, and then on workers.
    for (result, arguments) in [("1", vec!["--fleet", &fleet.url]), ("2", fleet.arguments("2").to_vec())] {
        let (report, code) = place.report(&[&["--quiet"], &arguments[..]].concat());
        assert_eq!((code, &report["unobserved"]), (0, &serde_json::json!([])), "{report:#}");
        let [own, live] = ["pushlab", "live"].map(|subject| run_of(&place, result, subject));
        for run in [&own, &live] {
            for figure in ["cpu", "memory"] {
                assert!(run["figures"][figure]["value"].as_f64().is_some(), "{figure}: {run:#}");
            }
            assert!(run["document"]["tcp"]["accepted"].as_u64() >= Some(0), "{run:#}");
            assert!(column(run, "counters", "accepted").last() >= Some(&20), "{run:#}");
        }
        let sampled_ns = *column(&live, "subject", "cpu_ns").last().unwrap();
        assert!((before_ns..=used_ns(served.id())).contains(&sampled_ns), "{sampled_ns}");
        let facts = place.prints(&["show", result]);
        assert!(facts.contains("agent beside"), "{facts}");
    }
    wait_for("everybody to be free", || fleet.list().iter().all(|one| one["lab"].is_null()).then_some(()));
}

#[test]
fn an_agent_with_another_clock_tells_instants_of_the_labs() {
    let place = Place::new("agent-clock");
    let mut fleet = Fleet::up(&place, 0);
    fleet.join_as("agent", "beside", |command| {
        // Hours away, and faster than any quartz.
        command.env("PUSHLAB_FALSE_CLOCK", "9000000000000,200");
    });
    let served = Served::start(&[]);
    place.experiment(&[("subjects", &subjects(&served)), ("transports", "[\"websocket\"]"), BUSY]);
    let (report, code) = place.report(&["--quiet", "--fleet", &fleet.url]);
    assert_eq!(code, 0, "{report:#}");
    let run = run_of(&place, "1", "live");
    let phases = run["phases"].as_array().unwrap();
    let (first, last) = (phases.first().unwrap(), phases.last().unwrap());
    let span = first["start_ns"].as_u64().unwrap()..last["end_ns"].as_u64().unwrap();
    let instants = column(&run, "subject", "t_ns");
    let within = instants.iter().filter(|instant| span.contains(instant)).count();
    assert!(within > instants.len() / 4, "{within} of {} in {span:?}", instants.len());
    assert!(run["figures"]["cpu"]["value"].as_f64().is_some(), "{run:#}");
}

#[test]
fn a_process_may_be_named_and_what_is_not_there_is_told() {
    let place = Place::new("agent-pid");
    let mut fleet = Fleet::up(&place, 0);
    let served = Served::start(&[]);
    place.experiment(&[("subjects", &subjects(&served)), ("transports", "[\"websocket\"]"), BUSY]);
    // Nobody beside the server, and no load for workers.
    let (code, said) = place.fails(&["run", "experiment.toml", "--fleet", &fleet.url]);
    assert!(code == 1 && said.contains("pushlab agent"), "{code}: {said}");
    let mut other = Command::new("sleep").arg("120").stdin(Stdio::null()).spawn().unwrap();
    let named = other.id().to_string();
    fleet.join_as("agent", "beside", |command| {
        command.args(["--pid", &named]);
    });
    let (report, code) = place.report(&["--quiet", "--fleet", &fleet.url]);
    assert_eq!(code, 0, "{report:#}");
    let memory = run_of(&place, "1", "live")["figures"]["memory"]["value"].as_f64().unwrap();
    let own = run_of(&place, "1", "pushlab")["figures"]["memory"]["value"].as_f64().unwrap();
    assert!(memory < own, "{memory} and {own}: it was told to watch another process, a small one");
    other.kill().unwrap();
    other.wait().unwrap();
    let (report, _) = place.report(&["--quiet", "--fresh", "--fleet", &fleet.url]);
    let run = run_of(&place, "2", "live");
    let reason = run["outcome"]["reason"].as_str().unwrap_or_else(|| panic!("{report:#}"));
    assert!(reason.contains("beside: ") && reason.contains("is gone"), "{reason}");
}
