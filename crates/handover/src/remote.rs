//! The log of a process that has handed over: another one has it now, and answers over the link.

use crate::frame::Frame;
use crate::outgoing::Outgoing;
use pushlab_log::{Entry, Limits, Log, MemoryLog, Notify, Publication, Replay, Settled, Ticket, Turn};
use pushlab_wire::channel::{BadChannel, Channel};
use pushlab_wire::cursor::Cursor;
use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// How far the offsets jump where the other process died after it had served: beyond anything that it can have published
/// and this one has not heard of.
const JUMP: u64 = 1 << 32;

/// What connects a [`RemoteLog`] with the process that has the log.
#[derive(Default)]
pub struct Link {
    /// Requests on their way.
    pub requests: Outgoing,
    came: Mutex<VecDeque<News>>,
    notify: OnceLock<Notify>,
}

/// What comes over the link.
#[derive(Debug)]
pub enum News {
    /// The other process said something.
    Said(Frame),
    /// It says nothing more: it has died, or lives on without the link.
    Lost {
        /// Whether it has died.
        has_died: bool,
    },
}

impl Link {
    /// Brings news, in their order.
    pub fn bring(&self, news: News) {
        self.came().push_back(news);
        if let Some(notify) = self.notify.get() {
            notify();
        }
    }

    fn came(&self) -> MutexGuard<'_, VecDeque<News>> {
        self.came.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A log in another process.
///
/// Until that process serves, everything that is asked of it is kept here too: if it dies before, the log that was handed
/// over goes on as if nothing had been. If it dies later, what this process has not heard of may have been seen by clients
/// of the other: then the log goes on far behind that, with nothing before it, so that everybody who resumes is told.
pub struct RemoteLog {
    link: Arc<Link>,
    limits: Limits,
    head: Cursor,
    tickets: u64,
    /// What has no answer yet, in the order in which it was asked, whole as long as it may have to be asked again.
    asked: BTreeMap<u64, Option<Frame>>,
    stage: Stage,
    /// What was answered here.
    settled: VecDeque<Settled>,
}

enum Stage {
    /// The other process has the log, and may yet fail to begin.
    Handing(Box<dyn Log>),
    /// It serves.
    Remote,
    /// It has died: this process goes on.
    Alone(Box<dyn Log>),
    /// It lives, and cannot be reached.
    Over,
}

impl RemoteLog {
    /// In place of a log that is handed over, at its head; `limits` are for one that begins anew.
    pub fn new(log: Box<dyn Log>, limits: Limits, link: Arc<Link>) -> Self {
        let (head, stage) = (log.head(), Stage::Handing(log));
        Self { link, limits, head, tickets: 0, asked: BTreeMap::new(), stage, settled: VecDeque::new() }
    }

    fn own(&mut self) -> Option<&mut dyn Log> {
        match &mut self.stage {
            Stage::Alone(log) => Some(&mut **log),
            _ => None,
        }
    }

    fn ask(&mut self, make: impl FnOnce(u64) -> Frame) -> Ticket {
        self.tickets += 1;
        let number = self.tickets;
        let request = make(number);
        self.link.requests.push(&request);
        let is_kept = matches!(self.stage, Stage::Handing(_));
        self.asked.insert(number, is_kept.then_some(request));
        Ticket::numbered(number)
    }

    fn lose(&mut self, has_died: bool) {
        let asked = mem::take(&mut self.asked);
        let fail = |number: &u64| Settled::Failed(Ticket::numbered(*number));
        self.stage = match mem::replace(&mut self.stage, Stage::Over) {
            Stage::Handing(mut log) => {
                let settle = |(number, request)| answer(&mut *log, number, request).unwrap_or_else(|| fail(&number));
                self.settled.extend(asked.into_iter().map(settle));
                Stage::Alone(log)
            }
            Stage::Remote if has_died => {
                self.settled.extend(asked.keys().map(fail));
                let head = Cursor { offset: self.head.offset + JUMP, ..self.head };
                Stage::Alone(Box::new(MemoryLog::behind(head, self.limits.clone())))
            }
            Stage::Remote | Stage::Over => {
                self.settled.extend(asked.keys().map(fail));
                Stage::Over
            }
            stage @ Stage::Alone(_) => stage,
        };
    }

    /// What something that was said comes to.
    fn hear(&mut self, frame: Frame) -> Option<Settled> {
        let ticket = |number: u64| Ticket::numbered(number);
        match frame {
            Frame::Started => {
                self.stage = Stage::Remote;
                self.asked.values_mut().for_each(|request| *request = None);
                None
            }
            Frame::Published { ticket: number, publication } => {
                self.head.offset = publication.offset;
                let number = number.filter(|number| self.asked.remove(number).is_some());
                Some(Settled::Published(publication, number.map(ticket)))
            }
            Frame::Replay { ticket: number, replay } => {
                self.asked.remove(&number).map(|_| Settled::Read(replay, ticket(number)))
            }
            Frame::Failed { ticket: number } => self.asked.remove(&number).map(|_| Settled::Failed(ticket(number))),
            _ => None,
        }
    }
}

/// The answer of a log in this process to what was asked of another; `None` if there is none at once.
fn answer(log: &mut dyn Log, number: u64, request: Option<Frame>) -> Option<Settled> {
    let ticket = Ticket::numbered(number);
    let read = |turn| match turn {
        Turn::Done(replay) => Some(Settled::Read(replay, ticket)),
        Turn::Pending(_) => None,
    };
    match request? {
        Frame::Append { receipt, channel, data, published_at_ns, .. } => {
            let entry = Entry { channel: channel.as_str(), data: &data, receipt };
            match log.append(entry, published_at_ns) {
                Ok(Turn::Done(publication)) => Some(Settled::Published(publication, Some(ticket))),
                _ => None,
            }
        }
        Frame::Read { after, max_bytes, channels, .. } => read(log.read(&channels, after, max_bytes as usize)),
        Frame::Newest { count, max_bytes, channels, .. } => read(log.newest(&channels, count, max_bytes as usize)),
        _ => None,
    }
}

impl Log for RemoteLog {
    fn append(&mut self, entry: Entry<'_>, now_ns: u64) -> Result<Turn<Arc<Publication>>, BadChannel> {
        if let Some(log) = self.own() {
            return log.append(entry, now_ns);
        }
        let (channel, data, receipt) = (Channel::parse(entry.channel)?, entry.data.to_owned(), entry.receipt);
        let published_at_ns = now_ns;
        Ok(Turn::Pending(self.ask(|ticket| Frame::Append { ticket, receipt, published_at_ns, channel, data })))
    }

    fn read(&mut self, channels: &[Channel], after: Option<Cursor>, max_bytes: usize) -> Turn<Replay> {
        if let Some(log) = self.own() {
            return log.read(channels, after, max_bytes);
        }
        let (channels, max_bytes) = (channels.to_vec(), max_bytes as u64);
        Turn::Pending(self.ask(|ticket| Frame::Read { ticket, after, max_bytes, channels }))
    }

    fn newest(&mut self, channels: &[Channel], count: u32, max_bytes: usize) -> Turn<Replay> {
        if let Some(log) = self.own() {
            return log.newest(channels, count, max_bytes);
        }
        let (channels, max_bytes) = (channels.to_vec(), max_bytes as u64);
        Turn::Pending(self.ask(|ticket| Frame::Newest { ticket, count, max_bytes, channels }))
    }

    fn settled(&mut self) -> Option<Settled> {
        loop {
            if let Some(settled) = self.settled.pop_front() {
                return Some(settled);
            }
            let news = self.link.came().pop_front()?;
            match news {
                News::Said(frame) => {
                    if let Some(settled) = self.hear(frame) {
                        return Some(settled);
                    }
                }
                News::Lost { has_died } => self.lose(has_died),
            }
        }
    }

    fn attach(&mut self, notify: Notify) {
        // It is attached once, as any log is.
        let _ = self.link.notify.set(notify);
    }

    fn head(&self) -> Cursor {
        match &self.stage {
            Stage::Alone(log) => log.head(),
            _ => self.head,
        }
    }

    fn expire(&mut self, now_ns: u64) {
        if let Some(log) = self.own() {
            log.expire(now_ns);
        }
    }

    fn history_size(&self) -> (usize, usize) {
        match &self.stage {
            Stage::Alone(log) => log.history_size(),
            _ => (0, 0),
        }
    }

    fn export(&self, after: u64) -> Option<pushlab_log::Part> {
        match &self.stage {
            Stage::Alone(log) => log.export(after),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_wire::cursor::Epoch;

    fn log() -> (RemoteLog, Arc<Link>) {
        let mut log = MemoryLog::new(Epoch::from_number(1), Limits::default());
        log.append("a", "1", None, 0).unwrap();
        let link = Arc::new(Link::default());
        (RemoteLog::new(Box::new(log), Limits::default(), link.clone()), link)
    }

    fn append(log: &mut RemoteLog, data: &str) -> Turn<Arc<Publication>> {
        log.append(Entry { channel: "a", data, receipt: None }, 0).unwrap()
    }

    fn settled(log: &mut RemoteLog) -> Vec<String> {
        let shown = |settled| match settled {
            Settled::Published(publication, ticket) => {
                format!("{} {} {}", publication.offset, publication.data(), ticket.is_some())
            }
            Settled::Read(replay, _) => {
                let gap = replay.gap.map(|(from, to)| (from.offset, to.offset));
                format!("read to {}, {} messages, gap {gap:?}", replay.up_to, replay.messages.len())
            }
            Settled::Failed(_) => "failed".to_owned(),
        };
        std::iter::from_fn(|| log.settled()).map(shown).collect()
    }

    fn ask(log: &mut RemoteLog) {
        let channels = [Channel::parse("a").unwrap()];
        let after = Some(Cursor { offset: 0, ..log.head() });
        assert!(matches!(append(log, "2"), Turn::Pending(_)));
        assert!(matches!(log.read(&channels, after, 1000), Turn::Pending(_)));
        assert!(matches!(append(log, "3"), Turn::Pending(_)));
        assert!(log.settled().is_none(), "nobody has answered");
    }

    #[test]
    fn a_successor_that_dies_before_it_serves_leaves_nothing_behind() {
        let (mut log, link) = log();
        ask(&mut log);
        link.bring(News::Lost { has_died: true });
        assert_eq!(settled(&mut log), ["2 2 true", "read to 2, 2 messages, gap None", "3 3 true"]);
        assert!(matches!(append(&mut log, "4"), Turn::Done(publication) if publication.offset == 4));
        assert_eq!(log.head().offset, 4);
        assert!(log.export(0).is_some(), "the next one may try");
    }

    fn publication(offset: u64) -> Arc<Publication> {
        let cursor = Cursor { epoch: Epoch::from_number(1), offset };
        Arc::new(Publication::restored(cursor, Channel::parse("a").unwrap(), "9", 0))
    }

    #[test]
    fn publications_of_both_come_in_the_order_of_the_one_that_has_the_log() {
        let (mut log, link) = log();
        ask(&mut log);
        link.bring(News::Said(Frame::Started));
        for (offset, ticket) in [(2, None), (3, Some(1)), (4, None)] {
            link.bring(News::Said(Frame::Published { ticket, publication: publication(offset) }));
        }
        link.bring(News::Said(Frame::Replay { ticket: 2, replay: Replay { up_to: 4, ..Replay::default() } }));
        link.bring(News::Said(Frame::Failed { ticket: 3 }));
        link.bring(News::Said(Frame::Failed { ticket: 3 }));
        let expected = ["2 9 false", "3 9 true", "4 9 false", "read to 4, 0 messages, gap None", "failed"];
        assert_eq!(settled(&mut log), expected);
        assert_eq!((log.head().offset, log.export(0).is_none()), (4, true));
    }

    /// What the other had published and this one had not heard of may have been seen: everybody is told of a gap.
    #[test]
    fn a_successor_that_dies_later_leaves_a_gap() {
        let (mut log, link) = log();
        link.bring(News::Said(Frame::Started));
        link.bring(News::Said(Frame::Published { ticket: None, publication: publication(2) }));
        assert_eq!(settled(&mut log), ["2 9 false"]);
        ask(&mut log);
        link.bring(News::Lost { has_died: true });
        assert_eq!(settled(&mut log), ["failed", "failed", "failed"]);
        let head = log.head().offset;
        assert!(head > 1 << 32);
        let after = Some(Cursor { offset: 2, ..log.head() });
        let Turn::Done(replay) = log.read(&[Channel::parse("a").unwrap()], after, 1000) else { panic!("it is here") };
        assert_eq!(replay.gap.map(|(from, to)| (from.offset, to.offset)), Some((2, head)));
        assert!(matches!(append(&mut log, "4"), Turn::Done(publication) if publication.offset == head + 1));
    }

    #[test]
    fn without_the_link_nothing_is_appended_beside_a_successor_that_lives() {
        let (mut log, link) = log();
        link.bring(News::Said(Frame::Started));
        ask(&mut log);
        link.bring(News::Lost { has_died: false });
        assert_eq!(settled(&mut log), ["failed", "failed", "failed"]);
        assert!(matches!(append(&mut log, "4"), Turn::Pending(_)));
    }
}
