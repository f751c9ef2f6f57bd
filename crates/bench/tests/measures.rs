//! The measuring parts work, on a scale on which their figures mean nothing.

use pushlab_engine::check_uring;
use serde_json::Value;
use std::process::Command;

fn run(arguments: &[&str]) -> (bool, Vec<Value>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_pushlab-bench")).args(arguments).output().expect("cannot run it");
    let stdout = String::from_utf8_lossy(&output.stdout);
    let lines = stdout.lines().map(|line| serde_json::from_str(line).expect("a line is not JSON")).collect();
    (output.status.success(), lines, String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn every_ratio_is_measured() {
    let (is_ok, lines, table) = run(&["--tiny"]);
    assert!(is_ok, "{table}");
    let names: Vec<&str> = lines.iter().filter_map(|line| line["name"].as_str()).collect();
    assert_eq!(lines.len(), names.len());
    let fanout = ["fanout/websocket", "fanout/sse", "fanout/http-streaming"];
    let uring = if check_uring().is_ok() { &["fanout-uring/websocket", "fanout-uring/sse"][..] } else { &[] };
    for name in fanout.into_iter().chain(uring.iter().copied()).chain([
        "http2/websocket",
        "http2/sse-12",
        "memory/http2",
        "memory/http2-stream",
        "compression/1000",
        "compression/bytes-16384",
        "handover/p99",
        "handover/refused",
        "floods/rapid-reset",
        "floods/small-bombs-memory",
        "floods/slow-websocket-http1",
        "floods/slow-polling-http2-memory",
        "floods/slow-sse-tls-kernel",
        "floods/half-record-tls",
        "peers/100",
        "peers/1000-p99",
        "peers/9000",
        "poll/replies",
        "poll/immediate",
        "link/packets",
        "link/round-trip",
    ]) {
        assert!(names.contains(&name), "{name} is missing from {names:?}");
    }
    // Who has no peer installed has nothing to compare with.
    let (compared, alone): (Vec<_>, Vec<_>) = lines.iter().partition(|line| !line["value"].is_null());
    assert!(alone.iter().all(|line| line["detail"]["absent"].get("bun").is_some()), "{alone:?}");
    for line in compared {
        let number = |key: &str| line[key].as_f64().unwrap_or_else(|| panic!("no {key} in {line}"));
        match line["low"].is_null() {
            true => assert!(line["repeats"] == 1 && line["high"].is_null(), "{line}"),
            false => assert!(number("low") <= number("value") && number("value") <= number("high"), "{line}"),
        }
        assert!(table.contains(line["name"].as_str().unwrap()));
    }
    for line in &lines {
        let what = line["name"].as_str().and_then(|name| name.split_once('/')).expect("a name has two parts");
        if matches!(what, ("rooms" | "peers", of) if of != "growth") {
            let sides = &line["detail"]["sides"];
            assert!(sides["pushlab"]["writes_per_delivery"].as_f64().unwrap() <= 1.0, "{line}");
            assert_eq!(sides.get("pushlab-write").is_some(), what.0 == "peers", "{line}");
            // As for its users.
            assert_eq!(line["detail"]["ours_has_ring"], check_uring().is_ok(), "{line}");
        }
    }
    let line = |name: &str| lines.iter().find(|line| line["name"] == name).unwrap_or_else(|| panic!("no {name}"));
    let bytes =
        ["100", "1024", "16384"].map(|size| line(&format!("compression/bytes-{size}"))["value"].as_f64().unwrap());
    assert!(1.0 > bytes[0] && bytes[0] > bytes[1] && bytes[1] > bytes[2], "{bytes:?}");
    assert_eq!(line("http2/sse-12")["detail"]["subscribers"], 12);
    let flood = &line("floods/ping")["detail"];
    assert!(flood["attack_mib_per_s"].as_f64().unwrap() > 0.0, "{flood}");
    assert!(line("floods/ping")["goal"].as_f64().unwrap() > 10.0);
    for name in ["handover/refused", "handover/lost"] {
        assert_eq!(line(name)["value"], 0.0, "{}", line(name));
    }
    for line in lines.iter().filter(|line| line["name"].as_str().unwrap().starts_with("fanout")) {
        assert!(line["value"].as_f64().unwrap() > 0.0);
        assert_eq!(line["detail"]["subscribers"], 5);
        assert_eq!(line["detail"]["loads"][0]["limit_bytes"], line["detail"]["loads"][0]["ours_bytes"], "{line}");
    }
}

#[test]
fn builds_are_compared_side_by_side() {
    let this = env!("CARGO_BIN_EXE_pushlab-bench");
    let (is_ok, lines, table) = run(&["--tiny", "--against", this, "--only", "fanout/sse", "poll", "memory/websocket"]);
    assert!(is_ok, "{table}");
    let names: Vec<&str> = lines.iter().filter_map(|line| line["name"].as_str()).collect();
    let ratios = ["fanout/sse-against", "poll/replies-against", "poll/immediate-against"];
    assert_eq!(names, [&ratios[..], &["memory/websocket", "memory/websocket-other"]].concat());
    assert_eq!(lines[0]["detail"]["loads"][0]["other_bytes"], lines[0]["detail"]["loads"][0]["ours_bytes"]);
    for line in &lines[..ratios.len()] {
        assert!(line["value"].as_f64().unwrap() > 0.0 && line["goal"] == 1.03, "{line}");
    }
    let (is_ok, _, message) = run(&["--tiny", "--against", "/bin/true", "--only", "fanout/sse"]);
    assert!(!is_ok && message.contains("is it the pushlab-bench of another build?"), "{message}");
}

#[test]
fn names_choose_and_strange_ones_are_refused() {
    let (is_ok, lines, _) = run(&["--tiny", "--repeats", "2", "--only", "fanout/sse"]);
    assert!(is_ok && lines.len() == 1 && lines[0]["repeats"] == 2);
    let (is_ok, _, message) = run(&["--only", "fan-out"]);
    assert!(!is_ok && message.contains("fanout/websocket"), "{message}");
}
