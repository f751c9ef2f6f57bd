//! One file for each group of commands.

pub mod backend;
pub mod capacity;
pub mod doctor;
pub mod list;
pub mod results;
pub mod run;
pub mod serve;
pub mod transfer;
pub mod worker;
