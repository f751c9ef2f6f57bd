//! Foreign subjects that do not do what they should: every failure is recorded, in time, and nothing is left running.

use crate::campaign::{Place, children, points, signal, wait_for, write_program};
use crate::failures::cpu_ticks;
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Within this time a failure is to be recorded; the same again is for a machine that does other things too.
const RECORDED_WITHIN: Duration = Duration::from_secs(30);

/// A place with one subject `toy`, started by a shell script of these lines.
fn place(name: &str, ready: &str, script: &str) -> Place {
    let place = Place::new(name);
    let folder = place.path("subjects/toy");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("start.sh"), script).unwrap();
    let manifest = format!(
        r#"
        name = "toy"
        title = "Toy"
        about = "Does not do what it should"
        platform = "node"
        home = "https://example.org"
        licence = "MIT"
        version = "1"
        tools = ["sh"]
        hint = "install a shell"
        install = [["sh", "-c", "echo installed > state"]]
        start = ["sh", "start.sh", "{{port}}"]
        ready = "{ready}"
        echo = false
        rooms = false
        server = ["start.sh"]
        [[transport]]
        name = "websocket"
        transport = "websocket"
        dialect = "bare"
        path = ""
        "#
    );
    std::fs::write(folder.join("subject.toml"), manifest).unwrap();
    place
}

struct Outcome {
    text: String,
    code: i32,
    took: Duration,
}

impl Outcome {
    fn says(&self, what: &str) {
        assert!(self.text.contains(what), "{what:?} is not in: {}", self.text);
    }
}

fn command(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.pushlab(arguments);
    command.env("PUSHLAB_SUBJECTS", place.path("subjects")).env("PUSHLAB_CACHE", place.path("cache"));
    command
}

fn pushlab(place: &Place, arguments: &[&str]) -> Outcome {
    let begin = Instant::now();
    let output = command(place, arguments).output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    Outcome { text, code: output.status.code().unwrap(), took: begin.elapsed() }
}

/// Runs the toy beside our server, and returns why the toy failed.
fn failure(place: &Place) -> String {
    assert_eq!(pushlab(place, &["subjects", "install", "toy"]).code, 0);
    place.experiment(&[
        ("subjects", "[\"toy\", \"pushlab\"]"),
        ("transports", "[\"websocket\"]"),
        ("prober", "false"),
        ("scenario", "{ kind = \"feed\", interval_us = 5000, payload_bytes = 173, by = \"publisher\" }"),
    ]);
    let outcome = pushlab(place, &["run", "experiment.toml", "--json", "--quiet"]);
    assert_eq!(outcome.code, 4, "a cell has no run that succeeded: {}", outcome.text);
    assert!(outcome.took < 2 * RECORDED_WITHIN, "{:?}", outcome.took);
    let report: Value = serde_json::from_str(&outcome.text).unwrap();
    let of = |subject: &str| {
        let series = report["experiments"][0]["series"].as_array().unwrap();
        let own = series.iter().find(|series| series["subject"] == subject);
        own.map(|series| series["points"][0].clone()).unwrap_or_else(|| panic!("no {subject}: {report:#}"))
    };
    assert_eq!(of("pushlab")["runs"], 1, "the others go on: {report:#}");
    let failures = of("toy")["failures"].clone();
    failures[0].as_str().unwrap_or_else(|| panic!("{report:#}")).to_owned()
}

/// Whether a process still runs whose command line holds this.
fn runs(mark: &str) -> bool {
    let holds = |path: &Path| {
        std::fs::read(path.join("cmdline"))
            .is_ok_and(|line| line.windows(mark.len()).any(|part| part == mark.as_bytes()))
    };
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| holds(&entry.path()))
}

#[test]
fn a_subject_that_crashes_is_a_failure_with_its_last_words() {
    let place = place("crash", "line", "echo no such thing as a port >&2\nexit 3\n");
    let why = failure(&place);
    assert!(why.contains("exit code 3") && why.contains("no such thing as a port"), "{why}");
}

#[test]
fn a_subject_that_lies_about_readiness_is_a_failure() {
    let place = place("lie", "line", "echo '{\"listening\":\"127.0.0.1:9\"}'\nexec sleep 1000\n");
    let why = failure(&place);
    assert!(why.contains("nobody took a connection"), "{why}");
}

#[test]
fn a_subject_that_hangs_is_a_failure_and_its_whole_tree_ends() {
    // One child in the process group, one that has left it; the numbers are the test's own.
    let numbers = [1, 2, 3].map(|n| format!("{n}7{}", std::process::id()));
    let [one, other, own] = &numbers;
    let script = format!("sleep {one} &\nsetsid sleep {other} &\nexec sleep {own}\n");
    let place = place("hang", "port", &script);
    let why = failure(&place);
    assert!(why.contains("nobody took a connection"), "{why}");
    for number in &numbers {
        // On a busy machine one that was killed needs a moment to go.
        wait_for(&format!("the end of sleep {number}"), || (!runs(&format!("sleep\0{number}"))).then_some(()));
    }
}

#[test]
fn a_subject_that_hangs_in_mid_load_is_a_failure_and_its_whole_tree_ends() {
    // The silence ends within the load, or is waited for after it.
    for load_ms in [200_000, 10_000] {
        hang_in_mid_load(load_ms);
    }
}

fn hang_in_mid_load(load_ms: u32) {
    let place = Place::new(&format!("hang-in-load-{load_ms}"));
    let phases = format!(
        "{{ connect_ms = 10000, idle_ms = 0, warm_up_ms = 0, load_ms = {load_ms}, drain_ms = 100, after_ms = 0 }}"
    );
    let numbers = [1, 2].map(|n| format!("{n}8{}", std::process::id()));
    let [one, other] = &numbers;
    let server = env!("CARGO_BIN_EXE_pushlab");
    let script = format!("#!/bin/sh\nsleep {one} &\nsetsid sleep {other} &\nexec {server} \"$@\"\n");
    write_program(&place.path("server"), &script);
    place.experiment(&[
        ("subjects", &format!("[\"wrapped={}\"]", place.path("server").display())),
        ("transports", "[\"websocket\"]"),
        ("scenario", "{ kind = \"feed\", interval_us = 500, payload_bytes = 173 }"),
        ("phases", &phases),
    ]);
    let mut lab = place.pushlab(&["run", "experiment.toml", "--json", "--quiet"]);
    let lab = lab.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let subject = wait_for("the subject", || children(&lab, "serve").first().copied());
    // More than it takes to start and to take two clients.
    wait_for("the load", || (cpu_ticks(subject) >= 15).then_some(()));
    signal(subject, "STOP");
    let stopped = Instant::now();
    let output = lab.wait_with_output().unwrap();
    let took = stopped.elapsed();
    assert!(took < 2 * RECORDED_WITHIN, "{took:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(4), "a cell has no run: {report:#}");
    let points = points(&report);
    assert_eq!((points.len(), points[0]["runs"].as_u64()), (1, Some(0)), "{report:#}");
    let why = points[0]["failures"][0].as_str().unwrap_or_else(|| panic!("{report:#}"));
    assert!(why.contains("the subject went silent: it delivered nothing for 1"), "{why}");
    assert!(why.contains("deliveries were outstanding"), "{why}");
    println!("{load_ms} ms of load, recorded after {took:?}: {why}");
    assert!(!Path::new(&format!("/proc/{subject}")).exists(), "the subject is left");
    for number in &numbers {
        wait_for(&format!("the end of sleep {number}"), || (!runs(&format!("sleep\0{number}"))).then_some(()));
    }
}

#[test]
fn a_subject_that_refuses_every_client_is_a_failure() {
    let script = "exec node -e 'require(\"node:http\").createServer((q, a) => a.writeHead(503).end(\"no\")).on(\"upgrade\", (q, s) => s.end(\"HTTP/1.1 503 No\\r\\n\\r\\n\")).listen(process.argv[1], \"127.0.0.1\")' \"$1\"\n";
    let why = failure(&place("refuse", "port", script));
    assert!(why.contains("0 of 3 clients") && why.contains("503"), "{why}");
}

#[test]
fn an_interrupted_check_ends_and_blames_nobody() {
    let script =
        "exec node -e 'require(\"node:net\").createServer(() => {}).listen(process.argv[1], \"127.0.0.1\")' \"$1\"\n";
    let place = place("stopped-check", "port", script);
    let manifest = place.path("subjects/toy/subject.toml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let another = "[[transport]]\nname = \"another\"\ntransport = \"websocket\"\ndialect = \"bare\"\npath = \"\"\n";
    std::fs::write(&manifest, format!("{text}\n{another}")).unwrap();
    assert_eq!(pushlab(&place, &["subjects", "install", "toy"]).code, 0);
    // Where it leaves the subject's output.
    let mut check = command(&place, &["subjects", "check", "toy"]);
    check.env("TMPDIR", place.path("subjects")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let check = check.spawn().unwrap();
    wait_for("the subject and the load", || (children(&check, "").len() >= 2).then_some(()));
    let processes = children(&check, "");
    signal(check.id(), "INT");
    let output = check.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    assert!(!output.status.success() && text.contains("error: interrupted"), "{text}");
    let is_left = |pid: &&u32| Path::new(&format!("/proc/{pid}")).exists();
    assert_eq!(processes.iter().find(is_left), None, "{text}");
    assert!(!text.contains("FAILED") && !text.contains("another"), "{text}");
}

#[test]
fn a_link_that_another_user_laid_leads_no_log_to_a_file_of_ours() {
    let script =
        "exec node -e 'require(\"node:net\").createServer(() => {}).listen(process.argv[1], \"127.0.0.1\")' \"$1\"\n";
    let place = place("laid-link", "port", script);
    assert_eq!(pushlab(&place, &["subjects", "install", "toy"]).code, 0);
    let victim = place.path("victim");
    std::fs::write(&victim, "untouched").unwrap();
    let start = command(&place, &["subjects", "start", "toy"]);
    let mut through = Command::new("sh");
    through.args(["-c", "ln -s \"$PWD/victim\" \"$TMPDIR/pushlab-toy-$$.log\" && exec \"$0\" \"$@\""]);
    through.arg(start.get_program()).args(start.get_args()).current_dir(place.path("")).stdin(Stdio::null());
    through.envs(start.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut start = through.env("TMPDIR", place.path("subjects")).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(start.stdout.take().unwrap()).read_line(&mut line).unwrap();
    signal(start.id(), "INT");
    start.wait().unwrap();
    assert!(line.contains("listens at"), "{line}");
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "untouched");
}

#[test]
fn what_cannot_be_run_here_is_left_out_and_said_so() {
    let place = place("missing", "port", "exit 1\n");
    place.experiment(&[
        ("subjects", "[\"toy\", \"pushlab\"]"),
        ("transports", "[\"websocket\"]"),
        ("prober", "false"),
        ("scenario", "{ kind = \"feed\", interval_us = 5000, payload_bytes = 173, by = \"publisher\" }"),
    ]);
    let outcome = pushlab(&place, &["run", "experiment.toml"]);
    assert_eq!(outcome.code, 0, "{}", outcome.text);
    outcome.says("left out: toy: toy is not installed: run `pushlab subjects install toy`");
    place.experiment(&[
        ("subjects", "[\"toy\"]"),
        ("transports", "[\"websocket\"]"),
        ("prober", "false"),
        ("scenario", "{ kind = \"idle\" }"),
    ]);
    let outcome = pushlab(&place, &["run", "experiment.toml"]);
    assert_eq!(outcome.code, 7, "{}", outcome.text);
    outcome.says("nothing can be measured");
    let manifest = place.path("subjects/toy/subject.toml");
    let text = std::fs::read_to_string(&manifest).unwrap().replace("tools = [\"sh\"]", "tools = [\"no-such-program\"]");
    std::fs::write(&manifest, &text).unwrap();
    pushlab(&place, &["subjects", "install", "toy"])
        .says("needs no-such-program, which is not on the PATH: install a shell");
    let outcome = pushlab(&place, &["subjects", "install", "--all"]);
    assert_eq!(outcome.code, 0, "one that cannot be had is left out: {}", outcome.text);
    std::fs::write(&manifest, text.replace("dialect = \"bare\"", "dialect = \"morse\"")).unwrap();
    let outcome = pushlab(&place, &["subjects", "list"]);
    assert_ne!(outcome.code, 0);
    outcome.says("subjects/toy/subject.toml");
}

#[test]
fn an_installation_that_fails_says_where_its_log_is_and_is_done_anew() {
    let place = place("install", "port", "exit 1\n");
    let manifest = place.path("subjects/toy/subject.toml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace("echo installed > state", "echo the registry is closed; exit 7")).unwrap();
    for _ in 0..2 {
        let outcome = pushlab(&place, &["subjects", "install", "toy"]);
        assert_eq!(outcome.code, 1, "{}", outcome.text);
        outcome.says("exit code 7");
        outcome.says("the registry is closed");
        outcome.says("pushlab-install.log");
    }
    std::fs::write(&manifest, text).unwrap();
    assert_eq!(pushlab(&place, &["subjects", "install", "toy"]).code, 0);
    pushlab(&place, &["subjects", "list"]).says("installed,");
    pushlab(&place, &["subjects", "rm", "toy"]).says("removed 2 installations");
    pushlab(&place, &["subjects", "list"]).says("not installed");
}
