//! Reports: records in, everything computed out.

mod build;
mod figures;
pub mod model;
mod rankings;
mod timeline;
mod verdict;

pub use build::build;
