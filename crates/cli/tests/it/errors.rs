//! Wrong input gets a clear error and its exit code.

use crate::campaign::Place;
use crate::disk::run_limited;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

#[test]
fn a_wrong_experiment_says_what_and_where() {
    let place = Place::new("wrong");
    let (code, error) = place.fails(&["run", "nowhere.toml"]);
    assert_eq!(code, 3);
    assert!(error.contains("nowhere.toml") && error.contains("tangen-broadcast"), "{error}");
    place.experiment(&[("repeets", "3")]);
    let (code, error) = place.fails(&["run", "experiment.toml"]);
    assert_eq!(code, 3);
    assert!(error.contains("repeets"), "{error}");
    assert_eq!(place.fails(&["run", "tangen-chat", "--profile", "slow"]).0, 3);
    assert_eq!(place.fails(&["run"]).0, 2);
    assert_eq!(place.fails(&["serve", "--heartbeat", "5 parsecs"]).0, 2);
    for listen in ["localhost:0", ":8000", "127.0.0.1"] {
        let (code, error) = place.fails(&["serve", "--listen", listen]);
        assert!(code == 2 && error.contains("IP:PORT, such as 127.0.0.1:8000"), "{error}");
    }
    let many = usize::try_from(pushlab_os::limits::descriptors().soft).unwrap().to_string();
    let (code, error) = place.fails(&["serve", "--max-connections", &many]);
    assert!(code == 2 && error.contains("descriptors (ulimit -n)"), "{error}");
}

#[test]
fn results_that_cannot_be_written_are_said_before_anything_runs() {
    let place = Place::new("unwritable");
    place.experiment(&[]);
    std::fs::write(place.path("taken"), "a file, not a folder").unwrap();
    let (code, error) = place.fails(&["run", "experiment.toml", "--out", "taken"]);
    assert_eq!(code, 6, "{error}");
    assert!(error.contains("--out"), "{error}");
    let (code, error) = place.fails(&["run", "experiment.toml", "--store", "taken/results.db"]);
    assert_eq!(code, 6, "{error}");
    assert!(error.contains("taken/results.db"), "{error}");
    let (code, error) = place.fails(&["run", "experiment.toml", "--store", "taken"]);
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("not a results database"), "{error}");
    assert_eq!(std::fs::read_to_string(place.path("taken")).unwrap(), "a file, not a folder");
    assert_eq!(place.runs_done(), 0);
}

/// A page that does not fit is no loss of what was measured.
#[test]
fn a_report_that_cannot_be_written_has_its_code_and_the_runs_are_stored() {
    let place = Place::new("no-report");
    place.experiment(&[("transports", "[\"websocket\"]")]);
    // The tables and the run are smaller, and the page alone is larger.
    let output = run_limited(&place, 340);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(6), "{error}");
    assert!(error.contains("stored as result 1") && error.contains("pushlab report 1"), "{error}");
    assert_eq!(place.runs_done(), 1);
    place.prints(&["report", "1"]);
    std::fs::write(place.path("taken"), "a file, not a folder").unwrap();
    let (code, error) = place.fails(&["report", "1", "--out", "taken"]);
    assert!(code == 6 && error.contains("--out"), "{code} {error}");
}

#[test]
fn a_wrong_command_line_has_its_code_however_it_is_found() {
    let place = Place::new("misused");
    place.experiment(&[]);
    for arguments in [
        &["serve", "--cores", "0"][..],
        &["serve", "--tick", "0s"],
        &["serve", "--listen", "0.0.0.0:0"],
        &["serve", "--feed", "http://127.0.0.1/"],
        &["serve", "--feed", "ws://127.0.0.1:1/", "--feed-channel", "a channel"],
        &["serve", "--access", "access.toml", "--pages", "--no-pages"],
        &["run", "experiment.toml", "--capture"],
    ] {
        let (code, error) = place.fails(arguments);
        assert!(code == 2 && error.starts_with("error: "), "{arguments:?}: {code} {error}");
    }
}

#[test]
fn a_file_without_an_end_is_not_read_for_ever() {
    let place = Place::new("endless");
    for (arguments, expected) in [
        (&["access", "check", "/dev/zero"][..], 1),
        (&["serve", "--access", "/dev/zero"], 1),
        (&["serve", "--tls-certificate", "/dev/zero", "--tls-key", "/dev/zero"], 1),
        (&["run", "/dev/zero"], 3),
        (&["fleet", "list", "--fleet", "nats://127.0.0.1:1", "--credentials", "/dev/zero"], 1),
    ] {
        let (code, error) = place.fails(arguments);
        assert!(code == expected && error.contains("/dev/zero") && error.contains("16 MiB"), "{code} {error}");
    }
}

/// Node.js gives its children a socket.
#[test]
fn a_token_is_read_from_whatever_standard_input_is() {
    let place = Place::new("token-input");
    std::fs::write(place.path("a.toml"), "[[rule]]\nwho = \"everybody\"\nchannels = [\"a\"]\nmay = [\"subscribe\"]\n")
        .unwrap();
    let (mut own, input) = UnixStream::pair().unwrap();
    own.write_all(b"a.b.c").unwrap();
    drop(own);
    let mut command = place.pushlab(&["access", "check", "a.toml", "--token", "-"]);
    let output = command.stdin(OwnedFd::from(input)).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("-: this server accepts no tokens"), "{error}");
}

#[test]
fn results_go_where_they_were_told_to() {
    let place = Place::new("stores");
    for (arguments, file) in [(&["runs", "--store", "told/here.db"][..], "told/here.db"), (&["runs"][..], "results.db")]
    {
        assert_eq!(place.run(arguments).status.code(), Some(0));
        assert!(place.path(file).exists(), "{file}");
    }
    let output = place.pushlab(&["runs"]).env_remove("PUSHLAB_STORE").output().unwrap();
    assert!(output.status.success());
    assert!(place.path("pushlab/results.db").exists(), "in the user's data folder");
}

#[test]
fn a_taken_port_says_what_to_do() {
    let place = Place::new("taken");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for command in ["serve", "backend"] {
        let (code, error) = place.fails(&[command, "--listen", &address]);
        assert_eq!(code, 1);
        assert!(error.contains("--listen"), "{error}");
    }
    place.experiment(&[]);
    let (code, error) = place.fails(&["run", "experiment.toml", "--metrics", &address]);
    assert_eq!(code, 1);
    assert!(error.contains("--metrics") && error.contains(&address), "{error}");
    assert!(!place.path("results").exists() && !place.store_path().exists(), "it is said before anything runs");
}

#[test]
fn a_server_that_cannot_speak_tls_says_why() {
    let place = Place::new("tls");
    let serve = ["serve", "--listen", "127.0.0.1:0", "--tls-certificate", "certificate.pem"];
    let (code, error) = place.fails(&serve);
    assert!(code == 2 && error.contains("--tls-key"), "{error}");
    let console = ["console", "--listen", "127.0.0.1:0", "--tls-certificate", "no.pem", "--tls-key", "no.pem"];
    let (code, error) = place.fails(&console);
    assert!(code != 0 && error.contains("cannot read no.pem"), "{error}");
    let serve = [&serve[..], &["--tls-key", "key.pem"]].concat();
    let (code, error) = place.fails(&serve);
    assert!(code == 1 && error.contains("cannot read certificate.pem"), "{error}");
    std::fs::write(place.path("certificate.pem"), "no certificate").unwrap();
    let (code, error) = place.fails(&serve);
    assert!(code == 1 && error.contains("certificate.pem has no section CERTIFICATE"), "{error}");
    let (code, error) = place.fails(&["serve", "--writes-per-event", "3"]);
    assert!(code == 2 && error.contains("--writes-per-event"), "{error}");
}

#[test]
fn list_doctor_and_completions_answer() {
    let place = Place::new("answers");
    let list = place.run(&["list", "--json"]);
    let list: serde_json::Value = serde_json::from_slice(&list.stdout).unwrap();
    assert!(list["experiments"].as_array().unwrap().len() >= 3);
    let doctor = place.run(&["doctor", "--json"]);
    let checks: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
    assert!(checks.as_array().unwrap().len() >= 10);
    for shell in ["bash", "zsh", "fish"] {
        assert!(String::from_utf8_lossy(&place.run(&["completions", shell]).stdout).contains("compare"));
    }
}
