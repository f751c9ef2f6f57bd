//! What the two processes say to each other, as bytes: a length, a kind, and the fields one behind the other. Numbers are
//! little-endian, texts have their length before them.
//!
//! Both run on one machine and under one user, and may be of different versions: what does not fit is an error, never a
//! guess.

use pushlab_log::{Part, Publication, Replay};
use pushlab_wire::channel::Channel;
use pushlab_wire::cursor::{Cursor, Epoch};
use pushlab_wire::receipt::Receipt;
use std::sync::Arc;

/// The version of what is said; another one is refused.
pub const VERSION: u32 = 2;
/// The largest frame, 64 MiB: as much memory can one side make the other hold. History comes in pieces.
pub const MAX_FRAME_BYTES: usize = 64 << 20;
/// Messages of history leave in pieces of about this size.
pub(crate) const PIECE_BYTES: usize = 1 << 20;
/// Bytes before the fields.
const HEAD_BYTES: usize = 5;

/// A ticket of the process that asks; the other returns it with the answer.
pub type Number = u64;

/// Something that one process says.
#[derive(Debug)]
pub enum Frame {
    /// The new one: it wants to take over.
    Hello {
        /// The version that it speaks.
        version: u32,
    },
    /// The old one: it agrees. The listeners come with these bytes.
    Welcome {
        /// The log's epoch.
        epoch: Epoch,
        /// What the clock of publications shows, ns.
        clock_ns: u64,
        /// How many listeners come along.
        listeners: u32,
    },
    /// The old one: it does not agree, for this reason.
    Refused(String),
    /// The old one: messages of history.
    Messages(Vec<Arc<Publication>>),
    /// The old one: what else there is to know of the history up to here. The first part is followed by others' publications,
    /// the second by none: from then on the new one appends.
    Part {
        /// The position after the latest publication.
        head: u64,
        /// As in [`Part`].
        forgotten_to: u64,
        /// As in [`Part`].
        evicted: Vec<(Channel, u64)>,
    },
    /// The new one: it has the first part, and all else that it needs.
    Ready,
    /// The new one: it serves.
    Started,
    /// The old one: publish this.
    Append {
        /// Comes back with the publication.
        ticket: Number,
        /// Written into the data where it has a place for one.
        receipt: Option<Receipt>,
        /// By the clock of publications.
        published_at_ns: u64,
        /// The channel.
        channel: Channel,
        /// One line of valid JSON.
        data: String,
    },
    /// The old one: what was published to these channels?
    Read {
        /// Comes back with the answer.
        ticket: Number,
        /// After which cursor.
        after: Option<Cursor>,
        /// At most about so many bytes.
        max_bytes: u64,
        /// The channels.
        channels: Vec<Channel>,
    },
    /// The old one: what are the newest messages of each of these channels?
    Newest {
        /// Comes back with the answer.
        ticket: Number,
        /// At most so many of each.
        count: u32,
        /// At most about so many bytes of each.
        max_bytes: u64,
        /// The channels.
        channels: Vec<Channel>,
    },
    /// The new one: this was published, by the one who holds the ticket if there is one.
    Published {
        /// Of the request, if the old one asked for it.
        ticket: Option<Number>,
        /// What was published.
        publication: Arc<Publication>,
    },
    /// The new one: the answer to a question.
    Replay {
        /// Of the question.
        ticket: Number,
        /// The answer.
        replay: Replay,
    },
    /// The new one: this request failed.
    Failed {
        /// Of the request.
        ticket: Number,
    },
}

/// Why bytes are no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadFrame {
    /// It says to be larger than any is.
    #[error("a frame of {0} bytes, more than any has")]
    TooLarge(usize),
    /// No frame has this kind, or it does not come from this side.
    #[error("a frame of unknown kind {0}")]
    UnknownKind(u8),
    /// Its fields do not fit.
    #[error("a malformed frame of kind {0}")]
    Malformed(u8),
}

impl Frame {
    fn kind(&self) -> u8 {
        match self {
            Self::Hello { .. } => 1,
            Self::Welcome { .. } => 2,
            Self::Refused(_) => 3,
            Self::Messages(_) => 4,
            Self::Part { .. } => 5,
            Self::Ready => 6,
            Self::Started => 7,
            Self::Append { .. } => 8,
            Self::Read { .. } => 9,
            Self::Newest { .. } => 10,
            Self::Published { .. } => 11,
            Self::Replay { .. } => 12,
            Self::Failed { .. } => 13,
        }
    }

    /// Appends it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; HEAD_BYTES]);
        out[start + 4] = self.kind();
        let mut w = Writer(out);
        match self {
            Self::Hello { version } => w.number32(*version),
            Self::Welcome { epoch, clock_ns, listeners } => {
                w.text(epoch.as_str());
                w.number(*clock_ns);
                w.number32(*listeners);
            }
            Self::Refused(reason) => w.text(reason),
            Self::Messages(messages) => w.list(messages, Writer::publication),
            Self::Part { head, forgotten_to, evicted } => {
                w.number(*head);
                w.number(*forgotten_to);
                w.list(evicted, |w, (channel, to)| {
                    w.text(channel.as_str());
                    w.number(*to);
                });
            }
            Self::Ready | Self::Started => {}
            Self::Append { ticket, receipt, published_at_ns, channel, data } => {
                w.number(*ticket);
                w.option(receipt.as_ref(), |w, receipt| w.number(receipt.instant_ns));
                w.number(*published_at_ns);
                w.text(channel.as_str());
                w.text(data);
            }
            Self::Read { ticket, after, max_bytes, channels } => {
                w.number(*ticket);
                w.option(after.as_ref(), Writer::cursor);
                w.number(*max_bytes);
                w.list(channels, |w, channel| w.text(channel.as_str()));
            }
            Self::Newest { ticket, count, max_bytes, channels } => {
                w.number(*ticket);
                w.number32(*count);
                w.number(*max_bytes);
                w.list(channels, |w, channel| w.text(channel.as_str()));
            }
            Self::Published { ticket, publication } => {
                w.option(ticket.as_ref(), |w, ticket| w.number(*ticket));
                w.publication(publication);
            }
            Self::Replay { ticket, replay } => {
                w.number(*ticket);
                w.option(replay.gap.as_ref(), |w, (from, to)| {
                    w.cursor(from);
                    w.cursor(to);
                });
                w.list(&replay.messages, Writer::publication);
                w.number(replay.up_to);
                w.number32(replay.is_whole.into());
            }
            Self::Failed { ticket } => w.number(*ticket),
        }
        let size = (out.len() - start - HEAD_BYTES) as u32;
        out[start..start + 4].copy_from_slice(&size.to_le_bytes());
    }
}

/// Messages and the rest of a part of a log, as frames.
pub fn encode_part(part: &Part, mut send: impl FnMut(Frame)) {
    let mut rest = &part.messages[..];
    while !rest.is_empty() {
        let mut bytes = 0;
        let is_beyond = |message: &Arc<Publication>| {
            bytes += message.data().len();
            bytes > PIECE_BYTES
        };
        let count = rest.iter().position(is_beyond).unwrap_or(rest.len()).max(1);
        send(Frame::Messages(rest[..count].to_vec()));
        rest = &rest[count..];
    }
    send(Frame::Part { head: part.head, forgotten_to: part.forgotten_to, evicted: part.evicted.clone() });
}

/// Reads frames from bytes that come in pieces.
#[derive(Debug, Default)]
pub struct FrameDecoder {
    /// The log's epoch, which cursors of publications have.
    epoch: Option<Epoch>,
}

impl FrameDecoder {
    /// One that knows the epoch already, as the old process does.
    pub fn of(epoch: Epoch) -> Self {
        Self { epoch: Some(epoch) }
    }

    /// The first frame, and the bytes that it takes; `None` while it is not whole.
    ///
    /// # Errors
    /// The bytes are no frame; what follows cannot be understood either.
    pub fn decode(&mut self, bytes: &[u8]) -> Result<Option<(Frame, usize)>, BadFrame> {
        let Some((head, rest)) = bytes.split_first_chunk::<HEAD_BYTES>() else { return Ok(None) };
        let [size @ .., kind] = *head;
        let size = u32::from_le_bytes(size) as usize;
        if size > MAX_FRAME_BYTES {
            return Err(BadFrame::TooLarge(size));
        }
        let Some(fields) = rest.get(..size) else { return Ok(None) };
        let mut reader = Reader { bytes: fields, epoch: self.epoch };
        let frame = reader.frame(kind).ok_or(match kind {
            1..=13 => BadFrame::Malformed(kind),
            _ => BadFrame::UnknownKind(kind),
        })?;
        if !reader.bytes.is_empty() {
            return Err(BadFrame::Malformed(kind));
        }
        if let Frame::Welcome { epoch, .. } = &frame {
            self.epoch = Some(*epoch);
        }
        Ok(Some((frame, HEAD_BYTES + size)))
    }
}

struct Writer<'o>(&'o mut Vec<u8>);

impl Writer<'_> {
    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn number32(&mut self, number: u32) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number32(text.len() as u32);
        self.0.extend_from_slice(text.as_bytes());
    }

    fn cursor(&mut self, cursor: &Cursor) {
        self.text(&cursor.to_string());
    }

    fn publication(&mut self, publication: &Arc<Publication>) {
        self.number(publication.offset);
        self.number(publication.published_at_ns());
        self.text(publication.channel.as_str());
        self.text(publication.data());
    }

    fn option<T>(&mut self, value: Option<&T>, write: impl FnOnce(&mut Self, &T)) {
        self.number32(value.is_some().into());
        if let Some(value) = value {
            write(self, value);
        }
    }

    fn list<T>(&mut self, values: &[T], mut write: impl FnMut(&mut Self, &T)) {
        self.number32(values.len() as u32);
        values.iter().for_each(|value| write(self, value));
    }
}

struct Reader<'b> {
    bytes: &'b [u8],
    epoch: Option<Epoch>,
}

impl<'b> Reader<'b> {
    fn frame(&mut self, kind: u8) -> Option<Frame> {
        Some(match kind {
            1 => Frame::Hello { version: self.number32()? },
            2 => {
                let epoch = Epoch::parse(self.text()?).ok()?;
                Frame::Welcome { epoch, clock_ns: self.number()?, listeners: self.number32()? }
            }
            3 => Frame::Refused(self.text()?.to_owned()),
            4 => Frame::Messages(self.list(Self::publication)?),
            5 => {
                let (head, forgotten_to) = (self.number()?, self.number()?);
                let evicted = self.list(|r| Some((r.channel()?, r.number()?)))?;
                Frame::Part { head, forgotten_to, evicted }
            }
            6 => Frame::Ready,
            7 => Frame::Started,
            8 => Frame::Append {
                ticket: self.number()?,
                receipt: self.option(|r| Some(Receipt { instant_ns: r.number()? }))?,
                published_at_ns: self.number()?,
                channel: self.channel()?,
                data: self.text()?.to_owned(),
            },
            9 => Frame::Read {
                ticket: self.number()?,
                after: self.option(Self::cursor)?,
                max_bytes: self.number()?,
                channels: self.list(Self::channel)?,
            },
            10 => Frame::Newest {
                ticket: self.number()?,
                count: self.number32()?,
                max_bytes: self.number()?,
                channels: self.list(Self::channel)?,
            },
            11 => {
                let ticket = self.option(Self::number)?;
                Frame::Published { ticket, publication: self.publication()? }
            }
            12 => {
                let ticket = self.number()?;
                let gap = self.option(|r| Some((r.cursor()?, r.cursor()?)))?;
                let messages = self.list(Self::publication)?;
                let (up_to, is_whole) = (self.number()?, self.number32()? == 1);
                Frame::Replay { ticket, replay: Replay { gap, messages, up_to, is_whole } }
            }
            13 => Frame::Failed { ticket: self.number()? },
            _ => return None,
        })
    }

    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn number32(&mut self) -> Option<u32> {
        let (number, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(u32::from_le_bytes(*number))
    }

    fn text(&mut self) -> Option<&'b str> {
        let size = self.number32()? as usize;
        let (text, rest) = self.bytes.split_at_checked(size)?;
        self.bytes = rest;
        std::str::from_utf8(text).ok()
    }

    fn channel(&mut self) -> Option<Channel> {
        Channel::parse(self.text()?).ok()
    }

    fn cursor(&mut self) -> Option<Cursor> {
        Cursor::parse(self.text()?).ok()
    }

    fn publication(&mut self) -> Option<Arc<Publication>> {
        let (offset, published_at_ns) = (self.number()?, self.number()?);
        let (channel, data) = (self.channel()?, self.text()?);
        let cursor = Cursor { epoch: self.epoch?, offset };
        Some(Arc::new(Publication::restored(cursor, channel, data, published_at_ns)))
    }

    fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.number32()? {
            0 => Some(None),
            1 => read(self).map(Some),
            _ => None,
        }
    }

    fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.number32()?;
        // Whatever the count says, there is room for what really comes alone.
        (0..count).map(|_| read(self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_log::{Limits, MemoryLog};

    fn epoch() -> Epoch {
        Epoch::parse("k3x9a").unwrap()
    }

    fn one_of_each() -> Vec<Frame> {
        let mut log = MemoryLog::new(epoch(), Limits::default());
        let messages: Vec<_> =
            ["a", "b:c"].iter().map(|channel| log.append(channel, "{\"x\":\"ä\"}", None, 77).unwrap()).collect();
        let channels = || vec![Channel::parse("a").unwrap(), Channel::parse("b:c").unwrap()];
        let cursor = |offset| Cursor { epoch: epoch(), offset };
        let replay = Replay {
            gap: Some((Cursor::parse("old.5").unwrap(), cursor(1))),
            messages: messages.clone(),
            up_to: 2,
            is_whole: true,
        };
        vec![
            Frame::Welcome { epoch: epoch(), clock_ns: 5, listeners: 3 },
            Frame::Hello { version: VERSION },
            Frame::Refused("why".to_owned()),
            Frame::Messages(messages.clone()),
            Frame::Part { head: 7, forgotten_to: 3, evicted: vec![(channels()[0].clone(), 4)] },
            Frame::Ready,
            Frame::Started,
            Frame::Append {
                ticket: 9,
                receipt: Some(Receipt { instant_ns: 100 }),
                published_at_ns: 77,
                channel: channels()[0].clone(),
                data: "[1]".to_owned(),
            },
            Frame::Read { ticket: 1, after: Some(cursor(7)), max_bytes: 100, channels: channels() },
            Frame::Read { ticket: 1, after: None, max_bytes: 0, channels: vec![] },
            Frame::Newest { ticket: 2, count: 10, max_bytes: 100, channels: channels() },
            Frame::Published { ticket: Some(9), publication: messages[0].clone() },
            Frame::Published { ticket: None, publication: messages[1].clone() },
            Frame::Replay { ticket: 1, replay },
            Frame::Failed { ticket: 2 },
        ]
    }

    #[test]
    fn decoding_undoes_encoding_however_the_bytes_are_cut() {
        let frames = one_of_each();
        let mut bytes = Vec::new();
        frames.iter().for_each(|frame| frame.encode(&mut bytes));
        for step in [1, 3, 7, bytes.len()] {
            let (mut decoder, mut buffer, mut decoded) = (FrameDecoder::default(), Vec::new(), Vec::new());
            for piece in bytes.chunks(step) {
                buffer.extend_from_slice(piece);
                while let Some((frame, size)) = decoder.decode(&buffer).unwrap() {
                    buffer.drain(..size);
                    decoded.push(format!("{frame:?}"));
                }
            }
            assert!(buffer.is_empty());
            assert_eq!(decoded, frames.iter().map(|frame| format!("{frame:?}")).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_is_no_frame_is_an_error() {
        let mut whole = Vec::new();
        Frame::Failed { ticket: 2 }.encode(&mut whole);
        let decode = |bytes: &[u8]| FrameDecoder::default().decode(bytes).map(|found| found.is_some());
        assert_eq!(decode(&whole), Ok(true));
        for cut in 0..whole.len() {
            assert_eq!(decode(&whole[..cut]), Ok(false));
        }
        let with = |at: usize, byte: u8| {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            bytes
        };
        assert_eq!(decode(&with(4, 99)), Err(BadFrame::UnknownKind(99)));
        assert_eq!(decode(&with(4, 8)), Err(BadFrame::Malformed(8)));
        assert_eq!(decode(&with(4, 6)), Err(BadFrame::Malformed(6)), "more than its fields");
        assert_eq!(decode(&with(3, 99)), Err(BadFrame::TooLarge(8 + (99 << 24))));
        // A count of four billion costs no memory.
        assert_eq!(decode(&[&[4, 0, 0, 0, 4][..], &[0xff; 4]].concat()), Err(BadFrame::Malformed(4)));
        assert_eq!(decode(b"GET / HTTP/1.1\r\n\r\n"), Err(BadFrame::TooLarge(u32::from_le_bytes(*b"GET ") as usize)));
    }

    #[test]
    fn a_part_leaves_in_pieces() {
        let mut log = MemoryLog::new(epoch(), Limits::default());
        let data = format!("\"{}\"", "x".repeat(PIECE_BYTES / 3));
        let messages: Vec<_> = (0..7).map(|_| log.append("a", &data, None, 0).unwrap()).collect();
        let mut sizes = Vec::new();
        encode_part(&Part { head: 7, forgotten_to: 0, evicted: vec![], messages }, |frame| match frame {
            Frame::Messages(piece) => sizes.push(piece.len()),
            other => assert!(matches!(other, Frame::Part { head: 7, .. }), "{other:?}"),
        });
        assert_eq!(sizes, [2, 2, 2, 1]);
    }
}
