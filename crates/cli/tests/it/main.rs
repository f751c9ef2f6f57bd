//! The program from the outside: experiments run, fail, are interrupted and resumed.

#![expect(clippy::unwrap_used, reason = "what cannot be is a failed test")]

mod campaign;
mod errors;
mod failures;
mod metrics;
mod receipts;
#[path = "../../../wire/src/exposition/strict.rs"]
mod strict;
