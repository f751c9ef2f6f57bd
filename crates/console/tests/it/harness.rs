//! A console on a server of its own, with a folder that vanishes with the test, and requests to it.

use pushlab_console::{CHANNELS, Config, Console};
use pushlab_server::{Server, Site};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Longest time that anything awaited may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A console, served.
pub struct Place {
    pub folder: PathBuf,
    pub console: Arc<Console>,
    server: Option<Server>,
    address: SocketAddr,
}

/// An answer as it came.
pub struct Answer {
    pub status: u16,
    head: String,
    pub body: String,
}

impl Answer {
    /// The body, which is JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// Status and the code of the error.
    pub fn refused(&self) -> (u16, String) {
        (self.status, self.json()["error"].as_str().unwrap_or_default().to_owned())
    }

    /// A field of the head; its name in any case.
    pub fn field(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        fields.into_iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

impl Place {
    /// A console that stores measurements, as `change` makes it; its store is `results.db` in the folder.
    pub fn with(name: &str, change: impl FnOnce(&mut Config)) -> Self {
        Self::with_site(name, Site::default(), change)
    }

    /// The same on a server with these own pages.
    pub fn with_site(name: &str, site: Site, change: impl FnOnce(&mut Config)) -> Self {
        let folder = std::env::temp_dir().join(format!("pushlab-console-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let store = Some(folder.join("results.db"));
        let mut config = Config { store, stores_measurements: true, ..Config::default() };
        change(&mut config);
        let console = Arc::new(Console::new(config).unwrap());
        let mut config = pushlab_server::Config::new("127.0.0.1:0".parse().unwrap());
        config.application = Some(Arc::clone(&console) as _);
        config.reserved_channels = vec![CHANNELS.to_owned()];
        config.same_origin_channels = vec![CHANNELS.to_owned()];
        config.site = site;
        let server = Server::start(config).unwrap();
        let address = server.address();
        Self { folder, console, server: Some(server), address }
    }

    pub fn new(name: &str) -> Self {
        Self::with(name, |_| {})
    }

    pub fn store_path(&self) -> PathBuf {
        self.folder.join("results.db")
    }

    /// Sends a request with further fields, lines that end in `\r\n`.
    pub fn ask(&self, method: &str, target: &str, fields: &str, body: &str) -> Answer {
        self.ask_host(method, target, &format!("Host: {}\r\n{fields}", self.address), body)
    }

    /// The same with `Host` among the fields.
    pub fn ask_host(&self, method: &str, target: &str, fields: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let length = body.len();
        let head =
            format!("{method} {target} HTTP/1.1\r\n{fields}Content-Length: {length}\r\nConnection: close\r\n\r\n");
        stream.write_all((head + body).as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }

    pub fn get(&self, target: &str) -> Answer {
        self.ask("GET", target, "", "")
    }

    /// Posts JSON, as a page of this console does.
    pub fn post(&self, target: &str, body: &Value) -> Answer {
        let fields = format!("Content-Type: application/json\r\nOrigin: http://{}\r\n", self.address);
        self.ask("POST", target, &fields, &body.to_string())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
            // The test has failed already if this does.
            let _ = server.join();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
