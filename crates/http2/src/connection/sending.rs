//! What goes out on streams.

use super::{Connection, Role, Stage};
use crate::frame::{Code, HEAD_BYTES, Head, MAX, MAX_FRAME_BYTES, flag, kind};
use crate::streams::Stream;
use pushlab_wire::fields::FieldList;

/// Why no stream can be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// As many are open as the peer allows; one more may be when another has ended.
    #[error("the peer's limit of concurrent streams is reached")]
    Full,
    /// The connection has ended, or has had all streams that one can have.
    #[error("no more streams can be opened on this connection")]
    Over,
}

impl Connection {
    /// Opens a stream by a request, for an owner; gives its number.
    ///
    /// # Errors
    /// If no more can be opened now, or ever.
    pub fn open(&mut self, owner: u32, head: &FieldList, is_end: bool) -> Result<u32, Refused> {
        if self.stage == Stage::Over || self.has_peer_left || self.role == Role::Server || self.last >= MAX - 2 {
            return Err(Refused::Over);
        }
        if self.streams.len() >= self.peer.max_streams as usize {
            return Err(Refused::Full);
        }
        self.last = if self.last == 0 { 1 } else { self.last + 2 };
        let number = self.last;
        self.streams.push(Stream::new(number, Some(owner), self.peer.window, self.limits.stream_window));
        self.head(number, head, is_end);
        Ok(number)
    }

    /// Sends a head. Where the stream has ended, nothing happens.
    pub fn head(&mut self, number: u32, fields: &FieldList, is_end: bool) {
        let Some(stream) = self.streams.get(number).filter(|stream| !stream.have_we_ended) else { return };
        stream.have_we_ended = is_end;
        let begin = self.output.len();
        let flags = if is_end { flag::END_STREAM } else { 0 };
        let empty = Head { size: 0, kind: kind::HEADERS, flags: flags | flag::END_HEADERS, stream: number };
        empty.encode(&mut self.output);
        self.encoder.encode(fields.iter(), &mut self.output);
        let size = self.output.len() - begin - HEAD_BYTES;
        let max = MAX_FRAME_BYTES;
        if size <= max {
            self.output[begin + 1..begin + 3].copy_from_slice(&(size as u16).to_be_bytes());
        } else {
            let block = self.output.split_off(begin + HEAD_BYTES);
            self.output.truncate(begin);
            let last = size.div_ceil(max) - 1;
            for (place, part) in block.chunks(max).enumerate() {
                let kind = if place == 0 { kind::HEADERS } else { kind::CONTINUATION };
                let flags = if place == 0 { flags } else { 0 } | if place == last { flag::END_HEADERS } else { 0 };
                Head { size: part.len(), kind, flags, stream: number }.encode(&mut self.output);
                self.output.extend_from_slice(part);
            }
        }
        self.counts.sent.heads += size as u64;
        self.counts.sent.frames += (self.output.len() - begin - size) as u64;
        self.tail = Some((number, begin));
        self.finish(number);
    }

    /// Takes bytes of a body for the output, as many as windows and room allow; `None` if the stream has ended. Where
    /// that is less than all, the stream's owner is among those that are [ready](Self::next_ready) when there is more
    /// room.
    #[inline]
    pub fn data(&mut self, number: u32, bytes: &[u8]) -> Option<usize> {
        let is_late = !self.ready.is_empty() && self.turn != number;
        let room = self.limits.max_output_bytes.saturating_sub(self.output.len() - self.output_from);
        let stream = self.streams.get(number).filter(|stream| !stream.have_we_ended)?;
        let window = stream.send_window.min(self.send_window).max(0) as usize;
        // Where others wait as well, a frame for each in turn.
        let most = if is_late {
            0
        } else if self.ready.is_empty() {
            usize::MAX
        } else {
            MAX_FRAME_BYTES
        };
        let size = bytes.len().min(window).min(room).min(most);
        if size < bytes.len() {
            stream.is_blocked = true;
            if stream.send_window > size as i64 && !stream.is_ready {
                stream.is_ready = true;
                self.ready.push_back(number);
            }
        }
        if size == 0 {
            return Some(0);
        }
        stream.send_window -= size as i64;
        self.send_window -= size as i64;
        for part in bytes[..size].chunks(MAX_FRAME_BYTES) {
            self.tail = Some((number, self.output.len()));
            Head { size: part.len(), kind: kind::DATA, flags: 0, stream: number }.encode(&mut self.output);
            self.output.extend_from_slice(part);
            self.counts.sent.frames += HEAD_BYTES as u64;
        }
        self.counts.sent.data += size as u64;
        Some(size)
    }

    /// The owner of a stream that was to send more than it could, and now can. Until all of those were asked for,
    /// others send nothing.
    pub fn next_ready(&mut self) -> Option<u32> {
        if self.send_window <= 0 || self.output.len() - self.output_from >= self.limits.max_output_bytes {
            return None;
        }
        while let Some(number) = self.ready.pop_front() {
            let Some(stream) = self.streams.get(number) else { continue };
            stream.is_ready = false;
            if let (1.., Some(owner)) = (stream.send_window, stream.owner) {
                stream.is_blocked = false;
                self.turn = number;
                return Some(owner);
            }
        }
        self.turn = 0;
        None
    }

    /// Ends our side of a stream.
    pub fn end(&mut self, number: u32) {
        let Some(stream) = self.streams.get(number).filter(|stream| !stream.have_we_ended) else { return };
        stream.have_we_ended = true;
        match self.tail {
            // Its last frame has not left: it becomes the one that ends it.
            Some((of, at)) if of == number => self.output[at + 4] |= flag::END_STREAM,
            _ => {
                Head { size: 0, kind: kind::DATA, flags: flag::END_STREAM, stream: number }.encode(&mut self.output);
                self.counts.sent.frames += HEAD_BYTES as u64;
            }
        }
        self.finish(number);
    }

    /// Ends a stream in both directions at once.
    pub fn reset(&mut self, number: u32, code: Code) {
        if self.streams.get(number).is_some() {
            self.streams.remove(number, true);
            self.control(kind::RST_STREAM, 0, number, &code.number().to_be_bytes());
        }
    }

    /// The owner of a stream has used bytes that came on it: the peer may send as many more.
    pub fn used(&mut self, number: u32, size: usize) {
        let window = self.limits.stream_window;
        let Some(stream) = self.streams.get(number).filter(|stream| !stream.has_peer_ended) else { return };
        stream.used += size as u32;
        if stream.used < window / 2 {
            return;
        }
        let used = std::mem::take(&mut stream.used);
        stream.receive_window += used;
        self.control(kind::WINDOW_UPDATE, 0, number, &used.to_be_bytes());
    }

    /// A stream of which both sides have ended is gone.
    pub(super) fn finish(&mut self, number: u32) {
        if self.streams.get(number).is_some_and(|stream| stream.has_peer_ended && stream.have_we_ended) {
            self.streams.remove(number, false);
        }
    }
}
