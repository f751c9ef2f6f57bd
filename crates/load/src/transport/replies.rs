//! Answers to one request at a time on a kept connection, and the polls built on them.

use super::frames::{MAX_HEAD_BYTES, excerpt};
use super::{CursorText, Cut, Event, MAX_MESSAGE_BYTES, Requests, Tally, forward};
use pushlab_wire::http::{BodyDecoder, Headers, ResponseHead, parse_response};
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

/// Reads answers one by one. Holds nothing on the heap between two.
#[derive(Debug, Default)]
pub struct ReplyReader {
    head: Option<Head>,
    body: Vec<u8>,
}

#[derive(Debug)]
struct Head {
    status: u16,
    keeps_alive: bool,
    body: BodyDecoder,
}

impl ReplyReader {
    /// Reads from the front of `input`. Returns the bytes that are done with, and an answer if one is complete.
    ///
    /// # Errors
    /// Not HTTP, or beyond a limit.
    pub fn read<'a>(&mut self, input: &'a [u8], tally: &mut Tally) -> Result<(usize, Option<Reply<'a>>), Cut> {
        self.read_noting(input, tally, |_| ())
    }

    /// [`Self::read`] that shows every head.
    ///
    /// # Errors
    /// The same.
    pub fn read_noting<'a>(
        &mut self,
        input: &'a [u8],
        tally: &mut Tally,
        on_head: impl FnOnce(&ResponseHead<'_, '_>),
    ) -> Result<(usize, Option<Reply<'a>>), Cut> {
        let mut at = 0;
        let head = match &mut self.head {
            Some(head) => head,
            None => {
                let mut headers = Headers::default();
                let Some((head, size)) = parse_response(input, &mut headers)? else {
                    return match input.len() {
                        0..=MAX_HEAD_BYTES => Ok((0, None)),
                        _ => Err(Cut::HeadTooLarge { max: MAX_HEAD_BYTES }),
                    };
                };
                at = size;
                tally.down.heads += size as u64;
                on_head(&head);
                let (status, keeps_alive) = (head.status, head.keeps_alive());
                self.head.insert(Head { status, keeps_alive, body: BodyDecoder::new(head.body) })
            }
        };
        let mut whole: &[u8] = &[];
        while !head.body.is_done() && at < input.len() {
            let step = head.body.decode(&input[at..])?;
            at += step.consumed;
            if step.is_done && self.body.is_empty() {
                whole = step.data;
            } else if self.body.len() + step.data.len() > MAX_MESSAGE_BYTES {
                return Err(Cut::ReplyTooLarge { max: MAX_MESSAGE_BYTES });
            } else {
                self.body.extend_from_slice(step.data);
            }
        }
        if !head.body.is_done() {
            return Ok((at, None));
        }
        let (status, keeps_alive) = (head.status, head.keeps_alive);
        self.head = None;
        let body = if self.body.is_empty() { Cow::Borrowed(whole) } else { Cow::Owned(std::mem::take(&mut self.body)) };
        Ok((at, Some(Reply { status, keeps_alive, body })))
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
    pub fn open(&mut self, requests: &Requests, out: &mut Vec<u8>) {
        *self = Self { cursor: self.cursor, ..Self::default() };
        self.ask(requests, "", out);
    }

    /// The next question, unless one is unanswered; `wait` is what its query says of waiting.
    pub fn poll(&mut self, requests: &Requests, wait: &str, out: &mut Vec<u8>, tally: &mut Tally) -> bool {
        if self.waiting_for.is_some() || !self.is_subscribed {
            return false;
        }
        let before = out.len();
        if self.asks_for_list_next(requests) {
            requests.encode_user_list(out, PATH);
            self.waiting_for = Some(Question::Users);
        } else {
            self.ask(requests, wait, out);
        }
        tally.up.heads += (out.len() - before) as u64;
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

    fn ask(&mut self, requests: &Requests, wait: &str, out: &mut Vec<u8>) {
        requests.encode_get(out, PATH, wait, &self.cursor);
        self.waiting_for = Some(Question::Messages);
    }

    /// Reads answers.
    pub fn receive(&mut self, input: &[u8], tally: &mut Tally, sink: &mut impl FnMut(Event<'_>)) -> Result<usize, Cut> {
        if input.is_empty() {
            return Ok(0);
        }
        let Some(question) = self.waiting_for else { return Err(Cut::Unasked) };
        let (consumed, reply) = self.reader.read(input, tally)?;
        let Some(reply) = reply else { return Ok(consumed) };
        if reply.status != 200 {
            return Err(Cut::Status { path: PATH.to_owned(), status: reply.status, text: excerpt(&reply.body) });
        }
        tally.down.texts += reply.body.len() as u64;
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
        Ok(consumed)
    }
}
