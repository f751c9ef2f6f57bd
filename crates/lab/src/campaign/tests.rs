//! Campaigns at a place that answers from a script, with a clock of its own: nothing is started and nobody waits.

mod order;
mod refused;
mod resuming;
mod retries;
mod scripted;
mod searches;
