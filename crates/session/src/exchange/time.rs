//! What happens when time has passed, or when it must end.

use super::{Exchange, State, Waiting};
use crate::effect::{Context, Effect};
use crate::framing::{Framing, reconnect_frame};
use pushlab_wire::codes::{CloseCode, ErrorCode};
use std::num::NonZeroU32;

/// The least that an event source is told to wait: it keeps to that when it is cut off later, too, from a server that may
/// be away, and asks without a backoff.
const MIN_RETRY_MS: u64 = 500;

/// What is known of a connection on which nothing has happened for the time that it has.
#[derive(Debug, Clone, Copy)]
pub struct Silence {
    /// Something waits for the peer to take it, who has been taking.
    pub has_queued: bool,
    /// Part of a request has come.
    pub has_partial: bool,
    /// Nothing is read from the peer before it has taken what it asked for.
    pub is_held_back: bool,
    /// Nothing has come from the peer, nor was taken by it, for two heartbeats.
    pub is_long: bool,
}

impl Exchange {
    /// The time that it had, as it last left it in [`Output::patience`](crate::effect::Output::patience), has passed.
    pub fn expire(&mut self, silence: Silence, cx: &mut Context<'_>) -> Effect {
        if let Some(effect) = self.mind_token(cx) {
            return effect;
        }
        match (&self.waiting, &self.state) {
            (Some(Waiting::Application), _) => Effect::Cancel,
            (Some(_), State::WebSocket { .. } | State::Stream(_)) if !self.is_overdue => {
                self.is_overdue = true;
                self.beat(self.framing_out(), silence, cx)
            }
            (Some(_), _) => {
                // A WebSocket stays open, and needs its next heartbeat.
                cx.output.patience = Some(self.until_notice(cx.rules.heartbeat, cx));
                self.not_settled(cx)
            }
            (None, State::HeldPoll) => self.release(cx),
            (None, State::WebSocket { .. }) if !silence.is_held_back && self.is_message_late(cx) => {
                cx.output.counts.timeouts += 1;
                Self::close(CloseCode::IdleTimeout, "a message did not arrive in full in time", cx)
            }
            // Who was never asked cannot have failed to answer: this process may have been halted meanwhile.
            (None, State::WebSocket { .. }) if self.is_pinged && silence.is_long && !silence.is_held_back => {
                cx.output.counts.timeouts += 1;
                Self::close(CloseCode::IdleTimeout, "no answer to two pings", cx)
            }
            (None, State::WebSocket { .. }) => self.beat(self.framing_out(), silence, cx),
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
            (None, State::Http(partial)) => {
                cx.output.counts.timeouts += 1;
                let text = "the request did not arrive in time";
                match partial {
                    Some(_) => self.abort(ErrorCode::RequestTimeout, text, cx),
                    None => self.refuse_unread(ErrorCode::RequestTimeout, text, cx),
                }
            }
            (None, State::Answering | State::Over) => Effect::Cut,
        }
    }

    /// Notes whether a message has begun and not ended.
    pub(super) fn note_partial(&mut self, is_partial: bool, cx: &Context<'_>) {
        let now = || NonZeroU32::MIN.saturating_add(seconds(cx.time.ns));
        if let State::WebSocket { partial_since_s: since, .. } = &mut self.state {
            *since = is_partial.then(|| since.unwrap_or_else(now));
        }
    }

    /// Whether a message has taken longer to arrive than a request may; checked at each heartbeat.
    fn is_message_late(&self, cx: &Context<'_>) -> bool {
        let State::WebSocket { partial_since_s: Some(since), .. } = self.state else { return false };
        let age_s = u64::from(seconds(cx.time.ns)).saturating_sub(u64::from(since.get()) - 1);
        age_s >= cx.rules.head_timeout.as_secs().max(1)
    }

    /// Says that the server lives. What is queued proves that as well; a heartbeat behind it would only add to it.
    fn beat(&mut self, framing: Framing, silence: Silence, cx: &mut Context<'_>) -> Effect {
        cx.output.patience = Some(self.until_notice(cx.rules.heartbeat, cx));
        // A stream has no position before it begins: a client that resumed from one would miss its gap.
        let has_position =
            matches!(framing, Framing::WebSocket { .. }) || !matches!(self.waiting, Some(Waiting::Start));
        if !silence.has_queued && has_position {
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
            State::WebSocket { .. } => {
                self.tell_return(cx);
                Self::close(CloseCode::GoingAway, "the server is stopping", cx)
            }
            State::Stream(framing) => {
                self.tell_return(cx);
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

    /// Tells when to come back, if the client understands that.
    fn tell_return(&self, cx: &mut Context<'_>) {
        let framing = self.framing_out();
        let has_field = matches!(framing, Framing::Events { .. });
        if (has_field || self.speaks_v2)
            && let Some(after_ms) = cx.return_after_ms()
        {
            match has_field {
                true => framing.retry(&mut cx.output.bytes, after_ms.max(MIN_RETRY_MS)),
                false => framing.frame(&mut cx.output.bytes, reconnect_frame(after_ms).as_bytes(), b""),
            }
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

/// Whole seconds.
fn seconds(ns: u64) -> u32 {
    u32::try_from(ns / 1_000_000_000).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{NOTHING_HEARD, Server};
    use pushlab_log::Replay;
    use pushlab_wire::cursor::{Cursor, Epoch};
    use pushlab_wire::websocket::{Opcode, encode, handshake};

    /// A client that resumed from a position of this life of the server would not be told what it missed in the last.
    #[test]
    fn a_stream_has_no_position_before_its_beginning() {
        let mut server = Server::new();
        let (_, effect) = server.receive(b"GET /sse?channel=a&after=old.5 HTTP/1.0\r\n\r\n");
        let Effect::Read(query) = effect else { panic!("{effect:?}") };
        server.park();
        let (said, effect) = server.expire();
        assert!(said.is_empty() && matches!(effect, Effect::Nothing), "{said} {effect:?}");
        assert!(server.output.patience.is_some());
        let (from, to) = (query.after.unwrap(), Cursor { epoch: Epoch::parse("new").unwrap(), offset: 7 });
        let replay = Replay { gap: Some((from, to)), messages: Vec::new(), up_to: 7, is_whole: true };
        let (said, _) = server.step(|exchange, cx| exchange.replayed(&mut replay.into(), query.after, cx));
        assert_eq!(said, "id:new.7\ndata:[\"gap\",\"old.5\",\"new.7\"]\n\nid:new.7\n\n");
        assert_eq!(server.expire().0, "id:new.7\n\n");
    }

    fn web_socket(query: &str) -> Server {
        let mut server = Server::new();
        let mut request = Vec::new();
        handshake::encode_request(&mut request, "a", &format!("/ws?{query}"), [7; 16]);
        assert!(matches!(server.receive(&request).1, Effect::Read(_)));
        server
    }

    #[test]
    fn a_websocket_has_heartbeats_after_an_unknown_outcome() {
        let mut server = web_socket("channel=a");
        let replay = Replay { is_whole: true, ..Replay::default() };
        let _ = server.step(|exchange, cx| exchange.replayed(&mut replay.into(), None, cx));
        let mut frame = Vec::new();
        encode(&mut frame, Opcode::Text, b"[\"pub\",\"a\",1]", Some([0; 4]));
        assert!(matches!(server.receive(&frame).1, Effect::Publish));
        server.park();
        for said in ["", "[\"error\",\"outcome-unknown\"", ""] {
            let (bytes, effect) = server.expire();
            assert!(bytes.contains(said) && matches!(effect, Effect::Nothing), "{bytes} {effect:?}");
            assert_eq!(server.output.patience, Some(server.rules.heartbeat), "{said}");
            server.exchange.heard();
        }
    }

    #[test]
    fn a_polling_websocket_gets_no_error_that_answers_nothing() {
        let mut server = web_socket("channel=a&mode=poll");
        server.park();
        let (said, effect) = server.step(Exchange::not_settled);
        assert!(said.is_empty() && matches!(effect, Effect::Nothing), "{said} {effect:?}");
        let (said, _) = server.step(|exchange, cx| exchange.resubscribed(Ok(()), None, cx));
        assert!(said.ends_with("[\"cursor\",\"new.7\"]"), "{said}");
    }

    #[test]
    fn a_poll_is_not_held_where_the_server_began_to_stop_before_the_log_answered() {
        let mut server = Server::new();
        let (_, effect) = server.receive(b"GET /poll?channel=a&wait=1 HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(matches!(effect, Effect::Read(_)), "{effect:?}");
        server.park();
        server.is_draining = true;
        let (_, effect) = server.step(|exchange, cx| exchange.drain(false, cx));
        assert!(matches!(effect, Effect::Nothing), "{effect:?}");
        let replay = Replay { up_to: 7, is_whole: true, ..Replay::default() };
        let (said, effect) = server.step(|exchange, cx| exchange.replayed(&mut replay.into(), None, cx));
        assert!(said.ends_with("[[\"cursor\",\"new.7\"]]") && matches!(effect, Effect::Answered), "{said} {effect:?}");
    }

    /// Only a client of version 2 is told in a frame; an event source has a field for it in any.
    #[test]
    fn a_server_that_stops_says_when_to_come_back() {
        for (target, said) in [
            ("/stream?channel=a&v=2", "[\"reconnect\",618]\n"),
            ("/stream?channel=a&v=2&format=script", "<script>parent.pushlab('[\"reconnect\",618]')</script>\n"),
            ("/stream?channel=a", ""),
            ("/sse?channel=a", "retry:618\n\n"),
            ("/sse?channel=a&v=2", "retry:618\n\n"),
        ] {
            let mut server = Server::new();
            assert!(matches!(server.receive(format!("GET {target} HTTP/1.0\r\n\r\n").as_bytes()).1, Effect::Read(_)));
            let replay = Replay { is_whole: true, ..Replay::default() };
            let _ = server.step(|exchange, cx| exchange.replayed(&mut replay.into(), None, cx));
            server.is_draining = true;
            let (end, effect) = server.step(|exchange, cx| exchange.drain(false, cx));
            assert_eq!((&*end, matches!(effect, Effect::End)), (said, true), "{target}");
        }
        for (query, frame) in [("v=2&channel=a", "[\"reconnect\",618]"), ("channel=a", "\u{fffd}\u{18}\u{3}")] {
            let mut server = web_socket(query);
            server.is_draining = true;
            let (end, _) = server.step(|exchange, cx| exchange.drain(false, cx));
            assert!(end.contains(frame) && end.ends_with("the server is stopping"), "{end:?}");
        }
        for (version, frame) in [("&v=2", "[\"reconnect\",618],"), ("&v=1", ""), ("", "")] {
            let poll = format!("GET /poll?channel=a&wait=1{version} HTTP/1.1\r\nHost: a\r\n\r\n");
            let mut server = Server::new();
            let _ = server.receive(poll.as_bytes());
            let replay = Replay { up_to: 7, is_whole: true, ..Replay::default() };
            let (_, effect) = server.step(|exchange, cx| exchange.replayed(&mut replay.into(), None, cx));
            assert!(matches!(effect, Effect::Receive), "{effect:?}");
            server.is_draining = true;
            let (end, _) = server.step(|exchange, cx| exchange.drain(false, cx));
            assert!(end.ends_with(&format!("\r\n\r\n[{frame}[\"cursor\",\"new.7\"]]")), "{end}");
            let mut late = Server::new();
            late.is_draining = true;
            let (refused, _) = late.receive(poll.as_bytes());
            assert!(
                refused.contains("\r\nRetry-After: 1\r\n") && refused.ends_with(",\"after_ms\":618}\n"),
                "{refused}"
            );
        }
    }

    #[test]
    fn a_late_head_is_not_answered_like_the_request_before_it() {
        let mut server = Server::new();
        let (said, _) = server.receive(b"HEAD /healthz HTTP/1.1\r\nHost: a\r\nOrigin: http://b\r\n\r\n");
        assert!(said.contains("Allow-Origin") && said.ends_with("\r\n\r\n"), "{said}");
        let _ = server.step(|exchange, cx| exchange.answered(true, cx));
        let _ = server.receive(b"GET /");
        let (said, effect) =
            server.step(|exchange, cx| exchange.expire(Silence { has_partial: true, ..NOTHING_HEARD }, cx));
        assert!(said.starts_with("HTTP/1.1 408 ") && said.ends_with("}\n"), "{said}");
        assert!(!said.contains("Allow-Origin") && matches!(effect, Effect::Answered), "{said} {effect:?}");
    }
}
