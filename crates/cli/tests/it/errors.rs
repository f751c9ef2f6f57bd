//! Wrong input gets a clear error and its exit code.

use crate::campaign::Place;

/// Runs and gives the exit code and what was said on standard error.
fn fails(place: &Place, arguments: &[&str]) -> (i32, String) {
    let output = place.run(arguments);
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_wrong_experiment_says_what_and_where() {
    let place = Place::new("wrong");
    let (code, error) = fails(&place, &["run", "nowhere.toml"]);
    assert_eq!(code, 3);
    assert!(error.contains("nowhere.toml") && error.contains("tangen-broadcast"), "{error}");
    place.experiment(&[("repeets", "3")]);
    let (code, error) = fails(&place, &["run", "experiment.toml"]);
    assert_eq!(code, 3);
    assert!(error.contains("repeets"), "{error}");
    assert_eq!(fails(&place, &["run", "tangen-chat", "--profile", "slow"]).0, 3);
    assert_eq!(fails(&place, &["run"]).0, 2);
    assert_eq!(fails(&place, &["serve", "--heartbeat", "5 parsecs"]).0, 2);
}

#[test]
fn results_that_cannot_be_written_are_said_before_anything_runs() {
    let place = Place::new("unwritable");
    place.experiment(&[]);
    std::fs::write(place.path("taken"), "a file, not a folder").unwrap();
    let (code, error) = fails(&place, &["run", "experiment.toml", "--out", "taken"]);
    assert_eq!(code, 6, "{error}");
    assert!(error.contains("--out"), "{error}");
}

#[test]
fn a_full_disk_keeps_what_was_written() {
    let place = Place::new("full");
    place.experiment(&[]);
    // Every record is larger than this, the header is not: the first record meets a full disk.
    let program = env!("CARGO_BIN_EXE_pushlab");
    let output = std::process::Command::new("bash")
        .args(["-c", "ulimit -f 16; trap '' XFSZ; exec \"$0\" run experiment.toml", program])
        .current_dir(place.path(""))
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(6), "{error}");
    assert!(error.contains("same command"), "{error}");
    let (report, code) = place.report(&[]);
    assert_eq!((code, report["experiments"][0]["completeness"].as_str()), (0, Some("complete")), "{report:#}");
}

#[test]
fn a_taken_port_says_what_to_do() {
    let place = Place::new("taken");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for command in ["serve", "backend"] {
        let (code, error) = fails(&place, &[command, "--listen", &address]);
        assert_eq!(code, 1);
        assert!(error.contains("--listen"), "{error}");
    }
    place.experiment(&[]);
    let (code, error) = fails(&place, &["run", "experiment.toml", "--metrics", &address]);
    assert_eq!(code, 1);
    assert!(error.contains("--metrics") && error.contains(&address), "{error}");
    assert!(!place.path("results").exists(), "it is said before anything runs");
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
