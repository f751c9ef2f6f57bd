//! Results against each other, and alarms.

use crate::campaign::Place;
use crate::transfer::Table;
use serde_json::Value;

/// A result whose server takes so much CPU for a delivery, give or take, in so many runs.
fn import(place: &Place, name: &str, cpu_us: f64, runs: u32) {
    let around = |middle: f64| (0..runs).map(|run| middle * (1.0 + f64::from(run % 5) / 200.0)).collect::<Vec<f64>>();
    let table = Table::new("drill").runs("websocket", "cpu_per_delivery", "µs", &around(cpu_us));
    table.runs("websocket", "delivered", "/s", &around(1000.0)).import(place, name);
}

fn changes(report: &Value) -> Vec<(String, String)> {
    let rows = report["comparison"]["rows"].as_array().unwrap();
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    rows.iter().map(|row| (text(row, "metric"), text(row, "change"))).collect()
}

fn expected(rows: &[(&str, &str)]) -> Vec<(String, String)> {
    rows.iter().map(|(metric, change)| ((*metric).to_owned(), (*change).to_owned())).collect()
}

fn code(place: &Place, arguments: &[&str]) -> i32 {
    place.run(arguments).status.code().unwrap()
}

#[test]
fn what_got_worse_is_said_and_fails_only_when_asked_to() {
    let place = Place::new("worse");
    import(&place, "before", 10.0, 10);
    import(&place, "after", 15.0, 10);
    let report = place.json(&["compare", "before", "after", "--json"]);
    assert_eq!(changes(&report), expected(&[("cpu_per_delivery", "worse"), ("delivered", "equivalent")]));
    let row = &report["comparison"]["rows"][0];
    assert!((row["relative_percent"].as_f64().unwrap() - 50.0).abs() < 1.0, "{row}");
    assert!(row["p_value"].as_f64() < Some(0.05) && row["magnitude"] == "large", "{row}");
    assert_eq!((report["comparison"]["baseline"].as_str(), row["candidate"].as_str()), (Some("before"), Some("after")));
    let said = place.prints(&["compare", "before", "after"]);
    for part in
        ["after against before", "cpu_per_delivery", "worse", "1 of 2 figures is equivalent", "Report: results/comp"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(code(&place, &["compare", "before", "after", "--fail-if-worse"]), 9);
    assert_eq!(code(&place, &["compare", "before", "after", "--fail-if-worse", "--metric", "delivered"]), 0);
    let back = place.json(&["compare", "after", "before", "--fail-if-worse", "--json"]);
    assert_eq!(changes(&back)[0], ("cpu_per_delivery".to_owned(), "better".to_owned()));
    import(&place, "third", 10.0, 10);
    let three = place.json(&["compare", "before", "after", "third", "--json"]);
    assert_eq!(changes(&three).len(), 4);
    assert_eq!(changes(&three).iter().filter(|(_, change)| change == "worse").count(), 1);
}

#[test]
fn undecided_is_neither_passed_nor_failed() {
    let place = Place::new("undecided");
    let scattered = |middle: f64| [0.7, 1.3, 1.0, 0.9, 1.1].map(|factor| middle * factor);
    let import = |name: &str, cpu_us: f64| {
        let table = Table::new("drill").runs("websocket", "cpu_per_delivery", "µs", &scattered(cpu_us));
        table.import(&place, name);
    };
    import("before", 10.0);
    import("after", 10.1);
    let report = place.json(&["compare", "before", "after", "--json"]);
    assert_eq!(changes(&report), expected(&[("cpu_per_delivery", "undecided")]));
    let row = &report["comparison"]["rows"][0];
    assert_eq!(row["margin_percent"], 10.0);
    assert!(row["factor"]["low"].as_f64() < Some(0.9) && row["factor"]["high"].as_f64() > Some(1.1), "{row}");
    let summary = report["comparison"]["summary"].as_str().unwrap();
    assert!(summary.contains("0 are as good as before within their margins, 1 undecided"), "{summary}");
    let said = place.prints(&["compare", "before", "after"]);
    assert!(said.contains("undecided") && said.contains("0 of 1 figures are equivalent"), "{said}");
    let gate = |options: &[&str]| code(&place, &[&["compare", "before", "after"], options].concat());
    assert_eq!([gate(&[]), gate(&["--fail-if-worse"])], [0, 10]);
    for (undecided, expected) in [("pass", 0), ("fail", 9), ("report", 10)] {
        assert_eq!(gate(&["--fail-if-worse", "--undecided", undecided]), expected, "{undecided}");
    }
    // As good as each other within a margin that is wide enough; what is no margin is refused before anything is read.
    assert_eq!(gate(&["--fail-if-worse", "--margin", "cpu=60"]), 0);
    assert_eq!([gate(&["--margin", "speed=5"]), gate(&["--margin", "cpu=0"]), gate(&["--margin", "cpu"])], [2; 3]);
    let junit = place.prints(&["compare", "before", "after", "--format", "junit"]);
    assert!(junit.contains("<skipped message=\"undecided: +1.0 %"), "{junit}");
}

#[test]
fn what_cannot_be_compared_is_said() {
    let place = Place::new("incomparable");
    import(&place, "before", 10.0, 10);
    import(&place, "once", 99.0, 1);
    Table::new("drill").runs("sse", "cpu_per_delivery", "µs", &[1.0, 2.0, 3.0]).import(&place, "sse");
    let (exit, error) = place.fails(&["compare", "before", "sse"]);
    assert!(exit == 1 && error.contains("before and sse have no cell and metric in common"), "{error}");
    let (exit, error) = place.fails(&["compare", "before"]);
    assert!(exit == 1 && error.contains("nothing to compare with"), "{error}");
    let (exit, error) = place.fails(&["compare", "before", "once", "--metric", "speed"]);
    assert!(exit == 2 && error.contains("\"speed\"") && error.contains("cpu_per_delivery"), "{error}");
    assert_eq!(code(&place, &["compare"]), 2);

    let report = place.json(&["compare", "before", "once", "--json"]);
    assert_eq!(changes(&report), expected(&[("cpu_per_delivery", "unknown"), ("delivered", "unknown")]));
    assert_eq!(code(&place, &["compare", "before", "once", "--fail-if-worse"]), 10);
    assert!(report["comparison"]["summary"].as_str().unwrap().contains("too few runs"), "{report:#}");
}

#[test]
fn results_of_several_subjects_are_compared_subject_by_subject() {
    let place = Place::new("subjects");
    let table = |first: f64, second: f64| {
        let around = |middle: f64| (0..10).map(|run| middle + f64::from(run) / 100.0).collect::<Vec<f64>>();
        let first = Table::new("drill").of("first").runs("websocket", "cpu", "%", &around(first));
        first.of("second").runs("websocket", "cpu", "%", &around(second))
    };
    table(10.0, 40.0).import(&place, "before");
    // Together they took as much as before.
    table(40.0, 10.0).import(&place, "after");
    let report = place.json(&["compare", "before", "after", "--metric", "cpu", "--json"]);
    assert_eq!(changes(&report), expected(&[("cpu", "worse"), ("cpu", "better")]));
    let cells: Vec<&Value> = report["comparison"]["rows"].as_array().unwrap().iter().map(|row| &row["cell"]).collect();
    assert_eq!(cells, ["drill · first · websocket · 2 clients", "drill · second · websocket · 2 clients"]);
    // One alone is compared with whatever the other side has alone.
    Table::new("drill").of("third").runs("websocket", "cpu", "%", &[1.0, 1.1, 1.2]).import(&place, "third");
    Table::new("drill").of("fourth").runs("websocket", "cpu", "%", &[1.0, 1.1, 1.2]).import(&place, "fourth");
    assert_eq!(changes(&place.json(&["compare", "third", "fourth", "--metric", "cpu", "--json"])).len(), 1);
}

/// What changes from block to block meets both sides, and tells nothing about either.
#[test]
fn subjects_of_one_result_are_compared_block_by_block() {
    let place = Place::new("blocks-of-one");
    let of_blocks = |factor: f64| (0..10).map(|block| factor * f64::from(10 + 3 * block)).collect::<Vec<f64>>();
    let before = || Table::new("drill").of("other").runs("websocket", "cpu_per_delivery", "µs", &of_blocks(1.0));
    let after = |table: Table, factor| table.runs("websocket", "cpu_per_delivery", "µs", &of_blocks(factor));
    for (name, factor, change) in [("same", 1.0, "equivalent"), ("slow", 1.2, "worse"), ("fast", 0.8, "better")] {
        after(before().of("pushlab"), factor).import(&place, name);
        let report = place.json(&["compare", name, "--json"]);
        assert_eq!(changes(&report), expected(&[("cpu_per_delivery", change)]));
        let summary = report["comparison"]["summary"].as_str().unwrap();
        assert!(summary.contains("their runs were interleaved"), "{summary}");
    }
    // Of two results nobody knows which blocks belong together.
    before().import(&place, "before");
    after(Table::new("drill"), 1.2).import(&place, "after");
    let report = place.json(&["compare", "before", "after", "--json"]);
    assert_eq!(changes(&report), expected(&[("cpu_per_delivery", "undecided")]));
}

/// Whether chance alone raises an alarm is measured by `tests/regression/run`.
#[test]
fn another_build_is_measured_interleaved() {
    let place = Place::new("against");
    place.experiment(&[("repeats", "4"), ("transports", "[\"websocket\"]")]);
    let same = env!("CARGO_BIN_EXE_pushlab");
    let (report, exit) = place.report(&["--against", same, "--seed", "5"]);
    assert_eq!(exit, 0, "{report:#}");
    let runs = place.exported("test");
    let subjects: Vec<&str> = runs.iter().map(|run| run["cell"]["subject"].as_str().unwrap()).collect();
    assert_eq!(subjects.len(), 8);
    for (block, repeat) in subjects.chunks(2).zip(1..) {
        let mut block = block.to_vec();
        block.sort_unstable();
        assert_eq!(block, ["other", "pushlab"], "repeat {repeat}: each block has both");
    }
    assert!(subjects.chunks(2).any(|block| block != &subjects[..2]), "in an order that the seed gives");

    let report = place.json(&["compare", "test", "--json"]);
    let comparison = &report["comparison"];
    assert_eq!((comparison["baseline"].as_str(), &comparison["candidates"][0]), (Some("other"), &"pushlab".into()));
    assert!(comparison["summary"].as_str().unwrap().contains("interleaved"), "{comparison:#}");
    let metrics: Vec<String> = changes(&report).into_iter().map(|(metric, _)| metric).collect();
    for metric in ["cpu_per_delivery", "latency_median", "delivered", "memory"] {
        assert!(metrics.iter().any(|found| found == metric), "{metrics:?}");
    }

    // The same build again at another time: two results.
    place.prints(&["run", "experiment.toml", "--repeats", "3"]);
    let report = place.json(&["compare", "test~1", "test", "--json"]);
    assert!(report["comparison"]["summary"].as_str().unwrap().contains("at different times"), "{report:#}");
    assert!(!changes(&report).is_empty());
    let pooled = place.json(&["merge", "--pool", "test~1", "test", "--json"]);
    assert_eq!(pooled["experiments"][0]["runs_done"], 11);
    // The same from another machine.
    let mut export = place.json(&["export", "test", "--format", "json"]);
    export["experiments"][0]["experiment"]["header"]["machine"]["cpu_model"] = "another".into();
    export["experiments"][0]["experiment"]["name"] = "elsewhere".into();
    std::fs::write(place.path("elsewhere.json"), export.to_string()).unwrap();
    place.prints(&["import", "elsewhere.json"]);
    let pooled = place.json(&["merge", "--pool", "test", "elsewhere", "--json"]);
    assert!(pooled["title"].as_str().unwrap().ends_with(", 2 results of 2 machines pooled"), "{}", pooled["title"]);
    let series = pooled["experiments"][0]["series"].as_array().unwrap();
    let labels: Vec<&str> = series.iter().map(|one| one["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["websocket · machine 1", "websocket · machine 2"], "no mean of two machines");
    place.prints(&["rm", "elsewhere"]);

    // Of the same name and another length: no repeats, and compared with a note.
    place.prints(&["run", "experiment.toml", "--repeats", "1", "--load", "300ms"]);
    let (exit, error) = place.fails(&["merge", "--pool", "test~1", "test"]);
    assert!(exit == 1 && error.contains("test #2 and test #4 differ in phases"), "{error}");
    place.prints(&["merge", "test~1", "test"]);
    let noted = |results: &[&str]| {
        let output = place.run(&[&["compare"], results].concat());
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (exit, error) = noted(&["test~1", "test"]);
    assert!(exit == Some(0) && error.contains("note: test #2 and test #4 differ in phases"), "{error}");
    assert_eq!(noted(&["test~2", "test~1"]), (Some(0), String::new()));
    let (exit, error) = place.fails(&["run", "experiment.toml", "--against", "nowhere"]);
    assert!(exit != 0 && error.contains("--against nowhere"), "{error}");
}

#[test]
fn a_condition_that_holds_fails_the_run() {
    let place = Place::new("fail-if");
    place.experiment(&[("repeats", "3"), ("transports", "[\"websocket\"]")]);
    let with = |conditions: &[&'static str]| {
        let option = |condition: &&'static str| {
            let is_option = condition.starts_with("--") || ["pass", "fail", "report"].contains(condition);
            if is_option { vec![*condition] } else { vec!["--fail-if", condition] }
        };
        let conditions = conditions.iter().flat_map(option);
        let arguments: Vec<&str> = ["run", "experiment.toml", "--fresh"].into_iter().chain(conditions).collect();
        let output = place.run(&arguments);
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (exit, error) = with(&["delivered(websocket) < 1", "delivered(websocket) > 1 /s"]);
    assert_eq!(exit, 9, "{error}");
    assert!(error.contains("--fail-if: test: delivered(websocket) > 1"), "{error}");
    assert!(!error.contains("delivered(websocket) < 1"), "{error}");
    let (exit, error) = with(&["delivered(websocket) < 1"]);
    assert_eq!(exit, 0, "{error}");
    let before = place.rows().len();
    for (wrong, word) in [
        ("delivered(websocket)", ">"),
        ("speed(websocket) > 1", "speed"),
        ("p99(websocket) > x", "x"),
        ("p99(sse) > 1", "no series is called sse"),
        ("p99(websocket) < p99(polling)", "called polling"),
        ("p99(websocket) > 1 at 300", "nothing is measured at 300, only at 2"),
    ] {
        let (exit, error) = with(&[wrong]);
        assert!(exit == 2 && error.contains(word), "{exit} {error}");
    }
    assert_eq!(place.rows().len(), before, "nothing was begun");

    place.experiment(&[("transports", "[\"websocket\"]")]);
    let (exit, error) = with(&["delivered(websocket) > 1"]);
    assert!(exit == 10 && error.contains("undecided at 2; use more repeats"), "one run proves nothing: {error}");
    for (undecided, expected) in [("pass", 0), ("fail", 9), ("report", 10)] {
        let (exit, error) = with(&["delivered(websocket) > 1", "--undecided", undecided]);
        assert_eq!(exit, expected, "{undecided}: {error}");
    }
}
