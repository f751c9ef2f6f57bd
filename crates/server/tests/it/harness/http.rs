//! A client that asks.

use super::http2::Stream;
use super::{Dial, connect};
use pushlab_wire::http::{BodyDecoder, BodyKind, Headers, parse_response};
use rustls::ClientConnection;
use std::io::{Read, Write};
use std::net::TcpStream;

/// One connection for requests.
pub struct Http {
    pub socket: TcpStream,
    tls: Option<ClientConnection>,
    /// It asks on streams of HTTP/2, and the socket is that of their connection.
    pub stream: Option<Stream>,
    pub buffer: Vec<u8>,
    has_body: bool,
    /// Errors have a body, which is waited for, even if other responses are not.
    wants_refusals: bool,
    /// The connection may end without the farewell of TLS.
    pub may_be_cut: bool,
}

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    /// As it came.
    pub head: String,
    pub body: String,
}

impl Http {
    pub fn connect(to: impl Into<Dial>) -> Self {
        let to = to.into();
        if let Some(http2) = to.http2 {
            let socket = http2.socket();
            let stream = Some(Stream::new(http2));
            return Self {
                socket,
                tls: None,
                stream,
                buffer: Vec::new(),
                has_body: true,
                wants_refusals: false,
                may_be_cut: false,
            };
        }
        let tls = to.tls.map(|config| ClientConnection::new(config, "localhost".try_into().unwrap()).unwrap());
        Self {
            socket: connect(to.address),
            tls,
            stream: None,
            buffer: Vec::new(),
            has_body: true,
            wants_refusals: false,
            may_be_cut: false,
        }
    }

    pub fn send(&mut self, text: &str) {
        self.try_send(text.as_bytes()).unwrap();
    }

    /// Sends to a server that may have closed.
    pub fn try_send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        if let Some(stream) = &mut self.stream {
            return stream.send(bytes);
        }
        match &mut self.tls {
            None => self.socket.write_all(bytes),
            Some(tls) => {
                let mut stream = rustls::Stream::new(tls, &mut self.socket);
                stream.write_all(bytes)?;
                stream.flush()
            }
        }
    }

    pub fn get(&mut self, target: &str) -> Response {
        self.send(&format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n"));
        self.response()
    }

    /// Asks for the head alone.
    pub fn head(&mut self, target: &str) -> Response {
        self.send(&format!("HEAD {target} HTTP/1.1\r\nHost: h\r\n\r\n"));
        self.head_of_response()
    }

    /// The head of the next response, which has no body, or one that is not waited for.
    pub fn head_of_response(&mut self) -> Response {
        self.has_body = false;
        let response = self.response();
        self.has_body = true;
        response
    }

    /// The head of the next response, or, if it is an error, the whole of it.
    pub fn head_or_refusal(&mut self) -> Response {
        self.wants_refusals = true;
        let response = self.head_of_response();
        self.wants_refusals = false;
        response
    }

    pub fn post(&mut self, target: &str, body: &str) -> Response {
        self.send(&format!("POST {target} HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
        self.response()
    }

    /// Publishes and gives the offset.
    pub fn publish(&mut self, channel: &str, data: &str) -> u64 {
        let response = self.post(&format!("/publish?channel={channel}"), data);
        assert_eq!(response.status, 200, "{response:?}");
        let cursor = response.body.strip_prefix("[\"cursor\",\"").and_then(|r| r.strip_suffix("\"]"));
        super::offset(cursor.expect(&response.body))
    }

    /// Publishes the same so many times and gives the last offset.
    pub fn publish_times(&mut self, count: usize, channel: &str, data: &str) -> u64 {
        (0..count).map(|_| self.publish(channel, data)).last().unwrap()
    }

    /// The next whole response.
    pub fn response(&mut self) -> Response {
        self.try_response().expect("the server closed before it answered")
    }

    /// The next whole response; `None` if the server closes before it begins.
    pub fn try_response(&mut self) -> Option<Response> {
        if let Some(stream) = &mut self.stream {
            let (status, head) = stream.head()?;
            while self.fill() {}
            assert!(self.stream().is_complete(), "a torn body");
            let body = String::from_utf8(std::mem::take(&mut self.buffer)).unwrap();
            return Some(Response { status, head, body });
        }
        let (mut response, size, kind) = loop {
            let mut headers = Headers::default();
            if let Some((head, size)) = parse_response(&self.buffer, &mut headers).unwrap() {
                let text = String::from_utf8(self.buffer[..size].to_vec()).unwrap();
                break (Response { status: head.status, head: text, body: String::new() }, size, head.body);
            }
            if !self.fill() {
                assert!(self.buffer.is_empty(), "a torn response: {:?}", String::from_utf8_lossy(&self.buffer));
                return None;
            }
        };
        self.buffer.drain(..size);
        let has_body = self.has_body || self.wants_refusals && response.status >= 400;
        let mut decoder = BodyDecoder::new(if has_body { kind } else { BodyKind::Length(0) });
        while !decoder.is_done() {
            let step = decoder.decode(&self.buffer).unwrap();
            response.body.push_str(std::str::from_utf8(step.data).unwrap());
            let consumed = step.consumed;
            self.buffer.drain(..consumed);
            if !decoder.is_done() && self.buffer.is_empty() && !self.fill() {
                assert_eq!(kind, BodyKind::UntilClose, "a torn body");
                break;
            }
        }
        Some(response)
    }

    /// Reads more; says whether there was any before the end.
    pub fn fill(&mut self) -> bool {
        if let Some(stream) = &mut self.stream {
            return stream.fill(&mut self.buffer);
        }
        let mut bytes = [0; 16 * 1024];
        let result = match &mut self.tls {
            None => self.socket.read(&mut bytes),
            Some(tls) => rustls::Stream::new(tls, &mut self.socket).read(&mut bytes),
        };
        match result {
            Ok(n) => {
                self.buffer.extend_from_slice(&bytes[..n]);
                n > 0
            }
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => false,
            Err(e) if self.may_be_cut && e.kind() == std::io::ErrorKind::UnexpectedEof => false,
            Err(e) => panic!("nothing came: {e}"),
        }
    }

    /// The stream on which it asks.
    pub fn stream(&mut self) -> &mut Stream {
        self.stream.as_mut().expect("it asks over HTTP/2")
    }

    /// Waits until the server says that it wants the body.
    pub fn expect_continue(&mut self) {
        const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
        while self.buffer.len() < CONTINUE.len() {
            assert!(self.fill(), "the server closed before it let the body come");
        }
        let came: Vec<u8> = self.buffer.drain(..CONTINUE.len()).collect();
        assert_eq!(String::from_utf8_lossy(&came), String::from_utf8_lossy(CONTINUE));
    }

    /// Waits for the end of the connection; nothing more may come before it.
    pub fn expect_end(&mut self) {
        while self.fill() {}
        assert!(self.buffer.is_empty(), "{:?}", String::from_utf8_lossy(&self.buffer));
    }
}
