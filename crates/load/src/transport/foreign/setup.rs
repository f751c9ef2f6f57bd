//! What makes requests those of another dialect.

use crate::connection::{self, Outgoing};
use crate::transport::Sending;
use crate::transport::headers::HeadFields;
use pushlab_dialects::{Answer, Request};
use pushlab_wire::transport::Transport;
use pushlab_workload::plan::Speaks;

/// What makes requests those of another dialect: the same for all clients of a loop.
#[derive(Debug)]
pub(in crate::transport) struct ForeignSetup {
    pub scheme: &'static str,
    pub authority: String,
    pub headers: HeadFields,
    pub transport: Transport,
    pub speaks: Speaks,
    pub sending: Option<Sending>,
}

impl ForeignSetup {
    /// Appends a request of the dialect's.
    pub fn encode(&self, out: &mut Outgoing, request: &Request) {
        let body = (request.method != "GET").then_some(request.body.as_bytes());
        out.request(&connection::Request { body, ..self.request(request, &[&request.target]) });
    }

    /// A request of the dialect's without its body. Only HTTP/1.1 carries it: see [`connection::Request::lines`].
    pub fn request<'a>(&'a self, request: &'a Request, target: &'a [&'a str]) -> connection::Request<'a> {
        let fields = match (request.method.as_str(), request.answer) {
            (_, Answer::WebSocket) => &self.headers.websocket,
            ("GET", Answer::Events) => &self.headers.event_source,
            ("GET", _) => &self.headers.fetch,
            _ => &self.headers.post,
        };
        connection::Request {
            method: &request.method,
            scheme: self.scheme,
            authority: &self.authority,
            target,
            fields,
            lines: &request.headers,
            body: None,
        }
    }
}
