//! What the log answers: to publishers, to polls, and to subscribers, who get what they missed in parts, so that it costs
//! no more memory than one of them.

use super::{Exchange, State, Waiting};
use crate::effect::{Context, Effect, Query};
use crate::framing::{Framing, cursor_frame, gap_frame};
use crate::gate::Refusal;
use crate::missed::Missed;
use crate::reply;
use pushlab_log::Replay;
use pushlab_wire::cursor::Cursor;
use pushlab_wire::websocket::{Opcode, encode, encode_compressed};
use std::time::Duration;

/// Bytes of messages in one part: the most that a subscriber that resumes has queued for it.
const MAX_PART_BYTES: usize = 64 * 1024;

impl Exchange {
    /// The channels in the output become those that it subscribes to, after a cursor.
    pub(super) fn start(&mut self, after: Option<Cursor>, is_polling: bool) -> Effect {
        self.subscriber.is_catching_up = !is_polling;
        self.waiting = Some(if is_polling { Waiting::Position } else { Waiting::Start });
        let after = after.filter(|_| !is_polling);
        let max_bytes = MAX_PART_BYTES;
        Effect::Read(Query { is_new_set: true, is_subscription: true, after, newest: None, max_bytes })
    }

    /// Goes on with what a subscriber missed, if there is more.
    pub fn catch_up(&mut self, cx: &Context<'_>) -> Effect {
        if !self.subscriber.is_catching_up || self.waiting.is_some() {
            return Effect::Nothing;
        }
        self.waiting = Some(Waiting::Part);
        let after = Some(cx.cursor(self.subscriber.seen));
        let max_bytes = MAX_PART_BYTES;
        Effect::Read(Query { is_new_set: false, is_subscription: true, after, newest: None, max_bytes })
    }

    /// The log has answered a [`Query`] with this `after`.
    pub fn replayed(&mut self, missed: &mut Missed, after: Option<Cursor>, cx: &mut Context<'_>) -> Effect {
        match self.waiting.take() {
            Some(Waiting::Poll { wait_ms }) => self.reply(missed, wait_ms, cx),
            Some(Waiting::FramePoll) => {
                let body = Self::reply_body(missed, cx);
                self.subscriber.seen = missed.up_to;
                let is_compressed = matches!(self.state, State::WebSocket { sends_compressed: true, .. });
                let from = cx.rules.compression_from.filter(|&from| is_compressed && body.len() >= from);
                cx.output.coded_bytes += from.map_or(0, |_| body.len());
                match from.and_then(|_| cx.output.deflater.deflate(&body)) {
                    Some(compressed) => encode_compressed(&mut cx.output.bytes, Opcode::Text, &compressed, None),
                    None => encode(&mut cx.output.bytes, Opcode::Text, &body, None),
                }
                cx.output.event = Some(Framing::WebSocket { is_compressed });
                Effect::Nothing
            }
            Some(Waiting::Position) => {
                self.subscriber.seen = missed.up_to;
                Effect::Nothing
            }
            Some(Waiting::Start) => {
                self.tell_gap(missed, cx);
                let start = match (missed.gap, after) {
                    (Some((_, to)), _) => to,
                    (None, Some(after)) => after,
                    (None, None) => cx.cursor(missed.up_to),
                };
                self.framing_out().start(&mut cx.output.bytes, &start.to_string());
                self.send_part(missed, cx)
            }
            Some(Waiting::Part) => {
                self.tell_gap(missed, cx);
                self.send_part(missed, cx)
            }
            // It has ended, or has been told that it waited too long.
            other => {
                self.waiting = other;
                Effect::Nothing
            }
        }
    }

    /// Answers a poll, or holds it if there is nothing to tell.
    fn reply(&mut self, missed: &mut Missed, wait_ms: u32, cx: &mut Context<'_>) -> Effect {
        // A server that stops waits for nobody.
        if wait_ms > 0 && !cx.is_draining() && missed.messages.is_empty() && missed.gap.is_none() {
            self.subscriber.seen = missed.up_to;
            self.state = State::HeldPoll;
            cx.output.patience = Some(self.until_notice(Duration::from_millis(wait_ms.into()), cx));
            return Effect::Receive;
        }
        let body = Self::reply_body(missed, cx);
        self.answer_last_poll(body, cx)
    }

    /// Answers a poll behind which the connection may end as the server stops.
    fn answer_last_poll(&mut self, mut body: Vec<u8>, cx: &mut Context<'_>) -> Effect {
        if self.speaks_v2
            && let Some(after_ms) = cx.return_after_ms()
        {
            reply::announce_return(&mut body, after_ms);
        }
        self.answer_poll(&body, cx)
    }

    fn reply_body(missed: &mut Missed, cx: &mut Context<'_>) -> Vec<u8> {
        cx.output.counts.sent += missed.messages.len() as u64;
        cx.output.counts.gaps += u64::from(missed.gap.is_some());
        let mut body = Vec::new();
        missed.encode(Framing::Reply, &mut body, |replay, out| {
            *out = reply::body(&replay.messages, Some((replay.gap, cx.cursor(replay.up_to))));
        });
        body
    }

    /// Answers a poll.
    pub fn answer_poll(&mut self, body: &[u8], cx: &mut Context<'_>) -> Effect {
        cx.output.event = Some(Framing::Reply);
        let from = cx.rules.compression_from.filter(|&from| self.takes_gzip && body.len() >= from);
        cx.output.coded_bytes += from.map_or(0, |_| body.len());
        match from.and_then(|from| reply::compress(body, from, &mut cx.output.deflater)) {
            Some(compressed) => self.answer_coded("application/json", Some("gzip"), &compressed, cx),
            None => self.answer("application/json", body, cx),
        }
    }

    /// Answers a held poll for which nothing came.
    pub(super) fn release(&mut self, cx: &mut Context<'_>) -> Effect {
        let body = reply::body(&[], Some((None, cx.cursor(self.subscriber.seen.max(cx.offered_to)))));
        self.answer_last_poll(body, cx)
    }

    fn tell_gap(&self, replay: &Replay, cx: &mut Context<'_>) {
        if let Some((from, to)) = replay.gap {
            cx.output.counts.gaps += 1;
            let frame = gap_frame(from, to);
            self.framing_out().frame(&mut cx.output.bytes, frame.as_bytes(), to.to_string().as_bytes());
        }
    }

    /// Says one part. After the last one it receives what is published.
    fn send_part(&mut self, missed: &mut Missed, cx: &mut Context<'_>) -> Effect {
        let framing = self.framing_out();
        missed.encode(framing, &mut cx.output.bytes, |replay, out| {
            replay.messages.iter().for_each(|message| framing.message(out, message));
        });
        cx.output.counts.sent += missed.messages.len() as u64;
        cx.output.is_delivery = true;
        self.subscriber.seen = missed.up_to;
        self.subscriber.is_catching_up = !missed.is_whole;
        if missed.is_whole { Effect::Receive } else { Effect::Nothing }
    }

    /// What it published has its place in the log, or was refused.
    pub fn published(&mut self, result: Result<Cursor, Refusal>, cx: &mut Context<'_>) -> Effect {
        cx.output.counts.received += u64::from(result.is_ok());
        match (self.waiting.take(), result) {
            (Some(Waiting::Frame), Err((code, text))) => self.say_error(code, &text, cx),
            (Some(Waiting::Publication(_)), Err((code, text))) => self.refuse(code, &text, cx),
            (Some(Waiting::Publication(None)), Ok(cursor)) => {
                self.answer("application/json", cursor_frame(&cursor.to_string()).as_bytes(), cx)
            }
            (Some(Waiting::Publication(Some(after))), Ok(_)) => self.read_reply(0, false, Some(*after), cx),
            _ => Effect::Nothing,
        }
    }

    /// Whether the channels in the output are to be known before it publishes, as it reads them after that.
    pub fn reads_after_publishing(&self) -> bool {
        matches!(self.waiting, Some(Waiting::Publication(Some(_))))
    }

    /// What waited for the peer has left. An answer that was on its way is then [answered](Effect::Answered).
    pub fn flushed(&mut self, cx: &mut Context<'_>) -> Effect {
        match self.state {
            State::Answering => Effect::Answered,
            State::Http(None) if self.waiting.is_none() => {
                cx.output.patience = Some(cx.rules.idle_timeout);
                Effect::Nothing
            }
            _ => self.catch_up(cx),
        }
    }
}
