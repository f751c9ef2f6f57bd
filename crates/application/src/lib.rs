//! Everything on the port that is no transport: pages and their interfaces, answered outside the event loops.
//!
//! An event loop reads a request whose path is none of its own whole, within the limits of every request, and gives it
//! to the [`Application`] on a thread of a small pool; the answer comes back to the loop, which writes it. So the
//! application may block on a disk or a database, and neither knows nor disturbs what the loops do.

pub mod back_end;
pub mod guarded;
pub mod pool;
pub mod requests;
pub mod routes;
pub mod secret;

use pushlab_access::Holder;
use pushlab_session::answer::error_body;
use pushlab_session::exchange::UNCONFIRMED;
use pushlab_session::gate::Shown;
use pushlab_wire::channel::{BadChannel, Channel};
use pushlab_wire::codes::ErrorCode;
use pushlab_wire::cursor::Cursor;
use pushlab_wire::native::MAX_JSON_DEPTH;
use serde::Serialize;
use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// Fields of a request's head: names in lower case, and values.
pub type Fields = Vec<(String, String)>;

/// What answers requests that are no transport's.
///
/// A list of applications is one too: each is asked in turn until one answers.
pub trait Application: Send + Sync {
    /// The server has started: what is published from now on reaches its subscribers. Called once, before any request.
    fn begin(&self, publisher: Publisher) {
        drop(publisher);
    }

    /// Answers a request; `None` if nothing of the application is at its path. Called on any of several threads. A
    /// panic is answered with status 500. The server does not end before this does.
    fn answer(&self, request: &Request) -> Option<Response>;

    /// Whether its answer may have to wait for something that can be away or at work for seconds, such as a database
    /// on another machine. Such requests have threads and a queue of their own, where they hold up nobody but each
    /// other. Called in an event loop: it looks at the request and does nothing else.
    fn may_wait(&self, request: &Request) -> bool {
        let _ = request;
        false
    }
}

impl Application for Vec<Arc<dyn Application>> {
    fn begin(&self, publisher: Publisher) {
        self.iter().for_each(|application| application.begin(publisher.clone()));
    }

    fn answer(&self, request: &Request) -> Option<Response> {
        self.iter().find_map(|application| application.answer(request))
    }

    fn may_wait(&self, request: &Request) -> bool {
        self.iter().any(|application| application.may_wait(request))
    }
}

impl fmt::Debug for dyn Application {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an application")
    }
}

/// A request, whole. What changes something, any but a `GET`, comes from a page of the server's own, or from no page: see
/// [`Site`](pushlab_session::site::Site).
#[derive(Debug, Clone)]
pub struct Request {
    /// `GET`, `POST`, … as it was sent, but `HEAD` comes as `GET`, and its answer leaves without the body.
    pub method: String,
    /// The path, percent-decoded, without the query. A path that cannot be decoded never comes here.
    pub path: String,
    /// Parameters of the query, decoded, in their order.
    pub query: Vec<(String, String)>,
    /// Fields of the head in their order, names in lower case.
    pub fields: Fields,
    /// The body, within the limit of the server.
    pub body: Vec<u8>,
    /// Who asks, or the proxy that asks for somebody if it is not trusted.
    pub peer: IpAddr,
    /// Whether its browser sent it over TLS: to this server, or to a proxy before it, by the page's origin or what
    /// [`Site`](pushlab_session::site::Site) says.
    pub is_tls: bool,
    /// Who sent it, by the credentials it carries, if there is an access file.
    pub person: Option<Shown>,
}

impl Request {
    /// The first field of this name, which is in lower case.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// Whether it may change something: any method but `GET` may.
    pub fn is_change(&self) -> bool {
        self.method != "GET"
    }

    /// The first parameter of this name.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

/// An answer. Added to it are its length, `Connection`, `X-Content-Type-Options: nosniff` and, where the application
/// names none, `Cache-Control: no-store`, `Referrer-Policy: no-referrer` and the policies that keep other sites' pages
/// from its windows and from loading it. Nothing is added that lets other sites' pages read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// HTTP status.
    pub status: u16,
    /// Value of `Content-Type`.
    pub content_type: Cow<'static, str>,
    /// Further fields. One that could not be sent as it is, with a line break or a name that is none, is left out, and
    /// so is one that would contradict what is added.
    pub fields: Vec<(Cow<'static, str>, Cow<'static, str>)>,
    /// The body, shared where it is the same for all.
    pub body: Body,
}

/// Bytes of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Part of the program.
    Static(&'static [u8]),
    /// Made for this answer.
    Own(Vec<u8>),
}

/// What an application may do in the server that it is part of.
pub trait Hub: Send + Sync {
    /// Publishes `data`, which is JSON in one line.
    ///
    /// # Errors
    /// [`PublishError`].
    fn publish(&self, channel: &str, data: &str) -> Result<Cursor, PublishError>;

    /// The cursor of the latest publication.
    fn head(&self) -> Cursor;

    /// What history has of a channel, as a reply: after a cursor, or all of it. `None`: the log did not answer in time.
    fn history(&self, channel: &Channel, after: Option<Cursor>) -> Option<Vec<u8>>;

    /// Ends the connections of an identity.
    fn dismiss(&self, holder: &Holder);

    /// Who is in a channel; `None` where the server does not tell.
    fn present(&self, channel: &Channel) -> Option<Present>;
}

/// Who is in a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Present {
    /// How many identities.
    pub count: usize,
    /// Some of them, in their order, if they are very many; otherwise all.
    pub identities: Vec<String>,
    /// What has changed since is told after this cursor.
    pub cursor: String,
}

/// Why a publication was not taken.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// An event loop is too far behind.
    #[error("the server is behind; try again in a moment")]
    Overloaded,
    /// The channel's name is invalid.
    #[error(transparent)]
    BadChannel(#[from] BadChannel),
    /// Its JSON is nested too deep for clients' parsers.
    #[error("the data is nested more than {MAX_JSON_DEPTH} levels deep; make it flatter, or publish it as text")]
    TooDeep,
    /// The log did not say whether it was published.
    #[error("{UNCONFIRMED}")]
    OutcomeUnknown,
}

impl PublishError {
    /// Its code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Overloaded => ErrorCode::Overloaded,
            Self::BadChannel(_) => ErrorCode::BadChannel,
            Self::TooDeep => ErrorCode::JsonTooDeep,
            Self::OutcomeUnknown => ErrorCode::OutcomeUnknown,
        }
    }
}

/// Publishes from within the server's process, to every channel, those that are kept from clients too.
#[derive(Clone)]
pub struct Publisher {
    hub: Arc<dyn Hub>,
}

impl Publisher {
    /// A publisher to this server.
    pub fn new(hub: Arc<dyn Hub>) -> Self {
        Self { hub }
    }

    /// Publishes `data`, which is JSON in one line. It does not count among the publications that the server received.
    pub fn publish(&self, channel: &str, data: &str) -> Result<Cursor, PublishError> {
        self.hub.publish(channel, data)
    }

    /// What history has of a channel: see [`Hub::history`].
    pub(crate) fn history(&self, channel: &Channel, after: Option<Cursor>) -> Option<Vec<u8>> {
        self.hub.history(channel, after)
    }

    /// Who is in a channel: see [`Hub::present`].
    pub(crate) fn present(&self, channel: &Channel) -> Option<Present> {
        self.hub.present(channel)
    }

    /// Ends the connections of an identity.
    pub(crate) fn dismiss(&self, holder: &Holder) {
        self.hub.dismiss(holder);
    }

    /// The cursor of the latest publication: who subscribes after it misses nothing that comes later.
    pub fn head(&self) -> Cursor {
        self.hub.head()
    }
}

impl Response {
    /// Status 200 and JSON.
    pub fn json(body: Vec<u8>) -> Self {
        Self::new(200, "application/json", Body::Own(body))
    }

    /// An error as all are: `{"error":CODE,"message":TEXT}` with the status of the code.
    pub fn error(code: ErrorCode, text: &str) -> Self {
        let response = Self::new(code.http_status(), "application/json", Body::Own(error_body(code, text, None)));
        if response.status == 503 { response.with("Retry-After", "1") } else { response }
    }

    /// An answer without further fields.
    pub fn new(status: u16, content_type: &'static str, body: Body) -> Self {
        Self { status, content_type: content_type.into(), fields: Vec::new(), body }
    }

    /// With one more field.
    pub fn with(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        self.fields.push((name.into(), value.into()));
        self
    }
}

impl Body {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Static(bytes) => bytes,
            Self::Own(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_with_an_application_can_be_printed() {
        let applications: Vec<Arc<dyn Application>> = Vec::new();
        let application: Arc<dyn Application> = Arc::new(applications);
        assert_eq!(format!("{:?}", Some(application)), "Some(an application)");
    }
}
