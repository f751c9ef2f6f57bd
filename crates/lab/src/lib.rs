//! The lab: experiments as files, carried out in interleaved runs, stored, reported with intervals.
//!
//! ```no_run
//! use pushlab_lab::{Campaign, Start, archive, presets};
//!
//! let (name, experiments) = presets::load_all("tangen-broadcast", Some("quick"))?;
//! let store = archive::open(None)?;
//! let start = Start { name, out: "results".into(), ..Start::default() };
//! let campaign = Campaign::open(experiments, store, start)?;
//! println!("experiment {} in the store", campaign.id());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod archive;
mod campaign;
pub mod capacity;
pub mod cell;
mod doubts;
pub mod experiment;
mod header;
mod live;
mod machine_load;
mod measure;
pub mod metric;
mod pinning;
pub mod presets;
mod process;
pub mod record;
pub mod report;
mod run;
pub mod schema;
pub mod statement;
pub mod studies;
mod subject;
mod traffic;
mod worker;

pub use campaign::{Campaign, CampaignError, Ended, Observer, Start, Tally};
pub use header::Header;
pub use live::{Live, LiveError, Watched};
pub use run::Usage;
