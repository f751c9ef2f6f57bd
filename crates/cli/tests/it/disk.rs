//! Disks that fill while an experiment runs.

use crate::campaign::Place;
use serde_json::Value;
use std::process::{Command, Output};

const PHASES: &str =
    "{ connect_ms = 10000, idle_ms = 50, warm_up_ms = 50, load_ms = 100, drain_ms = 3000, after_ms = 0 }";

/// Runs the experiment with a limit on the size of files, in KiB.
pub fn run_limited(place: &Place, kib: u32) -> Output {
    let run = place.pushlab(&["run", "experiment.toml"]);
    let mut shell = Command::new("bash");
    shell.args(["-c", &format!("ulimit -f {kib}; trap '' XFSZ; exec \"$0\" \"$@\"")]);
    shell.arg(run.get_program()).args(run.get_args()).current_dir(run.get_current_dir().unwrap());
    shell.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.output().unwrap()
}

fn assert_full(output: &Output) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(6), "{error}");
    assert!(error.contains("same command") && error.contains("results.db"), "{error}");
}

#[test]
fn a_full_disk_keeps_what_was_written() {
    let place = Place::new("full");
    place.experiment(&[("repeats", "8"), ("phases", PHASES)]);
    // The tables and a few runs are smaller than this, all sixteen are not.
    assert_full(&run_limited(&place, 400));
    let before = place.exported("test");
    assert!((1..16).contains(&before.len()), "{} of 16 runs found room", before.len());
    // Still full: still said, and nothing is lost.
    assert_full(&run_limited(&place, 150));
    assert!(before == place.exported("test")[..before.len()]);

    let (report, code) = place.report(&[]);
    assert_eq!((code, &report["experiments"][0]["completeness"]), (0, &Value::from("complete")), "{report:#}");
    let after = place.exported("test");
    assert_eq!((after.len(), place.rows().len()), (16, 1));
    assert!(before == after[..before.len()], "what was stored before is as it was");
}

#[test]
fn a_disk_that_is_full_from_the_start_is_said_before_anything_runs() {
    let place = Place::new("full-at-once");
    place.experiment(&[]);
    assert_full(&run_limited(&place, 1));
    let (report, code) = place.report(&[]);
    assert_eq!((code, &report["experiments"][0]["completeness"]), (0, &Value::from("complete")), "{report:#}");
}
