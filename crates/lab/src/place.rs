//! What a campaign asks of the place where its runs happen.

use crate::observer::RunObserver;
use crate::run::Executed;
use crate::side_by_side::Member;

/// Where runs happen.
pub trait Place {
    /// Carries out a run, or several side by side, once. What comes of each is at its member's position.
    fn execute(&mut self, members: &[Member<'_>], observer: &mut dyn RunObserver) -> Vec<Executed>;

    /// Ends the servers that runs shared, but for those of these blocks.
    fn keep_blocks(&mut self, blocks: &[u32]);

    /// The time of day: RFC 3339, UTC.
    fn now(&self) -> String;
}
