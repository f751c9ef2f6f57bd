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
pub mod bytes;
mod campaign;
mod capacities;
pub mod capacity;
pub mod cell;
mod certificate;
mod counter_reader;
mod doubts;
pub mod experiment;
mod fleet;
mod header;
pub mod leftovers;
mod link_figures;
mod link_watch;
pub mod live;
mod machine_load;
mod measure;
pub mod metric;
mod offers;
mod pinning;
pub mod presets;
mod process;
mod queue;
pub mod record;
pub mod report;
mod run;
pub mod schema;
mod site;
pub mod statement;
pub mod stored;
pub mod studies;
pub mod subjects;
mod traffic;

pub use campaign::{Campaign, CampaignError, Ended, Observer, Start, Tally, check_experiments, leave_out_missing};
pub use header::Header;
pub use live::{Live, LiveError, LiveState, Watched};
pub use pinning::on_load_cores;
pub use run::{Usage, this_program};
