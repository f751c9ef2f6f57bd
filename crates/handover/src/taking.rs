//! The new process's side of the handover.

use crate::frame::{Frame, VERSION};
use crate::talk::{HandoverError, Talk};
use pushlab_log::{Limits, MemoryLog, Part};
use pushlab_os::folder::check_private;
use pushlab_os::process;
use pushlab_os::unix::Peer;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// A server that hands over, and what it has given so far.
pub struct Predecessor {
    talk: Talk,
    /// Its listeners.
    pub listeners: Vec<OwnedFd>,
    /// What the clock of publications shows, ns.
    pub clock_ns: u64,
    log: MemoryLog,
}

impl Predecessor {
    /// Asks the server that listens at a path to hand over; `None` if none does. Each step may take so long.
    ///
    /// # Errors
    /// If it is another user's process, does not want to, or does not answer as it should; it then goes on. If the
    /// socket's folder does not belong to this user alone.
    pub fn ask(path: &Path, limits: Limits, patience: Duration) -> Result<Option<Self>, HandoverError> {
        // Whoever can enter it could take the socket's name, and wait there for listeners and log.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        check_private(folder).map_err(HandoverError::Folder)?;
        let stream = match UnixStream::connect(path) {
            Ok(stream) => stream,
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let peer = Peer::of(&stream)?;
        if peer.user != process::effective_ids().0 {
            return Err(HandoverError::User(peer.user));
        }
        let mut talk = Talk::new(stream, patience)?;
        talk.send(&Frame::Hello { version: VERSION })?;
        let (epoch, clock_ns, count) = match talk.receive()? {
            Frame::Welcome { epoch, clock_ns, listeners } => (epoch, clock_ns, listeners),
            Frame::Refused(reason) => return Err(HandoverError::Refused(reason)),
            _ => return Err(HandoverError::Unexpected),
        };
        let listeners = talk.descriptors();
        if listeners.len() != count as usize || listeners.is_empty() {
            return Err(HandoverError::Unexpected);
        }
        let mut log = MemoryLog::new(epoch, limits);
        receive_part(&mut talk, &mut log)?;
        Ok(Some(Self { talk, listeners, clock_ns, log }))
    }

    /// Takes the rest of the log. The old process appends nothing any more: from now on, this one does, and
    /// [says so](started) before it serves anybody.
    ///
    /// # Errors
    /// If the old process has gone or does not answer.
    pub fn take(mut self) -> Result<(MemoryLog, Talk), HandoverError> {
        self.talk.send(&Frame::Ready)?;
        receive_part(&mut self.talk, &mut self.log)?;
        Ok((self.log, self.talk))
    }
}

/// Says that this process serves.
///
/// # Errors
/// The old process has given up waiting, and goes on itself: this one must not serve.
pub fn started(talk: &mut Talk) -> Result<(), HandoverError> {
    talk.send(&Frame::Started)?;
    Ok(talk.be_patient()?)
}

fn receive_part(talk: &mut Talk, log: &mut MemoryLog) -> Result<(), HandoverError> {
    let mut messages = Vec::new();
    loop {
        match talk.receive()? {
            Frame::Messages(more) => messages.extend(more),
            Frame::Part { head, forgotten_to, evicted } => {
                log.import(&Part { head, forgotten_to, evicted, messages });
                return Ok(());
            }
            _ => return Err(HandoverError::Unexpected),
        }
    }
}
