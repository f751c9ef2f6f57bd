//! Requests: which one does what.

use super::access::{RefusedChannel, SIGNATURE_WORK_BYTES};
use super::{Exchange, State, Waiting};
use crate::answer::{encode_continue, encode_stream, encode_websocket};
use crate::effect::{Context, Effect, Page, Query, Question};
use crate::gate::{Identity, Refusal, SUBPROTOCOL};
use crate::incoming::{Part, PartialRequest};
use crate::request::{Mode, Refused, Request, Subscription, data_of, is_known_path};
use pushlab_wire::codes::ErrorCode;
use pushlab_wire::cursor::Cursor;
use pushlab_wire::fields::{FieldList, number, trimmed};
use pushlab_wire::gzip;
use pushlab_wire::http::{
    BodyKind, Headers, HttpError, RequestHead, Version, decode_path, parse_request, split_target,
};
use pushlab_wire::native::{is_json, single_line};
use pushlab_wire::transport::Transport;
use std::borrow::Cow;
use std::time::Duration;

/// Fields that the server goes by: one that is not text must not be ignored. Cookies are read one by one.
const READABLE: [&str; 15] = [
    "accept-encoding",
    "authorization",
    "connection",
    "content-type",
    "expect",
    "last-event-id",
    "origin",
    "sec-fetch-dest",
    "sec-fetch-mode",
    "sec-fetch-site",
    "sec-websocket-extensions",
    "sec-websocket-key",
    "sec-websocket-protocol",
    "sec-websocket-version",
    "upgrade",
];

/// Whether a request is for the application: it is for nothing of our own, and to be answered once.
fn is_for_application(head: &RequestHead<'_, '_>, cx: &Context<'_>) -> bool {
    cx.rules.has_application && head.protocol.is_none() && !is_known_path(split_target(head.target).0)
}

impl Exchange {
    /// Reads one request, or a part of its body; says how many bytes it took, 0 if its head is not all there.
    pub(super) fn receive_request(&mut self, bytes: &[u8], cx: &mut Context<'_>) -> (usize, Effect) {
        if matches!(self.state, State::Http(Some(_))) {
            return self.receive_body(bytes, cx);
        }
        if self.is_http2 {
            // What comes behind its one request is not for it.
            return (bytes.len(), Effect::Nothing);
        }
        let max_head_bytes = cx.rules.max_head_bytes;
        let all = bytes.len();
        let mut headers = Headers::default();
        let (head, size) = match parse_request(bytes, &mut headers) {
            Ok(Some((_, size))) if size > max_head_bytes => return (all, self.refuse_head(cx)),
            Ok(Some(found)) => found,
            Ok(None) if all >= max_head_bytes => return (all, self.refuse_head(cx)),
            Ok(None) => {
                self.expect(cx);
                return (0, Effect::Nothing);
            }
            Err(error) => return (all, self.refuse_malformed(error, cx)),
        };
        if let Some(refusal) = self.on_head(&head, cx) {
            return (all, refusal);
        }
        let rest = &bytes[size..];
        match head.body {
            BodyKind::Length(length) if length > cx.rules.max_body_bytes as u64 => (all, self.refuse_body(cx)),
            BodyKind::Length(0) => (size, self.on_request(&head, b"", cx)),
            BodyKind::Length(length) if rest.len() as u64 >= length => {
                let length = length as usize;
                (size + length, self.on_request(&head, &rest[..length], cx))
            }
            kind => {
                self.await_body(PartialRequest::new(&bytes[..size], kind), &head, cx);
                (size, Effect::Nothing)
            }
        }
    }

    /// Takes the head of the one request of a stream of HTTP/2, whose fields were checked (RFC 9113, section 8), and with
    /// which the peer's side of the stream has ended or not: returns what it needs next. The body comes by
    /// [`Self::receive`], its end by [`Self::end_of_input`]. The answer's head is left in
    /// [`Output::head`](crate::effect::Output::head); the exchange ends with the answer.
    pub fn receive_head(&mut self, fields: &FieldList, has_ended: bool, cx: &mut Context<'_>) -> Effect {
        if !self.is_idle() || self.is_http2 {
            return Effect::Nothing;
        }
        self.is_http2 = true;
        if fields.size() > cx.rules.max_head_bytes {
            return self.refuse_head(cx);
        }
        let mut headers = Headers::default();
        let head = match RequestHead::of_http2(fields, &mut headers, has_ended) {
            Ok(head) => head,
            Err(error) => return self.refuse_malformed(error, cx),
        };
        if let Some(refusal) = self.on_head(&head, cx) {
            return refusal;
        }
        // Behind a CONNECT come frames, not a body.
        if has_ended || head.protocol.is_some() {
            return self.on_request(&head, b"", cx);
        }
        // Whether as many bytes come as were announced is the stream's to check (RFC 9113, section 8.1.1).
        let length = head.header("content-length").and_then(|length| number(length.as_bytes()));
        if length.is_some_and(|length| length > cx.rules.max_body_bytes as u64) {
            return self.refuse_body(cx);
        }
        self.await_body(PartialRequest::of_http2(fields), &head, cx);
        Effect::Nothing
    }

    /// The peer has sent all that it will on a stream of HTTP/2, and all of it was received: not to be said while
    /// [busy](Self::is_busy). A body ends with it, and so does a WebSocket; who waits for something new goes on waiting.
    /// Over HTTP/1 it does nothing, as a body tells its length there.
    pub fn end_of_input(&mut self, cx: &mut Context<'_>) -> Effect {
        match &mut self.state {
            _ if !self.is_http2 || self.waiting.is_some() => Effect::Nothing,
            State::Http(request) => match request.take() {
                Some(request) => request.read(|head, body| self.on_request(head, body, cx)),
                None => Effect::Nothing,
            },
            // RFC 8441, section 5: as if TCP ended.
            State::WebSocket { .. } => Effect::End,
            State::Stream(_) | State::HeldPoll | State::Answering | State::Over => Effect::Nothing,
        }
    }

    /// Takes what every request tells before its body; gives what follows if that is a refusal.
    #[inline]
    fn on_head(&mut self, head: &RequestHead<'_, '_>, cx: &mut Context<'_>) -> Option<Effect> {
        // RFC 9112, section 3.2.
        if head.version != Version::Http10 && head.header("host").is_none() {
            return Some(self.refuse_malformed(HttpError::BadHost, cx));
        }
        if let Some(name) = head.unreadable(&READABLE) {
            let text = format!("the value of the field {name} is not UTF-8; send it as text, or leave the field out");
            return Some(self.refuse_unread(ErrorCode::BadRequest, &text, cx));
        }
        cx.output.counts.requests += 1;
        self.version = head.version;
        let is_for_application = is_for_application(head, cx);
        self.identity = cx.rules.gate.identify(head.fields(), is_for_application);
        // An HTTP/1.0 client that asks to keep the connection would need to be told so; closing is always understood.
        self.keeps_alive = head.version == Version::Http11 && head.keeps_alive() && !cx.is_leaving;
        self.is_head = head.method == "HEAD";
        // HTTP/1.0 clients may name it too, and be proxies that do not know it of each other.
        self.takes_gzip = cx.rules.compression_from.is_some()
            && head.version != Version::Http10
            && gzip::is_accepted(head.headers("accept-encoding"));
        None
    }

    /// The body comes later, at once, or after 100 (Continue) if the client waits for that.
    fn await_body(&mut self, request: PartialRequest, head: &RequestHead<'_, '_>, cx: &mut Context<'_>) {
        self.expect(cx);
        self.state = State::Http(Some(Box::new(request)));
        // RFC 9110, section 10.1.1: every version but the oldest gets 100 (Continue).
        let expects_continue = head.header("expect").is_some_and(|v| v.eq_ignore_ascii_case("100-continue"));
        if expects_continue && head.version != Version::Http10 {
            encode_continue(cx.output.head_out(self.is_http2));
            cx.output.is_interim = self.is_http2;
        }
    }

    fn receive_body(&mut self, bytes: &[u8], cx: &mut Context<'_>) -> (usize, Effect) {
        let State::Http(Some(request)) = &mut self.state else { return (0, Effect::Nothing) };
        match request.take(bytes, cx.rules.max_body_bytes) {
            Ok(Part::Incomplete(used)) => (used, Effect::Nothing),
            Ok(Part::Whole(used)) => {
                let State::Http(Some(request)) = std::mem::replace(&mut self.state, State::Http(None)) else {
                    return (0, Effect::Nothing);
                };
                (used, request.read(|head, body| self.on_request(head, body, cx)))
            }
            Ok(Part::TooLarge) => (bytes.len(), self.refuse_body(cx)),
            Err(error) => (bytes.len(), self.abort(ErrorCode::BadRequest, &error.to_string(), cx)),
        }
    }

    /// A request has begun: the time for it runs from its first byte, however slowly the others come.
    fn expect(&mut self, cx: &mut Context<'_>) {
        if !std::mem::replace(&mut self.is_expected, true) {
            cx.output.patience = Some(cx.rules.head_timeout);
        }
    }

    fn refuse_malformed(&mut self, error: HttpError, cx: &mut Context<'_>) -> Effect {
        let (code, text) = match error {
            HttpError::TooManyFields => return self.refuse_head(cx),
            HttpError::UnknownCoding => (ErrorCode::Unsupported, "Transfer-Encoding other than chunked".into()),
            HttpError::PlainConnect => (ErrorCode::Unsupported, error.to_string()),
            _ => (ErrorCode::BadRequest, error.to_string()),
        };
        self.refuse_unread(code, &text, cx)
    }

    /// The same where the head was so large that it is not all here.
    pub fn refuse_large_head(&mut self, cx: &mut Context<'_>) -> Effect {
        self.is_http2 = true;
        self.refuse_head(cx)
    }

    fn refuse_head(&mut self, cx: &mut Context<'_>) -> Effect {
        let text = format!("a request's head has at most {} bytes and 64 fields", cx.rules.max_head_bytes);
        self.refuse_unread(ErrorCode::HeadTooLarge, &text, cx)
    }

    fn refuse_body(&mut self, cx: &mut Context<'_>) -> Effect {
        let text = format!("a request's body has at most {} bytes", cx.rules.max_body_bytes);
        self.abort(ErrorCode::BodyTooLarge, &text, cx)
    }

    /// Refuses a request of which nothing is known: the answer is not that to the one before.
    pub(super) fn refuse_unread(&mut self, code: ErrorCode, text: &str, cx: &mut Context<'_>) -> Effect {
        self.is_head = false;
        self.identity = Identity::UNKNOWN;
        self.abort(code, text, cx)
    }

    fn on_request(&mut self, head: &RequestHead<'_, '_>, body: &[u8], cx: &mut Context<'_>) -> Effect {
        self.is_expected = false;
        if is_for_application(head, cx) {
            return self.ask_application(head, body, cx);
        }
        let request = match Request::read(head, &cx.rules.of_requests(self.takes_gzip, cx.is_draining())) {
            Ok(request) => request,
            Err(Refused { code, text, allow }) => {
                self.keeps_alive &= code != ErrorCode::Draining;
                return self.refuse_with(code, &text, allow, cx);
            }
        };
        // Whoever monitors the server may be anywhere.
        let allowed = match request {
            Request::Health => Ok(()),
            _ => cx.rules.gate.may_use_transports(self.identity),
        };
        let allowed = allowed.and_then(|()| match request {
            Request::Health | Request::Preflight => Ok(()),
            _ => self.admit(head, cx),
        });
        if let Err((code, text)) = allowed {
            return self.refuse(code, &text, cx);
        }
        match request {
            Request::Preflight => self.answer_preflight(cx),
            Request::WebSocket { accept, extension, mut subscription, mode, is_told, has_subprotocol } => {
                let refused = match self.choose_allowed(&mut subscription.channels, cx) {
                    Ok(refused) => refused,
                    Err((code, text)) => return self.refuse(code, &text, cx),
                };
                let (agreed, own) = (extension.map(|agreed| agreed.answer), has_subprotocol.then_some(SUBPROTOCOL));
                encode_websocket(cx.output.head_out(self.is_http2), accept.as_deref(), agreed, own);
                let sends_compressed = extension.is_some_and(|agreed| agreed.takes_whole_window);
                let takes_compressed = extension.is_some();
                let (decoder, partial_since_s) = Default::default();
                self.state = State::WebSocket { decoder, mode, partial_since_s, takes_compressed, sends_compressed };
                let is_polling = mode == Mode::Poll;
                let transport = if is_polling { Transport::WebSocketPolling } else { Transport::WebSocket };
                self.open(transport, cx.rules.heartbeat, is_told, &refused, cx);
                if mode == Mode::Echo { Effect::Nothing } else { self.start(subscription.after, is_polling) }
            }
            Request::Stream { framing, transport, mut subscription, is_early, is_told } => {
                let refused = match self.choose_allowed(&mut subscription.channels, cx) {
                    Ok(refused) => refused,
                    Err((code, text)) => return self.refuse(code, &text, cx),
                };
                let audience = cx.rules.gate.audience(self.identity);
                encode_stream(cx.output.head_out(self.is_http2), framing, audience);
                framing.preamble(&mut cx.output.bytes);
                self.state = State::Stream(framing);
                let heartbeat = cx.rules.heartbeat;
                let first = if is_early { heartbeat.min(cx.rules.first_heartbeat) } else { heartbeat };
                self.open(transport, first, is_told, &refused, cx);
                self.start(subscription.after, false)
            }
            Request::Poll { subscription, wait, is_told } => {
                self.speaks_v2 = is_told;
                self.poll(subscription, wait, cx)
            }
            Request::Newest { channel, count } => self.newest(channel, count, cx),
            Request::Publish { subscription, is_text } => self.publish(subscription, is_text, body, cx),
            Request::Echo => self.echo(body, cx),
            Request::EchoEvent { data } => self.echo_event(&data, cx),
            Request::Ticket => self.ask_for_ticket(head, cx),
            Request::Health if cx.is_draining() => self.refuse(ErrorCode::Draining, "draining", cx),
            Request::Health => self.answer("text/plain", b"ok\n", cx),
            Request::Stats => self.watch(Page::Stats, cx),
            Request::Metrics => self.watch(Page::Metrics, cx),
        }
    }

    /// Gives a body back.
    fn echo(&mut self, body: &[u8], cx: &mut Context<'_>) -> Effect {
        let Some(receipt) = cx.receipt else { return self.answer("application/json", body, cx) };
        let mut body = body.to_vec();
        receipt.fill(&mut body);
        self.answer("application/json", &body, cx)
    }

    /// Gives data back as an event, the only one of its stream.
    fn echo_event(&mut self, data: &str, cx: &mut Context<'_>) -> Effect {
        if !is_json(data) {
            return self.refuse(ErrorCode::BadJson, "data is not JSON: ?data=JSON, percent-encoded", cx);
        }
        let mut event = format!("data:{}\n\n", single_line(data.trim_ascii())).into_bytes();
        if let Some(receipt) = cx.receipt {
            receipt.fill(&mut event);
        }
        self.answer("text/event-stream", &event, cx)
    }

    /// Leaves the channels named in the output, if it may subscribe to all of them.
    fn choose(&self, names: &mut [Cow<'_, str>], cx: &mut Context<'_>) -> Result<(), Refusal> {
        names.iter().try_for_each(|name| self.may_subscribe(name, cx))?;
        cx.output.channels.fill(names).map_err(|error| (ErrorCode::BadChannel, error.to_string().into()))
    }

    /// Begins what lasts: what it counts as, its first heartbeat, and what the client is told of the server.
    fn open(
        &mut self,
        transport: Transport,
        first_heartbeat: Duration,
        is_told: bool,
        refused: &[RefusedChannel],
        cx: &mut Context<'_>,
    ) {
        cx.output.transport = Some(transport);
        cx.output.patience = Some(self.until_notice(first_heartbeat, cx));
        self.speaks_v2 = is_told;
        if is_told {
            let announcement = cx.rules.announcement(self.version).encode();
            self.framing_out().announcement(&mut cx.output.bytes, announcement.as_bytes());
        }
        self.say_refused(refused, cx);
    }

    fn poll(&mut self, mut subscription: Subscription<'_>, wait: Duration, cx: &mut Context<'_>) -> Effect {
        if let Err((code, text)) = self.choose(&mut subscription.channels, cx) {
            return self.refuse(code, &text, cx);
        }
        let is_long = !wait.is_zero();
        if is_long && let Err((code, text)) = self.enter(cx) {
            return self.refuse(code, &text, cx);
        }
        cx.output.transport = Some(if is_long { Transport::LongPolling } else { Transport::Polling });
        let wait_ms = u32::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX);
        self.read_reply(wait_ms, true, subscription.after, cx)
    }

    /// Reads what is new in some channels; if it is nothing, the answer waits for so long.
    pub(super) fn read_reply(
        &mut self,
        wait_ms: u32,
        is_new_set: bool,
        after: Option<Cursor>,
        cx: &Context<'_>,
    ) -> Effect {
        self.waiting = Some(Waiting::Poll { wait_ms });
        let max_bytes = cx.rules.max_reply_bytes;
        Effect::Read(Query { is_new_set, is_subscription: false, after, newest: None, max_bytes })
    }

    /// Reads the newest messages of a channel, for an answer at once.
    fn newest(&mut self, channel: Cow<'_, str>, count: u32, cx: &mut Context<'_>) -> Effect {
        if let Err((code, text)) = self.choose(&mut [channel], cx) {
            return self.refuse(code, &text, cx);
        }
        cx.output.transport = Some(Transport::Polling);
        self.waiting = Some(Waiting::Poll { wait_ms: 0 });
        let max_bytes = cx.rules.max_reply_bytes;
        Effect::Read(Query { is_new_set: true, is_subscription: false, after: None, newest: Some(count), max_bytes })
    }

    fn publish(
        &mut self,
        mut subscription: Subscription<'_>,
        is_text: bool,
        body: &[u8],
        cx: &mut Context<'_>,
    ) -> Effect {
        let data = match data_of(body, is_text) {
            Ok(data) => data,
            Err((code, text)) => return self.refuse(code, &text, cx),
        };
        let (channel, text) = &mut cx.output.publication;
        channel.clear();
        channel.push_str(&subscription.channels[0]);
        text.clear();
        text.push_str(&data);
        // Before publishing: who is refused has done nothing.
        let allowed = match subscription.after {
            Some(_) => self.choose(&mut subscription.channels, cx),
            None => Ok(()),
        };
        let allowed = allowed.and_then(|()| self.may_publish(&cx.output.publication.0, cx));
        if let Err((code, text)) = allowed {
            return self.refuse(code, &text, cx);
        }
        self.waiting = Some(Waiting::Publication(subscription.after.map(Box::new)));
        Effect::Publish
    }

    fn ask_application(&mut self, head: &RequestHead<'_, '_>, body: &[u8], cx: &mut Context<'_>) -> Effect {
        if cx.is_draining() {
            self.keeps_alive = false;
            return self.respond_with_error(ErrorCode::Draining, "the server is stopping; connect again", cx);
        }
        let method = if head.method == "HEAD" { "GET" } else { head.method };
        if let Err((code, text)) = cx.rules.gate.may_ask(self.identity, method != "GET") {
            return self.respond_with_error(code, &text, cx);
        }
        let (path, query) = split_target(head.target);
        let Some(path) = decode_path(path) else {
            let text = "the path has an escape that is none; write % as %25";
            return self.respond_with_error(ErrorCode::BadRequest, text, cx);
        };
        // Here, where every check of a signature counts as work of the event loop, and not again by the application.
        let mut checks = 0;
        let person = cx.rules.gate.shown(head, cx.time.unix_s, &mut checks);
        cx.output.coded_bytes += checks * SIGNATURE_WORK_BYTES;
        let fields = head.fields().map(|(name, value)| (name.to_ascii_lowercase(), trimmed(value).to_owned()));
        let cookies = head.joined_cookies().map(|cookies| ("cookie".to_owned(), cookies));
        self.waiting = Some(Waiting::Application);
        cx.output.patience = Some(cx.rules.answer_timeout);
        Effect::Ask(Box::new(Question {
            method: method.to_owned(),
            path: path.into_owned(),
            query: query.map(|(name, value)| (name.into_owned(), value.into_owned())).collect(),
            fields: fields.chain(cookies).collect(),
            forwarded: head.raw_headers("x-forwarded-for").map(<[u8]>::to_vec).collect(),
            body: body.to_vec(),
            person,
            is_tls: cx.rules.is_tls || cx.rules.gate.site.is_secure(head.header("origin").map(trimmed)),
        }))
    }
}
