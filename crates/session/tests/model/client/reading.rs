//! What clients read over HTTP: answers and streams.

use super::{Answer, Asked, Client, Expected, Form, Lines, Memory, Mode, Peer};
use crate::tally::Happening;
use crate::truth::{Checked, Kind, Reception, Truth, channel_of, cursor_of, found};
use flate2::write::GzDecoder;
use pushlab_wire::event_stream::EventStreamDecoder;
use pushlab_wire::fields::FieldList;
use pushlab_wire::http::{BodyDecoder, BodyKind, Headers, parse_response};
use pushlab_wire::lines::{LineDecoder, unwrap_script};
use pushlab_wire::native::{ServerFrame, parse_reply};
use pushlab_wire::websocket::{Decoder, handshake};
use std::io::Write as _;

/// What no head of HTTP/2 has (RFC 9113, section 8.2.2).
const FORBIDDEN: [&[u8]; 4] = [b"connection", b"keep-alive", b"transfer-encoding", b"upgrade"];
/// The largest line and event.
const MAX_EVENT_BYTES: usize = 1 << 20;

/// What the head of an answer says, whatever its version.
#[derive(Debug)]
struct AnswerHead {
    status: u16,
    /// Pages of other sites may read the answer.
    is_open: bool,
    content_type: Option<String>,
    is_gzip: bool,
    body: BodyKind,
    /// Nothing comes behind the answer.
    is_last: bool,
}

impl AnswerHead {
    /// That which stands in the buffer, which loses it.
    fn of_text(peer: &mut Peer) -> Checked<Option<Self>> {
        let mut headers = Headers::default();
        let (head, size) = match parse_response(&peer.buffer, &mut headers) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(None),
            Err(error) => {
                return found(Kind::Malformed, format!("{error}: {:?}", String::from_utf8_lossy(&peer.buffer)));
            }
        };
        if let (101, Some(Expected { asked: Asked::WebSocket { key, .. }, .. })) = (head.status, peer.expected.front())
            && let Err(error) = handshake::check_response(&head, *key)
        {
            return found(Kind::Malformed, error.to_string());
        }
        let read = Self {
            status: head.status,
            is_open: head.header("access-control-allow-origin").is_some(),
            content_type: head.header("content-type").map(str::to_owned),
            is_gzip: is_gzip(head.header("content-encoding"))?,
            body: head.body,
            is_last: !head.keeps_alive(),
        };
        peer.buffer.drain(..size);
        Ok(Some(read))
    }

    fn of_fields(fields: &FieldList, is_interim: bool) -> Checked<Self> {
        let text = |name| fields.get(name).and_then(|value| str::from_utf8(value).ok());
        let status = text(":status").and_then(|status| status.parse().ok());
        let names: Vec<&[u8]> = fields.iter().map(|(name, _)| name).collect();
        let is_bad = |name: &[u8]| name.iter().any(u8::is_ascii_uppercase) || FORBIDDEN.contains(&name);
        let is_interim_status = status.is_some_and(|status: u16| status < 200);
        let Some(status) = status.filter(|_| names[0] == b":status" && is_interim_status == is_interim) else {
            return found(Kind::Malformed, format!("the status of {fields:?}"));
        };
        if names.iter().any(|name| is_bad(name)) {
            return found(Kind::Malformed, format!("{fields:?}"));
        }
        let length = text("content-length").and_then(|length| length.parse().ok());
        let body = if status == 204 { Some(BodyKind::Length(0)) } else { length.map(BodyKind::Length) };
        Ok(Self {
            status,
            is_open: text("access-control-allow-origin").is_some(),
            content_type: text("content-type").map(str::to_owned),
            is_gzip: is_gzip(text("content-encoding"))?,
            body: body.unwrap_or(BodyKind::UntilClose),
            is_last: true,
        })
    }
}

fn is_gzip(coding: Option<&str>) -> Checked<bool> {
    match coding {
        None => Ok(false),
        Some("gzip") => Ok(true),
        Some(other) => found(Kind::Malformed, format!("the coding {other}")),
    }
}

impl Client {
    /// Reads so many bytes of what has come.
    pub fn read(&mut self, max: usize, truth: &Truth) -> Checked {
        let Some(mut peer) = self.peer.take() else { return Ok(()) };
        {
            let mut link = peer.socket.0.borrow_mut();
            let n = max.min(link.to_client.len());
            peer.buffer.extend_from_slice(&link.to_client[..n]);
            link.to_client.drain(..n);
        }
        let result = self.take_in(&mut peer, truth);
        self.peer = Some(peer);
        result
    }

    fn take_in(&mut self, peer: &mut Peer, truth: &Truth) -> Checked {
        loop {
            let before = peer.buffer.len();
            let goes_on = match &mut peer.mode {
                Mode::Http(None) => self.head(peer, truth)?,
                Mode::Http(Some(_)) => self.body(peer, truth)?,
                Mode::Stream { .. } => {
                    self.stream_bytes(peer, truth)?;
                    false
                }
                Mode::WebSocket { .. } => {
                    self.frames(peer, truth)?;
                    false
                }
                Mode::Over if before > 0 => {
                    return found(Kind::Unanswered, format!("behind the last answer came {:?}", peer.buffer));
                }
                Mode::Over => false,
            };
            if !goes_on {
                return Ok(());
            }
        }
    }

    /// Reads the head of an answer, if it is all there.
    fn head(&mut self, peer: &mut Peer, truth: &Truth) -> Checked<bool> {
        let head = if peer.is_http2 {
            let head = peer.socket.0.borrow_mut().heads_to_client.pop_front();
            head.map(|(fields, is_interim)| AnswerHead::of_fields(&fields, is_interim)).transpose()?
        } else {
            AnswerHead::of_text(peer)?
        };
        let Some(head) = head else {
            let is_early = peer.is_http2 && !peer.buffer.is_empty();
            return if is_early { found(Kind::Malformed, "a body without a head") } else { Ok(false) };
        };
        let Some(expected) = peer.expected.front_mut() else {
            return found(Kind::Unanswered, format!("nobody asked for {head:?}"));
        };
        if head.status == 100 && std::mem::take(&mut expected.expects_continue) {
            return Ok(true);
        }
        let is_open = head.is_open;
        // Who is not understood, or comes too late, is told so without looking at the request.
        let is_unread = matches!(head.status, 400 | 408);
        if is_open != expected.has_origin && !is_unread && head.status != 204 && head.status != 101 {
            return found(Kind::Malformed, format!("open to all: {is_open}, for {expected:?}"));
        }
        if head.is_gzip && !expected.takes_gzip {
            return found(Kind::Malformed, format!("gzip, for {expected:?}"));
        }
        let mut expected = peer.expected.pop_front().expect("there was one");
        self.memory.tally.count(if peer.is_http2 { Happening::Http2Answer } else { Happening::Answer });
        match (head.status, &mut expected.asked) {
            (101 | 200, Asked::WebSocket { channels, is_told, reception, .. })
                if peer.is_http2 == (head.status == 200) =>
            {
                let (channels, reception) = (std::mem::take(channels), reception.take());
                peer.is_last = false;
                peer.mode = Mode::WebSocket { decoder: Decoder::default(), reception, channels, is_told: *is_told };
            }
            (200, Asked::Stream { .. }) => {
                let Asked::Stream { form, is_told, reception } = expected.asked else { unreachable!("it is one") };
                let (lines, kind) = match form {
                    Form::Events => (Lines::Events(EventStreamDecoder::new(MAX_EVENT_BYTES)), "text/event-stream"),
                    Form::Lines => (Lines::Json(LineDecoder::new(MAX_EVENT_BYTES)), "application/x-ndjson"),
                    Form::Script => {
                        (Lines::Script(LineDecoder::new(MAX_EVENT_BYTES), false), "text/html; charset=utf-8")
                    }
                };
                if head.content_type.as_deref() != Some(kind) || matches!(head.body, BodyKind::Length(_)) {
                    return found(Kind::Malformed, format!("no stream of {form:?}: {head:?}"));
                }
                let gzip = head.is_gzip.then(|| Box::new(GzDecoder::new(Vec::new())));
                peer.mode = Mode::Stream { body: BodyDecoder::new(head.body), gzip, lines, reception, is_told };
            }
            _ => {
                // Who gives up waiting for a head does not know its method.
                let is_head = expected.is_head && (head.status != 408 || peer.is_http2);
                let kind = if is_head { BodyKind::Length(0) } else { head.body };
                if kind == BodyKind::UntilClose {
                    return found(Kind::Malformed, format!("an answer without a length: {head:?}"));
                }
                let AnswerHead { is_gzip, status, is_last, .. } = head;
                let body = BodyDecoder::new(kind);
                peer.mode = Mode::Http(Some(Answer { body, content: Vec::new(), is_gzip, status, is_last }));
                peer.expected.push_front(expected);
            }
        }
        self.body_if_none(peer, truth)?;
        Ok(true)
    }

    /// An answer without a body is whole already.
    fn body_if_none(&mut self, peer: &mut Peer, truth: &Truth) -> Checked {
        match &peer.mode {
            Mode::Http(Some(answer)) if answer.body.is_done() => self.body(peer, truth).map(drop),
            _ => Ok(()),
        }
    }

    /// Reads a part of an answer's body; says whether there may be more to read.
    fn body(&mut self, peer: &mut Peer, truth: &Truth) -> Checked<bool> {
        let Mode::Http(Some(answer)) = &mut peer.mode else { return Ok(true) };
        let used = match answer.body.decode(&peer.buffer) {
            Ok(step) => {
                answer.content.extend_from_slice(step.data);
                step.consumed
            }
            Err(error) => return found(Kind::Malformed, error.to_string()),
        };
        peer.buffer.drain(..used);
        if !answer.body.is_done() {
            return Ok(used > 0 && !peer.buffer.is_empty());
        }
        let Answer { is_gzip, status, is_last, .. } = *answer;
        let mut body = std::mem::take(&mut answer.content);
        if is_gzip {
            let mut decoder = GzDecoder::new(Vec::new());
            body = match decoder.write_all(&body).and_then(|()| decoder.finish()) {
                Ok(content) => content,
                Err(error) => return found(Kind::Malformed, error.to_string()),
            };
            self.memory.tally.count(Happening::Compressed);
        }
        let expected = peer.expected.pop_front().expect("it stays until its answer is whole");
        peer.mode = if is_last { Mode::Over } else { Mode::Http(None) };
        peer.is_last |= is_last;
        self.answered(peer, expected, status, &body, truth)?;
        Ok(true)
    }

    /// Checks a whole answer.
    fn answered(&mut self, peer: &mut Peer, expected: Expected, status: u16, body: &[u8], truth: &Truth) -> Checked {
        let Ok(text) = std::str::from_utf8(body) else { return found(Kind::Malformed, "a body is not UTF-8") };
        let is_error = status >= 400;
        if is_error
            && (!expected.is_head || status == 408 && !peer.is_http2)
            && !(text.starts_with("{\"error\":\"") && text.ends_with("}\n"))
        {
            return found(Kind::Malformed, format!("{status} with {text}"));
        }
        self.memory.tally.count_some(Happening::Error, u64::from(is_error));
        let may_be = match status {
            503 if self.is_draining => true,
            503 | 504 => self.may_fail,
            408 => true,
            _ => false,
        };
        match expected.asked {
            Asked::Status(expected) if status == expected => Ok(()),
            Asked::Echo(sent) if status == 200 && *sent == *body => Ok(()),
            Asked::Publish(channel, data) if status == 200 => match ServerFrame::parse(text) {
                Ok(ServerFrame::Cursor(cursor)) => truth.check(channel, cursor_of(&cursor)?.offset, &data),
                other => found(Kind::Malformed, format!("published: {other:?}")),
            },
            // The reply tells of the publication, if it does not end before.
            Asked::Poll(reception) | Asked::PublishAndPoll(reception) if status == 200 => {
                self.reply(peer, reception, text, truth)
            }
            _ if may_be => Ok(()),
            asked => found(Kind::Unanswered, format!("{status} {text} to {asked:?}")),
        }
    }

    /// Checks a reply; it becomes what the client knows.
    pub(super) fn reply(&mut self, peer: &mut Peer, mut reception: Reception, text: &str, truth: &Truth) -> Checked {
        self.memory.tally.count(Happening::Reply);
        let now = if reception.is_from_now() { peer.socket.0.borrow_mut().nows.pop_front() } else { None };
        reception.begin_reply(now, truth);
        let mut frames = Vec::new();
        if let Err(error) = parse_reply(text, |frame| frames.push(frame)) {
            return found(Kind::Malformed, format!("{error}: {text}"));
        }
        let Some(ServerFrame::Cursor(last)) = frames.pop() else {
            return found(Kind::Malformed, format!("no cursor at the end of {text}"));
        };
        for frame in frames {
            match frame {
                ServerFrame::Gap { .. } | ServerFrame::Message { cursor: Some(_), .. } => {
                    receive(&mut reception, &frame, None, &mut self.memory, truth)?;
                }
                ServerFrame::Reconnect(_) if self.is_draining => {}
                other => return found(Kind::Malformed, format!("{other:?} in a reply")),
            }
        }
        let last = cursor_of(&last)?;
        reception.cursor(last, truth)?;
        self.memory.tell(last);
        Ok(())
    }

    fn stream_bytes(&mut self, peer: &mut Peer, truth: &Truth) -> Checked {
        let Peer { mode: Mode::Stream { body, gzip, lines, reception, is_told }, buffer, .. } = peer else {
            return Ok(());
        };
        let mut at = 0;
        loop {
            if body.is_done() && at < buffer.len() {
                return found(Kind::Unanswered, "bytes behind the end of a stream");
            }
            let step = match body.decode(&buffer[at..]) {
                Ok(step) => step,
                Err(error) => return found(Kind::Malformed, error.to_string()),
            };
            let (used, is_done) = (step.consumed, step.is_done);
            match gzip {
                None => self.lines(lines, step.data, reception, is_told, truth)?,
                Some(decoder) => {
                    if let Err(error) = decoder.write_all(step.data).and_then(|()| decoder.flush()) {
                        return found(Kind::Malformed, error.to_string());
                    }
                    let content = std::mem::take(decoder.get_mut());
                    self.lines(lines, &content, reception, is_told, truth)?;
                }
            }
            at += used;
            if is_done || used == 0 {
                break;
            }
        }
        buffer.drain(..at);
        if let Some(position) = reception.position(truth) {
            self.memory.tell(position);
        }
        Ok(())
    }

    fn lines(
        &mut self,
        lines: &mut Lines,
        bytes: &[u8],
        reception: &mut Reception,
        is_told: &mut bool,
        truth: &Truth,
    ) -> Checked {
        let mut result = Ok(());
        let memory = &mut self.memory;
        match lines {
            Lines::Events(decoder) => {
                // An event that is an id alone shows only in the last id, so each line is given by itself.
                for line in bytes.split_inclusive(|&byte| byte == b'\n') {
                    let (before, mut has_event) = (decoder.last_id().to_owned(), false);
                    let decoded = decoder.decode(line, |event| {
                        has_event = true;
                        if result.is_ok() {
                            result = frame(event.data, Some(event.id), reception, is_told, memory, truth);
                        }
                    });
                    if let Err(error) = decoded {
                        return found(Kind::Malformed, error.to_string());
                    }
                    if !has_event && decoder.last_id() != before {
                        position(decoder.last_id(), reception, memory, truth)?;
                    }
                }
            }
            Lines::Json(decoder) => {
                let decoded = decoder.decode(bytes, |line| {
                    if result.is_ok() {
                        result = frame(&String::from_utf8_lossy(line), None, reception, is_told, memory, truth);
                    }
                });
                if let Err(error) = decoded {
                    return found(Kind::Malformed, error.to_string());
                }
            }
            Lines::Script(decoder, is_past_html) => {
                let decoded = decoder.decode(bytes, |line| match unwrap_script(line) {
                    _ if result.is_err() => {}
                    Some(json) => {
                        result = frame(&String::from_utf8_lossy(&json), None, reception, is_told, memory, truth);
                    }
                    None if std::mem::replace(is_past_html, true) => {
                        result = found(Kind::Malformed, format!("no script: {:?}", String::from_utf8_lossy(line)));
                    }
                    None => {}
                });
                if let Err(error) = decoded {
                    return found(Kind::Malformed, error.to_string());
                }
            }
        }
        result
    }
}

/// One frame of a stream; in an event stream the event's id is the cursor.
fn frame(
    text: &str,
    id: Option<&str>,
    reception: &mut Reception,
    is_told: &mut bool,
    memory: &mut Memory,
    truth: &Truth,
) -> Checked {
    match ServerFrame::parse(text) {
        Ok(ServerFrame::Server(_)) if std::mem::take(is_told) => Ok(()),
        Ok(frame @ (ServerFrame::Message { .. } | ServerFrame::Gap { .. })) if !*is_told => {
            receive(reception, &frame, id, memory, truth)
        }
        Ok(ServerFrame::Reconnect(_)) if !*is_told && id.is_none() => Ok(()),
        Ok(ServerFrame::Cursor(cursor)) if !*is_told && id.is_none() => position(&cursor, reception, memory, truth),
        other => found(Kind::Malformed, format!("{other:?} on a stream: {text}")),
    }
}

/// The beginning of a stream, or a heartbeat.
pub(super) fn position(text: &str, reception: &mut Reception, memory: &mut Memory, truth: &Truth) -> Checked {
    memory.tally.count(match (reception.has_begun(), reception.is_from_now()) {
        (true, _) => Happening::Heartbeat,
        (false, true) => Happening::Beginning,
        (false, false) => Happening::Resumption,
    });
    reception.cursor(cursor_of(text)?, truth)
}

/// A delivery or a gap.
pub(super) fn receive(
    reception: &mut Reception,
    frame: &ServerFrame<'_>,
    id: Option<&str>,
    memory: &mut Memory,
    truth: &Truth,
) -> Checked {
    match frame {
        ServerFrame::Gap { from, to } => {
            memory.tally.count(Happening::Gap);
            if id.is_some_and(|id| id != to) {
                return found(Kind::Malformed, format!("{frame:?} has the id {id:?}"));
            }
            reception.gap(cursor_of(from)?, cursor_of(to)?, truth)
        }
        ServerFrame::Message { channel, cursor, data } => {
            memory.tally.count(Happening::Delivery);
            let cursor = cursor.as_deref().or(id);
            let Some(cursor) = cursor else { return found(Kind::Malformed, format!("{frame:?} has no cursor")) };
            reception.message(channel_of(channel)?, cursor_of(cursor)?, data, truth)
        }
        other => found(Kind::Malformed, format!("{other:?}")),
    }
}
