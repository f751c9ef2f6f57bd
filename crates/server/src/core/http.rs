//! Requests: which path does what, and the answers.

use super::application::fields_of;
use super::{Core, PAGE_WORK};
use crate::config::Limits;
use crate::connection::{Kind, NO_GROUP, PartialRequest};
use crate::metrics;
use crate::stats::add;
use pushlab_log::{Publication, Replay};
use pushlab_session::answer::{Head, encode_body, encode_ok, encode_preflight, encode_stream, error_body};
use pushlab_session::exchange::Exchange;
use pushlab_session::framing::{Framing, cursor_frame, gap_frame};
use pushlab_session::request::{Refused, Request, RequestRules, Subscription, data_of};
use pushlab_wire::codes::ErrorCode;
use pushlab_wire::cursor::Cursor;
use pushlab_wire::exposition::CONTENT_TYPE;
use pushlab_wire::http::{BodyDecoder, BodyKind, Headers, HttpError, RequestHead, parse_request};
use pushlab_wire::native::Announcement;
use pushlab_wire::transport::Transport;
use pushlab_wire::websocket::{Decoder, handshake};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A gap, if any, and the position: what surrounds the messages of a reply.
pub type ReplyFrame = (Option<(Cursor, Cursor)>, Cursor);

impl Core {
    /// Reads one request; says how many bytes it took, 0 if its head is not all there.
    pub(super) fn on_http(&mut self, id: usize, bytes: &[u8]) -> usize {
        if matches!(self.connections[id].kind, Kind::Http(Some(_))) {
            return self.on_body(id, bytes);
        }
        let mut headers = Headers::default();
        let (head, size) = match parse_request(bytes, &mut headers) {
            Ok(Some((_, size))) if size > self.limits().max_head_bytes => return self.refuse_head(id, bytes),
            Ok(Some(found)) => found,
            Ok(None) if bytes.len() >= self.limits().max_head_bytes => return self.refuse_head(id, bytes),
            Ok(None) => {
                self.expect_request(id);
                return 0;
            }
            Err(HttpError::BadHead(httparse_error)) if httparse_error.to_string().contains("too many headers") => {
                return self.refuse_head(id, bytes);
            }
            Err(HttpError::UnknownCoding) => {
                self.refuse_request(id, ErrorCode::Unsupported, "Transfer-Encoding other than chunked");
                return bytes.len();
            }
            Err(error) => {
                self.refuse_request(id, ErrorCode::BadRequest, &error.to_string());
                return bytes.len();
            }
        };
        // RFC 9112, section 3.2.
        let hosts = head.headers("host").take(2).count();
        if hosts > 1 || hosts == 0 && head.minor_version > 0 {
            self.refuse_request(id, ErrorCode::BadRequest, "a request must have exactly one Host header");
            return bytes.len();
        }
        self.turn.requests += 1;
        let is_for_application = self.is_for_application(head.target);
        // What an application answers is for its own pages: nothing lets those of other sites read it.
        let has_origin = head.header("origin").is_some() && !is_for_application;
        let identity = self.shared.gate.identify(head.fields(), is_for_application);
        let connection = &mut self.connections[id];
        // An HTTP/1.0 client that asks to keep the connection would need to be told so; closing is always understood.
        connection.exchange.keeps_alive = head.minor_version > 0 && head.keeps_alive();
        connection.exchange.is_head = head.method == "HEAD";
        connection.exchange.has_origin = has_origin;
        connection.exchange.identity = identity;
        let rest = &bytes[size..];
        match head.body {
            BodyKind::Length(length) if length > self.limits().max_body_bytes as u64 => {
                self.refuse_body(id);
                bytes.len()
            }
            BodyKind::Length(0) => {
                self.on_request(id, &head, b"");
                size
            }
            BodyKind::Length(length) if rest.len() as u64 >= length => {
                let length = length as usize;
                self.on_request(id, &head, &rest[..length]);
                size + length
            }
            kind => {
                self.await_body(id, &head, &bytes[..size], kind);
                size
            }
        }
    }

    fn refuse_head(&mut self, id: usize, bytes: &[u8]) -> usize {
        let text = format!("a request's head has at most {} bytes and 64 fields", self.limits().max_head_bytes);
        self.refuse_request(id, ErrorCode::HeadTooLarge, &text);
        bytes.len()
    }

    /// Refuses a request of which nothing is known: the answer is not that to the one before.
    fn refuse_request(&mut self, id: usize, code: ErrorCode, text: &str) {
        let connection = &mut self.connections[id];
        connection.exchange.is_head = false;
        connection.exchange.has_origin = false;
        self.refuse(id, code, text);
    }

    fn refuse_body(&mut self, id: usize) {
        let text = format!("a request's body has at most {} bytes", self.limits().max_body_bytes);
        self.refuse(id, ErrorCode::BodyTooLarge, &text);
    }

    /// A request has begun: the time for it runs from its first byte, however slowly the others come.
    fn expect_request(&mut self, id: usize) {
        if !std::mem::replace(&mut self.connections[id].exchange.is_expected, true) {
            self.set_deadline(id, self.limits().head_timeout);
        }
    }

    fn await_body(&mut self, id: usize, head: &RequestHead<'_, '_>, bytes: &[u8], kind: BodyKind) {
        self.expect_request(id);
        self.connections[id].kind = Kind::Http(Some(Box::new(PartialRequest {
            head: bytes.to_vec(),
            decoder: BodyDecoder::new(kind),
            body: Vec::new(),
        })));
        let expects = head.header("expect").is_some_and(|v| v.eq_ignore_ascii_case("100-continue"));
        if expects && head.minor_version > 0 {
            self.send(id, b"HTTP/1.1 100 Continue\r\n\r\n");
        }
    }

    fn on_body(&mut self, id: usize, bytes: &[u8]) -> usize {
        let max = self.shared.config.limits.max_body_bytes;
        let Kind::Http(Some(request)) = &mut self.connections[id].kind else { return 0 };
        let step = match request.decoder.decode(bytes) {
            Ok(step) => step,
            Err(error) => {
                self.refuse(id, ErrorCode::BadRequest, &error.to_string());
                return bytes.len();
            }
        };
        if request.body.len() + step.data.len() > max {
            self.refuse_body(id);
            return bytes.len();
        }
        request.body.extend_from_slice(step.data);
        if step.is_done
            && let Kind::Http(request) = std::mem::replace(&mut self.connections[id].kind, Kind::Http(None))
            && let Some(request) = request
        {
            let mut headers = Headers::default();
            let head = parse_request(&request.head, &mut headers);
            let (head, _) = head.ok().flatten().expect("the head was read once already");
            self.on_request(id, &head, &request.body);
        }
        step.consumed
    }

    fn on_request(&mut self, id: usize, head: &RequestHead<'_, '_>, body: &[u8]) {
        let method = head.method;
        if self.is_for_application(head.target) {
            return self.ask_application(id, method, head.target, fields_of(head), body.to_vec());
        }
        self.connections[id].exchange.is_expected = false;
        let Limits { max_channels_per_connection: max_channels, max_poll_wait: max_wait, .. } = *self.limits();
        let rules = RequestRules { max_channels, max_wait, is_draining: self.drain_until.is_some() };
        let request = match Request::read(head, &rules) {
            Ok(request) => request,
            Err(Refused { code, text, allow }) => {
                self.connections[id].exchange.keeps_alive &= code != ErrorCode::Draining;
                return self.answer_error_with(id, code, &text, allow);
            }
        };
        match request {
            Request::Preflight => self.answer_preflight(id),
            Request::WebSocket { accept, mut subscription, is_polling, is_told } => {
                let Ok(group) = self.group_of(id, &mut subscription.channels) else { return };
                let mut out = Vec::new();
                handshake::encode_response(&mut out, &accept);
                self.announce(&mut out, Framing::WebSocket, is_told);
                self.open_websocket(id, out, group, subscription.after, is_polling);
            }
            Request::Stream { framing, transport, mut subscription, is_early, is_told } => {
                let Ok(group) = self.group_of(id, &mut subscription.channels) else { return };
                let mut out = Vec::new();
                encode_stream(&mut out, framing, self.connections[id].exchange.has_origin);
                framing.preamble(&mut out);
                self.announce(&mut out, framing, is_told);
                self.connections[id].kind = Kind::Stream(framing);
                self.count_as(id, transport);
                self.begin(id, group, subscription.after, framing, out);
                let Limits { heartbeat, first_heartbeat, .. } = *self.limits();
                self.set_deadline(id, if is_early { heartbeat.min(first_heartbeat) } else { heartbeat });
            }
            Request::Poll { subscription, wait } => self.poll_over_http(id, subscription, wait),
            Request::Publish { subscription, is_text } => self.publish(id, subscription, is_text, body),
            Request::Echo => self.echo_over_http(id, body),
            Request::Health => self.answer_health(id),
            Request::Stats => self.answer_stats(id),
            Request::Metrics => self.answer_metrics(id),
        }
    }

    // --- Subscribing ---

    /// Appends what a client is told of the server before all else, if it asks.
    fn announce(&self, out: &mut Vec<u8>, framing: Framing, is_told: bool) {
        if !is_told {
            return;
        }
        let Limits { heartbeat, max_message_bytes, max_channels_per_connection, .. } = *self.limits();
        let announcement = Announcement {
            // Rounded up: whoever waits for two of them must not be early.
            heartbeat_ms: u64::try_from(heartbeat.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX).max(1),
            max_message_bytes: max_message_bytes as u64,
            max_channels: max_channels_per_connection as u64,
        };
        framing.announcement(out, announcement.encode().as_bytes());
    }

    fn open_websocket(
        &mut self,
        id: usize,
        out: Vec<u8>,
        group: Option<usize>,
        after: Option<Cursor>,
        is_polling: bool,
    ) {
        self.connections[id].kind = Kind::WebSocket { decoder: Decoder::default(), is_polling };
        self.count_as(id, if is_polling { Transport::WebSocketPolling } else { Transport::WebSocket });
        if is_polling {
            self.connections[id].subscriber.seen = self.shared.distributor.head().offset;
            if let Some(group) = group {
                self.join_group(id, group);
            }
            self.send(id, &out);
        } else {
            self.begin(id, group, after, Framing::WebSocket, out);
        }
        self.set_deadline(id, self.limits().heartbeat);
    }

    /// The group of the channels named, or an answer that says what is wrong with them.
    fn group_of(&mut self, id: usize, channels: &mut Vec<Cow<'_, str>>) -> Result<Option<usize>, ()> {
        if channels.is_empty() {
            return Ok(None);
        }
        let identity = self.connections[id].exchange.identity;
        if let Err((code, text)) = self.shared.gate.may_subscribe(identity, channels.iter().map(|name| &**name)) {
            self.answer_error(id, code, &text);
            return Err(());
        }
        match self.groups.intern(channels) {
            Ok(group) => Ok(Some(group)),
            Err(error) => {
                self.answer_error(id, ErrorCode::BadChannel, &error.to_string());
                Err(())
            }
        }
    }

    // --- Polling ---

    fn poll_over_http(&mut self, id: usize, mut subscription: Subscription<'_>, wait: Duration) {
        let Ok(Some(group)) = self.group_of(id, &mut subscription.channels) else { return };
        let is_long = !wait.is_zero();
        self.count_as(id, if is_long { Transport::LongPolling } else { Transport::Polling });
        let max = self.limits().max_reply_bytes;
        let replay = self.shared.distributor.read(&self.groups[group].channels, subscription.after, max);
        if replay.messages.is_empty() && replay.gap.is_none() && is_long {
            let connection = &mut self.connections[id];
            connection.subscriber.seen = replay.up_to;
            connection.kind = Kind::HeldPoll;
            self.join_group(id, group);
            self.set_deadline(id, wait);
            return;
        }
        self.send_replay(id, &replay);
    }

    fn send_replay(&mut self, id: usize, replay: &Replay) {
        self.turn.sent += replay.messages.len() as u64;
        add(&self.counters.gaps, u64::from(replay.gap.is_some()));
        let body = self.reply_body(&replay.messages, Some((replay.gap, self.shared.distributor.cursor(replay.up_to))));
        self.send_reply(id, &body);
    }

    /// A reply's body. Without a frame it ends at its last message.
    pub(super) fn reply_body(&self, messages: &[Arc<Publication>], frame: Option<ReplyFrame>) -> Vec<u8> {
        let mut body = Vec::with_capacity(64 + messages.iter().map(|m| m.text.as_bytes().len() + 1).sum::<usize>());
        body.push(b'[');
        if let Some((Some((from, to)), _)) = frame {
            body.extend_from_slice(gap_frame(from, to).as_bytes());
            body.push(b',');
        }
        for message in messages {
            body.extend_from_slice(message.text.as_bytes());
            body.push(b',');
        }
        match (frame, messages.last()) {
            (None, Some(last)) => {
                body.extend_from_slice(b"[\"cursor\",\"");
                body.extend_from_slice(last.text.cursor());
                body.extend_from_slice(b"\"]");
            }
            (Some((_, cursor)), _) => body.extend_from_slice(cursor_frame(&cursor.to_string()).as_bytes()),
            (None, None) => unreachable!("a reply has messages or a frame"),
        }
        body.push(b']');
        body
    }

    /// Answers a held poll whose time is up.
    pub(super) fn release_poll(&mut self, id: usize) {
        let cursor = self.shared.distributor.cursor(self.connections[id].subscriber.seen.max(self.fanned_out_to));
        let body = self.reply_body(&[], Some((None, cursor)));
        self.leave_group(id);
        self.send_reply(id, &body);
    }

    pub(super) fn send_reply(&mut self, id: usize, body: &[u8]) {
        let connection = &self.connections[id];
        let mut out = Vec::with_capacity(body.len() + 160);
        encode_ok(&mut out, "application/json", body, connection.exchange.has_origin, connection.exchange.keeps_alive);
        self.end_poll(id, &out);
    }

    /// Sends the answer to a poll that is in no group any more; the connection then waits for its next request.
    pub(super) fn end_poll(&mut self, id: usize, answer: &[u8]) {
        let connection = &mut self.connections[id];
        debug_assert_eq!(connection.group, NO_GROUP, "a poll leaves its group before it is answered");
        connection.kind = Kind::Http(None);
        if !connection.carry.is_empty() {
            self.unfinished.push(id);
        }
        self.send_event(id, Framing::Reply, answer);
        self.after_answer(id);
    }

    // --- Publishing ---

    fn publish(&mut self, id: usize, mut subscription: Subscription<'_>, is_text: bool, body: &[u8]) {
        let data = match data_of(body, is_text) {
            Ok(data) => data,
            Err((code, text)) => return self.answer_error(id, code, &text),
        };
        let first = subscription.channels[0].clone();
        // Before publishing: who is refused has done nothing.
        let group = subscription.after.map(|_| self.group_of(id, &mut subscription.channels)).transpose();
        let Ok(group) = group.map(Option::flatten) else { return };
        let cursor = match self.publish_for_client(&first, &data) {
            Ok(cursor) => cursor,
            Err((code, text)) => return self.answer_error(id, code, &text),
        };
        let Some(group) = group else {
            return self.answer(id, "application/json", cursor_frame(&cursor.to_string()).as_bytes());
        };
        let replay = self.shared.distributor.read(
            &self.groups[group].channels,
            subscription.after,
            self.limits().max_reply_bytes,
        );
        self.send_replay(id, &replay);
    }

    // --- Answering ---

    fn echo_over_http(&mut self, id: usize, body: &[u8]) {
        let Some(receipt) = self.shared.distributor.receipt() else { return self.answer(id, "application/json", body) };
        let mut body = body.to_vec();
        receipt.fill(&mut body);
        self.answer(id, "application/json", &body);
    }

    fn answer_health(&mut self, id: usize) {
        if self.shared.is_draining.load(Ordering::Relaxed) {
            self.answer_error(id, ErrorCode::Draining, "draining");
        } else {
            self.answer(id, "text/plain", b"ok\n");
        }
    }

    fn answer_stats(&mut self, id: usize) {
        self.work_left = self.work_left.saturating_sub(PAGE_WORK);
        let stats = self.shared.stats();
        let body = serde_json::to_vec(&stats).expect("counters always serialise");
        self.answer(id, "application/json", &body);
    }

    fn answer_metrics(&mut self, id: usize) {
        self.work_left = self.work_left.saturating_sub(PAGE_WORK);
        let page = metrics::page(&self.shared.stats(), self.shared.config.cores.max(1));
        self.answer(id, CONTENT_TYPE, page.as_bytes());
    }

    fn answer_preflight(&mut self, id: usize) {
        let mut answer = Vec::new();
        encode_preflight(&mut answer);
        self.send(id, &answer);
        self.after_answer(id);
    }

    fn answer(&mut self, id: usize, content_type: &str, body: &[u8]) {
        let connection = &self.connections[id];
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        encode_ok(&mut out, content_type, body, connection.exchange.has_origin, connection.exchange.keeps_alive);
        if connection.exchange.is_head {
            out.truncate(out.len() - body.len());
        }
        self.send(id, &out);
        self.out = out;
        self.after_answer(id);
    }

    fn answer_error(&mut self, id: usize, code: ErrorCode, text: &str) {
        self.answer_error_with(id, code, text, None);
    }

    /// Answers with an error, and with the method that the path takes.
    fn answer_error_with(&mut self, id: usize, code: ErrorCode, text: &str, allow: Option<&str>) {
        add(&self.counters.errors, 1);
        let connection = &self.connections[id];
        let mut answer = Vec::new();
        let mut head = Head::of_error(&mut answer, code);
        if let Some(allow) = allow {
            head = head.field("Allow", allow);
        }
        let body = error_body(code, text);
        let Exchange { has_origin, keeps_alive, .. } = connection.exchange;
        encode_body(head, "application/json", &body, has_origin, keeps_alive);
        if connection.exchange.is_head {
            answer.truncate(answer.len() - body.len());
        }
        self.send(id, &answer);
        self.after_answer(id);
    }

    /// Answers with an error after which nothing more can be understood on this connection.
    pub(super) fn refuse(&mut self, id: usize, code: ErrorCode, text: &str) {
        self.connections[id].exchange.keeps_alive = false;
        self.answer_error(id, code, text);
    }

    pub(super) fn after_answer(&mut self, id: usize) {
        let Limits { idle_timeout, write_timeout, take_timeout, .. } = *self.limits();
        let connection = &mut self.connections[id];
        if connection.is_gone() {
            return;
        }
        if !connection.exchange.keeps_alive || self.drain_until.is_some() {
            self.close_gently(id);
        } else if connection.has_queued() {
            connection.kind = Kind::Answering { until: self.now + take_timeout };
            self.set_deadline(id, write_timeout.min(take_timeout));
        } else {
            self.set_deadline(id, idle_timeout);
        }
    }
}
