//! Messages to the kernel and from it, in the format of netlink(7) and in the machine's own byte order.
//!
//! Formats are pure functions: the kernel is trusted to mean well, not to be the version this was written for, so every
//! length is checked and nothing here panics.

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;
use thiserror::Error;

/// Longer than any datagram of a dump: the kernel fills at most 32 KiB (net/netlink/af_netlink.c).
const BUFFER_BYTES: usize = 64 * 1024;
/// Patience with the kernel, which answers at once or never.
const RECEIVE_TIMEOUT: Duration = Duration::from_secs(2);

/// `nlmsghdr`: length u32, type u16, flags u16, sequence u32, port u32.
const HEADER_BYTES: usize = 16;
const ATTRIBUTE_HEADER_BYTES: usize = 4;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 0x001;
const NLM_F_ACK: u16 = 0x004;
const NLM_F_DUMP: u16 = 0x300;
const NLM_F_EXCL: u16 = 0x200;
const NLM_F_CREATE: u16 = 0x400;

/// Why the kernel could not be asked.
#[derive(Debug, Error)]
pub enum NetlinkError {
    /// A system call failed.
    #[error("{call}: {source}")]
    Call {
        /// Which.
        call: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel refused the request.
    #[error("the kernel refused: {0}")]
    Refused(io::Error),
    /// An answer was cut off, or not in the format that is documented.
    #[error("the kernel's answer is malformed: {0}")]
    Malformed(&'static str),
}

impl From<NetlinkError> for io::Error {
    fn from(error: NetlinkError) -> Self {
        match error {
            NetlinkError::Call { source, .. } | NetlinkError::Refused(source) => source,
            NetlinkError::Malformed(what) => Self::new(io::ErrorKind::InvalidData, what),
        }
    }
}

/// Whom a socket speaks to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Interfaces and addresses: rtnetlink(7).
    Route,
    /// Sockets: sock_diag(7).
    SockDiag,
}

/// A request that is being built: its kind's fixed part first, then attributes.
#[derive(Debug, Clone)]
pub struct Request(Vec<u8>);

impl Request {
    /// A request of a kind, whose fixed part consists of these bytes.
    pub fn new(kind: u16, fixed: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes.extend(fixed);
        bytes.resize(align(bytes.len()), 0);
        Self(bytes)
    }

    /// Adds an attribute, whose payload is at most 65,531 bytes long.
    ///
    /// # Panics
    /// For a longer one.
    #[must_use]
    pub fn with(mut self, attribute: u16, payload: &[u8]) -> Self {
        let length = u16::try_from(ATTRIBUTE_HEADER_BYTES + payload.len()).expect("an attribute's length has 16 bits");
        self.0.extend(length.to_ne_bytes());
        self.0.extend(attribute.to_ne_bytes());
        self.0.extend(payload);
        self.0.resize(align(self.0.len()), 0);
        self
    }

    /// Adds an attribute that consists of attributes.
    ///
    /// # Panics
    /// When they are longer than 65,531 bytes together.
    #[must_use]
    pub fn with_all<T: AsRef<[u8]>>(self, attribute: u16, parts: impl IntoIterator<Item = (u16, T)>) -> Self {
        let within = Self(Vec::new());
        let within = parts.into_iter().fold(within, |within, (part, payload)| within.with(part, payload.as_ref()));
        self.with(attribute, &within.0)
    }

    fn into_bytes(mut self, flags: u16, sequence: u32) -> Vec<u8> {
        let length = self.0.len() as u32;
        self.0[0..4].copy_from_slice(&length.to_ne_bytes());
        self.0[6..8].copy_from_slice(&flags.to_ne_bytes());
        self.0[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.0
    }
}

/// A socket to the kernel, in the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct Socket {
    socket: OwnedFd,
    buffer: Vec<u8>,
    sequence: u32,
}

impl Socket {
    /// Opens one; it takes no right.
    ///
    /// # Errors
    /// [`NetlinkError::Call`].
    pub fn open(family: Family) -> Result<Self, NetlinkError> {
        let protocol = match family {
            Family::Route => None,
            Family::SockDiag => Some(netlink::SOCK_DIAG),
        };
        let (domain, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
        let socket = rustix::net::socket_with(domain, SocketType::DGRAM, flags, protocol).map_err(call("socket"))?;
        set_socket_timeout(&socket, Timeout::Recv, Some(RECEIVE_TIMEOUT)).map_err(call("setsockopt"))?;
        Ok(Self { socket, buffer: vec![0; BUFFER_BYTES], sequence: 0 })
    }

    /// Has the kernel do something.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`] when it does not; otherwise when it could not be asked.
    pub fn ask(&mut self, request: Request) -> Result<(), NetlinkError> {
        self.exchange(request, NLM_F_REQUEST | NLM_F_ACK, |_, _| Ok(()))
    }

    /// Has the kernel make something that is not there yet.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn create(&mut self, request: Request) -> Result<(), NetlinkError> {
        self.exchange(request, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, |_, _| Ok(()))
    }

    /// Has the kernel list something, and passes kind and body of each message to `each`. After an error the socket is
    /// not to be used any more: what is left of the list would be read as the next one's.
    ///
    /// # Errors
    /// That of `each`, or as [`Self::ask`].
    pub fn list(
        &mut self,
        request: Request,
        each: impl FnMut(u16, &[u8]) -> Result<(), NetlinkError>,
    ) -> Result<(), NetlinkError> {
        self.exchange(request, NLM_F_REQUEST | NLM_F_DUMP, each)
    }

    /// The number of an interface in this socket's namespace.
    ///
    /// # Errors
    /// [`NetlinkError::Call`] when there is no such interface.
    pub fn interface(&self, name: &str) -> Result<u32, NetlinkError> {
        rustix::net::netdevice::name_to_index(&self.socket, name).map_err(call("SIOCGIFINDEX"))
    }

    fn exchange(
        &mut self,
        request: Request,
        flags: u16,
        mut each: impl FnMut(u16, &[u8]) -> Result<(), NetlinkError>,
    ) -> Result<(), NetlinkError> {
        self.sequence = self.sequence.wrapping_add(1);
        let bytes = request.into_bytes(flags, self.sequence);
        rustix::net::send(&self.socket, &bytes, SendFlags::empty()).map_err(call("send"))?;
        loop {
            let length = self.receive()?;
            if parse(&self.buffer[..length], self.sequence, &mut each)? == Progress::Done {
                return Ok(());
            }
        }
    }

    fn receive(&mut self) -> Result<usize, NetlinkError> {
        loop {
            // TRUNC tells the true length.
            match rustix::net::recv(&self.socket, &mut self.buffer[..], RecvFlags::TRUNC) {
                Ok((_, length)) if length <= self.buffer.len() => return Ok(length),
                Ok(_) => return Err(NetlinkError::Malformed("a datagram longer than the buffer")),
                Err(Errno::INTR) => {}
                Err(error) => return Err(call("recv")(error)),
            }
        }
    }
}

fn call(call: &'static str) -> impl Fn(Errno) -> NetlinkError {
    move |error| NetlinkError::Call { call, source: error.into() }
}

/// Whether an answer goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// In another datagram.
    More,
    /// It was whole.
    Done,
}

/// Reads one datagram of an answer: passes kind and body of each message to `each`. Messages with another sequence
/// number belong to an answer that was given up, and are passed over.
///
/// # Errors
/// [`NetlinkError::Refused`], [`NetlinkError::Malformed`], or that of `each`.
pub fn parse(
    datagram: &[u8],
    sequence: u32,
    mut each: impl FnMut(u16, &[u8]) -> Result<(), NetlinkError>,
) -> Result<Progress, NetlinkError> {
    let mut rest = datagram;
    while !rest.is_empty() {
        let length = u32_at(rest, 0).ok_or(NetlinkError::Malformed("half a netlink header"))? as usize;
        let message = rest.get(..length).filter(|message| message.len() >= HEADER_BYTES);
        let message = message.ok_or(NetlinkError::Malformed("a netlink length beyond its datagram"))?;
        rest = rest.get(align(length)..).unwrap_or_default();
        if u32_at(message, 8) != Some(sequence) {
            continue;
        }
        let body = &message[HEADER_BYTES..];
        match u16_at(message, 4) {
            Some(NLMSG_DONE) => return Ok(Progress::Done),
            Some(NLMSG_ERROR) => {
                let code = u32_at(body, 0).ok_or(NetlinkError::Malformed("an error without a code"))? as i32;
                // The error 0 says that what was asked for is done.
                return match code {
                    0 => Ok(Progress::Done),
                    _ => Err(NetlinkError::Refused(io::Error::from_raw_os_error(code.saturating_neg()))),
                };
            }
            Some(kind) => each(kind, body)?,
            None => {}
        }
    }
    Ok(Progress::More)
}

/// The payload of the first attribute of a kind (rtnetlink(7)): length u16, kind u16, payload, padding to 4.
pub fn attribute(attributes: &[u8], kind: u16) -> Option<&[u8]> {
    let mut rest = attributes;
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

/// Four bytes from a place on, if they are there.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Eight bytes from a place on, if they are there.
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: u16 = 20;

    fn message(kind: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
        Request::new(kind, body).into_bytes(0, sequence)
    }

    fn answer() -> Vec<u8> {
        let mut bytes = message(KIND, 7, &[1, 2, 3, 4]);
        bytes.extend(message(KIND, 6, &[9; 8]));
        bytes.extend(message(KIND + 1, 7, &[5]));
        bytes.extend(message(NLMSG_DONE, 7, &[0; 4]));
        bytes
    }

    #[test]
    fn messages_are_those_of_the_sequence() {
        let mut found = Vec::new();
        let progress = parse(&answer(), 7, |kind, body| {
            found.push((kind, body.to_vec()));
            Ok(())
        });
        assert_eq!(progress.unwrap(), Progress::Done);
        assert_eq!(found, [(KIND, vec![1, 2, 3, 4]), (KIND + 1, vec![5, 0, 0, 0])]);
        assert_eq!(parse(&answer(), 6, |_, _| Ok(())).unwrap(), Progress::More);
    }

    #[test]
    fn a_refusal_keeps_its_cause_and_no_error_is_none() {
        let read = |code: i32| parse(&message(NLMSG_ERROR, 1, &code.to_ne_bytes()), 1, |_, _| Ok(()));
        let error = read(-libc::ENOENT).unwrap_err();
        assert!(matches!(&error, NetlinkError::Refused(cause) if cause.kind() == io::ErrorKind::NotFound), "{error}");
        assert_eq!(io::Error::from(error).kind(), io::ErrorKind::NotFound);
        assert_eq!(read(0).unwrap(), Progress::Done);
        assert!(read(i32::MIN).is_err());
    }

    #[test]
    fn requests_have_the_kernels_layout() {
        let bytes = Request::new(KIND, &[7; 5]).with(3, &[1, 2]).with(4, &[]).into_bytes(NLM_F_REQUEST, 9);
        assert_eq!(bytes.len(), 16 + 8 + 8 + 4);
        assert_eq!(u32_at(&bytes, 0), Some(bytes.len() as u32));
        assert_eq!((u16_at(&bytes, 4), u16_at(&bytes, 6), u32_at(&bytes, 8)), (Some(KIND), Some(1), Some(9)));
        assert_eq!(bytes[16..24], [7, 7, 7, 7, 7, 0, 0, 0]);
        assert_eq!(attribute(&bytes[24..], 3), Some(&[1, 2][..]));
        assert_eq!(attribute(&bytes[24..], 4), Some(&[][..]));
        assert_eq!(attribute(&bytes[24..], 5), None);
    }

    #[test]
    fn cut_off_or_damaged_answers_never_panic() {
        let whole = answer();
        let read = |bytes: &[u8]| {
            let _ = parse(bytes, 7, |_, body| {
                let _ = (attribute(body, 2), u64_at(body, 1));
                Ok(())
            });
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
    fn a_length_of_nothing_is_an_error_not_an_endless_loop() {
        assert!(parse(&[0; 32], 0, |_, _| Ok(())).is_err());
        assert_eq!(attribute(&[0; 16], 2), None);
    }

    #[test]
    fn the_kernel_answers() {
        // RTM_GETLINK, with an ifinfomsg of zeros; each answer is an RTM_NEWLINK whose attribute 3 is its name.
        let (mut socket, mut names) = (Socket::open(Family::Route).unwrap(), Vec::new());
        socket
            .list(Request::new(18, &[0; 16]), |kind, body| {
                let name = attribute(body.get(16..).unwrap_or_default(), 3);
                names.push((kind, String::from_utf8_lossy(name.unwrap_or_default()).into_owned()));
                Ok(())
            })
            .unwrap();
        assert!(names.contains(&(16, "lo\0".to_owned())), "{names:?}");
        assert_eq!(socket.interface("lo").unwrap(), 1);
        assert!(socket.interface("no-such-one").is_err());
        assert!(matches!(socket.ask(Request::new(u16::MAX, &[0; 16])), Err(NetlinkError::Refused(_))));
    }
}
