//! Requests: which path does what, and the answers.

use super::application::fields_of;
use super::{Core, PAGE_WORK};
use crate::application::error_body;
use crate::config::Limits;
use crate::connection::{Kind, NO_GROUP, PartialRequest};
use crate::framing::{Framing, cursor_frame, gap_frame};
use crate::gate::Refusal;
use crate::metrics;
use crate::stats::add;
use pushlab_log::{Publication, Replay};
use pushlab_wire::codes::ErrorCode;
use pushlab_wire::cursor::Cursor;
use pushlab_wire::exposition::CONTENT_TYPE;
use pushlab_wire::http::{BodyDecoder, BodyKind, Headers, HttpError, RequestHead, parse_request, split_target};
use pushlab_wire::native::{Announcement, is_json, json_string, single_line};
use pushlab_wire::transport::Transport;
use pushlab_wire::websocket::{Decoder, handshake};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The paths, and the method of each.
const ROUTES: [(&str, &str, Route); 9] = [
    ("/ws", "GET", Route::WebSocket),
    ("/sse", "GET", Route::Events),
    ("/stream", "GET", Route::Stream),
    ("/poll", "GET", Route::Poll),
    ("/publish", "POST", Route::Publish),
    ("/echo", "POST", Route::Echo),
    ("/healthz", "GET", Route::Health),
    ("/stats", "GET", Route::Stats),
    ("/metrics", "GET", Route::Metrics),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Route {
    WebSocket,
    Events,
    Stream,
    Poll,
    Publish,
    Echo,
    Health,
    Stats,
    Metrics,
}

impl Route {
    /// Whether it serves those who watch: with HEAD too, as load balancers ask, and while the server stops.
    fn is_for_watchers(self) -> bool {
        matches!(self, Self::Health | Self::Stats | Self::Metrics)
    }

    /// Whether it opens a connection that lasts.
    fn is_subscription(self) -> bool {
        matches!(self, Self::WebSocket | Self::Events | Self::Stream)
    }
}

/// Parameters of a request.
#[derive(Default)]
struct Query<'a> {
    channels: Vec<Cow<'a, str>>,
    after: Option<Cursor>,
    wait: Duration,
    is_script: bool,
    /// The client wants to be told the server's heartbeat and limits (`v=2`).
    is_told: bool,
    /// The first heartbeat of a stream is to come early.
    is_early: bool,
    is_polling: bool,
}

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
            self.refuse_request(id, ErrorCode::BadRequest, "a request names its Host once");
            return bytes.len();
        }
        self.turn.requests += 1;
        let is_for_application = self.is_for_application(head.target);
        // What an application answers is for its own pages: nothing lets those of other sites read it.
        let has_origin = head.header("origin").is_some() && !is_for_application;
        let identity = self.shared.gate.identify(head.fields(), is_for_application);
        let connection = &mut self.connections[id];
        // An HTTP/1.0 client that asks to keep the connection would need to be told so; closing is always understood.
        connection.keeps_alive = head.minor_version > 0 && head.keeps_alive();
        connection.is_head = head.method == "HEAD";
        connection.has_origin = has_origin;
        connection.identity = identity;
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
        connection.is_head = false;
        connection.has_origin = false;
        self.refuse(id, code, text);
    }

    fn refuse_body(&mut self, id: usize) {
        let text = format!("a request's body has at most {} bytes", self.limits().max_body_bytes);
        self.refuse(id, ErrorCode::BodyTooLarge, &text);
    }

    /// A request has begun: the time for it runs from its first byte, however slowly the others come.
    fn expect_request(&mut self, id: usize) {
        if !std::mem::replace(&mut self.connections[id].is_expecting, true) {
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
        self.connections[id].is_expecting = false;
        let (path, parameters) = split_target(head.target);
        if method == "OPTIONS" {
            return self.answer_preflight(id);
        }
        let Some(&(_, expected, route)) = ROUTES.iter().find(|(p, _, _)| *p == path) else {
            return self.answer_error(id, ErrorCode::UnknownPath, &known_paths());
        };
        let is_check = method == "HEAD" && route.is_for_watchers();
        if method != expected && !is_check {
            let allow = format!("Allow: {expected}\r\n");
            return self.answer_error_with(
                id,
                ErrorCode::MethodNotAllowed,
                &format!("{path} takes {expected}"),
                &allow,
            );
        }
        if self.drain_until.is_some() && !route.is_for_watchers() {
            self.connections[id].keeps_alive = false;
            return self.answer_error(id, ErrorCode::Draining, "the server is stopping; connect again");
        }
        let query = match self.query(parameters, head, route) {
            Ok(query) => query,
            Err((code, text)) => return self.answer_error(id, code, &text),
        };
        match route {
            Route::WebSocket => self.open_websocket(id, head, query),
            Route::Events => self.open_stream(id, head, query, Transport::Sse),
            Route::Stream => self.open_stream(id, head, query, Transport::HttpStreaming),
            Route::Poll => self.poll_over_http(id, query),
            Route::Publish => self.publish(id, query, is_text(head), body),
            Route::Echo => self.echo_over_http(id, body),
            Route::Health => self.answer_health(id),
            Route::Stats => self.answer_stats(id),
            Route::Metrics => self.answer_metrics(id),
        }
    }

    fn query<'a>(
        &self,
        parameters: impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)>,
        head: &RequestHead<'_, '_>,
        route: Route,
    ) -> Result<Query<'a>, Refusal> {
        let mut query = Query::default();
        let mut after = None;
        for (name, value) in parameters {
            match &*name {
                "channel" => query.channels.push(value),
                "after" => after = Some(value),
                "wait" => {
                    let seconds: f64 = value.parse().map_err(|_| bad("wait is a number of seconds"))?;
                    let wait =
                        Duration::try_from_secs_f64(seconds).map_err(|_| bad("wait is a number of seconds from 0"))?;
                    query.wait = wait.min(self.limits().max_poll_wait);
                }
                "early" if value == "1" => query.is_early = true,
                "early" => return Err(bad("early is 1, or absent")),
                "format" if value == "script" => query.is_script = true,
                "format" if value == "ndjson" => {}
                "format" => return Err(bad("format is ndjson or script")),
                // On the other paths it is unknown, as it was before there was a second version.
                "v" if !route.is_subscription() => {}
                "v" if value == "2" => query.is_told = true,
                "v" if value == "1" => query.is_told = false,
                "v" => return Err(bad("v is 1 or 2")),
                "mode" if value == "poll" => query.is_polling = true,
                "mode" => return Err(bad("mode is poll, or absent")),
                _ => {}
            }
        }
        if route == Route::Events {
            after =
                head.header("last-event-id").filter(|id| !id.is_empty()).map(|id| Cow::Owned(id.to_owned())).or(after);
        }
        if let Some(text) = after.filter(|text| !text.is_empty()) {
            query.after = Some(Cursor::parse(&text).map_err(|e| (ErrorCode::BadCursor, e.to_string().into()))?);
        }
        let needs_channel = matches!(route, Route::Events | Route::Stream | Route::Poll | Route::Publish);
        if needs_channel && query.channels.is_empty() {
            return Err((ErrorCode::BadChannel, "name a channel: ?channel=NAME".into()));
        }
        let max = self.limits().max_channels_per_connection;
        if query.channels.len() > max {
            return Err((ErrorCode::TooManyChannels, format!("at most {max} channels a connection").into()));
        }
        Ok(query)
    }

    // --- Subscribing ---

    fn open_websocket(&mut self, id: usize, head: &RequestHead<'_, '_>, mut query: Query<'_>) {
        let accept = match handshake::accept(head) {
            Ok(accept) => accept,
            Err(error) => return self.answer_error(id, ErrorCode::UpgradeRequired, &error.to_string()),
        };
        let group = match self.group_of(id, &mut query.channels) {
            Ok(group) => group,
            Err(()) => return,
        };
        let mut out = Vec::new();
        handshake::encode_response(&mut out, &accept);
        let is_polling = query.is_polling;
        self.connections[id].kind = Kind::WebSocket { decoder: Decoder::default(), is_polling };
        self.count_as(id, if is_polling { Transport::WebSocketPolling } else { Transport::WebSocket });
        if query.is_told {
            Framing::WebSocket.announcement(&mut out, self.announcement().as_bytes());
        }
        if is_polling {
            self.connections[id].seen = self.shared.distributor.head().offset;
            if let Some(group) = group {
                self.join_group(id, group);
            }
            self.send(id, &out);
        } else {
            self.begin(id, group, query.after, Framing::WebSocket, out);
        }
        self.set_deadline(id, self.limits().heartbeat);
    }

    fn open_stream(&mut self, id: usize, head: &RequestHead<'_, '_>, mut query: Query<'_>, transport: Transport) {
        let Ok(group) = self.group_of(id, &mut query.channels) else { return };
        let is_chunked = head.minor_version > 0;
        let (framing, content_type) = match transport {
            Transport::Sse => (Framing::Events { is_chunked }, "text/event-stream"),
            _ if query.is_script => (Framing::Script { is_chunked }, "text/html; charset=utf-8"),
            _ => (Framing::Lines { is_chunked }, "application/x-ndjson"),
        };
        let connection = &mut self.connections[id];
        connection.kind = Kind::Stream(framing);
        let mut out = Vec::new();
        out.extend_from_slice(b"HTTP/1.1 200 OK\r\nContent-Type: ");
        out.extend_from_slice(content_type.as_bytes());
        // Asks nginx not to buffer.
        out.extend_from_slice(b"\r\nCache-Control: no-store\r\nX-Accel-Buffering: no\r\n");
        out.extend_from_slice(if is_chunked { b"Transfer-Encoding: chunked\r\n" } else { b"Connection: close\r\n" });
        encode_origin(&mut out, connection.has_origin);
        out.extend_from_slice(b"\r\n");
        framing.preamble(&mut out);
        if query.is_told {
            framing.announcement(&mut out, self.announcement().as_bytes());
        }
        self.count_as(id, transport);
        self.begin(id, group, query.after, framing, out);
        let Limits { heartbeat, first_heartbeat, .. } = *self.limits();
        self.set_deadline(id, if query.is_early { heartbeat.min(first_heartbeat) } else { heartbeat });
    }

    /// What a client is told of the server before all else, if it asks.
    fn announcement(&self) -> String {
        let Limits { heartbeat, max_message_bytes, max_channels_per_connection, .. } = *self.limits();
        Announcement {
            // Rounded up: whoever waits for two of them must not be early.
            heartbeat_ms: u64::try_from(heartbeat.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX).max(1),
            max_message_bytes: max_message_bytes as u64,
            max_channels: max_channels_per_connection as u64,
        }
        .encode()
    }

    /// The group of the channels named, or an answer that says what is wrong with them.
    fn group_of(&mut self, id: usize, channels: &mut Vec<Cow<'_, str>>) -> Result<Option<usize>, ()> {
        if channels.is_empty() {
            return Ok(None);
        }
        let identity = self.connections[id].identity;
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

    fn poll_over_http(&mut self, id: usize, mut query: Query<'_>) {
        let Ok(Some(group)) = self.group_of(id, &mut query.channels) else { return };
        let is_long = !query.wait.is_zero();
        self.count_as(id, if is_long { Transport::LongPolling } else { Transport::Polling });
        let max = self.limits().max_reply_bytes;
        let replay = self.shared.distributor.read(&self.groups[group].channels, query.after, max);
        if replay.messages.is_empty() && replay.gap.is_none() && is_long {
            let connection = &mut self.connections[id];
            connection.seen = replay.up_to;
            connection.kind = Kind::HeldPoll;
            self.join_group(id, group);
            self.set_deadline(id, query.wait);
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
        let cursor = self.shared.distributor.cursor(self.connections[id].seen.max(self.fanned_out_to));
        let body = self.reply_body(&[], Some((None, cursor)));
        self.leave_group(id);
        self.send_reply(id, &body);
    }

    pub(super) fn send_reply(&mut self, id: usize, body: &[u8]) {
        let connection = &self.connections[id];
        let mut out = Vec::with_capacity(body.len() + 160);
        encode_ok(&mut out, "application/json", body, connection.has_origin, connection.keeps_alive);
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

    fn publish(&mut self, id: usize, mut query: Query<'_>, is_text: bool, body: &[u8]) {
        let Ok(text) = std::str::from_utf8(body) else {
            return self.answer_error(id, ErrorCode::BadJson, "the body is not UTF-8");
        };
        let data = if is_text {
            Cow::Owned(json_string(text))
        } else if is_json(text) {
            single_line(text.trim_ascii())
        } else {
            let hint = "the body is not JSON; send Content-Type: text/plain to publish it as a text";
            return self.answer_error(id, ErrorCode::BadJson, hint);
        };
        let first = query.channels[0].clone();
        // Before publishing: who is refused has done nothing.
        let group = match query.after.map(|_| self.group_of(id, &mut query.channels)).transpose() {
            Ok(group) => group.flatten(),
            Err(()) => return,
        };
        let cursor = match self.publish_for_client(&first, &data) {
            Ok(cursor) => cursor,
            Err((code, text)) => return self.answer_error(id, code, &text),
        };
        let Some(group) = group else {
            return self.answer(id, "application/json", cursor_frame(&cursor.to_string()).as_bytes());
        };
        let replay =
            self.shared.distributor.read(&self.groups[group].channels, query.after, self.limits().max_reply_bytes);
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
        let page = metrics::page(&self.shared.stats(), self.shared.counters.len());
        self.answer(id, CONTENT_TYPE, page.as_bytes());
    }

    fn answer_preflight(&mut self, id: usize) {
        let answer = "HTTP/1.1 204 No Content\r\nAccess-Control-Allow-Origin: *\r\n\
             Access-Control-Allow-Methods: GET, POST\r\nAccess-Control-Allow-Headers: content-type, last-event-id\r\n\
             Access-Control-Max-Age: 86400\r\n\r\n";
        self.send(id, answer.as_bytes());
        self.after_answer(id);
    }

    fn answer(&mut self, id: usize, content_type: &str, body: &[u8]) {
        let connection = &self.connections[id];
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        encode_ok(&mut out, content_type, body, connection.has_origin, connection.keeps_alive);
        if connection.is_head {
            out.truncate(out.len() - body.len());
        }
        self.send(id, &out);
        self.out = out;
        self.after_answer(id);
    }

    fn answer_error(&mut self, id: usize, code: ErrorCode, text: &str) {
        self.answer_error_with(id, code, text, "");
    }

    /// Answers with an error and a field of its own.
    fn answer_error_with(&mut self, id: usize, code: ErrorCode, text: &str, field: &str) {
        add(&self.counters.errors, 1);
        let connection = &self.connections[id];
        let mut answer = error_head(code, field);
        let body = error_body(code, text);
        encode_rest(&mut answer, "application/json", &body, connection.has_origin, connection.keeps_alive);
        if connection.is_head {
            answer.truncate(answer.len() - body.len());
        }
        self.send(id, &answer);
        self.after_answer(id);
    }

    /// Answers with an error after which nothing more can be understood on this connection.
    pub(super) fn refuse(&mut self, id: usize, code: ErrorCode, text: &str) {
        self.connections[id].keeps_alive = false;
        self.answer_error(id, code, text);
    }

    pub(super) fn after_answer(&mut self, id: usize) {
        let Some(connection) = self.connections.get(id) else { return };
        if connection.keeps_alive && self.drain_until.is_none() {
            self.set_deadline(id, self.limits().idle_timeout);
        } else {
            self.close_gently(id);
        }
    }
}

/// Whether something of the server's own is at a path.
pub fn is_known_path(path: &str) -> bool {
    ROUTES.iter().any(|(known, _, _)| *known == path)
}

/// What to say where nothing is.
pub fn known_paths() -> String {
    let known: Vec<&str> = ROUTES.iter().map(|(path, _, _)| *path).collect();
    format!("known paths: {}", known.join(" "))
}

fn bad(text: &'static str) -> Refusal {
    (ErrorCode::BadRequest, text.into())
}

fn is_text(head: &RequestHead<'_, '_>) -> bool {
    head.header("content-type").is_some_and(|v| v.trim_start().to_ascii_lowercase().starts_with("text/plain"))
}

fn encode_origin(out: &mut Vec<u8>, has_origin: bool) {
    if has_origin {
        out.extend_from_slice(b"Access-Control-Allow-Origin: *\r\n");
    }
}

/// Appends a whole answer of status 200.
pub fn encode_ok(out: &mut Vec<u8>, content_type: &str, body: &[u8], has_origin: bool, keeps_alive: bool) {
    out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    encode_rest(out, content_type, body, has_origin, keeps_alive);
}

fn encode_rest(out: &mut Vec<u8>, content_type: &str, body: &[u8], has_origin: bool, keeps_alive: bool) {
    out.extend_from_slice(b"Content-Type: ");
    out.extend_from_slice(content_type.as_bytes());
    out.extend_from_slice(b"\r\nCache-Control: no-store\r\n");
    encode_origin(out, has_origin);
    if !keeps_alive {
        out.extend_from_slice(b"Connection: close\r\n");
    }
    out.extend_from_slice(b"Content-Length: ");
    out.extend_from_slice(body.len().to_string().as_bytes());
    out.extend_from_slice(b"\r\n\r\n");
    out.extend_from_slice(body);
}

/// The whole answer to a connection that is closed unheard.
pub fn refusal(code: ErrorCode, text: &str) -> Vec<u8> {
    let mut out = error_head(code, "");
    encode_rest(&mut out, "application/json", &error_body(code, text), false, false);
    out
}

fn error_head(code: ErrorCode, field: &str) -> Vec<u8> {
    let status = code.http_status();
    let reason = reason(status);
    let mut out = format!("HTTP/1.1 {status} {reason}\r\n{field}").into_bytes();
    match code {
        ErrorCode::UpgradeRequired => out.extend_from_slice(b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"),
        _ if status == 503 => out.extend_from_slice(b"Retry-After: 1\r\n"),
        _ => {}
    }
    out
}

/// What a status means (RFC 9110, section 15); nothing for one that is rare.
pub fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        426 => "Upgrade Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "",
    }
}
