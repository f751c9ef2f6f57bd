//! HTTP/1.1 on a connection, without its socket: requests go out one behind the other, and answers come back in their
//! order (RFC 9112).

use super::{Head, Incoming, Outgoing, Owner, Protocol, Received};
use crate::cut::Cut;
use pushlab_wire::http::{BodyDecoder, Headers, ResponseHead, parse_response};
use pushlab_wire::websocket::handshake;

/// Longest head of a response, in bytes.
pub const MAX_HEAD_BYTES: usize = 16 * 1024;

/// What is under way on one connection: a single stream, from one owner to the next.
#[derive(Debug, Default)]
pub struct Http1 {
    owner: Option<Owner>,
    state: State,
    /// Requests that are not wholly answered.
    unanswered: u32,
}

/// What comes next.
#[derive(Debug, Default)]
enum State {
    /// The head of an answer.
    #[default]
    Head,
    Body(BodyDecoder),
    /// The answer to a handshake, which must fit this key.
    Upgrading(Box<[u8; 16]>),
    /// Bytes that are no HTTP any more.
    Upgraded,
}

impl Protocol for Http1 {
    const IS_SHARED: bool = false;
    type Owners = Option<Owner>;

    fn open(&mut self, owner: Owner) -> Option<u32> {
        if self.owner.is_some() {
            return None;
        }
        self.owner = Some(owner);
        Some(0)
    }

    fn has_room(&self) -> bool {
        self.owner.is_none()
    }

    #[inline]
    fn owners(&self) -> Option<Owner> {
        self.owner
    }

    fn close(&mut self, _: u32, is_whole: bool, _: &mut Outgoing) -> bool {
        self.owner = None;
        is_whole
    }

    #[inline]
    fn has_sent(&mut self, _: u32, out: &mut Outgoing) {
        self.unanswered += out.requests;
        if let Some(key) = out.key {
            self.state = State::Upgrading(Box::new(key));
        }
    }

    #[inline]
    fn receive(&mut self, input: &mut [u8], incoming: &mut impl Incoming) -> Result<Received, Cut> {
        if let Some(owner) = self.owner {
            incoming.turn_to(owner);
        }
        let consumed = match self.state {
            State::Upgraded => incoming.bytes(input)?,
            _ => self.receive_answers(input, incoming)?,
        };
        Ok(Received { consumed, owner: self.owner, ended: None, is_freed: false, has_more: false })
    }
}

impl Http1 {
    fn receive_answers(&mut self, input: &mut [u8], incoming: &mut impl Incoming) -> Result<usize, Cut> {
        let mut at = 0;
        while at < input.len() {
            match &mut self.state {
                State::Body(body) => {
                    let step = body.decode(&input[at..])?;
                    at += step.consumed;
                    if step.is_done {
                        (self.state, self.unanswered) = (State::Head, self.unanswered - 1);
                    }
                    if step.is_done || !step.data.is_empty() {
                        incoming.body(step.data, step.is_done)?;
                    }
                }
                State::Head if self.unanswered == 0 => return Err(Cut::Unasked),
                State::Head => {
                    let mut headers = Headers::default();
                    let Some((head, size)) = parse_head(&input[at..], &mut headers)? else { break };
                    let body = BodyDecoder::new(head.body);
                    let is_done = body.is_done();
                    incoming.head_bytes(size);
                    let beside = if head.status == 200 { Vec::new() } else { beginning(&head, &input[at + size..]) };
                    let head = Head::of_text(&head, &beside);
                    head.stay()?;
                    incoming.head(&head)?;
                    at += size;
                    if is_done {
                        self.unanswered -= 1;
                        incoming.body(&[], true)?;
                    } else {
                        self.state = State::Body(body);
                    }
                }
                State::Upgrading(key) => {
                    let mut headers = Headers::default();
                    let Some((head, size)) = parse_head(&input[at..], &mut headers)? else { break };
                    incoming.head_bytes(size);
                    if head.status != 101 {
                        Head::of_text(&head, &[]).stay()?;
                        let body = beginning(&head, &input[at + size..]);
                        return Err(Cut::refused("the WebSocket's handshake", head.status, &body));
                    }
                    handshake::check_response(&head, **key)?;
                    incoming.upgraded(&Head::of_text(&head, &[]))?;
                    self.state = State::Upgraded;
                    at += size;
                    // Though nothing may have come behind the head: whoever waits for the upgrade learns of it.
                    return Ok(at + incoming.bytes(&mut input[at..])?);
                }
                State::Upgraded => return Ok(at + incoming.bytes(&mut input[at..])?),
            }
        }
        Ok(at)
    }
}

/// What has come of an answer's body, without its framing.
fn beginning(head: &ResponseHead<'_, '_>, input: &[u8]) -> Vec<u8> {
    let (mut decoder, mut body, mut at) = (BodyDecoder::new(head.body), Vec::new(), 0);
    while let Ok(step) = decoder.decode(&input[at..]) {
        body.extend_from_slice(step.data);
        at += step.consumed;
        if step.is_done || step.consumed == 0 {
            break;
        }
    }
    body
}

type Parsed<'h, 'b> = Option<(ResponseHead<'h, 'b>, usize)>;

fn parse_head<'h, 'b>(input: &'b [u8], headers: &'h mut Headers<'b>) -> Result<Parsed<'h, 'b>, Cut> {
    match parse_response(input, headers)? {
        None if input.len() > MAX_HEAD_BYTES => Err(Cut::HeadTooLarge { max: MAX_HEAD_BYTES }),
        parsed => Ok(parsed),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Fields, Request};
    use super::*;
    use proptest::prelude::*;

    /// Writes down what comes.
    #[derive(Default)]
    struct Noted {
        heard: Vec<String>,
        heads: usize,
    }

    impl Incoming for Noted {
        fn turn_to(&mut self, owner: Owner) {
            assert_eq!(owner.client(), 3);
        }

        fn head_bytes(&mut self, size: usize) {
            self.heads += size;
        }

        fn frame_bytes(&mut self, _: usize) {
            panic!("HTTP/1.1 has no frames");
        }

        fn head(&mut self, head: &Head<'_>) -> Result<(), Cut> {
            let kind = head.headers("content-type").collect::<Vec<_>>().join(" and ");
            self.heard.push(format!("{} {kind} {}: ", head.status, head.keeps_alive));
            Ok(())
        }

        fn body(&mut self, data: &[u8], is_last: bool) -> Result<(), Cut> {
            let last = self.heard.last_mut().unwrap();
            last.push_str(std::str::from_utf8(data).unwrap());
            last.push_str(if is_last { "." } else { "" });
            Ok(())
        }

        fn upgraded(&mut self, head: &Head<'_>) -> Result<(), Cut> {
            head.headers("sec-websocket-extensions").for_each(|agreed| self.heard.push(format!("upgraded {agreed}: ")));
            Ok(())
        }

        fn bytes(&mut self, bytes: &mut [u8]) -> Result<usize, Cut> {
            // Two at a time, as frames that come whole or not at all.
            let whole = bytes.len() / 2 * 2;
            self.heard.push(String::from_utf8(bytes[..whole].to_vec()).unwrap());
            Ok(whole)
        }
    }

    /// What bytes mean that come in pieces of the given sizes (the last repeats), as a connection brings them.
    fn hear(http1: &mut Http1, bytes: &[u8], cuts: &[usize]) -> Result<Noted, Cut> {
        let (mut noted, mut held, mut start) = (Noted::default(), Vec::new(), 0);
        for i in 0.. {
            let end = (start + cuts[i.min(cuts.len() - 1)]).min(bytes.len());
            held.extend_from_slice(&bytes[start..end]);
            let done = http1.receive(&mut held, &mut noted)?.consumed;
            held.drain(..done);
            start = end;
            if start == bytes.len() {
                break;
            }
        }
        Ok(noted)
    }

    fn http1() -> Http1 {
        let mut http1 = Http1::default();
        let owner = Owner::new(3, super::super::Side::Down);
        assert_eq!((http1.open(owner), http1.open(owner), http1.has_room()), (Some(0), None, false));
        http1
    }

    fn get(fields: &Fields) -> Request<'_> {
        let target = &["/sub", "?a=1"];
        Request { method: "GET", scheme: "http", authority: "h:1", target, fields, lines: "", body: None }
    }

    fn fields() -> Fields {
        Fields::of([("A", "b")])
    }

    proptest! {
        #[test]
        fn any_split_means_the_same(cuts in prop::collection::vec(1usize..40, 1..9)) {
            let mut out = Outgoing::default();
            (0..4).for_each(|_| out.request(&get(&fields())));
            let mut http1 = http1();
            http1.has_sent(0, &mut out);
            let answers = [
                "HTTP/1.1 103 Early Hints\r\nContent-Type: x\r\n\r\n",
                "HTTP/1.1 200 OK\r\nContent-Type: a\r\nContent-Length: 3\r\n\r\nabc",
                "HTTP/1.1 204 No\r\nContent-Type: b\r\nContent-Type: c\r\n\r\n",
                "HTTP/1.1 404 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nde\r\n1\r\nf\r\n0\r\n\r\n",
            ];
            let noted = hear(&mut http1, answers.concat().as_bytes(), &cuts).unwrap();
            prop_assert_eq!(noted.heard, ["200 a true: abc.", "204 b and c true: .", "404  false: .", "200  true: def."]);
            prop_assert_eq!(noted.heads, answers.concat().len() - 3 - "2\r\nde\r\n1\r\nf\r\n0\r\n\r\n".len());
            prop_assert!(matches!(hear(&mut http1, b"H", &[1]), Err(Cut::Unasked)), "all have been answered");
        }

        #[test]
        fn an_upgraded_stream_is_its_owners(cuts in prop::collection::vec(1usize..40, 1..9)) {
            let (mut out, mut http1) = (Outgoing::default(), http1());
            out.upgrade(&get(&fields()), [7; 16]);
            http1.has_sent(0, &mut out);
            let mut headers = Headers::default();
            let (request, size) = pushlab_wire::http::parse_request(out.bytes(), &mut headers).unwrap().unwrap();
            prop_assert_eq!((request.header("a"), size), (Some("b"), out.tally().heads as usize));
            let mut answer = b"HTTP/1.1 100 Continue\r\n\r\n".to_vec();
            handshake::encode_response(&mut answer, &handshake::accept(&request).unwrap());
            let head = answer.len();
            answer.extend_from_slice(b"012345");
            let noted = hear(&mut http1, &answer, &cuts).unwrap();
            prop_assert_eq!((noted.heard.concat(), noted.heads), ("012345".to_owned(), head));
        }
    }

    #[test]
    fn a_request_is_what_http_wants() {
        let mut out = Outgoing::default();
        out.request(&get(&fields()));
        out.request(&Request { method: "POST", body: Some(b"{}"), ..get(&fields()) });
        let expected = "GET /sub?a=1 HTTP/1.1\r\nHost: h:1\r\nA: b\r\n\r\n\
             POST /sub?a=1 HTTP/1.1\r\nHost: h:1\r\nA: b\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(String::from_utf8(out.bytes().to_vec()).unwrap(), expected);
        let tally = out.tally();
        assert_eq!((tally.all, tally.heads, tally.texts), (expected.len() as u64, expected.len() as u64 - 2, 2));
    }

    #[test]
    fn a_head_has_a_limit() {
        let (mut out, mut http1) = (Outgoing::default(), http1());
        out.request(&get(&fields()));
        http1.has_sent(0, &mut out);
        let endless = format!("HTTP/1.1 200 OK\r\nA: {}", "a".repeat(MAX_HEAD_BYTES));
        assert!(matches!(hear(&mut http1, endless.as_bytes(), &[999]), Err(Cut::HeadTooLarge { .. })));
    }

    #[test]
    fn an_upgrade_may_be_refused() {
        let (mut out, mut http1) = (Outgoing::default(), http1());
        out.upgrade(&get(&fields()), [7; 16]);
        http1.has_sent(0, &mut out);
        let refused = hear(&mut http1, b"HTTP/1.1 503 No\r\nContent-Length: 4\r\n\r\nfull", &[99]);
        assert_eq!(refused.err().unwrap().to_string(), "the WebSocket's handshake answered 503 full");
    }
}
