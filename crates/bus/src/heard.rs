//! What happens to a worker that has joined.

/// What happened.
pub enum Heard {
    /// A piece of a message of a lab.
    Piece { lab: String, piece: Vec<u8> },
    /// A lab lives.
    Beat { lab: String },
    /// Somebody asks who is there.
    Called,
    /// A run's process said a line.
    Line { run: u64, line: String },
    /// A run's process has closed its output.
    Ended { run: u64, errors: String },
}
