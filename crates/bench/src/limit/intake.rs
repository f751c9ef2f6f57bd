//! The limits' way in: publications as a four-byte length (little endian) and the bytes to deliver.

use std::io::{self, Read};

/// Bytes of the length before each message.
const HEAD_BYTES: usize = 4;
/// Bytes read in one turn, as many as our server reads.
const BUFFER_BYTES: usize = 64 * 1024;

/// Appends one publication as [`Intake`] reads it.
pub fn encode(out: &mut Vec<u8>, message: &[u8]) {
    let size = u32::try_from(message.len()).expect("the bench publishes small messages");
    out.extend_from_slice(&size.to_le_bytes());
    out.extend_from_slice(message);
}

/// Reads publications from a socket.
pub struct Intake {
    buffer: Vec<u8>,
    filled: usize,
}

impl Intake {
    /// An empty one.
    pub fn new() -> Self {
        Self { buffer: vec![0; BUFFER_BYTES], filled: 0 }
    }

    /// Reads once and gives every whole message to `sink`. Says whether there may be more to read.
    pub fn read(&mut self, socket: &mut impl Read, mut sink: impl FnMut(&[u8])) -> io::Result<bool> {
        let room = self.buffer.len() - self.filled;
        match socket.read(&mut self.buffer[self.filled..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => self.filled += n,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(e) => return Err(e),
        }
        let is_full = self.filled == self.buffer.len() && room > 0;
        let mut rest = &self.buffer[..self.filled];
        while let Some((head, after)) = rest.split_first_chunk::<HEAD_BYTES>() {
            let Some((message, after)) = after.split_at_checked(u32::from_le_bytes(*head) as usize) else { break };
            sink(message);
            rest = after;
        }
        let (left, used) = (rest.len(), self.filled - rest.len());
        self.buffer.copy_within(used..self.filled, 0);
        self.filled = left;
        Ok(is_full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_split_gives_the_same_messages() {
        let mut bytes = Vec::new();
        for message in [&b"one"[..], b"", b"three"] {
            encode(&mut bytes, message);
        }
        for split in 1..bytes.len() {
            let mut intake = Intake::new();
            let mut found = Vec::new();
            for mut part in [&bytes[..split], &bytes[split..]] {
                intake.read(&mut part, |message| found.push(message.to_vec())).unwrap();
            }
            assert_eq!(found, [&b"one"[..], b"", b"three"]);
        }
    }
}
