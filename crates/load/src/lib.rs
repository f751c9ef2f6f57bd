//! Virtual clients, pacing, recording.

pub mod backend;
pub mod check;
pub mod clients;
pub mod clock;
pub mod pacing;
pub mod payload;
pub mod plan;
pub mod prober;
pub mod record;
pub mod roles;
pub mod run_state;
pub mod seconds;
pub mod socket;
pub mod timer;
pub mod transport;
pub mod worker;
