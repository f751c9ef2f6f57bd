//! Requests: which one does what.

use super::{Exchange, State, Waiting};
use crate::answer::encode_stream;
use crate::effect::{Context, Effect, Page, Query, Question};
use crate::gate::Refusal;
use crate::incoming::{Part, PartialRequest};
use crate::request::{Refused, Request, Subscription, data_of, is_known_path};
use pushlab_wire::codes::ErrorCode;
use pushlab_wire::cursor::Cursor;
use pushlab_wire::http::{BodyKind, Headers, HttpError, RequestHead, decode_path, parse_request, split_target};
use pushlab_wire::transport::Transport;
use pushlab_wire::websocket::{Decoder, handshake};
use std::borrow::Cow;
use std::time::Duration;

/// Whether a request is for the application: it is for nothing of our own.
fn is_for_application(target: &str, cx: &Context<'_>) -> bool {
    cx.rules.has_application && !is_known_path(split_target(target).0)
}

impl Exchange {
    /// Reads one request, or a part of its body; says how many bytes it took, 0 if its head is not all there.
    pub(super) fn receive_request(&mut self, bytes: &[u8], cx: &mut Context<'_>) -> (usize, Effect) {
        if matches!(self.state, State::Http(Some(_))) {
            return self.receive_body(bytes, cx);
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
            Err(HttpError::BadHead(error)) if error.to_string().contains("too many headers") => {
                return (all, self.refuse_head(cx));
            }
            Err(HttpError::UnknownCoding) => {
                let effect = self.refuse_unread(ErrorCode::Unsupported, "Transfer-Encoding other than chunked", cx);
                return (all, effect);
            }
            Err(error) => return (all, self.refuse_unread(ErrorCode::BadRequest, &error.to_string(), cx)),
        };
        // RFC 9112, section 3.2.
        let hosts = head.headers("host").take(2).count();
        if hosts > 1 || hosts == 0 && head.minor_version > 0 {
            let text = "a request must have exactly one Host header";
            return (all, self.refuse_unread(ErrorCode::BadRequest, text, cx));
        }
        cx.output.counts.requests += 1;
        let is_for_application = is_for_application(head.target, cx);
        // What an application answers is for its own pages: nothing lets those of other sites read it.
        self.has_origin = head.header("origin").is_some() && !is_for_application;
        self.identity = cx.rules.gate.identify(head.fields(), is_for_application);
        // An HTTP/1.0 client that asks to keep the connection would need to be told so; closing is always understood.
        self.keeps_alive = head.minor_version > 0 && head.keeps_alive();
        self.is_head = head.method == "HEAD";
        let rest = &bytes[size..];
        match head.body {
            BodyKind::Length(length) if length > cx.rules.max_body_bytes as u64 => (all, self.refuse_body(cx)),
            BodyKind::Length(0) => (size, self.on_request(&head, b"", cx)),
            BodyKind::Length(length) if rest.len() as u64 >= length => {
                let length = length as usize;
                (size + length, self.on_request(&head, &rest[..length], cx))
            }
            kind => {
                self.expect(cx);
                self.state = State::Http(Some(Box::new(PartialRequest::new(&bytes[..size], kind))));
                let expects = head.header("expect").is_some_and(|v| v.eq_ignore_ascii_case("100-continue"));
                if expects && head.minor_version > 0 {
                    cx.output.bytes.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
                }
                (size, Effect::Nothing)
            }
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
        self.has_origin = false;
        self.abort(code, text, cx)
    }

    fn on_request(&mut self, head: &RequestHead<'_, '_>, body: &[u8], cx: &mut Context<'_>) -> Effect {
        self.is_expected = false;
        if is_for_application(head.target, cx) {
            return self.ask_application(head, body, cx);
        }
        let request = match Request::read(head, &cx.rules.of_requests(cx.is_draining)) {
            Ok(request) => request,
            Err(Refused { code, text, allow }) => {
                self.keeps_alive &= code != ErrorCode::Draining;
                return self.refuse_with(code, &text, allow, cx);
            }
        };
        match request {
            Request::Preflight => Self::answer_preflight(cx),
            Request::WebSocket { accept, mut subscription, is_polling, is_told } => {
                if let Err((code, text)) = self.choose(&mut subscription.channels, cx) {
                    return self.refuse(code, &text, cx);
                }
                handshake::encode_response(&mut cx.output.bytes, &accept);
                self.state = State::WebSocket { decoder: Decoder::default(), is_polling };
                let transport = if is_polling { Transport::WebSocketPolling } else { Transport::WebSocket };
                self.open(transport, cx.rules.heartbeat, is_told, cx);
                self.start(subscription.after, is_polling)
            }
            Request::Stream { framing, transport, mut subscription, is_early, is_told } => {
                if let Err((code, text)) = self.choose(&mut subscription.channels, cx) {
                    return self.refuse(code, &text, cx);
                }
                encode_stream(&mut cx.output.bytes, framing, self.has_origin);
                framing.preamble(&mut cx.output.bytes);
                self.state = State::Stream(framing);
                let heartbeat = cx.rules.heartbeat;
                let first = if is_early { heartbeat.min(cx.rules.first_heartbeat) } else { heartbeat };
                self.open(transport, first, is_told, cx);
                self.start(subscription.after, false)
            }
            Request::Poll { subscription, wait } => self.poll(subscription, wait, cx),
            Request::Publish { subscription, is_text } => self.publish(subscription, is_text, body, cx),
            Request::Echo => match cx.receipt {
                None => self.answer("application/json", body, cx),
                Some(receipt) => {
                    let mut body = body.to_vec();
                    receipt.fill(&mut body);
                    self.answer("application/json", &body, cx)
                }
            },
            Request::Health if cx.is_draining => self.refuse(ErrorCode::Draining, "draining", cx),
            Request::Health => self.answer("text/plain", b"ok\n", cx),
            Request::Stats => Effect::Page(Page::Stats),
            Request::Metrics => Effect::Page(Page::Metrics),
        }
    }

    /// Leaves the channels named in the output, if it may subscribe to all of them.
    fn choose(&self, names: &mut [Cow<'_, str>], cx: &mut Context<'_>) -> Result<(), Refusal> {
        cx.rules.gate.may_subscribe(self.identity, names.iter().map(|name| &**name))?;
        cx.output.channels.fill(names).map_err(|error| (ErrorCode::BadChannel, error.to_string().into()))
    }

    /// Begins what lasts: what it counts as, its first heartbeat, and what the client is told of the server.
    fn open(&mut self, transport: Transport, first_heartbeat: Duration, is_told: bool, cx: &mut Context<'_>) {
        cx.output.transport = Some(transport);
        cx.output.patience = Some(first_heartbeat);
        if is_told {
            let announcement = cx.rules.announcement().encode();
            self.framing_out().announcement(&mut cx.output.bytes, announcement.as_bytes());
        }
    }

    fn poll(&mut self, mut subscription: Subscription<'_>, wait: Duration, cx: &mut Context<'_>) -> Effect {
        if let Err((code, text)) = self.choose(&mut subscription.channels, cx) {
            return self.refuse(code, &text, cx);
        }
        let is_long = !wait.is_zero();
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
        Effect::Read(Query { is_new_set, is_subscription: false, after, max_bytes: cx.rules.max_reply_bytes })
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
        let allowed = allowed.and_then(|()| cx.rules.gate.may_publish(&cx.output.publication.0));
        if let Err((code, text)) = allowed {
            return self.refuse(code, &text, cx);
        }
        self.waiting = Some(Waiting::Publication(subscription.after.map(Box::new)));
        Effect::Publish
    }

    fn ask_application(&mut self, head: &RequestHead<'_, '_>, body: &[u8], cx: &mut Context<'_>) -> Effect {
        if cx.is_draining {
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
        let fields = head.fields().map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()));
        self.waiting = Some(Waiting::Application);
        cx.output.patience = Some(cx.rules.answer_timeout);
        Effect::Ask(Box::new(Question {
            method: method.to_owned(),
            path: path.into_owned(),
            query: query.map(|(name, value)| (name.into_owned(), value.into_owned())).collect(),
            fields: fields.collect(),
            body: body.to_vec(),
            is_tls: cx.rules.is_tls || cx.rules.gate.site.is_secure(head.header("origin").map(str::trim)),
        }))
    }
}
