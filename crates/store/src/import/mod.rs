//! Imports: campaigns from JSON, and figures, such as those of published studies, from CSV.
//!
//! An import is one transaction: what cannot be read leaves the store as it was.

mod csv;
mod json;

pub use csv::{csv, read_runs};
pub use json::json;

use crate::error::StoreError;
use std::io;

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The input could not be read.
    #[error("cannot read what is to be imported: {0}; nothing was")]
    Read(#[from] io::Error),
    /// A line says what cannot be.
    #[error("line {line}: {what}; nothing was imported")]
    Line {
        /// The line, from 1.
        line: u64,
        /// What is wrong, and what would be right.
        what: String,
    },
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
}
