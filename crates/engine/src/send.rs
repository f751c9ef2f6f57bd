//! Sends that leave together.

use std::io;

/// Sends of one call, at most.
pub const MAX_SENDS: usize = 1024;

/// One send of many.
#[derive(Debug)]
pub struct Send {
    /// The connection.
    pub id: u32,
    /// Which of those that have had this number.
    pub generation: u32,
    /// The first publication of the batch that it gets.
    pub first: u32,
    /// Where that begins in the batch's bytes.
    pub from: usize,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of a send.
#[derive(Debug)]
pub enum Outcome {
    /// It was not tried: the socket has taken nothing.
    Left,
    /// The socket took so many bytes, none where it would block.
    Taken(usize),
    /// The socket is broken.
    Failed(io::Error),
}

impl Send {
    /// One that was not tried yet.
    pub fn new(id: u32, generation: u32, first: u32, from: usize) -> Self {
        Self { id, generation, first, from, outcome: Outcome::Left }
    }
}
