//! The tables of findings in docs/studies are made of the inventories, the published data and the runs in `runs`.

use crate::{is_as, place};
use pushlab_analysis::report::{RunValues, documented, findings};
use pushlab_experiment::studies::STUDIES;
use pushlab_experiment::{Experiment, presets};
use pushlab_lab::{archive, experiments};
use std::error::Error;
use std::fs;
use std::path::PathBuf;

const BEGIN: &str = "<!-- findings -->\n";
const END: &str = "<!-- end of findings -->\n";

/// All figures in `runs`.
fn measured() -> Result<Vec<RunValues>, Box<dyn Error>> {
    let entries: Result<Vec<_>, _> = fs::read_dir(place("runs"))?.collect();
    let mut files: Vec<PathBuf> = entries?.into_iter().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "csv"));
    files.sort();
    let mut all = Vec::new();
    for path in files {
        all.extend(archive::bare("runs", &path.display().to_string(), &fs::read_to_string(&path)?)?);
    }
    Ok(all)
}

#[test]
fn every_study_has_a_page_with_its_findings_as_they_are_judged() {
    let measured = measured().unwrap();
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
