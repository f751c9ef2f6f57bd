//! One client's end of a dialect: what it is told, and what it answers.

use pushlab_wire::transport::Transport;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a client sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sending {
    /// A publication.
    Publish,
    /// An echo, which comes back to the sender alone.
    Echo,
}

/// Who a client is and what it wants: the same for as long as a protocol client lives, but for `publish_to`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topic {
    /// How bytes travel.
    pub transport: Option<Transport>,
    /// What the manifest says of the server's routes: `/socket.io/`.
    pub path: String,
    /// Which of several ways the dialect has over that transport; empty for its usual one.
    pub how: String,
    /// Channels to subscribe to; none for a client that only publishes.
    pub channels: Vec<String>,
    /// The channel of its publications.
    pub publish_to: String,
    /// What it is going to send; `None` for a client that is silent.
    pub sending: Option<Sending>,
    /// How long a long poll may be held, seconds.
    pub wait_s: u64,
    /// Whether each poll at an interval is followed by a question for the list of users.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub user_list: bool,
    /// How many of the newest messages polls ask for, whether or not the client has them; `None`: for what is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<u32>,
    /// Whether an echo is a request of its own, answered with an event stream (`sse` alone).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub echoes_in_streams: bool,
    /// Drawn anew for every connection: for session names.
    pub random: u64,
}

/// Over which of a client's connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Over {
    /// The one that receives: one request at a time, and none while a stream or a WebSocket is open.
    Down,
    /// The one that posts: one request at a time, later ones wait.
    Up,
}

/// How an answer is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// As a whole: [`ProtocolClient::reply`].
    Whole,
    /// As the handshake of a WebSocket: [`ProtocolClient::opened`], then a [`ProtocolClient::text`] for each message.
    WebSocket,
    /// As an event stream: `opened`, then a `text` for each event.
    Events,
    /// As endless text: `opened`, then a `text` for each line.
    Lines,
}

/// A request, without what HTTP itself demands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// `GET`, `POST` …
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Further header lines, each with its end.
    pub headers: String,
    /// The body; empty for none.
    pub body: String,
    /// How its answer is to be read.
    pub answer: Answer,
}

impl Request {
    /// A GET that is answered at once or when there is something.
    pub fn get(target: impl Into<String>) -> Self {
        let (method, target) = ("GET".to_owned(), target.into());
        Self { method, target, headers: String::new(), body: String::new(), answer: Answer::Whole }
    }

    /// A POST of a body of a type.
    pub fn post(target: impl Into<String>, content_type: &str, body: impl Into<String>) -> Self {
        let headers = format!("Content-Type: {content_type}\r\n");
        Self { method: "POST".to_owned(), headers, body: body.into(), ..Self::get(target) }
    }

    /// The same with a further header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.extend([name, ": ", value, "\r\n"]);
        self
    }

    /// The same, as the last of its connection: for servers that close it although they say that they keep it.
    #[must_use]
    pub fn as_last(self) -> Self {
        self.with_header("Connection", "close")
    }

    /// Whether it is the last of its connection.
    pub fn is_last(&self) -> bool {
        self.headers.lines().any(|line| line == "Connection: close")
    }

    /// The same, its answer to be read in another way.
    #[must_use]
    pub fn read_as(self, answer: Answer) -> Self {
        Self { answer, ..self }
    }
}

/// A whole answer.
#[derive(Debug, Clone, Copy)]
pub struct Reply<'a> {
    /// HTTP status.
    pub status: u16,
    /// Those of [`Dialect::wanted_headers`] that it had, in the order of the answer.
    pub headers: &'a [(&'static str, String)],
    /// The body.
    pub body: &'a str,
}

impl Reply<'_> {
    /// Refuses an answer that is no success.
    ///
    /// # Errors
    /// [`Refused::Status`] but for 200 to 299.
    pub fn expect_success(&self, what: &str) -> Result<(), Refused> {
        match self.status {
            200..=299 => Ok(()),
            status => Err(Refused::Status { what: what.to_owned(), status, text: excerpt(self.body) }),
        }
    }

    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }
}

/// A WebSocket message, an event or a line.
#[derive(Debug, Clone, Copy)]
pub struct Incoming<'a> {
    /// The message, the event's data, the line without its end.
    pub text: &'a str,
    /// The event's name; empty for others.
    pub event: &'a str,
    /// The last event's id; empty for others.
    pub id: &'a str,
}

/// What a protocol client reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice<'a> {
    /// Whatever is published from now on will come.
    Subscribed,
    /// A delivery's data, or text around it in which its stamp stands.
    Message(&'a str),
    /// The same, where the server says that it has it from another server of its cluster.
    Relayed(&'a str),
    /// An answer to an echo.
    Echo(&'a str),
    /// The server says that messages are gone.
    Gap,
    /// The server complains; the protocol client goes on.
    Complaint(&'a str),
}

/// Something to send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// A request.
    Ask(Over, Request),
    /// A text message on the WebSocket.
    Frame(String),
}

/// Why a protocol client cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// An answer that is no success.
    #[error("{what} was answered with {status} {text}")]
    Status {
        /// What was asked.
        what: String,
        /// HTTP status.
        status: u16,
        /// Beginning of the body.
        text: String,
    },
    /// Something that the dialect does not know here.
    #[error("{what}: {text}")]
    Unexpected {
        /// What was expected or is wrong.
        what: &'static str,
        /// Beginning of what came.
        text: String,
    },
    /// The dialect has no such way.
    #[error("{dialect} has no way {how:?} over {transport}")]
    NoSuchWay {
        /// The dialect.
        dialect: &'static str,
        /// Of the manifest.
        how: String,
        /// Of the manifest.
        transport: Transport,
    },
}

impl Refused {
    /// What came is not what was expected.
    pub fn unexpected(what: &'static str, came: &str) -> Self {
        Self::Unexpected { what, text: excerpt(came) }
    }
}

fn excerpt(text: &str) -> String {
    const MAX_CHARS: usize = 120;
    text.trim().chars().take(MAX_CHARS).collect()
}

/// One turn of a protocol client: who it is about, and where its answers go.
pub struct Turn<'a> {
    /// Who the client is.
    pub topic: &'a Topic,
    pub(crate) steps: &'a mut Vec<Step>,
    pub(crate) sink: &'a mut dyn FnMut(Notice<'_>),
}

impl<'a> Turn<'a> {
    /// A turn whose steps are appended to `steps`.
    pub fn new(topic: &'a Topic, steps: &'a mut Vec<Step>, sink: &'a mut dyn FnMut(Notice<'_>)) -> Self {
        Self { topic, steps, sink }
    }

    /// Sends a request.
    pub fn ask(&mut self, over: Over, request: Request) {
        self.steps.push(Step::Ask(over, request));
    }

    /// Sends a text message on the WebSocket, which must be open.
    pub fn send(&mut self, text: impl Into<String>) {
        self.steps.push(Step::Frame(text.into()));
    }

    /// Reports what the client has learned or received.
    #[inline]
    pub fn report(&mut self, notice: Notice<'_>) {
        (self.sink)(notice);
    }
}

impl fmt::Debug for Turn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").field("topic", self.topic).field("steps", self.steps).finish_non_exhaustive()
    }
}

/// One client's end of a dialect, without sockets.
///
/// On every new receiving connection it is opened; then it asks over [`Over::Down`] until it is subscribed: the next
/// request follows from the reply to the last. What it asks over [`Over::Up`] waits for what is under way there.
pub trait ProtocolClient: fmt::Debug + Send {
    /// A receiving connection is about to be opened, for the first time or after a cut: the first request on it. What
    /// is known of an earlier connection (a session, a position) may be used to resume.
    ///
    /// # Errors
    /// [`Refused::NoSuchWay`].
    fn open(&mut self, turn: &mut Turn<'_>) -> Result<(), Refused>;

    /// A WebSocket stands, or the head of a stream has come.
    ///
    /// # Errors
    /// When the client cannot go on.
    fn opened(&mut self, turn: &mut Turn<'_>) -> Result<(), Refused> {
        let _ = turn;
        Ok(())
    }

    /// A request was answered, whatever the status. Where it asks nothing more over [`Over::Down`], the next that is
    /// asked there is what [`Self::poll`] says.
    ///
    /// # Errors
    /// When the client cannot go on.
    fn reply(&mut self, over: Over, reply: &Reply<'_>, turn: &mut Turn<'_>) -> Result<(), Refused> {
        let (_, _) = (over, turn);
        reply.expect_success("a request")
    }

    /// A WebSocket message, an event or a line came.
    ///
    /// # Errors
    /// When the client cannot go on.
    fn text(&mut self, incoming: &Incoming<'_>, turn: &mut Turn<'_>) -> Result<(), Refused> {
        let _ = turn;
        Err(Refused::unexpected("a message where none is to come", incoming.text))
    }

    /// A stream ended in good order. `true` if that is how the dialect does it, and the request that goes on has been
    /// asked; otherwise the connection is cut.
    fn ended(&mut self, turn: &mut Turn<'_>) -> bool {
        let _ = turn;
        false
    }

    /// It is time for the next poll, of a transport that polls: one request over [`Over::Down`].
    fn poll(&mut self, turn: &mut Turn<'_>) {
        let _ = turn;
    }

    /// How a publication or an echo goes to the server: a frame or a POST, as [`Dialect::publishes_in_frames`] says.
    /// `data` is a JSON text. `topic.publish_to` is the publication's channel.
    fn publish(&mut self, sending: Sending, data: &str, topic: &Topic) -> Step;
}
