//! The worker's own small HTTP server, which pages come from and report to.

use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token};
use pushlab_load::socket::{Read, Socket};
use pushlab_wire::http::{BodyKind, Headers, parse_request};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Largest report, bytes. One holds what came in a second at most: 50 bytes a delivery.
pub const MAX_REPORT_BYTES: usize = 32 << 20;
/// Most connections: six for each of the most pages, were they on hosts of their own. 64 bytes each while idle.
pub const MAX_CONNECTIONS: usize = 1_200;
const MAX_HEAD_BYTES: usize = 16 * 1024;
const LISTENER: Token = Token(usize::MAX);

/// A whole request.
#[derive(Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// As sent: `POST`.
    pub method: &'a str,
    /// As sent: `/report?page=0`.
    pub target: &'a str,
    /// The body.
    pub body: &'a [u8],
}

/// What it is answered.
#[derive(Debug)]
pub struct Response {
    /// HTTP status, with its words: `200 OK`.
    pub status: &'static str,
    /// Type of the body.
    pub content_type: &'static str,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// An answer without content.
    pub fn of(status: &'static str) -> Self {
        Self { status, content_type: "text/plain", body: Vec::new() }
    }
}

/// The server.
#[derive(Debug)]
pub struct Listener {
    poll: Poll,
    listener: TcpListener,
    events: Events,
    connections: Vec<Option<Socket>>,
    buffer: Vec<u8>,
}

impl Listener {
    /// Listens on a free port of the loopback interface.
    ///
    /// # Errors
    /// When the kernel has none.
    pub fn new() -> io::Result<Self> {
        let mut listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let poll = Poll::new()?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let events = Events::with_capacity(256);
        Ok(Self { poll, listener, events, connections: Vec::new(), buffer: vec![0; 64 * 1024] })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// What the kernel answers; it has no reason to.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers what comes; waits for something for at most so long.
    ///
    /// # Errors
    /// When the kernel refuses to tell; connections that fail are closed instead.
    pub fn serve(&mut self, timeout: Duration, answer: &mut dyn FnMut(&Request<'_>) -> Response) -> io::Result<()> {
        match self.poll.poll(&mut self.events, Some(timeout)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            result => result?,
        }
        let ready: Vec<Token> = self.events.iter().map(|event| event.token()).collect();
        for token in ready {
            match token {
                LISTENER => self.accept()?,
                Token(index) => {
                    if !self.is_going_on(index, answer) {
                        self.connections[index] = None;
                    }
                }
            }
        }
        Ok(())
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            let mut stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The peer was gone before we came to it.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(error),
            };
            let index = match self.connections.iter().position(Option::is_none) {
                Some(index) => index,
                None if self.connections.len() < MAX_CONNECTIONS => {
                    self.connections.push(None);
                    self.connections.len() - 1
                }
                None => continue,
            };
            stream.set_nodelay(true)?;
            self.poll.registry().register(&mut stream, Token(index), Interest::READABLE | Interest::WRITABLE)?;
            self.connections[index] = Some(Socket::from_stream(stream));
        }
    }

    /// Reads and answers what is there; `false` when the connection is to be closed.
    fn is_going_on(&mut self, index: usize, answer: &mut dyn FnMut(&Request<'_>) -> Response) -> bool {
        let Some(connection) = self.connections.get_mut(index).and_then(Option::as_mut) else { return true };
        if connection.flush().is_err() {
            return false;
        }
        loop {
            match connection.read(&mut self.buffer) {
                Ok(Read::Blocked | Read::Established) => return true,
                Ok(Read::Bytes { held, .. }) => {
                    let Some(consumed) = answer_all(connection, &self.buffer[..held], answer) else { return false };
                    if held - consumed > MAX_REPORT_BYTES {
                        return false;
                    }
                    connection.keep(&self.buffer[consumed..held]);
                }
                Ok(Read::Closed) | Err(_) => return false,
            }
        }
    }
}

/// Answers the whole requests at the front of `input`; returns the bytes that are done with, `None` where they make no
/// sense.
fn answer_all(
    connection: &mut Socket,
    input: &[u8],
    answer: &mut dyn FnMut(&Request<'_>) -> Response,
) -> Option<usize> {
    let mut at = 0;
    loop {
        let mut headers = Headers::default();
        let Some((head, size)) = parse_request(&input[at..], &mut headers).ok()? else {
            return (input.len() - at <= MAX_HEAD_BYTES).then_some(at);
        };
        let BodyKind::Length(length) = head.body else { return None };
        let length = usize::try_from(length).ok().filter(|&length| length <= MAX_REPORT_BYTES)?;
        let Some(body) = input.get(at + size..at + size + length) else { return Some(at) };
        let response = answer(&Request { method: head.method, target: head.target, body });
        connection.send(&encode(&response)).ok()?;
        at += size + length;
    }
}

/// The two policies isolate the page, so that its clock is as fine as the browser has it (High Resolution Time, section
/// 9.1: 5 µs in place of 100 µs). Scripts of other origins are still let in, without credentials: Faye begins with one.
fn encode(response: &Response) -> Vec<u8> {
    let Response { status, content_type, body } = response;
    let mut out = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         Cross-Origin-Opener-Policy: same-origin\r\nCross-Origin-Embedder-Policy: credentialless\r\n\r\n",
        body.len()
    )
    .into_bytes();
    out.extend_from_slice(body);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};

    /// What comes back for bytes sent in pieces, until the peer closes or has sent so many.
    fn talk(pieces: Vec<Vec<u8>>, wanted: usize) -> (String, Vec<String>) {
        let mut listener = Listener::new().unwrap();
        let address = listener.address().unwrap();
        let client = std::thread::spawn(move || {
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            for piece in pieces {
                // A peer that was sent away is not written to.
                if stream.write_all(&piece).is_err() {
                    break;
                }
            }
            let (mut all, mut buffer) = (Vec::new(), [0; 1024]);
            while all.len() < wanted {
                match stream.read(&mut buffer) {
                    Ok(n @ 1..) => all.extend_from_slice(&buffer[..n]),
                    _ => break,
                }
            }
            String::from_utf8_lossy(&all).into_owned()
        });
        let mut heard = Vec::new();
        while !client.is_finished() {
            let mut answer = |request: &Request<'_>| {
                heard.push(format!("{} {} {}", request.method, request.target, request.body.len()));
                Response { status: "200 OK", content_type: "text/plain", body: b"yes".to_vec() }
            };
            listener.serve(Duration::from_millis(5), &mut answer).unwrap();
        }
        (client.join().unwrap(), heard)
    }

    #[test]
    fn requests_are_answered_however_they_are_cut() {
        let text = b"GET /?page=1 HTTP/1.1\r\n\r\nPOST /report HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello".to_vec();
        let whole = encode(&Response { status: "200 OK", content_type: "text/plain", body: b"yes".to_vec() });
        for size in [text.len(), 7] {
            let pieces = text.chunks(size).map(<[u8]>::to_vec).collect();
            let (answers, heard) = talk(pieces, 2 * whole.len());
            assert_eq!(heard, ["GET /?page=1 0", "POST /report 5"]);
            assert!(answers.ends_with("yes") && answers.contains("Cross-Origin-Embedder-Policy"), "{answers}");
        }
    }

    #[test]
    fn what_is_no_request_or_too_large_is_closed() {
        let large = format!("POST /report HTTP/1.1\r\nContent-Length: {}\r\n\r\n", MAX_REPORT_BYTES + 1);
        for bad in ["nonsense\r\n\r\n".to_owned(), large, format!("GET /{} HTTP/1.1\r\n", "x".repeat(MAX_HEAD_BYTES))] {
            assert_eq!(talk(vec![bad.into_bytes()], 1), (String::new(), Vec::new()));
        }
    }
}
