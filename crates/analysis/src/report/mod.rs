//! Reports: runs in, everything computed out.

mod build;
mod byte_table;
mod compare;
mod expectations;
mod judge;
mod leaderboard;
pub mod model;
mod points;
mod rankings;
mod samples;
mod tables;
mod tally;
mod timeline;
mod verdict;

pub use build::{KnownSubject, ResultRuns, build, series_of};
pub use compare::{COMPARED_METRICS, CompareError, Contender, compare};
pub use expectations::{judgement, unanswerable};
pub use samples::{CONFIDENCE, RunFigures};
pub use tally::Tally;
