//! TLS in front of a fake server: ends it, and writes records cut into random pieces.

use pushlab_os::poll::{PollFd, PollFlags, wait};
use pushlab_workload::plan::{Target, TlsTarget, Trust};
use rcgen::generate_simple_self_signed;
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A front that forwards everything to a server.
pub struct TlsFront {
    pub address: SocketAddr,
    /// What its clients are to trust.
    pub certificate: PathBuf,
    /// Ciphertext and plaintext, to clients and from them.
    pub bytes: Arc<[[AtomicU64; 2]; 2]>,
    /// The hosts that clients asked for.
    pub asked_for: Arc<Mutex<Vec<Option<String>>>>,
}

impl TlsFront {
    /// In front of a server, with a certificate for some name.
    pub fn start(server: SocketAddr, name: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let made = generate_simple_self_signed([name.to_owned()]).unwrap();
        let certificate = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}.pem", address.port()));
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let mut config = builder.with_single_cert(vec![made.cert.der().clone()], key).unwrap();
        config.max_fragment_size = Some(200);
        let (config, bytes) = (Arc::new(config), Arc::<[[AtomicU64; 2]; 2]>::default());
        let front = Self { address, certificate, bytes: Arc::clone(&bytes), asked_for: Arc::default() };
        let asked_for = Arc::clone(&front.asked_for);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (config, bytes, asked_for) = (Arc::clone(&config), Arc::clone(&bytes), Arc::clone(&asked_for));
                let back = TcpStream::connect(server).unwrap();
                std::thread::spawn(move || {
                    let mut session = ServerConnection::new(config).unwrap();
                    let ended = forward(&mut session, stream.unwrap(), back, &bytes);
                    asked_for.lock().unwrap().push(session.server_name().map(str::to_owned));
                    ended
                });
            }
        });
        front
    }

    /// It, as those reach it who trust its certificate and nobody else.
    pub fn target(&self) -> Target {
        let trust = Trust::Certificate(std::fs::read_to_string(&self.certificate).unwrap());
        let server_name = self.address.ip().to_string();
        Target { tls: Some(TlsTarget { server_name, trust }), ..Target::plain(self.address) }
    }

    /// What TLS added to the bytes to the clients, and from them.
    pub fn overhead(&self) -> [u64; 2] {
        [0, 1].map(|way| {
            let [cipher, plain] = &self.bytes[way];
            cipher.load(Ordering::Relaxed) - plain.load(Ordering::Relaxed)
        })
    }
}

impl Drop for TlsFront {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.certificate);
    }
}

/// Until either side ends.
fn forward(
    session: &mut ServerConnection,
    mut front: TcpStream,
    mut back: TcpStream,
    bytes: &[[AtomicU64; 2]; 2],
) -> Option<()> {
    let [[down_cipher, down_plain], [up_cipher, up_plain]] = bytes;
    let count = |counter: &AtomicU64, size: usize| counter.fetch_add(size as u64, Ordering::Relaxed);
    front.set_nodelay(true).ok()?;
    back.set_nodelay(true).ok()?;
    front.set_nonblocking(true).ok()?;
    back.set_nonblocking(true).ok()?;
    let mut rng = fastrand::Rng::new();
    loop {
        wait_for_either(&front, &back);
        match session.read_tls(&mut front) {
            Ok(0) => return None,
            Ok(size) => {
                count(up_cipher, size);
                let failed = session.process_new_packets().is_err();
                let mut plain = Vec::new();
                let _ = session.reader().read_to_end(&mut plain);
                count(up_plain, plain.len());
                write_all(&mut back, &plain)?;
                if failed {
                    // The client hears why.
                    let mut alert = Vec::new();
                    session.write_tls(&mut alert).ok()?;
                    write_all(&mut front, &alert)?;
                    return None;
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
        let mut plain = [0; 4096];
        match back.read(&mut plain) {
            Ok(0) => {
                session.send_close_notify();
                send(session, &mut front, &mut rng)?;
                front.shutdown(Shutdown::Write).ok()?;
                return None;
            }
            Ok(size) => {
                count(down_plain, size);
                session.writer().write_all(&plain[..size]).ok()?;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
        count(down_cipher, send(session, &mut front, &mut rng)?);
    }
}

fn send(session: &mut ServerConnection, front: &mut TcpStream, rng: &mut fastrand::Rng) -> Option<usize> {
    let mut cipher = Vec::new();
    while session.wants_write() {
        session.write_tls(&mut cipher).ok()?;
    }
    let mut rest = &cipher[..];
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rng.usize(1..=rest.len().min(300)));
        write_all(front, piece)?;
        rest = after;
    }
    Some(cipher.len())
}

/// Until one of them has something to read, or has ended.
fn wait_for_either(front: &TcpStream, back: &TcpStream) {
    wait(&mut [PollFd::new(front, PollFlags::IN), PollFd::new(back, PollFlags::IN)], None).unwrap();
}

/// On a socket that does not block.
fn write_all(stream: &mut TcpStream, mut bytes: &[u8]) -> Option<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(size) => bytes = &bytes[size..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
            Err(_) => return None,
        }
    }
    Some(())
}
