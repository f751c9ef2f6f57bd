//! The program from the outside: experiments run, fail, are interrupted and resumed; results are listed, compared,
//! merged and passed on.

#![expect(clippy::unwrap_used, reason = "what cannot be is a failed test")]

mod agents;
mod blocks;
mod browsers;
mod campaign;
mod comparisons;
mod console;
mod disk;
mod errors;
mod failures;
mod faults;
mod fleet;
mod fleet_cuts;
mod fleet_failures;
mod formats;
mod handover;
mod kills;
mod measured;
#[path = "../../../server/tests/it/harness/meeting.rs"]
mod meeting;
mod metrics;
mod networks;
mod options;
mod output;
mod phases;
mod polls;
mod proxies;
mod receipts;
mod results;
mod side_by_side;
mod storms;
#[path = "../../../wire/src/exposition/strict.rs"]
mod strict;
mod studies;
mod subjects;
mod tables;
mod targets;
mod transfer;
mod worker;
