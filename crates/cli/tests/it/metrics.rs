//! Live figures, of a campaign and of the server, as Prometheus reads them.

use crate::campaign::{Place, signal, wait_for};
use crate::strict::{Family, parse};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Stdio};

pub type Families = BTreeMap<String, Family>;

/// A program that says in one line where its figures are. It is killed at the end of its test.
pub struct Watched {
    child: Child,
    address: String,
}

impl Watched {
    /// A campaign of one run.
    fn campaign(place: &Place, load_ms: u32) -> Self {
        let phases = format!(
            "{{ connect_ms = 10000, idle_ms = 300, warm_up_ms = 100, load_ms = {load_ms}, drain_ms = 3000, after_ms = 50 }}"
        );
        place.experiment(&[("transports", "[\"websocket\"]"), ("phases", &phases)]);
        let (lab, mut said) = Self::lab(place.pushlab(&["run", "experiment.toml", "--metrics", "127.0.0.1:0"]));
        // Its progress goes on, and must not meet a closed pipe.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        lab
    }

    /// A lab, and what else it says.
    pub fn lab(mut command: Command) -> (Self, BufReader<ChildStderr>) {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("metrics at http://").and_then(|rest| rest.strip_suffix("/metrics"));
        (Self { child, address: address.expect(&line).to_owned() }, said)
    }

    /// Its exit code, once it has ended.
    pub fn code(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    fn server(place: &Place) -> Self {
        let mut command = place.pushlab(&["serve", "--listen", "127.0.0.1:0", "--json"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said: serde_json::Value = serde_json::from_str(&line).unwrap();
        Self { child, address: said["listening"].as_str().unwrap().to_owned() }
    }

    /// The page; `None` when nobody listens any more.
    fn scrape(&self) -> Option<Families> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{head}");
        Some(parse(body))
    }

    /// The status and the body of an answer to who sends these fields.
    fn ask(&self, fields: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(format!("GET /metrics HTTP/1.1\r\n{fields}Connection: close\r\n\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().to_owned(), body.to_owned())
    }

    /// Scrapes until a page is as wanted.
    pub fn scrape_until(&self, what: &str, is_wanted: impl Fn(&Families) -> bool) -> Families {
        wait_for(what, || Some(self.scrape().expect("the campaign goes on")).filter(&is_wanted))
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn value(families: &Families, name: &str) -> f64 {
    families[name].value(&[]).unwrap_or_else(|| panic!("{name} has no value"))
}

pub fn is_in(families: &Families, phase: &str) -> bool {
    families["pushlab_lab_phase"].value(&[("phase", phase)]) == Some(1.0)
}

#[test]
fn a_running_campaign_is_shown_and_its_figures_move() {
    let place = Place::new("metrics");
    let mut lab = Watched::campaign(&place, 8000);
    let early = lab.scrape_until("the load", |page| is_in(page, "load"));
    assert_eq!(early["pushlab_lab_phase"].samples.iter().map(|(_, value)| value).sum::<f64>(), 1.0, "one-hot");
    assert_eq!((value(&early, "pushlab_lab_runs_planned"), value(&early, "pushlab_lab_runs_done")), (1.0, 0.0));
    let labels = [
        ("experiment", "test"),
        ("subject", "pushlab"),
        ("transport", "websocket"),
        ("policy", "close"),
        ("network", ""),
        ("clients", "2"),
        ("repeat", "1"),
    ];
    assert_eq!(early["pushlab_lab_run_info"].value(&labels), Some(1.0));
    let is_moving = |page: &Families| {
        value(page, "pushlab_lab_clients_connected") == 2.0
            && value(page, "pushlab_lab_publications_total") > value(&early, "pushlab_lab_publications_total")
            && page["pushlab_lab_latency_p99_seconds"].value(&[]).is_some()
    };
    let first = lab.scrape_until("deliveries, and a second's latency", is_moving);
    let counters = [
        "pushlab_lab_publications_total",
        "pushlab_lab_deliveries_total",
        "pushlab_lab_subject_cpu_seconds_total",
        "pushlab_lab_generator_cpu_seconds_total",
    ];
    let second = lab.scrape_until("all counters to grow", |page| {
        counters.iter().all(|name| value(page, name) > value(&first, name))
    });
    let (median, p99) = ("pushlab_lab_latency_median_seconds", "pushlab_lab_latency_p99_seconds");
    assert!(value(&first, median) > 0.0 && value(&first, median) <= value(&first, p99));
    for side in ["subject", "generator"] {
        let memory = value(&second, &format!("pushlab_lab_{side}_resident_memory_bytes"));
        assert!((1e6..1e9).contains(&memory), "{side}: {memory} bytes");
    }
    assert!(lab.child.wait().unwrap().success());
    assert!(TcpStream::connect(&lab.address).is_err(), "the figures end with the campaign");
}

#[test]
fn an_interrupted_campaign_ends_its_figures_too() {
    let place = Place::new("metrics-end");
    let mut lab = Watched::campaign(&place, 60_000);
    lab.scrape_until("a run", |page| !page["pushlab_lab_run_info"].samples.is_empty());
    // Who says nothing keeps the listener for its second, and the campaign's end not much longer.
    let _silent = TcpStream::connect(&lab.address).unwrap();
    signal(lab.child.id(), "INT");
    assert_eq!(lab.child.wait().unwrap().code(), Some(5));
}

/// Rows of the tables of `docs/monitoring.md` are what is exposed: name with labels, type, and the text of `HELP`.
#[test]
fn the_documented_metrics_are_those_exposed() {
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/monitoring.md");
    let text = std::fs::read_to_string(document).unwrap();
    let place = Place::new("metrics-documented");
    let server = Watched::server(&place).scrape().unwrap();
    let is_whole = |page: &Families| page["pushlab_lab_latency_p99_seconds"].value(&[]).is_some();
    let lab = Watched::campaign(&place, 60_000).scrape_until("a page with every sample", is_whole);
    for (heading, families) in [("## Metrics of the server", server), ("## Metrics of the lab", lab)] {
        let section = text.split(heading).nth(1).expect(heading).split("\n## ").next().unwrap();
        let mut documented: Vec<&str> = section.lines().filter(|line| line.starts_with("| `")).collect();
        documented.sort_unstable();
        let mut exposed: Vec<String> = families.iter().map(|(name, family)| row(name, family)).collect();
        exposed.sort_unstable();
        let wanted = exposed.join("\n");
        assert_eq!(documented, exposed, "the rows under {heading:?} in any order:\n{wanted}\n");
    }
}

fn row(name: &str, family: &Family) -> String {
    let labels: Vec<&str> =
        family.samples.first().map(|(labels, _)| labels.keys().map(String::as_str).collect()).unwrap_or_default();
    let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
    let unit = ["seconds", "bytes"].into_iter().find(|unit| name.contains(&format!("_{unit}"))).unwrap_or("number");
    format!("| `{name}{labels}` | {} | {unit} | {} |", family.kind, family.help)
}

/// A page of another site may let its own name lead here (DNS rebinding), or ask from where it is.
#[test]
fn figures_are_told_to_no_other_site() {
    let place = Place::new("metrics-sites");
    for watched in [Watched::campaign(&place, 60_000), Watched::server(&place)] {
        for own in ["Host: localhost\r\n".to_owned(), format!("Host: {}\r\n", watched.address)] {
            assert_eq!(watched.ask(&own).0, "200", "{own}");
        }
        for foreign in [
            "",
            "Host: evil.example\r\n",
            "Host: localhost.evil.example\r\n",
            "Host: localhost\r\nHost: evil.example\r\n",
            "Host: localhost\r\nOrigin: https://evil.example\r\n",
            "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n",
        ] {
            let (status, body) = watched.ask(foreign);
            assert!(matches!(&*status, "400" | "403") && !body.contains("pushlab_"), "{foreign:?}: {status} {body}");
        }
    }
}
