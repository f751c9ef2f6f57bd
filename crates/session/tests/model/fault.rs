//! Faults put in on purpose, at the seam between log and subscribers.

use crate::truth::Kind;
use fastrand::Rng;
use pushlab_log::{Publication, Replay};
use pushlab_session::queue::QueueRules;
use pushlab_wire::channel::Channel;
use std::collections::VecDeque;
use std::sync::Arc;

/// What goes wrong on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A publication is left out of a turn.
    Lost,
    /// One of an earlier turn is offered again.
    Doubled,
    /// Two change places.
    OutOfOrder,
    /// A replay tells no gap.
    SilentGap,
    /// Queues may be larger than is allowed.
    Overfull,
}

impl Fault {
    /// What is to be found.
    pub fn kind(self) -> Kind {
        match self {
            Self::Lost => Kind::Lost,
            Self::Doubled => Kind::Doubled,
            Self::OutOfOrder => Kind::OutOfOrder,
            Self::SilentGap => Kind::SilentGap,
            Self::Overfull => Kind::Overfull,
        }
    }
}

/// Where faults come in. One in so many occasions is taken.
pub struct Seam {
    fault: Option<Fault>,
    rng: Rng,
    recent: VecDeque<Arc<Publication>>,
}

const ONE_IN: u32 = 8;
const RECENT_MAX: usize = 32;

impl Seam {
    pub fn new(fault: Option<Fault>, rng: Rng) -> Self {
        Self { fault, rng, recent: VecDeque::new() }
    }

    fn strikes(&mut self, fault: Fault) -> bool {
        self.fault == Some(fault) && self.rng.u32(..ONE_IN) == 0
    }

    /// What a group is about to be offered; says whether its members are to forget what they have seen.
    pub fn spoil_turn(&mut self, channels: &[Channel], pending: &mut Vec<Arc<Publication>>) -> bool {
        if self.fault.is_none() {
            return false;
        }
        let earlier = self.recent.iter().rev().find(|p| p.offset < pending[0].offset && channels.contains(&p.channel));
        let earlier = earlier.cloned();
        self.recent.extend(pending.iter().cloned());
        self.recent.drain(..self.recent.len().saturating_sub(RECENT_MAX));
        // Of a turn that has one left: the others are offered nothing, and so do not notice.
        if pending.len() > 1 && self.strikes(Fault::Lost) {
            pending.remove(self.rng.usize(..pending.len()));
        }
        if pending.len() > 1 && self.strikes(Fault::OutOfOrder) {
            pending.swap(0, 1);
        }
        if let Some(earlier) = earlier
            && self.strikes(Fault::Doubled)
        {
            pending.insert(0, earlier);
            return true;
        }
        false
    }

    /// What a reader has missed.
    pub fn spoil_replay(&mut self, replay: &mut Replay) {
        if replay.gap.is_some() && self.strikes(Fault::SilentGap) {
            replay.gap = None;
        }
    }

    /// The limits of queues.
    pub fn spoil_rules(&self, rules: QueueRules) -> QueueRules {
        match self.fault {
            Some(Fault::Overfull) => {
                QueueRules { max_messages: rules.max_messages * 2, max_bytes: rules.max_bytes * 2, ..rules }
            }
            _ => rules,
        }
    }
}
