//! The load of the rooms of one subject: a process of its own, since a process may hold 20,000 descriptors.
//!
//! It says when all are subscribed, then takes orders on its standard input, a line of JSON each, and answers each with
//! a line of what came of it.

use crate::audience::Audience;
use crate::connect::{self, PATIENCE, open_blocking, read_until};
use crate::frames::stamped;
use crate::scale::Load;
use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum};
use pushlab_os::clock::monotonic_ns;
use pushlab_stats::Histogram;
use pushlab_wire::websocket::{Opcode, encode, handshake};
use pushlab_workload::rooms::Rooms;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::io::{BufRead as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// What the memberships are drawn from.
const SEED: u64 = 1;

/// How a subject is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Dialect {
    /// Our server's: `["pub",CHANNEL,DATA]`.
    Native,
    /// Frames are the data; the path names the channel.
    Bare,
}

/// How many, and in how many rooms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args)]
pub struct Shape {
    /// Subscribers.
    #[arg(long)]
    pub clients: u32,
    /// Rooms there are.
    #[arg(long)]
    pub rooms: u32,
    /// Rooms of each subscriber, drawn at random.
    #[arg(long)]
    pub rooms_per_client: u32,
}

/// Whom to load, and with how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args)]
pub struct Plan {
    /// Where it runs.
    #[arg(long)]
    pub core: usize,
    /// Where the subject listens.
    #[arg(long)]
    pub address: SocketAddr,
    /// How it is spoken to.
    #[arg(long)]
    pub dialect: Dialect,
    /// Who is where.
    #[command(flatten)]
    pub shape: Shape,
    /// Family of source addresses: see [`crate::connect`].
    #[arg(long)]
    pub family: u8,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// The publications of all rooms together.
    pub load: Load,
    /// How long.
    pub duration: Duration,
}

/// What came of an order.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub deliveries: u64,
    pub elapsed: Duration,
    /// Latency from the intended instant.
    pub p50_ns: u64,
    pub p99_ns: u64,
    /// See [`Audience::segments`].
    pub segments: u64,
    /// Publications that left later than a whole interval after their instant.
    pub late: u64,
}

impl Shape {
    /// Hardly two want the same: each is in ten of a hundred rooms.
    pub const fn rooms(clients: u32) -> Self {
        Self { clients, rooms: 100, rooms_per_client: 10 }
    }

    /// All want the same: one room and nothing else.
    pub const fn broadcast(clients: u32) -> Self {
        Self { clients, rooms: 1, rooms_per_client: 1 }
    }

    /// The rooms, without those that nobody is in; the same for every subject.
    pub fn draw(self) -> Rooms {
        Rooms::draw(self.clients, self.rooms, self.rooms_per_client, SEED)
    }
}

/// Deliveries of a publication, on average over the rooms.
pub fn mean_members(rooms: &Rooms) -> f64 {
    let places: usize = (0..rooms.count()).map(|room| rooms.members(room).len()).sum();
    places as f64 / f64::from(rooms.count())
}

impl Plan {
    /// Its command line.
    pub fn arguments(self) -> Vec<String> {
        let dialect = self.dialect.to_possible_value().expect("no dialect is hidden");
        let options = [
            ("core", self.core.to_string()),
            ("address", self.address.to_string()),
            ("dialect", dialect.get_name().to_owned()),
            ("clients", self.shape.clients.to_string()),
            ("rooms", self.shape.rooms.to_string()),
            ("rooms-per-client", self.shape.rooms_per_client.to_string()),
            ("family", self.family.to_string()),
        ];
        let options = options.map(|(name, value)| format!("--{name}={value}"));
        std::iter::once("rooms-load".to_owned()).chain(options).collect()
    }
}

/// Runs until its standard input ends.
pub fn run(plan: Plan) -> anyhow::Result<()> {
    let mut crowd = Crowd::gather(plan)?;
    println!("{}", plan.address);
    for line in std::io::stdin().lock().lines() {
        let order: Order = serde_json::from_str(&line?).context("an order is not understood")?;
        println!("{}", serde_json::to_string(&crowd.run(order)?)?);
    }
    Ok(())
}

/// Everybody in the rooms, and a publisher for each.
struct Crowd {
    rooms: Rooms,
    mean_members: f64,
    dialect: Dialect,
    audience: Audience,
    publishers: Vec<TcpStream>,
    rng: fastrand::Rng,
    frame: Vec<u8>,
    text: String,
}

impl Crowd {
    fn gather(plan: Plan) -> anyhow::Result<Self> {
        let rooms = plan.shape.draw();
        let clients = 0..plan.shape.clients;
        let requests: Vec<Vec<u8>> = clients.map(|client| subscription(rooms.of_client(client))).collect();
        let mut audience = Audience::new()?;
        let open = |index: usize| connect::open(plan.address, plan.family, index, &requests[index]);
        audience.grow(requests.len(), open, None)?;
        let publisher = |room| publisher(plan.address, plan.dialect, room);
        let publishers = (0..rooms.count()).map(publisher).collect::<anyhow::Result<_>>()?;
        Ok(Self {
            mean_members: mean_members(&rooms),
            rooms,
            dialect: plan.dialect,
            audience,
            publishers,
            rng: fastrand::Rng::with_seed(SEED),
            frame: Vec::new(),
            text: String::new(),
        })
    }

    /// Publishes for some time and waits until all of it has been delivered.
    fn run(&mut self, order: Order) -> anyhow::Result<Report> {
        let deliveries = self.audience.tally.deliveries;
        let segments = self.audience.segments()?;
        self.audience.tally.latency = Some(Histogram::new());
        let (start, start_ns) = (Instant::now(), monotonic_ns());
        let (mut published, mut expected, mut late) = (0, 0, 0);
        let mut until = start + order.duration + PATIENCE;
        loop {
            let received = self.audience.tally.deliveries - deliveries;
            let elapsed = start.elapsed();
            let is_over = elapsed >= order.duration && published > 0;
            if is_over && received >= expected {
                break;
            }
            let mut timeout = Duration::from_millis(10);
            if !is_over {
                let under_way = (expected.saturating_sub(received) as f64 / self.mean_members).ceil() as u64;
                let due = order.load.due(elapsed, published, under_way);
                for _ in 0..due.count {
                    let intended_ns = match order.load {
                        Load::PerSecond(rate) => start_ns + published * 1_000_000_000 / u64::from(rate),
                        Load::Saturation { .. } => monotonic_ns(),
                    };
                    expected += self.publish(intended_ns)?;
                    published += 1;
                }
                late += due.late;
                if due.count > 0 {
                    until = Instant::now() + PATIENCE;
                }
                timeout = due.next;
            }
            self.audience.read(timeout)?;
            ensure!(Instant::now() < until, "deliveries are missing: {received} of {expected}");
        }
        let elapsed = start.elapsed();
        // What the subject does behind its last write belongs to it.
        std::thread::sleep(Duration::from_millis(2));
        let received = self.audience.tally.deliveries - deliveries;
        ensure!(received == expected, "{received} deliveries instead of {expected}");
        let latency = self.audience.tally.latency.take().context("nothing was recorded")?;
        let quantile = |q| latency.quantile(q).context("nothing was delivered");
        Ok(Report {
            deliveries: received,
            elapsed,
            p50_ns: quantile(0.5)?,
            p99_ns: quantile(0.99)?,
            segments: self.audience.segments()? - segments,
            late,
        })
    }

    /// Publishes to a room; gives the number of its members.
    fn publish(&mut self, intended_ns: u64) -> anyhow::Result<u64> {
        let room = self.rng.u32(0..self.rooms.count());
        let payload = stamped(intended_ns);
        self.text.clear();
        match self.dialect {
            Dialect::Native => write!(self.text, "[\"pub\",\"r{room}\",{payload}]")?,
            Dialect::Bare => self.text.push_str(&payload),
        }
        self.frame.clear();
        encode(&mut self.frame, Opcode::Text, self.text.as_bytes(), Some([1, 2, 3, 4]));
        self.publishers[room as usize].write_all(&self.frame).context("cannot publish")?;
        Ok(self.rooms.members(room).len() as u64)
    }
}

fn subscription(rooms: &[u32]) -> Vec<u8> {
    let mut path = "/ws".to_owned();
    for (index, room) in rooms.iter().enumerate() {
        let before = if index == 0 { '?' } else { '&' };
        write!(path, "{before}channel=r{room}").expect("writing to a String cannot fail");
    }
    let mut request = Vec::new();
    handshake::encode_request(&mut request, "bench", &path, *b"0123456789abcdef");
    request
}

fn publisher(address: SocketAddr, dialect: Dialect, room: u32) -> anyhow::Result<TcpStream> {
    let mut socket = open_blocking(address)?;
    let (path, greeting): (_, &[u8]) = match dialect {
        Dialect::Native => ("/ws".to_owned(), b"\"]"),
        Dialect::Bare => (format!("/ws?publish=r{room}"), b"\r\n\r\n"),
    };
    let mut request = Vec::new();
    handshake::encode_request(&mut request, "bench", &path, *b"0123456789abcdef");
    socket.write_all(&request)?;
    read_until(&mut socket, |found| found.ends_with(greeting))?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broadcast_reaches_everybody_once() {
        let rooms = Shape::broadcast(9).draw();
        assert_eq!(rooms.count(), 1);
        assert_eq!(rooms.members(0), (0..9).collect::<Vec<_>>());
        assert_eq!(mean_members(&rooms), 9.0);
    }

    #[test]
    fn in_rooms_a_publication_reaches_a_tenth() {
        let rooms = Shape::rooms(1000).draw();
        assert_eq!((rooms.count(), rooms.per_client()), (100, 10));
        assert_eq!(mean_members(&rooms), 100.0);
    }
}
