//! Disks that are full.

use crate::fixture::{Place, SAID, child_in, childs_task, full_run, integrity, new_campaign, said};
use crate::opening::has_namespaces;
use pushlab_store::{Store, StoreError};
use std::path::Path;

/// More than fits where the tests let it write.
const RUNS_MAX: u32 = 500;

/// Adds runs from `first` until one cannot be stored; says which it was and why.
fn fill(store: &mut Store, first: u32) -> (u32, StoreError) {
    for place in first..first + RUNS_MAX {
        if let Err(error) = store.add_run(1, &full_run(place)) {
            return (place, error);
        }
    }
    panic!("{RUNS_MAX} runs found room");
}

fn check(path: &Path, stored: u32) {
    let store = Store::open(path).unwrap();
    let runs = store.runs(1).unwrap();
    assert_eq!(runs.len(), stored as usize);
    assert_eq!(runs.last(), Some(&full_run(stored)));
    drop(store);
    assert_eq!(integrity(path), "ok");
}

/// In a file system of 2 MiB with ballast of 1 MiB, which goes in two parts when the disk is full.
#[test]
fn child_on_a_full_disk() {
    let Some((path, _)) = childs_task() else { return };
    let (ballast, reserve) = (path.with_file_name("ballast"), path.with_file_name("reserve"));
    std::fs::write(&ballast, vec![1; 3 << 18]).unwrap();
    std::fs::write(&reserve, vec![1; 1 << 18]).unwrap();
    let mut store = Store::open(&path).unwrap();
    store.create_campaign(&new_campaign("compare")).unwrap();
    let (failed, error) = fill(&mut store, 1);
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    assert!(error.to_string().contains("free some space and repeat"), "{error}");
    assert!(failed > 3, "only {failed} runs fitted");
    // Again and again the same, and still nothing is lost. The second store finds the disk full from the start.
    assert!(matches!(fill(&mut store, failed).1, StoreError::Full { .. }));
    drop(store);
    match Store::open(&path) {
        Ok(mut store) => {
            assert_eq!(store.run_places(1).unwrap().len(), failed as usize - 1);
            let _ = fill(&mut store, failed);
        }
        Err(error) => assert!(matches!(error, StoreError::Full { .. }), "{error:?}"),
    }

    std::fs::remove_file(ballast).unwrap();
    // Runs may have found room after the log was written into the file.
    let mut store = Store::open(&path).unwrap();
    let stored = store.run_places(1).unwrap().last().copied().unwrap();
    store.add_run(1, &full_run(stored + 1)).expect("there is room again");
    drop(store);
    check(&path, stored + 1);
    // Removing something needs room for its log, and where there is none nothing is removed.
    let mut store = Store::open(&path).unwrap();
    let stored = fill(&mut store, stored + 2).0 - 1;
    if let Err(error) = store.remove(1) {
        assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
        assert_eq!(store.runs(1).unwrap().len(), stored as usize);
        std::fs::remove_file(reserve).unwrap();
        store.remove(1).expect("there is room for the log");
    }
    assert_eq!(store.create_campaign(&new_campaign("next")).unwrap(), 2);
    (1..=stored / 2).for_each(|place| _ = store.add_run(2, &full_run(place)).expect("the space was given back"));
    println!("{SAID}{stored} runs");
}

#[test]
fn a_full_disk_loses_nothing_and_work_goes_on_when_there_is_room() {
    if !has_namespaces() {
        // The limit on file sizes in the next test is then the only full disk to be had.
        eprintln!("no file system of our own: `unshare -rm` is not permitted");
        return;
    }
    let place = Place::new("full");
    let script = "mount -t tmpfs -o size=2m none \"$(dirname \"$PUSHLAB_STORE_CHILD\")\" && exec \"$@\"";
    let shell = ["unshare", "-rm"];
    let child = child_in(&shell, script, "failing::child_on_a_full_disk", &place.path(), 0).spawn().unwrap();
    let says = said(child).join("");
    assert!(says.ends_with(" runs"), "{says}");
}

#[test]
fn child_with_a_limit() {
    let Some((path, _)) = childs_task() else { return };
    let mut store = Store::open(&path).unwrap();
    let (failed, error) = fill(&mut store, 1);
    assert!(matches!(error, StoreError::Full { .. } | StoreError::Io { .. }), "{error:?}");
    assert!(error.to_string().contains("the file is intact with everything stored before"), "{error}");
    println!("{SAID}{}", failed - 1);
}

#[test]
fn a_limit_on_file_sizes_loses_nothing_either() {
    let place = Place::new("limit");
    place.store().create_campaign(&new_campaign("compare")).unwrap();
    // Blocks of 512 bytes: 1 MiB. Without the trap the system would end the process.
    let script = "trap '' XFSZ; ulimit -f 2048; exec \"$@\"";
    let child = child_in(&["env"], script, "failing::child_with_a_limit", &place.path(), 0).spawn().unwrap();
    let stored: u32 = said(child).join("").parse().unwrap();
    assert!(stored > 3, "only {stored} runs fitted");
    check(&place.path(), stored);
    place.store().add_run(1, &full_run(stored + 1)).expect("there is room again");
    check(&place.path(), stored + 1);
}
