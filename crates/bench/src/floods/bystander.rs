//! The client that is to be served whatever others do: a message of its is due every two milliseconds, and is echoed.

use crate::connect::{open_blocking, read_until};
use anyhow::{Context as _, ensure};
use pushlab_os::clock::{monotonic_ns, sleep_until};
use pushlab_stats::Histogram;
use pushlab_wire::websocket::{Opcode, encode, handshake};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Between two messages.
const INTERVAL_NS: u64 = 2_000_000;

/// A WebSocket whose messages come back.
pub struct Bystander {
    socket: TcpStream,
    message: Vec<u8>,
}

impl Bystander {
    /// Connects.
    pub fn connect(address: SocketAddr) -> anyhow::Result<Self> {
        let mut socket = open_blocking(address)?;
        let mut request = Vec::new();
        handshake::encode_request(&mut request, "bench", "/ws", *b"0123456789abcdef");
        socket.write_all(&request)?;
        read_until(&mut socket, |found| found.ends_with(b"\"]"))?;
        let mut message = Vec::new();
        encode(&mut message, Opcode::Text, b"[\"echo\",1]", Some([1, 2, 3, 4]));
        Ok(Self { socket, message })
    }

    /// The 99th percentile of its echoes' latency for some time, ms. Each message is sent when it is due, whether those
    /// before it have come back or not, and counts from that instant.
    pub fn p99_ms(&mut self, duration: Duration) -> anyhow::Result<f64> {
        let mut latency = Histogram::new();
        let begin_ns = monotonic_ns();
        let count = (duration.as_nanos() as u64 / INTERVAL_NS).max(1);
        let due_ns = |n: u64| begin_ns + n * INTERVAL_NS;
        let Self { socket, message } = self;
        let mut sender = socket.try_clone()?;
        std::thread::scope(|scope| {
            let sending = scope.spawn(move || {
                for n in 0..count {
                    sleep_until(due_ns(n));
                    sender.write_all(message)?;
                }
                anyhow::Ok(())
            });
            let mut came = 0;
            let mut buffer = [0; 4096];
            while came < count {
                let n = socket.read(&mut buffer).context("an echo does not come")?;
                ensure!(n > 0, "the subject closed the connection of a bystander");
                let now_ns = monotonic_ns();
                // They come back in their order, and each has one.
                for _ in buffer[..n].iter().filter(|&&byte| byte == b']') {
                    latency.record(now_ns.saturating_sub(due_ns(came)));
                    came += 1;
                }
            }
            sending.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        Ok(latency.quantile(0.99).context("nothing came back")? as f64 / 1e6)
    }
}
