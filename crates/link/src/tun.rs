//! TUN interfaces: what the kernel routes to one is read from its descriptor, packet by packet, and what is written
//! there has arrived. No offload is asked for, so the kernel cuts segments and computes checksums before the packet
//! is handed out, and what crosses the link is what would cross a wire.

use std::ffi::{CStr, OsStr};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

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
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(OsStr::from_bytes(DEVICE.to_bytes()));
        let file =
            file.map_err(|error| refusal_of_device(error.raw_os_error()).unwrap_or_else(|| failed("open")(error)))?;
        attach(&file).map_err(failed("TUNSETIFF"))?;
        let control = Control::new()?;
        set_queue_length(TX_QUEUE_PACKETS).map_err(failed("queue length"))?;
        control.set(NAME, libc::SIOCSIFMTU, "MTU", libc::__c_anonymous_ifr_ifru { ifru_mtu: mtu as libc::c_int })?;
        for (i, &address) in addresses.iter().enumerate() {
            // An interface has one address under its own name, and further ones under aliases.
            let name = if i == 0 { NAME.to_owned() } else { format!("{NAME}:{i}") };
            control.set(&name, libc::SIOCSIFADDR, "address", internet(address))?;
            control.set(&name, libc::SIOCSIFNETMASK, "netmask", internet(netmask))?;
        }
        control.up(NAME)?;
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
pub(crate) fn attach(device: &impl AsRawFd) -> io::Result<()> {
    let flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    let mut request = request(NAME, libc::__c_anonymous_ifr_ifru { ifru_flags: flags });
    // SAFETY: TUNSETIFF reads and writes one ifreq, which outlives the call.
    if unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF, &raw mut request) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Brings up loopback in the calling thread's namespace; the kernel gives it its addresses.
pub(crate) fn loopback_up() -> Result<(), LinkError> {
    Control::new()?.up("lo")
}

/// A message of rtnetlink(7) that sets one number of an interface.
#[repr(C)]
struct SetNumber {
    header: libc::nlmsghdr,
    interface: libc::ifinfomsg,
    attribute_bytes: u16,
    attribute: u16,
    value: u32,
}

/// By rtnetlink(7), because the ioctl for it is for the machine's root alone, not for that of a user namespace.
fn set_queue_length(packets: u32) -> io::Result<()> {
    // SAFETY: the name is that of `ifreq`, ends in a zero byte and outlives the call.
    let index = unsafe { libc::if_nametoindex(request(NAME, internet(Ipv4Addr::UNSPECIFIED)).ifr_name.as_ptr()) };
    // SAFETY: all-zero integers are valid.
    let mut message: SetNumber = unsafe { std::mem::zeroed() };
    message.header.nlmsg_len = size_of::<SetNumber>() as u32;
    message.header.nlmsg_type = libc::RTM_NEWLINK;
    message.header.nlmsg_flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
    message.interface.ifi_index = index as libc::c_int;
    (message.attribute_bytes, message.attribute, message.value) = (8, libc::IFLA_TXQLEN, packets);
    let socket = socket(libc::AF_NETLINK, libc::SOCK_RAW)?;
    let mut answer = [0_i32; 32];
    // SAFETY: pointers and lengths are those of `message` and `answer`.
    let received = unsafe {
        if libc::send(socket.as_raw_fd(), (&raw const message).cast(), size_of::<SetNumber>(), 0) < 0 {
            return Err(io::Error::last_os_error());
        }
        libc::recv(socket.as_raw_fd(), answer.as_mut_ptr().cast(), size_of_val(&answer), 0)
    };
    // The answer is an nlmsghdr of 16 bytes, then an error's negative number, or 0.
    match answer[4] {
        _ if received < 20 => Err(io::Error::last_os_error()),
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(-errno)),
    }
}

fn socket(domain: libc::c_int, kind: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: plain system call; its result is checked below.
    let raw = unsafe { libc::socket(domain, kind | libc::SOCK_CLOEXEC, 0) };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor, and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// A socket by which interfaces are set up (netdevice(7)).
struct Control(OwnedFd);

impl Control {
    fn new() -> Result<Self, LinkError> {
        socket(libc::AF_INET, libc::SOCK_DGRAM).map(Self).map_err(failed("control socket"))
    }

    fn up(&self, name: &str) -> Result<(), LinkError> {
        // Multicast stays off: nobody is to be told of groups.
        let flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        self.set(name, libc::SIOCSIFFLAGS, "up", libc::__c_anonymous_ifr_ifru { ifru_flags: flags })
    }

    fn set(
        &self,
        name: &str,
        what: libc::Ioctl,
        step: &'static str,
        value: libc::__c_anonymous_ifr_ifru,
    ) -> Result<(), LinkError> {
        let mut request = request(name, value);
        // SAFETY: each SIOCSIF… reads one ifreq, which outlives the call.
        if unsafe { libc::ioctl(self.0.as_raw_fd(), what, &raw mut request) } == 0 {
            Ok(())
        } else {
            Err(failed(step)(io::Error::last_os_error()))
        }
    }
}

fn request(name: &str, value: libc::__c_anonymous_ifr_ifru) -> libc::ifreq {
    let mut ifr_name = [0; libc::IFNAMSIZ];
    for (to, from) in ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    libc::ifreq { ifr_name, ifr_ifru: value }
}

fn internet(address: Ipv4Addr) -> libc::__c_anonymous_ifr_ifru {
    let mut sa_data = [0; 14];
    // A sockaddr_in has the port in the first two bytes, then the address.
    for (to, from) in sa_data[2..6].iter_mut().zip(address.octets()) {
        *to = from as libc::c_char;
    }
    let ifru_addr = libc::sockaddr { sa_family: libc::AF_INET as libc::sa_family_t, sa_data };
    libc::__c_anonymous_ifr_ifru { ifru_addr }
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
