//! A server with an application, and one request after another to it.

use pushlab_application::Application;
use pushlab_server::{Config, Server};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// Longest wait for anything.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A running server.
pub struct Site {
    server: Option<Server>,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// The head, as it came.
    pub head: String,
    pub body: Value,
}

impl Answer {
    /// Status and code of a refusal.
    pub fn code(&self) -> (u16, &str) {
        assert!(self.body["message"].as_str().is_some_and(|m| !m.is_empty()), "{self:?}");
        (self.status, self.body["error"].as_str().unwrap_or_default())
    }

    /// A text of the body.
    pub fn text(&self, member: &str) -> String {
        self.body[member].as_str().unwrap_or_else(|| panic!("no {member}: {self:?}")).to_owned()
    }
}

impl Site {
    pub fn start(application: impl Application + 'static) -> Self {
        Self::start_shared(Arc::new(application))
    }

    pub fn start_shared(application: Arc<dyn Application>) -> Self {
        let mut config = Config::new("127.0.0.1:0".parse().unwrap());
        config.application = Some(application);
        config.reserved_channels = vec![pushlab_demos::CHANNELS.to_owned()];
        Self { server: Some(Server::start(config).unwrap()) }
    }

    pub fn stop(mut self) {
        let server = self.server.take().unwrap();
        server.stop();
        server.join().unwrap();
    }

    pub fn get(&self, target: &str) -> Answer {
        self.ask("GET", target, &[], b"")
    }

    /// As a page of the server itself does it.
    pub fn post(&self, target: &str, body: &str) -> Answer {
        let origin = format!("http://{}", self.host());
        let fields = [("Content-Type", "application/json"), ("Origin", &origin), ("Sec-Fetch-Site", "same-origin")];
        self.ask("POST", target, &fields, body.as_bytes())
    }

    pub fn host(&self) -> String {
        self.server.as_ref().unwrap().address().to_string()
    }

    /// Sends a request on a connection of its own.
    pub fn ask(&self, method: &str, target: &str, fields: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut socket = TcpStream::connect(self.host()).unwrap();
        // Where another program locks SQLite, a request may wait 15 s for the only connection and twice 5 s for the lock.
        socket.set_read_timeout(Some(2 * PATIENCE)).unwrap();
        let mut head = format!("{method} {target} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.host());
        fields.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        socket.write_all(&[head.as_bytes(), body].concat()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {answer}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_owned(), body: serde_json::from_str(body).unwrap_or(Value::Null) }
    }

    /// Requests that the demonstrations have not answered yet.
    pub fn awaiting(&self) -> i64 {
        self.server.as_ref().unwrap().stats().awaiting
    }

    /// What is published to these channels, `channel=a&channel=b`, after a cursor, until `is_enough`: the data of each,
    /// without when it was sent.
    pub fn deliveries(&self, channels: &str, after: &str, is_enough: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let deadline = Instant::now() + PATIENCE;
        let mut cursor = after.to_owned();
        let mut found = Vec::new();
        while !is_enough(&found) {
            assert!(Instant::now() < deadline, "not enough came: {found:?}");
            let reply = self.get(&format!("/poll?{channels}&after={cursor}&wait=5"));
            for frame in reply.body.as_array().unwrap_or_else(|| panic!("{reply:?}")) {
                match frame[0].as_str().unwrap() {
                    "msg" => found.push(undated(frame[3].clone())),
                    "cursor" => cursor = frame[1].as_str().unwrap().to_owned(),
                    _ => panic!("{frame}"),
                }
            }
        }
        found
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
            // A test that has failed tells its own reason.
            let _ = server.join();
        }
    }
}

/// A message without when it was sent, which each of them says.
fn undated(mut message: Value) -> Value {
    let sent_ms = message.as_object_mut().and_then(|members| members.remove("sent_ms"));
    let sent_ms = sent_ms.and_then(|sent| sent.as_f64()).unwrap_or_else(|| panic!("not dated: {message}"));
    assert!((1.0..=now_ms()).contains(&sent_ms), "{sent_ms} {message}");
    message
}

/// Milliseconds since 1970.
pub fn now_ms() -> f64 {
    SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs_f64() * 1000.0
}

pub fn wait_until(what: &str, patience: Duration, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + patience;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}: not within {patience:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
