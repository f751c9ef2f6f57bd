//! Who a client behind known proxies is, by what they say in `X-Forwarded-For`, which anybody else may forge.

use core::net::IpAddr;
use pushlab_wire::fields::trimmed_bytes;
use std::fmt;
use std::str::FromStr;

/// Addresses whose leading bits are these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

/// What is no network.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a proxy's address; write an IP address, or a network as ADDRESS/BITS: 10.0.0.0/8, fd00::/8")]
pub struct BadNetwork(String);

/// Proxies whose word is taken.
#[derive(Debug, Clone, Default)]
pub struct TrustedProxies(Vec<Network>);

impl Network {
    fn contains(self, address: IpAddr) -> bool {
        let bits = u32::from(self.bits);
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => (own.to_bits() ^ other.to_bits()).leading_zeros() >= bits,
            (IpAddr::V6(own), IpAddr::V6(other)) => (own.to_bits() ^ other.to_bits()).leading_zeros() >= bits,
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = BadNetwork;

    fn from_str(text: &str) -> Result<Self, BadNetwork> {
        let bad = || BadNetwork(text.to_owned());
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| bad())?;
        let all = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(all), |bits| bits.parse().map_err(|_| bad()))?;
        if bits > all { Err(bad()) } else { Ok(Self { address, bits }) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl TrustedProxies {
    /// Those in these networks.
    pub fn new(networks: Vec<Network>) -> Self {
        Self(networks)
    }

    /// Whether an address, which is no IPv4 address in the form of IPv6, is of one of them.
    pub fn contain(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }

    /// Who sent the request that came from `peer` with these values of `X-Forwarded-For`, in order: the rightmost
    /// address that is not a trusted proxy's. Each proxy appends the address of its client; the client may have made up
    /// whatever stands before that, even bytes that are not text. If a proxy gives no valid address, the request counts
    /// as the proxy's own: everybody who can cause that shares one account.
    pub fn client<'v>(&self, peer: IpAddr, forwarded: impl DoubleEndedIterator<Item = &'v [u8]>) -> IpAddr {
        let mut client = peer.to_canonical();
        let mut before = forwarded.rev().flat_map(|value| value.rsplit(|&byte| byte == b',')).map(address_of);
        while self.contain(client) {
            let Some(Some(address)) = before.next() else { break };
            client = address.to_canonical();
        }
        client
    }
}

/// An address, with or without a port.
fn address_of(bytes: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(trimmed_bytes(bytes)).ok()?;
    let in_brackets = text.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(address, _)| address);
    let without_port = text.rsplit_once(':').map(|(address, _)| address).filter(|address| !address.contains(':'));
    [Some(text), in_brackets, without_port].into_iter().flatten().find_map(|text| text.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each character of the values stands for a byte.
    fn client(proxies: &[&str], peer: &str, forwarded: &[&str]) -> String {
        let proxies = TrustedProxies::new(proxies.iter().map(|text| text.parse().unwrap()).collect());
        let forwarded: Vec<Vec<u8>> = forwarded.iter().map(|text| text.chars().map(|c| c as u8).collect()).collect();
        proxies.client(peer.parse().unwrap(), forwarded.iter().map(Vec::as_slice)).to_string()
    }

    #[test]
    fn only_a_trusted_proxy_is_believed() {
        let proxies = ["127.0.0.1", "10.0.0.0/8", "fd00::/8"];
        for (peer, forwarded, expected) in [
            ("192.0.2.1", &["198.51.100.7"][..], "192.0.2.1"),
            ("127.0.0.1", &[], "127.0.0.1"),
            ("127.0.0.1", &["198.51.100.7"], "198.51.100.7"),
            ("::ffff:127.0.0.1", &["198.51.100.7"], "198.51.100.7"),
            // What the client itself has sent stands before what the proxies append.
            ("127.0.0.1", &["203.0.113.9, 198.51.100.7"], "198.51.100.7"),
            ("127.0.0.1", &["203.0.113.9", "198.51.100.7"], "198.51.100.7"),
            ("127.0.0.1", &["\u{ff}, 198.51.100.7"], "198.51.100.7"),
            ("127.0.0.1", &["\u{ff}", "198.51.100.7"], "198.51.100.7"),
            ("127.0.0.1", &["198.51.100.7, 10.1.2.3"], "198.51.100.7"),
            ("127.0.0.1", &["198.51.100.7, 11.1.2.3"], "11.1.2.3"),
            ("127.0.0.1", &["10.9.9.9, 10.1.2.3"], "10.9.9.9"),
            ("fd12::1", &["[2001:db8::1]:4711"], "2001:db8::1"),
            ("10.0.0.1", &["198.51.100.7:4711"], "198.51.100.7"),
            ("127.0.0.1", &["198.51.100.7, unknown"], "127.0.0.1"),
            ("127.0.0.1", &["198.51.100.7", "\u{ff}"], "127.0.0.1"),
            ("127.0.0.1", &["198.51.100.7, "], "127.0.0.1"),
            // A space of Unicode is no white space.
            ("127.0.0.1", &["198.51.100.7,\u{c2}\u{a0}192.0.2.9"], "127.0.0.1"),
            ("127.0.0.1", &["192.0.2.9,\t198.51.100.7\t "], "198.51.100.7"),
            ("127.0.0.1", &["198.51.100.7, 10.1.2.3, _hidden, 10.1.2.4"], "10.1.2.4"),
        ] {
            assert_eq!(client(&proxies, peer, forwarded), expected, "{peer} {forwarded:?}");
        }
        assert_eq!(client(&[], "127.0.0.1", &["198.51.100.7"]), "127.0.0.1");
        assert_eq!(client(&["0.0.0.0/0"], "192.0.2.1", &["198.51.100.7"]), "198.51.100.7");
    }

    #[test]
    fn networks_are_read_or_refused() {
        for good in ["127.0.0.1/32", "10.0.0.0/8", "::1/128", "fd00::/8", "0.0.0.0/0"] {
            assert_eq!(good.parse::<Network>().unwrap().to_string(), good);
        }
        for bad in ["", "localhost", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/x", "10.0.0/8", "10.0.0.0/8/8"] {
            let error = bad.parse::<Network>().unwrap_err().to_string();
            assert!(error.contains("ADDRESS/BITS"), "{bad}: {error}");
        }
    }
}
