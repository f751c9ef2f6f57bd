//! What happens when time has passed, or when it must end.

use super::{Exchange, State, Waiting};
use crate::effect::{Context, Effect};
use crate::framing::Framing;
use pushlab_wire::codes::{CloseCode, ErrorCode};

/// What is known of a connection on which nothing has happened for the time that it has.
#[derive(Debug, Clone, Copy)]
pub struct Silence {
    /// Something waits for the peer to take it, who has been taking.
    pub has_queued: bool,
    /// Part of a request has come.
    pub has_partial: bool,
    /// Nothing has come from the peer, nor was taken by it, for two heartbeats.
    pub is_long: bool,
}

impl Exchange {
    /// The time that it had, as it last left it in [`Output::patience`](crate::effect::Output::patience), has passed.
    pub fn expire(&mut self, silence: Silence, cx: &mut Context<'_>) -> Effect {
        match (&self.waiting, &self.state) {
            (Some(Waiting::Application), _) => Effect::Cancel,
            (Some(_), State::WebSocket { .. } | State::Stream(_)) if !self.is_overdue => {
                self.is_overdue = true;
                self.beat(self.framing_out(), silence, cx)
            }
            (Some(_), _) => self.not_settled(cx),
            (None, State::HeldPoll) => self.release(cx),
            // Who was never asked cannot have failed to answer: this process may have been halted meanwhile.
            (None, State::WebSocket { .. }) if self.is_pinged && silence.is_long => {
                cx.output.counts.timeouts += 1;
                Self::close(CloseCode::IdleTimeout, "no answer to two pings", cx)
            }
            (None, State::WebSocket { .. }) => self.beat(Framing::WebSocket, silence, cx),
            (None, &State::Stream(framing)) => self.beat(framing, silence, cx),
            (None, State::Http(None)) if silence.has_queued => {
                cx.output.patience = Some(cx.rules.write_timeout);
                Effect::Nothing
            }
            (None, State::Http(None)) if !silence.has_partial => {
                // Between two requests, or nothing came at all: not an error, just the end.
                cx.output.counts.timeouts += 1;
                Effect::End
            }
            (None, State::Http(_)) => {
                cx.output.counts.timeouts += 1;
                self.abort(ErrorCode::RequestTimeout, "the request did not arrive in time", cx)
            }
            (None, State::Answering | State::Over) => Effect::Cut,
        }
    }

    /// Says that the server lives. What is queued proves that as well; a heartbeat behind it would only add to it.
    fn beat(&mut self, framing: Framing, silence: Silence, cx: &mut Context<'_>) -> Effect {
        cx.output.patience = Some(cx.rules.heartbeat);
        if !silence.has_queued {
            let seen = self.subscriber.seen;
            let position = if self.subscriber.is_catching_up { seen } else { seen.max(cx.offered_to) };
            let cursor = cx.cursor(position).to_string();
            framing.heartbeat(&mut cx.output.bytes, &cursor);
            self.is_pinged = true;
        }
        Effect::Nothing
    }

    /// The log has not answered yet, and has some time for that: until the second heartbeat on what lasts.
    pub fn park(&mut self, cx: &mut Context<'_>) {
        self.is_overdue = false;
        if matches!(self.state, State::Http(_)) {
            cx.output.patience = Some(cx.rules.answer_timeout);
        }
    }

    /// The server is stopping.
    pub fn drain(&mut self, has_partial: bool, cx: &mut Context<'_>) -> Effect {
        match &self.state {
            State::WebSocket { .. } => Self::close(CloseCode::GoingAway, "the server is stopping", cx),
            State::Stream(framing) => {
                framing.end(&mut cx.output.bytes);
                Effect::End
            }
            State::HeldPoll => {
                self.keeps_alive = false;
                self.release(cx)
            }
            State::Http(None) if self.waiting.is_none() && !has_partial => Effect::End,
            State::Http(_) if self.waiting.is_none() => Effect::Nothing,
            State::Http(_) | State::Answering => {
                self.keeps_alive = false;
                Effect::Nothing
            }
            State::Over => Effect::Nothing,
        }
    }

    /// The subscriber is too slow: a farewell takes the place of its queue, behind the frame that was begun.
    pub fn overrun(&mut self, cx: &mut Context<'_>) -> Effect {
        match &self.state {
            State::WebSocket { .. } => Self::close(CloseCode::SlowSubscriber, "its queue was full", cx),
            State::Stream(framing) => {
                framing.end(&mut cx.output.bytes);
                Effect::End
            }
            _ => Effect::Cut,
        }
    }
}
