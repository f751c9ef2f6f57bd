//! gzip (RFC 1952) as a client reads it: as it comes.

use flate2::{Crc, Decompress, FlushDecompress, Status};

/// What is not gzip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GzipError {
    /// The first two bytes, or the method behind them, are others.
    #[error("a body with Content-Encoding: gzip is not gzip")]
    NotGzip,
    /// RFC 1952, section 2.3.1.2: a decoder must give an indication if a reserved bit is set.
    #[error("a gzip header has reserved flags set")]
    UnknownFlags,
    /// A name, a comment or the like goes on for too long.
    #[error("a gzip header of more than {MAX_HEADER_BYTES} bytes")]
    HeaderTooLarge,
    /// It cannot be inflated.
    #[error("a gzip body cannot be inflated")]
    Malformed,
    /// The sum or the length at its end is not that of what was inflated.
    #[error("checksum or length in the gzip trailer does not match")]
    WrongTrailer,
    /// It has ended before its trailer.
    #[error("a gzip body is truncated")]
    Truncated,
}

/// Longest header of a member, bytes.
pub const MAX_HEADER_BYTES: u32 = 4096;

const FLAG_CHECKSUM: u8 = 2;
const FLAG_EXTRA: u8 = 4;
const FLAG_NAME: u8 = 8;
const FLAG_COMMENT: u8 = 16;
const FLAGS_RESERVED: u8 = 0xe0;

/// Reads a gzip body piece by piece: whatever can be inflated is given at once, whatever the split. It holds about
/// 45 KiB, of which 32 KiB are what later bytes may refer to.
#[derive(Debug)]
pub struct GzipDecoder {
    state: State,
    inflate: Decompress,
    crc: Crc,
    read: u64,
    made: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In a member's header: which part, what is known of it, and the bytes read so far.
    Header { part: Part, flags: u8, read: u32 },
    /// In what is compressed.
    Deflated,
    /// Behind it: how many bytes of the trailer have come, and what they say.
    Trailer { read: u8, value: u64 },
    /// Behind the trailer: another member may follow (RFC 1952, section 2.2).
    BetweenMembers,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The first ten bytes, of which so many were read.
    Fixed(u8),
    /// The length of the extra field: its first byte.
    ExtraLow,
    /// Its second byte.
    ExtraHigh(u8),
    /// So many bytes of it.
    Extra(u16),
    Name,
    Comment,
    /// So many bytes of the header's own sum, which is not checked.
    Checksum(u8),
}

const HEADER: State = State::Header { part: Part::Fixed(0), flags: 0, read: 0 };

impl Default for GzipDecoder {
    fn default() -> Self {
        Self { state: HEADER, inflate: Decompress::new(false), crc: Crc::new(), read: 0, made: 0 }
    }
}

impl GzipDecoder {
    /// Makes it that of another body.
    pub fn reset(&mut self) {
        self.inflate.reset(false);
        self.crc.reset();
        (self.state, self.read, self.made) = (HEADER, 0, 0);
    }

    /// Bytes of this body that were read.
    pub fn bytes_read(&self) -> u64 {
        self.read
    }

    /// Bytes that they have become.
    pub fn bytes_made(&self) -> u64 {
        self.made
    }

    /// Whether the body may end here.
    pub fn is_whole(&self) -> bool {
        self.state == State::BetweenMembers
    }

    /// Reads a piece of a body and calls `sink` with the result, piece by piece. Each piece fits into `room`, which must not be
    /// empty, so memory stays bounded however far a few bytes expand.
    ///
    /// # Errors
    /// Where it is not gzip, or what `sink` answers; nothing is to be read after that.
    pub fn decode<E: From<GzipError>>(
        &mut self,
        input: &[u8],
        room: &mut [u8],
        mut sink: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = input;
        loop {
            match self.state {
                State::Deflated => {
                    let (used, made) = self.inflate_some(rest, room)?;
                    rest = &rest[used..];
                    if made > 0 {
                        sink(&room[..made])?;
                    }
                    // Where there was no room, more may come of what was read.
                    if rest.is_empty() && made < room.len() {
                        return Ok(());
                    }
                }
                _ => {
                    let Some((&byte, others)) = rest.split_first() else { return Ok(()) };
                    rest = others;
                    self.read += 1;
                    self.state = self.read_around(byte)?;
                }
            }
        }
    }

    /// Bytes that were read, and made.
    fn inflate_some(&mut self, input: &[u8], room: &mut [u8]) -> Result<(usize, usize), GzipError> {
        let (read, made) = (self.inflate.total_in(), self.inflate.total_out());
        let status = self.inflate.decompress(input, room, FlushDecompress::Sync);
        let (used, made) = ((self.inflate.total_in() - read) as usize, (self.inflate.total_out() - made) as usize);
        self.crc.update(&room[..made]);
        self.read += used as u64;
        self.made += made as u64;
        match status {
            Ok(Status::StreamEnd) => self.state = State::Trailer { read: 0, value: 0 },
            Ok(_) if used == 0 && made == 0 && !input.is_empty() => return Err(GzipError::Malformed),
            Ok(_) => {}
            Err(_) => return Err(GzipError::Malformed),
        }
        Ok((used, made))
    }

    /// A byte of a header or a trailer.
    fn read_around(&mut self, byte: u8) -> Result<State, GzipError> {
        match self.state {
            State::Header { part, flags, read } => self.read_header(part, flags, read, byte),
            State::BetweenMembers => {
                self.inflate.reset(false);
                self.crc.reset();
                self.read_header(Part::Fixed(0), 0, 0, byte)
            }
            State::Trailer { read, value } => {
                let value = value | u64::from(byte) << (8 * read);
                let sums = u64::from(self.crc.sum()) | u64::from(self.crc.amount()) << 32;
                match read {
                    7 if value != sums => Err(GzipError::WrongTrailer),
                    7 => Ok(State::BetweenMembers),
                    _ => Ok(State::Trailer { read: read + 1, value }),
                }
            }
            State::Deflated => Ok(State::Deflated),
        }
    }

    fn read_header(&mut self, part: Part, mut flags: u8, read: u32, byte: u8) -> Result<State, GzipError> {
        if read == MAX_HEADER_BYTES {
            return Err(GzipError::HeaderTooLarge);
        }
        let next = match part {
            Part::Fixed(0) if byte != 0x1f => return Err(GzipError::NotGzip),
            Part::Fixed(1) if byte != 0x8b => return Err(GzipError::NotGzip),
            // Deflate is the only method.
            Part::Fixed(2) if byte != 8 => return Err(GzipError::NotGzip),
            Part::Fixed(3) if byte & FLAGS_RESERVED != 0 => return Err(GzipError::UnknownFlags),
            Part::Fixed(9) => None,
            Part::Fixed(at) => {
                flags = if at == 3 { byte } else { flags };
                Some(Part::Fixed(at + 1))
            }
            Part::ExtraLow => Some(Part::ExtraHigh(byte)),
            Part::ExtraHigh(low) => match u16::from_le_bytes([low, byte]) {
                0 => None,
                size => Some(Part::Extra(size)),
            },
            Part::Extra(1) => None,
            Part::Extra(left) => Some(Part::Extra(left - 1)),
            Part::Name | Part::Comment if byte == 0 => None,
            Part::Name | Part::Comment => Some(part),
            Part::Checksum(1) => None,
            Part::Checksum(left) => Some(Part::Checksum(left - 1)),
        };
        // What has ended is not read again, so that the flags that are left say what comes next.
        let next = next.or_else(|| {
            let parts = [
                (FLAG_EXTRA, Part::ExtraLow),
                (FLAG_NAME, Part::Name),
                (FLAG_COMMENT, Part::Comment),
                (FLAG_CHECKSUM, Part::Checksum(2)),
            ];
            let (flag, part) = parts.into_iter().find(|(flag, _)| flags & flag != 0)?;
            flags &= !flag;
            Some(part)
        });
        Ok(next.map_or(State::Deflated, |part| State::Header { part, flags, read: read + 1 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, GzBuilder};
    use proptest::prelude::*;
    use std::io::Write as _;

    /// What a body becomes that comes in pieces of the given sizes (the last repeats).
    fn decode(decoder: &mut GzipDecoder, input: &[u8], cuts: &[usize], room: usize) -> Result<Vec<u8>, GzipError> {
        let (mut out, mut room, mut start) = (Vec::new(), vec![0; room], 0);
        for i in 0.. {
            if start >= input.len() {
                break;
            }
            let size = cuts.get(i).or(cuts.last()).copied().unwrap_or(input.len()).max(1);
            let end = (start + size).min(input.len());
            decoder.decode(&input[start..end], &mut room, |piece| {
                out.extend_from_slice(piece);
                Ok::<(), GzipError>(())
            })?;
            start = end;
        }
        Ok(out)
    }

    /// A body of messages, each with a flush behind it, and whether it ends.
    fn gzip(messages: &[Vec<u8>], has_fields: bool, is_ended: bool) -> Vec<u8> {
        let builder = GzBuilder::new();
        let builder =
            if has_fields { builder.filename("a.json").comment("said").extra(vec![1, 2, 3]) } else { builder };
        let mut encoder = builder.write(Vec::new(), Compression::fast());
        for message in messages {
            encoder.write_all(message).unwrap();
            encoder.flush().unwrap();
        }
        if is_ended { encoder.finish().unwrap() } else { encoder.get_ref().clone() }
    }

    fn messages() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let message = prop_oneof![
            prop::collection::vec(any::<u8>(), 0..80),
            ("[a-z]{1,9}", 1usize..400).prop_map(|(word, times)| word.repeat(times).into_bytes()),
        ];
        prop::collection::vec(message, 0..8)
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same(messages in messages(), has_fields: bool, cuts in prop::collection::vec(1usize..40, 1..9), room in 1usize..100) {
            let body = gzip(&messages, has_fields, true);
            let mut decoder = GzipDecoder::default();
            for _ in 0..2 {
                prop_assert_eq!(decode(&mut decoder, &body, &cuts, room), Ok(messages.concat()));
                prop_assert!(decoder.is_whole());
                let counts = (decoder.bytes_read(), decoder.bytes_made());
                prop_assert_eq!(counts, (body.len() as u64, messages.concat().len() as u64));
                decoder.reset();
            }
            let twice = [&body[..], &body].concat();
            prop_assert_eq!(decode(&mut decoder, &twice, &cuts, room), Ok([messages.concat(), messages.concat()].concat()));
        }

        #[test]
        fn what_was_flushed_is_given_before_the_next_comes(messages in messages()) {
            let mut decoder = GzipDecoder::default();
            let mut sent = 0;
            for count in 1..=messages.len() {
                let body = gzip(&messages[..count], false, false);
                let new = decode(&mut decoder, &body[sent..], &[], 64);
                prop_assert_eq!(new.as_ref(), Ok(&messages[count - 1]));
                prop_assert!(!decoder.is_whole());
                sent = body.len();
            }
        }

        #[test]
        fn any_bytes_give_the_same_result_however_they_are_cut(tail in prop::collection::vec(any::<u8>(), 0..60), flip in 0usize..60, cuts in prop::collection::vec(1usize..9, 1..6)) {
            let mut input = gzip(&[b"hello hello hello".to_vec()], true, true);
            let at = flip % input.len();
            input[at] ^= 1 << (flip % 8);
            input.extend(tail);
            let one = decode(&mut GzipDecoder::default(), &input, &[], 50);
            prop_assert_eq!(decode(&mut GzipDecoder::default(), &input, &cuts, 50), one);
        }
    }

    #[test]
    fn what_is_not_gzip_says_so() {
        let body = gzip(&[b"hello hello hello".to_vec()], false, true);
        let broken = |at: usize, byte: u8| {
            let mut body = body.clone();
            body[at] = byte;
            decode(&mut GzipDecoder::default(), &body, &[], 50)
        };
        for at in 0..3 {
            assert_eq!(broken(at, 0), Err(GzipError::NotGzip), "{at}");
        }
        assert_eq!(broken(3, 0x20), Err(GzipError::UnknownFlags));
        assert_eq!(broken(10, 0xff), Err(GzipError::Malformed));
        for (at, byte) in body.iter().enumerate().skip(body.len() - 8) {
            assert_eq!(broken(at, byte ^ 1), Err(GzipError::WrongTrailer), "{at}");
        }
        let endless = [&[0x1f, 0x8b, 8, FLAG_NAME, 0, 0, 0, 0, 0, 0][..], &[b'x'; 5000]].concat();
        assert_eq!(decode(&mut GzipDecoder::default(), &endless, &[], 50), Err(GzipError::HeaderTooLarge));
    }

    #[test]
    fn a_bomb_is_given_in_pieces_of_the_room() {
        let mut encoder = GzBuilder::new().write(Vec::new(), Compression::best());
        encoder.write_all(&vec![0; 10 << 20]).unwrap();
        let (body, mut largest) = (encoder.finish().unwrap(), 0);
        assert!(body.len() < 20_000);
        let mut decoder = GzipDecoder::default();
        let stopped = decoder.decode(&body, &mut [0; 1000], |piece| {
            largest = largest.max(piece.len());
            // Whoever has a limit stops here.
            Err(GzipError::Truncated)
        });
        assert_eq!((stopped, largest), (Err(GzipError::Truncated), 1000));
        assert_eq!(decoder.bytes_made(), 1000);
    }
}
