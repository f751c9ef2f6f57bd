//! Load on workers that have joined a fleet, of which all machines are this one.

use crate::campaign::{PATIENCE, Place, wait_for};
use crate::receipts::Served;
use pushlab_bus::names::ANY;
use pushlab_bus::words::{FromLab, ToLab};
use pushlab_bus::{Access, Address, Connection};
use pushlab_os::clock::monotonic_ns;
use pushlab_os::process::{Signal, send};
use pushlab_wire::pieces::{Cutter, PieceDecoder};
use pushlab_wire::transport::Transport;
use pushlab_workload::messages::Order;
use pushlab_workload::segment::Segment;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// A broker and its first workers; they end with it.
pub struct Fleet<'a> {
    place: &'a Place,
    pub up: Child,
    /// Where it meets, with the password of labs.
    pub url: String,
    /// The same with that of workers.
    pub join_url: String,
    joined: Vec<Child>,
}

impl<'a> Fleet<'a> {
    pub fn up(place: &'a Place, workers: usize) -> Self {
        let fleet = Self::up_at(place, "127.0.0.1:0", workers, |_| {});
        fleet.await_workers(workers);
        fleet
    }

    /// A fleet whose broker listens here; `change` makes another command of that which starts it.
    pub fn up_at(place: &'a Place, listen: &str, workers: usize, change: impl FnOnce(&mut Command)) -> Self {
        let mut command = place.pushlab(&["fleet", "up", "--listen", listen, "--workers", &workers.to_string()]);
        change(&mut command);
        let mut up = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(up.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut url_after = |option: &str| {
            let url = |line: String| Some(line.split_once(option)?.1.split_whitespace().next()?.to_owned());
            lines.find_map(url).expect("it says where it is")
        };
        let (url, join_url) = (url_after("--fleet "), url_after("--join "));
        // Read to the end: what cannot be printed would end it.
        std::thread::spawn(move || lines.for_each(drop));
        Self { place, up, url, join_url, joined: Vec::new() }
    }

    /// A further worker, of which `change` makes another one.
    pub fn join(&mut self, name: &str, change: impl FnOnce(&mut Command)) -> u32 {
        self.join_as("worker", name, change)
    }

    /// A further worker or agent.
    pub fn join_as(&mut self, what: &str, name: &str, change: impl FnOnce(&mut Command)) -> u32 {
        let mut command = self.place.pushlab(&[what, "--join", &self.join_url, "--name", name]);
        change(&mut command);
        let child = command.stdout(Stdio::null()).spawn().unwrap();
        let id = child.id();
        self.joined.push(child);
        wait_for(&format!("the {what} to join"), || {
            self.list().iter().any(|worker| worker["name"] == name).then_some(())
        });
        id
    }

    pub fn list(&self) -> Vec<Value> {
        self.place.json(&["fleet", "list", "--fleet", &self.url, "--json"]).as_array().unwrap().clone()
    }

    pub fn await_workers(&self, free: usize) {
        let is_free = |worker: &&Value| worker["lab"].is_null();
        wait_for("free workers", || (self.list().iter().filter(is_free).count() == free).then_some(()));
    }

    /// Arguments of a run on so many workers.
    pub fn arguments(&self, workers: &'a str) -> [&str; 4] {
        ["--fleet", &self.url, "--workers", workers]
    }
}

impl Drop for Fleet<'_> {
    fn drop(&mut self) {
        for child in self.joined.iter_mut().chain([&mut self.up]) {
            // One that has ended is only waited for.
            let _ = send(child.id(), Signal::INT);
            let _ = child.wait();
        }
    }
}

fn count(run: &Value, name: &str) -> u64 {
    run["counts"][name].as_u64().unwrap_or_else(|| panic!("{name}: {:#}", run["outcome"]))
}

#[test]
fn workers_that_have_joined_measure_what_processes_of_this_machine_do() {
    let place = Place::new("fleet");
    let fleet = Fleet::up(&place, 3);
    for (result, scenario) in [
        "{ kind = \"feed\", interval_us = 5000, payload_bytes = 173 }",
        "{ kind = \"chat\", interval_ms = 100, payload_bytes = 71 }",
    ]
    .into_iter()
    .enumerate()
    {
        place.experiment(&[("clients", "[12]"), ("scenario", scenario)]);
        let (report, code) = place.report(&[&["--quiet"], &fleet.arguments("3")[..]].concat());
        assert_eq!(code, 0, "{report:#}");
        let runs = place.exported(&(result + 1).to_string());
        assert_eq!(runs.len(), 2);
        for run in runs {
            assert_eq!((count(&run, "delivered"), count(&run, "lost")), (count(&run, "expected"), 0), "{run:#}");
            assert!(count(&run, "published") > 0);
            assert_eq!(
                (run["document"]["plan"]["workers"].as_u64(), run["document"]["plan"]["clients"].as_u64()),
                (Some(3), Some(12))
            );
        }
    }
    fleet.await_workers(3);
}

#[test]
fn gates_shapes_and_searches_work_over_a_fleet() {
    let place = Place::new("fleet-all");
    let fleet = Fleet::up(&place, 2);
    let scenario = ("scenario", "{ kind = \"chat\", interval_ms = 100, payload_bytes = 71 }");
    place.experiment(&[("transports", "[\"websocket\"]"), ("clients", "[4]"), ("repeats", "3"), scenario]);
    let arguments = fleet.arguments("2");
    let gated =
        [&["--quiet", "--shape", "step:1,2", "--fail-if", "latency(websocket) < 10000 ms"], &arguments[..]].concat();
    let (report, code) = place.report(&gated);
    assert_eq!(code, 9, "{report:#}");
    let search = [
        "capacity",
        "experiment.toml",
        "--goal",
        "latency(websocket) < 10000 ms",
        "--from",
        "2",
        "--max",
        "4",
        "--json",
    ];
    let found = place.json(&[&search[..], &["--quiet", "--repeats", "1"], &arguments].concat());
    let verdict = found["verdict"][0].as_str().unwrap();
    assert!(verdict.contains("holds at 4 clients"), "{verdict}");
    for result in ["1", "2"] {
        for run in place.exported(result) {
            assert_eq!(run["document"]["plan"]["workers"], 2, "{run:#}");
            assert_eq!(count(&run, "lost"), 0, "{run:#}");
        }
    }
}

#[test]
fn a_worker_with_another_clock_measures_by_the_labs() {
    let place = Place::new("fleet-clock");
    let mut fleet = Fleet::up(&place, 1);
    // Hours away, and faster than any quartz.
    fleet.join("elsewhere", |command| {
        command.env("PUSHLAB_FALSE_CLOCK", "9000000000000,200");
    });
    place.experiment(&[("clients", "[12]"), ("transports", "[\"websocket\"]")]);
    let (report, code) = place.report(&[&["--quiet"], &fleet.arguments("2")[..]].concat());
    assert_eq!(code, 0, "{report:#}");
    let run = place.exported("1").remove(0);
    assert_eq!((count(&run, "delivered"), count(&run, "lost")), (count(&run, "expected"), 0), "{run:#}");
    let clocks = run["document"]["result"]["clocks"].as_array().unwrap_or_else(|| panic!("{run:#}"));
    assert_eq!(clocks.len(), 1, "one clock is the machine's own");
}

#[test]
fn what_needs_one_machine_is_refused_before_anything_starts() {
    let place = Place::new("fleet-refused");
    for (key, value, why) in [
        ("networks", "[\"lan-100\"]", "networks are emulated between two sides of one machine"),
        ("sockets", "{ tls = true }", "certificate"),
    ] {
        place.experiment(&[(key, value)]);
        // Nobody listens there: what is wrong is said before anybody is asked.
        let arguments = ["run", "experiment.toml", "--fleet", "nats://127.0.0.1:1", "--workers", "2"];
        let (code, said) = place.fails(&arguments);
        assert!(code == 3 && said.contains("cannot run over a fleet, because") && said.contains(why), "{code}: {said}");
    }
    place.experiment(&[]);
    let (code, said) = place.fails(&["run", "experiment.toml", "--fleet", "nats://127.0.0.1:1", "--workers", "2"]);
    assert!(code == 1 && said.contains("the broker at nats://127.0.0.1:1 cannot be reached"), "{code}: {said}");
}

#[test]
fn nobody_without_the_token_is_let_in_and_no_result_keeps_it() {
    let place = Place::new("fleet-token");
    let fleet = Fleet::up(&place, 1);
    let (token, address) = fleet.url.trim_start_matches("nats://").split_once('@').unwrap();
    let bare = format!("nats://{address}");
    let (code, said) = place.fails(&["fleet", "list", "--fleet", &bare]);
    assert!(code == 1 && said.contains("--token"), "{code}: {said}");
    place.experiment(&[("transports", "[\"websocket\"]")]);
    place.json(&["run", "experiment.toml", "--json", "--fleet", &fleet.url, "--workers", "1"]);
    place.json(&["run", "experiment.toml", "--json", "--fleet", &bare, "--token", token, "--workers", "1"]);
    for result in ["1", "2"] {
        let export = place.prints(&["export", result, "--format", "json"]);
        assert!(!export.contains(token) && export.contains(&bare));
    }
}

/// A lab that tells a worker what it likes.
struct Hostile {
    connection: Connection,
    address: Address,
    cutter: Cutter,
    heard: Receiver<Vec<u8>>,
    decoder: PieceDecoder,
    worker: Value,
}

impl Hostile {
    const ID: &str = "lab.hostile";

    /// One that has taken the only worker of a fleet.
    fn of(fleet: &Fleet<'_>) -> Self {
        let address = Address::parse(&fleet.url).unwrap();
        let connection = Connection::open(&address, &Access::default(), "test").unwrap();
        let (sender, heard) = mpsc::channel();
        let subject = address.names.to_lab(Self::ID, ANY);
        connection.subscribe(subject, move |_, piece| drop(sender.send(piece.to_vec()))).unwrap();
        connection.flush();
        let (cutter, worker) = (Cutter::new(1), fleet.list().remove(0));
        let mut this = Self { connection, address, cutter, heard, decoder: PieceDecoder::default(), worker };
        this.say(&FromLab::Reserve);
        assert!(matches!(this.hear(), ToLab::Reserved));
        this
    }

    fn say(&mut self, word: &FromLab) {
        let subject = self.address.names.to_worker(self.worker["id"].as_str().unwrap(), Self::ID);
        for piece in self.cutter.cut(&serde_json::to_vec(word).unwrap(), 65_536).unwrap() {
            self.connection.publish(subject.clone(), piece).unwrap();
        }
    }

    fn hear(&mut self) -> ToLab {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            self.connection.publish(self.address.names.labs(Self::ID), Vec::new()).unwrap();
            let Ok(piece) = self.heard.recv_timeout(Duration::from_millis(500)) else { continue };
            if let Some(message) = self.decoder.take(&piece).unwrap() {
                return serde_json::from_slice(&message).unwrap();
            }
        }
        panic!("the worker said nothing");
    }

    /// What the worker's process of a run says of a plan, which is abandoned as soon as its clients connect.
    fn run(&mut self, run: u64, plan: &Value) -> String {
        let boot = self.worker["boot"].as_str().unwrap().to_owned();
        self.say(&FromLab::Start { run, boot, clock: None });
        let prepare = json!({ "order": "prepare", "plan": plan, "segment": Segment::whole(1) });
        let line = |order: &Value| to_raw_value(order).unwrap();
        self.say(&FromLab::Line { run, line: line(&prepare) });
        let mut said = String::new();
        loop {
            let heard: Box<RawValue> = match self.hear() {
                ToLab::Line { line, .. } => line,
                ToLab::Ended { .. } => return said,
                other => panic!("{other:?}"),
            };
            let heard: Value = serde_json::from_str(heard.get()).unwrap();
            said.push_str(&heard.to_string());
            let next = match heard["message"].as_str().unwrap() {
                "prepared" => Order::Connect { origin_ns: monotonic_ns() },
                "state" => Order::Abandon,
                _ => continue,
            };
            self.say(&FromLab::Line { run, line: line(&json!(next)) });
        }
    }
}

#[test]
fn a_plan_from_the_broker_reaches_no_file_and_starts_no_browser() {
    let place = Place::new("fleet-files");
    let (fleet, served, mut lab);
    fleet = Fleet::up(&place, 1);
    served = Served::start(&[]);
    lab = Hostile::of(&fleet);
    let victim = place.path("victim.pem");
    std::fs::write(&victim, "untouched").unwrap();
    let mut plan = json!(served.plan(Transport::WebSocket));
    (plan["loops"], plan["receipts"]) = (json!(1), json!(false));

    let mut recorded = plan.clone();
    recorded["speaks"] = json!({ "dialect": "bare", "path": "/", "recording": victim });
    recorded["page_scripts"] = json!([victim]);
    let said = lab.run(1, &recorded);
    assert!(said.contains("\"message\":\"done\""), "{said}");
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "untouched");

    let mut trusting = plan.clone();
    trusting["target"]["tls"] = json!({ "server_name": "localhost", "trust": { "certificate": victim } });
    let said = lab.run(2, &trusting);
    assert!(said.contains("victim.pem") && said.contains("must be the text of a certificate"), "{said}");

    plan["clients_in"] = json!({ "kind": "chromium" });
    let said = lab.run(3, &plan);
    assert!(said.contains("a browser (Chromium), which this worker may not start"), "{said}");
    lab.say(&FromLab::Release);
}

#[test]
fn the_broker_lets_nobody_speak_for_another_or_read_what_is_for_another() {
    let place = Place::new("fleet-rights");
    let fleet = Fleet::up(&place, 1);
    let worker = fleet.list().remove(0)["id"].as_str().unwrap().to_owned();
    let open = |url: &str| {
        let address = Address::parse(url).unwrap();
        (Connection::open(&address, &Access::default(), "test").unwrap(), address.names)
    };
    let ((joined, names), (lab, _)) = (open(&fleet.join_url), open(&fleet.url));
    let is_refused = |connection: &Connection, what: &str| {
        wait_for(&format!("the broker to refuse {what}"), || connection.check_rights().is_err().then_some(()));
    };
    // As who joins, and as a lab.
    let published = [
        (&joined, names.to_worker(&worker, "lab.1")),
        (&joined, names.call()),
        (&joined, names.labs("lab.1")),
        (&joined, names.presence(&worker)),
        (&joined, names.to_lab("lab.1", &worker)),
        (&joined, "_INBOX.worker-1.1".to_owned()),
        (&lab, names.presence(&worker)),
        (&lab, names.to_lab("lab.1", &worker)),
        (&lab, names.to_worker(&worker, "other.1")),
    ];
    for (connection, subject) in published {
        connection.publish(subject.clone(), Vec::new()).unwrap();
        is_refused(connection, &subject);
    }
    let read = [
        (&joined, names.to_worker(ANY, ANY)),
        (&joined, names.to_worker(&worker, ANY)),
        (&joined, names.to_lab(ANY, ANY)),
        (&joined, names.presence(ANY)),
        (&joined, names.clock(ANY)),
        (&joined, "_INBOX.>".to_owned()),
        (&joined, ">".to_owned()),
        (&lab, names.to_worker(ANY, ANY)),
        (&lab, "_INBOX.>".to_owned()),
    ];
    for (connection, subject) in read {
        connection.subscribe(subject.clone(), |_, _| {}).unwrap();
        is_refused(connection, &subject);
    }
    // Whoever has mixed them up is told.
    let (code, said) = place.fails(&["fleet", "list", "--fleet", &fleet.join_url]);
    assert!(code == 1 && said.contains("need separate users"), "{code}: {said}");
    let (code, said) = place.fails(&["worker", "--join", &fleet.url]);
    assert!(code == 1 && said.contains("need separate users"), "{code}: {said}");
}

#[test]
fn a_folder_that_another_user_made_first_gets_no_password() {
    let place = Place::new("fleet-folder");
    let script = "mkdir -p tmp && mkdir -m 777 tmp/pushlab-broker-$$ && exec \"$0\" \"$@\"";
    let change = |command: &mut Command| {
        let mut through = Command::new("sh");
        through.args(["-c", script]).arg(command.get_program()).args(command.get_args());
        through.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        through.env("TMPDIR", place.path("tmp")).current_dir(place.path("")).stdin(Stdio::null());
        *command = through;
    };
    let fleet = Fleet::up_at(&place, "127.0.0.1:0", 0, change);
    let folders = std::fs::read_dir(place.path("tmp")).unwrap().map(|entry| entry.unwrap().path());
    let (theirs, ours): (Vec<_>, Vec<_>) =
        folders.partition(|path| path.ends_with(format!("pushlab-broker-{}", fleet.up.id())));
    assert_eq!(std::fs::read_dir(&theirs[0]).unwrap().count(), 0, "{ours:?}");
    assert_eq!(std::fs::metadata(&ours[0]).unwrap().permissions().mode() & 0o777, 0o700);
}
