//! The store with real files: what comes back, what survives, and what is refused.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod exports;
mod failing;
mod fixture;
mod imports;
mod keeping;
mod opening;
mod writers;
