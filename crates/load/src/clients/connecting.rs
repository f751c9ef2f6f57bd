//! Opening connections, and opening them again after a cut.

use super::client::{Side, Up};
use super::{ClientLoop, Traffic, token};
use crate::clock::now_ns;
use crate::socket::{Connection, source_address};
use crate::transport::posts::Posts;
use crate::transport::{Cut, Receiver, Uplink};
use mio::Interest;
use std::cmp::Reverse;

/// First pause before a connection is opened again, ns; doubled with every failure, and jittered down to half.
const BACKOFF_NS: u64 = 100_000_000;
/// Longest pause, as doublings of the first: 6.4 s.
const BACKOFF_DOUBLINGS_MAX: u8 = 6;

/// A connection to be opened again; the earliest is the greatest, for a heap.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Retry {
    pub due_ns: u64,
    client: usize,
    side: Side,
}

impl Ord for Retry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        Reverse((self.due_ns, self.client)).cmp(&Reverse((other.due_ns, other.client)))
    }
}

impl PartialOrd for Retry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<R: Receiver> ClientLoop<R> {
    /// Opens the receiving connection, for the first time or again.
    pub(super) fn connect(&mut self, index: usize, now: u64) {
        let number = self.client_number(index);
        let opened = self.open_socket(index, Side::Down, now);
        let client = &mut self.clients[index];
        if client.was_opened {
            self.recorder.record.result.reconnects += 1;
        }
        client.was_opened = true;
        client.opened_ns = now;
        let connection = match opened {
            Ok(connection) => connection,
            Err(error) => return self.cut(index, &Cut::Io(error)),
        };
        client.down = Some(connection);
        self.out.clear();
        self.config.requests.turn_to_client(number);
        client.receiver.open(&self.config.requests, &mut self.rng, &mut self.out);
        self.count_request(index, now);
        self.send_down(index, now);
    }

    fn open_socket(&mut self, index: usize, side: Side, now: u64) -> std::io::Result<Connection> {
        let number = self.client_number(index);
        let source = source_address(self.config.target, number, self.config.clients, std::process::id());
        let mut connection = Connection::open(self.config.target, source)?;
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(connection.stream_mut(), token(index, side), interest)?;
        // Counted when begun: one that is refused later is among the errors.
        self.recorder.record.result.connections_opened += u64::from(self.marks.is_load(now));
        Ok(connection)
    }

    /// The client's number in the run, which is also its number as a publisher.
    pub(super) fn client_number(&self, index: usize) -> u32 {
        index as u32 * self.config.lanes + self.config.lane
    }

    /// Sends what was put together on the receiving connection.
    pub(super) fn send_down(&mut self, index: usize, now: u64) {
        let Some(connection) = &mut self.clients[index].down else { return };
        match connection.send(&self.out) {
            Ok(taken) => self.count_sent(taken, now),
            Err(error) => self.cut(index, &Cut::Io(error)),
        }
    }

    /// Gives the receiving connection up, counts why, and plans the next attempt.
    pub(super) fn cut(&mut self, index: usize, why: &Cut) {
        self.recorder.record.errors.add(why);
        self.clients[index].attempts = self.clients[index].attempts.saturating_add(1);
        let pause = self.backoff(index);
        self.drop_down(index);
        self.retries.push(Retry { due_ns: now_ns() + pause, client: index, side: Side::Down });
    }

    /// Opens a connection again at once, which the server has closed after a whole answer.
    pub(super) fn reopen(&mut self, index: usize, now: u64) {
        self.drop_down(index);
        self.connect(index, now);
    }

    fn drop_down(&mut self, index: usize) {
        let client = &mut self.clients[index];
        client.down = None;
        if std::mem::take(&mut client.is_subscribed) {
            self.subscribed -= 1;
        }
        if R::UPLINK == Uplink::Frames {
            self.forget_answer(index);
        }
    }

    fn backoff(&mut self, index: usize) -> u64 {
        let doublings = self.clients[index].attempts.saturating_sub(1).min(BACKOFF_DOUBLINGS_MAX);
        let full = BACKOFF_NS << doublings;
        self.rng.u64(full / 2..=full)
    }

    /// Closed loop: an answer that a cut took away is not waited for.
    fn forget_answer(&mut self, index: usize) {
        let client = &mut self.clients[index];
        if self.config.traffic == Traffic::ClosedLoop && std::mem::take(&mut client.is_waiting) {
            client.due = client.sent + 1;
        }
    }

    /// Opens the posting connection; what waits is sent when it stands.
    pub(super) fn connect_up(&mut self, index: usize) {
        let opened = self.open_socket(index, Side::Up, now_ns());
        let client = &mut self.clients[index];
        if std::mem::replace(&mut client.was_up, true) {
            self.recorder.record.result.reconnects += 1;
        }
        match opened {
            Ok(connection) => {
                client.up = Some(Box::new(Up { connection, posts: Posts::default(), is_connected: false }));
            }
            Err(error) => self.cut_up(index, &Cut::Io(error)),
        }
    }

    /// Gives the posting connection up. One that was free is no error: it is opened again with the next POST.
    pub(super) fn cut_up(&mut self, index: usize, why: &Cut) {
        let up = self.clients[index].up.take();
        if up.is_some_and(|up| up.is_connected && !up.posts.is_waiting()) && matches!(why, Cut::Closed) {
            return self.send_due(index);
        }
        self.recorder.record.errors.add(why);
        self.forget_answer(index);
        let client = &mut self.clients[index];
        client.attempts = client.attempts.saturating_add(1);
        client.is_up_resting = true;
        let pause = self.backoff(index);
        self.retries.push(Retry { due_ns: now_ns() + pause, client: index, side: Side::Up });
    }

    pub(super) fn retry_due(&mut self, now: u64) {
        while self.retries.peek().is_some_and(|retry| retry.due_ns <= now) {
            let Some(Retry { client, side, .. }) = self.retries.pop() else { return };
            match side {
                Side::Down => self.connect(client, now),
                Side::Up => {
                    self.clients[client].is_up_resting = false;
                    self.send_due(client);
                }
            }
        }
    }
}
