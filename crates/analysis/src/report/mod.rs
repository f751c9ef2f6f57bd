//! Reports: runs in, everything computed out.

mod build;
mod byte_table;
mod command_line;
mod compare;
mod expectations;
mod judge;
mod leaderboard;
pub mod model;
mod points;
mod rankings;
mod results;
mod samples;
mod tables;
mod tally;
mod timeline;
mod verdict;
mod wording;

pub use build::build;
pub use compare::{COMPARED_METRICS, CompareError, Contender, compare};
pub use expectations::{judgement, unanswerable};
pub use results::{KnownSubject, ResultRuns, series_of};
pub use samples::{CONFIDENCE, RunFigures};
pub use tally::Tally;
