//! The tables of findings in docs/studies are made of the inventories, the published data and the runs in `runs`.

use crate::{is_as, place};
use pushlab_analysis::report::{Measured, RunValues, documented, findings};
use pushlab_experiment::cell::Cell;
use pushlab_experiment::studies::STUDIES;
use pushlab_experiment::{Experiment, presets};
use pushlab_lab::{archive, experiments};
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;

const BEGIN: &str = "<!-- findings -->\n";
const END: &str = "<!-- end of findings -->\n";

/// The figures of those files in `runs` whose names are wanted. Where several have a series, those of the file with the most
/// repeats of each point: a short run and a long one are no repeats of each other.
fn measured(is_wanted: impl Fn(&str) -> bool) -> Result<Vec<RunValues>, Box<dyn Error>> {
    let entries: Result<Vec<_>, _> = fs::read_dir(place("runs"))?.collect();
    let mut files: Vec<PathBuf> = entries?.into_iter().map(|entry| entry.path()).collect();
    files.retain(|path| {
        path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.ends_with(".csv") && is_wanted(name))
    });
    files.sort();
    let mut chosen: BTreeMap<String, Vec<RunValues>> = BTreeMap::new();
    for path in files {
        let mut own: BTreeMap<String, Vec<RunValues>> = BTreeMap::new();
        for run in archive::bare("runs", &path.display().to_string(), &fs::read_to_string(&path)?)? {
            own.entry(series_of(&run.cell)).or_default().push(run);
        }
        for (series, runs) in own {
            let known = chosen.entry(series).or_default();
            if repeats(&runs) > repeats(known) {
                *known = runs;
            }
        }
    }
    Ok(chosen.into_values().flatten().collect())
}

/// The runs of that point of a series which has fewest.
fn repeats(runs: &[RunValues]) -> usize {
    let mut points: BTreeMap<String, usize> = BTreeMap::new();
    for run in runs {
        *points.entry(format!("{:?}", run.cell)).or_default() += 1;
    }
    points.into_values().min().unwrap_or(0)
}

/// What one line of a chart shows, as a text.
fn series_of(cell: &Cell) -> String {
    let Cell { experiment, subject, transport, policy, variant, network, .. } = cell;
    format!("{experiment} {subject} {} {} {variant:?} {network:?}", transport.name(), policy.name())
}

/// A result of before an experiment was given networks would be a series of its own, and an assertion that names none would
/// stand for both and say nothing.
#[test]
fn no_series_is_stored_both_with_a_network_and_without() {
    let mut with: BTreeMap<String, BTreeSet<bool>> = BTreeMap::new();
    for run in measured(|_| true).unwrap() {
        let has_network = run.cell.network.is_some();
        with.entry(series_of(&Cell { network: None, ..run.cell })).or_default().insert(has_network);
    }
    let both: Vec<String> = with.into_iter().filter(|(_, seen)| seen.len() > 1).map(|(series, _)| series).collect();
    assert!(both.is_empty(), "{}", both.join("\n"));
}

#[test]
fn every_study_has_a_page_with_its_findings_as_they_are_judged() {
    let any_length = measured(|_| true).unwrap();
    let full_length = measured(|name| !name.ends_with("-quick.csv") && !name.ends_with("-short.csv")).unwrap();
    let measured = Measured { any_length: &any_length, full_length: &full_length };
    let all: Vec<Experiment> =
        presets::PRESETS.iter().map(|(name, _)| experiments::load(name, None).unwrap()).collect();
    for study in &STUDIES {
        let path = format!("docs/studies/{}.md", study.id);
        let text = fs::read_to_string(place(&path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        let (before, rest) = text.split_once(BEGIN).unwrap_or_else(|| panic!("{path} has no line {BEGIN}"));
        let (_, after) = rest.split_once(END).unwrap_or_else(|| panic!("{path} has no line {END}"));
        let judged = findings(study, &all, measured, &archive::published(study).unwrap(), 1);
        is_as(&path, &format!("{before}{BEGIN}\n{}\n{END}{after}", documented(&judged))).unwrap();
    }
}
