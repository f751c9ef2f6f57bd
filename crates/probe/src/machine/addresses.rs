//! At which addresses the machine is reached.

use pushlab_os::netlink::{Family, NetlinkError, Request, Socket, attribute};
use std::net::IpAddr;

/// `RTM_GETADDR`, whose answers are of the kind before it (rtnetlink(7)).
const GET_ADDRESS: u16 = 22;
/// `ifaddrmsg`: family, prefix, flags and scope, a byte each, and the interface.
const FIXED_BYTES: usize = 8;
const SCOPE: usize = 3;
/// Scopes from that of a link on are for neighbours and for the machine itself.
const LINK: u8 = 253;
/// `IFA_ADDRESS`, which of a point-to-point interface is the other end, and `IFA_LOCAL`, which is its own.
const ADDRESS: u16 = 1;
const LOCAL: u16 = 2;

/// The addresses of the interfaces in this network namespace by which others reach them; none where the kernel does not say.
pub fn addresses() -> Vec<IpAddr> {
    let mut addresses = Vec::new();
    let note = |kind: u16, body: &[u8]| {
        if kind == GET_ADDRESS - 2 {
            addresses.extend(address(body));
        }
        Ok::<(), NetlinkError>(())
    };
    // Who cannot be asked says nothing.
    let _ = Socket::open(Family::Route)
        .and_then(|mut socket| socket.list(Request::new(GET_ADDRESS, &[0; FIXED_BYTES]), note));
    addresses
}

fn address(body: &[u8]) -> Option<IpAddr> {
    let (fixed, attributes) = body.split_at_checked(FIXED_BYTES)?;
    if fixed[SCOPE] >= LINK {
        return None;
    }
    let bytes = attribute(attributes, LOCAL).or_else(|| attribute(attributes, ADDRESS))?;
    let four = || Some(IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?));
    four().or_else(|| Some(IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_told_if_others_reach_it() {
        let body = |scope: u8, attributes: &[u8]| [&[2, 24, 0, scope, 1, 0, 0, 0], attributes].concat();
        let ends = [8, 0, 1, 0, 10, 0, 0, 1, 8, 0, 2, 0, 10, 0, 0, 2];
        assert_eq!(address(&body(0, &ends)), Some([10, 0, 0, 2].into()), "its own end");
        assert_eq!(address(&body(0, &ends[..8])), Some([10, 0, 0, 1].into()));
        assert_eq!(address(&body(LINK, &ends)), None);
        assert_eq!(address(&body(0, &[])), None);
        let whole = body(0, &ends);
        for length in 0..whole.len() {
            let _ = address(&whole[..length]);
        }
    }

    #[test]
    fn the_kernel_names_no_loopback() {
        assert!(addresses().iter().all(|address| !address.is_loopback()));
    }
}
