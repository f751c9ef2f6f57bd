//! The tables of findings in docs/studies are made of the inventories, the published data and the runs in `runs`.

use crate::{is_as, place};
use pushlab_analysis::report::{RunValues, documented, findings};
use pushlab_experiment::studies::STUDIES;
use pushlab_experiment::{Experiment, presets};
use pushlab_lab::{archive, experiments};
use std::fs;

const BEGIN: &str = "<!-- findings -->\n";
const END: &str = "<!-- end of findings -->\n";

/// All figures in `runs`.
fn measured() -> Vec<RunValues> {
    let mut files: Vec<_> = fs::read_dir(place("runs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "csv"));
    files.sort();
    let of = |path: &std::path::PathBuf| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        archive::bare(&name, &name, &fs::read_to_string(path).unwrap()).unwrap()
    };
    files.iter().flat_map(of).collect()
}

#[test]
fn every_study_has_a_page_with_its_findings_as_they_are_judged() {
    let measured = measured();
    let all: Vec<Experiment> =
        presets::PRESETS.iter().map(|(name, _)| experiments::load(name, None).unwrap()).collect();
    for study in &STUDIES {
        let path = format!("docs/studies/{}.md", study.id);
        let text = fs::read_to_string(place(&path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        let (before, rest) = text.split_once(BEGIN).unwrap_or_else(|| panic!("{path} has no line {BEGIN}"));
        let (_, after) = rest.split_once(END).unwrap_or_else(|| panic!("{path} has no line {END}"));
        let judged = findings(study, &all, &measured, &archive::published(study).unwrap(), 1);
        is_as(&path, &format!("{before}{BEGIN}\n{}\n{END}{after}", documented(&judged))).unwrap();
    }
}
