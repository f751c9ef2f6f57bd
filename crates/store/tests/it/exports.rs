//! What exports write; other programs read them back in `tests/exports`.

use crate::fixture::{Place, failed_run, full_run, new_campaign, small_run, void_run};
use pushlab_store::export::{self, ExportError, Selection};
use pushlab_store::{Run, Store, StoreError};

pub fn units(metric: &str) -> &'static str {
    match metric {
        "latency_p50" => "ms",
        "server_cpu" => "%",
        _ => "",
    }
}

pub fn filled(place: &Place) -> (Store, i64) {
    let mut store = place.store();
    let id = store.create_campaign(&new_campaign("compare")).unwrap();
    for run in [full_run(1), small_run(2), failed_run(3), void_run(4)] {
        store.add_run(id, &run).unwrap();
    }
    (store, id)
}

pub fn csv(store: &Store, id: i64, selection: &Selection) -> String {
    let mut text = Vec::new();
    let rows = export::csv(store, &[id], selection, &units, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert_eq!(text.lines().count() as u64, rows + 1);
    text
}

#[test]
fn csv_has_a_row_for_each_figure() {
    let place = Place::new("csv");
    let (store, id) = filled(&place);
    let text = csv(&store, id, &Selection::default());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], export::COLUMNS.join(","));
    assert_eq!(
        lines[1],
        "\"feed, fast\",push lab,long-polling,close,corked,lan 100,100,20000,71,1,latency_p50,ms,1.25,,yes"
    );
    assert_eq!(
        lines[2],
        "\"feed, fast\",push lab,long-polling,close,corked,lan 100,100,20000,71,1,messages,messages/s,120,about,yes"
    );
    assert_eq!(
        lines[5],
        format!("\"feed, fast\",push lab,websocket,close,,,10,,71,2,latency_p50,ms,{},,yes", 0.1 + 2.0 / 3.0)
    );
    assert!(lines[6].ends_with(",failed") && lines[7].ends_with(",void") && lines.len() == 8, "{text}");
}

#[test]
fn a_selection_leaves_the_rest_out() {
    let place = Place::new("selection");
    let (store, id) = filled(&place);
    let rows = |selection: Selection| csv(&store, id, &selection).lines().count() - 1;
    let set = |name: &str| Some([name.to_owned()].into());
    assert_eq!(rows(Selection { only_counting: true, ..Selection::default() }), 5);
    assert_eq!(rows(Selection { metrics: set("latency_p50"), ..Selection::default() }), 4);
    assert_eq!(rows(Selection { transports: set("long-polling"), ..Selection::default() }), 4);
    assert_eq!(rows(Selection { subjects: set("other"), ..Selection::default() }), 0);
}

#[test]
fn points_have_the_cell_as_tags() {
    let place = Place::new("points");
    let (store, id) = filled(&place);
    let mut text = Vec::new();
    let points = export::line_protocol(&store, &[id], &Selection::default(), &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((points, lines.len()), (34, 34), "four runs, and 30 seconds of the first");
    let tags = "experiment=feed\\,\\ fast,subject=push\\ lab,transport=long-polling,policy=close,variant=corked,\
                network=lan\\ 100,clients=100,deliveries_per_s=20000,payload_bytes=71,repeat=1,counts=yes";
    assert!(
        lines[0].starts_with(&format!("pushlab_run,{tags} latency_p50=1.25,messages=120,messages_bound=\"about\","))
    );
    assert!(lines[0].ends_with(" 1714564801500000000"), "{}", lines[0]);
    assert_eq!(lines[1], format!("pushlab_second,{tags} delivered=2000i 1714564801500000000"));
    let third = format!("pushlab_second,{tags} delivered=2003i,latency\\ p50={} 1714564804500000000", 3.0 / 7.0);
    assert_eq!(lines[4], third);
}

#[test]
fn a_name_that_points_cannot_hold_is_refused() {
    let place = Place::new("backslash");
    let mut store = place.store();
    let id = store.create_campaign(&new_campaign("compare")).unwrap();
    let mut run: Run = small_run(1);
    run.cell.subject = "a\\".to_owned();
    store.add_run(id, &run).unwrap();
    let error = export::line_protocol(&store, &[id], &Selection::default(), &mut Vec::new()).unwrap_err();
    assert!(matches!(error, ExportError::Name { .. }), "{error}");
}

#[test]
fn a_missing_experiment_is_an_error_not_an_empty_file() {
    let place = Place::new("none");
    let (store, id) = filled(&place);
    let all = Selection::default();
    for ids in [vec![id + 1], vec![id, id + 1]] {
        let errors = [
            export::csv(&store, &ids, &all, &units, &mut Vec::new()),
            export::parquet(&store, &ids, &all, &units, Vec::new()),
            export::line_protocol(&store, &ids, &all, &mut Vec::new()),
            export::json(&store, &ids, &mut Vec::new()),
        ];
        for error in errors {
            assert!(matches!(error, Err(ExportError::Store(StoreError::NotFound { .. }))), "{error:?}");
        }
    }
}

#[test]
fn a_file_is_written_whole_or_not_at_all() {
    let place = Place::new("file");
    let (store, id) = filled(&place);
    let path = place.folder.join("figures.parquet");
    let write =
        |id: i64| export::to_file(&path, |out| export::parquet(&store, &[id], &Selection::default(), &units, out));
    assert_eq!(write(id).unwrap(), 7);
    let before = std::fs::read(&path).unwrap();
    assert_eq!((&before[..4], &before[before.len() - 4..]), (&b"PAR1"[..], &b"PAR1"[..]));
    assert!(write(id + 1).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let names: Vec<_> = std::fs::read_dir(&place.folder).unwrap().flatten().map(|file| file.file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().ends_with(".part")), "{names:?}");

    let error = export::to_file(&place.folder.join("no/figures.csv"), |_| Ok(())).unwrap_err();
    assert!(matches!(&error, ExportError::File { .. }) && error.to_string().contains("figures.csv"), "{error}");
    let full = export::to_file(&path, |out| {
        std::io::Write::write_all(out, b"half")?;
        Err::<(), _>(ExportError::Write(std::io::ErrorKind::StorageFull.into()))
    });
    let error = full.unwrap_err().to_string();
    assert!(error.contains("figures.parquet") && error.contains("free some space"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}
