//! A network that is cut between the lab and a worker, between the lab and an agent, or between everybody and the broker.
//! Each of them is in a network namespace of its own, with a port at a bridge in the lab's.

use crate::campaign::{Place, wait_for};
use crate::fleet::Fleet;
use crate::fleet_failures::{earlier, hosting};
use crate::metrics::{Watched, is_in, value};
use crate::receipts::Served;
use pushlab_os::child::Prepare as _;
use pushlab_os::process::{Signal, is_root};
use std::fs::{self, File};
use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// Set for the test inside the namespaces, where it is the first process.
const INSIDE: &str = "PUSHLAB_TEST_INSIDE";
const TEST: &str = "fleet_cuts::a_cut_network_is_told_by_name_and_the_campaign_goes_on_or_says_how";
/// Who is beside the lab, each at 10.77.0. and its place in this list.
const SPACES: [&str; 6] = ["broker", "worker-1", "worker-2", "worker-3", "agent-1", "agent-2"];
/// The lab, and the server that it does not start.
const LAB: &str = "10.77.0.254";
/// What has passed of a second of load when the network is cut. Its last deliveries are missing in the drain, until clients
/// poll again.
const BEFORE_LAST: Duration = Duration::from_millis(700);
/// In which phase to cut, and an experiment in which that phase is not over before the cut is found out.
const PHASES: [(&str, &str, &str); 3] = [
    (
        "connect",
        "10",
        "{ connect_ms = 60000, idle_ms = 100, warm_up_ms = 100, load_ms = 500, drain_ms = 3000, after_ms = 50 }",
    ),
    (
        "load",
        "1000",
        "{ connect_ms = 10000, idle_ms = 100, warm_up_ms = 100, load_ms = 8000, drain_ms = 3000, after_ms = 50 }",
    ),
    (
        "drain",
        "1000",
        "{ connect_ms = 10000, idle_ms = 100, warm_up_ms = 100, load_ms = 1000, drain_ms = 20000, after_ms = 50 }",
    ),
];

fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split_whitespace()).status().unwrap();
    assert!(status.success(), "ip {arguments}");
}

/// A network namespace that is joined to the lab's.
struct Space {
    name: &'static str,
    holder: Child,
}

impl Space {
    fn new(number: usize, name: &'static str) -> Self {
        let holder = Command::new("sleep").arg("infinity").make_network().spawn().unwrap();
        let this = Self { name, holder };
        ip(&format!("link add {name} type veth peer name way netns {}", this.holder.id()));
        ip(&format!("link set {name} master lab up"));
        for arguments in ["link set lo up", &format!("address add 10.77.0.{number}/24 dev way"), "link set way up"] {
            let mut command = Command::new("ip");
            this.put(command.args(arguments.split_whitespace()));
            assert!(command.status().unwrap().success(), "ip {arguments}");
        }
        this
    }

    /// Has a program run there.
    fn put(&self, command: &mut Command) {
        let namespace = File::open(format!("/proc/{}/ns/net", self.holder.id())).unwrap();
        command.enter_network(Arc::new(namespace));
    }

    fn cut(&self) {
        ip(&format!("link set {} down", self.name));
    }

    fn mend(&self) {
        ip(&format!("link set {} up", self.name));
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        // It does nothing but wait.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// A lab and a server, three workers, two agents who are told that they are beside the server, and a broker: each of these
/// in a namespace.
struct Spaces<'a> {
    place: &'a Place,
    fleet: Fleet<'a>,
    served: Served,
    joined: Vec<u32>,
    spaces: Vec<Space>,
}

impl<'a> Spaces<'a> {
    fn new(place: &'a Place) -> Self {
        ip("link set lo up");
        ip("link add lab type bridge mcast_snooping 0");
        ip(&format!("address add {LAB}/24 dev lab"));
        ip("link set lab up");
        let spaces: Vec<Space> = (1..).zip(SPACES).map(|(number, name)| Space::new(number, name)).collect();
        let mut fleet = Fleet::up_at(place, "10.77.0.1:4222", 0, |command| spaces[0].put(command));
        let served = Served::start_on(&format!("{LAB}:0"), &[]);
        let server = served.id().to_string();
        let join = |space: &Space| {
            let is_agent = space.name.starts_with("agent");
            fleet.join_as(if is_agent { "agent" } else { "worker" }, space.name, |command| {
                space.put(command);
                if is_agent {
                    command.args(["--address", LAB, "--pid", &server]);
                }
            })
        };
        let joined = spaces[1..].iter().map(join).collect();
        Self { place, fleet, served, joined, spaces }
    }

    fn run(&self) -> Command {
        let options = ["run", "experiment.toml", "--metrics", "127.0.0.1:0"];
        self.place.pushlab(&[&options, &self.fleet.arguments("2")[..]].concat())
    }

    /// Begins a run and cuts a network in this phase; gives the lab's exit code and what it said.
    fn cut_in(&self, cut: &Space, (phase, connect_rate, phases): (&str, &str, &str)) -> (Option<i32>, String) {
        self.place.experiment(&[
            ("name", &format!("\"{}-{phase}\"", cut.name)),
            ("subjects", &format!("[\"live=http://{}\"]", self.served.address())),
            ("scenario", "{ kind = \"feed\", interval_us = 5000, payload_bytes = 173, by = \"publisher\" }"),
            ("transports", "[\"polling\"]"),
            ("polling", "{ interval_ms = 1500 }"),
            ("clients", "[80]"),
            ("connect_rate", connect_rate),
            ("phases", phases),
        ]);
        let (mut lab, mut output) = Watched::lab(self.run());
        let said = std::thread::spawn(move || {
            let mut said = String::new();
            output.read_to_string(&mut said).map(|_| said).unwrap()
        });
        if phase == "connect" {
            lab.scrape_until("the first clients", |page| value(page, "pushlab_lab_clients_connected") > 0.0);
        } else {
            lab.scrape_until("the load", |page| is_in(page, "load"));
        }
        if phase == "drain" {
            std::thread::sleep(BEFORE_LAST);
        }
        cut.cut();
        lab.scrape_until("the phase", |page| is_in(page, phase));
        let code = lab.code();
        // Also what is cut off ends what it did for the lab.
        for joiner in &self.joined {
            wait_for("its process to end", || hosting(*joiner).is_none().then_some(()));
        }
        cut.mend();
        self.fleet.await_workers(self.joined.len());
        (code, said.join().unwrap())
    }
}

fn inside() {
    let place = Place::new("fleet-cuts");
    let spaces = Spaces::new(&place);
    let [broker, worker, _, _, agent, _] = &spaces.spaces[..] else { panic!("there are six") };
    let cuts = [worker, agent].into_iter().flat_map(|space| PHASES.map(|phase| (space, phase)));
    for (result, (space, phase)) in (1..).zip(cuts) {
        let (code, said) = spaces.cut_in(space, phase);
        assert_eq!(code, Some(0), "{} {phase:?}: {said}", space.name);
        let earlier = earlier(&place, &result.to_string());
        let details: Vec<_> = earlier.iter().filter_map(|attempt| attempt["detail"].as_str()).collect();
        // In the drain the run may be over before it is silent for so long.
        let told =
            [format!("{}: it has said nothing for 5 s", space.name), format!("{}: it did not report", space.name)];
        assert!(
            matches!(details[..], [detail] if told.iter().any(|told| detail.contains(told))),
            "{} {phase:?}: {details:?}",
            space.name
        );
    }
    for phase in PHASES {
        let (code, said) = spaces.cut_in(broker, phase);
        assert_eq!(code, Some(5), "{phase:?}: {said}");
        assert!(said.contains("start it again") && said.contains("the same command"), "{phase:?}: {said}");
        let output = spaces.run().output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{phase:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    drop(spaces);
    assert_eq!(beside_this_process(), Vec::<String>::new());
}

/// The command lines of all other processes in this namespace of processes; those that have ended have none.
fn beside_this_process() -> Vec<String> {
    let is_process = |name: &String| name != "1" && name.bytes().all(|byte| byte.is_ascii_digit());
    let names = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let line = |name: String| fs::read_to_string(format!("/proc/{name}/cmdline")).unwrap_or_default();
    names.filter(is_process).map(line).filter(|line| !line.is_empty()).collect()
}

#[test]
fn a_cut_network_is_told_by_name_and_the_campaign_goes_on_or_says_how() {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    // Installs the broker, for which the network may be needed that there is not inside.
    drop(Fleet::up(&Place::new("fleet-cuts-broker"), 0));
    let mut command = Command::new("unshare");
    if !is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--net", "--pid", "--fork", "--kill-child", "--mount-proc"]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", TEST, "--nocapture"]).env(INSIDE, "1").stdin(Stdio::null());
    let output = command.end_with_parent(Signal::KILL).output().unwrap();
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{}{}", said[0], said[1]);
}
