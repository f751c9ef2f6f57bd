//! The bytes of sock_diag(7), in the machine's own byte order; ports alone are in network order.
//!
//! Pure functions: the kernel is trusted to mean well, not to be the version this was written for, so every length
//! is checked and nothing here panics.

use crate::sample::TcpStates;
use pushlab_os::netlink::{NetlinkError, Request, attribute, u32_at, u64_at};

/// `inet_diag_req_v2`: four bytes, the states u32, a socket id of 48.
const REQUEST_BYTES: usize = 56;
/// `inet_diag_msg`: four bytes, a socket id of 48, five u32.
const SOCKET_BYTES: usize = 72;

/// In `inet_diag_msg`.
const INODE: usize = 68;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const INET_DIAG_INFO: u16 = 2;
/// Of `IPPROTO_TCP`.
const TCP: u8 = 6;

/// `AF_INET` and `AF_INET6`.
pub(super) const FAMILIES: [u8; 2] = [2, IPV6];
pub(super) const IPV6: u8 = 10;

const TCP_ESTABLISHED: u8 = 1;
const TCP_LISTEN: u8 = 10;
/// Bits 1 (established) to 11 (closing); a half-open connection is told as `SYN-RECEIVED`.
const ALL_STATES: u32 = 0xffe;

// Offsets in `struct tcp_info` (linux/tcp.h), which only ever grows at its end.
const INFO_TOTAL_RETRANS: usize = 100;
const INFO_BYTES_ACKED: usize = 120;
const INFO_BYTES_RECEIVED: usize = 128;

/// A request for all TCP sockets of a family with a local port.
pub(super) fn request(family: u8, port: u16, totals: bool) -> Request {
    Request::new(SOCK_DIAG_BY_FAMILY, &fixed_part(family, port, ALL_STATES, totals))
}

/// A request for those that listen.
pub(super) fn request_listening(family: u8, port: u16) -> Request {
    Request::new(SOCK_DIAG_BY_FAMILY, &fixed_part(family, port, 1 << TCP_LISTEN, false))
}

fn fixed_part(family: u8, port: u16, states: u32, totals: bool) -> [u8; REQUEST_BYTES] {
    let mut bytes = [0; REQUEST_BYTES];
    bytes[0] = family;
    bytes[1] = TCP;
    bytes[2] = if totals { 1 << (INET_DIAG_INFO - 1) } else { 0 };
    bytes[4..8].copy_from_slice(&states.to_ne_bytes());
    // The id's first field; the kernel filters a dump by it.
    bytes[8..10].copy_from_slice(&port.to_be_bytes());
    bytes
}

/// Adds one message of an answer to `states`.
pub(super) fn add(kind: u16, body: &[u8], states: &mut TcpStates) -> Result<(), NetlinkError> {
    if kind == SOCK_DIAG_BY_FAMILY { socket(body, states) } else { Ok(()) }
}

/// The inode of a socket in one message of an answer: its descriptors are links to `socket:[INODE]`.
pub(super) fn inode(kind: u16, body: &[u8]) -> Option<u32> {
    u32_at(body, INODE).filter(|_| kind == SOCK_DIAG_BY_FAMILY)
}

fn socket(body: &[u8], states: &mut TcpStates) -> Result<(), NetlinkError> {
    let short = NetlinkError::Malformed("half a socket");
    let (Some(state), Some(attributes)) = (body.get(1), body.get(SOCKET_BYTES..)) else { return Err(short) };
    let (Some(receive_queue), Some(send_queue)) = (u32_at(body, 56), u32_at(body, 60)) else { return Err(short) };
    let count = match *state {
        TCP_ESTABLISHED => &mut states.established,
        2 => &mut states.syn_sent,
        // 12 is a half-open connection's own state, which the kernel maps to 3.
        3 | 12 => &mut states.syn_received,
        4 => &mut states.fin_wait_1,
        5 => &mut states.fin_wait_2,
        6 => &mut states.time_wait,
        7 => &mut states.closed,
        8 => &mut states.close_wait,
        9 => &mut states.last_ack,
        TCP_LISTEN => &mut states.listen,
        11 => &mut states.closing,
        _ => return Ok(()),
    };
    *count = count.saturating_add(1);
    if *state == TCP_LISTEN {
        // For a listening socket the queues are connections: waiting for accept, and their limit.
        states.accept_queue = states.accept_queue.saturating_add(receive_queue);
        return Ok(());
    }
    states.receive_queue_bytes = states.receive_queue_bytes.saturating_add(u64::from(receive_queue));
    states.send_queue_bytes = states.send_queue_bytes.saturating_add(u64::from(send_queue));
    if let (Some(totals), Some(info)) = (&mut states.totals, attribute(attributes, INET_DIAG_INFO)) {
        // An old kernel's tcp_info is shorter; what it lacks counts as 0.
        totals.retransmits += u64::from(u32_at(info, INFO_TOTAL_RETRANS).unwrap_or(0));
        totals.sent_bytes = totals.sent_bytes.saturating_add(u64_at(info, INFO_BYTES_ACKED).unwrap_or(0));
        totals.received_bytes = totals.received_bytes.saturating_add(u64_at(info, INFO_BYTES_RECEIVED).unwrap_or(0));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::TcpTotals;

    fn socket_body(state: u8, queues: (u32, u32), info: Option<(u32, u64, u64)>) -> Vec<u8> {
        let mut body = vec![0; SOCKET_BYTES];
        body[1] = state;
        body[56..60].copy_from_slice(&queues.0.to_ne_bytes());
        body[60..64].copy_from_slice(&queues.1.to_ne_bytes());
        // An attribute of another kind and odd length comes first.
        body.extend([5, 0, 8, 0, 1, 0, 0, 0]);
        if let Some((retransmits, sent, received)) = info {
            let mut bytes = vec![0; 232];
            bytes[INFO_TOTAL_RETRANS..][..4].copy_from_slice(&retransmits.to_ne_bytes());
            bytes[INFO_BYTES_ACKED..][..8].copy_from_slice(&sent.to_ne_bytes());
            bytes[INFO_BYTES_RECEIVED..][..8].copy_from_slice(&received.to_ne_bytes());
            body.extend((bytes.len() as u16 + 4).to_ne_bytes());
            body.extend(INET_DIAG_INFO.to_ne_bytes());
            body.extend(bytes);
        }
        body
    }

    fn summed(bodies: &[Vec<u8>]) -> TcpStates {
        let mut states = TcpStates { totals: Some(TcpTotals::default()), ..TcpStates::default() };
        bodies.iter().for_each(|body| add(SOCK_DIAG_BY_FAMILY, body, &mut states).unwrap());
        states
    }

    #[test]
    fn an_answer_is_summed() {
        let established = socket_body(1, (10, 20), Some((3, 400, 500)));
        let listening = socket_body(TCP_LISTEN, (4, 128), Some((0, 9, 9)));
        let expected = TcpStates {
            established: 1,
            listen: 1,
            time_wait: 1,
            accept_queue: 4,
            receive_queue_bytes: 10,
            send_queue_bytes: 20,
            totals: Some(TcpTotals { sent_bytes: 400, received_bytes: 500, retransmits: 3 }),
            ..TcpStates::default()
        };
        assert_eq!(summed(&[established, listening, socket_body(6, (0, 0), None)]), expected);
    }

    #[test]
    fn cut_off_or_damaged_answers_never_panic() {
        let whole = socket_body(1, (10, 20), Some((3, 400, 500)));
        let read = |body: &[u8]| {
            let mut states = TcpStates { totals: Some(TcpTotals::default()), ..TcpStates::default() };
            let _ = add(SOCK_DIAG_BY_FAMILY, body, &mut states);
        };
        (0..whole.len()).for_each(|length| read(&whole[..length]));
        // xorshift64, seed 1: the damage is the same in every run.
        let mut random = 1u64;
        for _ in 0..50_000 {
            let mut damaged = whole.clone();
            for _ in 0..3 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let at = random as usize % damaged.len();
                damaged[at] = (random >> 32) as u8;
            }
            read(&damaged);
        }
    }

    #[test]
    fn requests_have_the_kernels_layout() {
        let bytes = fixed_part(2, 0x1f90, ALL_STATES, true);
        assert_eq!(bytes.len(), 56);
        assert_eq!((bytes[0], bytes[1], bytes[2]), (2, 6, 2));
        assert_eq!(bytes[8..10], [0x1f, 0x90]);
    }
}
