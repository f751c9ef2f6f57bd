//! HTTP/2 beside HTTP/1.1, both with TLS: processor time per delivery, and memory.
//!
//! The same subscribers are on a connection each over HTTP/1.1, and over HTTP/2 on streams: one on a connection, or
//! twelve, as the tabs of a browser are.

use crate::audience::{Audience, Peer};
use crate::figure::{Figure, rounded};
use crate::frames::{FIRST_PUBLICATIONS, PAYLOAD, server_counter_over, subscription};
use crate::memory::{SETTLE, slope};
use crate::processor::Cores;
use crate::publisher::Publisher;
use crate::scale::Scale;
use crate::secure::{Certificate, Http2, Tls};
use crate::side::{Side, Terms, compare, details};
use crate::subject::{Role, Serve, Subject};
use anyhow::{Context as _, ensure};
use pushlab_wire::transport::Transport;
use serde_json::json;

/// Streams of one connection, in the figures whose names end with it.
const STREAMS: usize = 12;
/// Source addresses: HTTP/1.1's, HTTP/2's.
const FAMILIES: [u8; 2] = [30, 31];
/// The figure of a connection's memory; the other is that of a further stream.
const CONNECTION: &str = "memory/http2";

/// Measures what the name says: a transport, and whether twelve share a connection.
pub fn measure(name: &'static str, of: &str, scale: &Scale, cores: Cores) -> anyhow::Result<Figure> {
    let (of, streams) = of.strip_suffix("-12").map_or((of, 1), |of| (of, STREAMS));
    let transport = Transport::from_name(of).with_context(|| format!("nothing measures {name}"))?;
    let connections = scale.subscribers.div_ceil(streams);
    let subscribers = connections * streams;
    let certificate = Certificate::make()?;
    let (http1, http2) = (certificate.http1(), certificate.http2());
    let request = subscription(transport);
    let terms = Terms { baseline: "http1", ratio: &|http1, http2| http2 / http1 };
    let (mut headlines, mut pairs) = (Vec::new(), Vec::new());
    for _ in 0..scale.repeats {
        let [base, ours] = [start(&certificate, cores)?, start(&certificate, cores)?];
        let (one, other) = (base.address(), ours.address());
        let over_http1 = |index| Tls::open(one, FAMILIES[0], index, &http1, &request);
        let over_http2 = |index| Http2::open(other, FAMILIES[1], index, &http2, transport, streams);
        let mut base = side(base, &certificate, subscribers, 1, over_http1)?;
        let mut ours = side(ours, &certificate, connections, streams, over_http2)?;
        headlines.push(compare(&mut base, &mut ours, &scale.secure_loads, scale, &terms, &mut pairs)?);
    }
    let detail = json!({
        "headline": "geometric mean over the loads of (CPU per delivery, HTTP/2 / HTTP/1.1, both with TLS); median of \
                     the repeats",
        "repeats": headlines.iter().copied().map(rounded).collect::<Vec<_>>(),
        "subscribers": subscribers,
        "streams_per_connection": streams,
        "payload_bytes": PAYLOAD.len(),
        "loads": details(&scale.secure_loads, &pairs, &terms),
    });
    Figure::of_repeats(name, &headlines, detail)
}

/// A server with its publisher, and so many connections with so many subscribers each.
fn side<P: Peer>(
    subject: Subject,
    certificate: &Certificate,
    connections: usize,
    subscribers_each: usize,
    open: impl Fn(usize) -> anyhow::Result<P>,
) -> anyhow::Result<Side<P>> {
    let mut publisher = Publisher::of_payloads(certificate.open_blocking(subject.address())?, &[PAYLOAD])?;
    publisher.publish(FIRST_PUBLICATIONS)?;
    let mut audience = Audience::new()?;
    audience.grow(connections, open, None)?;
    Ok(Side { subject, publisher, audience, subscribers: connections * subscribers_each })
}

fn start(certificate: &Certificate, cores: Cores) -> anyhow::Result<Subject> {
    let serve = Serve::plain(cores.subject, Default::default());
    Subject::start(Role::Server(Serve { tls: Some(certificate.folder().to_owned()), ..serve }))
}

/// Measures what a connection with one idle stream takes, or each further one: the slope of the server's own memory.
pub fn measure_memory(name: &'static str, scale: &Scale, cores: Cores) -> anyhow::Result<Figure> {
    let certificate = Certificate::make()?;
    let client = certificate.http2();
    let server = start(&certificate, cores)?;
    let address = server.address();
    let open_count =
        |counter: &str| server_counter_over(&mut certificate.open_blocking(address)?, counter).context("no counters");
    // What the first connection brings to life is not what a connection costs.
    open_count("/open")?;
    let base_kib = server.anonymous_bytes()? as f64 / 1024.0;
    let mut audience = Audience::new()?;
    let open = |index| Http2::open(address, FAMILIES[1], index, &client, Transport::Sse, 1);
    let mut points = Vec::new();
    let mut look = |streams: usize| {
        std::thread::sleep(SETTLE);
        points.push((streams as f64, server.anonymous_bytes()? as f64 / 1024.0));
        anyhow::Ok(())
    };
    let (connections, streams) = if name == CONNECTION {
        for &count in &scale.secure_connections {
            audience.grow(count, open, None)?;
            look(count)?;
        }
        (audience.len(), audience.len())
    } else {
        let connections = scale.connections_with_streams;
        audience.grow(connections, open, None)?;
        look(connections)?;
        for streams in 2..=STREAMS {
            audience.ask(Http2::subscribe)?;
            look(streams * connections)?;
        }
        (connections, STREAMS * connections)
    };
    let found = [open_count("/http2")?, open_count("/connections/sse")?];
    let expected = [connections as u64, streams as u64];
    ensure!(found == expected, "the server has {found:?} connections and streams instead of {expected:?}");
    let (slope, half) = slope(&points)?;
    let detail = json!({
        "headline": "least-squares slope of anonymous memory over idle streams",
        "connections": connections,
        "base_kib": rounded(base_kib),
        "counts": points.iter().map(|(n, kib)| json!([n, rounded(*kib)])).collect::<Vec<_>>(),
    });
    Ok(Figure::with_interval(name, slope, half, 1, detail))
}
