//! Results that leave one store and come into another.

use crate::campaign::{Place, points};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const COLUMNS: &str = "experiment,subject,transport,policy,variant,network,clients,deliveries_per_s,payload_bytes,\
                       repeat,metric,unit,value,bound,counts";

/// Figures that are quantiles, as far as the experiment here has them.
const QUANTILES: &[&str] = &[
    "latency_first",
    "latency_last",
    "latency_median",
    "latency_p99",
    "response_idle_median",
    "response_median",
    "response_p99",
];

/// A table of figures, as a study or another program gives them.
pub struct Table {
    experiment: String,
    subject: String,
    text: String,
}

impl Table {
    pub fn new(experiment: &str) -> Self {
        Self { experiment: experiment.to_owned(), subject: "ours".to_owned(), text: format!("{COLUMNS}\n") }
    }

    /// What was measured in the runs that follow.
    pub fn of(mut self, subject: &str) -> Self {
        subject.clone_into(&mut self.subject);
        self
    }

    /// One run for each value, with 2 clients.
    pub fn runs(mut self, transport: &str, metric: &str, unit: &str, values: &[f64]) -> Self {
        for (repeat, value) in (1..).zip(values) {
            let cell = format!("{},{},{transport},,,,2,,", self.experiment, self.subject);
            writeln!(self.text, "{cell},{repeat},{metric},{unit},{value},,yes").unwrap();
        }
        self
    }

    /// Imports it; the file's name becomes the result's.
    pub fn import(self, place: &Place, name: &str) {
        let file = format!("{name}.csv");
        std::fs::write(place.path(&file), self.text).unwrap();
        place.prints(&["import", &file]);
    }
}

fn published(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/published").join(name)
}

#[test]
fn a_whole_export_gives_the_same_report_in_another_store() {
    let place = Place::new("export");
    place.experiment(&[("repeats", "2")]);
    let (report, code) = place.report(&[]);
    assert_eq!(code, 0, "{report:#}");
    // Whoever may write into the folder can guess no name that is written to.
    std::fs::write(place.path("victim"), "untouched").unwrap();
    let pid = std::process::id();
    for guess in pid..pid + 500 {
        std::os::unix::fs::symlink(place.path("victim"), place.path(&format!("all.json.{guess}.part"))).unwrap();
    }
    place.prints(&["export", "test", "--output", "all.json"]);
    assert_eq!(std::fs::read_to_string(place.path("victim")).unwrap(), "untouched");
    assert!(!place.path("all.json").is_symlink());
    let said = place.prints(&["import", "all.json", "--store", "other.db"]);
    assert!(said.contains("result 1, test"), "{said}");
    let other = place.json(&["show", "test", "--json", "--store", "other.db"]);
    for part in ["title", "verdict", "metrics", "experiments", "warnings", "environment", "repeat"] {
        assert_eq!(other[part], report[part], "{part}");
    }
    let row = &place.json(&["runs", "--json", "--store", "other.db"])[0];
    assert_eq!((row["kind"].as_str(), row["runs_done"].as_u64()), (Some("imported"), Some(4)));
    // Exported again it is the same, but for whose it is.
    let runs = |store: &str| {
        let export = place.json(&["export", "test", "--format", "json", "--store", store]);
        export["experiments"][0]["runs"].clone()
    };
    assert!(runs("results.db") == runs("other.db"));
    // What another lab measured is not gone on with.
    place.prints(&["run", "experiment.toml", "--repeats", "1", "--store", "other.db"]);
    assert_eq!(place.json(&["runs", "--json", "--store", "other.db"]).as_array().unwrap().len(), 2);

    figures(&place, &report);
    formats(&place);
}

/// The table of figures holds what the report was made of.
fn figures(place: &Place, report: &Value) {
    let text = place.prints(&["export", "test", "--format", "csv", "--metric", "delivered"]);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(COLUMNS));
    let of = |transport: &str| -> Vec<f64> {
        let own = text.lines().filter(|line| line.contains(&format!(",{transport},")));
        own.map(|line| line.split(',').nth(12).unwrap().parse().unwrap()).collect()
    };
    assert_eq!(lines.count(), 4);
    for (transport, point) in ["websocket", "long-polling"].iter().zip(points(report)) {
        let values = of(transport);
        let mean = values.iter().sum::<f64>() / 2.0;
        let reported = point["figures"]["delivered"]["value"].as_f64().unwrap();
        assert!(values.len() == 2 && (mean - reported).abs() < 1e-6, "{transport}: {values:?} {reported}");
    }
    // Read again, they are the same figures, but for quantiles: of these a table has each run's own, not what all runs
    // measured together.
    std::fs::write(place.path("again.csv"), place.prints(&["export", "test", "--format", "csv"])).unwrap();
    place.prints(&["import", "again.csv"]);
    let again = place.json(&["show", "again", "--json"]);
    assert_eq!(points(&again).len(), 2);
    let means = |point: &Value| -> BTreeMap<String, Value> {
        let figures = point["figures"].as_object().unwrap().clone().into_iter();
        figures.filter(|(name, _)| !QUANTILES.contains(&name.as_str())).collect()
    };
    for (own, other) in points(report).iter().zip(points(&again)) {
        assert_eq!(means(own), means(other));
    }
}

fn formats(place: &Place) {
    for (file, begins) in [("figures.parquet", &b"PAR1"[..]), ("points.lp", b"pushlab_run,"), ("figures.csv", b"exp")] {
        place.prints(&["export", "test", "--output", file]);
        let bytes = std::fs::read(place.path(file)).unwrap();
        assert!(bytes.starts_with(begins), "{file}: {:?}", &bytes[..20]);
    }
    let (code, error) = place.fails(&["export", "test", "--output", "figures.xls"]);
    assert!(code == 2 && error.contains(".csv") | error.contains("csv"), "{error}");
    assert!(!place.path("figures.xls").exists());
}

#[test]
fn published_studies_are_imported_and_reported() {
    let place = Place::new("published");
    for (name, experiments) in [
        ("tangen-2015", &["tangen-broadcast", "tangen-chat"][..]),
        ("johannessen-2014-load", &["johannessen-load"]),
        ("cometd-2011", &["cometd-idle", "cometd-load"]),
        ("polling-study-2017", &["polling-study"]),
        ("bigestans-2014", &["bigestans-chat"]),
    ] {
        let file = published(&format!("{name}.csv"));
        let said = place.prints(&["import", file.to_str().unwrap()]);
        assert!(said.contains(name), "{said}");
        let report = place.json(&["report", name, "--json"]);
        let found: Vec<&str> =
            report["experiments"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap()).collect();
        for experiment in experiments {
            assert!(found.contains(experiment), "{name}: {found:?}");
        }
        let figures: usize = points(&report).iter().map(|p| p["figures"].as_object().unwrap().len()).sum();
        assert!(figures > 3, "{name}: {figures} figures");
    }
    let kinds: Vec<String> = place.rows().iter().map(|row| row["kind"].as_str().unwrap().to_owned()).collect();
    assert_eq!(kinds, ["published"; 5]);
    let shown = place.prints(&["show", "tangen-2015"]);
    assert!(shown.contains("long-polling"), "{shown}");
    assert!(!shown.contains("--seed"), "nobody can repeat it: {shown}");
    let folder = std::fs::read_dir(place.path("results")).unwrap().flatten().next().unwrap().path();
    let page = std::fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(page.contains("<script") && page.contains("\"series\":["));
}

/// Of single deliveries a table tells what is a metric.
#[test]
fn losses_come_with_a_table_and_without_them_they_are_not_known() {
    let place = Place::new("losses");
    let losing = |table: Table, lost| table.runs("websocket", "lost", "", &[lost]);
    losing(Table::new("drill").runs("websocket", "cpu", "%", &[1.0]), 5.0).import(&place, "losing");
    losing(Table::new("drill").runs("websocket", "doubled", "", &[2.0]), 0.0).import(&place, "doubling");
    Table::new("drill").runs("websocket", "cpu", "%", &[1.0]).import(&place, "silent");
    for (name, wrong, said) in [
        ("losing", [Value::from(5), Value::Null, Value::Null], "; deliveries: 5 lost; whether any were duplicated"),
        ("doubling", [0.into(), 2.into(), Value::Null], "; deliveries: 0 lost, 2 duplicated; whether any were reord"),
        ("silent", [Value::Null, Value::Null, Value::Null], "; whether any were lost, duplicated or reordered is not"),
    ] {
        let report = place.json(&["report", name, "--json"]);
        let point = points(&report)[0];
        assert_eq!(["lost", "duplicated", "reordered"].map(|kind| point[kind].clone()), wrong, "{name}");
        let certainty = report["verdict"].as_array().unwrap().last().unwrap().as_str().unwrap();
        assert!(certainty.contains(said), "{certainty}");
    }
    assert!(place.prints(&["report", "losing"]).contains("5 – –"));
}

#[test]
fn what_cannot_be_read_is_named_by_line_and_leaves_the_store_as_it_was() {
    let place = Place::new("broken");
    let good = Table::new("drill").runs("websocket", "cpu", "%", &[1.0, 2.0, 3.0]).text;
    for (from, to, line, word) in [
        ("2,cpu,%,2", "2,cpu,%,two", 3, "two"),
        ("2,cpu,%,2", "2,cpu,ms,2", 3, "unit"),
        ("3,cpu,%,3,,yes", "3,cpu,%,3", 4, "fields"),
        (",websocket,,,,2,,,1,", ",pigeon,,,,2,,,1,", 2, "pigeon"),
        ("3,cpu,%,3", "2,cpu,%,3", 4, "line 3"),
        ("value,bound", "value,bond", 1, "bond"),
    ] {
        std::fs::write(place.path("figures.csv"), good.replace(from, to)).unwrap();
        let (code, error) = place.fails(&["import", "figures.csv"]);
        assert_eq!(code, 1, "{error}");
        for part in ["figures.csv", &format!("line {line}:"), word, "nothing was imported"] {
            assert!(error.contains(part), "{part}: {error}");
        }
    }
    for (file, text, word, expected) in [
        ("a.json", "{\"format\": \"other\", \"version\": 1}", "pushlab-results", 1),
        ("b.json", "{\n\"format\"", "line 2", 1),
        ("c.txt", "", ".json", 2),
        ("d.csv", "", "d.csv", 1),
    ] {
        std::fs::write(place.path(file), text).unwrap();
        let (code, error) = place.fails(&["import", file]);
        assert!(code == expected && error.contains(word), "{file}: {error}");
    }
    assert!(place.fails(&["import", "nowhere.csv"]).1.contains("nowhere.csv"));
    assert!(place.rows().is_empty());
}

#[test]
fn a_name_from_elsewhere_stays_in_the_folder_of_reports() {
    let place = Place::new("names");
    place.experiment(&[("transports", "[\"websocket\"]")]);
    place.prints(&["run", "experiment.toml"]);
    let text = place.prints(&["export", "test", "--format", "json"]);
    std::fs::write(place.path("evil.json"), text.replace("\"name\":\"test\"", "\"name\":\"../../test\"")).unwrap();
    place.prints(&["import", "evil.json", "--store", "other.db"]);
    let said = place.prints(&["report", "../../test", "--store", "other.db", "--out", "a/b"]);
    let inside: Vec<PathBuf> = std::fs::read_dir(place.path("a/b")).unwrap().map(|e| e.unwrap().path()).collect();
    assert!(inside.len() == 1 && inside[0].join("report.html").exists(), "{inside:?} {said}");
}

#[test]
fn figures_of_a_clock_that_runs_backwards_are_wrong_and_harm_nobody() {
    let place = Place::new("backwards");
    place.experiment(&[("transports", "[\"websocket\"]")]);
    place.prints(&["run", "experiment.toml"]);
    let mut export = place.json(&["export", "test", "--format", "json"]);
    let run = &mut export["experiments"][0]["runs"][0];
    run["phases"].as_array_mut().unwrap().reverse();
    for series in run["series"].as_array_mut().unwrap() {
        for column in series["columns"].as_array_mut().unwrap() {
            let values = column["values"].as_object_mut().unwrap();
            values.values_mut().for_each(|values| values.as_array_mut().unwrap().reverse());
        }
    }
    run["counts"]["requests"] = 0.into();
    run["counts"]["requests_publishers"] = 9.into();
    std::fs::write(place.path("backwards.json"), export.to_string()).unwrap();
    place.prints(&["import", "backwards.json", "--store", "other.db"]);
    for command in [&["show", "1"][..], &["report", "1"]] {
        place.prints(&[command, &["--store", "other.db"]].concat());
    }
}

#[test]
fn reference_results_are_drawn_beside_the_study() {
    let place = Place::new("reference");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../runs/cometd-idle-full.csv");
    place.prints(&["import", file]);
    let report = place.json(&["report", "cometd-idle-full", "--json"]);
    let series = report["experiments"][0]["series"].as_array().unwrap();
    for origin in ["measured", "published"] {
        let transports = series.iter().filter(|s| s["origin"] == origin).map(|s| s["transport"].as_str().unwrap());
        assert_eq!(transports.collect::<BTreeSet<_>>(), ["long-polling", "websocket"].into(), "{origin}");
    }
}
