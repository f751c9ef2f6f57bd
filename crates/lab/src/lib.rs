//! The lab: experiments as files, carried out in interleaved runs, reported with intervals.
//!
//! ```no_run
//! use pushlab_lab::{Campaign, presets};
//!
//! let experiment = presets::load("tangen-broadcast", Some("quick"))?;
//! let folder = std::path::Path::new("results");
//! let campaign = Campaign::open("tangen-broadcast", vec![experiment], None, folder, false, vec![])?;
//! println!("results go to {}", campaign.folder().display());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod campaign;
mod doubts;
pub mod experiment;
mod live;
mod machine_load;
mod measure;
mod pinning;
pub mod presets;
mod process;
pub mod record;
pub mod report;
mod results;
mod run;
pub mod schema;
mod subject;
mod worker;

pub use campaign::{Campaign, Ended, Observer, Tally};
pub use live::{Live, LiveError, Watched};
pub use results::{Header, REPORT_FILE, Results, ResultsError};
pub use run::Usage;
