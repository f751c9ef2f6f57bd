//! `pushlab console`: experiments that a page starts, watches and interrupts; and the console of a campaign.

use crate::campaign::{PATIENCE, Place, signal, wait_for};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

/// A console, or a campaign with one. It is ended with its test.
struct Served {
    child: Child,
    address: String,
    /// What a console asks for.
    token: Option<String>,
}

impl Served {
    fn console(place: &Place, arguments: &[&str]) -> Self {
        Self::begin(place, &[&["console"], arguments].concat())
    }

    /// A command that says on its standard output where it listens.
    fn begin(place: &Place, arguments: &[&str]) -> Self {
        let mut command = place.pushlab(&[arguments, &["--listen", "127.0.0.1:0", "--json"]].concat());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        let token = said["token"].as_str().map(str::to_owned);
        Self { child, address: said["listening"].as_str().unwrap().to_owned(), token }
    }

    fn ask(&self, method: &str, target: &str, fields: &str, body: &str) -> (u16, String) {
        let token = self.token.as_ref().map_or_else(String::new, |token| format!("Authorization: Bearer {token}\r\n"));
        let (status, _, body) = self.ask_as(&token, method, target, fields, body);
        (status, body)
    }

    /// Asks with these fields in place of the token.
    fn ask_as(&self, token: &str, method: &str, target: &str, fields: &str, body: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (host, length) = (&self.address, body.len());
        let head = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{token}{fields}Content-Length: {length}\r\n");
        stream.write_all(format!("{head}Connection: close\r\n\r\n{body}").as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_owned(), body.to_owned())
    }

    fn get(&self, target: &str) -> Value {
        let (status, body) = self.ask("GET", target, "", "");
        assert_eq!(status, 200, "{target}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    /// Starts the place's experiment.
    fn start(&self, place: &Place) -> (u16, String) {
        let toml = std::fs::read_to_string(place.path("experiment.toml")).unwrap();
        let fields = format!("Content-Type: application/json\r\nOrigin: http://{}\r\n", self.address);
        self.ask("POST", "/api/campaigns", &fields, &json!({ "toml": toml, "seed": 7 }).to_string())
    }

    fn live(&self) -> Value {
        self.get("/api/live")["live"].clone()
    }

    fn live_until(&self, what: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        wait_for(what, || Some(self.live()).filter(&is_wanted))
    }

    /// Runs until it is idle again.
    fn ended(&self) -> Value {
        self.live_until("the end of the campaign", |live| live["state"] == "idle")
    }

    /// Processes that the console's threads have started.
    fn children(&self) -> Vec<u32> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap().flatten();
        let children = tasks.map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
        children.collect::<String>().split_whitespace().map(|pid| pid.parse().unwrap()).collect()
    }

    fn campaign(&self) -> u32 {
        wait_for("the campaign's process", || self.children().first().copied())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An experiment of one run with a load of this length.
fn one_run(place: &Place, load_ms: u32) {
    let phases = format!(
        "{{ connect_ms = 10000, idle_ms = 100, warm_up_ms = 100, load_ms = {load_ms}, drain_ms = 3000, after_ms = 50 }}"
    );
    place.experiment(&[("transports", "[\"websocket\"]"), ("phases", &phases)]);
}

#[test]
fn an_experiment_from_a_page_is_watched_and_becomes_a_result() {
    let place = Place::new("console");
    let console = Served::console(&place, &[]);
    assert_eq!(console.get("/api/about")["can_run"], true);
    one_run(&place, 7000);
    let cursor = console.get("/api/live")["cursor"].as_str().unwrap().to_owned();
    assert_eq!(console.start(&place).0, 202);
    let (status, body) = console.start(&place);
    assert_eq!((status, body.contains("\"busy\"")), (409, true), "{body}");
    assert_eq!(console.live()["state"], "running");
    let has_latency = |live: &Value| live["run"]["latency_p99_ms"].as_f64().is_some_and(|ms| ms > 0.0);
    let live = console.live_until("a second's figures", has_latency);
    let run = &live["run"];
    assert_eq!((run["number"].as_u64(), run["clients"].as_u64()), (Some(1), Some(2)));
    assert!(run["deliveries_per_s"].as_f64().unwrap() > 1.0 && run["delivered"].as_u64().unwrap() > 1, "{live}");
    assert!(run["label"].as_str().unwrap().starts_with("test · websocket"), "{live}");
    let running = console.get("/api/results");
    assert_eq!(running[0]["state"], "running");

    let end = console.ended();
    assert_eq!((&end["runs_done"], &end["problem"], &end["run"]), (&1.into(), &Value::Null, &Value::Null), "{end}");
    let (_, told) = console.ask("GET", &format!("/poll?channel=console.live&after={cursor}"), "", "");
    assert!(told.contains("\"phase\":\"load\"") && told.contains("\"runs_done\":1"), "{told}");
    let row = &console.get("/api/results")[0];
    assert_eq!((&row["id"], &row["state"], &row["title"]), (&end["result"], &"complete".into(), &"Test".into()));
    let (status, report) = console.ask("GET", &format!("/reports/{}", row["id"]), "", "");
    assert!(status == 200 && report.contains("latency_median"), "{status}");
    // The command can be given again.
    assert!(report.contains("pushlab run results/from-console/test-") && !report.contains("--live-lines"));
}

#[test]
fn an_interrupted_experiment_goes_on_when_it_is_started_again() {
    let place = Place::new("console-interrupt");
    let console = Served::console(&place, &[]);
    place.experiment(&[("repeats", "2")]);
    assert_eq!(console.ask("DELETE", "/api/campaigns", "", "").0, 404);
    assert_eq!(console.start(&place).0, 202);
    console.live_until("a run", |live| live["runs_done"].as_u64() >= Some(1));
    assert_eq!(console.ask("DELETE", "/api/campaigns", "Origin: https://evil.example\r\n", "").0, 403);
    assert_eq!(console.ask("DELETE", "/api/campaigns", "", "").0, 200);
    let end = console.ended();
    assert_eq!(end["problem"], Value::Null, "{end}");
    let before = place.runs_done();
    assert!((1..4).contains(&before), "{before} of 4 runs");
    assert_eq!(console.get("/api/results")[0]["state"], "interrupted");
    assert_eq!(console.start(&place).0, 202);
    let end = console.ended();
    assert_eq!((&end["runs_done"], place.rows().len()), (&4.into(), 1), "{end}");
}

#[test]
fn of_an_experiment_interrupted_in_its_first_run_no_result_is_named() {
    let place = Place::new("console-nothing");
    let console = Served::console(&place, &[]);
    one_run(&place, 60_000);
    assert_eq!(console.start(&place).0, 202);
    let live = console.live_until("a phase", |live| live["run"]["phase"].is_string());
    assert!(live["result"].is_number(), "{live}");
    assert_eq!(console.ask("DELETE", "/api/campaigns", "", "").0, 200);
    let end = console.ended();
    assert_eq!((&end["problem"], &end["result"]), (&Value::Null, &Value::Null), "{end}");
    assert_eq!(console.get("/api/results"), Value::Array(Vec::new()));
}

#[test]
fn what_kills_an_experiment_is_told_and_the_console_goes_on() {
    let place = Place::new("console-kill");
    let console = Served::console(&place, &[]);
    one_run(&place, 60_000);
    assert_eq!(console.start(&place).0, 202);
    console.live_until("a phase", |live| live["run"]["phase"].is_string());
    signal(console.campaign(), "KILL");
    let end = console.ended();
    assert!(end["problem"].as_str().unwrap().contains("signal: 9"), "{end}");
    one_run(&place, 400);
    assert_eq!(console.start(&place).0, 202);
    let end = console.ended();
    assert_eq!((&end["runs_done"], &end["problem"]), (&1.into(), &Value::Null), "{end}");
}

#[test]
fn what_fails_is_told_in_its_own_words() {
    let place = Place::new("console-fails");
    let console = Served::console(&place, &[]);
    // Valid, but `serve` takes a number.
    place.experiment(&[("server_options", "[\"--history-messages\", \"many\"]")]);
    assert_eq!(console.start(&place).0, 202);
    let problem = console.ended()["problem"].as_str().unwrap().to_owned();
    assert!(problem.contains("failed: test · websocket") && problem.contains("--history-messages"), "{problem}");
    place.experiment(&[("clients", "[0]")]);
    let (status, body) = console.start(&place);
    assert!(status == 400 && body.contains("clients 0"), "{body}");
}

#[test]
fn an_experiment_ends_with_its_console() {
    for name in ["INT", "KILL"] {
        let place = Place::new(&format!("console-end-{name}"));
        let mut console = Served::console(&place, &[]);
        one_run(&place, 60_000);
        assert_eq!(console.start(&place).0, 202);
        console.live_until("a phase", |live| live["run"]["phase"].is_string());
        let campaign = console.campaign();
        signal(console.child.id(), name);
        let status = console.child.wait().unwrap();
        assert_eq!(status.code(), (name == "INT").then_some(0), "{name}");
        let is_gone = || !std::path::Path::new(&format!("/proc/{campaign}")).exists();
        wait_for("the end of the campaign", || is_gone().then_some(()));
    }
}

#[test]
fn who_may_not_start_experiments_starts_none() {
    let place = Place::new("console-refuses");
    place.experiment(&[]);
    let console = Served::console(&place, &[]);
    let body = json!({ "toml": std::fs::read_to_string(place.path("experiment.toml")).unwrap() }).to_string();
    let json_type = "Content-Type: application/json\r\n";
    let (status, _) =
        console.ask("POST", "/api/campaigns", &format!("{json_type}Origin: http://evil.example\r\n"), &body);
    assert_eq!(status, 403, "a page of another site");
    let port = console.address.rsplit(':').next().unwrap();
    let mut stream = TcpStream::connect(&console.address).unwrap();
    let request = format!("GET /api/about HTTP/1.1\r\nHost: evil.example:{port}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert_eq!(console.live()["state"], "idle");
    let reader = Served::console(&place, &["--no-run"]);
    assert_eq!(reader.get("/api/about")["can_run"], false);
    assert_eq!(reader.start(&place).0, 403);
}

/// Other users of the machine, and whoever a proxy before it lets through, send no `Origin` either.
#[test]
fn without_the_token_a_console_tells_nothing_and_does_nothing() {
    let place = Place::new("console-token");
    place.experiment(&[]);
    let console = Served::console(&place, &[]);
    let token = console.token.clone().unwrap();
    let port = console.address.rsplit(':').next().unwrap();
    let mut wrong = token.clone().into_bytes();
    wrong[31] = if wrong[31] == b'0' { b'1' } else { b'0' };
    let wrong = String::from_utf8(wrong).unwrap();
    for shown in [
        String::new(),
        format!("Authorization: Bearer {wrong}\r\n"),
        // Browsers send cookies to every port of the host, so whoever listens there would have it.
        format!("Cookie: pushlab-pass-{port}={token}\r\n"),
        format!("Cookie: __Host-pushlab-pass-{port}={token}\r\n"),
    ] {
        for (method, target) in [
            ("GET", "/api/results"),
            ("GET", "/api/live"),
            ("GET", "/reports/1"),
            ("POST", "/"),
            ("POST", "/api/campaigns"),
            ("DELETE", "/api/campaigns"),
            ("GET", "/api/demos/chat/rooms"),
            ("GET", "/poll?channel=console.live"),
            ("GET", "/sse?channel=a"),
            ("POST", "/publish?channel=a"),
            ("GET", "/stats"),
            ("GET", "/metrics"),
        ] {
            let (status, _, body) = console.ask_as(&shown, method, target, "", "");
            assert_eq!((status, body.contains("\"unauthorized\"")), (401, true), "{shown}{method} {target}: {body}");
        }
        assert_eq!(console.ask_as(&shown, "GET", "/healthz", "", "").0, 200);
    }
    // The pages' files are the same for everybody; a link has no way to send a token.
    for target in ["/", "/demos/chat", "/reports/1", "/assets/console.js"] {
        let (status, head, body) =
            console.ask_as("", "GET", &format!("{target}?token={token}"), "Accept: text/html\r\n", "");
        assert_eq!(
            (status, head.contains("Set-Cookie"), body.contains(&token)),
            (200, false, false),
            "{target}: {head}"
        );
    }
    let subprotocol = format!("Sec-WebSocket-Protocol: pushlab, pushlab.token.{token}\r\n");
    for shown in [format!("Authorization: Bearer {token}\r\n"), subprotocol] {
        for target in ["/live", "/api/results", "/poll?channel=console.live", "/metrics"] {
            assert_eq!(console.ask_as(&shown, "GET", target, "", "").0, 200, "{target}");
        }
    }
    let kept = Served::console(&place, &["--token", &token]);
    assert_eq!(kept.token.as_ref(), Some(&token));
    let (code, error) = place.fails(&["console", "--token", "letmein"]);
    assert!(code == 2 && error.contains("openssl rand -hex 16"), "{error}");
}

/// Whoever others can reach has to be told so.
#[test]
fn a_server_that_others_can_reach_wants_to_be_open() {
    let place = Place::new("serve-open");
    let (code, error) = place.fails(&["serve", "--listen", "0.0.0.0:0"]);
    assert!(code != 0 && error.contains("--open"), "{error}");
    let mut command = place.pushlab(&["serve", "--listen", "0.0.0.0:0", "--json", "--open"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(line.contains("\"listening\":\"0.0.0.0:"), "{line}");
}

/// A proxy that rewrites `Host` makes strangers of the console's own pages, and of a loopback address everybody's.
#[test]
fn behind_a_proxy_the_named_pages_are_its_own() {
    let place = Place::new("console-proxy");
    place.experiment(&[]);
    let toml = std::fs::read_to_string(place.path("experiment.toml")).unwrap();
    let body = json!({ "toml": toml }).to_string();
    let fields = |origin: &str| format!("Content-Type: application/json\r\nOrigin: {origin}\r\n");
    let check = |console: &Served, origin| console.ask("POST", "/api/experiments/check", &fields(origin), &body);
    let console = Served::console(&place, &["--public-url", "https://push.example,http://localhost:9000"]);
    for origin in ["https://push.example", "http://localhost:9000"] {
        let (status, answer) = check(&console, origin);
        assert_eq!(status, 200, "{answer}");
    }
    let own = format!("http://{}", console.address);
    for origin in ["http://push.example", "https://evil.example", own.as_str()] {
        let (status, answer) = check(&console, origin);
        assert!(
            status == 403 && answer.contains("--public-url") && answer.contains("https://push.example"),
            "{answer}"
        );
    }
    let plain = Served::console(&place, &[]);
    let (status, answer) = check(&plain, "https://push.example");
    assert!(status == 403 && answer.contains("--public-url"), "{answer}");
    let (code, error) = place.fails(&["console", "--public-url", "push.example"]);
    assert!(code == 2 && error.contains("https://HOST"), "{error}");
}

#[test]
fn a_campaign_has_a_console_if_asked_to() {
    let place = Place::new("run-console");
    one_run(&place, 4000);
    let console = ["--console", "127.0.0.1:0", "--public-url", "https://push.example"];
    let mut command = place.pushlab(&[&["run", "experiment.toml"], &console[..]].concat());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    // Its progress goes on, and must not meet a closed pipe.
    std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
    let address = line.trim().strip_prefix("console at http://").and_then(|rest| rest.strip_suffix("/live"));
    let mut campaign = Served { address: address.expect(&line).to_owned(), child, token: None };
    assert_eq!(campaign.get("/api/about")["can_run"], false);
    let (status, answer) = campaign.ask("POST", "/api/experiments/check", "Origin: https://other.example\r\n", "");
    assert!(status == 403 && answer.contains("https://push.example"), "{answer}");
    let live = campaign.live_until("the load", |live| live["run"]["phase"] == "load");
    assert_eq!((&live["state"], &live["name"]), (&"running".into(), &"test".into()));
    assert_eq!(campaign.get("/api/results")[0]["state"], "running");
    assert_eq!(campaign.start(&place).0, 403);
    assert!(campaign.child.wait().unwrap().success());
}

#[test]
fn a_server_shows_results_and_changes_nothing() {
    let place = Place::new("serve-pages");
    let server = Served::begin(&place, &["serve"]);
    let about = server.get("/api/about");
    assert_eq!((&about["can_run"], &about["can_store"]), (&false.into(), &false.into()));
    assert_eq!(server.get("/api/results"), json!([]));
    assert_eq!(server.ask("GET", "/", "", "").0, 200);
    assert!(!place.store_path().exists(), "whoever only reads makes no store");
    let bare = Served::begin(&place, &["serve", "--no-pages"]);
    assert_eq!((bare.ask("GET", "/", "", "").0, bare.ask("GET", "/healthz", "", "").0), (404, 200));
}

/// They know nothing of an access file's rules: whoever reached them could read, start work and publish past them.
#[test]
fn beside_an_access_file_pages_are_off_unless_asked_for() {
    let place = Place::new("serve-access-pages");
    std::fs::write(place.path("key"), "the-key-of-the-back-end-0123456789").unwrap();
    std::fs::write(place.path("access.toml"), "[back_end]\nkey_file = \"key\"\n").unwrap();
    let check = json!({ "toml": "name = \"a\"" }).to_string();
    for (options, status) in [(&[][..], 404), (&["--pages"], 200)] {
        let server = Served::begin(&place, &[&["serve", "--access", "access.toml"], options].concat());
        for (method, target) in [("GET", "/"), ("GET", "/api/demos/auction/items"), ("POST", "/api/experiments/check")]
        {
            let body = if method == "POST" { &*check } else { "" };
            let (found, answer) = server.ask(method, target, "Content-Type: application/json\r\n", body);
            assert_eq!(found, status, "{options:?} {target}: {answer}");
        }
        assert_eq!(server.ask("GET", "/api/history?channel=a", "", "").0, 401, "the back end's interface stays");
    }
}
