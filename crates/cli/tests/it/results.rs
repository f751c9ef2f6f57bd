//! What is stored: listed, shown, reported again, merged, removed.

use crate::campaign::{Place, points};
use crate::transfer::Table;
use serde_json::Value;

/// Three results of the same cells, the third of the first one's name.
fn stored(place: &Place) {
    for (name, cpu) in [("chat", 10.0), ("night", 20.0), ("chat", 30.0)] {
        Table::new("drill").runs("websocket", "cpu", "%", &[cpu, cpu + 1.0, cpu + 2.0]).import(place, name);
    }
}

fn ids(place: &Place) -> Vec<i64> {
    place.rows().iter().map(|row| row["id"].as_i64().unwrap()).collect()
}

/// The means of a metric, by the series' labels.
fn means(report: &Value, metric: &str) -> Vec<(String, f64, u64)> {
    let all = report["experiments"][0]["series"].as_array().unwrap();
    let mean = |series: &Value| {
        let figure = &series["points"][0]["figures"][metric];
        let label = series["label"].as_str().unwrap().to_owned();
        (label, figure["value"].as_f64().unwrap(), figure["runs"].as_u64().unwrap())
    };
    all.iter().map(mean).collect()
}

#[test]
fn references_are_numbers_names_and_steps_back() {
    let place = Place::new("references");
    assert!(place.prints(&["runs"]).contains("pushlab run transports"), "an empty store says what to do");
    let (code, error) = place.fails(&["report"]);
    assert!(code == 1 && error.contains("pushlab run transports"), "{error}");
    stored(&place);
    let of = |reference: &str| means(&place.json(&["show", reference, "--json"]), "cpu")[0].1;
    for (reference, cpu) in [("1", 11.0), ("2", 21.0), ("chat", 31.0), ("chat~0", 31.0), ("chat~1", 11.0)] {
        assert_eq!(of(reference), cpu, "{reference}");
    }
    assert_eq!(of("chat@previous"), 11.0);
    for (reference, near) in [("chta", "chat"), ("nigth~1", "night"), ("chat~2", "chat~1"), ("99", "pushlab runs")] {
        for command in [&["show"][..], &["report"], &["compare", "1"], &["merge", "1"], &["rm", "1"]] {
            let (code, error) = place.fails(&[command, &[reference]].concat());
            assert_eq!(code, 1, "{command:?} {error}");
            assert!(error.contains(&format!("`{reference}`")) && error.contains(near), "{command:?} {error}");
        }
        let (_, error) = place.fails(&["export", reference, "--format", "csv"]);
        assert!(error.contains(near), "{error}");
    }
    assert_eq!(ids(&place), [1, 2, 3], "nothing is removed when one of the names is wrong");
}

#[test]
fn what_was_measured_is_listed_shown_and_reported_again() {
    let place = Place::new("listed");
    place.experiment(&[("transports", "[\"websocket\"]")]);
    let (report, code) = place.report(&["--seed", "7"]);
    assert_eq!(code, 0, "{report:#}");
    let row = &place.rows()[0];
    for (key, value) in [("id", 1), ("runs_planned", 1), ("runs_done", 1), ("valid", 1), ("void", 0), ("failed", 0)] {
        assert_eq!(row[key], value, "{key}: {row}");
    }
    assert_eq!((row["name"].as_str(), row["kind"].as_str()), (Some("test"), Some("measured")));
    let list = place.prints(&["runs"]);
    assert!(list.contains("test") && list.contains("1 of 1 runs"), "{list}");
    let shown = place.prints(&["show", "test"]);
    for part in ["websocket", "kernel:", "experiment.toml", "--seed 7"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let same = |other: &Value| {
        for part in ["version", "title", "verdict", "metrics", "experiments", "warnings", "environment", "repeat"] {
            assert_eq!(other[part], report[part], "{part}");
        }
    };
    assert_eq!(report["version"], 4);
    same(&place.json(&["show", "test", "--json"]));
    same(&place.json(&["report", "--json"]));
    std::fs::remove_dir_all(place.path("results")).unwrap();
    same(&place.json(&["report", "1", "--out", "elsewhere", "--json"]));
    let folder = std::fs::read_dir(place.path("elsewhere")).unwrap().next().unwrap().unwrap().path();
    same(&serde_json::from_str(&std::fs::read_to_string(folder.join("report.json")).unwrap()).unwrap());
    assert!(std::fs::read_to_string(folder.join("report.html")).unwrap().contains("\"version\":4"));
    assert!(!place.path("results").exists());
}

#[test]
fn removed_results_are_gone_and_their_numbers_are_not_given_again() {
    let place = Place::new("removed");
    stored(&place);
    let said = place.prints(&["rm", "chat", "night"]);
    assert!(said.contains("removed 3 · chat") && said.contains("removed 2 · night"), "{said}");
    assert_eq!(ids(&place), [1]);
    place.prints(&["show", "chat"]);
    place.prints(&["rm", "1"]);
    Table::new("drill").runs("sse", "cpu", "%", &[1.0]).import(&place, "late");
    assert_eq!(ids(&place), [4]);
}

#[test]
fn merged_results_lie_over_each_other() {
    let place = Place::new("merged");
    stored(&place);
    let report = place.json(&["merge", "chat~1", "night", "--json"]);
    let lines = [("websocket · chat", 11.0, 3), ("websocket · night", 21.0, 3)];
    assert_eq!(means(&report, "cpu"), lines.map(|(label, cpu, runs)| (label.to_owned(), cpu, runs)));
    assert_eq!(report["title"], "chat, night beside each other");
    // Of the same name: the number tells them apart.
    let labels = means(&place.json(&["merge", "chat", "chat~1", "--json"]), "cpu");
    let labels: Vec<&str> = labels.iter().map(|(label, ..)| label.as_str()).collect();
    assert_eq!(labels, ["websocket · chat #3", "websocket · chat #1"]);
    let said = place.prints(&["merge", "chat", "night"]);
    assert!(said.contains("Report: results/merge-"), "{said}");

    let report = ["--out", "reports"];
    for (command, options) in
        [("merge", &report[..]), ("compare", &report), ("export", &["--format", "csv"]), ("rm", &[])]
    {
        let (code, error) = place.fails(&[&[command, "chat", "night", "3"], options].concat());
        let said = "`3` and `chat` are both result 3: named twice";
        assert!(code == 2 && error.contains(said), "{command}: {code} {error}");
    }
    assert_eq!(ids(&place), [1, 2, 3]);
    assert_eq!(place.fails(&["merge", "chat"]).0, 2);
}

/// As on a read-only disk, or in a colleague's folder.
#[test]
fn results_that_may_not_be_written_are_read() {
    let place = Place::new("read-only");
    std::fs::create_dir(place.path("shared")).unwrap();
    Table::new("drill").runs("websocket", "cpu", "%", &[10.0, 11.0]).import(&place, "chat");
    std::fs::rename(place.store_path(), place.path("shared/a b.db")).unwrap();
    let run = |arguments: &[&str]| {
        let script = "mount --bind shared shared && mount -o remount,ro,bind shared && exec \"$@\"";
        let inner = place.pushlab(arguments);
        // The superuser may write any file, but not on a file system mounted to be read.
        let mut command = std::process::Command::new("unshare");
        command.args(["-rm", "sh", "-c", script, "sh"]).arg(inner.get_program()).args(inner.get_args());
        command.current_dir(place.path("")).env("PUSHLAB_STORE", "shared/a b.db").output().unwrap()
    };
    if !run(&["--version"]).status.success() {
        // Without namespaces of its own a test cannot have a file system of its own.
        return;
    }
    for arguments in [&["runs"][..], &["show", "chat"], &["report", "chat"], &["export", "chat", "--format", "csv"]] {
        let output = run(arguments);
        let (said, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {error}");
        assert!(said.contains("chat") || said.contains("drill"), "{arguments:?}: {said}");
        assert!(error.contains("shared/a b.db cannot be opened for writing, so"), "{arguments:?}: {error}");
    }
    let output = run(&["rm", "chat"]);
    assert_eq!(output.status.code(), Some(6), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn pooled_results_are_repeats_of_one() {
    let place = Place::new("pooled");
    stored(&place);
    Table::new("other").runs("sse", "cpu", "%", &[5.0]).import(&place, "other");
    let report = place.json(&["merge", "--pool", "chat~1", "night", "other", "--json"]);
    assert_eq!(means(&report, "cpu"), [("websocket".to_owned(), 16.0, 6)]);
    let figure = &points(&report)[0]["figures"]["cpu"];
    assert!(figure["low"].as_f64() < Some(12.0) && figure["high"].as_f64() > Some(20.0), "{figure}");
    let experiments = report["experiments"].as_array().unwrap();
    let done: Vec<_> = experiments.iter().map(|e| (e["name"].as_str().unwrap(), e["runs_done"].as_u64())).collect();
    assert_eq!(done, [("drill", Some(6)), ("other", Some(1))]);
    assert_eq!((experiments[0]["runs_planned"].as_u64(), points(&report)[0]["runs"].as_u64()), (Some(6), Some(6)));
}
