//! POST requests on a connection of their own, one at a time: how clients of one-way transports send.

use super::frames::excerpt;
use super::replies::ReplyReader;
use super::{Cut, Event, Requests, Sending, Tally};

/// One client's end of the connection.
#[derive(Debug, Default)]
pub struct Posts {
    pub(super) reader: ReplyReader,
    waiting_for: Option<Sending>,
}

impl Posts {
    /// Whether an answer is outstanding.
    pub fn is_waiting(&self) -> bool {
        self.waiting_for.is_some()
    }

    /// Notes that a request has been sent.
    pub fn has_sent(&mut self, sending: Sending) {
        self.waiting_for = Some(sending);
    }

    /// Appends a request; call [`Self::has_sent`] when it goes out.
    pub fn encode(requests: &Requests, sending: Sending, data: &[u8], out: &mut Vec<u8>) {
        requests.encode_post(out, sending, data);
    }

    /// Notes that the answer has come.
    pub(super) fn has_come(&mut self) {
        self.waiting_for = None;
    }

    /// Reads answers from the front of `input`; returns the bytes that are done with.
    ///
    /// # Errors
    /// An answer that is no success, not HTTP, or not asked for.
    pub fn receive(&mut self, input: &[u8], tally: &mut Tally, sink: &mut impl FnMut(Event<'_>)) -> Result<usize, Cut> {
        if input.is_empty() {
            return Ok(0);
        }
        let Some(sending) = self.waiting_for else { return Err(Cut::Unasked) };
        let (consumed, reply) = self.reader.read(input, tally)?;
        let Some(reply) = reply else { return Ok(consumed) };
        self.waiting_for = None;
        if !(200..300).contains(&reply.status) {
            let path = match sending {
                Sending::Publish => "/publish",
                Sending::Echo => "/echo",
            };
            return Err(Cut::Status { path: path.to_owned(), status: reply.status, text: excerpt(&reply.body) });
        }
        tally.down.texts += reply.body.len() as u64;
        if sending == Sending::Echo {
            sink(Event::Echo(&reply.body));
        }
        sink(Event::Answered { keeps_alive: reply.keeps_alive });
        Ok(consumed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_comes_back_and_a_refusal_is_a_cut() {
        let mut posts = Posts::default();
        let mut tally = Tally::default();
        assert!(matches!(posts.receive(b"HTTP", &mut tally, &mut |_| ()), Err(Cut::Unasked)));
        posts.has_sent(Sending::Echo);
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n\"x\"";
        let mut events = Vec::new();
        let mut start = 0;
        for end in 0..=answer.len() {
            let input = &answer[start..end];
            start += posts.receive(input, &mut tally, &mut |event| events.push(format!("{event:?}"))).unwrap();
        }
        assert_eq!(events, ["Echo([34, 120, 34])", "Answered { keeps_alive: true }"]);
        assert!(!posts.is_waiting());
        assert_eq!((tally.down.heads, tally.down.texts), (answer.len() as u64 - 3, 3));
        posts.has_sent(Sending::Publish);
        let refused = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n";
        assert!(matches!(posts.receive(refused, &mut tally, &mut |_| ()), Err(Cut::Status { status: 413, .. })));
    }
}
