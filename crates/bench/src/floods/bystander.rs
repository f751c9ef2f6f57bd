//! The client that is to be served whatever others do: a message of its is due every two milliseconds, and is echoed.

use crate::connect::{self, PATIENCE};
use crate::secure::{Certificate, Tls};
use anyhow::{Context as _, bail, ensure};
use mio::net::TcpStream;
use pushlab_os::clock::monotonic_ns;
use pushlab_os::poll::{PollFd, PollFlags, wait};
use pushlab_stats::Histogram;
use pushlab_wire::websocket::{Opcode, encode, handshake};
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Between two messages.
const INTERVAL_NS: u64 = 2_000_000;
/// Source addresses.
const FAMILY: u8 = 49;

/// A WebSocket whose messages come back.
pub struct Bystander {
    line: Line,
    message: Vec<u8>,
    buffer: Vec<u8>,
}

enum Line {
    Plain(TcpStream),
    Secure(Box<Tls>),
}

impl Bystander {
    /// Connects, with TLS where the server has a certificate.
    pub fn connect(address: SocketAddr, certificate: Option<&Certificate>) -> anyhow::Result<Self> {
        let mut request = Vec::new();
        handshake::encode_request(&mut request, "bench", "/ws", *b"0123456789abcdef");
        let line = match certificate {
            None => Line::Plain(connect::open(address, FAMILY, 0, &request)?),
            Some(certificate) => Line::Secure(Box::new(Tls::open(address, FAMILY, 0, &certificate.http1(), &request)?)),
        };
        let mut message = Vec::new();
        encode(&mut message, Opcode::Text, b"[\"echo\",1]", Some([1, 2, 3, 4]));
        let mut bystander = Self { line, message, buffer: vec![0; 4096] };
        // The cursor that it begins with.
        let until = Instant::now() + PATIENCE;
        while bystander.read(PATIENCE.as_nanos() as u64)? == 0 {
            ensure!(Instant::now() < until, "a bystander is not answered");
        }
        Ok(bystander)
    }

    /// The 99th percentile of its echoes' latency for some time, ms. Each message is sent when it is due, whether those
    /// before it have come back or not, and counts from that instant.
    pub fn p99_ms(&mut self, duration: Duration) -> anyhow::Result<f64> {
        let mut latency = Histogram::new();
        let begin_ns = monotonic_ns();
        let count = (duration.as_nanos() as u64 / INTERVAL_NS).max(1);
        let due_ns = |n: u64| begin_ns + n * INTERVAL_NS;
        let (mut sent, mut came) = (0, 0);
        while came < count {
            let mut now_ns = monotonic_ns();
            while sent < count && due_ns(sent) <= now_ns {
                self.line.write(&self.message)?;
                sent += 1;
            }
            let patience_ns = (due_ns(came) + PATIENCE.as_nanos() as u64).saturating_sub(now_ns);
            ensure!(patience_ns > 0, "an echo does not come");
            let timeout_ns = if sent < count { due_ns(sent).saturating_sub(now_ns) } else { patience_ns };
            // They come back in their order, and each has one.
            let echoes = self.read(timeout_ns)?;
            now_ns = monotonic_ns();
            for _ in 0..echoes {
                latency.record(now_ns.saturating_sub(due_ns(came)));
                came += 1;
            }
        }
        Ok(latency.quantile(0.99).context("nothing came back")? as f64 / 1e6)
    }

    /// Waits for so long at most; says how many messages have come.
    fn read(&mut self, timeout_ns: u64) -> anyhow::Result<usize> {
        let socket = match &mut self.line {
            Line::Plain(socket) => &*socket,
            Line::Secure(tls) => &*tls.socket(),
        };
        wait(&mut [PollFd::new(socket, PollFlags::IN)], Some(timeout_ns))?;
        let mut messages = 0;
        let mut count = |bytes: &[u8]| messages += bytes.iter().filter(|&&byte| byte == b']').count();
        let came = match &mut self.line {
            Line::Plain(socket) => socket.read(&mut self.buffer).inspect(|&came| count(&self.buffer[..came])),
            Line::Secure(tls) => tls.read(&mut self.buffer, count),
        };
        match came {
            Ok(0) => bail!("the subject closed the connection of a bystander"),
            Ok(_) => Ok(messages),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(e) => Err(e).context("a bystander cannot read"),
        }
    }
}

impl Line {
    /// The socket takes all of it: it is little.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.write_all(bytes),
            Self::Secure(tls) => tls.write(bytes),
        }
    }
}
