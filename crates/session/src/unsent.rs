//! Bytes that a connection did not take, and how bytes are given to it.

use crate::framing::Framing;
use crate::queue::MAX_WRITE_BYTES;
use std::fmt;
use std::io::{self, Write};

/// Bytes that are made elsewhere and sent from there.
pub type Body = Box<dyn AsRef<[u8]> + Send>;

/// What must go out as it is before anything else. Exists only while a connection takes nothing.
#[derive(Default)]
pub struct Unsent {
    /// Rest of a frame that was begun, and control frames behind it.
    bytes: Vec<u8>,
    /// A large body behind that, of which so many bytes were written. Nothing is pushed behind it.
    body: Option<(Body, usize)>,
}

impl Unsent {
    /// How many bytes.
    pub fn len(&self) -> usize {
        self.bytes.len() + self.body.as_ref().map_or(0, |(body, at)| (**body).as_ref().len() - at)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Where to write what is to be added.
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Adds a body, which is bounded where it is made.
    pub fn push_body(&mut self, body: Body) {
        let bytes = (*body).as_ref();
        // One write, and one record of TLS, for most.
        if bytes.len() <= MAX_WRITE_BYTES {
            self.bytes.extend_from_slice(bytes);
        } else {
            self.body = Some((body, 0));
        }
    }

    /// Writes as much as the socket takes; gives how much that was.
    pub fn write_to(&mut self, socket: &mut impl Write) -> io::Result<usize> {
        let mut written = 0;
        if !self.bytes.is_empty() {
            written = write_some(socket, &self.bytes)?;
            self.bytes.drain(..written);
            if !self.bytes.is_empty() {
                return Ok(written);
            }
        }
        if let Some((body, at)) = &mut self.body {
            let bytes = (**body).as_ref();
            let n = write_some(socket, &bytes[*at..])?;
            written += n;
            *at += n;
            if *at == bytes.len() {
                self.body = None;
            }
        }
        Ok(written)
    }
}

impl fmt::Debug for Unsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} unsent bytes", self.len())
    }
}

/// One write; a socket that would block takes nothing.
#[inline]
pub fn write_some(socket: &mut impl Write, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match socket.write(bytes) {
            Ok(n) => return Ok(n),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// Writes the events of `bytes` after `from`, each in two writes; `ends` says where each ends. Gives what the socket took.
pub fn write_in_two(
    socket: &mut impl Write,
    framing: Framing,
    bytes: &[u8],
    from: usize,
    ends: &[usize],
) -> io::Result<usize> {
    let mut at = from;
    for &end in ends {
        let border = at + framing.head_len(&bytes[at..end]);
        for to in [border, end] {
            at += write_some(socket, &bytes[at..to])?;
            if at < to {
                return Ok(at - from);
            }
        }
    }
    Ok(at - from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Batch;
    use pushlab_log::{Limits, MemoryLog};
    use pushlab_wire::cursor::Epoch;

    /// Keeps what each call wrote; takes at most `most` bytes a call, and after `room` calls it blocks.
    struct Calls {
        taken: Vec<Vec<u8>>,
        room: usize,
        most: usize,
    }

    impl Write for Calls {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.taken.len() == self.room {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let n = bytes.len().min(self.most);
            self.taken.push(bytes[..n].to_vec());
            Ok(n)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_answer_leaves_whole_whatever_its_size() {
        for size in [0, 1, MAX_WRITE_BYTES, MAX_WRITE_BYTES + 1, 5 << 20] {
            let body = vec![b'x'; size];
            let mut unsent = Unsent::default();
            unsent.push(b"head\n");
            unsent.push_body(Box::new(body.clone()));
            assert_eq!(unsent.len(), 5 + size);
            let mut socket = Calls { taken: Vec::new(), room: 0, most: 3 };
            while !unsent.is_empty() {
                socket.room += 1;
                let before = unsent.len();
                assert_eq!(unsent.write_to(&mut socket).unwrap(), before - unsent.len());
                socket.most = 100_000;
            }
            assert_eq!(socket.taken.concat(), [&b"head\n"[..], &body].concat());
        }
    }

    #[test]
    fn each_event_of_a_batch_is_two_writes() {
        let mut log = MemoryLog::new(Epoch::from_number(1), Limits::default());
        let all: Vec<_> = (0..3).map(|_| log.append("a", "1", None, 0).unwrap()).collect();
        let mut batch = Batch::default();
        for framing in Framing::ALL {
            batch.fill(&all, framing);
            let (bytes, first) = (&batch.bytes, batch.start_of(1));
            let mut socket = Calls { taken: Vec::new(), room: usize::MAX, most: usize::MAX };
            // The first has been seen already.
            let n = write_in_two(&mut socket, framing, bytes, first, batch.ends_from(1)).unwrap();
            assert_eq!(n, bytes.len() - first);
            assert_eq!(socket.taken.concat(), &bytes[first..], "{framing:?}");
            let sizes: Vec<usize> = socket.taken.iter().map(Vec::len).collect();
            let size = batch.start_of(2) - first;
            let head = framing.head_len(&bytes[first..first + size]);
            assert_eq!(sizes, [head, size - head, head, size - head], "{framing:?}");
            // It stops where the socket does.
            for (room, most) in [(0, 9), (1, 9), (2, 3), (3, usize::MAX)] {
                let mut socket = Calls { taken: Vec::new(), room, most };
                let n = write_in_two(&mut socket, framing, bytes, 0, batch.ends_from(0)).unwrap();
                assert_eq!(socket.taken.concat(), &bytes[..n], "{framing:?}");
                assert!(n < bytes.len());
            }
        }
    }
}
