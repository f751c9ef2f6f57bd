//! The old process's side of the handover.

use crate::frame::{Frame, VERSION, encode_part};
use crate::talk::{HandoverError, Talk};
use pushlab_log::Part;
use pushlab_os::process;
use pushlab_os::unix::Peer;
use pushlab_wire::cursor::Epoch;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// One that wants to take over, and may.
#[derive(Debug)]
pub struct Successor {
    talk: Talk,
    peer: Peer,
}

impl Successor {
    /// Hears what somebody wants who has connected; each step of the handover may take so long.
    ///
    /// # Errors
    /// If it is another user's process, says something else, or another version.
    pub fn greet(stream: UnixStream, patience: Duration) -> Result<Self, HandoverError> {
        let peer = Peer::of(&stream)?;
        let mut talk = Talk::new(stream, patience)?;
        if peer.user != process::effective_ids().0 {
            return Err(HandoverError::User(peer.user));
        }
        match talk.receive()? {
            Frame::Hello { version: VERSION } => Ok(Self { talk, peer }),
            Frame::Hello { version } => {
                let _ = talk.send(&Frame::Refused(HandoverError::Version(version).to_string()));
                Err(HandoverError::Version(version))
            }
            _ => Err(HandoverError::Unexpected),
        }
    }

    /// Tells it why there is no handover.
    pub fn refuse(mut self, reason: &str) {
        // It may have gone.
        let _ = self.talk.send(&Frame::Refused(reason.to_owned()));
    }

    /// Gives it the listeners and the first part of the log, which goes on here, and waits until it has all that it needs.
    ///
    /// # Errors
    /// If it goes, or does not answer; then nothing has happened.
    pub fn prepare(
        &mut self,
        epoch: Epoch,
        clock_ns: u64,
        listeners: &[BorrowedFd<'_>],
        part: &Part,
    ) -> Result<(), HandoverError> {
        let welcome = Frame::Welcome { epoch, clock_ns, listeners: listeners.len() as u32 };
        self.talk.knows(epoch);
        self.talk.send_with(&welcome, listeners)?;
        self.send_part(part)?;
        match self.talk.receive()? {
            Frame::Ready => Ok(()),
            _ => Err(HandoverError::Unexpected),
        }
    }

    /// Gives it the second part of the log. From the moment at which that was made, nothing may be appended here.
    ///
    /// # Errors
    /// If it has gone.
    pub fn send_part(&mut self, part: &Part) -> Result<(), HandoverError> {
        let mut sent = Ok(());
        encode_part(part, |frame| {
            if sent.is_ok() {
                sent = self.talk.send(&frame);
            }
        });
        sent
    }

    /// What it says from now on, and who it is.
    pub fn into_parts(self) -> (Talk, Peer) {
        (self.talk, self.peer)
    }
}
