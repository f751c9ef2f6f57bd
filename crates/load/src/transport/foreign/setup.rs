//! What makes requests those of another dialect.

use crate::connection::{self, Outgoing};
use crate::transport::Sending;
use crate::transport::headers::HeaderLines;
use pushlab_dialects::{Answer, Request};
use pushlab_wire::transport::Transport;
use pushlab_workload::plan::Speaks;

/// What makes requests those of another dialect: the same for all clients of a loop.
#[derive(Debug)]
pub(in crate::transport) struct ForeignSetup {
    pub authority: String,
    pub lines: HeaderLines,
    pub transport: Transport,
    pub speaks: Speaks,
    pub sending: Option<Sending>,
}

impl ForeignSetup {
    /// Appends a request of the dialect's.
    pub fn encode(&self, out: &mut Outgoing, request: &Request) {
        let lines = match (request.method.as_str(), request.answer) {
            ("GET", Answer::Events) => &self.lines.event_source,
            ("GET", _) => &self.lines.fetch,
            _ => &self.lines.post,
        };
        out.request(&connection::Request {
            method: &request.method,
            target: &[&request.target],
            authority: &self.authority,
            lines: &[lines, &request.headers],
            body: (request.method != "GET").then_some(request.body.as_bytes()),
        });
    }
}
