//! Answers to one request at a time on a kept connection, and the polls built on them.

use super::events::forward;
use super::{Event, Hearing, MAX_MESSAGE_BYTES, Requests};
use crate::connection::{Head, Outgoing};
use crate::cut::Cut;
use pushlab_wire::cursor::CursorText;
use pushlab_wire::native::parse_reply;
use std::borrow::Cow;

/// A whole answer.
#[derive(Debug)]
pub struct Reply<'a> {
    /// HTTP status.
    pub status: u16,
    /// Whether the connection may carry another request.
    pub keeps_alive: bool,
    /// The body; copied only when it came in pieces.
    pub body: Cow<'a, [u8]>,
}

/// Puts answers together one by one. Holds nothing on the heap between two.
#[derive(Debug, Default)]
pub struct ReplyReader {
    status: u16,
    keeps_alive: bool,
    body: Vec<u8>,
}

impl ReplyReader {
    /// The head has come.
    pub fn head(&mut self, head: &Head<'_>) {
        (self.status, self.keeps_alive) = (head.status, head.keeps_alive);
    }

    /// A piece of the body has come; with the last, the answer is whole.
    ///
    /// # Errors
    /// Beyond a limit.
    pub fn body<'a>(&mut self, data: &'a [u8], is_last: bool) -> Result<Option<Reply<'a>>, Cut> {
        let Self { status, keeps_alive, body } = self;
        let whole = if is_last && body.is_empty() {
            Cow::Borrowed(data)
        } else if body.len() + data.len() > MAX_MESSAGE_BYTES {
            return Err(Cut::ReplyTooLarge { max: MAX_MESSAGE_BYTES });
        } else {
            body.extend_from_slice(data);
            if !is_last {
                return Ok(None);
            }
            Cow::Owned(std::mem::take(body))
        };
        Ok(Some(Reply { status: *status, keeps_alive: *keeps_alive, body: whole }))
    }
}

/// A client that asks `GET /poll` again and again: the part that long and short polling share.
#[derive(Debug, Default)]
pub(super) struct Polls {
    reader: ReplyReader,
    cursor: CursorText,
    is_subscribed: bool,
    waiting_for: Option<Question>,
    /// Whether messages were the last answer: those who ask for users do so next.
    is_list_next: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    Messages,
    Users,
}

const PATH: &str = "/poll";

impl Polls {
    /// The first question on a new connection: it is answered at once, whatever the wait asked for later.
    pub fn open(&mut self, requests: &Requests, out: &mut Outgoing) {
        *self = Self { cursor: self.cursor, ..Self::default() };
        self.ask(requests, "", out);
    }

    /// The next question, unless one is unanswered; `wait` is what its query says of waiting.
    pub fn poll(&mut self, requests: &Requests, wait: &str, out: &mut Outgoing) -> bool {
        if self.waiting_for.is_some() || !self.is_subscribed {
            return false;
        }
        if self.asks_for_list_next(requests) {
            requests.encode_user_list(out, PATH);
            self.waiting_for = Some(Question::Users);
        } else {
            self.ask(requests, wait, out);
        }
        true
    }

    /// Whether a question is unanswered.
    pub fn is_waiting(&self) -> bool {
        self.waiting_for.is_some()
    }

    /// Whether the list of users is to be asked for next.
    pub fn asks_for_list_next(&self, requests: &Requests) -> bool {
        self.is_list_next && requests.users.is_some()
    }

    fn ask(&mut self, requests: &Requests, wait: &str, out: &mut Outgoing) {
        requests.encode_poll(out, PATH, wait, &self.cursor);
        self.waiting_for = Some(Question::Messages);
    }

    /// The head of an answer has come.
    pub fn head(&mut self, head: &Head<'_>) -> Result<(), Cut> {
        self.reader.head(head);
        self.waiting_for.map(drop).ok_or(Cut::Unasked)
    }

    /// A piece of its body has come.
    pub fn body<S: FnMut(Event<'_>)>(
        &mut self,
        data: &[u8],
        is_last: bool,
        hearing: &mut Hearing<'_, S>,
    ) -> Result<(), Cut> {
        let Some(question) = self.waiting_for else { return Err(Cut::Unasked) };
        let Some(reply) = self.reader.body(data, is_last)? else { return Ok(()) };
        if reply.status != 200 {
            return Err(Cut::refused(PATH, reply.status, &reply.body));
        }
        let Hearing { texts, sink, .. } = hearing;
        **texts += reply.body.len() as u64;
        let text = std::str::from_utf8(&reply.body).map_err(|_| Cut::NotUtf8)?;
        match question {
            Question::Messages => parse_reply(text, |frame| forward(&frame, &mut self.cursor, sink))?,
            // Whatever it says stands for the list. Its cursor is not where this client is in its own channel.
            Question::Users => parse_reply(text, |_| ())?,
        }
        self.waiting_for = None;
        self.is_list_next = question == Question::Messages;
        if !self.is_subscribed {
            self.is_subscribed = true;
            sink(Event::Subscribed);
        }
        sink(Event::Answered { keeps_alive: reply.keeps_alive });
        Ok(())
    }
}
