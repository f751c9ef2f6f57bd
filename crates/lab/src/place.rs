//! What a campaign asks of the place where its runs happen.

use crate::observer::RunObserver;
use crate::run::{Executed, execute};
use crate::side_by_side::{Member, execute_together};
use crate::standing::Standing;
use crate::wall_clock;
use crate::workplace::Workplace;
use pushlab_os::affinity::pin_to;

/// Where runs happen.
pub trait Place {
    /// Carries out a run, or several side by side, once. What comes of each is at its member's position.
    fn execute(&mut self, members: &[Member<'_>], observer: &mut dyn RunObserver) -> Vec<Executed>;

    /// Ends the servers that runs shared, but for those of these blocks.
    fn keep_blocks(&mut self, blocks: &[u32]);

    /// The time of day: RFC 3339, UTC.
    fn now(&self) -> String;
}

/// This machine, where the runs of a lab happen.
pub struct ThisMachine {
    workplace: Workplace,
    /// Servers that are up between runs.
    standing: Standing,
}

impl ThisMachine {
    /// With this workplace, and no server yet.
    pub fn new(workplace: Workplace) -> Self {
        Self { workplace, standing: Standing::default() }
    }
}

impl Place for ThisMachine {
    fn execute(&mut self, members: &[Member<'_>], observer: &mut dyn RunObserver) -> Vec<Executed> {
        // Away from the subject's core; where that is not allowed the warning about shared cores says so.
        let _ = pin_to(&self.workplace.pinning.load);
        let [Member { planned, experiment, side: None }] = *members else {
            return execute_together(members, &self.workplace, observer);
        };
        vec![execute(planned, experiment, &self.workplace, &mut self.standing, None, observer)]
    }

    fn keep_blocks(&mut self, blocks: &[u32]) {
        self.standing.retain(blocks);
    }

    fn now(&self) -> String {
        wall_clock::now()
    }
}
