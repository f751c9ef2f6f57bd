//! Bodies in gzip, and what a loop needs of compression whoever's connections it serves.

use crate::connection::Head;
use crate::cut::Cut;
use pushlab_wire::deflate::{Deflater, InflateDecoder};
use pushlab_wire::gzip::{ContentCoding, GzipDecoder, GzipError};

/// Decoders kept for the next bodies: 45 KiB each.
const MAX_SPARE: usize = 16;
/// What is inflated of a body at a time, bytes.
const ROOM_BYTES: usize = 64 * 1024;

/// What all clients of a loop share; next to nothing until something is compressed.
#[derive(Debug)]
pub(super) struct Compression {
    /// Smallest text that clients compress where their server agreed to it, bytes; `None` where nothing was asked for.
    pub from_bytes: Option<usize>,
    pub inflater: InflateDecoder,
    deflater: Option<Box<Deflater>>,
    room: Vec<u8>,
    /// Boxed, as they come and go.
    #[expect(clippy::vec_box, reason = "a client holds it by its address")]
    spare: Vec<Box<CompressedBody>>,
}

impl Compression {
    pub fn new(from_bytes: Option<u32>) -> Self {
        let from_bytes = from_bytes.map(|bytes| bytes as usize);
        Self { from_bytes, inflater: InflateDecoder::default(), deflater: None, room: Vec::new(), spare: Vec::new() }
    }

    /// What inflates the body behind a head, if it is compressed.
    ///
    /// # Errors
    /// Where that is a coding which is not read, or none was asked for.
    pub fn body(&mut self, head: &Head<'_>) -> Result<Option<Box<CompressedBody>>, Cut> {
        match ContentCoding::of(head.headers("content-encoding"))? {
            ContentCoding::Identity => Ok(None),
            ContentCoding::Gzip if self.from_bytes.is_none() => Err(Cut::UnaskedCoding),
            ContentCoding::Gzip => {
                let mut body = self.spare.pop().unwrap_or_default();
                body.decoder.reset();
                (body.texts, body.payload) = Default::default();
                Ok(Some(body))
            }
        }
    }

    /// A body is over.
    pub fn keep(&mut self, body: Box<CompressedBody>) {
        if self.spare.len() < MAX_SPARE {
            self.spare.push(body);
        }
    }

    /// Room to inflate into, until it is given back.
    pub fn take_room(&mut self) -> Vec<u8> {
        let mut room = std::mem::take(&mut self.room);
        room.resize(ROOM_BYTES, 0);
        room
    }

    /// See [`Self::take_room`].
    pub fn give_room(&mut self, room: Vec<u8>) {
        self.room = room;
    }

    /// A text that a client may compress up to a size: compressed, where it is large enough and that makes it smaller.
    pub fn deflate(&mut self, text: &[u8], bytes_max: usize) -> Option<Box<[u8]>> {
        let from = self.from_bytes?;
        if !(from..=bytes_max).contains(&text.len()) {
            return None;
        }
        self.deflater.get_or_insert_default().deflate(text)
    }
}

/// Counts before what was compressed is heard. Afterwards what they have grown by is what it was inflated to, of which
/// each use has the same share of what was sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Before {
    pub texts: u64,
    pub payload: u64,
    pub delivered: u64,
}

/// So many bytes as they were sent, of which so many have come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ratio {
    pub sent: u64,
    pub inflated: u64,
}

impl Ratio {
    /// What a count would be that has grown by inflated bytes, had it counted those sent.
    pub fn rescale(self, count: &mut u64, before: u64) {
        let grown = u128::from(*count - before) * u128::from(self.sent) / u128::from(self.inflated.max(1));
        *count = before + u64::try_from(grown).unwrap_or(u64::MAX);
    }
}

/// A body under way that is compressed.
#[derive(Debug, Default)]
pub(super) struct CompressedBody {
    pub decoder: GzipDecoder,
    texts: Share,
    payload: Share,
}

/// One use of a body's bytes.
#[derive(Debug, Default)]
struct Share {
    /// What it has in what was inflated.
    inflated: u64,
    /// What it was said to have in what was sent.
    sent: u64,
}

impl Share {
    /// A count has grown by what a piece was inflated to. The body so far decides what that was when it was sent: a
    /// message may have begun in an earlier piece.
    fn rescale(&mut self, count: &mut u64, before: u64, ratio: Ratio) {
        self.inflated += *count - before;
        let mut sent = self.inflated;
        ratio.rescale(&mut sent, 0);
        *count = before + sent.saturating_sub(self.sent);
        self.sent = self.sent.max(sent);
    }
}

impl CompressedBody {
    /// Makes counts that have grown by a piece, as it was inflated, those of what was sent.
    pub fn rescale(&mut self, texts: &mut u64, payload: &mut u64, before: Before) {
        let ratio = Ratio { sent: self.decoder.bytes_read(), inflated: self.decoder.bytes_made() };
        self.texts.rescale(texts, before.texts, ratio);
        self.payload.rescale(payload, before.payload, ratio);
    }

    /// Nothing follows.
    ///
    /// # Errors
    /// Where it has ended too early.
    pub fn check_end(&self) -> Result<(), Cut> {
        // An answer may have no body, whatever its head says of it.
        let is_right = self.decoder.is_whole() || self.decoder.bytes_read() == 0;
        if is_right { Ok(()) } else { Err(GzipError::Truncated.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_compressed_between_their_limits() {
        let mut compression = Compression::new(Some(100));
        let text = vec![b'x'; 200];
        assert!(compression.deflate(&text[..99], 1 << 15).is_none());
        assert!(compression.deflate(&text, 199).is_none());
        let small = compression.deflate(&text[..100], 200).unwrap();
        assert_eq!(compression.inflater.inflate(&small, 100).unwrap(), &text[..100]);
        assert!(Compression::new(None).deflate(&text, 1 << 15).is_none());
    }

    #[test]
    fn a_count_grows_by_its_share_of_what_was_sent() {
        let mut count = 1_500;
        Ratio { sent: 30, inflated: 1_000 }.rescale(&mut count, 1_000);
        assert_eq!(count, 1_015);
        Ratio { sent: 30, inflated: 0 }.rescale(&mut count, 1_015);
        assert_eq!(count, 1_015);
    }
}
