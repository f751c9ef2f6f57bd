//! What is stored comes back.

use crate::fixture::{Place, cell, failed_run, full_run, new_campaign, small_run, void_run};
use pushlab_store::{Column, MetricValue, Run, SeriesRow, StoreError, Values};
use std::collections::BTreeSet;

#[test]
fn a_run_comes_back_as_it_was() {
    let place = Place::new("back");
    let mut store = place.store();
    let new = new_campaign("compare");
    let id = store.create_campaign(&new).unwrap();
    let runs = [full_run(1), small_run(2), failed_run(3), void_run(4)];
    for run in runs.iter().rev() {
        store.add_run(id, run).unwrap();
    }
    store.annotate(id, "quiet machine").unwrap();
    drop(store);

    let mut store = place.store();
    assert_eq!(store.runs(id).unwrap(), runs);
    assert_eq!(store.run(id, 3).unwrap(), runs[2]);
    assert_eq!(store.run_places(id).unwrap(), BTreeSet::from([1, 2, 3, 4]));
    let experiment = store.campaign(id).unwrap();
    assert_eq!((experiment.seed, &experiment.facts, &experiment.header), (new.seed, &new.facts, &new.header));
    let row = store.find("compare").unwrap();
    assert_eq!(row, experiment.row);
    assert_eq!((row.planned, row.done, row.valid, row.void, row.failed), (4, 4, 2, 1, 1));
    assert_eq!((row.is_complete, row.note.as_deref()), (false, Some("quiet machine")));

    store.set_complete(id).unwrap();
    store.annotate(id, "").unwrap();
    let row = store.find(&id.to_string()).unwrap();
    assert_eq!((row.is_complete, row.note), (true, None));
}

#[test]
fn cells_are_stored_once() {
    let place = Place::new("cells");
    let mut store = place.store();
    let id = store.create_campaign(&new_campaign("compare")).unwrap();
    for number in 1..=6 {
        store.add_run(id, &Run { cell: cell("sse", number % 3), ..small_run(number) }).unwrap();
    }
    let connection = rusqlite::Connection::open(place.path()).unwrap();
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count("SELECT count(*) FROM cells"), 3);
    let mean = "SELECT count(DISTINCT value) FROM figures_by_cell WHERE metric = 'latency_p50' AND clients = 0";
    assert_eq!(count(mean), 2);
}

#[test]
fn a_run_of_thirty_seconds_takes_less_than_100_kb() {
    let place = Place::new("size");
    let mut store = place.store();
    let id = store.create_campaign(&new_campaign("compare")).unwrap();
    (1..=40).for_each(|number| _ = store.add_run(id, &full_run(number)).unwrap());
    drop(store);
    let bytes = std::fs::metadata(place.path()).unwrap().len() / 40;
    assert!((20_000..100_000).contains(&bytes), "{bytes} bytes");
}

#[test]
fn what_cannot_be_kept_is_refused_whole() {
    let place = Place::new("refused");
    let mut store = place.store();
    let id = store.create_campaign(&new_campaign("compare")).unwrap();
    let figure = |value: f64| Run { figures: [("x".to_owned(), value.into())].into(), ..small_run(1) };
    let named = |name: &str| Run { figures: [(name.to_owned(), 1.0.into())].into(), ..small_run(1) };
    let series = |columns: Vec<Values>| {
        let columns = columns.into_iter().map(|values| Column { name: "c".to_owned(), values }).collect();
        Run { series: vec![SeriesRow { name: "s".to_owned(), columns }], ..small_run(1) }
    };
    let of_cell = |change: fn(&mut pushlab_store::Cell)| {
        let mut run = small_run(1);
        change(&mut run.cell);
        run
    };
    let twice = SeriesRow { name: "s".to_owned(), columns: vec![] };
    let cases = [
        (figure(f64::NAN), "x is NaN"),
        (figure(f64::INFINITY), "x is inf"),
        (named(""), "metric cannot be \""),
        (named("a\nb"), "metric cannot be \""),
        (named(&"a".repeat(201)), "metric cannot be \""),
        (Run { counts: [("n".to_owned(), 1 << 63)].into(), ..small_run(1) }, "over 2^63"),
        (Run { place: 0, ..small_run(1) }, "0; both count from 1"),
        (Run { repeat: 0, ..small_run(1) }, "0; both count from 1"),
        (Run { started_at: "yesterday".to_owned(), ..small_run(1) }, "`yesterday` is no instant"),
        (of_cell(|cell| cell.transport = "pigeon".to_owned()), "`pigeon` is no transport"),
        (of_cell(|cell| cell.variant = Some(String::new())), "variant cannot be \""),
        (series(vec![Values::Integers(vec![None]), Values::Integers(vec![])]), "has 0 rows, not 1"),
        (series(vec![Values::Numbers(vec![Some(f64::NAN)])]), "has NaN"),
        (Run { series: vec![twice.clone(), twice], ..small_run(1) }, "two series"),
        (
            Run {
                figures: [("x".to_owned(), MetricValue { unit: Some(String::new()), ..1.0.into() })].into(),
                ..small_run(1)
            },
            "unit cannot be \"",
        ),
    ];
    for (run, text) in cases {
        let error = store.add_run(id, &run).unwrap_err();
        assert!(matches!(error, StoreError::Invalid { .. }) && error.to_string().contains(text), "{error}");
    }
    assert!(store.run_places(id).unwrap().is_empty());
    assert!(matches!(store.create_campaign(&new_campaign("")), Err(StoreError::Invalid { .. })));
}

#[test]
fn a_place_is_given_once() {
    let place = Place::new("taken");
    let mut store = place.store();
    let id = store.create_campaign(&new_campaign("compare")).unwrap();
    store.add_run(id, &small_run(1)).unwrap();
    let other = Run { seed: 9, ..full_run(1) };
    let error = store.add_run(id, &other).unwrap_err();
    assert!(matches!(error, StoreError::Taken { place: 1, .. }), "{error}");
    assert_eq!(store.runs(id).unwrap(), [small_run(1)]);
}

#[test]
fn what_is_not_there_is_said_to_be_missing() {
    let place = Place::new("missing");
    let mut store = place.store();
    let missing = |result: Result<(), StoreError>| matches!(result, Err(StoreError::NotFound { .. }));
    assert!(missing(store.set_complete(1)) && missing(store.annotate(1, "a")) && missing(store.remove(1)));
    assert!(missing(store.runs(1).map(|_| ())) && missing(store.run_places(1).map(|_| ())));
    assert!(missing(store.campaign(1).map(|_| ())) && missing(store.add_run(1, &small_run(1)).map(|_| ())));
    assert!(missing(store.find("compare").map(|_| ())) && missing(store.run(1, 1).map(|_| ())));
}

#[test]
fn removal_takes_everything_and_gives_the_space_back() {
    let place = Place::new("remove");
    let mut store = place.store();
    let small = store.create_campaign(&new_campaign("compare")).unwrap();
    store.add_run(small, &small_run(1)).unwrap();
    let large = store.create_campaign(&new_campaign("compare")).unwrap();
    (1..=30).for_each(|number| _ = store.add_run(large, &full_run(number)).unwrap());
    let size = || {
        let files = std::fs::read_dir(&place.folder).unwrap().flatten();
        files.map(|file| file.metadata().unwrap().len()).sum::<u64>()
    };
    assert!(size() > 600_000);
    store.remove(large).unwrap();
    assert!(size() < 300_000, "{} bytes are left", size());
    assert_eq!(store.find("compare").unwrap().id, small);
    assert_eq!(store.runs(small).unwrap(), [small_run(1)]);
    let connection = rusqlite::Connection::open(place.path()).unwrap();
    for table in ["facts", "cells", "runs", "doubts", "phases", "figures", "counts", "histograms", "series"] {
        let count: i64 = connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap();
        assert!(count <= 2, "{count} {table}");
    }
    assert!(store.create_campaign(&new_campaign("compare")).unwrap() > large, "numbers are not given again");
}

#[test]
fn a_damaged_row_is_named() {
    let place = Place::new("damaged");
    let mut store = place.store();
    let id = store.create_campaign(&new_campaign("compare")).unwrap();
    store.add_run(id, &full_run(1)).unwrap();
    for (damage, text) in [
        ("UPDATE series SET data = substr(data, 1, 99) WHERE name = 'subject'", "series subject: it is cut short"),
        ("UPDATE histograms SET data = x'00'", "cut short"),
        ("UPDATE doubts SET code = 'unheard-of'", "unheard-of"),
        ("UPDATE runs SET seed = 'x'", "`x` is unknown"),
    ] {
        let connection = rusqlite::Connection::open(place.path()).unwrap();
        connection.execute(damage, []).unwrap();
        let error = store.runs(id).unwrap_err();
        let says = error.to_string();
        assert!(matches!(error, StoreError::Unreadable { .. }), "{says}");
        assert!(says.contains("run 1 of result") && says.contains(text), "{says}");
    }
}
