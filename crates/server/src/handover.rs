//! Taking the place of a server that runs, and giving one's own to the next.
//!
//! The old process pauses, gives the log away and waits until the new one says that it serves; then its connections move,
//! spread over a window. What goes wrong before that moment leaves the old one serving as if nothing had been.

use crate::distributor::Distributor;
use crate::event_loop::Shared;
use crate::inbox::{Inbox, lock};
use crate::listening::copies;
use crate::rolling::{Handover, Happened};
use crate::sources::Sources;
use crate::stage::Stage;
use pushlab_handover::frame::Frame;
use pushlab_handover::giving::Successor;
use pushlab_handover::{HandoverError, Link, News, Outgoing, Talk};
use pushlab_os::socket::shut_down;
use pushlab_os::unix::Peer;
use std::fs::{self, Permissions};
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long each step of a handover may take; meanwhile, from the second part of the log on, nobody is served.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// How long the end of a process may come behind that of its sockets.
const DEATH: Duration = Duration::from_secs(1);
/// How long a full inbox is left alone.
const FULL_PAUSE: Duration = Duration::from_millis(1);
/// After how long every event loop has heard of a stage.
const HEARD: Duration = Duration::from_millis(200);
/// How often the end of the event loops is looked for.
const WATCH: Duration = Duration::from_millis(20);

/// The listener at the path, under a name of its own until this process serves.
pub struct Desk {
    listener: UnixListener,
    made: PathBuf,
}

impl Desk {
    /// Makes one that this user alone can reach.
    ///
    /// # Errors
    /// If nothing can be made there.
    pub fn new(path: &Path) -> io::Result<Self> {
        if fs::symlink_metadata(path).is_ok_and(|found| !found.file_type().is_socket()) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{} is not a socket", path.display())));
        }
        let made = PathBuf::from(format!("{}.{}", path.display(), std::process::id()));
        // Of a process that had this number before.
        let _ = fs::remove_file(&made);
        let listener = UnixListener::bind(&made)?;
        fs::set_permissions(&made, Permissions::from_mode(0o600))?;
        Ok(Self { listener, made })
    }

    /// Gives it its name, in place of whoever had it: from now on the next process finds this one.
    fn open(self, path: &Path) -> io::Result<UnixListener> {
        fs::rename(&self.made, path)?;
        self.listener.try_clone()
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        // It has another name, or is not needed.
        let _ = fs::remove_file(&self.made);
    }
}

/// What a server needs to give its place away.
pub struct Giver {
    pub handover: Handover,
    pub shared: Arc<Shared>,
    pub inboxes: Vec<Arc<Inbox>>,
    /// Copies of all listeners, until it stops.
    pub listeners: Mutex<Vec<OwnedFd>>,
    pub sources: Arc<Mutex<Sources>>,
    /// What ends the thread that waits at the path, as long as the path is this process's.
    waiting: Mutex<Option<UnixListener>>,
}

impl Giver {
    pub fn new(
        handover: Handover,
        shared: Arc<Shared>,
        inboxes: Vec<Arc<Inbox>>,
        listeners: Vec<OwnedFd>,
        sources: Arc<Mutex<Sources>>,
    ) -> Self {
        let (listeners, waiting) = (Mutex::new(listeners), Mutex::default());
        Self { handover, shared, inboxes, listeners, sources, waiting }
    }

    /// Waits for the next process in a thread of its own.
    ///
    /// # Errors
    /// If there is no such thread, or nothing can be made at the path.
    pub fn start(self: &Arc<Self>, desk: Desk) -> io::Result<JoinHandle<()>> {
        let listener = desk.open(&self.handover.path)?;
        *lock(&self.waiting) = Some(listener.try_clone()?);
        let giver = self.clone();
        thread::Builder::new().name("pushlab-handover".to_owned()).spawn(move || giver.run(listener))
    }

    /// Ends that thread.
    pub fn stop(&self) {
        lock(&self.listeners).clear();
        if let Some(listener) = lock(&self.waiting).take() {
            let _ = fs::remove_file(&self.handover.path);
            let _ = shut_down(listener);
        }
    }

    fn run(&self, mut listener: UnixListener) {
        while let Ok((stream, _)) = listener.accept() {
            match self.give(stream) {
                Ok(Outcome::Given) => return,
                Ok(Outcome::Returned) => {
                    (self.handover.tell)(&Happened::SuccessorDied);
                    // The other one had its name.
                    let reopened = Desk::new(&self.handover.path).and_then(|desk| desk.open(&self.handover.path));
                    let Ok(reopened) = reopened else { return };
                    *lock(&self.waiting) = reopened.try_clone().ok();
                    listener = reopened;
                }
                Err(error) => (self.handover.tell)(&Happened::Failed(error)),
            }
        }
    }

    fn go_to(&self, stage: Stage) {
        self.shared.stage.advance(stage);
        self.inboxes.iter().for_each(|inbox| inbox.wake());
    }

    fn give(&self, stream: UnixStream) -> Result<Outcome, HandoverError> {
        let distributor = &self.shared.distributor;
        let mut successor = Successor::greet(stream, PATIENCE)?;
        let Some(first) = distributor.export() else {
            let why = "its log is kept elsewhere";
            successor.refuse(why);
            return Err(HandoverError::Refused(why.to_owned()));
        };
        // Copies: a stop need not wait until all of history is over there.
        let listeners = copies(lock(&self.listeners).iter())?;
        let listeners: Vec<_> = listeners.iter().map(|listener| listener.as_fd()).collect();
        successor.prepare(distributor.head().epoch, distributor.clock_ns(), &listeners, &first)?;
        lock(&self.sources).pause();
        self.go_to(Stage::Paused);
        let link = Arc::new(Link::default());
        let limits = self.shared.config.limits.history(&self.shared.account);
        let rest = distributor.hand_over(first.head, limits, link.clone()).ok_or(HandoverError::Gone)?;
        let sent = successor.send_part(&rest);
        let (mut talk, peer) = successor.into_parts();
        if let Err(error) = sent.and_then(|()| await_start(&mut talk)) {
            link.bring(News::Lost { has_died: true });
            self.go_to(Stage::Serving);
            self.resume_sources();
            return Err(error);
        }
        *lock(&self.waiting) = None;
        link.bring(News::Said(Frame::Started));
        (self.handover.tell)(&Happened::Served(self.shared.return_window()));
        self.go_to(Stage::Leaving);
        Ok(self.see_off(&link, talk, &peer))
    }

    /// Everybody leaves, while the other process has the log.
    fn see_off(&self, link: &Arc<Link>, mut talk: Talk, peer: &Peer) -> Outcome {
        let (end, ended) = channel();
        let Ok(stream) = talk.be_patient().and_then(|()| talk.stream()) else { return self.lose(link, peer) };
        thread::scope(|scope| {
            let writer = scope.spawn(|| link.requests.write_to(&stream));
            scope.spawn(move || {
                let why = loop {
                    match talk.receive() {
                        Ok(Frame::Refused(_)) => break Silence::Stops,
                        Ok(frame) => {
                            self.await_room();
                            link.bring(News::Said(frame));
                        }
                        Err(_) => break Silence::Unexplained,
                    }
                };
                // Nobody hears it where everybody has left before.
                let _ = end.send(why);
            });
            let outcome = self.watch(link, peer, &ended);
            // What clients published last may still be on its way.
            link.requests.end();
            let _ = writer.join();
            let _ = stream.shutdown(Shutdown::Both);
            outcome
        })
    }

    /// Waits until every event loop takes more: what is published over there is limited by what is taken here.
    fn await_room(&self) {
        let limits = self.shared.config.limits.inbox();
        while self.inboxes.iter().any(|inbox| inbox.is_full(limits)) {
            thread::sleep(FULL_PAUSE);
        }
    }

    fn watch(&self, link: &Link, peer: &Peer, ended: &Receiver<Silence>) -> Outcome {
        let begin = Instant::now();
        // All connections have been sent away by then; what is under way has some time more.
        let longest = self.shared.return_window() + WATCH;
        loop {
            match ended.recv_timeout(WATCH) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Silence::Stops) => return self.end_too(link, &Happened::SuccessorStops),
                _ => return self.lose(link, peer),
            }
            // An event loop may yet take a connection when it has not heard of all this.
            let is_empty = begin.elapsed() >= HEARD && self.shared.open.load(Ordering::Relaxed) == 0;
            if (is_empty || begin.elapsed() >= longest) && self.shared.stage.current() == Stage::Leaving {
                lock(&self.listeners).clear();
                self.go_to(Stage::Stopping);
            }
            if self.inboxes.iter().all(|inbox| inbox.has_ended()) {
                return Outcome::Given;
            }
        }
    }

    /// The other process says nothing more.
    fn lose(&self, link: &Link, peer: &Peer) -> Outcome {
        let has_died = peer.ends_within(DEATH);
        // Before anything can be published behind the gap.
        if has_died && self.shared.stage.advance(Stage::Returned) {
            link.bring(News::Lost { has_died });
            self.go_to(Stage::Returned);
            self.resume_sources();
            return Outcome::Returned;
        }
        self.end_too(link, if has_died { &Happened::DiedTooLate } else { &Happened::LinkLost })
    }

    fn end_too(&self, link: &Link, why: &Happened) -> Outcome {
        (self.handover.tell)(why);
        link.bring(News::Lost { has_died: false });
        lock(&self.listeners).clear();
        self.go_to(Stage::Stopping);
        Outcome::Given
    }

    fn resume_sources(&self) {
        let Shared { config, distributor, counters, .. } = &*self.shared;
        let of_sources = &counters[self.inboxes.len()..];
        // Threads that could be made before can be made again.
        let _ = lock(&self.sources).start(config, distributor, of_sources);
    }
}

/// Why the other process says nothing more.
enum Silence {
    /// It said that it stops.
    Stops,
    /// Nobody knows.
    Unexplained,
}

/// How it ended.
enum Outcome {
    /// This process has nothing more to do.
    Given,
    /// It serves again.
    Returned,
}

/// Waits until the other process says that it serves. One that comes too late cannot say so any more.
fn await_start(talk: &mut Talk) -> Result<(), HandoverError> {
    let answer = match talk.receive() {
        Err(error) => {
            talk.stream()?.shutdown(Shutdown::Both)?;
            // It may have said so just before that.
            talk.receive().map_err(|_| error)
        }
        answer => answer,
    };
    match answer? {
        Frame::Started => Ok(()),
        _ => Err(HandoverError::Unexpected),
    }
}

/// The process before this one, which publishes here as long as it has clients.
pub struct Following {
    outgoing: Arc<Outgoing>,
    stream: UnixStream,
    threads: Vec<JoinHandle<()>>,
}

impl Following {
    /// Serves it in threads of its own. It was told already that this process serves.
    ///
    /// # Errors
    /// If there are no such threads.
    pub fn start(talk: Talk, outgoing: Arc<Outgoing>, distributor: Arc<Distributor>) -> io::Result<Self> {
        let (stream, to) = (talk.stream()?, talk.stream()?);
        let (writer, reader) = (outgoing.clone(), outgoing.clone());
        let write = move || {
            let _ = writer.write_to(&to);
            // Whoever does not read is left, and hears that.
            let _ = to.shutdown(Shutdown::Both);
        };
        let mut talk = talk;
        let read = move || {
            while talk.receive().and_then(|request| distributor.serve(request)).is_ok() {}
            distributor.unfollow();
            reader.end();
        };
        let spawn = |work: Box<dyn FnOnce() + Send>| thread::Builder::new().name("pushlab-old".to_owned()).spawn(work);
        let threads = vec![spawn(Box::new(write))?, spawn(Box::new(read))?];
        Ok(Self { outgoing, stream, threads })
    }

    /// Tells it that this process stops too.
    pub fn stop(&self) {
        self.outgoing.push(&Frame::Refused("it is stopping".to_owned()));
        self.outgoing.end();
    }

    /// Waits until it has gone.
    pub fn join(self) {
        self.stop();
        let _ = self.stream.shutdown(Shutdown::Read);
        for thread in self.threads {
            // Nothing in them panics.
            let _ = thread.join();
        }
    }
}
