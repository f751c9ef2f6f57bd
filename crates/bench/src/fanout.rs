//! Fan-out: processor time per delivery of the limit, divided by ours. 1 is as good as raw sockets can be.
//!
//! `fanout` has a `write` for each subscriber on both sides, `fanout-uring` many sends in one call of io_uring.
//!
//! The headline is the geometric mean over *all* loads: low rates, where a publication costs a wake-up and a write
//! each, count as much as saturation, where corking hides what a server does besides. The detail has each load.
//!
//! With `--against`, the server of another build takes the limit's place, and its processor time divides ours.

use crate::audience::Audience;
use crate::delivery;
use crate::figure::{Figure, rounded};
use crate::frames::{PAYLOAD, subscription};
use crate::processor::Cores;
use crate::publisher::Publisher;
use crate::scale::Scale;
use crate::side::{Side, Terms, compare, details};
use crate::subject::{FanOut, Role, Subject};
use crate::{connect, subject};
use mio::net::TcpStream;
use pushlab_server::Io;
use pushlab_wire::transport::Transport;
use serde_json::json;

/// Measures one transport.
pub fn measure(
    name: &'static str,
    transport: Transport,
    io: Io,
    scale: &Scale,
    cores: Cores,
) -> anyhow::Result<Figure> {
    let terms =
        Terms { baseline: scale.baseline.name(), ratio: &|baseline, ours| scale.baseline.ratio(baseline, ours) };
    let (mut headlines, mut pairs) = (Vec::new(), Vec::new());
    let mut delivery_bytes = 0;
    for _ in 0..scale.repeats {
        let (mut base, mut ours) = sides(transport, io, scale, cores, &mut delivery_bytes)?;
        headlines.push(compare(&mut base, &mut ours, &scale.loads, scale, &terms, &mut pairs)?);
    }
    let ratio = scale.baseline.ratio_in_words();
    let detail = json!({
        "headline": format!("geometric mean over the loads of (CPU per delivery, {ratio}); median of the repeats"),
        "repeats": headlines.iter().copied().map(rounded).collect::<Vec<_>>(),
        "subscribers": scale.subscribers,
        "payload_bytes": PAYLOAD.len(),
        "delivery_bytes": delivery_bytes,
        "loads": details(&scale.loads, &pairs, &terms),
    });
    Figure::of_repeats(name, &headlines, detail)
}

/// A fresh pair: the baseline and ours. The limit delivers the very bytes that our server was seen to deliver.
fn sides(
    transport: Transport,
    io: Io,
    scale: &Scale,
    cores: Cores,
    delivery_bytes: &mut usize,
) -> anyhow::Result<(Side<TcpStream>, Side<TcpStream>)> {
    let request = subscription(transport);
    let publisher_of = |server: &Subject| {
        let mut publisher = Publisher::to_server(server.address())?;
        let delivery = delivery::learn(transport, server, &mut publisher)?;
        server.ensure_io(io)?;
        anyhow::Ok((publisher, delivery))
    };
    let server = Subject::start(Role::Server(subject::Serve::plain(cores.subject, io.into())))?;
    let (publisher, delivery) = publisher_of(&server)?;
    *delivery_bytes = delivery.len();
    let start_limit = |family| {
        let limit = Subject::start(Role::LimitOfFanout { core: cores.subject, uring: io == Io::Uring })?;
        let publisher = Publisher::to_limit(limit.address(), &delivery)?;
        side(limit, publisher, scale, family, &request)
    };
    let ours = if scale.is_null_test { start_limit(0)? } else { side(server, publisher, scale, 0, &request)? };
    let Some(program) = scale.baseline.program() else { return Ok((start_limit(1)?, ours)) };
    let other = Subject::start_server(Some(program), cores.subject, FanOut::Write)?;
    let (publisher, _) = publisher_of(&other)?;
    Ok((side(other, publisher, scale, 1, &request)?, ours))
}

fn side(
    subject: Subject,
    publisher: Publisher,
    scale: &Scale,
    family: u8,
    request: &[u8],
) -> anyhow::Result<Side<TcpStream>> {
    let mut audience = Audience::new()?;
    let address = subject.address();
    audience.grow(scale.subscribers, |index| connect::open(address, family, index, request), None)?;
    Ok(Side { subject, publisher, audience, subscribers: scale.subscribers })
}
