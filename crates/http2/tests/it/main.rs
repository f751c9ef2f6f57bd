//! Connections against raw frames, and against each other.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod between;
mod limits;
mod raw;
mod rules;
