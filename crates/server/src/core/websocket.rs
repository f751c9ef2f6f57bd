//! WebSocket connections: the native protocol's frames from clients.

use super::Core;
use crate::connection::{Kind, NO_GROUP};
use crate::stats::add;
use pushlab_session::framing::{Framing, cursor_frame};
use pushlab_wire::codes::{CloseCode, ErrorCode};
use pushlab_wire::cursor::Cursor;
use pushlab_wire::native::{ClientFrame, json_string, single_line};
use pushlab_wire::websocket::{Decoded, Decoder, Event, Opcode, encode, encode_close};

/// What a frame asks for, beyond an answer.
enum Then {
    Nothing,
    Close(CloseCode, &'static str),
}

impl Core {
    /// Reads one frame; says how many bytes it took, 0 if it is not all there.
    pub(super) fn on_websocket(&mut self, id: usize, bytes: &mut [u8]) -> usize {
        let Kind::WebSocket { decoder, .. } = &mut self.connections[id].kind else { return 0 };
        // The decoder leaves its connection for the time of one frame, so that handlers may use both.
        let mut taken: Decoder = std::mem::take(decoder);
        let result = taken.decode(bytes, &self.ws_config);
        let (used, then) = match result {
            Ok(Decoded::Incomplete { .. }) => (0, Then::Nothing),
            Ok(Decoded::Frame { consumed, event }) => (consumed, event.map_or(Then::Nothing, |e| self.on_frame(id, e))),
            Err(error) => {
                add(&self.counters.errors, 1);
                self.close_websocket(id, error.close_code(), &error.to_string());
                return bytes.len();
            }
        };
        if let Kind::WebSocket { decoder, .. } = &mut self.connections[id].kind {
            *decoder = taken;
        }
        if let Then::Close(code, reason) = then {
            self.close_websocket(id, code, reason);
            return bytes.len();
        }
        used
    }

    fn on_frame(&mut self, id: usize, event: Event<'_>) -> Then {
        match event {
            Event::Text(text) => self.on_text(id, text),
            Event::Binary(_) => return Then::Close(CloseCode::UnsupportedData, "frames are JSON text, not binary"),
            Event::Ping(payload) => {
                let mut out = std::mem::take(&mut self.out);
                out.clear();
                encode(&mut out, Opcode::Pong, payload, None);
                self.send(id, &out);
                self.out = out;
            }
            Event::Pong(_) => {}
            Event::Close(None) => return Then::Close(CloseCode::Normal, ""),
            Event::Close(Some((code, _))) => {
                return Then::Close(CloseCode::from_number(code).unwrap_or(CloseCode::Normal), "");
            }
        }
        Then::Nothing
    }

    fn on_text(&mut self, id: usize, text: &str) {
        match ClientFrame::parse(text) {
            Ok(ClientFrame::Publish { channel, data }) => {
                if let Err((code, text)) = self.publish_for_client(&channel, &single_line(data)) {
                    self.say_error(id, code, &text);
                }
            }
            Ok(ClientFrame::Echo(data)) => self.echo_over_websocket(id, data),
            Ok(ClientFrame::Ping(n)) => self.say(id, &["[\"pong\",", &n.to_string(), "]"]),
            Ok(ClientFrame::Poll(cursor)) => self.poll_over_websocket(id, &cursor),
            Ok(ClientFrame::Subscribe(channel)) => self.change_channels(id, &channel, true),
            Ok(ClientFrame::Unsubscribe(channel)) => self.change_channels(id, &channel, false),
            Err(error) => self.say_error(id, ErrorCode::BadFrame, &error),
        }
    }

    fn echo_over_websocket(&mut self, id: usize, data: &str) {
        let mut json = ["[\"echo\",", data, "]"].concat().into_bytes();
        if let Some(receipt) = self.shared.distributor.receipt() {
            receipt.fill(&mut json);
        }
        self.say_bytes(id, &json);
    }

    fn say(&mut self, id: usize, parts: &[&str]) {
        self.say_bytes(id, parts.concat().as_bytes());
    }

    fn say_bytes(&mut self, id: usize, json: &[u8]) {
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        Framing::WebSocket.frame(&mut out, json, b"");
        self.send(id, &out);
        self.out = out;
    }

    fn say_error(&mut self, id: usize, code: ErrorCode, error: &dyn std::fmt::Display) {
        add(&self.counters.errors, 1);
        self.say(id, &["[\"error\",\"", code.name(), "\",", &json_string(&error.to_string()), "]"]);
    }

    fn poll_over_websocket(&mut self, id: usize, cursor: &str) {
        let connection = &self.connections[id];
        if !matches!(connection.kind, Kind::WebSocket { is_polling: true, .. }) {
            return self.say_error(id, ErrorCode::BadFrame, &"poll needs a connection opened with mode=poll");
        }
        let after = if cursor.is_empty() { Ok(None) } else { Cursor::parse(cursor).map(Some) };
        let after = match after {
            Ok(after) => after,
            Err(error) => return self.say_error(id, ErrorCode::BadCursor, &error),
        };
        let group = connection.group;
        let channels = if group == NO_GROUP { &[][..] } else { &self.groups[group as usize].channels };
        let replay = self.shared.distributor.read(channels, after, self.limits().max_reply_bytes);
        self.turn.sent += replay.messages.len() as u64;
        add(&self.counters.gaps, u64::from(replay.gap.is_some()));
        self.connections[id].subscriber.seen = replay.up_to;
        let up_to = self.shared.distributor.cursor(replay.up_to);
        let body = self.reply_body(&replay.messages, Some((replay.gap, up_to)));
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        encode(&mut out, Opcode::Text, &body, None);
        self.send_event(id, Framing::WebSocket, &out);
        self.out = out;
    }

    fn change_channels(&mut self, id: usize, channel: &str, subscribes: bool) {
        let group = self.connections[id].group;
        let mut names: Vec<String> = match group {
            NO_GROUP => Vec::new(),
            group => self.groups[group as usize].channels.iter().map(ToString::to_string).collect(),
        };
        names.retain(|n| n != channel);
        if subscribes {
            let identity = self.connections[id].exchange.identity;
            if let Err((code, text)) = self.shared.gate.may_subscribe(identity, std::iter::once(channel)) {
                return self.say_error(id, code, &text);
            }
            names.push(channel.to_owned());
        }
        let max = self.limits().max_channels_per_connection;
        if names.len() > max {
            let text = format!("a connection has at most {max} channels");
            return self.say_error(id, ErrorCode::TooManyChannels, &text);
        }
        let next = if names.is_empty() { None } else { Some(self.groups.intern(&mut names)) };
        match next {
            Some(Err(error)) => return self.say_error(id, ErrorCode::BadChannel, &error),
            Some(Ok(next)) => {
                let is_first = group == NO_GROUP;
                self.join_group(id, next);
                if is_first {
                    self.connections[id].subscriber.seen = self.shared.distributor.head().offset;
                }
            }
            None => self.leave_group(id),
        }
        let cursor = self.shared.distributor.cursor(self.delivered_to(id)).to_string();
        self.say(id, &[&cursor_frame(&cursor)]);
    }

    /// The position up to which everything stands before what is said to a connection now.
    fn delivered_to(&self, id: usize) -> u64 {
        let connection = &self.connections[id];
        // What is queued comes behind an answer.
        if let Some(position) = connection.subscriber.queued_after() {
            return position;
        }
        // A client that polls or catches up has seen just that; all others everything that left the inbox.
        let is_live = connection.framing().is_some();
        if is_live { connection.subscriber.seen.max(self.fanned_out_to) } else { connection.subscriber.seen }
    }

    /// Sends a close frame, then waits for the peer's.
    pub(super) fn close_websocket(&mut self, id: usize, code: CloseCode, reason: &str) {
        let mut out = Vec::with_capacity(128);
        encode_close(&mut out, code, reason, None);
        self.send(id, &out);
        self.close_gently(id);
    }
}
