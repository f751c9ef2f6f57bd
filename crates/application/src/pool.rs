//! The threads on which an application answers, beside the event loops.
//!
//! An event loop gives a request to the pool through its [`Caller`] and takes the answer from it in a later turn. Only
//! requests and answers travel, no sockets: where there are several event loops each has a descriptor table of its own.

use crate::{Application, Body, Publisher, Request, Response};
use pushlab_log::{Account, Charge};
use pushlab_session::queue::MAX_WRITE_BYTES;
use pushlab_session::request::known_paths;
use pushlab_session::unsent;
use pushlab_wire::codes::ErrorCode;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;

/// Threads on which an application answers, and as many again for requests that [may wait](Application::may_wait). One
/// that does not come back from [`Application::answer`] is missing to all other requests of its kind.
pub const THREADS: usize = 8;

/// What wakes an event loop.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// How much waits in a pool.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Requests that wait for a thread, of each of both kinds ([`Application::may_wait`]).
    pub max_waiting_requests: usize,
    /// An answer, bytes.
    pub max_answer_bytes: usize,
    /// Answers that peers have not taken yet, bytes in all.
    pub max_held_answers_bytes: usize,
    /// Bytes kept for peers in all, beyond which no request is taken: what waits here is nobody's who could be closed for it.
    pub max_kept_bytes: usize,
}

/// A request's way through the pool. Its connection and the thread that takes it share it, and agree on which came first:
/// that it was begun, or that nobody waited for it any more.
#[derive(Debug)]
pub struct Call {
    stage: AtomicU8,
    /// Whether it may change something.
    is_change: bool,
}

const WAITING: u8 = 0;
const BEGUN: u8 = 1;
const CANCELLED: u8 = 2;

/// A request on its way to the application.
struct Job {
    id: usize,
    call: Arc<Call>,
    request: Request,
    /// Its bytes are kept for whoever asked.
    _charge: Charge,
    /// Gone when its event loop has ended.
    caller: Weak<()>,
    answers: Sender<Answer>,
    wake: Wake,
}

/// An answer on its way back.
pub struct Answer {
    /// The connection that asked, if it is still there.
    pub id: usize,
    /// Tells that connection from a later one in its place, and this request from a later one on it.
    pub call: Arc<Call>,
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

/// The ways in: of requests that are answered at once, and of those that may wait.
type Ways = [SyncSender<Box<Job>>; 2];

/// An event loop's way to the application.
pub struct Caller {
    application: Arc<dyn Application>,
    ways: Ways,
    account: Arc<Account>,
    max_kept_bytes: usize,
    sender: Sender<Answer>,
    answers: Receiver<Answer>,
    wake: Wake,
    life: Arc<()>,
}

/// A pool that has not started: callers are made first.
pub struct Pool {
    ways: Ways,
    account: Arc<Account>,
    max_kept_bytes: usize,
    shared: Shared,
}

/// What the threads share.
struct Shared {
    application: Arc<dyn Application>,
    /// In the order of [`Ways`].
    jobs: [Mutex<Receiver<Box<Job>>>; 2],
    /// Bytes of large bodies that exist.
    held: Arc<AtomicUsize>,
    max_answer_bytes: usize,
    max_held_bytes: usize,
}

/// The threads.
pub struct Workers(Vec<JoinHandle<()>>);

impl Call {
    /// Whether it may change something.
    pub fn is_change(&self) -> bool {
        self.is_change
    }

    /// Nobody waits for it any more; `true` if it had not been begun, and so never is.
    pub fn cancel(&self) -> bool {
        self.stage.compare_exchange(WAITING, CANCELLED, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Begins it; `false` if it was cancelled.
    fn begin(&self) -> bool {
        self.stage.compare_exchange(WAITING, BEGUN, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

impl Caller {
    /// Hands in a request of a connection; `None` if too many wait already, or too much is kept.
    pub fn ask(&self, id: usize, request: Request) -> Option<Arc<Call>> {
        let call = Arc::new(Call { stage: AtomicU8::new(WAITING), is_change: request.is_change() });
        let (answers, wake) = (self.sender.clone(), Arc::clone(&self.wake));
        let caller = Arc::downgrade(&self.life);
        let way = &self.ways[usize::from(self.application.may_wait(&request))];
        let bytes = request_bytes(&request);
        if self.account.beside_history() + bytes > self.max_kept_bytes {
            return None;
        }
        let _charge = Charge::new(Arc::clone(&self.account), bytes);
        way.try_send(Box::new(Job { id, call: Arc::clone(&call), request, _charge, caller, answers, wake })).ok()?;
        Some(call)
    }

    /// The next answer that has come.
    pub fn answer(&self) -> Option<Answer> {
        self.answers.try_recv().ok()
    }
}

impl Pool {
    /// A pool for an application.
    pub fn new(application: Arc<dyn Application>, limits: Limits, account: &Arc<Account>) -> Self {
        let [(quick, quick_jobs), (slow, slow_jobs)] = [(); 2].map(|()| sync_channel(limits.max_waiting_requests));
        let shared = Shared {
            application,
            jobs: [Mutex::new(quick_jobs), Mutex::new(slow_jobs)],
            held: Arc::default(),
            max_answer_bytes: limits.max_answer_bytes,
            max_held_bytes: limits.max_held_answers_bytes,
        };
        let (account, max_kept_bytes) = (Arc::clone(account), limits.max_kept_bytes);
        Self { ways: [quick, slow], account, max_kept_bytes, shared }
    }

    /// The way to it for the event loop that this wakes.
    pub fn caller(&self, wake: Wake) -> Caller {
        let (sender, answers) = channel();
        let (application, ways, account) = (self.shared.application.clone(), self.ways.clone(), self.account.clone());
        let max_kept_bytes = self.max_kept_bytes;
        Caller { application, ways, account, max_kept_bytes, sender, answers, wake, life: Arc::default() }
    }

    /// Begins the application, then answers what has been asked and will be, until every caller is gone.
    pub fn start(self, publisher: Publisher) -> io::Result<Workers> {
        self.shared.application.begin(publisher);
        let shared = Arc::new(self.shared);
        let mut threads = Vec::new();
        for index in 0..2 * THREADS {
            let shared = shared.clone();
            let name = format!("pushlab-app-{index}");
            threads.push(std::thread::Builder::new().name(name).spawn(move || shared.answer_all(index / THREADS))?);
        }
        Ok(Workers(threads))
    }
}

/// The memory a request takes, without the allocator's overhead.
fn request_bytes(request: &Request) -> usize {
    let pairs = request.query.iter().chain(&request.fields);
    let texts: usize = pairs.map(|(name, value)| size_of::<(String, String)>() + name.len() + value.len()).sum();
    size_of::<Job>() + request.path.len() + texts + request.body.capacity()
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

impl Shared {
    /// Answers what comes on one of the ways.
    fn answer_all(&self, way: usize) {
        while let Some(job) = self.next(way) {
            if job.caller.strong_count() == 0 || !job.call.begin() {
                continue;
            }
            let (response, body) = self.answer(&job.request);
            let answer = Answer { id: job.id, call: job.call, response, body };
            // An event loop that has ended needs no answer.
            if job.answers.send(answer).is_ok() {
                (job.wake)();
            }
        }
    }

    fn next(&self, way: usize) -> Option<Box<Job>> {
        // The others wait for the lock instead of for a request. A panic leaves nothing half done under it.
        self.jobs[way].lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
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
                let done = if request.is_change() { "; what it was asked for may be done in part" } else { "" };
                let text =
                    format!("the application failed at {}{done}; why stands in the server's output", request.path);
                Response::error(ErrorCode::InternalError, &text)
            }
        };
        let body = std::mem::replace(&mut response.body, Body::Static(b""));
        self.hold(body, request).map_or_else(
            |mut refusal| {
                let body = std::mem::replace(&mut refusal.body, Body::Static(b""));
                (refusal, LargeBody { body, _held: None })
            },
            |body| (response, body),
        )
    }

    /// Counts a body, if it is large; another answer if there is no room for it.
    fn hold(&self, body: Body, request: &Request) -> Result<LargeBody, Response> {
        let bytes = match &body {
            Body::Own(own) if own.len() > MAX_WRITE_BYTES => own.len(),
            _ => return Ok(LargeBody { body, _held: None }),
        };
        if bytes > self.max_answer_bytes {
            let max = self.max_answer_bytes;
            let text =
                format!("the answer of {} has {bytes} bytes, and at most {max} are sent; ask for less", request.path);
            return Err(Response::error(ErrorCode::InternalError, &text));
        }
        let held = Held { bytes, total: self.held.clone() };
        if self.held.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.max_held_bytes {
            return Ok(LargeBody { body, _held: Some(held) });
        }
        Err(if request.is_change() {
            let text = "it was done, but too much of large answers waits for slow readers to say how";
            Response::error(ErrorCode::OutcomeUnknown, text)
        } else {
            let text = "too much of large answers waits for slow readers; ask again in a moment";
            Response::error(ErrorCode::Overloaded, text)
        })
    }
}

impl From<LargeBody> for unsent::Body {
    fn from(large: LargeBody) -> Self {
        match large.body {
            Body::Static(bytes) => Self::Static(bytes),
            Body::Own(_) => Self::Own(Box::new(large)),
        }
    }
}

impl AsRef<[u8]> for LargeBody {
    fn as_ref(&self) -> &[u8] {
        self.body.as_bytes()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
