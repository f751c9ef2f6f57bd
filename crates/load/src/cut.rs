//! Why a connection cannot go on.

use pushlab_wire::deflate::InflateError;
use pushlab_wire::event_stream::StreamError;
use pushlab_wire::gzip::{GzipError, UnknownContentCoding};
use pushlab_wire::http::HttpError;
use pushlab_wire::lines::LineTooLong;
use pushlab_wire::native::BadFrame;
use pushlab_wire::websocket::FrameError;
use pushlab_wire::websocket::handshake::HandshakeError;
use pushlab_wire::websocket::permessage_deflate::BadAgreement;

/// Why a connection cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum Cut {
    /// The socket failed.
    #[error("connection failed: {0}")]
    Io(#[from] std::io::Error),
    /// The peer ended the connection.
    #[error("the server closed the connection")]
    Closed,
    /// The peer said goodbye.
    #[error("the server closed the WebSocket with {code} {reason}")]
    CloseFrame {
        /// Close code, 1005 where it gave none.
        code: u16,
        /// Its reason.
        reason: String,
    },
    /// The endless response ended.
    #[error("the server ended the stream")]
    StreamEnded,
    /// An answer other than success.
    #[error("{path} answered {status}{}{text}", if .text.is_empty() { "" } else { " " })]
    Status {
        /// What was asked.
        path: String,
        /// HTTP status.
        status: u16,
        /// Beginning of the body.
        text: String,
    },
    /// A head beyond the limit.
    #[error("a response head of more than {max} bytes")]
    HeadTooLarge {
        /// The limit.
        max: usize,
    },
    /// A body beyond the limit.
    #[error("a reply of more than {max} bytes")]
    ReplyTooLarge {
        /// The limit.
        max: usize,
    },
    /// An answer that nobody asked for.
    #[error("bytes after the answer to the last request")]
    Unasked,
    /// The peer has ended one stream of a connection.
    #[error("the server reset the stream: {0}")]
    Reset(&'static str),
    /// The peer has not looked at a request, and takes no more.
    #[error("the server sent GOAWAY ({0}) without processing the request")]
    GoingAway(&'static str),
    /// More at the same time than the peer allows.
    #[error(
        "the server allows {max} concurrent streams on an HTTP/2 connection, too few for the clients that share it: lower clients_per_host or raise the server's limit"
    )]
    TooManyStreams {
        /// How many it allows.
        max: u32,
    },
    /// Not HTTP/2.
    #[error("HTTP/2: {0}")]
    Http2(#[from] pushlab_http2::event::ConnectionError),
    /// HTTP/1.1 where HTTP/2 was asked for by prior knowledge.
    #[error(
        "the server answered in HTTP/1: it does not accept HTTP/2 without TLS (prior knowledge, RFC 9113, section 3.3); use TLS, or http_version = \"1.1\""
    )]
    NotHttp2,
    /// HTTP/2 without WebSockets.
    #[error(
        "the server does not support WebSockets over HTTP/2: its SETTINGS lack SETTINGS_ENABLE_CONNECT_PROTOCOL (RFC 8441); set http_version = \"1.1\""
    )]
    NoWebSockets,
    /// Text that is not UTF-8.
    #[error("text is not UTF-8")]
    NotUtf8,
    /// Not HTTP.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// No WebSocket.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// Not an answer to the extension that was offered.
    #[error("the WebSocket's handshake: {0}")]
    Agreement(#[from] BadAgreement),
    /// A compressed WebSocket message that is broken or too large.
    #[error("WebSocket: {0}")]
    Inflate(#[from] InflateError),
    /// A body in a coding that is not read.
    #[error(transparent)]
    ContentCoding(#[from] UnknownContentCoding),
    /// A coded body, though nothing asked for it: the subject would be measured as something else.
    #[error(
        "the server compressed a response (Content-Encoding: gzip) although the client did not ask for it: turn compression off there, or set compression_from"
    )]
    UnaskedCoding,
    /// A broken gzip body.
    #[error(transparent)]
    Gzip(#[from] GzipError),
    /// A broken WebSocket frame.
    #[error("WebSocket: {0}")]
    Frame(#[from] FrameError),
    /// Not the subject's dialect, or the subject refuses.
    #[error(transparent)]
    Refused(#[from] pushlab_dialects::Refused),
    /// Not the native protocol.
    #[error(transparent)]
    Native(#[from] BadFrame),
    /// A broken event stream.
    #[error("event stream: {0}")]
    EventStream(#[from] StreamError),
    /// A broken line stream.
    #[error("stream: {0}")]
    Line(#[from] LineTooLong),
}

impl Cut {
    /// After how long the server wants to see the client again, ms: what ours says where it refuses a request as it stops.
    pub fn after_ms(&self) -> Option<u64> {
        let Self::Status { status: 503, text, .. } = self else { return None };
        serde_json::from_str::<serde_json::Value>(text).ok()?["after_ms"].as_u64()
    }

    /// Whether whoever asks to be subscribed again would be answered the same.
    pub fn is_final(&self) -> bool {
        self.status().is_some_and(|status| is_redirect(status) || matches!(status, 401 | 403 | 404 | 426))
    }

    /// The status of an answer other than success.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Status { status, .. } | Self::Refused(pushlab_dialects::Refused::Status { status, .. }) => {
                Some(*status)
            }
            _ => None,
        }
    }

    /// An answer other than success, with the beginning of its body.
    pub fn refused(path: &str, status: u16, body: &[u8]) -> Self {
        /// Of JSON, which reports put into words, and can only if it is whole.
        const MAX_JSON_BYTES: usize = 1_000;
        const MAX_EXCERPT_BYTES: usize = 120;
        let max = if body.starts_with(b"{") { MAX_JSON_BYTES } else { MAX_EXCERPT_BYTES };
        let excerpt = String::from_utf8_lossy(&body[..body.len().min(max)]);
        // On one line, as tables and lists have it.
        let text = excerpt.split_whitespace().collect::<Vec<_>>().join(" ");
        Self::Status { path: path.to_owned(), status, text }
    }
}

/// Whether a status sends a client elsewhere, where it is not followed.
pub fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}
