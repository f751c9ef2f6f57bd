//! One report in five forms.
//!
//! A renderer lays out what the report has and computes nothing: what two forms say is the same.
//!
//! ```
//! use pushlab_analysis::report::{Asked, build};
//!
//! let nothing = build(&[], &[], Asked::default(), "2026-01-31T12:00:00Z".to_owned());
//! assert!(pushlab_render::terminal::text(&nothing).contains("0 runs count"));
//! ```

mod card;
pub mod html;
pub mod json;
pub mod junit;
pub mod markdown;
#[cfg(test)]
mod sample;
mod tables;
pub mod terminal;
