//! Bytes that a connection did not take, and how bytes are given to it.

use crate::framing::Framing;
use crate::queue::MAX_WRITE_BYTES;
use std::fmt;
use std::io::{self, Write};

/// Bytes that are made elsewhere and sent from there.
pub enum Body {
    /// They are part of the program, and take no memory however many send them.
    Static(&'static [u8]),
    /// They were made for one answer.
    Own(Box<dyn AsRef<[u8]> + Send>),
}

/// What must go out as it is before anything else. Exists only while a connection takes nothing.
#[derive(Default)]
pub struct Unsent {
    /// Rest of a frame that was begun, and replies behind it.
    bytes: Vec<u8>,
    /// How many of these bytes, from the first on, are of deliveries.
    deliveries: usize,
    /// A large body behind that, of which so many bytes were written. Nothing is pushed behind it.
    body: Option<(Body, usize)>,
}

impl Body {
    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Static(bytes) => bytes,
            Self::Own(bytes) => (**bytes).as_ref(),
        }
    }
}

impl Unsent {
    /// How many bytes.
    pub fn len(&self) -> usize {
        self.bytes.len() + self.body.as_ref().map_or(0, |(body, at)| body.as_bytes().len() - at)
    }

    /// Bytes of memory it takes: a whole body until its last byte is written, unless it is part of the program.
    pub fn kept_bytes(&self) -> usize {
        let body = match &self.body {
            Some((Body::Own(bytes), _)) => (**bytes).as_ref().len(),
            Some((Body::Static(_), _)) | None => 0,
        };
        size_of::<Self>() + self.bytes.capacity() + body
    }

    /// How many of them are replies to what the peer has asked for, but for the body of an answer, behind which nothing is
    /// read from it anyway.
    pub fn replies(&self) -> usize {
        self.bytes.len() - self.deliveries
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds bytes, as a reply.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// What is here was not asked for, or is no more than what a subscriber gets without asking again.
    pub fn note_deliveries(&mut self) {
        self.deliveries = self.bytes.len();
    }

    /// Where to write what is to be added.
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Adds a body, which is bounded where it is made.
    pub fn push_body(&mut self, body: Body) {
        let bytes = body.as_bytes();
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
            self.deliveries = self.deliveries.saturating_sub(written);
            if !self.bytes.is_empty() {
                return Ok(written);
            }
        }
        if let Some((body, at)) = &mut self.body {
            let n = write_some(socket, &body.as_bytes()[*at..])?;
            written += n;
            *at += n;
            if *at == body.as_bytes().len() {
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
            unsent.push_body(Body::Own(Box::new(body.clone())));
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
    fn what_is_part_of_the_program_takes_no_memory() {
        let page: &'static [u8] = &[b'x'; MAX_WRITE_BYTES + 1];
        for (body, own) in [(Body::Static(page), 0), (Body::Own(Box::new(page)), page.len())] {
            let mut unsent = Unsent::default();
            unsent.push(b"head");
            let head = unsent.kept_bytes();
            unsent.push_body(body);
            assert_eq!((unsent.len(), unsent.kept_bytes() - head), (4 + page.len(), own));
        }
    }

    #[test]
    fn replies_are_what_stands_behind_deliveries() {
        let mut unsent = Unsent::default();
        unsent.push(&[b'd'; 100]);
        unsent.note_deliveries();
        assert_eq!(unsent.replies(), 0);
        unsent.push(&[b'r'; 30]);
        let mut socket = Calls { taken: Vec::new(), room: usize::MAX, most: 60 };
        let mut replies = || {
            unsent.write_to(&mut socket).unwrap();
            unsent.replies()
        };
        assert_eq!([replies(), replies(), replies()], [30, 10, 0]);
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
