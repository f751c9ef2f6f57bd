//! What follows from measurements: warnings about a run, and a report of many.
//!
//! ```
//! use pushlab_record::{Outcome, PlannedRun, RunRecord};
//! use pushlab_analysis::report::RunValues;
//! # use pushlab_experiment::{Experiment, Written, presets};
//! # let text = presets::text("tangen-chat").expect("a preset");
//! # let experiment = Experiment::believe(Written::read(text, None, "tangen-chat")?, &|_| Ok(None));
//!
//! let planned = PlannedRun { order: 1, cell: experiment.cells().remove(0), repeat: 1, seed: 1 };
//! let figures = RunValues::of(&RunRecord::failed(&planned, "no subject".to_owned(), "2026-01-31T12:00:00Z".to_owned()));
//! assert!(!figures.counts() && figures.figures.is_empty());
//! # Ok::<(), pushlab_experiment::ExperimentError>(())
//! ```

pub mod header;
#[cfg(test)]
mod presets;
pub mod report;
pub mod warnings;
