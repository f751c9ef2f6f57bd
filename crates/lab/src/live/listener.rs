//! The thread that shows the figures: one connection at a time, with little time and few bytes for each.

use super::error::LiveError;
use super::figures::{Shared, lock};
use crate::pinning::beside;
use pushlab_os::affinity::pin_to;
use pushlab_os::socket::shut_down;
use pushlab_session::site::{RequestOrigin, Site};
use pushlab_wire::exposition::CONTENT_TYPE;
use pushlab_wire::http::{Headers, RequestHead, parse_request, split_target};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Most bytes of a request's head: 8 KiB, in one buffer.
const MAX_HEAD_BYTES: usize = 8 * 1024;
/// Time for a whole request and its answer.
const MAX_REQUEST_TIME: Duration = Duration::from_secs(1);
/// Rest after each connection: at most 20 a second, whoever asks, so that nobody takes the generator's core away.
const REST: Duration = Duration::from_millis(50);

/// Shows the figures of a campaign at `/metrics` until it is dropped.
pub struct Listener {
    address: SocketAddr,
    listener: Arc<TcpListener>,
    is_ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Listens, from now on.
    pub fn listen(address: SocketAddr, site: Site, figures: Shared) -> Result<Self, LiveError> {
        let listen_error = |source| LiveError::Listen { address, source };
        let listener = Arc::new(TcpListener::bind(address).map_err(listen_error)?);
        let address = listener.local_addr().map_err(listen_error)?;
        let is_ending = Arc::new(AtomicBool::new(false));
        let cores = beside();
        let work = {
            let (listener, is_ending) = (listener.clone(), is_ending.clone());
            move || {
                // Where that is not allowed, the warning about shared cores says so.
                let _ = pin_to(&cores);
                serve(&listener, &site, &figures, &is_ending);
            }
        };
        let thread = std::thread::Builder::new().name("pushlab-metrics".into()).spawn(work);
        Ok(Self { address, listener, is_ending, thread: Some(thread.map_err(LiveError::Thread)?) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.is_ending.store(true, Ordering::Release);
        // It ends a waiting `accept`.
        let _ = shut_down(&self.listener);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic there has been printed and must not become one here.
            let _ = thread.join();
        }
    }
}

fn serve(listener: &TcpListener, site: &Site, figures: &Shared, is_ending: &AtomicBool) {
    loop {
        let accepted = listener.accept();
        if is_ending.load(Ordering::Acquire) {
            return;
        }
        if let Ok((stream, _)) = accepted {
            // Whoever went away, or was too slow, hears nothing.
            let _ = answer(stream, site, figures);
        }
        std::thread::park_timeout(REST);
    }
}

fn answer(mut stream: TcpStream, site: &Site, figures: &Shared) -> io::Result<()> {
    let deadline = Instant::now() + MAX_REQUEST_TIME;
    let mut buffer = [0; MAX_HEAD_BYTES];
    let mut filled = 0;
    let answer = loop {
        let mut headers = Headers::default();
        match parse_request(&buffer[..filled], &mut headers) {
            Ok(Some((head, _))) => break reply(&head, site, figures),
            Ok(None) if filled == MAX_HEAD_BYTES => {
                break error("431 Request Header Fields Too Large", "", "a request's head has at most 8192 bytes");
            }
            Ok(None) => {}
            Err(what) => break error("400 Bad Request", "", &what.to_string()),
        }
        stream.set_read_timeout(Some(time_left(deadline)?))?;
        filled += match stream.read(&mut buffer[filled..])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => n,
        };
    };
    stream.set_write_timeout(Some(time_left(deadline)?))?;
    stream.write_all(&answer)?;
    stream.shutdown(Shutdown::Write)
}

fn time_left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn reply(head: &RequestHead<'_, '_>, site: &Site, figures: &Shared) -> Vec<u8> {
    let origin = site.request_origin(head.fields());
    if origin != RequestOrigin::Own {
        return error("403 Forbidden", "", &site.refusal(origin));
    }
    let method = head.method;
    match (split_target(head.target).0, method) {
        ("/metrics", "GET" | "HEAD") => {
            let page = lock(figures).page();
            encode("200 OK", "", CONTENT_TYPE, &page, method == "HEAD")
        }
        ("/metrics", _) => error("405 Method Not Allowed", "Allow: GET, HEAD\r\n", "/metrics takes GET"),
        _ => error("404 Not Found", "", "the figures are at /metrics"),
    }
}

fn error(status: &str, field: &str, text: &str) -> Vec<u8> {
    encode(status, field, "text/plain; charset=utf-8", &format!("{text}\n"), false)
}

fn encode(status: &str, field: &str, content_type: &str, body: &str, is_head: bool) -> Vec<u8> {
    let mut out = format!(
        "HTTP/1.1 {status}\r\n{field}Content-Type: {content_type}\r\nCache-Control: no-store\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    if !is_head {
        out.push_str(body);
    }
    out.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    fn listen(address: &str) -> Result<Listener, LiveError> {
        let site = Site { is_loopback_only: true, ..Site::default() };
        Listener::listen(address.parse().unwrap(), site, Shared::default())
    }

    fn live() -> Listener {
        listen("127.0.0.1:0").unwrap()
    }

    fn connect(live: &Listener) -> TcpStream {
        let stream = TcpStream::connect(live.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn ask(live: &Listener, request: impl AsRef<[u8]>) -> String {
        let mut stream = connect(live);
        stream.write_all(request.as_ref()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn only_metrics_are_served_and_only_read() {
        let live = live();
        let page = ask(&live, "GET /metrics?x=y HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let (head, body) = page.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains(CONTENT_TYPE), "{head}");
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())), "{head}");
        assert!(body.contains("\npushlab_lab_runs_planned 0\n"), "{body}");
        let only_head = ask(&live, "HEAD /metrics HTTP/1.0\r\nHost: 127.0.0.1:9\r\n\r\n");
        assert!(only_head.starts_with("HTTP/1.1 200 ") && only_head.ends_with("\r\n\r\n"), "{only_head}");
        for (request, status) in [
            ("POST /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", "405"),
            ("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "404"),
            ("nonsense\r\n\r\n", "400"),
            ("GET /metrics HTTP/1.1\r\n\r\n", "403"),
        ] {
            assert!(ask(&live, request).starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}");
        }
        let twice = ask(&live, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: \xff\r\n\r\n");
        assert!(twice.starts_with("HTTP/1.1 400 "), "{twice}");
    }

    #[test]
    fn a_head_has_its_limit() {
        let live = live();
        let start = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: ";
        let fitting = format!("{start}{}\r\n\r\n", "y".repeat(MAX_HEAD_BYTES - start.len() - 4));
        assert!(ask(&live, &fitting).starts_with("HTTP/1.1 200 "));
        let endless = format!("{start}{}", "y".repeat(MAX_HEAD_BYTES - start.len()));
        assert!(ask(&live, &endless).starts_with("HTTP/1.1 431 "));
    }

    #[test]
    fn who_says_nothing_does_not_keep_others_out() {
        let live = live();
        let silent: Vec<TcpStream> = (0..2).map(|_| connect(&live)).collect();
        assert!(ask(&live, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").starts_with("HTTP/1.1 200 "));
        for mut stream in silent {
            assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0, "it was closed without an answer");
        }
    }

    #[test]
    fn the_end_frees_the_port_at_once() {
        let live = live();
        let address = live.address().to_string();
        assert!(matches!(listen(&address), Err(LiveError::Listen { .. })));
        drop(live);
        drop(listen(&address).unwrap());
    }
}
