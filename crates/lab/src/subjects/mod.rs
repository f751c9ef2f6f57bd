//! Servers under test: our own, other people's from the catalogue, or any that is reached by URL.

pub mod catalogue;
pub mod check;
pub mod facts;
pub mod install;
pub mod manifest;
pub mod named;
pub mod running;
pub mod runtimes;
