//! Frames on their way to the other process.

use crate::frame::Frame;
use std::io::{self, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes that may wait, 64 MiB: this much memory does another process cost that does not read.
pub const MAX_WAITING_BYTES: usize = 64 << 20;

/// Frames that wait for the socket. Any thread puts some in, and never waits; one thread writes them. Threads that serve
/// may have descriptors of their own, in which the socket is not.
#[derive(Debug, Default)]
pub struct Outgoing {
    waiting: Mutex<Waiting>,
    has_changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// Bytes that are being written.
    under_way: usize,
    has_ended: bool,
}

impl Outgoing {
    /// Adds a frame; behind the end it is dropped.
    pub fn push(&self, frame: &Frame) {
        let mut waiting = self.lock();
        if !waiting.has_ended {
            frame.encode(&mut waiting.bytes);
            self.has_changed.notify_one();
        }
    }

    /// Whether as much waits as may.
    pub fn is_full(&self) -> bool {
        let waiting = self.lock();
        waiting.bytes.len() + waiting.under_way >= MAX_WAITING_BYTES
    }

    /// Takes no more; [`Self::write_to`] returns when it has written what is there.
    pub fn end(&self) {
        self.lock().has_ended = true;
        self.has_changed.notify_one();
    }

    /// Writes what comes until the end.
    ///
    /// # Errors
    /// What the socket answers; nothing more can be written then, and it has ended.
    pub fn write_to(&self, mut socket: impl Write) -> io::Result<()> {
        let mut bytes = Vec::new();
        loop {
            let mut waiting = self.lock();
            waiting.under_way = 0;
            while waiting.bytes.is_empty() && !waiting.has_ended {
                waiting = self.has_changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            }
            if waiting.bytes.is_empty() {
                return Ok(());
            }
            bytes.clear();
            std::mem::swap(&mut bytes, &mut waiting.bytes);
            waiting.under_way = bytes.len();
            drop(waiting);
            if let Err(error) = socket.write_all(&bytes) {
                let mut waiting = self.lock();
                (waiting.has_ended, waiting.bytes, waiting.under_way) = (true, Vec::new(), 0);
                return Err(error);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // A frame is whole or not there: encoding does not panic.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FrameDecoder;
    use std::io::Read as _;
    use std::os::unix::net::UnixStream;

    #[test]
    fn frames_come_in_order_and_one_that_does_not_read_is_bounded() {
        let outgoing = Outgoing::default();
        let (one, mut other) = UnixStream::pair().unwrap();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| outgoing.write_to(one));
            let mut count = 0;
            let large = Frame::Refused("x".repeat(1 << 20));
            while !outgoing.is_full() {
                outgoing.push(&Frame::Failed { ticket: count });
                outgoing.push(&large);
                count += 1;
            }
            assert!(count < 70);
            outgoing.end();
            outgoing.push(&large);
            let mut bytes = Vec::new();
            std::thread::scope(|scope| {
                scope.spawn(|| other.read_to_end(&mut bytes).unwrap());
                writer.join().unwrap().unwrap();
            });
            let (mut at, mut tickets) = (0, 0);
            while let Some((frame, size)) = FrameDecoder::default().decode(&bytes[at..]).unwrap() {
                at += size;
                if let Frame::Failed { ticket } = frame {
                    assert_eq!(ticket, tickets);
                    tickets += 1;
                }
            }
            assert_eq!((at, tickets), (bytes.len(), count));
        });
    }
}
