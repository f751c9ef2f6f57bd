//! A way to a database that breaks when a change is committed.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// When the way breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The commit does not reach the database.
    BeforeCommit,
    /// The database commits, and its answer is lost.
    AfterCommit,
    /// The commit does not reach the database, which hears nothing more, not even that the connection has ended.
    Unnoticed,
}

/// Carries bytes between whoever connects to its port and a database.
pub struct Proxy {
    pub port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    database: u16,
    /// And whether one can connect again after it.
    cut: Mutex<Option<(Cut, bool)>>,
    clients: Mutex<Vec<TcpStream>>,
    is_open: AtomicBool,
    is_over: AtomicBool,
}

impl Proxy {
    pub fn start(database: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (is_open, is_over) = (AtomicBool::new(true), AtomicBool::new(false));
        let shared = Arc::new(Shared { database, cut: Mutex::default(), clients: Mutex::default(), is_open, is_over });
        let carrier = shared.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if carrier.is_over.load(Ordering::SeqCst) {
                    return;
                }
                if carrier.is_open.load(Ordering::SeqCst) {
                    let carrier = carrier.clone();
                    std::thread::spawn(move || carrier.carry(client));
                }
            }
        });
        Self { port, shared }
    }

    /// Cuts the next commit; unless it `stays_open`, all other connections too, and none is made until [`Self::open`].
    pub fn cut(&self, cut: Cut, stays_open: bool) {
        *self.shared.cut.lock().unwrap() = Some((cut, stays_open));
    }

    /// Whether the cut was made.
    pub fn has_cut(&self) -> bool {
        self.shared.cut.lock().unwrap().is_none()
    }

    /// Lets everybody connect again.
    pub fn open(&self) {
        self.shared.is_open.store(true, Ordering::SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        // Wakes whoever waits for connections.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Shared {
    /// Lets nobody connect, and cuts all but this one.
    fn close(&self, but: &TcpStream) {
        self.is_open.store(false, Ordering::SeqCst);
        let but = but.peer_addr().unwrap();
        for client in self.clients.lock().unwrap().drain(..) {
            if client.peer_addr().is_ok_and(|address| address != but) {
                let _ = client.shutdown(Shutdown::Both);
            }
        }
    }

    fn carry(&self, mut client: TcpStream) {
        let mut database = TcpStream::connect(("127.0.0.1", self.database)).unwrap();
        let (mut back, mut to_client) = (database.try_clone().unwrap(), client.try_clone().unwrap());
        self.clients.lock().unwrap().push(client.try_clone().unwrap());
        let is_cut = Arc::new(AtomicBool::new(false));
        let lost = is_cut.clone();
        let answers = std::thread::spawn(move || {
            let mut bytes = [0; 16 * 1024];
            while let Ok(count @ 1..) = back.read(&mut bytes) {
                if lost.load(Ordering::SeqCst) || to_client.write_all(&bytes[..count]).is_err() {
                    break;
                }
            }
            let _ = to_client.shutdown(Shutdown::Both);
        });
        let mut bytes = [0; 16 * 1024];
        while let Ok(count @ 1..) = client.read(&mut bytes) {
            let asked = &bytes[..count];
            let cut = if commits(asked) { self.cut.lock().unwrap().take() } else { None };
            is_cut.store(cut.is_some(), Ordering::SeqCst);
            if cut.is_some_and(|(_, stays_open)| !stays_open) {
                self.close(&client);
            }
            if cut.is_some_and(|(when, _)| when == Cut::Unnoticed) {
                // Both sockets stay open as long as the other thread waits for the database.
                return;
            }
            if cut.is_some_and(|(when, _)| when == Cut::BeforeCommit) || database.write_all(asked).is_err() {
                break;
            }
            if cut.is_some() {
                // Ends when the answer has come, which it does not pass on.
                let _ = database.set_read_timeout(Some(Duration::from_secs(20)));
                answers.join().unwrap();
                return;
            }
        }
        let _ = database.shutdown(Shutdown::Both);
        let _ = answers.join();
    }
}

/// Whether this holds the statement. `READ COMMITTED` is none.
fn commits(asked: &[u8]) -> bool {
    let word = b"COMMIT";
    (0..asked.len()).any(|at| asked[at..].starts_with(word) && asked.get(at + word.len()) != Some(&b'T'))
}
