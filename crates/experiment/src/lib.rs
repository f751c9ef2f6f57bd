//! What is measured, and in which words: experiments and their cells, metrics, assertions, published studies.
//!
//! An experiment is read in two steps. [`Written`] is what a file says; its subjects are names. [`Experiment`] knows
//! what each of them offers, which somebody who knows the subjects has to tell, and therefore its cells.
//!
//! ```
//! use pushlab_experiment::{Experiment, Written, presets};
//!
//! let text = presets::text("tangen-broadcast").expect("a preset");
//! let written = Written::read(text, Some("quick"), "tangen-broadcast")?;
//! let experiment = Experiment::resolve(written, &|_| Ok(None), "tangen-broadcast")?;
//! assert_eq!(experiment.runs(), experiment.cells().len() * experiment.repeats as usize);
//! # Ok::<(), pushlab_experiment::ExperimentError>(())
//! ```

pub mod assertion;
mod card;
pub mod cell;
mod checks;
mod durations;
mod expect;
mod experiment;
pub mod findings;
pub mod frameworks;
pub mod margins;
pub mod metric;
mod offers;
mod places;
mod polling;
pub mod presets;
mod prober_choice;
mod proxy;
mod renamed;
pub mod studies;
pub mod subject;
pub mod traffic;
mod variant;
mod written;

pub use card::{CardRow, Workload};
pub use expect::Expect;
pub use experiment::Experiment;
pub use offers::{Find, Offer};
pub use polling::Polling;
pub use proxy::Proxy;
pub use variant::Variant;
pub use written::{
    CapacityShare, Derived, ExperimentError, MAX_CLIENTS, MAX_NAME_BYTES, MAX_PHASE_MS, MAX_RUNS, NO_NETWORK, Written,
};
