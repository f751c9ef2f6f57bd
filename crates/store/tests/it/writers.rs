//! Several processes at once, and processes that are killed.

use crate::fixture::{Place, SAID, child, childs_task, integrity, new_campaign, said, small_run};
use pushlab_store::{Measuring, Run, Store, StoreError};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const RUNS_EACH: u32 = 60;

/// Tells the parent, through the pipe before anything else happens.
fn say(text: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{SAID}{text}").unwrap();
    out.flush().unwrap();
}

#[test]
fn child_that_adds_runs() {
    let Some((path, first)) = childs_task() else { return };
    let mut store = Store::open(&path).unwrap();
    for place in first..first + RUNS_EACH {
        store.add_run(1, &small_run(place)).unwrap();
        say(place);
    }
}

#[test]
fn runs_of_several_processes_all_arrive() {
    let place = Place::new("writers");
    place.store().create_campaign(&new_campaign("compare")).unwrap();
    let first = |writer: u32| 1 + writer * RUNS_EACH;
    let children: Vec<Child> = (0..3)
        .map(|writer| child("writers::child_that_adds_runs", &place.path(), first(writer)).spawn().unwrap())
        .collect();
    for child in children {
        assert_eq!(said(child).len(), RUNS_EACH as usize);
    }
    let runs = place.store().runs(1).unwrap();
    assert_eq!(runs, (1..first(3)).map(small_run).collect::<Vec<Run>>());
}

#[test]
fn child_that_makes_a_database() {
    let Some((path, first)) = childs_task() else { return };
    let mut store = Store::open(&path).unwrap();
    say(store.create_campaign(&new_campaign(&format!("by-{first}"))).unwrap());
}

#[test]
fn several_processes_may_make_the_same_database() {
    let place = Place::new("makers");
    for round in 0..5 {
        let path = place.folder.join(format!("{round}.db"));
        let start = |first| child("writers::child_that_makes_a_database", &path, first).spawn().unwrap();
        let children: Vec<Child> = (0..6).map(start).collect();
        let ids: BTreeSet<String> = children.into_iter().flat_map(said).collect();
        assert_eq!(ids.len(), 6);
        assert_eq!(Store::open(&path).unwrap().campaigns().unwrap().len(), 6);
    }
}

#[test]
fn child_that_never_stops() {
    let Some((path, first)) = childs_task() else { return };
    let mut store = Store::open(&path).unwrap();
    for place in first.. {
        store.add_run(1, &crate::fixture::full_run(place)).unwrap();
        say(place);
    }
}

#[test]
fn what_was_acknowledged_survives_kill_9() {
    let place = Place::new("kill");
    place.store().create_campaign(&new_campaign("compare")).unwrap();
    let mut random = fastrand::Rng::new();
    let mut acknowledged = BTreeSet::new();
    for round in 0..20_u32 {
        let mut child = child("writers::child_that_never_stops", &place.path(), 1 + round * 10_000).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (sender, said) = mpsc::channel();
        let reader = std::thread::spawn(move || {
            let lines = out.lines().map_while(Result::ok);
            let places = lines.filter_map(|line| line.strip_prefix(SAID)?.parse::<u32>().ok());
            places.for_each(|place| _ = sender.send(place));
        });
        // After 0 to 5 acknowledgements, and then at any instant of the next write or two.
        for _ in 0..random.u32(0..6) {
            acknowledged.insert(said.recv_timeout(Duration::from_secs(60)).unwrap());
        }
        std::thread::sleep(Duration::from_micros(random.u64(0..40_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        reader.join().unwrap();
        acknowledged.extend(said);

        let store = place.store();
        let there = store.run_places(1).unwrap();
        assert!(acknowledged.is_subset(&there), "lost {:?}", acknowledged.difference(&there));
        if let Some(last) = there.last() {
            assert_eq!(store.run(1, *last).unwrap(), crate::fixture::full_run(*last), "the last one is whole");
        }
        drop(store);
        assert_eq!(integrity(&place.path()), "ok");
    }
    assert!(acknowledged.len() > 10, "too few runs to test anything: {}", acknowledged.len());
}

#[test]
fn child_that_measures() {
    let Some((path, _)) = childs_task() else { return };
    let store = Store::open(&path).unwrap();
    let _lock = store.lock_for_measuring().unwrap();
    say("locked");
    // Until it is killed or the parent ends.
    let _ = std::io::stdin().read_line(&mut String::new());
}

#[test]
fn one_lab_measures_at_a_time() {
    let place = Place::new("lock");
    let mut store = place.store();
    let mut other = child("writers::child_that_measures", &place.path(), 0).stdin(Stdio::piped()).spawn().unwrap();
    wait_for_line(&mut other, "locked");
    let error = store.lock_for_measuring().unwrap_err();
    assert!(matches!(&error, StoreError::Measuring { pid: Some(pid), .. } if *pid == other.id()), "{error:?}");
    assert!(error.to_string().contains(&format!("process {}", other.id())), "{error}");
    assert_eq!(store.measuring(), Some(Measuring { pid: other.id(), campaign: None }));
    let link = place.folder.join("link.db");
    std::os::unix::fs::symlink(place.path(), &link).unwrap();
    assert!(matches!(Store::open(&link).unwrap().lock_for_measuring(), Err(StoreError::Measuring { .. })));
    // The others may go on with everything else.
    store.create_campaign(&new_campaign("compare")).unwrap();

    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!(store.measuring(), None, "the file names a process that is gone");
    let mut lock = store.lock_for_measuring().expect("released with the process");
    lock.name(7).unwrap();
    assert_eq!(store.measuring(), Some(Measuring { pid: std::process::id(), campaign: Some(7) }));
    assert!(matches!(place.store().lock_for_measuring(), Err(StoreError::Measuring { .. })));
    drop(lock);
    place.store().lock_for_measuring().expect("released when dropped");
}

fn wait_for_line(child: &mut Child, text: &str) {
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while lines.next().is_some_and(|line| !line.unwrap().contains(text)) {
        assert!(Instant::now() < deadline, "the child never said {text}");
    }
}

#[test]
fn readers_do_not_wait_for_a_writer() {
    let place = Place::new("readers");
    let mut store = place.store();
    let id = store.create_campaign(&new_campaign("compare")).unwrap();
    store.add_run(id, &small_run(1)).unwrap();
    let writer = rusqlite::Connection::open(place.path()).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE; DELETE FROM experiments;").unwrap();
    assert_eq!(store.runs(id).unwrap().len(), 1);
    assert_eq!(Store::open(Path::new(&place.path())).unwrap().campaigns().unwrap().len(), 1);
}
