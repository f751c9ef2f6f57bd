//! The lab killed at any instant: what was stored stays, nothing else does.

use crate::campaign::{PATIENCE, Place, wait_for};
use pushlab_store::Run;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const KILLS: usize = 20;
const RUNS: u32 = 48;
/// Of the instants of the kills.
const SEED: u64 = 20_261_129;
/// Longest time that a lab is left to work; a run takes about as long, and on a busy machine much longer: so half of it
/// is added for each kill as long as none was done.
const LIFE_MAX_MS: u64 = 800;

#[test]
fn kills_at_any_instant_lose_nothing_that_was_stored() {
    println!("seed {SEED}");
    let mut random = fastrand::Rng::with_seed(SEED);
    let place = Place::new("kills");
    let phases = "{ connect_ms = 10000, idle_ms = 20, warm_up_ms = 20, load_ms = 150, drain_ms = 3000, after_ms = 0 }";
    place.experiment(&[("repeats", "24"), ("phases", phases)]);
    let mut known: Vec<Run> = Vec::new();
    let mut life_max_ms = LIFE_MAX_MS;
    for kill in 1..=KILLS {
        let mut lab = start(&place);
        let done = die(&place, &mut lab, &mut random, kill, life_max_ms);
        all_have_ended(&place);
        assert_eq!(integrity(&place.store_path()), "ok", "kill {kill}");
        let store = place.store();
        let rows = store.campaigns().unwrap();
        assert!(rows.len() <= 1, "kill {kill}: {rows:?}");
        let runs = rows.first().map_or_else(Vec::new, |row| store.runs(row.id).unwrap());
        assert!(runs.starts_with(&known), "kill {kill}: {} runs are not the {} from before", runs.len(), known.len());
        assert!(runs.len() >= done, "kill {kill}: {} of {done} runs are left", runs.len());
        known = runs;
        life_max_ms = if known.is_empty() { life_max_ms + LIFE_MAX_MS / 2 } else { LIFE_MAX_MS };
    }
    assert!(!known.is_empty() && known.len() < RUNS as usize, "{} runs were done between the kills", known.len());

    // Else it would be no wonder that none was found.
    let mut lab = start(&place);
    wait_for("lab, subject and worker", || (processes(&place.store_path()).len() >= 3).then_some(()));
    lab.kill().unwrap();
    lab.wait().unwrap();
    all_have_ended(&place);

    let (report, code) = place.report(&["--quiet"]);
    assert_eq!((code, report["experiments"][0]["runs_done"].as_u64()), (0, Some(RUNS.into())), "{report:#}");
    let store = place.store();
    let rows = store.campaigns().unwrap();
    assert_eq!((rows.len(), rows[0].is_complete), (1, true));
    let runs = store.runs(rows[0].id).unwrap();
    assert_eq!(runs.iter().map(|run| run.place).collect::<Vec<_>>(), (1..=RUNS).collect::<Vec<_>>());
    assert!(runs.starts_with(&known), "what was done before the last start is as it was");
    for repeat in 1..=RUNS / 2 {
        let of_block = runs.iter().filter(|run| run.repeat == repeat);
        let mut transports: Vec<&str> = of_block.map(|run| run.cell.transport.as_str()).collect();
        transports.sort_unstable();
        assert_eq!(transports, ["long-polling", "websocket"], "repeat {repeat}");
    }
}

/// Starts the lab, or lets it go on.
fn start(place: &Place) -> Child {
    let mut command = place.pushlab(&["run", "experiment.toml", "--quiet"]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Waits for the end of all that the lab started.
fn all_have_ended(place: &Place) {
    wait_for("the end of what the lab started", || processes(&place.store_path()).is_empty().then_some(()));
}

/// Kills the lab, every second time just when it writes to the store. Gives the number of runs that had been stored.
fn die(place: &Place, lab: &mut Child, random: &mut fastrand::Rng, kill: usize, life_max_ms: u64) -> usize {
    let begun = Instant::now();
    let mut done = 0;
    if kill.is_multiple_of(2) {
        let log = place.path("results.db-wal");
        let changed = || std::fs::metadata(&log).and_then(|file| Ok((file.len(), file.modified()?))).ok();
        let before = changed();
        while changed() == before {
            assert!(begun.elapsed() < PATIENCE, "it never writes");
            std::thread::park_timeout(Duration::from_micros(500));
        }
        std::thread::sleep(Duration::from_micros(random.u64(..4_000)));
    } else {
        std::thread::sleep(Duration::from_millis(random.u64(..life_max_ms)));
        done = place.runs_done();
    }
    let lived = begun.elapsed();
    assert!(lab.try_wait().unwrap().is_none(), "the lab ended by itself after {lived:?}");
    lab.kill().unwrap();
    lab.wait().unwrap();
    println!("kill {kill} after {lived:?}");
    done
}

/// Live processes that were started for this store: the lab's own and all its children inherit where it is.
fn processes(store: &Path) -> Vec<u32> {
    let wanted = format!("PUSHLAB_STORE={}", store.display()).into_bytes();
    let is_ours = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted)
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_ours).collect()
}

fn integrity(path: &Path) -> String {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap()
}
