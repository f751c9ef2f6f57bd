//! One request and its answer.

use crate::gate::Identity;

/// What is kept of a request until it is answered.
#[derive(Debug, Clone, Copy)]
pub struct Exchange {
    /// Who sent it.
    pub identity: Identity,
    /// It named an `Origin`: pages of other sites may read the answer.
    pub has_origin: bool,
    /// The connection goes on after the answer.
    pub keeps_alive: bool,
    /// It is a HEAD: its answer has no body.
    pub is_head: bool,
    /// It has begun, and its time runs.
    pub is_expected: bool,
}

impl Exchange {
    /// A request of which nothing is known yet.
    pub const NEW: Self =
        Self { identity: Identity::UNKNOWN, has_origin: false, keeps_alive: true, is_head: false, is_expected: false };
}
