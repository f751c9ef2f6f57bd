//! Virtual clients, pacing, recording.

pub mod check;
pub mod clock;
pub mod pacing;
pub mod payload;
pub mod plan;
pub mod socket;
pub mod timer;
pub mod transport;
