//! Answers over HTTP.

use super::{Exchange, State, Waiting};
use crate::answer::{Head, application_head, encode_preflight, error_body, retry_after};
use crate::effect::{Context, Effect};
use crate::rules::Rules;
use pushlab_wire::codes::ErrorCode;
use std::borrow::Cow;

/// What a publisher is told whose log does not answer.
pub const UNCONFIRMED: &str = "the log did not confirm this publication: it may have been published, or may be later; \
                               check before you publish again";

impl Exchange {
    /// Answers with status 200.
    pub fn answer(&mut self, content_type: &str, body: &[u8], cx: &mut Context<'_>) -> Effect {
        self.answer_coded(content_type, None, body, cx)
    }

    /// The same with a body in a coding of content.
    #[inline]
    pub(super) fn answer_coded(
        &mut self,
        content_type: &str,
        coding: Option<&str>,
        body: &[u8],
        cx: &mut Context<'_>,
    ) -> Effect {
        let rules = cx.rules;
        let head = Head::new(cx.output.head_out(self.is_http2), 200).coded(coding);
        self.end_answer(head, content_type, body.len(), rules);
        self.say_body(body, cx)
    }

    /// Ends the head of an answer whose body has this type and size.
    #[inline]
    fn end_answer(&self, head: Head<'_>, content_type: &str, size: usize, rules: &Rules) {
        head.end_before_body(content_type, size, rules.gate.audience(self.identity), self.keeps_alive);
    }

    /// Says the body, unless the answer has none.
    #[inline]
    fn say_body(&self, body: &[u8], cx: &mut Context<'_>) -> Effect {
        if !self.is_head {
            cx.output.bytes.extend_from_slice(body);
        }
        Effect::Answered
    }

    pub(super) fn answer_preflight(&self, cx: &mut Context<'_>) -> Effect {
        let readers = cx.rules.gate.asks_first(self.identity);
        encode_preflight(cx.output.head_out(self.is_http2), readers);
        Effect::Answered
    }

    /// Answers with an error.
    pub fn refuse(&mut self, code: ErrorCode, text: &str, cx: &mut Context<'_>) -> Effect {
        self.refuse_with(code, text, None, cx)
    }

    /// Answers with an error, and with the method that the path takes.
    pub(super) fn refuse_with(
        &mut self,
        code: ErrorCode,
        text: &str,
        allow: Option<&str>,
        cx: &mut Context<'_>,
    ) -> Effect {
        cx.output.counts.errors += 1;
        let rules = cx.rules;
        let after_ms = if code == ErrorCode::Draining { cx.return_after_ms() } else { None };
        let readers = rules.gate.readable_by(self.identity);
        let mut head = Head::of_error(cx.output.head_out(self.is_http2), code, after_ms, readers);
        if let Some(allow) = allow {
            head = head.field("Allow", allow);
        }
        let body = error_body(code, text, after_ms);
        self.end_answer(head, "application/json", body.len(), rules);
        self.say_body(&body, cx)
    }

    /// Answers with an error after which nothing more can be understood.
    pub(super) fn abort(&mut self, code: ErrorCode, text: &str, cx: &mut Context<'_>) -> Effect {
        self.keeps_alive = false;
        self.refuse(code, text, cx)
    }

    /// The answer has been given to the connection, which has taken all of it or not.
    pub fn answered(&mut self, is_taken: bool, cx: &mut Context<'_>) -> Effect {
        self.state = if is_taken { State::Http(None) } else { State::Answering };
        if let Some(standing) = &mut self.standing {
            standing.leave();
        }
        if self.is_http2 && !is_taken {
            // The stream ends behind its answer, for which the peer has as much time as on a connection that goes on.
            return Effect::Nothing;
        }
        if !self.keeps_alive || cx.is_draining() {
            return Effect::End;
        }
        if is_taken {
            cx.output.patience = Some(cx.rules.idle_timeout);
        }
        Effect::Nothing
    }

    // --- The application's ---

    /// Writes the head of the application's answer; says whether its body of `size` bytes is to follow. It then counts as
    /// [answered](Effect::Answered).
    pub fn respond(
        &mut self,
        status: u16,
        content_type: &str,
        fields: &[(Cow<'static, str>, Cow<'static, str>)],
        size: usize,
        cx: &mut Context<'_>,
    ) -> bool {
        self.waiting = None;
        cx.output.counts.errors += u64::from(status >= 400);
        // RFC 9110, section 6.4.1.
        let is_bodiless = matches!(status, 204 | 304);
        // Where all addresses of the pages are https, browsers need not try any other.
        let strict = cx.rules.gate.site.is_secure(None).then_some(("Strict-Transport-Security", "max-age=31536000"));
        let fields = fields.iter().map(|(name, value)| (&**name, &**value)).chain(strict);
        let size = (!is_bodiless).then_some(size);
        application_head(cx.output.head_out(self.is_http2), status, content_type, fields, size, self.keeps_alive);
        !is_bodiless && !self.is_head
    }

    /// Answers with an error where the application would have answered.
    pub fn respond_with_error(&mut self, code: ErrorCode, text: &str, cx: &mut Context<'_>) -> Effect {
        let after_ms = if code == ErrorCode::Draining { cx.return_after_ms() } else { None };
        let body = error_body(code, text, after_ms);
        let later = (code.http_status() == 503).then(|| ("Retry-After".into(), retry_after(after_ms).into()));
        if self.respond(code.http_status(), "application/json", later.as_slice(), body.len(), cx) {
            cx.output.bytes.extend_from_slice(&body);
        }
        Effect::Answered
    }

    /// The application has not answered in time: it had begun with the request or not, which may change something or not.
    pub fn not_responded(&mut self, was_begun: bool, is_change: bool, cx: &mut Context<'_>) -> Effect {
        let timeout = cx.rules.answer_timeout;
        let (code, text) = if !was_begun {
            let text =
                format!("the application had not begun with this after {timeout:?}; nothing was done, ask again");
            (ErrorCode::Overloaded, text)
        } else if is_change {
            let text = format!(
                "the application did not answer within {timeout:?}; what it was asked for may be done, or may yet be: \
                 look before you ask again"
            );
            (ErrorCode::OutcomeUnknown, text)
        } else {
            (ErrorCode::Overloaded, format!("the application did not answer within {timeout:?}"))
        };
        self.respond_with_error(code, &text, cx)
    }

    // --- The log's ---

    /// What was asked of the log failed, or has not come in time.
    pub fn not_settled(&mut self, cx: &mut Context<'_>) -> Effect {
        let (code, text) = match self.waiting.take() {
            None => return Effect::Nothing,
            // The client did not ask for this; each of its polls brings a cursor of its own.
            Some(Waiting::Position) => {
                self.subscriber.seen = cx.offered_to;
                return Effect::Nothing;
            }
            Some(Waiting::Publication(_) | Waiting::Frame) => (ErrorCode::OutcomeUnknown, UNCONFIRMED),
            Some(_) => (ErrorCode::Overloaded, "the log did not answer; try again in a moment"),
        };
        match self.state {
            State::WebSocket { .. } if !self.subscriber.is_catching_up => self.say_error(code, text, cx),
            // It would miss what it subscribed to: it comes again with its cursor.
            State::WebSocket { .. } | State::Stream(_) => self.overrun(cx),
            _ => self.refuse(code, text, cx),
        }
    }
}
