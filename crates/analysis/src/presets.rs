//! Experiments for tests, of whose subjects anything is believed.

use pushlab_experiment::{Experiment, ExperimentError, Written, presets};

pub fn load(name: &str, profile: Option<&str>) -> Result<Experiment, ExperimentError> {
    let written = Written::read(presets::text(name).expect("a preset"), profile, name)?;
    Ok(Experiment::believe(written, &|_| Ok(None)))
}
