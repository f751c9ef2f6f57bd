//! Frames from clients over a WebSocket.

use super::{Exchange, State, Waiting};
use crate::effect::{Context, Effect, Query};
use crate::framing::{Framing, cursor_frame};
use crate::gate::Refusal;
use crate::request::Mode;
use pushlab_wire::channel::Channel;
use pushlab_wire::codes::{CloseCode, ErrorCode};
use pushlab_wire::cursor::Cursor;
use pushlab_wire::deflate::InflateError;
use pushlab_wire::native::{ClientFrame, json_string, single_line};
use pushlab_wire::websocket::{Decoded, Event, Opcode, encode, encode_close, encode_compressed};
use std::borrow::Cow;

impl Exchange {
    /// Reads one frame; says how many bytes it took, 0 if it is not all there.
    pub(super) fn receive_frame(&mut self, bytes: &mut [u8], cx: &mut Context<'_>) -> (usize, Effect) {
        let all = bytes.len();
        let State::WebSocket { decoder, mode, takes_compressed, .. } = &mut self.state else {
            return (0, Effect::Nothing);
        };
        let mode = *mode;
        let config = cx.rules.of_frames(mode, *takes_compressed);
        // The decoder leaves its place for the time of one frame, which may borrow from it.
        let mut taken = std::mem::take(decoder);
        let mut is_partial = true;
        let (used, effect) = match taken.decode(bytes, &config) {
            Ok(Decoded::Incomplete { .. }) => (0, Effect::Nothing),
            Ok(Decoded::Frame { consumed, event }) => {
                is_partial = event.is_none();
                (consumed, event.map_or(Effect::Nothing, |event| self.on_frame(event, mode, cx)))
            }
            Err(error) => {
                cx.output.counts.errors += 1;
                return (all, Self::close(error.close_code(), &error.to_string(), cx));
            }
        };
        // A control frame may stand between two parts of a message.
        is_partial |= taken.is_inside_message();
        self.note_partial(is_partial, cx);
        if let State::WebSocket { decoder, .. } = &mut self.state {
            *decoder = taken;
        }
        // Behind a close frame there is nothing.
        let used = if matches!(effect, Effect::End) { all } else { used };
        (used, effect)
    }

    fn on_frame(&mut self, event: Event<'_>, mode: Mode, cx: &mut Context<'_>) -> Effect {
        match event {
            Event::Text(text) if mode == Mode::Echo => give_back(Opcode::Text, text.as_bytes(), cx),
            Event::Binary(bytes) if mode == Mode::Echo => give_back(Opcode::Binary, bytes, cx),
            Event::Text(text) => self.on_text(text, cx),
            Event::Compressed { is_text, payload } if is_text || mode == Mode::Echo => {
                self.on_compressed(is_text, payload, mode, cx)
            }
            Event::Binary(_) | Event::Compressed { .. } => {
                Self::close(CloseCode::UnsupportedData, "frames are JSON text, not binary", cx)
            }
            Event::Ping(payload) => {
                encode(&mut cx.output.bytes, Opcode::Pong, payload, None);
                Effect::Nothing
            }
            Event::Pong(_) => Effect::Nothing,
            Event::Close(None) => Self::close(CloseCode::Normal, "", cx),
            Event::Close(Some((code, _))) => {
                Self::close(CloseCode::from_number(code).unwrap_or(CloseCode::Normal), "", cx)
            }
        }
    }

    fn on_compressed(&mut self, is_text: bool, payload: &[u8], mode: Mode, cx: &mut Context<'_>) -> Effect {
        // All exchanges share one decoder; the text leaves it for as long as it is read.
        let mut decoder = std::mem::take(&mut cx.output.inflater);
        let effect = match decoder.inflate(payload, cx.rules.max_message_bytes) {
            Ok(inflated) => {
                cx.output.coded_bytes += inflated.len();
                match str::from_utf8(inflated) {
                    Err(_) if is_text => Self::close(CloseCode::InvalidPayload, "text is not UTF-8", cx),
                    Ok(text) if mode != Mode::Echo => self.on_text(text, cx),
                    _ => self.give_back_compressed(if is_text { Opcode::Text } else { Opcode::Binary }, inflated, cx),
                }
            }
            Err(error) => {
                let code = match error {
                    InflateError::TooLarge { .. } => CloseCode::MessageTooBig,
                    InflateError::Malformed => CloseCode::InvalidPayload,
                };
                cx.output.counts.errors += 1;
                Self::close(code, &error.to_string(), cx)
            }
        };
        cx.output.inflater = decoder;
        effect
    }

    fn on_text(&mut self, text: &str, cx: &mut Context<'_>) -> Effect {
        match ClientFrame::parse(text) {
            Ok(ClientFrame::Publish { channel, data }) => self.publish_frame(&channel, data, cx),
            Ok(ClientFrame::Echo(data)) => {
                let mut json = ["[\"echo\",", data, "]"].concat().into_bytes();
                if let Some(receipt) = cx.receipt {
                    receipt.fill(&mut json);
                }
                say(&json, cx)
            }
            Ok(ClientFrame::Ping(n)) => say(format!("[\"pong\",{n}]").as_bytes(), cx),
            Ok(ClientFrame::Poll(cursor)) => self.poll_frame(&cursor, cx),
            Ok(ClientFrame::Subscribe(channel)) => match self.may_subscribe(&channel, cx) {
                Ok(()) => Effect::Resubscribe { channel: channel.into_owned(), is_more: true },
                Err(refusal) => {
                    self.say_refused(&[(channel.into_owned(), refusal)], cx);
                    Effect::Nothing
                }
            },
            Ok(ClientFrame::Unsubscribe(channel)) => {
                Effect::Resubscribe { channel: channel.into_owned(), is_more: false }
            }
            Ok(ClientFrame::Auth(token)) => self.renew(&token, cx),
            Err(error) => self.say_error(ErrorCode::BadFrame, &error.to_string(), cx),
        }
    }

    fn publish_frame(&mut self, channel: &str, data: &str, cx: &mut Context<'_>) -> Effect {
        if let Err((code, text)) = self.may_publish(channel, cx) {
            return self.say_error(code, &text, cx);
        }
        let (name, line) = &mut cx.output.publication;
        name.clear();
        name.push_str(channel);
        line.clear();
        line.push_str(&single_line(data));
        self.waiting = Some(Waiting::Frame);
        Effect::Publish
    }

    /// Sends a message back that came compressed: again compressed, if that is worth it and the client takes it.
    fn give_back_compressed(&self, opcode: Opcode, payload: &[u8], cx: &mut Context<'_>) -> Effect {
        let sends_compressed = matches!(self.state, State::WebSocket { sends_compressed: true, .. });
        let is_large = cx.rules.compression_from.is_some_and(|from| payload.len() >= from);
        if !sends_compressed || !is_large {
            return give_back(opcode, payload, cx);
        }
        cx.output.coded_bytes += payload.len();
        match cx.output.deflater.deflate(payload) {
            Some(compressed) => encode_compressed(&mut cx.output.bytes, opcode, &compressed, None),
            None => encode(&mut cx.output.bytes, opcode, payload, None),
        }
        Effect::Nothing
    }

    fn poll_frame(&mut self, cursor: &str, cx: &mut Context<'_>) -> Effect {
        if !matches!(self.state, State::WebSocket { mode: Mode::Poll, .. }) {
            return self.say_error(ErrorCode::BadFrame, "poll needs a connection opened with mode=poll", cx);
        }
        let after = if cursor.is_empty() { Ok(None) } else { Cursor::parse(cursor).map(Some) };
        let after = match after {
            Ok(after) => after,
            Err(error) => return self.say_error(ErrorCode::BadCursor, &error.to_string(), cx),
        };
        self.waiting = Some(Waiting::FramePoll);
        let max_bytes = cx.rules.max_reply_bytes;
        Effect::Read(Query { is_new_set: false, is_subscription: false, after, newest: None, max_bytes })
    }

    /// Leaves in the output the channels to which it subscribes after one more, or one less.
    ///
    /// # Errors
    /// What to tell where it may not, or the name cannot be a channel's.
    pub fn choose_again(
        &mut self,
        channels: &[Channel],
        channel: &str,
        is_more: bool,
        cx: &mut Context<'_>,
    ) -> Result<(), Refusal> {
        let mut names: Vec<Cow<'_, str>> = channels.iter().map(|c| c.as_str().into()).collect();
        names.retain(|name| name != channel);
        if is_more {
            names.push(channel.into());
        }
        let max = cx.rules.max_channels;
        if names.len() > max {
            return Err((ErrorCode::TooManyChannels, format!("a connection has at most {max} channels").into()));
        }
        cx.output.channels.fill(&mut names).map_err(|error| (ErrorCode::BadChannel, error.to_string().into()))?;
        self.count_subscriptions(cx)
    }

    /// Its channels have changed, or could not. `first_at` is where the log stands if it had none before.
    pub fn resubscribed(&mut self, result: Result<(), Refusal>, first_at: Option<u64>, cx: &mut Context<'_>) -> Effect {
        if let Err((code, text)) = result {
            return self.say_error(code, &text, cx);
        }
        if let Some(offset) = first_at {
            self.subscriber.seen = offset;
        }
        let cursor = cx.cursor(self.delivered_to(cx)).to_string();
        say(cursor_frame(&cursor).as_bytes(), cx)
    }

    /// The position up to which everything stands before what is said now.
    fn delivered_to(&self, cx: &Context<'_>) -> u64 {
        // What is queued comes behind an answer.
        if let Some(position) = self.subscriber.queued_after() {
            return position;
        }
        // A client that polls or catches up has seen just that; all others everything that was offered.
        let is_live = self.framing().is_some();
        if is_live { self.subscriber.seen.max(cx.offered_to) } else { self.subscriber.seen }
    }

    /// Says an error in a frame.
    pub(super) fn say_error(&mut self, code: ErrorCode, text: &str, cx: &mut Context<'_>) -> Effect {
        cx.output.counts.errors += 1;
        say(["[\"error\",\"", code.name(), "\",", &json_string(text), "]"].concat().as_bytes(), cx)
    }

    /// Says the last frame; the connection ends behind it.
    pub(super) fn close(code: CloseCode, reason: &str, cx: &mut Context<'_>) -> Effect {
        encode_close(&mut cx.output.bytes, code, reason, None);
        Effect::End
    }
}

/// Sends a message back.
fn give_back(opcode: Opcode, payload: &[u8], cx: &mut Context<'_>) -> Effect {
    encode(&mut cx.output.bytes, opcode, payload, None);
    Effect::Nothing
}

/// Says a frame.
pub(super) fn say(json: &[u8], cx: &mut Context<'_>) -> Effect {
    Framing::WebSocket { is_compressed: false }.frame(&mut cx.output.bytes, json, b"");
    Effect::Nothing
}
