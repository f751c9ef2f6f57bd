//! One delivery as our server writes it, for the limit to copy.

use crate::connect::{open_blocking, read_until};
use crate::frames::{FIRST_PUBLICATIONS, PAYLOAD, deliveries_in, subscription};
use crate::publisher::Publisher;
use crate::subject::Subject;
use pushlab_wire::transport::Transport;
use std::io::Write as _;

/// One delivery as our server writes it to a subscriber.
pub fn learn(transport: Transport, server: &Subject, publisher: &mut Publisher) -> anyhow::Result<Vec<u8>> {
    let mut socket = open_blocking(server.address())?;
    socket.write_all(&subscription(transport))?;
    read_until(&mut socket, |found| found.windows(4).any(|w| w == b"\r\n\r\n") && has_cursor(transport, found))?;
    publisher.publish(FIRST_PUBLICATIONS)?;
    let ending = |found: &[u8], count: u64| deliveries_in(found) >= count && ends_delivery(transport, found);
    read_until(&mut socket, |found| ending(found, FIRST_PUBLICATIONS))?;
    publisher.publish(1)?;
    let delivery = read_until(&mut socket, |found| ending(found, 1))?;
    anyhow::ensure!(delivery.len() > PAYLOAD.len() && delivery.len() < 200, "a delivery of {} bytes", delivery.len());
    Ok(delivery)
}

/// Whether what came so far holds the position at which a stream begins.
fn has_cursor(transport: Transport, found: &[u8]) -> bool {
    match transport {
        Transport::Sse => found.windows(3).any(|w| w == b"id:") && found.ends_with(b"\n\n\r\n"),
        Transport::HttpStreaming => found.ends_with(b"]\n\r\n"),
        _ => found.ends_with(b"\"]"),
    }
}

fn ends_delivery(transport: Transport, found: &[u8]) -> bool {
    match transport {
        Transport::Sse => found.ends_with(b"\n\n\r\n"),
        Transport::HttpStreaming => found.ends_with(b"]\n\r\n"),
        _ => found.ends_with(b"\"]"),
    }
}
