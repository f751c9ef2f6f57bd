//! Polls: replies per second of processor time, ours divided by a raw request and reply loop's.
//!
//! `poll/replies` is long polling: every client is held, a publication answers all of them, each asks again at once
//! with its new cursor, and the next publication leaves when all have been answered. The raw loop holds and answers
//! the same, without cursors or history. `poll/immediate` is short polling with a message pending: each request is
//! answered at once.
//!
//! With `--against`, the server of another build takes the loop's place, and its processor time for a reply divides ours.

use crate::connect::{PATIENCE, open_blocking, read_until};
use crate::figure::{Figure, rounded};
use crate::frames::{FIRST_PUBLICATIONS, PAYLOAD};
use crate::pollers::{Pollers, encode_request, parse_reply};
use crate::processor::Cores;
use crate::publisher::Publisher;
use crate::scale::{ORDER, Scale};
use crate::subject::{FanOut, Role, Subject};
use anyhow::{Context as _, ensure};
use pushlab_server::Io;
use pushlab_stats::median;
use serde_json::json;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a poll is held, s: longer than a segment, so that none expires.
const WAIT_S: u32 = 60;

/// What one side did in one segment.
#[derive(Debug, Clone, Copy)]
struct Work {
    replies: u64,
    messages: u64,
    cpu_ns: u64,
    elapsed: Duration,
}

struct Side {
    subject: Subject,
    publisher: Publisher,
    pollers: Pollers,
    cursor: String,
    is_immediate: bool,
}

/// Measures held polls, or immediate ones.
pub fn measure(name: &'static str, is_immediate: bool, scale: &Scale, cores: Cores) -> anyhow::Result<Figure> {
    let mut ratios = Vec::new();
    let mut pairs: Vec<(Work, Work)> = Vec::new();
    let mut reply_bytes = 0;
    for _ in 0..scale.repeats {
        let (mut base, mut ours, size) = sides(is_immediate, scale, cores)?;
        reply_bytes = size;
        base.run(scale.warm_up)?;
        ours.run(scale.warm_up)?;
        let (mut of_base, mut of_ours) = (Vec::new(), Vec::new());
        for is_base in ORDER {
            let (side, works) = if is_base { (&mut base, &mut of_base) } else { (&mut ours, &mut of_ours) };
            works.push(side.run(scale.segment)?);
        }
        let segments: Vec<(Work, Work)> = of_base.into_iter().zip(of_ours).collect();
        let of_segments: Vec<f64> =
            segments.iter().map(|(base, ours)| scale.baseline.ratio(base.cpu_us(), ours.cpu_us())).collect();
        ratios.push(median(&of_segments).context("there are no segments")?);
        pairs.extend(segments);
    }
    let middle =
        |figure: &dyn Fn(&(Work, Work)) -> f64| median(&pairs.iter().map(figure).collect::<Vec<_>>()).map(rounded);
    let base_name = scale.baseline.name();
    let detail = json!({
        "headline": format!("CPU per reply, {}; median of the repeats", scale.baseline.ratio_in_words()),
        "repeats": ratios.iter().copied().map(rounded).collect::<Vec<_>>(),
        "connections": scale.pollers,
        "payload_bytes": PAYLOAD.len(),
        "reply_bytes": reply_bytes,
        (format!("{base_name}_cpu_us")): middle(&|(base, _)| base.cpu_us()),
        "ours_cpu_us": middle(&|(_, ours)| ours.cpu_us()),
        (format!("{base_name}_replies_per_s")): middle(&|(base, _)| base.per_second()),
        "ours_replies_per_s": middle(&|(_, ours)| ours.per_second()),
        "throughput_ratio": middle(&|(base, ours)| ours.per_second() / base.per_second()),
        "ours_messages_per_reply": middle(&|(_, ours)| ours.messages as f64 / ours.replies as f64),
    });
    Figure::of_repeats(name, &ratios, detail)
}

/// A fresh pair, the baseline and ours, and the size of our replies. The limit's are the same.
fn sides(is_immediate: bool, scale: &Scale, cores: Cores) -> anyhow::Result<(Side, Side, usize)> {
    let (ours, reply) = server_side(None, is_immediate, scale, 0, cores)?;
    if let Some(program) = scale.baseline.program() {
        let (other, _) = server_side(Some(program), is_immediate, scale, 1, cores)?;
        return Ok((other, ours, reply.len()));
    }
    let limit = Subject::start(Role::LimitOfReplies { core: cores.subject, immediate: is_immediate })?;
    let mut publisher = Publisher::to_limit(limit.address(), &reply)?;
    if is_immediate {
        publisher.publish(1)?;
    }
    let limit = Side::new(limit, publisher, scale, 1, ours.cursor.clone(), is_immediate)?;
    Ok((limit, ours, reply.len()))
}

/// Our server, or that of another build, and one whole reply of it.
fn server_side(
    other: Option<&Path>,
    is_immediate: bool,
    scale: &Scale,
    family: u8,
    cores: Cores,
) -> anyhow::Result<(Side, Vec<u8>)> {
    let server = Subject::start_server(other, cores.subject, FanOut::Write)?;
    let mut publisher = Publisher::to_server(server.address())?;
    publisher.publish(FIRST_PUBLICATIONS)?;
    let before = wait_for_cursor(server.address(), FIRST_PUBLICATIONS)?;
    publisher.publish(1)?;
    let after = wait_for_cursor(server.address(), FIRST_PUBLICATIONS + 1)?;
    let reply = ask(server.address(), before.as_bytes())?;
    server.ensure_io(Io::Write)?;
    let cursor = if is_immediate { before } else { after };
    Ok((Side::new(server, publisher, scale, family, cursor, is_immediate)?, reply))
}

/// One whole reply to a short poll.
fn ask(address: SocketAddr, cursor: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut socket = open_blocking(address)?;
    let mut request = Vec::new();
    encode_request(&mut request, cursor, 0);
    socket.write_all(&request)?;
    read_until(&mut socket, |found| !matches!(parse_reply(found), Ok(None)))
}

/// The server's cursor once it has published so much.
fn wait_for_cursor(address: SocketAddr, publications: u64) -> anyhow::Result<String> {
    let until = Instant::now() + PATIENCE;
    loop {
        let reply = ask(address, b"")?;
        let (_, cursor) = parse_reply(&reply)?.context("a reply is not whole")?;
        let cursor = String::from_utf8(cursor.to_vec())?;
        if cursor.ends_with(&format!(".{publications}")) {
            return Ok(cursor);
        }
        ensure!(Instant::now() < until, "{publications} publications did not arrive, the cursor is {cursor}");
    }
}

impl Side {
    fn new(
        subject: Subject,
        publisher: Publisher,
        scale: &Scale,
        family: u8,
        cursor: String,
        is_immediate: bool,
    ) -> anyhow::Result<Self> {
        let wait_s = if is_immediate { 0 } else { WAIT_S };
        let fixed = is_immediate.then(|| cursor.clone());
        let mut pollers = Pollers::connect(scale.pollers, subject.address(), family, wait_s, fixed)?;
        if !is_immediate {
            pollers.ask(&cursor)?;
        }
        Ok(Self { subject, publisher, pollers, cursor, is_immediate })
    }

    fn run(&mut self, duration: Duration) -> anyhow::Result<Work> {
        let cpu_before = self.subject.cpu_ns()?;
        let (replies, messages) = (self.pollers.replies, self.pollers.messages);
        let start = Instant::now();
        if self.is_immediate {
            self.run_immediate(duration)?;
        } else {
            self.run_held(duration)?;
        }
        let elapsed = start.elapsed();
        std::thread::sleep(Duration::from_millis(2));
        Ok(Work {
            replies: self.pollers.replies - replies,
            messages: self.pollers.messages - messages,
            cpu_ns: self.subject.cpu_ns()? - cpu_before,
            elapsed,
        })
    }

    /// One publication after the other, each when everybody has the one before. All are held again at the end.
    fn run_held(&mut self, duration: Duration) -> anyhow::Result<()> {
        let start = Instant::now();
        while start.elapsed() < duration {
            self.publisher.publish(1)?;
            let expected = self.pollers.replies + self.pollers.len() as u64;
            self.read_until(expected)?;
        }
        Ok(())
    }

    /// Everybody asks all the time.
    fn run_immediate(&mut self, duration: Duration) -> anyhow::Result<()> {
        let start = Instant::now();
        let mut asked = self.pollers.replies + self.pollers.len() as u64;
        self.pollers.is_asking = true;
        self.pollers.ask(&self.cursor)?;
        while start.elapsed() < duration {
            let before = self.pollers.replies;
            self.pollers.read(Duration::from_millis(10))?;
            asked += self.pollers.replies - before;
        }
        self.pollers.is_asking = false;
        self.read_until(asked)
    }

    fn read_until(&mut self, replies: u64) -> anyhow::Result<()> {
        let until = Instant::now() + PATIENCE;
        while self.pollers.replies < replies {
            self.pollers.read(Duration::from_millis(10))?;
            ensure!(Instant::now() < until, "{} of {replies} replies", self.pollers.replies);
        }
        ensure!(self.pollers.replies == replies, "{} instead of {replies} replies", self.pollers.replies);
        Ok(())
    }
}

impl Work {
    fn cpu_us(self) -> f64 {
        self.cpu_ns as f64 / 1000.0 / self.replies as f64
    }

    fn per_second(self) -> f64 {
        self.replies as f64 / self.elapsed.as_secs_f64()
    }
}
