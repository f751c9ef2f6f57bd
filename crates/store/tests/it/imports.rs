//! What comes back from exports, and what is refused with its line.

use crate::exports::{csv, filled, units};
use crate::fixture::{Place, new_campaign, small_run};
use pushlab_store::export::{self, COLUMNS, Selection};
use pushlab_store::import::{self, ImportError};
use pushlab_store::{Kind, MetricValue, NewCampaign, Outcome, Store};

fn published(name: &str) -> NewCampaign {
    NewCampaign { kind: Kind::Published, ..new_campaign(name) }
}

#[test]
fn json_comes_back_as_it_was() {
    let place = Place::new("json");
    let (mut store, id) = filled(&place);
    store.annotate(id, "a note\nof two lines").unwrap();
    store.set_complete(id).unwrap();
    let empty = store.create_campaign(&published("empty")).unwrap();
    let mut text = Vec::new();
    assert_eq!(export::json(&store, &[id, empty], &mut text).unwrap(), 4);
    serde_json::from_slice::<serde_json::Value>(&text).expect("one document");

    let mut other = Store::open(&place.folder.join("other.db")).unwrap();
    other.create_campaign(&new_campaign("already there")).unwrap();
    // Editors on Windows begin a text with such a mark.
    let ids = import::json(&mut other, [b"\xef\xbb\xbf", text.as_slice()].concat().as_slice()).unwrap();
    assert_eq!(ids, [2, 3]);
    assert_eq!(other.runs(2).unwrap(), store.runs(id).unwrap());
    assert!(other.runs(3).unwrap().is_empty());
    let (mine, theirs) = (store.campaign(id).unwrap(), other.campaign(2).unwrap());
    assert_eq!((theirs.seed, theirs.facts, theirs.header), (mine.seed, mine.facts, mine.header));
    assert_eq!((theirs.row.kind, other.find("empty").unwrap().kind), (Kind::Imported, Kind::Published));
    assert_eq!((theirs.row.note, theirs.row.is_complete), (mine.row.note, true));
    assert_eq!((theirs.row.created_at, theirs.row.planned), (mine.row.created_at, mine.row.planned));

    let mut again = Vec::new();
    export::json(&other, &[2, 3], &mut again).unwrap();
    let expected = String::from_utf8(text).unwrap().replace("\"kind\":\"measured\"", "\"kind\":\"imported\"");
    assert_eq!(String::from_utf8(again).unwrap(), expected);
}

/// Version 0.1.0 called a run's warnings doubts.
#[test]
fn json_of_the_first_version_is_read() {
    let place = Place::new("json-first-version");
    let (store, id) = filled(&place);
    let mut text = Vec::new();
    export::json(&store, &[id], &mut text).unwrap();
    let text = String::from_utf8(text).unwrap().replace("\"warnings\":", "\"doubts\":");
    assert!(text.contains("\"doubts\":"), "{text}");

    let mut other = Store::open(&place.folder.join("other.db")).unwrap();
    let ids = import::json(&mut other, text.as_bytes()).unwrap();
    assert_eq!(other.runs(ids[0]).unwrap(), store.runs(id).unwrap());
    assert!(other.runs(ids[0]).unwrap().iter().any(|run| !run.warnings.is_empty()));
}

#[test]
fn json_that_is_none_leaves_the_store_alone() {
    let place = Place::new("bad-json");
    let (mut store, id) = filled(&place);
    let mut good = Vec::new();
    export::json(&store, &[id], &mut good).unwrap();
    let good = String::from_utf8(good).unwrap();
    let line_4 = good.replace("\"repeat\":2", "\"repeat\":\"two\"");
    let doubled = good.replace("\"place\":2", "\"place\":1");
    for (text, says) in [
        ("", "line 1: it is no export of Pushlab"),
        ("{\"format\":\"other\",\"version\":1}", "it is `other` version 1"),
        ("{\"format\":\"pushlab-results\",\"version\":2}", "version 2, and this Pushlab reads"),
        (&good[..good.len() / 2], "no export of Pushlab"),
        (&good.replace("\"seed\"", "\"sead\""), "unknown field `sead`"),
        (&line_4, "line 4: invalid type"),
        (&doubled, "has run 1 already"),
        (&good.replace("\"latency_p50\":{\"value\"", "\"latency_p50\":{\"worth\""), "unknown field `worth`"),
    ] {
        let error = import::json(&mut store, text.as_bytes()).unwrap_err();
        assert!(error.to_string().contains(says), "{error} instead of {says}");
        assert_eq!(store.campaigns().unwrap().len(), 1, "{says}");
    }
}

#[test]
fn csv_comes_back_as_it_was() {
    let place = Place::new("csv-back");
    let (mut store, id) = filled(&place);
    let text = csv(&store, id, &Selection::default());
    let without_void: String = text.lines().filter(|line| !line.ends_with("void")).map(|l| format!("{l}\n")).collect();
    let imported = import::csv(&mut store, &published("study"), &units, without_void.as_bytes()).unwrap();
    assert_eq!(csv(&store, imported, &Selection::default()), without_void);
    let row = store.find("study").unwrap();
    assert_eq!((row.kind, row.is_complete, row.planned, row.done), (Kind::Published, true, 3, 3));
    let (mine, theirs) = (store.runs(id).unwrap(), store.runs(imported).unwrap());
    for (mine, theirs) in mine.iter().zip(&theirs) {
        assert_eq!((&mine.cell, mine.repeat, &mine.figures), (&theirs.cell, theirs.repeat, &theirs.figures));
    }
    assert!(matches!(theirs[2].outcome, Outcome::Failed { .. }));
}

const GOOD: &str = "chat,node,sse,,,,50,,,1,latency_p50,ms,3.5,about,yes";

/// Names come from files of others, and a spreadsheet computes what looks like a formula.
#[test]
fn no_text_in_csv_is_a_formula_and_all_come_back() {
    let place = Place::new("formulas");
    let mut store = place.store();
    let id = store.create_campaign(&new_campaign("compare")).unwrap();
    let names = ["=1+1", "+1", "-1", "@SUM(A1)", "'=1", "''-1", "'quoted'", "-", "plain", "=cmd|' /C calc'!A0"];
    for (place, name) in (1..).zip(names) {
        let mut run = small_run(place);
        run.repeat = 1;
        for text in [&mut run.cell.experiment, &mut run.cell.subject, &mut run.cell.policy] {
            name.clone_into(text);
        }
        (run.cell.variant, run.cell.network) = (Some(name.to_owned()), Some(name.to_owned()));
        let figure = MetricValue { value: -1.5, bound: None, unit: Some(name.to_owned()) };
        run.figures = [(name.to_owned(), figure)].into();
        store.add_run(id, &run).unwrap();
    }
    let text = csv(&store, id, &Selection::default());
    let mut table = ::csv::Reader::from_reader(text.as_bytes());
    let rows: Vec<::csv::StringRecord> = table.records().map(Result::unwrap).collect();
    let value = COLUMNS.iter().position(|column| *column == "value").unwrap();
    for row in &rows {
        assert_eq!(&row[value], "-1.5", "a number stays one");
        let is_formula = |cell: &str| cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
        let cells = row.iter().enumerate().filter(|(column, cell)| *column != value && is_formula(cell));
        assert_eq!(cells.collect::<Vec<_>>(), [], "{row:?}");
    }
    let imported = import::csv(&mut store, &published("study"), &units, text.as_bytes()).unwrap();
    let cells = |id| store.runs(id).unwrap().into_iter().map(|run| (run.cell, run.figures)).collect::<Vec<_>>();
    assert_eq!((rows.len(), cells(imported)), (names.len(), cells(id)));
}

fn import_lines(store: &mut Store, header: &str, lines: &[&str]) -> Result<i64, ImportError> {
    let text = format!("{header}\n{}\n", lines.join("\n"));
    import::csv(store, &published("study"), &units, text.as_bytes())
}

#[test]
fn a_line_that_cannot_be_is_named_and_nothing_imported() {
    let place = Place::new("bad-csv");
    let mut store = place.store();
    let header = COLUMNS.join(",");
    for (line, says) in [
        ("chat,node,pigeon,,,,50,,,1,latency_p50,ms,3.5,,yes", "`pigeon` is no transport; those are websocket, sse"),
        ("chat,node,sse,,,,many,,,1,latency_p50,ms,3.5,,yes", "`clients` is `many`"),
        ("chat,node,sse,,,,50,,,0,latency_p50,ms,3.5,,yes", "repeats count from 1"),
        ("chat,node,sse,,,,50,,,1,latency_p50,ms,2-4,range,yes", "`value` is `2-4`"),
        ("chat,node,sse,,,,50,,,1,latency_p50,ms,,,yes", "`value` is ``"),
        ("chat,node,sse,,,,50,,,1,latency_p50,ms,inf,,yes", "`value` is inf"),
        ("chat,node,sse,,,,50,,,1,latency_p50,s,3.5,,yes", "`unit` of latency_p50 is `s`, and Pushlab has it in `ms`"),
        ("chat,node,sse,,,,50,,,1,latency_p50,ms,3.5,roughly,yes", "one of about, below, range, max"),
        ("chat,node,sse,,,,50,,,1,latency_p99,ms,3.5,,maybe", "yes, void or failed"),
        ("chat,node,sse,,,,50,,,1,latency_p99,ms,3.5,,void", "export it as JSON"),
        ("chat,node,sse,,,,50,,,1,latency_p99,ms,3.5,,failed", "yes in an earlier row"),
        ("chat,node,sse,,,,50,,,1,,ms,3.5,,yes", "metric cannot be \"\""),
        (",node,sse,,,,50,,,1,latency_p50,ms,3.5,,yes", "experiment cannot be \"\""),
        ("chat,node,sse,,,,50,,,1,latency_p50,ms", "it has 12 fields, and the header has 15"),
        (GOOD, "is on line 2 already"),
    ] {
        let error = import_lines(&mut store, &header, &[GOOD, line]).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, ImportError::Line { line: 3, .. }) && text.contains(says), "{text} instead of {says}");
        assert!(store.campaigns().unwrap().is_empty(), "{says}");
    }
    let header_cases = [
        (header.replace("bound,", ""), "column `bound` is missing; the columns are experiment,"),
        (format!("{header},extra"), "column `extra` is unknown"),
        (header.replace("bound", "unit"), "column `unit` is there twice"),
        (format!("{header},unit"), "column `unit` is there twice"),
    ];
    for (header, says) in header_cases {
        let error = import_lines(&mut store, &header, &[GOOD]).unwrap_err();
        assert!(matches!(error, ImportError::Line { line: 1, .. }) && error.to_string().contains(says), "{error}");
    }
    assert!(import_lines(&mut store, &header, &[]).unwrap_err().to_string().contains("no row"));
    assert!(import::csv(&mut store, &published("x"), &units, &b"\xff\xfe\n"[..]).is_err());
    assert!(store.campaigns().unwrap().is_empty());
}

#[test]
fn tables_of_spreadsheets_are_read() {
    let place = Place::new("spreadsheet");
    let mut store = place.store();
    let text = format!("\u{feff}{}\r\n{GOOD}\r\n\r\n", COLUMNS.join(","));
    let id = import::csv(&mut store, &published("study"), &units, text.as_bytes()).unwrap();
    assert_eq!(store.runs(id).unwrap()[0].figures["latency_p50"].value, 3.5);
}

#[test]
fn columns_may_come_in_any_order_and_metrics_unknown_keep_their_unit() {
    let place = Place::new("order");
    let mut store = place.store();
    let header = "counts,bound,value,unit,metric,repeat,payload_bytes,deliveries_per_s,clients,variant,policy,\
                  transport,subject,experiment";
    let line = "yes,max,120,messages/s,sent,1,71,2000,50,\"a \"\"b\"\",\r\nc\",,sse,node,chat".replace("\r\n", " ");
    let id = import_lines(&mut store, header, &[&line]).unwrap();
    let run = &store.runs(id).unwrap()[0];
    assert_eq!((run.cell.variant.as_deref(), run.cell.payload_bytes), (Some("a \"b\", c"), Some(71)));
    assert_eq!(run.figures["sent"].unit.as_deref(), Some("messages/s"));
}

#[test]
fn tables_of_before_there_were_networks_are_read() {
    let place = Place::new("older-csv");
    let mut store = place.store();
    let header = COLUMNS.join(",").replace("network,", "");
    let id = import_lines(&mut store, &header, &[&GOOD.replacen("sse,,,", "sse,,calm,", 1).replacen(",,50", ",50", 1)]);
    let run = &store.runs(id.unwrap()).unwrap()[0];
    assert_eq!((run.cell.variant.as_deref(), run.cell.network.as_deref(), run.cell.clients), (Some("calm"), None, 50));
    let twice = format!("{},network", COLUMNS.join(","));
    let error = import_lines(&mut store, &twice, &[&format!("{GOOD},4g")]).unwrap_err().to_string();
    assert!(error.contains("`network` is there twice"), "{error}");
}

#[test]
fn json_of_before_there_were_networks_is_read() {
    let place = Place::new("older-json");
    let (mut store, id) = filled(&place);
    let mut text = Vec::new();
    export::json(&store, &[id], &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let older = text.replace("\"network\":null,", "").replace("\"network\":\"lan 100\",", "");
    assert!(text.contains("lan 100") && !older.contains("network"), "{older}");
    let imported = import::json(&mut store, older.as_bytes()).unwrap()[0];
    assert!(store.runs(imported).unwrap().iter().all(|run| run.cell.network.is_none()));
}
