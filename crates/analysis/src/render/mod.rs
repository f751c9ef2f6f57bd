//! One report in five forms.
//!
//! A renderer lays out what the report has and computes nothing: what two forms say is the same.

pub mod html;
pub mod json;
pub mod junit;
pub mod markdown;
#[cfg(test)]
mod sample;
mod tables;
pub mod terminal;
