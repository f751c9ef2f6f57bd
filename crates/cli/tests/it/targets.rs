//! Servers that the lab did not start: over TLS, by a host name, ours and somebody else's.

use crate::campaign::{Place, points};
use crate::receipts::Served;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

/// A certificate for `localhost`, its key, and the authority that vouches for it, as files in a place.
fn certify(place: &Place) -> [String; 3] {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    let write = |(name, text)| {
        let path = place.path(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    write(("authority-key.pem", authority.key().serialize_pem()));
    [("leaf.pem", leaf.pem()), ("key.pem", key.serialize_pem()), ("authority.pem", authority.pem())].map(write)
}

/// A server of somebody else's: event streams and POSTs under a path, and nothing under another host or path.
const FOREIGN: &str = r#"
const [certificate, key] = process.argv.slice(1).map((file) => require('fs').readFileSync(file))
const streams = new Set()
const server = require('https').createServer({ cert: certificate, key }, (request, response) => {
  const { pathname } = new URL(request.url, 'http://server')
  if (request.headers.host !== `localhost:${server.address().port}`) return response.writeHead(421).end()
  if (pathname === '/live/sse') {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write(':\n\n')
    streams.add(response)
    response.on('close', () => streams.delete(response))
  } else if (pathname === '/live/publish') {
    const chunks = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => {
      for (const stream of streams) stream.write(`data: ${Buffer.concat(chunks)}\n\n`)
      response.writeHead(204).end()
    })
  } else response.writeHead(404).end()
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
"#;

struct Foreign(Child);

impl Foreign {
    fn start(certificate: &str, key: &str) -> (Self, u16) {
        let mut command = Command::new("node");
        command.args(["-e", FOREIGN, certificate, key]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().parse().unwrap();
        (Self(child), port)
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // One that has ended already is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const BY_PUBLISHER: (&str, &str) =
    ("scenario", "{ kind = \"feed\", interval_us = 10000, payload_bytes = 173, by = \"publisher\" }");

/// Runs `experiment.toml`, whose authority is trusted.
fn report(place: &Place, authority: &str) -> Value {
    let mut command = place.pushlab(&["run", "experiment.toml", "--json", "--quiet"]);
    let output = command.env("SSL_CERT_FILE", authority).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn figure(run: &Value, name: &str) -> Option<f64> {
    run["figures"][name]["value"].as_f64()
}

#[test]
fn a_server_that_was_not_started_here_is_ranked_by_what_its_clients_see() {
    let place = Place::new("external");
    let [certificate, key, authority] = certify(&place);
    let served = Served::start(&["--tls-certificate", &certificate, "--tls-key", &key]);
    let subjects = format!("[\"pushlab\", \"live=https://localhost:{}\"]", served.address().port());
    place.experiment(&[
        ("subjects", &subjects),
        ("transports", "[\"websocket\", \"polling\"]"),
        ("repeats", "3"),
        ("polling", "{ interval_ms = 50 }"),
        BY_PUBLISHER,
    ]);
    let report = report(&place, &authority);
    let runs = place.exported("test");
    assert_eq!(runs.len(), 12);
    for run in &runs {
        assert_eq!(run["outcome"]["outcome"], "completed", "{run:#}");
        assert!(figure(run, "latency_median").is_some() && figure(run, "response_median").is_some(), "{run:#}");
        let is_ours = run["cell"]["subject"] == "pushlab";
        assert_eq!(figure(run, "cpu").is_some(), is_ours, "{run:#}");
        assert_eq!(figure(run, "memory").is_some(), is_ours, "{run:#}");
    }
    // Polled every 50 ms, whoever serves: rankings have all four, wherever their servers are.
    let rankings = report["experiments"][0]["rankings"].as_array().unwrap();
    let latency = rankings.iter().find(|ranking| ranking["metric"] == "latency_median").unwrap();
    let ranked = latency.to_string();
    assert!(["pushlab", "live"].iter().all(|subject| ranked.contains(subject)), "{latency:#}");
    assert_eq!(points(&report).len(), 4);
    assert_eq!(report["experiments"][0]["networks"], serde_json::json!(["loopback", "as it is (live)"]));
    let [unobserved] = report["unobserved"].as_array().unwrap().as_slice() else { panic!("{report:#}") };
    assert_eq!(unobserved["subject"], "live");
    let reason = unobserved["reason"].as_str().unwrap();
    assert!(reason.starts_with("CPU, memory, sockets") && reason.contains("the lab did not start it"), "{reason}");
    let told = place.prints(&["show", "test"]);
    assert!(told.contains("\n  network: loopback; as it is (live)\n"), "{told}");
    assert!(told.contains(&format!("\nNot seen\n  live: {reason}\n")), "{told}");
    let row = told.lines().find(|line| line.starts_with("  live · websocket ")).unwrap();
    assert!(row.contains("  –"), "its CPU and memory are not known: {row}");
}

#[test]
fn somebody_elses_server_is_measured_under_its_name_and_path() {
    let place = Place::new("external-foreign");
    let [certificate, key, authority] = certify(&place);
    let (_server, port) = Foreign::start(&certificate, &key);
    let subjects = format!("[\"theirs=bare+https://localhost:{port}/live\"]");
    place.experiment(&[("subjects", &subjects), ("transports", "[\"sse\"]"), ("prober", "false"), BY_PUBLISHER]);
    report(&place, &authority);
    let runs = place.exported("test");
    // A message every 10 ms of 400, to two clients.
    let counts = &runs[0]["counts"];
    assert_eq!((&counts["delivered"], &counts["lost"]), (&80.into(), &0.into()), "{:#}", runs[0]);
    assert!(figure(&runs[0], "bytes_tls").unwrap() > 1.0);
}

#[test]
fn a_server_that_cannot_be_reached_is_told_before_anything_runs() {
    let place = Place::new("external-unreachable");
    let [certificate, key, authority] = certify(&place);
    let (_server, port) = Foreign::start(&certificate, &key);
    let (_presents_authority, wrong) =
        Foreign::start(&authority, &place.path("authority-key.pem").display().to_string());
    for (url, reason) in [
        ("http://127.0.0.1:1".to_owned(), "Connection refused"),
        ("http://no-such-host.invalid".to_owned(), "cannot find no-such-host.invalid"),
        (format!("https://localhost:{port}/live"), "name the PEM file of its authority in SSL_CERT_FILE"),
    ] {
        let (code, said) = place.fails(&["run", &url, "--quick"]);
        assert_eq!(code, 4, "{said}");
        assert!(said.starts_with("error: nothing can be measured: ") && said.contains(reason), "{said}");
    }
    let mut command = place.pushlab(&["run", &format!("https://127.0.0.1:{wrong}"), "--quick"]);
    let refused = command.env("SSL_CERT_FILE", &authority).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("presents the certificate of an authority itself"), "{said}");
    // Beside one that answers it is left out, with the reason.
    place.experiment(&[("subjects", "[\"pushlab\", \"gone=http://127.0.0.1:1\"]"), ("transports", "[\"sse\"]")]);
    let output = place.run(&["run", "experiment.toml", "--json"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("gone") && said.contains("Connection refused"), "{said}");
    assert_eq!(points(&serde_json::from_slice(&output.stdout).unwrap()).len(), 1);
}
