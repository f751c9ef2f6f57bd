//! A proxy that passes an answer on when it has all of it, as virus scanners and old companies' proxies do. It speaks
//! HTTP/1.1 without upgrades, a thread for each connection: what gets through it matters, not how fast.

use pushlab_wire::fields::{number, trimmed};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Connections at once; more are closed. Each has a thread of its own and up to [`MAX_ANSWER_BYTES`].
const MAX_CONNECTIONS: usize = 256;
/// Longest head of a request or answer, bytes.
const MAX_HEAD_BYTES: u64 = 64 * 1024;
/// Longest body, bytes.
const MAX_ANSWER_BYTES: u64 = 16 * 1024 * 1024;

/// A running proxy; it ends when it is dropped.
pub struct Buffering {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    is_over: AtomicBool,
    connections: AtomicUsize,
    /// All sockets of the moment, to be closed at the end: whoever reads from one then returns.
    sockets: Mutex<Vec<TcpStream>>,
}

impl Buffering {
    /// Listens on a free port, in front of a server.
    ///
    /// # Errors
    /// No socket or thread.
    pub fn start(server: SocketAddr) -> io::Result<(SocketAddr, Self)> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let accept = move || {
            for client in listener.incoming().map_while(Result::ok) {
                if own.is_over.load(Ordering::SeqCst) {
                    break;
                }
                serve_beside(&own, client, server);
            }
        };
        let thread = std::thread::Builder::new().name("buffering-proxy".into()).spawn(accept)?;
        Ok((address, Self { address, shared, thread: Some(thread) }))
    }
}

impl Drop for Buffering {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        // Its thread waits for a connection: this is the last.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.shared.close_all();
    }
}

impl Shared {
    /// # Errors
    /// All is over: nobody would close it.
    fn keep(&self, socket: &TcpStream) -> io::Result<()> {
        let copy = socket.try_clone()?;
        let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_over.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        sockets.push(copy);
        Ok(())
    }

    fn forget(&self, socket: &TcpStream) {
        let Ok(local) = socket.local_addr() else { return };
        let peer = socket.peer_addr().ok();
        let is_other = |kept: &TcpStream| kept.local_addr().ok() != Some(local) || kept.peer_addr().ok() != peer;
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner).retain(is_other);
    }

    fn close_all(&self) {
        for socket in self.sockets.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // One that is closed already is what is wanted.
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
    }
}

/// Serves a connection in a thread of its own.
fn serve_beside(shared: &Arc<Shared>, client: TcpStream, server: SocketAddr) {
    if shared.connections.fetch_add(1, Ordering::SeqCst) >= MAX_CONNECTIONS {
        shared.connections.fetch_sub(1, Ordering::SeqCst);
        return;
    }
    let own = Arc::clone(shared);
    let serve = move || {
        // What goes wrong ends the connection, as a peer sees.
        let _ = own.keep(&client).and_then(|()| serve(&own, &client, server));
        own.forget(&client);
        own.connections.fetch_sub(1, Ordering::SeqCst);
    };
    if std::thread::Builder::new().name("buffers".into()).spawn(serve).is_err() {
        shared.connections.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Passes on one request after the other, each over a connection of its own, and each answer once it is whole.
fn serve(shared: &Shared, client: &TcpStream, server: SocketAddr) -> io::Result<()> {
    let mut requests = BufReader::new(client);
    while let Some(head) = Head::read(&mut requests)? {
        let body = read_at_most(&mut requests, head.length)?;
        let upstream = TcpStream::connect(server)?;
        shared.keep(&upstream)?;
        let answered = pass_on(&head, &body, &upstream);
        shared.forget(&upstream);
        let (status, answer) = answered?;
        write!(&*client, "{status}Content-Length: {}\r\n\r\n", answer.len())?;
        (&*client).write_all(&answer)?;
        if shared.is_over.load(Ordering::SeqCst) {
            break;
        }
    }
    Ok(())
}

/// The status line and fields of the answer to a request, and all of its body.
fn pass_on(head: &Head, body: &[u8], mut upstream: &TcpStream) -> io::Result<(String, Vec<u8>)> {
    // HTTP/1.0 is answered without chunks, and the end of the connection is the end of the body.
    let start = head.start.replace("HTTP/1.1", "HTTP/1.0");
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    write!(upstream, "{start}\r\n{}{length}Connection: close\r\n\r\n", head.fields)?;
    upstream.write_all(body)?;
    let mut reader = BufReader::new(upstream);
    let answer = Head::read(&mut reader)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let body = match answer.has_length {
        true => read_at_most(&mut reader, answer.length)?,
        false => {
            let mut body = Vec::new();
            reader.take(MAX_ANSWER_BYTES).read_to_end(&mut body)?;
            body
        }
    };
    Ok((format!("{}\r\n{}", answer.start.replace("HTTP/1.0", "HTTP/1.1"), answer.fields), body))
}

fn read_at_most(reader: &mut impl Read, length: u64) -> io::Result<Vec<u8>> {
    let mut body = vec![0; length.min(MAX_ANSWER_BYTES) as usize];
    reader.read_exact(&mut body)?;
    Ok(body)
}

/// The head of a request or of an answer.
struct Head {
    /// Its first line.
    start: String,
    /// Its fields, but those that are about the connection.
    fields: String,
    has_length: bool,
    length: u64,
}

impl Head {
    /// Reads a head; `None` where the peer has no more to say.
    fn read(reader: &mut impl BufRead) -> io::Result<Option<Self>> {
        let mut reader = reader.take(MAX_HEAD_BYTES);
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let start = line.trim_end().to_owned();
        let mut head = Self { start, fields: String::new(), has_length: false, length: 0 };
        loop {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let Some((name, value)) = line.trim_end_matches(['\r', '\n']).split_once(':') else {
                return Ok(Some(head));
            };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => {
                    let length = number(trimmed(value).as_bytes());
                    head.length = length.ok_or_else(|| io::Error::other("Content-Length is not a number"))?;
                    head.has_length = true;
                }
                // RFC 9110, section 7.6.1: these are between neighbours.
                "connection" | "keep-alive" | "upgrade" | "te" | "trailer" | "transfer-encoding" => {}
                _ => head.fields.push_str(&format!("{name}:{value}\r\n")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers one request after the other: `/whole` at once, `/endless` with a beginning and no end.
    fn server() -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let mut endless = Vec::new();
            for client in listener.incoming().map_while(Result::ok) {
                let head = Head::read(&mut BufReader::new(&client)).unwrap().unwrap();
                assert!(!head.fields.contains("Upgrade"), "{}", head.fields);
                if head.start.contains("/endless") {
                    write!(&client, "HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n").unwrap();
                    endless.push(client);
                } else {
                    write!(&client, "HTTP/1.0 200 OK\r\nX-Own: 1\r\n\r\n{}", head.start).unwrap();
                }
            }
        });
        address
    }

    /// Its thread may come to serve a connection only when the proxy has ended.
    #[test]
    fn a_connection_that_is_served_late_is_closed() {
        let shared = Arc::new(Shared::default());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        shared.is_over.store(true, Ordering::SeqCst);
        shared.close_all();
        serve_beside(&shared, listener.accept().unwrap().0, server());
        assert_eq!((&client).read(&mut [0]).unwrap(), 0);
    }

    #[test]
    fn a_whole_answer_gets_through_and_a_stream_does_not() {
        let (address, proxy) = Buffering::start(server()).unwrap();
        let client = TcpStream::connect(address).unwrap();
        let mut answers = BufReader::new(&client);
        for path in ["/whole?1", "/whole?2"] {
            write!(&client, "GET {path} HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
                .unwrap();
            let head = Head::read(&mut answers).unwrap().unwrap();
            assert!(head.start == "HTTP/1.1 200 OK" && head.fields == "X-Own: 1\r\n", "{} {}", head.start, head.fields);
            let body = read_at_most(&mut answers, head.length).unwrap();
            assert_eq!(String::from_utf8(body).unwrap(), format!("GET {path} HTTP/1.0"));
        }
        let stream = TcpStream::connect(address).unwrap();
        write!(&stream, "GET /endless HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        // Another request comes and goes meanwhile; nothing of the stream has come when all ends.
        write!(&client, "GET /whole HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        assert!(Head::read(&mut answers).unwrap().is_some());
        drop(proxy);
        let mut rest = Vec::new();
        // Closed or reset, by what was under way.
        let _ = (&stream).read_to_end(&mut rest);
        assert_eq!(String::from_utf8(rest).unwrap(), "");
    }
}
