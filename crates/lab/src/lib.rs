//! The lab: experiments carried out in interleaved runs, and stored.
//!
//! ```no_run
//! use pushlab_lab::{Campaign, Start, archive, experiments};
//!
//! let (name, experiments) = experiments::load_all("tangen-broadcast", Some("quick"))?;
//! let store = archive::open(None)?;
//! let start = Start { name, out: "results".into(), ..Start::default() };
//! let campaign = Campaign::open(experiments, store, start)?;
//! println!("result {} in the store", campaign.id());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod archive;
mod attempts;
mod campaign;
mod checks;
pub mod experiments;
mod fit;
mod following;
mod header;
mod link_watch;
pub mod live;
mod meeting;
mod observer;
mod pinning;
mod place;
mod planned;
pub mod planner;
mod run;
pub mod schema;
mod side_by_side;
mod standing;
pub mod stored;
mod target;
mod topology;
mod wall_clock;
mod warming;
mod workers;
mod workplace;

pub use campaign::{Campaign, CampaignError, Ended, Observer, Start};
pub use checks::{CheckError, check_experiments, leave_out_missing};
pub use fit::check_clients;
pub use live::{Live, LiveError, LiveState, Watched};
pub use pinning::{PinningError, check_pinning, on_load_cores};
pub use pushlab_watch::Usage;
pub use workers::{FleetError, Meeting, Workers, meet};
pub use workplace::{WorkplaceError, this_program};
