//! What goes wrong while an experiment runs is recorded, and the rest goes on.

use crate::campaign::{Place, children, points, signal, wait_for};
use serde_json::Value;
use std::process::Stdio;

#[test]
fn every_transport_delivers_everything_once_and_in_order() {
    let place = Place::new("all");
    let all = "[\"websocket\", \"sse\", \"http-streaming\", \"long-polling\", \"polling\", \"websocket-polling\"]";
    let polling = ("polling", "{ interval_ms = 50, wait_s = 5 }");
    // Long enough that the server's counters change within it, on a busy machine too.
    let phases =
        "{ connect_ms = 10000, idle_ms = 100, warm_up_ms = 100, load_ms = 1000, drain_ms = 3000, after_ms = 50 }";
    let phases = ("phases", phases);
    // Messages, streams and polls: crates/fleet/tests/instrument has the other scenarios over the other transports.
    let one_of_each = "[\"websocket\", \"sse\", \"long-polling\"]";
    for (transports, count, scenario) in [
        (all, 6, "{ kind = \"feed\", interval_us = 5000, payload_bytes = 173 }"),
        (all, 6, "{ kind = \"chat\", interval_ms = 100, payload_bytes = 71 }"),
        (one_of_each, 3, "{ kind = \"echo\", interval_ms = 100, payload_bytes = 71 }"),
        (one_of_each, 3, "{ kind = \"upstream\", interval_ms = 100, payload_bytes = 71 }"),
        (one_of_each, 3, "{ kind = \"request\", payload_bytes = 71 }"),
    ] {
        place.experiment(&[("transports", transports), ("clients", "[5]"), ("scenario", scenario), polling, phases]);
        let (report, code) = place.report(&["--quiet"]);
        assert_eq!(code, 0, "{scenario}: {report:#}");
        assert_eq!(points(&report).len(), count);
        for point in points(&report) {
            assert_eq!(point["runs"], 1, "{scenario}: {point:#}");
            assert!(point["figures"]["delivered"]["value"].as_f64().unwrap() > 0.0, "{scenario}: {point:#}");
            for count in ["lost", "duplicated", "reordered"] {
                assert_eq!(point[count], 0, "{scenario}: {count}: {point:#}");
            }
        }
    }
}

#[test]
fn rooms_deliver_everything_to_their_members() {
    let place = Place::new("rooms");
    place.experiment(&[
        ("transports", "[\"websocket\", \"sse\", \"long-polling\", \"polling\"]"),
        ("clients", "[40]"),
        ("scenario", "{ kind = \"rooms\", rooms = 12, rooms_per_client = 3, interval_us = 5000, payload_bytes = 71 }"),
        ("polling", "{ interval_ms = 50, wait_s = 5 }"),
    ]);
    let (report, code) = place.report(&["--quiet"]);
    assert_eq!(code, 0, "{report:#}");
    let runs = place.exported("1");
    assert_eq!(runs.len(), 4);
    for run in runs {
        let cell = &run["cell"];
        let count = |name: &str| run["counts"][name].as_u64().unwrap_or_else(|| panic!("{name}: {:#}", run["outcome"]));
        assert_eq!((count("scheduled"), count("published")), (80, 80), "{cell}");
        assert_eq!(count("delivered"), count("expected"), "{cell}");
        // Each of the twelve rooms has ten members on average.
        assert!((600..1_000).contains(&count("expected")), "{}", count("expected"));
        for wrong in ["lost", "duplicated", "reordered", "unknown", "gaps", "reconnects"] {
            assert_eq!(count(wrong), 0, "{wrong}: {cell}");
        }
    }
}

#[test]
fn a_killed_subject_fails_its_run_and_the_experiment_goes_on() {
    let place = Place::new("kill");
    place.experiment(&[(
        "phases",
        "{ connect_ms = 10000, idle_ms = 50, warm_up_ms = 50, load_ms = 1500, drain_ms = 3000, after_ms = 50 }",
    )]);
    let mut lab = place.pushlab(&["run", "experiment.toml", "--json", "--seed", "1"]);
    let lab = lab.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let subject = wait_for("the subject", || children(&lab, "serve").first().copied());
    wait_for("the worker", || children(&lab, "worker").first().copied());
    // In the load phase: the server has received something.
    wait_for("a publication", || (cpu_ticks(subject) >= 1).then_some(()));
    signal(subject, "KILL");
    let output = lab.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(4), "a cell has no run: {report:#}");
    let failures: Vec<&Value> = points(&report).iter().flat_map(|p| p["failures"].as_array().unwrap()).collect();
    assert_eq!(failures.len(), 1, "{report:#}");
    assert!(failures[0].as_str().unwrap().contains("signal 9"), "{failures:?}");
    assert_eq!(points(&report).iter().filter(|p| p["runs"] == 1).count(), 1, "{report:#}");
}

/// CPU time that a process has used, in the kernel's ticks: of a hundredth of a second.
pub fn cpu_ticks(subject: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{subject}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|f| f.parse::<u64>().ok()).unwrap_or(0);
    ticks(11) + ticks(12)
}

#[test]
fn an_interrupted_experiment_resumes_with_the_same_command() {
    let place = Place::new("resume");
    place.experiment(&[("repeats", "2")]);
    let arguments = ["run", "experiment.toml", "--json"];
    let lab = place.pushlab(&arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    wait_for("the first record", || (place.runs_done() >= 1).then_some(()));
    signal(lab.id(), "INT");
    let output = lab.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    let before = place.exported("test");
    assert!(before.len() < 4, "interrupted too late to test anything");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["experiments"][0]["completeness"], "partial");
    assert_eq!(place.rows()[0]["runs_done"], before.len());

    let (report, code) = place.report(&[]);
    assert_eq!((code, &report["experiments"][0]["completeness"]), (0, &Value::from("complete")), "{report:#}");
    assert_eq!(place.rows().len(), 1, "it is the same experiment");
    let after = place.exported("test");
    let places: Vec<u64> = after.iter().map(|run| run["place"].as_u64().unwrap()).collect();
    assert_eq!(places, [1, 2, 3, 4]);
    assert!(before == after[..before.len()], "what was done is as it was");
}

#[test]
fn what_is_interrupted_before_its_first_record_says_so_and_leaves_nothing() {
    let place = Place::new("nothing");
    let phases =
        "{ connect_ms = 10000, idle_ms = 50, warm_up_ms = 50, load_ms = 60000, drain_ms = 3000, after_ms = 50 }";
    place.experiment(&[("phases", phases)]);
    let search = ["capacity", "experiment.toml", "--goal", "p99(websocket) < 50 ms"];
    for arguments in [&["run", "experiment.toml"][..], &["run", "experiment.toml", "--json"], &search] {
        let lab = place.pushlab(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_for("the worker", || children(&lab, "worker").first().copied());
        assert_eq!(place.rows().len(), 1, "it has begun");
        signal(lab.id(), "INT");
        let output = lab.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(5), "{said}");
        assert!(said.contains("interrupted before anything was measured, so nothing was kept"), "{said}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "there is nothing to report");
        assert!(place.rows().is_empty(), "{:?}", place.rows());
        assert_eq!(std::fs::read_dir(place.path("results")).unwrap().count(), 0, "{arguments:?}");
    }
}

#[test]
fn a_search_that_is_interrupted_tells_where_it_stopped_and_goes_on() {
    let place = Place::new("search-stopped");
    place.experiment(&[("scenario", "{ kind = \"chat\", interval_ms = 100, payload_bytes = 71 }")]);
    // Of 2, 3 and 4 clients everyone receives ten messages a second of each: 40, 90, 160.
    let goal = "due(websocket) < 100";
    let arguments = ["capacity", "experiment.toml", "--goal", goal, "--from", "2", "--shares", "0.9,2", "--json"];
    let mut lab = place.pushlab(&arguments);
    let lab = lab.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("the first record", || (place.runs_done() >= 1).then_some(()));
    signal(lab.id(), "INT");
    let output = lab.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("the same command continues"), "{said}");
    let verdict = |stdout: &[u8]| {
        let report: Value = serde_json::from_slice(stdout).unwrap();
        report["verdict"][0].as_str().unwrap().to_owned()
    };
    let stopped = verdict(&output.stdout);
    assert!(stopped.contains("websocket holds at") && stopped.contains("; the search stopped before"), "{stopped}");
    let output = place.run(&arguments);
    let found = verdict(&output.stdout);
    assert!(
        found.contains("holds at 3 clients") && found.ends_with(" 2 × capacity (6 clients) was also measured."),
        "{found}"
    );
    assert_eq!((output.status.code(), place.rows().len()), (Some(0), 1), "the same search");
}

#[test]
fn a_second_lab_is_refused_and_the_first_is_unharmed() {
    let place = Place::new("two");
    // It is there until it is told to end.
    place.experiment(&[("transports", "[\"websocket\"]"), ("repeats", "1000")]);
    let mut lab = place.pushlab(&["run", "experiment.toml", "--json"]);
    let lab = lab.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    wait_for("the subject", || children(&lab, "serve").first().copied());
    wait_for("the experiment", || (!place.rows().is_empty()).then_some(()));
    for arguments in [&["run", "experiment.toml"][..], &["run", "experiment.toml", "--fresh"], &["rm", "test"]] {
        let (code, error) = place.fails(arguments);
        assert_eq!(code, 6, "{error}");
        assert!(error.contains(&format!("process {}", lab.id())), "{error}");
    }
    // Reading what is there disturbs nobody.
    assert_eq!(place.rows().len(), 1);
    let before = place.runs_done();
    wait_for("another record", || (place.runs_done() > before).then_some(()));
    signal(lab.id(), "INT");
    assert_eq!(lab.wait_with_output().unwrap().status.code(), Some(5), "interrupted, and nothing else");
}

#[test]
fn a_killed_lab_takes_its_processes_along() {
    let place = Place::new("orphans");
    place.experiment(&[]);
    let mut lab = place.pushlab(&["run", "experiment.toml"]);
    let mut lab = lab.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let subject = wait_for("the subject", || children(&lab, "serve").first().copied());
    let worker = wait_for("the worker", || children(&lab, "worker").first().copied());
    signal(lab.id(), "KILL");
    lab.wait().unwrap();
    for process in [subject, worker] {
        let is_gone = || {
            let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            // A zombie that nobody waits for is gone too.
            (stat.is_empty() || stat.contains(") Z ")).then_some(())
        };
        wait_for("the end of a child", is_gone);
    }
}

#[test]
fn a_slow_generator_voids_its_runs() {
    let place = Place::new("slow");
    place.experiment(&[
        ("generator_limits", "{}"),
        // Held up in every turn, and idle between them.
        ("injected_delay_us", "30000"),
        ("scenario", "{ kind = \"feed\", interval_us = 150000, payload_bytes = 173 }"),
        ("transports", "[\"websocket\"]"),
    ]);
    let (report, code) = place.report(&[]);
    assert_eq!(code, 8, "{report:#}");
    let voids = points(&report)[0]["voids"].as_array().unwrap();
    assert_eq!(voids.len(), 1, "{report:#}");
    assert!(points(&report)[0]["figures"].as_object().unwrap().is_empty(), "a void run counts in no figure");
}
