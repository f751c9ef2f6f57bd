//! What the kernel holds for a server's sockets, by sock_diag(7).

use anyhow::Context as _;
use pushlab_os::netlink::{Family, NetlinkError, Request, Socket, attribute, u32_at};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// `INET_DIAG_SKMEMINFO`: the numbers of a socket's memory.
const MEMORY: u16 = 7;
/// Of those, `SK_MEMINFO_RMEM_ALLOC`, `_FWD_ALLOC`, `_WMEM_QUEUED`, `_OPTMEM` and `_BACKLOG`: bytes. The others are limits,
/// or are among these.
const HELD: [usize; 5] = [0, 4, 5, 6, 7];
/// `inet_diag_req_v2` and `inet_diag_msg`.
const REQUEST_BYTES: usize = 56;
const SOCKET_BYTES: usize = 72;
const AF_INET: u8 = 2;
const TCP: u8 = 6;

/// Buffers of all sockets with this local port: those of the server, not those of its peers on the same machine. Bytes.
pub fn held_bytes(port: u16) -> anyhow::Result<u64> {
    let mut fixed = [0; REQUEST_BYTES];
    (fixed[0], fixed[1], fixed[2]) = (AF_INET, TCP, 1 << (MEMORY - 1));
    // All states.
    fixed[4..8].copy_from_slice(&u32::MAX.to_ne_bytes());
    fixed[8..10].copy_from_slice(&port.to_be_bytes());
    let mut total = 0;
    let add = |kind, body: &[u8]| {
        let numbers = body.get(SOCKET_BYTES..).and_then(|attributes| attribute(attributes, MEMORY));
        if let Some(numbers) = numbers.filter(|_| kind == SOCK_DIAG_BY_FAMILY) {
            total += HELD.iter().filter_map(|&at| u32_at(numbers, 4 * at)).map(u64::from).sum::<u64>();
        }
        Ok::<(), NetlinkError>(())
    };
    let mut socket = Socket::open(Family::SockDiag).context("cannot ask for the kernel's memory")?;
    socket.list(Request::new(SOCK_DIAG_BY_FAMILY, &fixed), add).context("the kernel does not say what it holds")?;
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn what_nobody_has_taken_is_held() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (mut accepted, _) = listener.accept().unwrap();
        let before = held_bytes(port).unwrap();
        accepted.set_nonblocking(true).unwrap();
        let mut written = 0;
        while let Ok(bytes) = accepted.write(&[0; 64 * 1024]) {
            written += bytes as u64;
        }
        let (ours, theirs) =
            (held_bytes(port).unwrap() - before, held_bytes(client.local_addr().unwrap().port()).unwrap());
        assert!(ours > 0 && ours + theirs > written, "{ours} and {theirs} of {written}");
    }
}
