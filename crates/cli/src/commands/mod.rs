//! One file for each group of commands.

pub mod access;
pub mod agent;
pub mod backend;
pub mod capacity;
pub mod console;
pub mod doctor;
mod facts;
pub mod fleet;
mod joining;
pub mod list;
mod pages;
pub mod results;
pub mod run;
pub mod serve;
pub mod subjects;
pub mod transfer;
pub mod worker;
