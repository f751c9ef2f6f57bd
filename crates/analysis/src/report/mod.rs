//! Reports: runs in, everything computed out.

mod beside;
mod break_even;
mod build;
mod byte_table;
mod card;
mod clocks;
mod command_line;
mod compare;
mod expectations;
mod findings;
mod judge;
mod leaderboard;
mod networks;
mod points;
pub mod published_seconds;
mod quantiles;
mod rankings;
mod reasons;
mod results;
mod run_values;
mod samples;
mod sides;
mod tables;
mod tally;
mod timeline;
mod verdict;
pub mod wording;

pub use build::{Asked, build};
pub use compare::{COMPARED_METRICS, CompareError, Contender, compare};
pub use expectations::unanswerable;
pub use findings::{JudgedFinding, Measured, documented, findings};
pub use reasons::in_words;
pub use results::{KnownSubject, ResultRuns};
pub use run_values::RunValues;
pub use samples::CONFIDENCE;
pub use tally::Tally;
