//! A client whose subscription stands when the server has confirmed every channel.

use crate::{Notice, Turn};

/// What is left to be confirmed.
#[derive(Debug, Default)]
pub struct Joining {
    unconfirmed: usize,
    /// Whether all was confirmed, and reported.
    pub is_over: bool,
}

impl Joining {
    /// The turn's channels were asked for.
    pub fn begin(&mut self, turn: &mut Turn<'_>) {
        self.unconfirmed = turn.topic.channels.len();
        self.report_once_over(turn);
    }

    /// One of them was confirmed.
    pub fn confirm(&mut self, turn: &mut Turn<'_>) {
        self.unconfirmed = self.unconfirmed.saturating_sub(1);
        self.report_once_over(turn);
    }

    /// All of them stand, as they did before a cut.
    pub fn stands(&mut self, turn: &mut Turn<'_>) {
        self.unconfirmed = 0;
        self.report_once_over(turn);
    }

    fn report_once_over(&mut self, turn: &mut Turn<'_>) {
        if self.unconfirmed == 0 && !std::mem::replace(&mut self.is_over, true) {
            turn.report(Notice::Subscribed);
        }
    }
}
