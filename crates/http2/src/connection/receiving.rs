//! What comes, a frame at a time.

use super::{Block, Connection, Role, Stage};
use crate::event::{ConnectionError, Event};
use crate::frame::{Code, HEAD_BYTES, Head, MAX, MAX_FRAME_BYTES, PREFACE, flag, kind, number_at};
use crate::head;
use crate::streams::{End, Stream};
use pushlab_wire::fields::FieldList;
use std::time::Duration;

type Received<'a> = Result<Event<'a>, ConnectionError>;

fn error<T>(code: Code, reason: &'static str) -> Result<T, ConnectionError> {
    Err(ConnectionError::new(code, reason))
}

impl Connection {
    /// Reads one frame; says how many bytes it took, 0 if it is not all there, and what has happened. `now` is the time
    /// since any instant; `head` is where a head is put.
    ///
    /// # Errors
    /// Where the connection cannot go on. The caller sends the output and closes.
    pub fn receive<'a>(
        &mut self,
        bytes: &'a mut [u8],
        now: Duration,
        head: &'a mut FieldList,
    ) -> Result<(usize, Event<'a>), ConnectionError> {
        match self.stage {
            Stage::Over => return Ok((bytes.len(), Event::Nothing)),
            Stage::Preface => {
                if !bytes.starts_with(PREFACE) && !PREFACE.starts_with(bytes) {
                    return Err(self.fail(ConnectionError::new(Code::Protocol, "invalid connection preface")));
                }
                if bytes.len() < PREFACE.len() {
                    return Ok((0, Event::Nothing));
                }
                self.stage = Stage::Settings;
                self.counts.received.frames += PREFACE.len() as u64;
                return Ok((PREFACE.len(), Event::Nothing));
            }
            Stage::Settings | Stage::Open => {}
        }
        let Some(frame) = Head::read(bytes) else { return Ok((0, Event::Nothing)) };
        if frame.size > MAX_FRAME_BYTES {
            return Err(self.fail(ConnectionError::new(Code::FrameSize, "a frame of more than 16,384 bytes")));
        }
        let end = HEAD_BYTES + frame.size;
        let Some(payload) = bytes.get_mut(HEAD_BYTES..end) else { return Ok((0, Event::Nothing)) };
        // Before the frame changes anything: an error takes the place of its event.
        if self.output.len() - self.output_from > self.limits.max_unread_bytes {
            let reason = "the peer does not read what it is sent";
            return Err(self.fail(ConnectionError::new(Code::EnhanceYourCalm, reason)));
        }
        let event = self.on_frame(frame, payload, now, head).map_err(|error| self.fail(error))?;
        Ok((end, event))
    }

    fn on_frame<'a>(
        &mut self,
        frame: Head,
        payload: &'a mut [u8],
        now: Duration,
        head: &'a mut FieldList,
    ) -> Received<'a> {
        if self.stage == Stage::Settings && (frame.kind != kind::SETTINGS || frame.has(flag::ACK)) {
            return error(Code::Protocol, "the first frame is not SETTINGS");
        }
        if self.block.as_ref().is_some_and(|block| frame.kind != kind::CONTINUATION || frame.stream != block.stream) {
            return error(Code::Protocol, "expected CONTINUATION on the same stream");
        }
        let counts = &mut self.counts.received;
        match frame.kind {
            kind::DATA | kind::HEADERS | kind::CONTINUATION => counts.frames += HEAD_BYTES as u64,
            _ => counts.frames += (HEAD_BYTES + frame.size) as u64,
        }
        match frame.kind {
            kind::DATA => self.on_data(frame, payload, now),
            kind::HEADERS => self.on_headers(frame, payload, now, head),
            kind::CONTINUATION => self.on_continuation(frame, payload, now, head),
            kind::PRIORITY => self.on_priority(frame, payload, now),
            kind::RST_STREAM => self.on_reset(frame, payload, now),
            kind::SETTINGS => self.on_settings(frame, payload, now),
            kind::PUSH_PROMISE => error(Code::Protocol, "PUSH_PROMISE is not allowed"),
            kind::PING => self.on_ping(frame, payload, now),
            kind::GOAWAY => self.on_go_away(frame, payload),
            kind::WINDOW_UPDATE => self.on_window_update(frame, payload, now),
            // What is not known is passed over (RFC 9113, section 5.5).
            _ => self.count_idle(now).map(|()| Event::Nothing),
        }
    }

    /// A frame that does nothing for anybody.
    fn count_idle(&mut self, now: Duration) -> Result<(), ConnectionError> {
        if self.idle_frames.take(self.limits.idle_frames, now) {
            return Ok(());
        }
        error(Code::EnhanceYourCalm, "too many control or empty frames")
    }

    fn count_reset(&mut self, now: Duration) -> Result<(), ConnectionError> {
        if self.resets.take(self.limits.resets, now) {
            return Ok(());
        }
        error(Code::EnhanceYourCalm, "too many streams were reset")
    }

    /// Whether a stream was never opened.
    fn is_idle(&self, number: u32) -> bool {
        number > self.last || number.is_multiple_of(2)
    }

    /// Ends a stream on which the peer broke the protocol.
    fn break_stream(&mut self, number: u32, code: Code, now: Duration) -> Received<'static> {
        self.count_reset(now)?;
        let payload = code.number().to_be_bytes();
        self.control(kind::RST_STREAM, 0, number, &payload);
        let owner = self.streams.remove(number, true).and_then(|stream| stream.owner);
        Ok(owner.map_or(Event::Nothing, |owner| Event::Reset { owner, code, is_by_peer: false }))
    }

    /// What stands between the padding.
    fn unpad(frame: Head, payload: &mut [u8]) -> Result<&mut [u8], ConnectionError> {
        if !frame.has(flag::PADDED) {
            return Ok(payload);
        }
        let Some((&mut padding, rest)) = payload.split_first_mut() else {
            return error(Code::FrameSize, "padded frame without Pad Length");
        };
        match rest.len().checked_sub(padding.into()) {
            Some(size) => Ok(&mut rest[..size]),
            None => error(Code::Protocol, "padding exceeds the payload"),
        }
    }

    // --- Bodies ---

    fn on_data<'a>(&mut self, frame: Head, payload: &'a mut [u8], now: Duration) -> Received<'a> {
        let Head { stream: number, size, .. } = frame;
        if number == 0 || self.is_idle(number) {
            return error(Code::Protocol, "DATA on stream 0 or an idle stream");
        }
        let bytes = Self::unpad(frame, payload)?;
        self.counts.received.data += bytes.len() as u64;
        self.counts.received.frames += (size - bytes.len()) as u64;
        if bytes.is_empty() && !frame.has(flag::END_STREAM) {
            self.count_idle(now)?;
        }
        // What all streams share is given back at once, so that none holds up the others.
        let Some(left) = self.receive_window.checked_sub(size as u32) else {
            return error(Code::FlowControl, "more DATA than the connection's window has room for");
        };
        self.receive_window = left;
        self.used += size as u32;
        if self.used >= self.limits.connection_window.max(1 << 16) / 2 {
            let used = std::mem::take(&mut self.used);
            self.receive_window += used;
            self.control(kind::WINDOW_UPDATE, 0, 0, &used.to_be_bytes());
        }
        let is_end = frame.has(flag::END_STREAM);
        let Some(stream) = self.streams.get(number) else {
            return match self.streams.end_of(number) {
                End::Reset if self.streams.pass_over(number, size, is_end) => Ok(Event::Nothing),
                End::Reset => self.count_reset(now).map(|()| Event::Nothing),
                _ => self.break_stream(number, Code::StreamClosed, now),
            };
        };
        if stream.has_peer_ended {
            return self.break_stream(number, Code::StreamClosed, now);
        }
        let Some(left) = stream.receive_window.checked_sub(size as u32) else {
            return self.break_stream(number, Code::FlowControl, now);
        };
        stream.receive_window = left;
        let owner = stream.owner;
        let is_wrong = match &mut stream.body_left {
            None => false,
            Some(left) => match left.checked_sub(bytes.len() as u64) {
                None => true,
                Some(rest) => {
                    *left = rest;
                    is_end && rest > 0
                }
            },
        };
        if is_wrong || !stream.has_head {
            return self.break_stream(number, Code::Protocol, now);
        }
        stream.has_peer_ended = is_end;
        self.used(number, size - bytes.len());
        self.finish(number);
        Ok(owner.map_or(Event::Nothing, |owner| Event::Data { owner, bytes, is_end }))
    }

    // --- Heads ---

    fn on_headers<'a>(
        &mut self,
        frame: Head,
        payload: &mut [u8],
        now: Duration,
        head: &'a mut FieldList,
    ) -> Received<'a> {
        if frame.stream == 0 {
            return error(Code::Protocol, "HEADERS on stream 0");
        }
        let size = payload.len();
        let mut block = &*Self::unpad(frame, payload)?;
        self.counts.received.frames += (size - block.len()) as u64;
        let mut depends_on = 0;
        if frame.has(flag::PRIORITY) {
            if block.len() < 5 {
                return error(Code::FrameSize, "HEADERS too short for their priority");
            }
            depends_on = number_at(block, 0);
            block = &block[5..];
            self.counts.received.frames += 5;
        }
        let is_end = frame.has(flag::END_STREAM);
        if frame.has(flag::END_HEADERS) {
            self.on_head(frame.stream, block, is_end, depends_on == frame.stream, now, head)
        } else {
            let bytes = block.to_vec();
            self.block = Some(Box::new(Block { stream: frame.stream, is_end, bytes, continuations: 0 }));
            Ok(Event::Nothing)
        }
    }

    fn on_continuation<'a>(
        &mut self,
        frame: Head,
        payload: &[u8],
        now: Duration,
        head: &'a mut FieldList,
    ) -> Received<'a> {
        let Some(mut block) = self.block.take() else {
            return error(Code::Protocol, "CONTINUATION without HEADERS");
        };
        block.continuations += 1;
        block.bytes.extend_from_slice(payload);
        let max_bytes = self.limits.max_head_bytes as usize + MAX_FRAME_BYTES;
        if block.continuations > self.limits.max_continuations || block.bytes.len() > max_bytes {
            return error(Code::EnhanceYourCalm, "field block too large, or in too many CONTINUATION frames");
        }
        if frame.has(flag::END_HEADERS) {
            return self.on_head(block.stream, &block.bytes, block.is_end, false, now, head);
        }
        self.block = Some(block);
        Ok(Event::Nothing)
    }

    /// A head is there whole. Whatever becomes of it, it is decoded: those behind it may refer to it.
    fn on_head<'a>(
        &mut self,
        number: u32,
        block: &[u8],
        is_end: bool,
        depends_on_itself: bool,
        now: Duration,
        head: &'a mut FieldList,
    ) -> Received<'a> {
        self.counts.received.heads += block.len() as u64;
        head.clear();
        let Ok(outcome) = self.decoder.decode(block, self.limits.max_head_bytes as usize, head) else {
            return error(Code::Compression, "invalid HPACK field block");
        };
        let head = &*head;
        let is_cut = outcome.is_cut;
        if let Some(stream) = self.streams.get(number) {
            if stream.has_peer_ended {
                return self.break_stream(number, Code::StreamClosed, now);
            }
            let is_first = !stream.has_head;
            return if is_first && self.role == Role::Client {
                self.on_response(number, head, is_end, is_cut, now)
            } else {
                self.on_trailers(number, head, is_end, now)
            };
        }
        if self.role == Role::Client || number.is_multiple_of(2) {
            return if self.is_idle(number) {
                error(Code::Protocol, "HEADERS on an idle stream")
            } else {
                Ok(Event::Nothing)
            };
        }
        if number <= self.last {
            return match self.streams.end_of(number) {
                End::Reset => self.count_reset(now).map(|()| Event::Nothing),
                End::Complete => error(Code::StreamClosed, "HEADERS on a closed stream"),
                End::Forgotten => error(Code::Protocol, "stream identifier lower than an earlier one"),
            };
        }
        self.last = number;
        let Some(meaning) = head::request(head, true).or(is_cut.then_some(head::Meaning::UNKNOWN)) else {
            return self.break_stream(number, Code::Protocol, now);
        };
        let is_short = is_end && meaning.length.is_some_and(|length| length > 0);
        if depends_on_itself || is_short {
            return self.break_stream(number, Code::Protocol, now);
        }
        if self.streams.len() >= self.limits.max_streams as usize {
            return self.break_stream(number, Code::RefusedStream, now);
        }
        let mut stream = Stream::new(number, None, self.peer.window, self.limits.stream_window);
        (stream.has_head, stream.has_peer_ended, stream.body_left) = (true, is_end, meaning.length);
        self.streams.push(stream);
        Ok(Event::Request { stream: number, head, is_cut, is_end })
    }

    fn on_response<'a>(
        &mut self,
        number: u32,
        head: &'a FieldList,
        is_end: bool,
        is_cut: bool,
        now: Duration,
    ) -> Received<'a> {
        let meaning = head::response(head).filter(|meaning| !(is_cut || meaning.is_interim && is_end));
        let Some(meaning) = meaning else {
            return self.break_stream(number, Code::Protocol, now);
        };
        let Some(stream) = self.streams.get(number) else { return Ok(Event::Nothing) };
        let owner = stream.owner;
        if !meaning.is_interim {
            // An answer to HEAD, or one of status 304, says a length that it does not have.
            (stream.has_head, stream.body_left) = (true, meaning.length.filter(|_| !is_end));
        }
        stream.has_peer_ended = is_end;
        self.finish(number);
        Ok(owner.map_or(Event::Nothing, |owner| Event::Response { owner, head, is_end }))
    }

    fn on_trailers<'a>(&mut self, number: u32, head: &FieldList, is_end: bool, now: Duration) -> Received<'a> {
        let Some(stream) = self.streams.get(number) else { return Ok(Event::Nothing) };
        let is_short = stream.body_left.is_some_and(|left| left > 0);
        if !is_end || is_short || head::trailers(head).is_none() {
            return self.break_stream(number, Code::Protocol, now);
        }
        stream.has_peer_ended = true;
        let owner = stream.owner;
        self.finish(number);
        Ok(owner.map_or(Event::Nothing, |owner| Event::Data { owner, bytes: &mut [], is_end: true }))
    }

    // --- The rest ---

    fn on_priority(&mut self, frame: Head, payload: &[u8], now: Duration) -> Received<'static> {
        if frame.stream == 0 {
            return error(Code::Protocol, "PRIORITY on stream 0");
        }
        self.count_idle(now)?;
        let is_known = self.streams.get(frame.stream).is_some();
        match payload.len() {
            5 if number_at(payload, 0) == frame.stream => self.break_stream(frame.stream, Code::Protocol, now),
            5 => Ok(Event::Nothing),
            // It is an error of the stream, which has to be there to be reset.
            _ if is_known => self.break_stream(frame.stream, Code::FrameSize, now),
            _ => error(Code::FrameSize, "PRIORITY of invalid length"),
        }
    }

    fn on_reset(&mut self, frame: Head, payload: &[u8], now: Duration) -> Received<'static> {
        if frame.stream == 0 || self.is_idle(frame.stream) {
            return error(Code::Protocol, "RST_STREAM on stream 0 or an idle stream");
        }
        if payload.len() != 4 {
            return error(Code::FrameSize, "RST_STREAM of invalid length");
        }
        self.count_reset(now)?;
        let number = u32::from_be_bytes([payload[0], payload[1], payload[2], payload[3]]);
        let code = Code::from_number(number);
        let owner = self.streams.remove(frame.stream, false).and_then(|stream| stream.owner);
        Ok(owner.map_or(Event::Nothing, |owner| Event::Reset { owner, code, is_by_peer: true }))
    }

    fn on_settings(&mut self, frame: Head, payload: &[u8], now: Duration) -> Received<'static> {
        if frame.stream != 0 {
            return error(Code::Protocol, "SETTINGS on a stream");
        }
        self.count_idle(now)?;
        if frame.has(flag::ACK) {
            return match payload.len() {
                0 => Ok(Event::Nothing),
                _ => error(Code::FrameSize, "SETTINGS ACK with a payload"),
            };
        }
        let before = self.peer;
        let mut smallest_table = u32::MAX;
        self.peer.update(payload, &mut smallest_table)?;
        if smallest_table < u32::MAX {
            self.encoder.set_max_table_bytes(smallest_table);
            self.encoder.set_max_table_bytes(self.peer.table_bytes);
        }
        let change = i64::from(self.peer.window) - i64::from(before.window);
        for stream in self.streams.iter_mut() {
            stream.send_window += change;
            if stream.send_window > MAX.into() {
                return error(Code::FlowControl, "SETTINGS_INITIAL_WINDOW_SIZE overflows a stream's window");
            }
            if stream.send_window > 0 && stream.is_blocked && !stream.is_ready {
                stream.is_ready = true;
                self.ready.push_back(stream.number);
            }
        }
        self.stage = Stage::Open;
        self.control(kind::SETTINGS, flag::ACK, 0, &[]);
        Ok(Event::Nothing)
    }

    fn on_ping(&mut self, frame: Head, payload: &[u8], now: Duration) -> Received<'static> {
        if frame.stream != 0 {
            return error(Code::Protocol, "PING on a stream");
        }
        let Ok(payload) = <[u8; 8]>::try_from(payload) else {
            return error(Code::FrameSize, "PING of invalid length");
        };
        self.count_idle(now)?;
        if frame.has(flag::ACK) {
            return Ok(Event::Pong(payload));
        }
        self.control(kind::PING, flag::ACK, 0, &payload);
        Ok(Event::Nothing)
    }

    fn on_go_away(&mut self, frame: Head, payload: &[u8]) -> Received<'static> {
        if frame.stream != 0 {
            return error(Code::Protocol, "GOAWAY on a stream");
        }
        if payload.len() < 8 {
            return error(Code::FrameSize, "GOAWAY of invalid length");
        }
        let code = u32::from_be_bytes([payload[4], payload[5], payload[6], payload[7]]);
        self.has_peer_left = true;
        Ok(Event::GoingAway { last: number_at(payload, 0), code: Code::from_number(code) })
    }

    fn on_window_update(&mut self, frame: Head, payload: &[u8], now: Duration) -> Received<'static> {
        if payload.len() != 4 {
            return error(Code::FrameSize, "WINDOW_UPDATE of invalid length");
        }
        let size = i64::from(number_at(payload, 0));
        if frame.stream == 0 {
            self.send_window += size;
            return match size {
                0 => error(Code::Protocol, "WINDOW_UPDATE with increment 0"),
                _ if self.send_window > MAX.into() => error(Code::FlowControl, "the connection's window is too large"),
                _ => Ok(Event::Nothing),
            };
        }
        if self.is_idle(frame.stream) {
            return error(Code::Protocol, "WINDOW_UPDATE on an idle stream");
        }
        let Some(stream) = self.streams.get(frame.stream) else { return Ok(Event::Nothing) };
        stream.send_window += size;
        if size == 0 {
            return self.break_stream(frame.stream, Code::Protocol, now);
        }
        if stream.send_window > MAX.into() {
            return self.break_stream(frame.stream, Code::FlowControl, now);
        }
        if stream.send_window > 0 && stream.is_blocked && !stream.is_ready {
            stream.is_ready = true;
            self.ready.push_back(frame.stream);
        }
        Ok(Event::Nothing)
    }
}
