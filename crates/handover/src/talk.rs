//! One end of the socket between the two processes.

use crate::frame::{BadFrame, Frame, FrameDecoder};
use pushlab_os::unix;
use std::io::{self, Write as _};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Bytes that are read at once.
const READ_BYTES: usize = 256 << 10;

/// Why a handover did not come about, or ended.
#[derive(Debug, thiserror::Error)]
pub enum HandoverError {
    /// The socket broke, or the other side took too long.
    #[error("the other process does not answer: {0}")]
    Socket(#[from] io::Error),
    /// Others could stand in for the socket.
    #[error("the socket's folder {0}")]
    Folder(io::Error),
    /// The other process ended the connection.
    #[error("the other process has gone")]
    Gone,
    /// It is no process of ours.
    #[error(transparent)]
    BadFrame(#[from] BadFrame),
    /// It said something that has no place here.
    #[error("the other process said something unexpected; is it another program, or of another version?")]
    Unexpected,
    /// It speaks another version.
    #[error("the other process speaks version {0} of the handover, this one version {ours}", ours = crate::frame::VERSION)]
    Version(u32),
    /// It belongs to somebody else.
    #[error("the other process belongs to user {0}, not to the user of this one")]
    User(u32),
    /// The old process does not hand over.
    #[error("the other process refused: {0}")]
    Refused(String),
}

/// One end of the socket.
#[derive(Debug)]
pub struct Talk {
    stream: UnixStream,
    decoder: FrameDecoder,
    buffer: Vec<u8>,
    /// So much of it has been read.
    read: usize,
    /// What came along with the bytes.
    descriptors: Vec<OwnedFd>,
}

impl Talk {
    pub(crate) fn new(stream: UnixStream, patience: Duration) -> io::Result<Self> {
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Self { stream, decoder: FrameDecoder::default(), buffer: Vec::new(), read: 0, descriptors: Vec::new() })
    }

    /// The socket, for whoever writes to it or ends it while somebody reads.
    ///
    /// # Errors
    /// Where there are no more descriptors.
    pub fn stream(&self) -> io::Result<UnixStream> {
        self.stream.try_clone()
    }

    /// Waits for the next frame without an end from now on.
    ///
    /// # Errors
    /// What the socket answers.
    pub fn be_patient(&self) -> io::Result<()> {
        self.stream.set_read_timeout(None)
    }

    pub(crate) fn knows(&mut self, epoch: pushlab_wire::cursor::Epoch) {
        self.decoder = FrameDecoder::of(epoch);
    }

    pub(crate) fn descriptors(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.descriptors)
    }

    pub(crate) fn send(&mut self, frame: &Frame) -> Result<(), HandoverError> {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        Ok(self.stream.write_all(&bytes)?)
    }

    pub(crate) fn send_with(&mut self, frame: &Frame, descriptors: &[BorrowedFd<'_>]) -> Result<(), HandoverError> {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        let sent = unix::send_with(&self.stream, &bytes, descriptors)?;
        Ok(self.stream.write_all(&bytes[sent..])?)
    }

    /// The next frame.
    ///
    /// # Errors
    /// If the other process has gone, said nothing for too long, or nothing sensible.
    pub fn receive(&mut self) -> Result<Frame, HandoverError> {
        loop {
            if let Some((frame, size)) = self.decoder.decode(&self.buffer[self.read..])? {
                self.read += size;
                return Ok(frame);
            }
            self.buffer.drain(..std::mem::take(&mut self.read));
            let held = self.buffer.len();
            self.buffer.resize(held + READ_BYTES, 0);
            let read = unix::receive_with(&self.stream, &mut self.buffer[held..], &mut self.descriptors);
            self.buffer.truncate(held + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => return Err(HandoverError::Gone),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
