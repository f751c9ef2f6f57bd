//! What clients read over a WebSocket.

use super::reading::{position, receive};
use super::{Asked, Client, Expected, Mode, Peer};
use crate::tally::Happening;
use crate::truth::{Checked, Kind, Truth, cursor_of, found};
use pushlab_wire::codes::CloseCode;
use pushlab_wire::deflate::InflateDecoder;
use pushlab_wire::native::ServerFrame;
use pushlab_wire::websocket::{Config, Decoded, Event, Opcode, Role, encode};

impl Client {
    pub(super) fn frames(&mut self, peer: &mut Peer, truth: &Truth) -> Checked {
        let config =
            Config { max_message_bytes: 1 << 20, takes_compressed: peer.takes_compressed, ..Config::new(Role::Client) };
        let Mode::WebSocket { decoder, .. } = &mut peer.mode else { return Ok(()) };
        let mut decoder = std::mem::take(decoder);
        let mut buffer = std::mem::take(&mut peer.buffer);
        let mut at = 0;
        loop {
            match decoder.decode(&mut buffer[at..], &config) {
                Ok(Decoded::Incomplete { .. }) => break,
                Ok(Decoded::Frame { consumed, event }) => {
                    if let Some(event) = event {
                        self.on_frame(peer, event, truth)?;
                    }
                    at += consumed;
                }
                Err(error) => return found(Kind::Malformed, error.to_string()),
            }
            if matches!(peer.mode, Mode::Over) {
                break;
            }
        }
        buffer.drain(..at);
        peer.buffer = buffer;
        match &mut peer.mode {
            Mode::WebSocket { decoder: place, reception, .. } => {
                *place = decoder;
                if let Some(position) = reception.as_ref().and_then(|reception| reception.position(truth)) {
                    self.memory.tell(position);
                }
                Ok(())
            }
            _ if peer.buffer.is_empty() => Ok(()),
            _ => found(Kind::Unanswered, "bytes behind a close frame"),
        }
    }

    fn on_frame(&mut self, peer: &mut Peer, event: Event<'_>, truth: &Truth) -> Checked {
        match event {
            Event::Text(text) => self.on_text(peer, text, truth),
            Event::Compressed { is_text, payload } => {
                self.memory.tally.count(Happening::Compressed);
                let mut decoder = InflateDecoder::default();
                match decoder.inflate(payload, 1 << 20).map(|text| str::from_utf8(text)) {
                    Ok(Ok(text)) if is_text && text.len() > payload.len() => self.on_text(peer, text, truth),
                    other => found(Kind::Malformed, format!("compressed: {other:?}")),
                }
            }
            Event::Ping(payload) => {
                self.memory.tally.count(Happening::Heartbeat);
                if peer.answers_pings && !peer.is_ending {
                    encode(&mut peer.out, Opcode::Pong, payload, Some(self.rng.u32(..).to_be_bytes()));
                }
                Ok(())
            }
            Event::Pong(payload) => match answered(peer) {
                Some(Asked::Probe(sent)) if sent == payload => Ok(()),
                other => found(Kind::Unanswered, format!("a pong to {other:?}")),
            },
            Event::Close(code) => {
                self.memory.tally.count(Happening::Close);
                let Some(code) = code.and_then(|(code, _)| CloseCode::from_number(code)) else {
                    return found(Kind::Malformed, "a close frame without a code of ours");
                };
                if code == CloseCode::Normal && !matches!(answered(peer), Some(Asked::Close)) {
                    return found(Kind::Unanswered, "it ends, though nobody asked");
                }
                if let Mode::WebSocket { reception: Some(reception), .. } = &peer.mode {
                    reception.close_account()?;
                    if let Some(position) = reception.position(truth) {
                        self.memory.tell(position);
                    }
                }
                peer.mode = Mode::Over;
                peer.is_last = true;
                Ok(())
            }
            Event::Binary(_) => found(Kind::Malformed, "a binary message"),
        }
    }

    fn on_text(&mut self, peer: &mut Peer, text: &str, truth: &Truth) -> Checked {
        if text.starts_with("[[") {
            return match answered(peer) {
                Some(Asked::Poll(reception)) => self.reply(peer, reception, text, truth),
                other => found(Kind::Unanswered, format!("a reply to {other:?}")),
            };
        }
        let frame = match ServerFrame::parse(text) {
            Ok(frame) => frame,
            Err(error) => return found(Kind::Malformed, format!("{error}: {text}")),
        };
        let Mode::WebSocket { reception, is_told, .. } = &mut peer.mode else { return Ok(()) };
        if *is_told != matches!(frame, ServerFrame::Server(_)) {
            return found(
                Kind::Malformed,
                format!("the first is not what the server says of itself, or comes twice: {text}"),
            );
        }
        match frame {
            ServerFrame::Server(_) => {
                *is_told = false;
                Ok(())
            }
            ServerFrame::Message { cursor: Some(_), .. } | ServerFrame::Gap { .. } => match reception {
                Some(reception) => receive(reception, &frame, None, &mut self.memory, truth),
                None => found(Kind::Unanswered, format!("pushed to one who polls: {text}")),
            },
            ServerFrame::Cursor(cursor) => self.on_cursor(peer, &cursor, truth),
            ServerFrame::Pong(n) => match answered(peer) {
                Some(Asked::Ping(sent)) if sent == n => Ok(()),
                other => found(Kind::Unanswered, format!("{text} to {other:?}")),
            },
            ServerFrame::Echo(data) => match answered(peer) {
                Some(Asked::Echo(sent)) if *sent == *data.as_bytes() => Ok(()),
                other => found(Kind::Unanswered, format!("{text} to {other:?}")),
            },
            ServerFrame::Error { code, .. } => self.on_error(peer, &code),
            ServerFrame::Auth(_) | ServerFrame::TokenExpires(_) => {
                found(Kind::Unanswered, format!("of a token, where there is none: {text}"))
            }
            ServerFrame::Reconnect(_) if self.is_draining => Ok(()),
            ServerFrame::Message { .. } | ServerFrame::Reconnect(_) => {
                found(Kind::Malformed, format!("no cursor: {text}"))
            }
        }
    }

    /// The beginning, or the answer to `sub` and `unsub`.
    fn on_cursor(&mut self, peer: &mut Peer, text: &str, truth: &Truth) -> Checked {
        let cursor = cursor_of(text)?;
        if let Mode::WebSocket { reception: Some(reception), .. } = &mut peer.mode {
            let is_beginning = !reception.has_begun();
            position(text, reception, &mut self.memory, truth)?;
            if is_beginning {
                return Ok(());
            }
        } else if !truth.knows(cursor) {
            return found(Kind::FalseClaim, format!("a cursor {cursor}"));
        }
        let asked = answered(peer);
        let now = peer.socket.0.borrow_mut().nows.pop_front();
        let Mode::WebSocket { reception, .. } = &mut peer.mode else { return Ok(()) };
        let channels = &mut self.memory.channels;
        match (asked, now) {
            (Some(Asked::Subscribe(channel)), Some(now)) => {
                if !channels.contains(&channel) {
                    channels.push(channel);
                }
                reception.iter_mut().for_each(|reception| reception.subscribe(channel, now));
                Ok(())
            }
            (Some(Asked::Unsubscribe(channel)), Some(now)) => {
                channels.retain(|&c| c != channel);
                reception.iter_mut().for_each(|reception| reception.unsubscribe(channel, now));
                Ok(())
            }
            (other, _) => found(Kind::Unanswered, format!("{text} to {other:?}")),
        }
    }

    fn on_error(&mut self, peer: &mut Peer, code: &str) -> Checked {
        self.memory.tally.count(Happening::Error);
        // Whether a publication in a frame was made is told only if nobody knows.
        if code == "outcome-unknown" && self.may_fail {
            return match peer.expected.pop_front() {
                Some(Expected { asked: Asked::Frame, .. }) => Ok(()),
                other => found(Kind::Unanswered, format!("{code} to {other:?}")),
            };
        }
        match answered(peer) {
            Some(Asked::Refusal(expected)) if expected == code => Ok(()),
            Some(Asked::Poll(_)) if code == "overloaded" && self.may_fail => Ok(()),
            other => found(Kind::Unanswered, format!("{code} to {other:?}")),
        }
    }
}

/// What an answer is to: publications in frames before that were made.
fn answered(peer: &mut Peer) -> Option<Asked> {
    loop {
        match peer.expected.pop_front()?.asked {
            Asked::Frame => {}
            asked => return Some(asked),
        }
    }
}
