//! POST requests on a connection of their own, one at a time: how clients of one-way transports send.

use super::replies::{Reply, ReplyReader};
use super::{Event, Hearing, MAX_MESSAGE_BYTES, Sending};
use crate::connection::Head;
use crate::cut::Cut;
use pushlab_wire::event_stream::EventStreamDecoder;
use std::borrow::Cow;

/// One client's end of the connection.
#[derive(Debug, Default)]
pub struct Posts {
    reader: ReplyReader,
    /// Reads an answer that is an event stream: its first event is what was asked for, and ends it.
    events: Option<Box<EventStreamDecoder>>,
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

    /// Notes that the answer has come.
    pub(super) fn has_come(&mut self) {
        self.waiting_for = None;
    }

    /// The head of an answer has come.
    pub fn head(&mut self, head: &Head<'_>) {
        self.reader.head(head);
        // Nobody else has asked for one.
        let may_be_stream = self.waiting_for == Some(Sending::Echo) && head.status == 200;
        let is_events = |kind: &str| kind.to_ascii_lowercase().starts_with("text/event-stream");
        let is_stream = may_be_stream && head.headers("content-type").any(is_events);
        self.events = is_stream.then(|| Box::new(EventStreamDecoder::new(MAX_MESSAGE_BYTES)));
    }

    /// A piece of an answer's body has come; gives the answer once it is there, and nothing for what is left of an event
    /// stream behind its first event.
    ///
    /// # Errors
    /// An answer that is too large, or not asked for.
    pub(super) fn answer<'a>(&mut self, data: &'a [u8], is_last: bool) -> Result<Option<Reply<'a>>, Cut> {
        match (&mut self.events, self.waiting_for) {
            (None, None) => Err(Cut::Unasked),
            (None, Some(_)) => self.reader.body(data, is_last),
            (Some(_), None) => Ok(None),
            (Some(events), Some(_)) => {
                let mut first: Option<String> = None;
                events.decode(data, |event| {
                    first.get_or_insert_with(|| event.data.to_owned());
                })?;
                match first {
                    Some(data) => {
                        let body = Cow::Owned(data.into_bytes());
                        Ok(Some(Reply { status: 200, keeps_alive: false, body }))
                    }
                    None if is_last => Err(Cut::StreamEnded),
                    None => Ok(None),
                }
            }
        }
    }

    /// A piece of its body has come.
    ///
    /// # Errors
    /// An answer that is no success, too large, or not asked for.
    pub fn body<S: FnMut(Event<'_>)>(
        &mut self,
        data: &[u8],
        is_last: bool,
        hearing: &mut Hearing<'_, S>,
    ) -> Result<(), Cut> {
        let Some(reply) = self.answer(data, is_last)? else { return Ok(()) };
        let Some(sending) = self.waiting_for.take() else { return Ok(()) };
        if !(200..300).contains(&reply.status) {
            let path = match sending {
                Sending::Publish => "/publish",
                Sending::Echo => "/echo",
            };
            return Err(Cut::refused(path, reply.status, &reply.body));
        }
        let Hearing { texts, sink, .. } = hearing;
        **texts += reply.body.len() as u64;
        if sending == Sending::Echo {
            sink(Event::Echo(&reply.body));
        }
        sink(Event::Answered { keeps_alive: reply.keeps_alive });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{Http1, Outgoing, Protocol as _};
    use crate::transport::script::{Told, requests};
    use crate::transport::{Asking, Receiver, Requests, Uplink};
    use fastrand::Rng;

    /// A client of nothing but POSTs.
    #[derive(Debug)]
    struct Poster(Posts);

    impl Receiver for Poster {
        const ASKING: Asking = Asking::Never;
        const UPLINK: Uplink = Uplink::Posts;

        fn new() -> Self {
            Self(Posts::default())
        }

        fn open(&mut self, _: &Requests, _: &mut Rng, _: &mut Outgoing) {}

        fn head<S: FnMut(Event<'_>)>(&mut self, head: &Head<'_>, _: &mut Hearing<'_, S>) -> Result<(), Cut> {
            self.0.head(head);
            Ok(())
        }

        fn body<S: FnMut(Event<'_>)>(
            &mut self,
            data: &[u8],
            is_last: bool,
            hearing: &mut Hearing<'_, S>,
        ) -> Result<(), Cut> {
            self.0.body(data, is_last, hearing)
        }
    }

    #[test]
    fn an_echo_in_a_stream_of_its_own_is_the_first_event_and_ends_it() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n\
                       f\r\nevent: message\n\r\nb\r\ndata: \"x\"\n\n\r\n9\r\ndata: 2\n\n\r\n0\r\n\r\n";
        for size in [1, 7, answer.len()] {
            let (mut poster, mut http1, mut out) = (Poster::new(), Http1::default(), Outgoing::default());
            requests().with_echoes_in_streams().encode_post(&mut out, Sending::Echo, b"\"x\"");
            assert!(out.bytes().starts_with(b"GET /sse/echo?data=%22x%22 HTTP/1.1\r\n"));
            http1.has_sent(0, &mut out);
            poster.0.has_sent(Sending::Echo);
            let mut events = Vec::new();
            let mut told = Told::new(&mut poster, |event: Event<'_>| events.push(format!("{event:?}")));
            let mut held = Vec::new();
            for piece in answer.chunks(size) {
                held.extend_from_slice(piece);
                let consumed = http1.receive(&mut held, &mut told).unwrap().consumed;
                held.drain(..consumed);
            }
            assert_eq!(told.tally.texts, 3);
            assert_eq!(events, ["Echo([34, 120, 34])", "Answered { keeps_alive: false }"], "{size}");
        }
        let ended = b"HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream\r\nContent-Length: 1\r\n\r\n\n";
        let (mut poster, mut http1, mut out) = (Poster::new(), Http1::default(), Outgoing::default());
        requests().encode_post(&mut out, Sending::Echo, b"1");
        http1.has_sent(0, &mut out);
        poster.0.has_sent(Sending::Echo);
        let ended = http1.receive(&mut ended.to_vec(), &mut Told::new(&mut poster, |_: Event<'_>| ()));
        assert!(matches!(ended, Err(Cut::StreamEnded)));
    }

    #[test]
    fn an_echo_comes_back_and_a_refusal_is_a_cut() {
        let mut poster = Poster::new();
        let post = |poster: &mut Poster, http1: &mut Http1, sending| {
            let mut out = Outgoing::default();
            requests().encode_post(&mut out, sending, b"\"x\"");
            http1.has_sent(0, &mut out);
            poster.0.has_sent(sending);
        };
        let mut http1 = Http1::default();
        post(&mut poster, &mut http1, Sending::Echo);
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n\"x\"";
        let mut events = Vec::new();
        let mut told = Told::new(&mut poster, |event: Event<'_>| events.push(format!("{event:?}")));
        let mut start = 0;
        for end in 0..=answer.len() {
            start += http1.receive(&mut answer[start..end].to_vec(), &mut told).unwrap().consumed;
        }
        assert_eq!((told.tally.heads, told.tally.texts), (answer.len() as u64 - 3, 3));
        assert_eq!(events, ["Echo([34, 120, 34])", "Answered { keeps_alive: true }"]);
        assert!(!poster.0.is_waiting());
        post(&mut poster, &mut http1, Sending::Publish);
        let refused = http1.receive(
            &mut b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n".to_vec(),
            &mut Told::new(&mut poster, |_: Event<'_>| ()),
        );
        assert!(matches!(refused, Err(Cut::Status { status: 413, .. })));
    }
}
