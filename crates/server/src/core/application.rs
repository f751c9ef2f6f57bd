//! What goes to the application and what comes back; and the channels that are its own.

use super::Core;
use crate::application::{Body, Fields, Request, Response};
use crate::config::Limits;
use crate::connection::Kind;
use crate::distributor::PublishError;
use crate::pool::{Answer, Caller, Errand, LargeBody};
use crate::stats::{add, shift};
use pushlab_session::answer::Head;
use pushlab_session::gate::Refusal;
use pushlab_session::queue::Verdict;
use pushlab_session::request::is_known_path;
use pushlab_wire::codes::ErrorCode;
use pushlab_wire::cursor::Cursor;
use pushlab_wire::http::{RequestHead, decode_path, split_target};
use std::sync::Arc;

/// Fields of an answer that say what we say ourselves.
const OWN_FIELDS: [&str; 5] =
    ["connection", "content-length", "content-type", "transfer-encoding", "x-content-type-options"];
/// Fields that an answer has if the application gives it no others.
const USUAL_FIELDS: [(&str, &str); 2] = [("Cache-Control", "no-store"), ("Referrer-Policy", "no-referrer")];

impl Core {
    /// Whether a request is for the application: it is for nothing of our own.
    pub(super) fn is_for_application(&self, target: &str) -> bool {
        self.caller.is_some() && !is_known_path(split_target(target).0)
    }

    pub(super) fn ask_application(&mut self, id: usize, method: &str, target: &str, fields: Fields, body: Vec<u8>) {
        self.connections[id].exchange.is_expected = false;
        if self.drain_until.is_some() {
            self.connections[id].exchange.keeps_alive = false;
            return self.answer_with_error(id, ErrorCode::Draining, "the server is stopping; connect again");
        }
        let method = if method == "HEAD" { "GET" } else { method };
        if let Err((code, text)) = self.shared.gate.may_ask(self.connections[id].exchange.identity, method != "GET") {
            return self.answer_with_error(id, code, &text);
        }
        let (path, query) = split_target(target);
        let Some(path) = decode_path(path) else {
            let text = "the path has an escape that is none; write % as %25";
            return self.answer_with_error(id, ErrorCode::BadRequest, text);
        };
        let Ok(peer) = self.connections[id].stream.socket().peer_addr() else { return self.close(id) };
        let origin = fields.iter().find(|(name, _)| name == "origin").map(|(_, value)| value.as_str());
        let is_tls = self.shared.tls.is_some() || self.shared.gate.site.is_secure(origin);
        let request = Request {
            method: method.to_owned(),
            path: path.into_owned(),
            query: query.map(|(name, value)| (name.into_owned(), value.into_owned())).collect(),
            fields,
            body,
            peer: peer.ip().to_canonical(),
            is_tls,
        };
        match self.caller.as_ref().and_then(|caller| caller.ask(id, request)) {
            Some(errand) => {
                self.connections[id].kind = Kind::Awaiting { errand };
                shift(&self.counters.awaiting, 1);
                self.set_deadline(id, self.limits().answer_timeout);
            }
            None => {
                let max = self.limits().max_waiting_requests;
                let text = format!("{max} requests wait for the application already; ask again in a moment");
                self.answer_with_error(id, ErrorCode::Overloaded, &text);
            }
        }
    }

    /// Sends the answers that have come, to those who still wait for them.
    pub(super) fn take_answers(&mut self) {
        while let Some(Answer { id, errand, response, body }) = self.caller.as_ref().and_then(Caller::answer) {
            let kind = self.connections.get(id).map(|c| &c.kind);
            if matches!(kind, Some(Kind::Awaiting { errand: awaited }) if Arc::ptr_eq(awaited, &errand)) {
                self.stop_awaiting(id);
                self.answer_with(id, &response, body);
            }
        }
    }

    /// The application has not answered in time.
    pub(super) fn end_waiting(&mut self, id: usize) {
        let timeout = self.limits().answer_timeout;
        let Some(errand) = self.stop_awaiting(id) else { return };
        let (code, text) = if errand.recall() {
            let text =
                format!("the application had not begun with this after {timeout:?}; nothing was done, ask again");
            (ErrorCode::Overloaded, text)
        } else if errand.is_change() {
            let text = format!(
                "the application did not answer within {timeout:?}; what it was asked for may be done, or may yet be: \
                 look before you ask again"
            );
            (ErrorCode::OutcomeUnknown, text)
        } else {
            (ErrorCode::Overloaded, format!("the application did not answer within {timeout:?}"))
        };
        self.answer_with_error(id, code, &text);
    }

    /// The connection waits no more; gives what it waited for.
    pub(super) fn stop_awaiting(&mut self, id: usize) -> Option<Arc<Errand>> {
        let kind = &mut self.connections[id].kind;
        if !matches!(kind, Kind::Awaiting { .. }) {
            return None;
        }
        shift(&self.counters.awaiting, -1);
        match std::mem::replace(kind, Kind::Http(None)) {
            Kind::Awaiting { errand } => Some(errand),
            _ => None,
        }
    }

    fn answer_with_error(&mut self, id: usize, code: ErrorCode, text: &str) {
        let mut response = Response::error(code, text);
        let body = std::mem::replace(&mut response.body, Body::Static(b""));
        self.answer_with(id, &response, body.into());
    }

    /// Sends an answer; the next request on the connection waits until it has left.
    fn answer_with(&mut self, id: usize, response: &Response, body: LargeBody) {
        add(&self.counters.errors, u64::from(response.status >= 400));
        let connection = &mut self.connections[id];
        // RFC 9110, section 6.4.1.
        let is_bodiless = matches!(response.status, 204 | 304);
        let size = (!is_bodiless).then_some(body.as_bytes().len());
        let head = encode_head(response, size, connection.exchange.keeps_alive);
        let body = if is_bodiless || connection.exchange.is_head { Body::Static(b"").into() } else { body };
        let Limits { write_timeout, take_timeout, .. } = self.shared.config.limits;
        connection.kind = Kind::Answering { until: self.now + take_timeout };
        let is_new = !connection.has_queued();
        let before = connection.queued();
        connection.unsent.get_or_insert_default().push_answer(&head, body);
        self.queued.change(before, connection.queued(), &self.counters);
        self.after_queueing(id, is_new, self.queued.within(Verdict::Stays { dropped: 0 }));
        self.set_deadline(id, write_timeout.min(take_timeout));
        self.flush(id);
    }

    /// The answer has left.
    pub(super) fn answered(&mut self, id: usize) {
        let connection = &mut self.connections[id];
        connection.kind = Kind::Http(None);
        if std::mem::take(&mut connection.has_unread) || !connection.carry.is_empty() {
            self.unfinished.push(id);
        }
        self.after_answer(id);
    }

    /// Publishes for a client.
    pub(super) fn publish_for_client(&mut self, channel: &str, data: &str) -> Result<Cursor, Refusal> {
        self.shared.gate.may_publish(channel)?;
        let cursor = self.shared.distributor.publish(channel, data, self.now).map_err(|error| {
            let code = match error {
                PublishError::Overloaded => ErrorCode::Overloaded,
                PublishError::BadChannel(_) => ErrorCode::BadChannel,
            };
            (code, error.to_string().into())
        })?;
        self.turn.received += 1;
        Ok(cursor)
    }
}

/// The fields of a head as an application gets them.
pub fn fields_of(head: &RequestHead<'_, '_>) -> Fields {
    head.fields().map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect()
}

/// Everything before the body, of which `size` is the length if there may be one.
fn encode_head(response: &Response, size: Option<usize>, keeps_alive: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let mut head = Head::new(&mut out, response.status);
    let is = |name: &str, other: &str| name.eq_ignore_ascii_case(other);
    let kind = Some(("Content-Type", &*response.content_type)).filter(|(_, kind)| !kind.is_empty());
    let usual = USUAL_FIELDS.into_iter().filter(|(usual, _)| !response.fields.iter().any(|(name, _)| is(name, usual)));
    let own = response.fields.iter().map(|(name, value)| (&**name, &**value));
    let own = own.filter(|(name, _)| !OWN_FIELDS.iter().any(|own| is(name, own)));
    for (name, value) in kind.into_iter().chain([("X-Content-Type-Options", "nosniff")]).chain(usual).chain(own) {
        if is_token(name) && !value.contains(['\r', '\n', '\0']) {
            head = head.field(name, value);
        }
    }
    head.end_before(size, keeps_alive);
    out
}

/// Whether a text may be the name of a field (RFC 9110, section 5.6.2).
fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_ours_where_it_must_be() {
        let response = Response::new(200, "text/html", Body::Static(b""))
            .with("Set-Cookie", "a=1")
            .with("set-cookie", "b=2")
            .with("X-Broken", "a\r\nSet-Cookie: c=3")
            .with("X Broken", "a")
            .with("", "a")
            .with("content-LENGTH", "7")
            .with("Transfer-Encoding", "chunked")
            .with("Connection", "upgrade")
            .with("cache-control", "max-age=60");
        let head = String::from_utf8(encode_head(&response, Some(3), false)).unwrap();
        assert_eq!(
            head,
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Content-Type-Options: nosniff\r\n\
             Referrer-Policy: no-referrer\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\ncache-control: max-age=60\r\n\
             Connection: close\r\nContent-Length: 3\r\n\r\n"
        );
        let bare = Response::new(299, "", Body::Static(b"")).with("Referrer-Policy", "origin");
        let head = String::from_utf8(encode_head(&bare, None, true)).unwrap();
        let expected = "HTTP/1.1 299 \r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n\
                        Referrer-Policy: origin\r\n\r\n";
        assert_eq!(head, expected);
    }
}
