//! What a request asks for: its path, its parameters, its body.

use crate::framing::Framing;
use crate::gate::{Refusal, SUBPROTOCOL, subprotocols};
use pushlab_wire::codes::ErrorCode;
use pushlab_wire::cursor::Cursor;
use pushlab_wire::fields::number;
use pushlab_wire::http::{RequestHead, Version, split_target};
use pushlab_wire::native::{is_json, json_string, single_line};
use pushlab_wire::transport::Transport;
use pushlab_wire::websocket::{handshake, permessage_deflate};
use std::borrow::Cow;
use std::num::NonZeroU32;
use std::time::Duration;

/// The paths, and the method of each.
const PATHS: [(&str, &str, Path); 11] = [
    ("/ws", "GET", Path::WebSocket),
    ("/sse", "GET", Path::Events),
    ("/stream", "GET", Path::Stream),
    ("/poll", "GET", Path::Poll),
    ("/publish", "POST", Path::Publish),
    ("/echo", "POST", Path::Echo),
    ("/sse/echo", "GET", Path::EchoEvent),
    ("/ticket", "POST", Path::Ticket),
    ("/healthz", "GET", Path::Health),
    ("/stats", "GET", Path::Stats),
    ("/metrics", "GET", Path::Metrics),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Path {
    WebSocket,
    Events,
    Stream,
    Poll,
    Publish,
    Echo,
    EchoEvent,
    Ticket,
    Health,
    Stats,
    Metrics,
}

/// What a request asks for. Names of channels are as they were sent.
#[derive(Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// Which methods and fields other sites' pages may use.
    Preflight,
    /// To go on as a WebSocket.
    WebSocket {
        /// The value of the answer's `Sec-WebSocket-Accept`, which is for HTTP/1 alone.
        accept: Option<String>,
        /// How messages may be compressed, if they may.
        extension: Option<permessage_deflate::Agreed>,
        /// What it wants to receive.
        subscription: Subscription<'a>,
        /// What it is for.
        mode: Mode,
        /// The client wants to be told the server's heartbeat and limits.
        is_told: bool,
        /// The client offers our subprotocol, as browsers must that send a token.
        has_subprotocol: bool,
    },
    /// A stream without end.
    Stream {
        /// How deliveries are framed.
        framing: Framing,
        /// What it counts as.
        transport: Transport,
        /// What it wants to receive.
        subscription: Subscription<'a>,
        /// The first heartbeat is to come early.
        is_early: bool,
        /// The client wants to be told the server's heartbeat and limits.
        is_told: bool,
    },
    /// What is new.
    Poll {
        /// What it wants to receive.
        subscription: Subscription<'a>,
        /// How long the answer may wait for something new.
        wait: Duration,
        /// The client wants to be told when to come back where the server stops.
        is_told: bool,
    },
    /// The newest messages of a channel, whether or not the client has them.
    Newest {
        /// Its name.
        channel: Cow<'a, str>,
        /// How many; at least 1.
        count: u32,
    },
    /// To publish its body.
    Publish {
        /// The channel is the first; with a cursor the answer brings what is new in all of them.
        subscription: Subscription<'a>,
        /// The body is a text, not JSON.
        is_text: bool,
    },
    /// Its body back.
    Echo,
    /// Its data back, as an event.
    EchoEvent {
        /// As it was sent.
        data: Cow<'a, str>,
    },
    /// A ticket for its token.
    Ticket,
    /// Whether the server takes connections.
    Health,
    /// The counters, as JSON.
    Stats,
    /// The counters, for Prometheus.
    Metrics,
}

/// What a WebSocket is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Publications are pushed.
    Push,
    /// The client asks; nothing is pushed.
    Poll,
    /// Every message comes back as it was sent; it subscribes to nothing.
    Echo,
}

/// Channels, and the cursor after which their messages are wanted.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Subscription<'a> {
    /// Names.
    pub channels: Vec<Cow<'a, str>>,
    /// `None` is from now on.
    pub after: Option<Cursor>,
}

/// What a request may ask for at most.
#[derive(Debug, Clone, Copy)]
pub struct RequestRules {
    /// Channels.
    pub max_channels: usize,
    /// Longest time a poll is held.
    pub max_wait: Duration,
    /// Messages are compressed for clients that ask for it.
    pub compresses: bool,
    /// This client asks for gzip.
    pub takes_gzip: bool,
    /// WebSockets may be opened whose messages come back.
    pub echoes: bool,
    /// The server is stopping: only health checks and metrics are answered.
    pub is_draining: bool,
}

/// Why a request is not done.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused {
    /// The code.
    pub code: ErrorCode,
    /// What to tell.
    pub text: Cow<'static, str>,
    /// The method that the path takes, if another was used.
    pub allow: Option<&'static str>,
}

impl From<Refusal> for Refused {
    fn from((code, text): Refusal) -> Self {
        Self { code, text, allow: None }
    }
}

impl Path {
    /// Whether it is a health check or metrics: answered to HEAD too, as load balancers ask, and while the server stops.
    fn is_for_watchers(self) -> bool {
        matches!(self, Self::Health | Self::Stats | Self::Metrics)
    }

    /// Whether it opens a connection that lasts.
    fn is_subscription(self) -> bool {
        matches!(self, Self::WebSocket | Self::Events | Self::Stream)
    }

    fn needs_channel(self) -> bool {
        matches!(self, Self::Events | Self::Stream | Self::Poll | Self::Publish)
    }
}

/// Parameters of a request.
#[derive(Default)]
struct Parameters<'a> {
    subscription: Subscription<'a>,
    wait: Duration,
    is_script: bool,
    is_told: bool,
    is_early: bool,
    is_polling: bool,
    newest: Option<NonZeroU32>,
    data: Cow<'a, str>,
}

impl<'a> Request<'a> {
    /// Reads what the head of a request asks for.
    ///
    /// # Errors
    /// Why it cannot be done, as its answer is to tell.
    pub fn read(head: &RequestHead<'_, 'a>, rules: &RequestRules) -> Result<Self, Refused> {
        let (name, parameters) = split_target(head.target);
        if head.method == "OPTIONS" {
            return Ok(Self::Preflight);
        }
        if let Some(protocol) = head.protocol
            && !handshake::is_websocket(protocol)
        {
            let text = "unsupported :protocol; the only one supported is websocket";
            return Err((ErrorCode::Unsupported, text.into()).into());
        }
        let Some(&(name, method, path)) = PATHS.iter().find(|(known, _, _)| *known == name) else {
            return Err((ErrorCode::UnknownPath, known_paths().into()).into());
        };
        let is_echo = path == Path::Echo && rules.echoes && matches!(head.method, "GET" | "CONNECT");
        let (method, path) = if is_echo { ("GET", Path::WebSocket) } else { (method, path) };
        // A GET that cannot become a WebSocket has a refusal of its own.
        let is_connected = path == Path::WebSocket && head.version == Version::Http2 && head.method != method;
        let method = if is_connected { "CONNECT" } else { method };
        let is_check = head.method == "HEAD" && path.is_for_watchers();
        if head.method != method && !is_check {
            let text = format!("{name} takes {method}").into();
            return Err(Refused { code: ErrorCode::MethodNotAllowed, text, allow: Some(method) });
        }
        if method == "POST" && head.headers("content-encoding").any(|coding| !coding.eq_ignore_ascii_case("identity")) {
            let text = "Content-Encoding is not supported; send the body without it";
            return Err((ErrorCode::Unsupported, text.into()).into());
        }
        if rules.is_draining && !path.is_for_watchers() {
            return Err((ErrorCode::Draining, "the server is stopping; connect again".into()).into());
        }
        let Parameters { mut subscription, wait, is_script, is_told, is_early, is_polling, newest, data } =
            read_parameters(parameters, head, path, rules)?;
        let is_chunked = head.version == Version::Http11;
        let is_compressed = rules.takes_gzip;
        Ok(match path {
            Path::WebSocket => {
                let accept = match head.version {
                    Version::Http2 => handshake::check_connect(head).map(|()| None),
                    _ => handshake::accept(head).map(Some),
                };
                let accept =
                    accept.map_err(|error| Refused::from((ErrorCode::UpgradeRequired, error.to_string().into())))?;
                let offers = rules.compresses.then(|| head.headers("sec-websocket-extensions"));
                let extension = offers.and_then(permessage_deflate::agree);
                let mode = if is_polling { Mode::Poll } else { Mode::Push };
                let mode = if is_echo { Mode::Echo } else { mode };
                let has_subprotocol = subprotocols(head.fields()).any(|name| name == SUBPROTOCOL);
                Self::WebSocket { accept, extension, subscription, mode, is_told, has_subprotocol }
            }
            Path::Events => {
                let framing = Framing::Events { is_chunked, is_compressed };
                Self::Stream { framing, transport: Transport::Sse, subscription, is_early, is_told }
            }
            Path::Stream => {
                let framing = match is_script {
                    true => Framing::Script { is_chunked },
                    false => Framing::Lines { is_chunked, is_compressed },
                };
                Self::Stream { framing, transport: Transport::HttpStreaming, subscription, is_early, is_told }
            }
            Path::Poll => match newest {
                Some(count) => Self::Newest { channel: subscription.channels.swap_remove(0), count: count.get() },
                None => Self::Poll { subscription, wait, is_told },
            },
            Path::Publish => Self::Publish { subscription, is_text: is_text(head) },
            Path::Echo => Self::Echo,
            Path::EchoEvent => Self::EchoEvent { data },
            Path::Ticket => Self::Ticket,
            Path::Health => Self::Health,
            Path::Stats => Self::Stats,
            Path::Metrics => Self::Metrics,
        })
    }
}

fn read_parameters<'a>(
    parameters: impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)>,
    head: &RequestHead<'_, 'a>,
    path: Path,
    rules: &RequestRules,
) -> Result<Parameters<'a>, Refusal> {
    let mut read = Parameters::default();
    let mut after = None;
    for (name, value) in parameters {
        match &*name {
            "channel" => read.subscription.channels.push(value),
            "after" => after = Some(value),
            "wait" => {
                let seconds: f64 = value.parse().map_err(|_| bad("wait is a number of seconds"))?;
                let wait =
                    Duration::try_from_secs_f64(seconds).map_err(|_| bad("wait is a number of seconds from 0"))?;
                read.wait = wait.min(rules.max_wait);
            }
            "early" if value == "1" => read.is_early = true,
            "early" => return Err(bad("early is 1, or absent")),
            "format" if value == "script" => read.is_script = true,
            "format" if value == "ndjson" => {}
            "format" => return Err(bad("format is ndjson or script")),
            // On the other paths it is unknown, as it was before there was a second version.
            "v" if path == Path::Poll => read.is_told = value == "2",
            "v" if !path.is_subscription() => {}
            "v" if value == "2" => read.is_told = true,
            "v" if value == "1" => read.is_told = false,
            "v" => return Err(bad("v is 1 or 2")),
            "newest" if path != Path::Poll => {}
            "newest" => {
                let count = number(value.as_bytes()).and_then(|count| NonZeroU32::new(count.try_into().ok()?));
                read.newest = Some(count.ok_or_else(|| bad("newest is a number of messages, at least 1"))?);
            }
            "data" if path == Path::EchoEvent => read.data = value,
            "mode" if value == "poll" => read.is_polling = true,
            "mode" => return Err(bad("mode is poll, or absent")),
            _ => {}
        }
    }
    if path == Path::Events {
        after = head.header("last-event-id").filter(|id| !id.is_empty()).map(Cow::Borrowed).or(after);
    }
    if let Some(text) = after.filter(|text| !text.is_empty()) {
        read.subscription.after = Some(Cursor::parse(&text).map_err(|e| (ErrorCode::BadCursor, e.to_string().into()))?);
    }
    if path.needs_channel() && read.subscription.channels.is_empty() {
        return Err((ErrorCode::BadChannel, "name a channel: ?channel=NAME".into()));
    }
    let has_more = read.subscription.channels.len() != 1 || read.subscription.after.is_some() || !read.wait.is_zero();
    if read.newest.is_some() && has_more {
        return Err(bad("newest is asked for with one channel, and without after and wait"));
    }
    let max = rules.max_channels;
    if read.subscription.channels.len() > max {
        return Err((ErrorCode::TooManyChannels, format!("at most {max} channels a connection").into()));
    }
    Ok(read)
}

/// What is to be published: a body as one line of JSON.
///
/// # Errors
/// `bad-json`, with what to tell.
pub fn data_of(body: &[u8], is_text: bool) -> Result<Cow<'_, str>, Refusal> {
    let Ok(text) = std::str::from_utf8(body) else {
        return Err((ErrorCode::BadJson, "the body is not UTF-8".into()));
    };
    if is_text {
        Ok(json_string(text).into())
    } else if is_json(text) {
        Ok(single_line(text.trim_ascii()))
    } else {
        let hint = "the body is not JSON; send Content-Type: text/plain to publish it as a text";
        Err((ErrorCode::BadJson, hint.into()))
    }
}

/// Whether something of the server's own is at a path.
pub fn is_known_path(path: &str) -> bool {
    PATHS.iter().any(|(known, _, _)| *known == path)
}

/// What to say where nothing is.
pub fn known_paths() -> String {
    let known: Vec<&str> = PATHS.iter().map(|(path, _, _)| *path).collect();
    format!("known paths: {}", known.join(" "))
}

fn bad(text: &'static str) -> Refusal {
    (ErrorCode::BadRequest, text.into())
}

fn is_text(head: &RequestHead<'_, '_>) -> bool {
    let kind = head.header("content-type").and_then(|value| value.as_bytes().first_chunk());
    kind.is_some_and(|kind: &[u8; 10]| kind.eq_ignore_ascii_case(b"text/plain"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_wire::http::{Headers, parse_request};

    const RULES: RequestRules = RequestRules {
        max_channels: 2,
        max_wait: Duration::from_secs(60),
        compresses: false,
        takes_gzip: false,
        echoes: false,
        is_draining: false,
    };

    fn read(request: &str, rules: &RequestRules) -> Result<String, (ErrorCode, Option<&'static str>)> {
        let text = format!("{request}\r\n\r\n");
        let mut headers = Headers::default();
        let (head, _) = parse_request(text.as_bytes(), &mut headers).unwrap().unwrap();
        Request::read(&head, rules).map(|r| format!("{r:?}")).map_err(|refused| (refused.code, refused.allow))
    }

    #[test]
    fn paths_parameters_and_fields_say_what_is_asked_for() {
        for (request, expected) in [
            (
                "GET /sse?channel=a&channel=b%2Dc&early=1 HTTP/1.1",
                "Stream { framing: Events { is_chunked: true, is_compressed: false }, transport: Sse, subscription: Subscription { channels: [\"a\", \"b-c\"], after: None }, is_early: true, is_told: false }",
            ),
            (
                "GET /stream?channel=a&format=script HTTP/1.0",
                "Stream { framing: Script { is_chunked: false }, transport: HttpStreaming, subscription: Subscription { channels: [\"a\"], after: None }, is_early: false, is_told: false }",
            ),
            (
                "GET /poll?channel=a&wait=90 HTTP/1.1",
                "Poll { subscription: Subscription { channels: [\"a\"], after: None }, wait: 60s, is_told: false }",
            ),
            ("GET /sse/echo?data=%7B%7D HTTP/1.1", "EchoEvent { data: \"{}\" }"),
            ("GET /poll?channel=a&newest=1 HTTP/1.1", "Newest { channel: \"a\", count: 1 }"),
            (
                "POST /publish?channel=a HTTP/1.1\r\nContent-Type: Text/Plain; charset=utf-8",
                "Publish { subscription: Subscription { channels: [\"a\"], after: None }, is_text: true }",
            ),
            ("HEAD /healthz HTTP/1.1", "Health"),
            ("GET http://127.0.0.1:8000/healthz HTTP/1.1", "Health"),
            ("GET HTTP://h/sse/echo?data=1 HTTP/1.1", "EchoEvent { data: \"1\" }"),
            ("OPTIONS /anything HTTP/1.1", "Preflight"),
        ] {
            assert_eq!(read(request, &RULES).as_deref(), Ok(expected), "{request}");
        }
        // An event source's own field counts before the parameter.
        let cursor = Cursor::parse("e.7").unwrap();
        let read = read("GET /sse?channel=a&after=e.1 HTTP/1.1\r\nLast-Event-ID: e.7", &RULES).unwrap();
        assert!(read.contains(&format!("{cursor:?}")), "{read}");
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        let draining = RequestRules { is_draining: true, ..RULES };
        for (request, rules, code, allow) in [
            ("GET /nowhere HTTP/1.1", &RULES, ErrorCode::UnknownPath, None),
            ("GET /publish?channel=a HTTP/1.1", &RULES, ErrorCode::MethodNotAllowed, Some("POST")),
            ("HEAD /poll?channel=a HTTP/1.1", &RULES, ErrorCode::MethodNotAllowed, Some("GET")),
            ("GET /poll?channel=a HTTP/1.1", &draining, ErrorCode::Draining, None),
            ("GET /poll HTTP/1.1", &RULES, ErrorCode::BadChannel, None),
            ("GET /poll?channel=a&channel=b&channel=c HTTP/1.1", &RULES, ErrorCode::TooManyChannels, None),
            ("GET /poll?channel=a&after=x HTTP/1.1", &RULES, ErrorCode::BadCursor, None),
            ("GET /poll?channel=a&wait=-1 HTTP/1.1", &RULES, ErrorCode::BadRequest, None),
            ("GET /poll?channel=a&wait=soon HTTP/1.1", &RULES, ErrorCode::BadRequest, None),
            ("POST /sse/echo?data=1 HTTP/1.1", &RULES, ErrorCode::MethodNotAllowed, Some("GET")),
            ("GET /poll?channel=a&newest=0 HTTP/1.1", &RULES, ErrorCode::BadRequest, None),
            ("GET /poll?channel=a&newest=%2B1 HTTP/1.1", &RULES, ErrorCode::BadRequest, None),
            ("GET /poll?channel=a&newest=all HTTP/1.1", &RULES, ErrorCode::BadRequest, None),
            ("GET /poll?channel=a&newest=1&after=e.7 HTTP/1.1", &RULES, ErrorCode::BadRequest, None),
            ("GET /poll?channel=a&newest=1&wait=1 HTTP/1.1", &RULES, ErrorCode::BadRequest, None),
            ("GET /poll?channel=a&channel=b&newest=1 HTTP/1.1", &RULES, ErrorCode::BadRequest, None),
            ("GET /stream?channel=a&format=xml HTTP/1.1", &RULES, ErrorCode::BadRequest, None),
            ("GET /sse?channel=a&v=3 HTTP/1.1", &RULES, ErrorCode::BadRequest, None),
            ("GET /ws HTTP/1.1", &RULES, ErrorCode::UpgradeRequired, None),
        ] {
            assert_eq!(read(request, rules), Err((code, allow)), "{request}");
        }
        assert!(read("GET /healthz HTTP/1.1", &draining).is_ok());
    }

    #[test]
    fn bodies_become_one_line_of_json() {
        assert_eq!(data_of(b" {\"a\":\n1} ", false).unwrap(), "{\"a\": 1}");
        assert_eq!(data_of(b"\"a\n", true).unwrap(), "\"\\\"a\\n\"");
        assert_eq!(data_of(b"", true).unwrap(), "\"\"");
        for (body, is_text) in [(&b"{"[..], false), (b"", false), (b"\xff", true), (b"\xff", false)] {
            assert_eq!(data_of(body, is_text).unwrap_err().0, ErrorCode::BadJson);
        }
    }
}
