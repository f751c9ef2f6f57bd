//! Messages cut into pieces that any broker takes, and put together again.
//!
//! What a worker measured is up to some megabytes, and a broker takes one megabyte at a time unless it is set to more.
//! Each piece bears a head of 32 bytes, little-endian: the protocol (4 bytes), the stream (8), the message's number in
//! it (8), the message's length (4), where in it the piece begins (4), and the message's CRC-32 (4).
//!
//! A broker without streams of its own forgets what it cannot deliver. So messages of a stream are numbered from 0, and
//! one that is missing, cut short or changed is found as soon as the next piece comes.

use flate2::Crc;

/// Begins each piece: the name and the version of what is said.
const PROTOCOL: [u8; 4] = *b"plb1";
const HEAD_BYTES: usize = 32;
/// Longest piece, its head included: a quarter of what a broker takes by default.
pub const PIECE_BYTES_MAX: usize = 256 * 1024;
/// Longest message: the ranks of four million publications are 64 MiB, all else is small. A stream holds one at most.
pub const MESSAGE_BYTES_MAX: usize = 128 * 1024 * 1024;

/// What is wrong with a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// Somebody else's message, or one of another version of this program.
    #[error("a message that is not of this version's fleets")]
    Foreign,
    /// What should have come before has not.
    #[error("messages were lost on the way")]
    Lost,
    /// The message was cut short or changed.
    #[error("a message came changed")]
    Changed,
    /// Longer than [`MESSAGE_BYTES_MAX`].
    #[error("a message is longer than {MESSAGE_BYTES_MAX} bytes")]
    TooLong,
}

/// The sender's end of a stream.
#[derive(Debug)]
pub struct Cutter {
    stream: u64,
    next: u64,
}

impl Cutter {
    /// Begins a stream, whose number nobody else may have.
    pub fn new(stream: u64) -> Self {
        Self { stream, next: 0 }
    }

    /// Cuts a message into pieces that are to be sent in this order.
    ///
    /// # Errors
    /// [`Broken::TooLong`].
    pub fn cut(&mut self, message: &[u8], piece_bytes_max: usize) -> Result<Vec<Vec<u8>>, Broken> {
        if message.len() > MESSAGE_BYTES_MAX {
            return Err(Broken::TooLong);
        }
        let room = piece_bytes_max.min(PIECE_BYTES_MAX).saturating_sub(HEAD_BYTES).max(1);
        let (number, check) = (self.next, check_of(message));
        self.next += 1;
        let piece = |(index, bytes): (usize, &[u8])| {
            let mut piece = Vec::with_capacity(HEAD_BYTES + bytes.len());
            piece.extend(PROTOCOL);
            piece.extend(self.stream.to_le_bytes());
            piece.extend(number.to_le_bytes());
            piece.extend((message.len() as u32).to_le_bytes());
            piece.extend(((index * room) as u32).to_le_bytes());
            piece.extend(check.to_le_bytes());
            piece.extend(bytes);
            piece
        };
        if message.is_empty() {
            return Ok(vec![piece((0, &[]))]);
        }
        Ok(message.chunks(room).enumerate().map(piece).collect())
    }
}

fn check_of(message: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(message);
    crc.sum()
}

/// The receiver's end of a stream. A new stream, which begins with its first message, takes the place of the old.
#[derive(Debug, Default)]
pub struct PieceDecoder {
    stream: Option<u64>,
    /// The number of the message under way, or of the next.
    number: u64,
    begun: Vec<u8>,
}

impl PieceDecoder {
    /// Takes the next piece; gives the message that it completes.
    ///
    /// # Errors
    /// See [`Broken`]; nothing further of that stream is understood.
    pub fn take(&mut self, piece: &[u8]) -> Result<Option<Vec<u8>>, Broken> {
        let Some((head, bytes)) = piece.split_at_checked(HEAD_BYTES) else { return Err(Broken::Foreign) };
        let number_at = |at: usize, length: usize| {
            head[at..at + length].iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
        };
        if head[..4] != PROTOCOL {
            return Err(Broken::Foreign);
        }
        let (stream, number) = (number_at(4, 8), number_at(12, 8));
        let (length, offset, check) = (number_at(20, 4) as usize, number_at(24, 4) as usize, number_at(28, 4) as u32);
        if length > MESSAGE_BYTES_MAX {
            return Err(Broken::TooLong);
        }
        if self.stream != Some(stream) && number == 0 && offset == 0 {
            *self = Self { stream: Some(stream), ..Self::default() };
        }
        if self.stream != Some(stream) || number != self.number || offset != self.begun.len() {
            self.stream = None;
            return Err(Broken::Lost);
        }
        self.begun.extend(bytes);
        if self.begun.len() < length && !bytes.is_empty() {
            return Ok(None);
        }
        let message = std::mem::take(&mut self.begun);
        if message.len() != length || check_of(&message) != check {
            self.stream = None;
            return Err(Broken::Changed);
        }
        self.number += 1;
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_cut_comes_whole(messages in vec(vec(any::<u8>(), 0..400), 1..6), room in 33_usize..200) {
            let (mut cutter, mut decoder) = (Cutter::new(7), PieceDecoder::default());
            for message in &messages {
                let pieces = cutter.cut(message, room).unwrap();
                prop_assert!(pieces.iter().all(|piece| piece.len() <= room));
                let (last, first) = pieces.split_last().unwrap();
                for piece in first {
                    prop_assert_eq!(decoder.take(piece), Ok(None));
                }
                prop_assert_eq!(decoder.take(last), Ok(Some(message.clone())));
            }
        }

        /// Whatever is lost, repeated, swapped or changed: a wrong message never comes out.
        #[test]
        fn what_is_not_whole_is_found(
            messages in vec(vec(any::<u8>(), 1..100), 2..5),
            place in any::<prop::sample::Index>(),
            harm in 0..4_u8,
            byte in 4_usize..500,
        ) {
            let mut cutter = Cutter::new(7);
            let mut pieces: Vec<Vec<u8>> = messages.iter().flat_map(|m| cutter.cut(m, 64).unwrap()).collect();
            let at = place.index(pieces.len() - 1);
            match harm {
                0 => drop(pieces.remove(at)),
                1 => pieces.swap(at, at + 1),
                2 => pieces.insert(at, pieces[at].clone()),
                _ => {
                    let byte = byte % pieces[at].len();
                    pieces[at][byte] ^= 1;
                }
            }
            let (mut decoder, mut came, mut is_broken) = (PieceDecoder::default(), Vec::new(), false);
            for piece in &pieces {
                match decoder.take(piece) {
                    Ok(message) => came.extend(message),
                    Err(_) => is_broken = true,
                }
                if is_broken {
                    break;
                }
            }
            // The head of a message says the same in each of its pieces, so one may be wrong and do no harm.
            prop_assert!(is_broken || (harm == 3 && came == messages));
            prop_assert!(messages.starts_with(&came), "{:?}", came);
        }

        #[test]
        fn no_bytes_panic(pieces in vec(vec(any::<u8>(), 0..80), 0..10)) {
            let mut decoder = PieceDecoder::default();
            for piece in &pieces {
                // Whatever it says of them.
                let _ = decoder.take(piece);
                let _ = decoder.take(&[&PROTOCOL[..], piece].concat());
            }
        }
    }

    #[test]
    fn a_new_stream_takes_the_place_of_the_old() {
        let mut decoder = PieceDecoder::default();
        let [mut old, mut new] = [1, 2].map(Cutter::new);
        let pieces = old.cut(&[1; 100], 64).unwrap();
        assert_eq!(decoder.take(&pieces[0]), Ok(None));
        let whole = new.cut(b"new", 64).unwrap();
        assert_eq!(decoder.take(&whole[0]), Ok(Some(b"new".to_vec())));
        assert_eq!(decoder.take(&pieces[1]), Err(Broken::Lost), "of the old one nothing more is taken");
    }

    #[test]
    fn what_is_too_long_is_refused_at_both_ends() {
        let long = vec![0; MESSAGE_BYTES_MAX + 1];
        assert_eq!(Cutter::new(1).cut(&long, PIECE_BYTES_MAX), Err(Broken::TooLong));
        let mut piece = Cutter::new(1).cut(&long[1..], PIECE_BYTES_MAX).unwrap().remove(0);
        piece[20] = 1;
        assert_eq!(PieceDecoder::default().take(&piece), Err(Broken::TooLong));
    }
}
