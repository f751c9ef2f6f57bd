//! One file for each command.

pub mod backend;
pub mod doctor;
pub mod lab;
pub mod list;
pub mod serve;
pub mod worker;
