//! What load is asked for, when what is due, and what a result is: no socket, no clock.
//!
//! A [`plan::Plan`] says what to do, [`roles::Roles`] what its [`scenario`] means for each client, [`pacing`] when what
//! is due, [`shape`] how that changes, [`rooms`] who is where, [`check`] whether a delivery was expected, [`result`] what
//! was measured.

pub mod audience;
pub mod busy;
pub mod check;
pub mod clients_in;
pub mod clock;
pub mod coordination;
pub mod errors;
pub mod marks;
pub mod messages;
pub mod needs;
pub mod pacing;
pub mod payload;
pub mod phase;
pub mod ping_times;
pub mod plan;
pub mod plan_checks;
pub mod ranks;
mod records;
pub mod result;
pub mod roles;
pub mod room_turns;
pub mod rooms;
pub mod scenario;
pub mod seconds;
pub mod segment;
pub mod shape;
pub mod shuffle;
pub mod silence;
pub mod storm;
pub mod tally;
pub mod timeline;
pub mod traffic;
pub mod turns;
pub mod windows;
