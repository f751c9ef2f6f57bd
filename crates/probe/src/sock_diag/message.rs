//! The bytes of sock_diag(7) and netlink(7), in the machine's own byte order; ports alone are in network order.
//!
//! Pure functions: the kernel is trusted to mean well, not to be the version this was written for, so every length
//! is checked and nothing here panics.

use super::SockDiagError;
use crate::sample::TcpStates;
use std::io;

/// netlink header and `inet_diag_req_v2`.
pub(super) const REQUEST_BYTES: usize = HEADER_BYTES + 56;

/// `nlmsghdr`: length u32, type u16, flags u16, sequence u32, port u32.
const HEADER_BYTES: usize = 16;
/// `inet_diag_msg`: four bytes, a socket id of 48, five u32.
const SOCKET_BYTES: usize = 72;
const ATTRIBUTE_HEADER_BYTES: usize = 4;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST_DUMP: u16 = 0x001 | 0x300;
const INET_DIAG_INFO: u16 = 2;

const TCP_ESTABLISHED: u8 = 1;
const TCP_LISTEN: u8 = 10;
/// Bits 1 (established) to 11 (closing); a half-open connection is told as `SYN-RECEIVED`.
const ALL_STATES: u32 = 0xffe;

// Offsets in `struct tcp_info` (linux/tcp.h), which only ever grows at its end.
const INFO_TOTAL_RETRANS: usize = 100;
const INFO_BYTES_ACKED: usize = 120;
const INFO_BYTES_RECEIVED: usize = 128;

/// Whether a dump goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    More,
    Done,
}

/// A request for all TCP sockets of a family with a local port.
pub(super) fn request(sequence: u32, family: u8, port: u16, totals: bool) -> [u8; REQUEST_BYTES] {
    let mut bytes = [0; REQUEST_BYTES];
    bytes[0..4].copy_from_slice(&(REQUEST_BYTES as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&NLM_F_REQUEST_DUMP.to_ne_bytes());
    bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
    bytes[16] = family;
    bytes[17] = libc::IPPROTO_TCP as u8;
    bytes[18] = if totals { 1 << (INET_DIAG_INFO - 1) } else { 0 };
    bytes[20..24].copy_from_slice(&ALL_STATES.to_ne_bytes());
    // The id's first field; the kernel filters a dump by it.
    bytes[24..26].copy_from_slice(&port.to_be_bytes());
    bytes
}

/// Adds one datagram of an answer to `states`. Messages with another sequence number belong to a dump that was
/// given up, and are passed over.
pub(super) fn parse(mut rest: &[u8], sequence: u32, states: &mut TcpStates) -> Result<Progress, SockDiagError> {
    while !rest.is_empty() {
        let length = u32_at(rest, 0).ok_or(SockDiagError::Malformed("half a netlink header"))? as usize;
        let message = rest.get(..length).filter(|message| message.len() >= HEADER_BYTES);
        let message = message.ok_or(SockDiagError::Malformed("a netlink length beyond its datagram"))?;
        rest = rest.get(align(length)..).unwrap_or_default();
        if u32_at(message, 8) != Some(sequence) {
            continue;
        }
        let body = &message[HEADER_BYTES..];
        match u16_at(message, 4) {
            Some(NLMSG_DONE) => return Ok(Progress::Done),
            Some(NLMSG_ERROR) => {
                let code = u32_at(body, 0).ok_or(SockDiagError::Malformed("an error without a code"))?;
                return Err(SockDiagError::Refused(io::Error::from_raw_os_error((code as i32).saturating_neg())));
            }
            Some(SOCK_DIAG_BY_FAMILY) => socket(body, states)?,
            _ => {}
        }
    }
    Ok(Progress::More)
}

fn socket(body: &[u8], states: &mut TcpStates) -> Result<(), SockDiagError> {
    let short = SockDiagError::Malformed("half a socket");
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

/// The payload of the first attribute of a kind (rtnetlink(7)): length u16, kind u16, payload, padding to 4.
fn attribute(mut rest: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16_at(rest, 0)?);
        let payload = rest.get(ATTRIBUTE_HEADER_BYTES..length)?;
        if u16_at(rest, 2)? == kind {
            return Some(payload);
        }
        rest = rest.get(align(length)..)?;
    }
}

/// Netlink pads messages and attributes to 4 bytes.
fn align(length: usize) -> usize {
    length.saturating_add(3) & !3
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::TcpTotals;

    fn message(kind: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = ((HEADER_BYTES + body.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 2]);
        bytes.extend(sequence.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(body);
        bytes.resize(align(bytes.len()), 0);
        bytes
    }

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

    fn answer() -> Vec<u8> {
        let mut bytes = message(SOCK_DIAG_BY_FAMILY, 7, &socket_body(1, (10, 20), Some((3, 400, 500))));
        bytes.extend(message(SOCK_DIAG_BY_FAMILY, 6, &socket_body(1, (1, 1), None)));
        bytes.extend(message(SOCK_DIAG_BY_FAMILY, 7, &socket_body(TCP_LISTEN, (4, 128), Some((0, 9, 9)))));
        bytes.extend(message(SOCK_DIAG_BY_FAMILY, 7, &socket_body(6, (0, 0), None)));
        bytes.extend(message(NLMSG_DONE, 7, &[0; 4]));
        bytes
    }

    #[test]
    fn an_answer_is_summed() {
        let mut states = TcpStates { totals: Some(TcpTotals::default()), ..TcpStates::default() };
        assert_eq!(parse(&answer(), 7, &mut states).unwrap(), Progress::Done);
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
        assert_eq!(states, expected);
    }

    #[test]
    fn a_refusal_keeps_its_cause() {
        let refusal = message(NLMSG_ERROR, 1, &(-libc::ENOENT).to_ne_bytes());
        let error = parse(&refusal, 1, &mut TcpStates::default()).unwrap_err();
        assert!(matches!(&error, SockDiagError::Refused(cause) if cause.kind() == io::ErrorKind::NotFound), "{error}");
    }

    #[test]
    fn cut_off_or_damaged_answers_never_panic() {
        let whole = answer();
        for length in 0..whole.len() {
            let _ = parse(&whole[..length], 7, &mut TcpStates::default());
        }
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
            let mut states = TcpStates { totals: Some(TcpTotals::default()), ..TcpStates::default() };
            let _ = parse(&damaged, 7, &mut states);
        }
    }

    #[test]
    fn a_length_of_nothing_is_an_error_not_an_endless_loop() {
        assert!(parse(&[0; 32], 0, &mut TcpStates::default()).is_err());
        assert_eq!(attribute(&[0; 16], 2), None);
    }

    #[test]
    fn requests_have_the_kernels_layout() {
        let bytes = request(9, 2, 0x1f90, true);
        assert_eq!(bytes.len(), 72);
        assert_eq!((bytes[16], bytes[17], bytes[18]), (2, 6, 2));
        assert_eq!(bytes[24..26], [0x1f, 0x90]);
    }
}
