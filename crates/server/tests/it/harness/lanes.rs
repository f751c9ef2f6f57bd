//! Many connections over one byte stream: what clients say travels in frames to the server's side, each connection in a
//! lane of its own, and what the server says travels back.
//!
//! A frame is a lane's number, a kind and the length of what follows. A lane holds no more than [`WINDOW_BYTES`] in each
//! direction: the other end says when it has taken some, so that a lane that is not read holds up no other.

use pushlab_server::{Carrier, Notify, Server};
use socket2::SockRef;
use std::collections::{HashMap, VecDeque};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;

const WINDOW_BYTES: usize = 32 * 1024;
const SEND_BUFFER_BYTES: usize = 16 * 1024;

/// What a frame says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A connection begins; its peer's address follows.
    Open,
    Data,
    /// So many bytes were taken.
    Taken,
    /// Nothing more is sent.
    End,
    /// The connection is gone.
    Gone,
}

const KINDS: [Kind; 5] = [Kind::Open, Kind::Data, Kind::Taken, Kind::End, Kind::Gone];

/// One end of the byte stream.
struct Trunk {
    socket: UnixStream,
    unsent: Mutex<VecDeque<u8>>,
    changed: Condvar,
    lanes: Mutex<HashMap<u32, Arc<Ends>>>,
}

/// Both directions of a lane, as one end sees them.
#[derive(Default)]
struct Ends {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    incoming: VecDeque<u8>,
    has_ended: bool,
    is_gone: bool,
    /// Bytes that were sent and not taken.
    outstanding: usize,
    notify: Option<Arc<Notify>>,
}

/// The lanes of a server, and where its clients connect.
pub struct Lanes {
    pub address: SocketAddr,
    ends: [Arc<Trunk>; 2],
    is_over: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Trunk {
    fn new(socket: UnixStream) -> Arc<Self> {
        let trunk = Self { socket, unsent: Mutex::default(), changed: Condvar::new(), lanes: Mutex::default() };
        let trunk = Arc::new(trunk);
        let writer = trunk.clone();
        std::thread::spawn(move || writer.write());
        trunk
    }

    fn say(&self, lane: u32, kind: Kind, payload: &[u8]) {
        let mut unsent = lock(&self.unsent);
        unsent.extend(lane.to_be_bytes());
        unsent.push_back(kind as u8);
        unsent.extend((payload.len() as u32).to_be_bytes());
        unsent.extend(payload);
        self.changed.notify_all();
    }

    fn write(&self) {
        let mut socket = &self.socket;
        loop {
            let mut unsent = lock(&self.unsent);
            while unsent.is_empty() {
                unsent = self.changed.wait(unsent).unwrap();
            }
            // In pieces that split frames anywhere.
            let size = unsent.len().min(1 + 7 * 1021);
            let piece: Vec<u8> = unsent.drain(..size).collect();
            drop(unsent);
            if socket.write_all(&piece).is_err() {
                return;
            }
        }
    }

    /// Gives each frame to its lane, and new lanes to `open`, until the stream ends.
    fn read(&self, mut open: impl FnMut(u32, SocketAddr, Arc<Ends>)) {
        let mut socket = &self.socket;
        let mut head = [0; 9];
        while socket.read_exact(&mut head).is_ok() {
            let number = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
            let (lane, kind) = (number(0), KINDS[usize::from(head[4])]);
            let mut payload = vec![0; number(5) as usize];
            if socket.read_exact(&mut payload).is_err() {
                break;
            }
            if kind == Kind::Open {
                let ends = Arc::new(Ends::default());
                lock(&self.lanes).insert(lane, ends.clone());
                open(lane, String::from_utf8(payload).unwrap().parse().unwrap(), ends);
                continue;
            }
            let Some(ends) = lock(&self.lanes).get(&lane).cloned() else { continue };
            ends.change(|state| match kind {
                Kind::Open => {}
                Kind::Data => state.incoming.extend(payload),
                Kind::Taken => state.outstanding -= u32::from_be_bytes(payload.try_into().unwrap()) as usize,
                Kind::End => state.has_ended = true,
                Kind::Gone => state.is_gone = true,
            });
        }
        for ends in lock(&self.lanes).values() {
            ends.change(|state| state.is_gone = true);
        }
    }
}

impl Ends {
    fn change(&self, with: impl FnOnce(&mut State)) {
        let mut state = lock(&self.state);
        with(&mut state);
        let notify = state.notify.clone();
        drop(state);
        self.changed.notify_all();
        if let Some(notify) = notify {
            notify();
        }
    }
}

/// The server's end of a lane.
struct Lane {
    number: u32,
    peer: SocketAddr,
    ends: Arc<Ends>,
    trunk: Arc<Trunk>,
}

impl Carrier for Lane {
    fn attach(&mut self, notify: Notify) {
        lock(&self.ends.state).notify = Some(Arc::new(notify));
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = lock(&self.ends.state);
        if state.incoming.is_empty() {
            return match (state.is_gone, state.has_ended) {
                (true, false) => Err(ErrorKind::ConnectionReset.into()),
                (_, true) => Ok(0),
                _ => Err(ErrorKind::WouldBlock.into()),
            };
        }
        let n = state.incoming.read(buffer)?;
        drop(state);
        self.trunk.say(self.number, Kind::Taken, &(n as u32).to_be_bytes());
        Ok(n)
    }

    fn has_more(&self) -> bool {
        let state = lock(&self.ends.state);
        !state.incoming.is_empty() || state.has_ended || state.is_gone
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = lock(&self.ends.state);
        if state.is_gone {
            return Err(ErrorKind::ConnectionReset.into());
        }
        let n = bytes.len().min(WINDOW_BYTES - state.outstanding);
        if n == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        state.outstanding += n;
        drop(state);
        self.trunk.say(self.number, Kind::Data, &bytes[..n]);
        Ok(n)
    }

    fn shut_down(&mut self) -> io::Result<()> {
        self.trunk.say(self.number, Kind::End, b"");
        Ok(())
    }

    fn is_gone(&self) -> bool {
        lock(&self.ends.state).is_gone
    }

    fn peer_address(&self) -> io::Result<SocketAddr> {
        Ok(self.peer)
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        lock(&self.trunk.lanes).remove(&self.number);
        self.trunk.say(self.number, Kind::Gone, b"");
    }
}

/// A client's end: what it sends goes into its lane, what comes from there to it.
fn serve_client(client: &TcpStream, number: u32, trunk: &Arc<Trunk>) {
    // A client that does not read is to be felt by the server, not hidden by the kernel.
    SockRef::from(client).set_send_buffer_size(SEND_BUFFER_BYTES).unwrap();
    let ends = Arc::new(Ends::default());
    lock(&trunk.lanes).insert(number, ends.clone());
    let peer = client.peer_addr().map_or_else(|_| "127.0.0.1:1".to_owned(), |peer| peer.to_string());
    trunk.say(number, Kind::Open, peer.as_bytes());
    let (mut reader, sender) = (client.try_clone().unwrap(), trunk.clone());
    let windows = ends.clone();
    std::thread::spawn(move || {
        let mut buffer = [0; 8 * 1024];
        loop {
            let n = match reader.read(&mut buffer) {
                Ok(0) => break sender.say(number, Kind::End, b""),
                Ok(n) => n,
                Err(_) => break sender.say(number, Kind::Gone, b""),
            };
            let mut state = lock(&windows.state);
            while state.outstanding + n > WINDOW_BYTES && !state.is_gone {
                state = windows.changed.wait(state).unwrap();
            }
            if state.is_gone {
                // As a kernel answers what comes behind the end.
                let _ = reader.shutdown(Shutdown::Both);
                break;
            }
            state.outstanding += n;
            drop(state);
            sender.say(number, Kind::Data, &buffer[..n]);
        }
    });
    let mut writer = client;
    loop {
        let mut state = lock(&ends.state);
        while state.incoming.is_empty() && !state.has_ended && !state.is_gone {
            state = ends.changed.wait(state).unwrap();
        }
        let bytes: Vec<u8> = state.incoming.drain(..).collect();
        if bytes.is_empty() {
            if state.is_gone {
                break;
            }
            // Once: the server may still read.
            state.has_ended = false;
            drop(state);
            let _ = writer.shutdown(Shutdown::Write);
            continue;
        }
        drop(state);
        if writer.write_all(&bytes).is_err() {
            trunk.say(number, Kind::Gone, b"");
            break;
        }
        trunk.say(number, Kind::Taken, &(bytes.len() as u32).to_be_bytes());
    }
    lock(&trunk.lanes).remove(&number);
    let _ = writer.shutdown(Shutdown::Both);
}

impl Lanes {
    /// Lanes to a server, which lives longer.
    pub fn new(server: &Arc<Server>) -> Self {
        let (front, back) = UnixStream::pair().unwrap();
        let (front, back) = (Trunk::new(front), Trunk::new(back));
        let listener = TcpListener::bind(SocketAddr::new(server.address().ip(), 0)).unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let address = listener.local_addr().unwrap();
        let ends = [front.clone(), back.clone()];
        let mut lanes = Self { address, ends, is_over: is_over.clone(), acceptor: None };
        let server: Weak<Server> = Arc::downgrade(server);
        std::thread::spawn(move || {
            back.read(|number, peer, ends| {
                let lane = Lane { number, peer, ends, trunk: back.clone() };
                if let Some(server) = server.upgrade() {
                    server.adopt(Box::new(lane));
                }
            });
        });
        let reader = front.clone();
        std::thread::spawn(move || reader.read(|_, _, _| {}));
        let acceptor = std::thread::spawn(move || {
            for (number, client) in (0..).zip(listener.incoming()) {
                let Ok(client) = client else { break };
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                let trunk = front.clone();
                std::thread::spawn(move || serve_client(&client, number, &trunk));
            }
        });
        lanes.acceptor = Some(acceptor);
        lanes
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // The threads that wait see the end; the address is free then.
        let _ = TcpStream::connect(self.address);
        let _ = self.acceptor.take().map(JoinHandle::join);
        for end in &self.ends {
            let _ = end.socket.shutdown(Shutdown::Both);
            end.say(0, Kind::Gone, b"");
        }
    }
}
