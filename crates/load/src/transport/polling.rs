//! `polling`: a request at an interval; publications go by POST.

use super::replies::Polls;
use super::{Asking, Event, Hearing, Receiver, Requests, Uplink};
use crate::connection::{Head, Outgoing};
use crate::cut::Cut;
use fastrand::Rng;

/// A client of `GET /poll` that does not wait.
#[derive(Debug, Default)]
pub struct Polling(Polls);

impl Receiver for Polling {
    const ASKING: Asking = Asking::AtInterval;
    const UPLINK: Uplink = Uplink::Posts;

    fn new() -> Self {
        Self::default()
    }

    fn open(&mut self, requests: &Requests, _: &mut Rng, out: &mut Outgoing) {
        self.0.open(requests, out);
    }

    fn poll(&mut self, requests: &Requests, _: &mut Rng, out: &mut Outgoing) -> bool {
        self.0.poll(requests, "", out)
    }

    fn has_further_question(&self, requests: &Requests) -> bool {
        self.0.asks_for_list_next(requests)
    }

    fn is_waiting(&self) -> bool {
        self.0.is_waiting()
    }

    fn head<S: FnMut(Event<'_>)>(&mut self, head: &Head<'_>, _: &mut Hearing<'_, S>) -> Result<(), Cut> {
        self.0.head(head)
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

#[cfg(test)]
mod tests {
    use super::super::script::{Told, chunk_bytes, chunked, head_bytes, play, requests, uses};
    use super::*;
    use crate::connection::{Http1, Protocol as _};
    use proptest::prelude::*;
    use pushlab_workload::tally::WayTally;

    const REPLY: &str = r#"[["gap","e.1","e.4"],["msg","a","e.5",{"n":1}],["msg","a","e.6",2],["cursor","e.7"]]"#;

    proptest! {
        #[test]
        fn any_split_gives_the_same(cuts in prop::collection::vec(1usize..40, 1..9), chunk in prop::option::of(1usize..50)) {
            let answer = |_: &str| match chunk {
                Some(chunk) => [chunked("application/json", REPLY.as_bytes(), chunk), b"0\r\n\r\n".to_vec()].concat(),
                None => format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{REPLY}", REPLY.len()).into_bytes(),
            };
            let (mut client, mut out, mut rng) = (Polling::new(), Outgoing::default(), fastrand::Rng::with_seed(1));
            prop_assert!(!client.poll(&requests(), &mut rng, &mut out), "not before the first answer");
            let outcome = play(&mut client, &cuts, &answer).unwrap();
            prop_assert!(outcome.request.starts_with("GET /poll?channel=a HTTP/1.1\r\n"), "{}", outcome.request);
            prop_assert_eq!(outcome.events, ["gap", "message {\"n\":1}", "message 2", "subscribed", "answered"]);
            let framing = chunk.map_or(0, |chunk| chunk_bytes(REPLY.len(), chunk) + 5);
            prop_assert_eq!(outcome.down, uses([head_bytes(&answer("")), framing, REPLY.len() - 8, 7 + 1]));
            prop_assert_eq!(outcome.up, uses([outcome.request.len(), 0, 0, 0]));
            prop_assert!(client.poll(&requests(), &mut rng, &mut out));
            prop_assert!(!client.poll(&requests(), &mut rng, &mut out), "one at a time");
            prop_assert_eq!((out.tally().heads, out.tally().texts), (out.tally().all, 0));
            prop_assert!(out.bytes().starts_with(b"GET /poll?channel=a&after=e.7 HTTP/1.1\r\n"));
        }
    }

    #[test]
    fn a_poll_for_the_newest_messages_says_no_position() {
        let answer = |_: &str| {
            let reply = r#"[["msg","a","e.5",1],["cursor","e.7"]]"#;
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{reply}", reply.len()).into_bytes()
        };
        let (mut client, mut out, mut rng) = (Polling::new(), Outgoing::default(), fastrand::Rng::with_seed(1));
        assert_eq!(play(&mut client, &[999], &answer).unwrap().events, ["message 1", "subscribed", "answered"]);
        assert!(client.poll(&requests().for_newest(10), &mut rng, &mut out));
        assert!(out.bytes().starts_with(b"GET /poll?channel=a&newest=10 HTTP/1.1\r\n"));
    }

    #[test]
    fn the_list_of_users_is_asked_for_after_each_answer_and_moves_no_cursor() {
        let requests = requests().with_user_list("a.users");
        let (mut client, mut out, mut rng) = (Polling::new(), Outgoing::default(), fastrand::Rng::with_seed(1));
        let mut http1 = Http1::default();
        let answer = |body: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let mut target = |client: &mut Polling, http1: &mut Http1| {
            out.clear();
            assert!(client.poll(&requests, &mut rng, &mut out));
            assert_eq!(out.tally().heads, out.tally().all);
            http1.has_sent(0, &mut out);
            str::from_utf8(out.bytes()).unwrap().split(' ').nth(1).unwrap().to_owned()
        };
        play(&mut client, &[999], &|_: &str| answer("[[\"cursor\",\"e.7\"]]").into_bytes()).unwrap();
        let mut events = Vec::new();
        let mut handle = |client: &mut Polling, http1: &mut Http1, body: &str| {
            let mut input = answer(body).into_bytes();
            let mut told = Told::new(client, |event: Event<'_>| events.push(format!("{event:?}")));
            http1.receive(&mut input, &mut told).unwrap();
            let WayTally { heads, texts, .. } = told.tally;
            assert_eq!((heads + texts, texts), (input.len() as u64, body.len() as u64));
        };
        assert!(
            client.has_further_question(&requests) && !client.has_further_question(&super::super::script::requests())
        );
        assert_eq!(target(&mut client, &mut http1), "/poll?channel=a.users");
        handle(&mut client, &mut http1, "[[\"msg\",\"a.users\",\"e.8\",1],[\"cursor\",\"e.9\"]]");
        assert!(!client.has_further_question(&requests), "the next poll waits for its turn");
        assert_eq!(target(&mut client, &mut http1), "/poll?channel=a&after=e.7");
        handle(&mut client, &mut http1, "[[\"cursor\",\"e.9\"]]");
        assert_eq!(target(&mut client, &mut http1), "/poll?channel=a.users");
        assert_eq!(events, ["Answered { keeps_alive: true }", "Answered { keeps_alive: true }"]);
    }

    #[test]
    fn refusals_and_stray_bytes_are_cuts() {
        let refused = |_: &str| b"HTTP/1.1 503 No\r\nContent-Length: 4\r\n\r\nfull".to_vec();
        let cut = play(&mut Polling::new(), &[7], &refused).unwrap_err();
        assert_eq!(cut.to_string(), "/poll answered 503 full");
        let two = |_: &str| {
            let reply = "HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n[[\"cursor\",\"e.7\"]]";
            format!("{reply}{reply}").into_bytes()
        };
        assert!(matches!(play(&mut Polling::new(), &[999], &two), Err(Cut::Unasked)));
    }
}
