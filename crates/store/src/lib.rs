//! The results database: every campaign, run and number in one SQLite file, with exports and imports.
//!
//! ```
//! use pushlab_store::{Cell, Kind, NewCampaign, Outcome, Run, Store};
//! # let folder = std::env::temp_dir().join(format!("pushlab-store-doc-{}", std::process::id()));
//! # let path = folder.join("results.db");
//!
//! let mut store = Store::open(&path)?;
//! let id = store.create_campaign(&NewCampaign {
//!     name: "compare".into(),
//!     kind: Kind::Measured,
//!     created_at: "2024-05-01T12:00:00Z".into(),
//!     seed: 42,
//!     planned: 1,
//!     facts: vec![("kernel".into(), "6.1".into())],
//!     header: serde_json::json!({"command": ["pushlab", "compare"]}),
//! })?;
//! let cell = Cell {
//!     experiment: "feed".into(),
//!     subject: "pushlab".into(),
//!     transport: "sse".into(),
//!     policy: "close".into(),
//!     variant: None,
//!     network: None,
//!     clients: 100,
//!     deliveries_per_s: None,
//!     payload_bytes: Some(71),
//! };
//! store.add_run(id, &Run {
//!     place: 1,
//!     cell,
//!     repeat: 1,
//!     seed: 7,
//!     started_at: "2024-05-01T12:00:01Z".into(),
//!     took_ms: 30_000,
//!     attempts: 1,
//!     earlier: vec![],
//!     outcome: Outcome::Completed,
//!     warnings: vec![],
//!     phases: vec![],
//!     figures: [("latency_median".to_owned(), 1.25.into())].into(),
//!     counts: [("delivered".to_owned(), 60_000)].into(),
//!     histograms: [].into(),
//!     series: vec![],
//!     document: serde_json::Value::Null,
//! })?;
//!
//! let found = store.find("compare")?;
//! assert_eq!((found.done, found.valid), (1, 1));
//! # drop(store);
//! # std::fs::remove_dir_all(folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The file may be asked in SQL; `figures_by_cell` is the view to begin with:
//!
//! ```sql
//! SELECT transport, clients, avg(value) FROM figures_by_cell
//! WHERE metric = 'latency_median' AND counts = 'yes' GROUP BY transport, clients;
//! ```
//!
//! # Tables
//!
//! `experiments`, which are the campaigns, and their `facts`; `cells`, distinct in each; `runs`, each with `warnings`,
//! `phases`, `figures`, `counts`, `histograms` and `series`. Seeds are decimal text, because SQLite's integers end at 2⁶³.
//! A histogram is a BLOB in the HDR V2 encoding, not deflated.
//! A series is a BLOB, column by column:
//!
//! ```text
//! byte     1, the version
//! varint   rows
//! for each column:
//!   byte     bit 0: 0 integers, 1 numbers; bit 1: some values are missing
//!   bytes    if some are missing: a bit for each row, least significant first, 1 where there is a value
//!   varints  for each value there is, against the one before it (0 at first):
//!            integers: the difference, zigzag; numbers: the bits that differ, reversed
//! ```
//!
//! Varints are LEB128. A sample of a counter that grows steadily takes two to four bytes, one of a gauge that stands
//! still one byte.

mod beside;
mod database;
mod error;
pub mod export;
pub mod import;
mod lock;
mod model;
mod open;
mod reference;
mod series;
mod store;

pub use error::StoreError;
pub use lock::{Measuring, MeasuringLock};
pub use model::{
    Attempt, Bound, Campaign, CampaignRow, Cell, Column, Counts, Kind, MetricValue, NAME_BYTES_MAX, NewCampaign,
    Outcome, PhaseRow, Run, SeriesRow, Values,
};
pub use open::{APPLICATION_ID, BUSY_WAIT};
pub use store::Store;
