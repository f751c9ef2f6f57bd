//! The threads on which an application answers, beside the event loops.
//!
//! An event loop gives a request to the pool through its [`Caller`] and takes the answer from it in a later turn. Only
//! requests and answers travel, no sockets: where there are several event loops each has a descriptor table of its own.

use crate::application::{Application, Body, Publisher, Request, Response, THREADS};
use crate::config::Limits;
use crate::core::http::known_paths;
use crate::hub::Inbox;
use pushlab_wire::codes::ErrorCode;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Instant;

/// A request on its way to the application.
struct Job {
    id: usize,
    ticket: u64,
    /// From here on nobody waits for it any more.
    expires: Instant,
    request: Request,
    /// Gone when its event loop has ended.
    caller: Weak<()>,
    answers: Sender<Answer>,
    inbox: Arc<Inbox>,
}

/// An answer on its way back.
pub struct Answer {
    /// The connection that asked, if it is still there.
    pub id: usize,
    /// Tells that connection from a later one in its place, and this request from a later one on it.
    pub ticket: u64,
    /// Everything but the body, which is empty here.
    pub response: Response,
    /// The body.
    pub body: LargeBody,
}

/// The body of an answer, which counts as held until it is dropped, if it is large.
pub struct LargeBody {
    body: Body,
    /// Dropped with it.
    _held: Option<Held>,
}

struct Held {
    bytes: usize,
    total: Arc<AtomicUsize>,
}

/// An event loop's way to the application.
pub struct Caller {
    jobs: SyncSender<Box<Job>>,
    sender: Sender<Answer>,
    answers: Receiver<Answer>,
    inbox: Arc<Inbox>,
    life: Arc<()>,
    tickets: u64,
}

/// A pool that has not started: callers are made first.
pub struct Pool {
    jobs: SyncSender<Box<Job>>,
    desk: Desk,
}

/// What the threads share.
struct Desk {
    application: Arc<dyn Application>,
    jobs: Mutex<Receiver<Box<Job>>>,
    /// Bytes of large bodies that exist.
    held: Arc<AtomicUsize>,
    large_bytes: usize,
    max_held_bytes: usize,
}

/// The threads.
pub struct Workers(Vec<JoinHandle<()>>);

impl Caller {
    /// Hands in a request of a connection; gives its ticket, or `None` if too many wait already.
    pub fn ask(&mut self, id: usize, request: Request, expires: Instant) -> Option<u64> {
        self.tickets += 1;
        let ticket = self.tickets;
        let (answers, inbox) = (self.sender.clone(), self.inbox.clone());
        let caller = Arc::downgrade(&self.life);
        self.jobs.try_send(Box::new(Job { id, ticket, expires, request, caller, answers, inbox })).ok()?;
        Some(ticket)
    }

    /// The next answer that has come.
    pub fn answer(&self) -> Option<Answer> {
        self.answers.try_recv().ok()
    }
}

impl Pool {
    /// A pool for an application.
    pub fn new(application: Arc<dyn Application>, limits: &Limits) -> Self {
        let (jobs, queue) = sync_channel(limits.max_waiting_requests);
        let desk = Desk {
            application,
            jobs: Mutex::new(queue),
            held: Arc::default(),
            large_bytes: limits.max_queue_bytes,
            max_held_bytes: limits.max_large_answers_bytes,
        };
        Self { jobs, desk }
    }

    /// The way to it for the event loop of this inbox.
    pub fn caller(&self, inbox: Arc<Inbox>) -> Caller {
        let (sender, answers) = channel();
        Caller { jobs: self.jobs.clone(), sender, answers, inbox, life: Arc::default(), tickets: 0 }
    }

    /// Begins the application, then answers what has been asked and will be, until every caller is gone.
    pub fn start(self, publisher: Publisher) -> io::Result<Workers> {
        self.desk.application.begin(publisher);
        let desk = Arc::new(self.desk);
        let mut threads = Vec::new();
        for index in 0..THREADS {
            let desk = desk.clone();
            let name = format!("pushlab-app-{index}");
            threads.push(std::thread::Builder::new().name(name).spawn(move || desk.work())?);
        }
        Ok(Workers(threads))
    }
}

impl Workers {
    /// Waits for the threads, which end when the event loops have.
    pub fn join(self) {
        for thread in self.0 {
            // A worker catches the application's panics and has none of its own.
            let _ = thread.join();
        }
    }
}

impl Desk {
    fn work(&self) {
        while let Some(job) = self.next() {
            if job.caller.strong_count() == 0 || Instant::now() >= job.expires {
                continue;
            }
            let (response, body) = self.answer(&job.request);
            let answer = Answer { id: job.id, ticket: job.ticket, response, body };
            // An event loop that has ended needs no answer.
            if job.answers.send(answer).is_ok() {
                job.inbox.wake();
            }
        }
    }

    fn next(&self) -> Option<Box<Job>> {
        // The others wait for the lock instead of for a request. A panic leaves nothing half done under it.
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
    }

    fn answer(&self, request: &Request) -> (Response, LargeBody) {
        let mut response = match catch_unwind(AssertUnwindSafe(|| self.application.answer(request))) {
            Ok(Some(response)) if (200..600).contains(&response.status) => response,
            Ok(Some(Response { status, .. })) => {
                let text = format!("the application answered {} with {status}, which is no status", request.path);
                Response::error(ErrorCode::InternalError, &text)
            }
            Ok(None) => Response::error(ErrorCode::UnknownPath, &known_paths()),
            Err(_) => {
                let text = format!("the application failed at {}; why stands in the server's output", request.path);
                Response::error(ErrorCode::InternalError, &text)
            }
        };
        match self.hold(std::mem::replace(&mut response.body, Body::Static(b""))) {
            Some(body) => (response, body),
            None => {
                let text = "too much of large answers waits for slow readers; ask again in a moment";
                let mut refusal = Response::error(ErrorCode::Overloaded, text);
                let body = std::mem::replace(&mut refusal.body, Body::Static(b""));
                (refusal, LargeBody { body, _held: None })
            }
        }
    }

    /// Counts a body, if it is large; `None` if there is no room for it.
    fn hold(&self, body: Body) -> Option<LargeBody> {
        let bytes = match &body {
            Body::Own(own) if own.len() > self.large_bytes => own.len(),
            _ => return Some(LargeBody { body, _held: None }),
        };
        let before = self.held.fetch_add(bytes, Ordering::Relaxed);
        let held = Held { bytes, total: self.held.clone() };
        let has_room = before == 0 || before + bytes <= self.max_held_bytes;
        has_room.then_some(LargeBody { body, _held: Some(held) })
    }
}

impl LargeBody {
    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.body.as_bytes()
    }
}

impl From<Body> for LargeBody {
    /// A body that does not count.
    fn from(body: Body) -> Self {
        Self { body, _held: None }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
