//! `long-polling`: a request that the server holds until something is published; publications go by POST.

use super::replies::Polls;
use super::{Asking, Event, Hearing, Receiver, Requests, Uplink};
use crate::connection::{Head, Outgoing};
use crate::cut::Cut;
use fastrand::Rng;

/// A client of `GET /poll` that waits.
#[derive(Debug, Default)]
pub struct LongPolling(Polls);

impl Receiver for LongPolling {
    const ASKING: Asking = Asking::AtOnce;
    const UPLINK: Uplink = Uplink::Posts;

    fn new() -> Self {
        Self::default()
    }

    fn open(&mut self, requests: &Requests, _: &mut Rng, out: &mut Outgoing) {
        self.0.open(requests, out);
    }

    fn poll(&mut self, requests: &Requests, _: &mut Rng, out: &mut Outgoing) -> bool {
        self.0.poll(requests, &requests.poll_wait, out)
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
    use super::super::script::{head_bytes, play, requests, uses};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn only_the_first_question_is_answered_at_once(cuts in prop::collection::vec(1usize..40, 1..9)) {
            let answer = |_: &str| b"HTTP/1.1 200 OK\r\nContent-Length: 18\r\nConnection: close\r\n\r\n[[\"cursor\",\"e.7\"]]".to_vec();
            let (mut client, mut out, mut rng) = (LongPolling::new(), Outgoing::default(), fastrand::Rng::with_seed(1));
            let outcome = play(&mut client, &cuts, &answer).unwrap();
            prop_assert!(outcome.request.starts_with("GET /poll?channel=a HTTP/1.1\r\n"), "{}", outcome.request);
            prop_assert_eq!(outcome.events, ["subscribed", "answered and closed"]);
            prop_assert_eq!(outcome.down, uses([head_bytes(&answer("")), 0, 18, 0]), "an empty poll");
            prop_assert!(client.poll(&requests(), &mut rng, &mut out));
            prop_assert_eq!(out.tally().heads, out.tally().all);
            prop_assert!(out.bytes().starts_with(b"GET /poll?channel=a&wait=25&after=e.7 HTTP/1.1\r\n"));
        }
    }
}
