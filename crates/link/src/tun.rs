//! TUN interfaces: what the kernel routes to one is read from its descriptor, packet by packet, and what is written
//! there has arrived. No offload is asked for, so the kernel cuts segments and computes checksums before the packet
//! is handed out, and what crosses the link is what would cross a wire.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use pushlab_os::files;
use pushlab_os::netlink::{Family, NetlinkError, Request, Socket};

use crate::error::LinkError;

pub(crate) const DEVICE: &CStr = c"/dev/net/tun";
/// Name of the interface, the same in each namespace.
pub(crate) const NAME: &str = "pushlab0";
/// What the kernel keeps for us while we do something else, packets. Its default of 500 would drop the middle of a
/// fan-out to thousands of clients, which a server writes faster than one thread forwards. It costs 512 KiB of
/// pointers; the packets themselves are bounded by the send buffers of the sockets they are from.
const TX_QUEUE_PACKETS: u32 = 65_536;

/// One end of the link.
#[derive(Debug)]
pub(crate) struct Tun {
    file: File,
}

/// The kernel's counters of an end; they tell even while another thread uses it.
#[derive(Debug)]
pub(crate) struct Counters {
    /// `/proc/net/dev` of its namespace.
    file: File,
}

impl Tun {
    /// Makes the interface in the calling thread's namespace, with these addresses of one network, and brings it up.
    pub(crate) fn new(addresses: &[Ipv4Addr], netmask: Ipv4Addr, mtu: u32) -> Result<(Self, Counters), LinkError> {
        let file = files::open_device(DEVICE)
            .map_err(|error| refusal_of_device(error.raw_os_error()).unwrap_or_else(|| failed("open")(error)))?;
        attach(&file).map_err(failed("TUNSETIFF"))?;
        let mut interface = Interface::named(NAME)?;
        interface.set(IFLA_TXQLEN, TX_QUEUE_PACKETS, "queue length")?;
        interface.set(IFLA_MTU, mtu, "MTU")?;
        for &address in addresses {
            interface.add_address(address, netmask)?;
        }
        interface.up()?;
        let counters = File::open("/proc/thread-self/net/dev").map_err(failed("counters"))?;
        Ok((Self { file }, Counters { file: counters }))
    }

    /// The next packet, its length; `None` when there is none yet.
    #[inline]
    pub(crate) fn read(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        retry(|| (&self.file).read(into))
    }

    /// Hands a packet to the kernel, which does there and then all that a network card's interrupt would do: at its
    /// return the packet is in its socket. `None` when the kernel has no room for it.
    #[inline]
    pub(crate) fn write(&self, packet: &[u8]) -> io::Result<Option<usize>> {
        retry(|| (&self.file).write(packet))
    }
}

impl Counters {
    /// Packets that the kernel dropped because its queue was full: the link's thread was not fast enough.
    pub(crate) fn overflows(&self) -> io::Result<u64> {
        let mut text = [0; 4096];
        let length = self.file.read_at(&mut text, 0)?;
        Ok(dropped(&String::from_utf8_lossy(&text[..length])).unwrap_or(0))
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn retry(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<Option<usize>> {
    loop {
        match call() {
            Ok(length) => return Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The twelfth number of the interface's line: packets not transmitted.
fn dropped(table: &str) -> Option<u64> {
    let line = table.lines().find_map(|line| line.trim_start().strip_prefix(NAME)?.strip_prefix(':'))?;
    line.split_ascii_whitespace().nth(11)?.parse().ok()
}

/// What is wrong with the device, from the error of opening it.
pub(crate) fn refusal_of_device(errno: Option<i32>) -> Option<LinkError> {
    match errno? {
        // A node without a driver is ENODEV or ENXIO.
        libc::ENOENT | libc::ENODEV | libc::ENXIO => Some(LinkError::TunMissing),
        libc::EACCES | libc::EPERM => Some(LinkError::TunForbidden),
        _ => None,
    }
}

/// Makes an interface for an open device. Allocates nothing, so that a forked child may call it.
#[expect(unsafe_code, reason = "no library has this ioctl")]
pub(crate) fn attach(device: &impl AsRawFd) -> io::Result<()> {
    let mut request = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short },
    };
    for (to, from) in request.ifr_name.iter_mut().zip(NAME.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: TUNSETIFF reads and writes one ifreq, which outlives the call.
    if unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF, &raw mut request) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Brings up loopback in the calling thread's namespace; the kernel gives it its addresses.
pub(crate) fn loopback_up() -> Result<(), LinkError> {
    Interface::named("lo")?.up()
}

/// Makes all addresses of a network those of the calling thread's namespace, by one route instead of hundreds of
/// addresses: sockets may be bound to them, and packets to them have arrived. How packets from them leave is another
/// route's business.
pub(crate) fn take_for_own((network, prefix_bits): (Ipv4Addr, u8)) -> Result<(), LinkError> {
    Interface::named("lo")?.add_local_route(network, prefix_bits)
}

/// Has connections from the calling thread's namespace to a network that the link leads to wait for acknowledgements, at
/// least so long, before they send again.
pub(crate) fn wait_for_acks((network, prefix_bits): (Ipv4Addr, u8), rto_min_ms: u32) -> Result<(), LinkError> {
    Interface::named(NAME)?.add_patient_route(network, prefix_bits, rto_min_ms)
}

// Of rtnetlink(7): linux/rtnetlink.h, if_link.h and if_addr.h.
const RTM_NEWLINK: u16 = 16;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const IFLA_MTU: u16 = 4;
const IFLA_TXQLEN: u16 = 13;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_METRICS: u16 = 8;
const RTAX_LOCK: u16 = 1;
const RTAX_RTO_MIN: u16 = 13;

/// An interface of the calling thread's namespace that is being set up, by rtnetlink(7). The ioctls of netdevice(7)
/// would need `unsafe`, and the one for the queue's length is for the machine's root alone, not for that of a user
/// namespace.
struct Interface {
    socket: Socket,
    index: u32,
}

impl Interface {
    fn named(name: &str) -> Result<Self, LinkError> {
        let socket = Socket::open(Family::Route).map_err(refused("netlink socket"))?;
        let index = socket.interface(name).map_err(refused("index"))?;
        Ok(Self { socket, index })
    }

    /// One number of it.
    fn set(&mut self, attribute: u16, value: u32, step: &'static str) -> Result<(), LinkError> {
        let request = self.link(0, 0).with(attribute, &value.to_ne_bytes());
        self.socket.ask(request).map_err(refused(step))
    }

    /// Further addresses of one network stand behind the first, which is what connections leave from by default.
    fn add_address(&mut self, address: Ipv4Addr, netmask: Ipv4Addr) -> Result<(), LinkError> {
        // `ifaddrmsg`: family, length of the prefix, flags and scope (all of them u8), index u32.
        let mut fixed = [libc::AF_INET as u8, netmask.to_bits().leading_ones() as u8, 0, 0, 0, 0, 0, 0];
        fixed[4..].copy_from_slice(&self.index.to_ne_bytes());
        let request =
            Request::new(RTM_NEWADDR, &fixed).with(IFA_LOCAL, &address.octets()).with(IFA_ADDRESS, &address.octets());
        self.socket.ask(request).map_err(refused("address"))
    }

    /// As `ip route add local NETWORK dev NAME` does.
    fn add_local_route(&mut self, network: Ipv4Addr, prefix_bits: u8) -> Result<(), LinkError> {
        // `rtmsg`: family, lengths of destination and source prefix, TOS, table, who asks, scope, type (all of them
        // u8), flags u32.
        let (table, scope, kind) = (libc::RT_TABLE_LOCAL, libc::RT_SCOPE_HOST, libc::RTN_LOCAL);
        let fixed = [libc::AF_INET as u8, prefix_bits, 0, 0, table, libc::RTPROT_STATIC, scope, kind, 0, 0, 0, 0];
        let request = Request::new(RTM_NEWROUTE, &fixed)
            .with(RTA_DST, &network.octets())
            .with(RTA_OIF, &self.index.to_ne_bytes());
        self.socket.create(request).map_err(refused("route"))
    }

    /// As `ip route add NETWORK dev NAME rto_min MS` does.
    fn add_patient_route(&mut self, network: Ipv4Addr, prefix_bits: u8, rto_min_ms: u32) -> Result<(), LinkError> {
        // As above.
        let (table, scope, kind) = (libc::RT_TABLE_MAIN, libc::RT_SCOPE_LINK, libc::RTN_UNICAST);
        let fixed = [libc::AF_INET as u8, prefix_bits, 0, 0, table, libc::RTPROT_STATIC, scope, kind, 0, 0, 0, 0];
        // The kernel heeds this metric only where it is locked.
        let metrics = [(RTAX_LOCK, 1 << RTAX_RTO_MIN), (RTAX_RTO_MIN, rto_min_ms)];
        let request = Request::new(RTM_NEWROUTE, &fixed)
            .with(RTA_DST, &network.octets())
            .with(RTA_OIF, &self.index.to_ne_bytes())
            .with_all(RTA_METRICS, metrics.map(|(metric, value): (u16, u32)| (metric, value.to_ne_bytes())));
        self.socket.create(request).map_err(refused("route"))
    }

    /// Multicast is off: nobody is to be told of groups.
    fn up(&mut self) -> Result<(), LinkError> {
        let request = self.link(libc::IFF_UP, libc::IFF_UP | libc::IFF_MULTICAST);
        self.socket.ask(request).map_err(refused("up"))
    }

    fn link(&self, flags: libc::c_int, changed: libc::c_int) -> Request {
        // `ifinfomsg`: family u8, padding, type u16, index, flags and the mask of those that change, u32 each.
        let mut fixed = [0; 16];
        fixed[4..8].copy_from_slice(&self.index.to_ne_bytes());
        fixed[8..12].copy_from_slice(&flags.to_ne_bytes());
        fixed[12..].copy_from_slice(&changed.to_ne_bytes());
        Request::new(RTM_NEWLINK, &fixed)
    }
}

fn refused(step: &'static str) -> impl FnOnce(NetlinkError) -> LinkError {
    move |error| failed(step)(error.into())
}

fn failed(step: &'static str) -> impl FnOnce(io::Error) -> LinkError {
    move |source| LinkError::Interface { interface: NAME, step, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overflows_are_read_from_the_line_of_the_interface() {
        let table = "Inter-|   Receive                                                |  Transmit\n \
                     face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
                     lo:     168       2    0    0    0     0          0         0      168       2    0    3    0     0       0          0\n\
                     pushlab0:     84       1    0    0    0     0          0         0       84       1    0    7    0     0       0          0\n";
        assert_eq!(dropped(table), Some(7));
        assert_eq!(dropped("lo: 1 2 3"), None);
        assert_eq!(dropped("pushlab0: 1 2 3"), None);
    }

    #[test]
    fn a_closed_device_is_told_from_a_missing_one() {
        assert!(matches!(refusal_of_device(Some(libc::EACCES)), Some(LinkError::TunForbidden)));
        assert!(matches!(refusal_of_device(Some(libc::ENOENT)), Some(LinkError::TunMissing)));
        assert!(refusal_of_device(Some(libc::EMFILE)).is_none());
    }
}
