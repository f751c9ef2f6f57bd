//! What the functions promise as rates, over simulated runs whose truth is known, and constants that others published.
//! Every simulation is seeded, so each rate is a fixed number; `cargo test -- --nocapture` prints the tables.
#![allow(clippy::disallowed_macros, reason = "tables are for people to read")]
#![allow(clippy::unwrap_used, reason = "these are tests, of which clippy sees only the annotated functions")]

mod coverage;
mod draw;
mod family;
mod published;
mod ranking;
mod steadiness;
