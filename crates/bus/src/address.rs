//! Where a broker is, and how one is let in.

use crate::names::{Names, is_plain};
use pushlab_os::random;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::path::PathBuf;
use url::Url;

/// Where brokers listen unless they are told otherwise.
const USUAL_PORT: u16 = 4222;
/// The fleet of an address without a path.
const USUAL_FLEET: &str = "default";

/// Where a fleet meets: `nats://[TOKEN@|USER:PASSWORD@]HOST[:PORT][/FLEET]`, or `tls://…`.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// The host, which its certificate must name.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Whether only TLS will do; otherwise the broker decides.
    pub has_tls: bool,
    /// The names of this fleet's subjects.
    pub names: Names,
    pub(crate) entry: Entry,
}

/// What an address says of who comes.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    Nobody,
    Token(String),
    User { name: String, password: String },
}

/// How one is let in, beyond what the address says.
#[derive(Clone, Default)]
pub struct Access {
    /// A token that the broker accepts, or `USER:PASSWORD`.
    pub token: Option<String>,
    /// A file of NATS credentials: a JWT and the seed of its key.
    pub credentials: Option<PathBuf>,
    /// Certificates of the authorities to believe in place of the system's, PEM.
    pub tls_ca: Option<PathBuf>,
}

impl Access {
    /// The identity with which one joins at an address.
    pub(crate) fn entry(&self, address: &Address) -> Entry {
        match self.token.as_ref().map(|token| (token, token.split_once(':'))) {
            Some((_, Some((name, password)))) => Entry::User { name: name.to_owned(), password: password.to_owned() },
            Some((token, None)) => Entry::Token(token.clone()),
            None => address.entry.clone(),
        }
    }

    /// The user's name as part of a subject; `-` if there is none, or it cannot be part of one.
    pub(crate) fn user(&self, address: &Address) -> String {
        match self.entry(address) {
            Entry::User { name, .. } if is_plain(&name) => name,
            _ => "-".to_owned(),
        }
    }

    /// A new id for whoever joins like this.
    pub(crate) fn new_id(&self, address: &Address) -> io::Result<String> {
        Ok(format!("{}.{:016x}", self.user(address), unique()?))
    }
}

/// An address of no broker.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not the address of a broker: {why}; write nats://HOST[:PORT][/FLEET] or tls://HOST[:PORT][/FLEET]"
)]
pub struct BadAddress {
    /// What was given, without what may be secret in it.
    pub text: String,
    /// What is wrong with it.
    pub why: String,
}

impl Address {
    /// Reads an address.
    ///
    /// # Errors
    /// See [`BadAddress`].
    pub fn parse(text: &str) -> Result<Self, BadAddress> {
        let bad = |why: &str| BadAddress { text: without_secrets(text), why: why.to_owned() };
        let url = Url::parse(text).map_err(|error| bad(&error.to_string()))?;
        let has_tls = match url.scheme() {
            "nats" => false,
            "tls" => true,
            _ => return Err(bad("its scheme is neither nats nor tls")),
        };
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| bad("it names no host"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        if url.query().is_some() || url.fragment().is_some() {
            return Err(bad("nothing may follow the fleet"));
        }
        let fleet = Some(url.path().trim_matches('/')).filter(|path| !path.is_empty()).unwrap_or(USUAL_FLEET);
        let why = "a fleet's name has only letters, digits, - and _, at most 64";
        let names = Names::of(fleet).ok_or_else(|| bad(why))?;
        let entry = match (url.username(), url.password()) {
            ("", None) => Entry::Nobody,
            (token, None) => Entry::Token(token.to_owned()),
            (name, Some(password)) => Entry::User { name: name.to_owned(), password: password.to_owned() },
        };
        Ok(Self { host, port: url.port().unwrap_or(USUAL_PORT), has_tls, names, entry })
    }

    /// The address of this host from which a connection to the broker would come: the interface towards it. Where there
    /// is a way by IPv4, which is what fleets speak, it is that one. Nothing is sent.
    ///
    /// # Errors
    /// When the host has no address, or there is no way to it.
    pub fn own_ip(&self) -> io::Result<IpAddr> {
        let addresses: Vec<SocketAddr> = (self.host.as_str(), self.port).to_socket_addrs()?.collect();
        let (four, six): (Vec<_>, Vec<_>) = addresses.into_iter().partition(SocketAddr::is_ipv4);
        let mut found = Err(io::ErrorKind::NotFound.into());
        for broker in four.into_iter().chain(six) {
            found = own_ip_towards(broker);
            if found.is_ok() {
                break;
            }
        }
        found
    }
}

fn own_ip_towards(broker: SocketAddr) -> io::Result<IpAddr> {
    let any = match broker {
        SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(broker)?;
    Ok(socket.local_addr()?.ip())
}

/// Without what may be secret.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.has_tls { "tls" } else { "nats" };
        match self.host.contains(':') {
            true => write!(f, "{scheme}://[{}]:{}", self.host, self.port),
            false => write!(f, "{scheme}://{}:{}", self.host, self.port),
        }
    }
}

/// The same: a debug print must not tell it either.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An address as a result may keep it: without token, user and password.
pub fn without_secrets(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let authority = rest.find('/').unwrap_or(rest.len());
    let host = rest[..authority].rfind('@').map_or(0, |at| at + 1);
    format!("{scheme}://{}", &rest[host..])
}

/// A number that nobody else has: of 64 random bits.
///
/// # Errors
/// When the kernel gives no random bytes.
pub fn unique() -> io::Result<u64> {
    Ok(u64::from_le_bytes(random::bytes()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_host_port_and_fleet() {
        let usual = Address::parse("nats://broker").unwrap();
        assert_eq!((usual.host.as_str(), usual.port, usual.has_tls), ("broker", 4222, false));
        assert_eq!(usual.names, Names::of("default").unwrap());
        let whole = Address::parse("tls://ann:secret@[::1]:4333/racks").unwrap();
        assert_eq!((whole.host.as_str(), whole.port, whole.has_tls), ("::1", 4333, true));
        assert_eq!(whole.names, Names::of("racks").unwrap());
        assert!(matches!(whole.entry, Entry::User { ref name, ref password } if name == "ann" && password == "secret"));
        assert!(matches!(Address::parse("nats://word@b").unwrap().entry, Entry::Token(token) if token == "word"));
        for (bad, why) in [
            ("broker:4222", "scheme"),
            ("http://broker", "scheme"),
            ("nats://", "host"),
            ("nats://broker/a/b", "fleet's name"),
            ("nats://broker/a?b", "follow"),
        ] {
            let error = Address::parse(bad).unwrap_err().to_string();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }

    #[test]
    fn no_secret_is_told() {
        let text = "nats://ann:p@ss@broker:1/racks";
        assert_eq!(without_secrets(text), "nats://broker:1/racks");
        assert_eq!(without_secrets("nats://broker/a@b"), "nats://broker/a@b");
        let address = Address::parse("nats://word@broker").unwrap();
        assert_eq!(
            (address.to_string(), format!("{address:?}")),
            ("nats://broker:4222".into(), "nats://broker:4222".into())
        );
        let error = Address::parse("nats://word@broker/a.b").unwrap_err();
        assert!(!error.to_string().contains("word"), "{error}");
    }

    #[test]
    fn an_id_begins_with_the_user() {
        let user = |address: &str, token: Option<&str>| {
            let access = Access { token: token.map(str::to_owned), ..Access::default() };
            access.user(&Address::parse(address).unwrap())
        };
        assert_eq!(user("nats://ann:secret@b", None), "ann");
        assert_eq!(user("nats://ann:secret@b", Some("bob:secret")), "bob");
        for (address, token) in [("nats://b", None), ("nats://b", Some("word")), ("nats://a.*:secret@b", None)] {
            assert_eq!(user(address, token), "-", "{address}");
        }
        let id = Access::default().new_id(&Address::parse("nats://ann:secret@b").unwrap()).unwrap();
        assert!(id.starts_with("ann.") && id.len() == 20, "{id}");
    }

    #[test]
    fn the_way_to_a_broker_on_this_host_is_loopback() {
        let address = Address::parse("nats://127.0.0.1").unwrap();
        assert!(address.own_ip().unwrap().is_loopback());
    }
}
