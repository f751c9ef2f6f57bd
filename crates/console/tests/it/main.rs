//! The console over a real server, as a browser meets it, and its published schema.

#![expect(clippy::unwrap_used, reason = "what cannot be is a failed test")]

mod experiments;
mod harness;
mod live;
mod measurements;
mod pages;
mod results;
mod schema;
