//! What may be opened, and what is left alone.

use crate::fixture::{Place, child_in, childs_task, new_campaign, said, small_run};
use pushlab_store::{APPLICATION_ID, Cell, Store, StoreError};
use rusqlite::Connection;
use std::path::Path;
use std::process::Command;

fn refused(path: &Path) -> String {
    let before = std::fs::read(path).ok();
    let error = Store::open(path).unwrap_err();
    assert_eq!(std::fs::read(path).ok(), before, "it was changed");
    let kind = format!("{error:?}");
    let kind = kind.split([' ', '{']).next().unwrap();
    format!("{kind}: {error}")
}

#[test]
fn folders_are_made_and_an_empty_file_is_a_new_database() {
    let place = Place::new("new");
    let path = place.folder.join("a/b/results.db");
    assert!(Store::open(&path).unwrap().campaigns().unwrap().is_empty());
    std::fs::write(place.path(), "").unwrap();
    let mut store = place.store();
    assert_eq!(store.path(), place.path());
    store.create_campaign(&new_campaign("compare")).unwrap();
    assert_eq!(place.store().campaigns().unwrap().len(), 1);
}

#[test]
fn what_is_not_ours_is_not_touched() {
    let place = Place::new("foreign");
    std::fs::write(place.path(), "latency,ms\n".repeat(500)).unwrap();
    let says = refused(&place.path());
    assert!(says.starts_with("NotOurs: ") && says.contains("no SQLite database"), "{says}");
    let says = refused(&place.folder);
    assert!(says.starts_with("NotOurs: ") && says.contains("a folder"), "{says}");

    let other = place.folder.join("other.db");
    let connection = Connection::open(&other).unwrap();
    connection.execute_batch("CREATE TABLE a (b); INSERT INTO a VALUES (1);").unwrap();
    drop(connection);
    let says = refused(&other);
    assert!(says.starts_with("NotOurs: ") && says.contains("another program's"), "{says}");
    // A file in the way of the folder.
    let says = refused(&place.path().join("results.db"));
    assert!(says.starts_with("Io: "), "{says}");
}

#[test]
fn a_newer_format_is_not_touched() {
    let place = Place::new("newer");
    drop(place.store());
    let connection = Connection::open(place.path()).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let says = refused(&place.path());
    assert!(says.starts_with("Newer: ") && says.contains("format 99") && says.contains("newer Pushlab"), "{says}");
}

#[test]
fn an_older_format_is_brought_to_the_newest_with_its_rows() {
    let place = Place::new("older");
    let old = Connection::open(place.path()).unwrap();
    old.execute_batch(include_str!("../../migrations/0001.sql")).unwrap();
    old.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
    old.pragma_update(None, "user_version", 1).unwrap();
    old.execute_batch(
        "INSERT INTO experiments (id, name, kind, created_at, planned, seed, header)
         VALUES (7, 'compare', 'measured', '2024-05-01T12:00:00Z', 1, '5', '{}');
         INSERT INTO cells VALUES (3, 7, 'feed', 'pushlab', 'sse', 'close', NULL, 10, NULL, NULL);
         INSERT INTO runs VALUES (4, 7, 1, 3, 1, '6', '2024-05-01T12:00:00Z', 10, 1, 'yes', NULL, NULL, 'null');
         INSERT INTO figures VALUES (4, 'latency_p50', 1.5, NULL, NULL);",
    )
    .unwrap();
    let has_view = "SELECT count(*) FROM sqlite_schema WHERE name IN ('figures_by_cell', 'runs_by_counts')";
    assert_eq!(old.query_row(has_view, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    drop(old);

    let mut store = place.store();
    let runs = store.runs(7).unwrap();
    assert_eq!((runs[0].seed, runs[0].figures["latency_p50"].value), (6, 1.5));
    assert_eq!(runs[0].cell.network, None);
    assert!(runs[0].earlier.is_empty(), "of what was tried before then nothing is known");
    let mut linked = small_run(2);
    linked.cell = Cell { network: Some("4g".to_owned()), ..runs[0].cell.clone() };
    store.add_run(7, &linked).unwrap();
    assert_eq!(store.run(7, 2).unwrap().cell, linked.cell);
    drop(store);
    let new = Connection::open(place.path()).unwrap();
    assert_eq!(new.query_row(has_view, [], |row| row.get::<_, i64>(0)).unwrap(), 2);
    let version: i64 = new.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, 4);
    let cells = "SELECT count(*), count(network) FROM cells";
    let cells: (i64, i64) = new.query_row(cells, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    assert_eq!(cells, (2, 1), "the same cell but for its network is another");
    let networks =
        "SELECT group_concat(coalesce(network, '-')) FROM (SELECT network FROM figures_by_cell ORDER BY place)";
    assert_eq!(new.query_row(networks, [], |row| row.get::<_, String>(0)).unwrap(), "-,4g");
}

#[test]
fn old_and_new_databases_have_the_same_settings() {
    let place = Place::new("settings");
    drop(place.store());
    let connection = Connection::open(place.path()).unwrap();
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(number("auto_vacuum"), 2, "incremental");
    assert_eq!(number("application_id"), APPLICATION_ID);
    let journal: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
    assert_eq!(journal, "wal");
}

#[test]
fn damage_is_told_from_a_foreign_file() {
    let place = Place::new("corrupt");
    let mut store = place.store();
    let id = store.create_campaign(&new_campaign("compare")).unwrap();
    (1..=50).for_each(|number| _ = store.add_run(id, &small_run(number)).unwrap());
    drop(store);
    let mut bytes = std::fs::read(place.path()).unwrap();
    // All but the first page, which says what the file is.
    bytes[4_096..].fill(0x5a);
    std::fs::write(place.path(), bytes).unwrap();
    let error = Store::open(&place.path()).and_then(|store| store.runs(id)).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
    assert!(error.to_string().contains(".recover"), "{error}");
}

/// Whether this machine lets the tests have file systems of their own.
pub fn has_namespaces() -> bool {
    Command::new("unshare").args(["-rm", "true"]).status().is_ok_and(|status| status.success())
}

#[test]
fn a_read_only_file_is_refused_with_what_to_do() {
    let place = Place::new("read-only");
    drop(place.store());
    let script = if has_namespaces() {
        // The superuser may write any file, but not on a file system mounted to be read.
        "folder=$(dirname \"$PUSHLAB_STORE_CHILD\") && mount --bind \"$folder\" \"$folder\" &&
         mount -o remount,ro,bind \"$folder\" && exec \"$@\""
    } else {
        "chmod 444 \"$PUSHLAB_STORE_CHILD\" && exec \"$@\""
    };
    let shell: &[&str] = if has_namespaces() { &["unshare", "-rm"] } else { &["env"] };
    for path in [place.path(), place.folder.join("missing.db")].into_iter().take(1 + usize::from(has_namespaces())) {
        let child = child_in(shell, script, "opening::child_that_opens", &path, 0).spawn().unwrap();
        let says = said(child).join("");
        assert!(says.starts_with("ReadOnly") && says.contains("permission to read and write"), "{says}");
    }
}

#[test]
fn a_name_that_sqlite_has_another_meaning_for_is_a_files() {
    let place = Place::new("names");
    for name in ["file:results.db", ":memory:"] {
        let mut child = child_in(&["env"], "exec \"$@\"", "opening::child_that_opens", Path::new(name), 0);
        assert_eq!(said(child.current_dir(&place.folder).spawn().unwrap()), ["opened"]);
        assert!(place.folder.join(name).is_file(), "{name}");
    }
}

#[test]
fn child_that_opens() {
    let Some((path, _)) = childs_task() else { return };
    match Store::open(&path) {
        Ok(_) => println!("{}opened", crate::fixture::SAID),
        Err(error) => println!("{}{}: {error}", crate::fixture::SAID, format!("{error:?}").split(' ').next().unwrap()),
    }
}

#[test]
fn whoever_only_reads_makes_and_changes_nothing() {
    let place = Place::new("only-read");
    assert!(Store::open_to_read(&place.path()).is_err() && !place.path().exists());
    let mut store = Store::open(&place.path()).unwrap();
    let id = store.create_campaign(&new_campaign("kept")).unwrap();
    let mut reader = Store::open_to_read(&place.path()).unwrap();
    assert_eq!(reader.find("kept").unwrap().id, id);
    let refused = reader.create_campaign(&new_campaign("other")).unwrap_err();
    assert!(refused.to_string().contains("cannot be opened for writing"), "{refused}");
    assert_eq!(store.campaigns().unwrap().len(), 1);
    // What is written meanwhile is seen.
    store.create_campaign(&new_campaign("later")).unwrap();
    assert_eq!(reader.campaigns().unwrap().len(), 2);
    drop((reader, store));
    let old = Connection::open(place.path()).unwrap();
    old.pragma_update(None, "user_version", 1).unwrap();
    drop(old);
    let error = Store::open_to_read(&place.path()).unwrap_err();
    assert!(matches!(error, StoreError::Older { .. }) && error.to_string().contains("pushlab runs"), "{error}");
    let format: i64 =
        Connection::open(place.path()).unwrap().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(format, 1);
}
