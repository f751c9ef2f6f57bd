//! A log that answers after random turns, in the order in which it was asked.

use fastrand::Rng;
use pushlab_log::{Entry, Limits, Log, MemoryLog, Notify, Publication, Replay, Settled, Ticket, Turn};
use pushlab_server::MakeLog;
use pushlab_wire::channel::{BadChannel, Channel};
use pushlab_wire::cursor::{Cursor, Epoch};
use pushlab_wire::receipt::Receipt;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// How often the log may answer something.
const TURN: Duration = Duration::from_micros(50);
/// One in so many turns it answers.
const ODDS: u32 = 4;

/// Makes such logs.
pub struct Late;

struct LateLog {
    log: MemoryLog,
    asked: VecDeque<(Ticket, Question)>,
    tickets: u64,
    random: Rng,
    is_asked: Arc<AtomicBool>,
    /// Ends the thread that takes turns, when dropped.
    _life: Option<mpsc::Sender<()>>,
}

enum Question {
    Append { channel: String, data: String, receipt: Option<Receipt>, now_ns: u64 },
    Read { channels: Vec<Channel>, after: Option<Cursor>, max_bytes: usize },
    Newest { channels: Vec<Channel>, count: u32, max_bytes: usize },
}

impl MakeLog for Late {
    fn make(&self, epoch: Epoch, limits: Limits) -> Box<dyn Log> {
        Box::new(LateLog {
            log: MemoryLog::new(epoch, limits),
            asked: VecDeque::new(),
            tickets: 0,
            random: Rng::with_seed(20_261_129),
            is_asked: Arc::default(),
            _life: None,
        })
    }
}

impl LateLog {
    fn ask(&mut self, question: Question) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket::numbered(self.tickets);
        self.asked.push_back((ticket, question));
        self.is_asked.store(true, Ordering::Relaxed);
        ticket
    }
}

impl Log for LateLog {
    fn append(&mut self, entry: Entry<'_>, now_ns: u64) -> Result<Turn<Arc<Publication>>, BadChannel> {
        Channel::parse(entry.channel)?;
        let Entry { channel, data, receipt } = entry;
        let (channel, data) = (channel.to_owned(), data.to_owned());
        Ok(Turn::Pending(self.ask(Question::Append { channel, data, receipt, now_ns })))
    }

    fn read(&mut self, channels: &[Channel], after: Option<Cursor>, max_bytes: usize) -> Turn<Replay> {
        Turn::Pending(self.ask(Question::Read { channels: channels.to_vec(), after, max_bytes }))
    }

    fn newest(&mut self, channels: &[Channel], count: u32, max_bytes: usize) -> Turn<Replay> {
        Turn::Pending(self.ask(Question::Newest { channels: channels.to_vec(), count, max_bytes }))
    }

    fn settled(&mut self) -> Option<Settled> {
        if self.random.u32(..ODDS) > 0 {
            return None;
        }
        let (ticket, question) = self.asked.pop_front()?;
        self.is_asked.store(!self.asked.is_empty(), Ordering::Relaxed);
        Some(match question {
            Question::Append { channel, data, receipt, now_ns } => {
                let publication = self.log.append(&channel, &data, receipt, now_ns);
                Settled::Published(publication.expect("the name was checked"), Some(ticket))
            }
            Question::Read { channels, after, max_bytes } => {
                Settled::Read(self.log.read(&channels, after, max_bytes), ticket)
            }
            Question::Newest { channels, count, max_bytes } => {
                Settled::Read(self.log.newest(&channels, count, max_bytes), ticket)
            }
        })
    }

    fn attach(&mut self, notify: Notify) {
        let (life, end) = mpsc::channel::<()>();
        self._life = Some(life);
        let is_asked = self.is_asked.clone();
        std::thread::spawn(move || {
            while end.recv_timeout(TURN) == Err(mpsc::RecvTimeoutError::Timeout) {
                if is_asked.load(Ordering::Relaxed) {
                    notify();
                }
            }
        });
    }

    fn head(&self) -> Cursor {
        self.log.head()
    }

    fn expire(&mut self, now_ns: u64) {
        self.log.expire(now_ns);
    }

    fn history_size(&self) -> (usize, usize) {
        self.log.history_size()
    }
}
