//! Servers that somebody else runs, known by a URL.

use pushlab_dialects::Dialect;
use pushlab_load::reach::reach;
use pushlab_workload::plan::{Speaks, Target, TlsTarget, Trust};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;
use url::{Position, Url};

/// How such a subject is written.
pub const FORM: &str = "NAME=[DIALECT+]http[s]://HOST[:PORT][/PATH]";
/// How long a connection to it may take, with its TLS handshake: longer than a SYN that is sent a third time.
const REACH_WITHIN: Duration = Duration::from_secs(5);
/// What stands for our own protocol where a dialect may stand.
const NATIVE: &str = "native";

/// A server that somebody else runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct External {
    /// As it was given.
    pub url: String,
    /// What is asked for as `Host`: the port stands there unless it is the scheme's own.
    pub authority: String,
    /// What is spoken there; `None` for our own protocol.
    pub speaks: Option<Speaks>,
    host: String,
    port: u16,
    has_tls: bool,
    /// Before every path of our own protocol.
    prefix: String,
}

impl External {
    /// Reads `[DIALECT+]http[s]://HOST[:PORT][/PATH][#HOW]`; without a dialect our own protocol is spoken.
    ///
    /// # Errors
    /// As a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bad = |why: &str| {
            format!("subject {text:?}: {why}; write {FORM}, e.g. chat=socketio+https://example.org/socket.io/")
        };
        let (dialect, url) = match text.split_once('+').filter(|(before, _)| !before.contains("://")) {
            None | Some((NATIVE, _)) => (None, text.strip_prefix("native+").unwrap_or(text)),
            Some((name, url)) => (Some(dialect(name).map_err(|why| bad(&why))?), url),
        };
        // The parser would leave them out, or escape them.
        if url.bytes().any(|byte| byte <= b' ') {
            return Err(bad("an address has no spaces"));
        }
        let parsed = Url::parse(url).map_err(|error| bad(&error.to_string()))?;
        let has_tls = match parsed.scheme() {
            "http" => false,
            "https" => true,
            _ => return Err(bad("only http:// and https:// can be measured")),
        };
        if !parsed[Position::BeforeUsername..Position::BeforeHost].is_empty() {
            return Err(bad("a user name in the address is not supported: leave out what comes before the @"));
        }
        let (Some(host), Some(port)) = (parsed.host_str(), parsed.port_or_known_default()) else {
            return Err(bad("no host"));
        };
        let path = match &parsed[Position::BeforePath..Position::AfterQuery] {
            // To the parser every address has a path; some dialects append theirs to none.
            "/" if !url.split('#').next().is_some_and(|place| place.ends_with('/')) => "",
            path => path,
        };
        if dialect.is_none() && (parsed.query().is_some() || parsed.fragment().is_some()) {
            return Err(bad("our own protocol takes a path only, without ? and #"));
        }
        let how = parsed.fragment().unwrap_or_default().to_owned();
        let authority = parsed.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let prefix = if dialect.is_none() { path.trim_end_matches('/').to_owned() } else { String::new() };
        let speaks = dialect.map(|dialect| Speaks { dialect, path: path.to_owned(), how, recording: None });
        Ok(Self { url: text.to_owned(), authority, speaks, host: host.to_owned(), port, has_tls, prefix })
    }

    /// How it is reached: by the first address of its host at which somebody listens, or else the first of all.
    ///
    /// # Errors
    /// As a sentence, when the host is not known.
    pub fn target(&self) -> Result<Target, String> {
        let addresses = self.addresses()?;
        let address = first_listening(&addresses).ok_or_else(|| format!("{} has no address", self.host))?;
        let server_name = self.host.trim_matches(['[', ']']).to_owned();
        let tls = self.has_tls.then_some(TlsTarget { server_name, trust: Trust::System });
        Ok(Target { address, authority: self.authority.clone(), path: self.prefix.clone(), tls })
    }

    /// Finds out whether it answers at all.
    ///
    /// # Errors
    /// As a sentence that says why not.
    pub fn reach(&self) -> Result<(), String> {
        let target = self.target()?;
        reach(&target, REACH_WITHIN).map_err(|error| format!("cannot reach {} ({}): {error}", self.url, target.address))
    }

    /// Scheme, host and port: `https://push.example.org`.
    pub fn origin(&self) -> String {
        format!("{}://{}", if self.has_tls { "https" } else { "http" }, self.authority)
    }

    /// All addresses that its host has now, in the order in which to try them (RFC 6724).
    fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        let Self { host, port, .. } = self;
        let found = format!("{host}:{port}").to_socket_addrs();
        found.map(Iterator::collect).map_err(|error| format!("cannot find {host}: {error}"))
    }
}

/// The first of several addresses at which somebody listens, or else the first.
fn first_listening(addresses: &[SocketAddr]) -> Option<SocketAddr> {
    let listens = |address: &&SocketAddr| TcpStream::connect_timeout(address, REACH_WITHIN).is_ok();
    let found = if addresses.len() > 1 { addresses.iter().find(listens) } else { None };
    found.or(addresses.first()).copied()
}

fn dialect(name: &str) -> Result<Dialect, String> {
    let known = Dialect::ALL.iter().copied().find(|known| known.name() == name);
    known.ok_or_else(|| {
        let known: Vec<String> = Dialect::ALL.iter().copied().map(Dialect::name).collect();
        format!("dialect {name:?} is not known; known are {NATIVE} and {}", known.join(", "))
    })
}

/// What a server is called of which only a URL is given: its host and port.
pub fn name_for(url: &str) -> String {
    let place = url.split_once("://").map_or(url, |(_, place)| place);
    let place = place.split(['/', '?', '#']).next().unwrap_or(place).to_ascii_lowercase();
    let words = place.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_where_and_what_is_spoken() {
        let chat = External::parse("bare+http://10.0.0.5:3000/live#gws").unwrap();
        let speaks = chat.speaks.clone().unwrap();
        assert_eq!(
            (chat.authority.as_str(), speaks.path.as_str(), speaks.how.as_str()),
            ("10.0.0.5:3000", "/live", "gws")
        );
        let target = chat.target().unwrap();
        assert_eq!((target.address, target.path.as_str(), target.tls), ("10.0.0.5:3000".parse().unwrap(), "", None));
        for (place, authority, path) in [
            ("http://h", "h", ""),
            ("http://h#gws", "h", ""),
            ("http://h/#gws", "h", "/"),
            ("http://h:3000/", "h:3000", "/"),
            ("http://h:80/", "h", "/"),
            ("https://[::1]/a?b=%63", "[::1]", "/a?b=%63"),
        ] {
            let external = External::parse(&format!("bare+{place}")).unwrap();
            let path_of = external.speaks.unwrap().path;
            assert_eq!((external.authority.as_str(), path_of.as_str()), (authority, path), "{place}");
        }
    }

    #[test]
    fn every_address_of_a_host_is_tried() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let listening = listener.local_addr().unwrap();
        // Nobody listens there.
        let closed = [SocketAddr::new("::1".parse().unwrap(), listening.port()), "127.0.0.1:1".parse().unwrap()];
        assert_eq!(first_listening(&[closed[0], closed[1], listening]), Some(listening));
        assert_eq!((first_listening(&closed), first_listening(&[])), (Some(closed[0]), None));
        let by_name = External::parse(&format!("http://localhost:{}/", listening.port())).unwrap();
        assert_eq!(by_name.target().unwrap().address, listening);
        assert_eq!(by_name.reach(), Ok(()));
    }

    #[test]
    fn our_own_protocol_is_spoken_where_no_dialect_is_named() {
        for text in ["https://127.0.0.1:8443/push/", "native+https://127.0.0.1:8443/push"] {
            let external = External::parse(text).unwrap();
            let target = external.target().unwrap();
            assert_eq!((external.speaks, target.path.as_str()), (None, "/push"), "{text}");
            assert_eq!(target.tls, Some(TlsTarget { server_name: "127.0.0.1".to_owned(), trust: Trust::System }));
            assert_eq!((target.authority.as_str(), target.scheme()), ("127.0.0.1:8443", "https"));
        }
        let six = External::parse("https://[::1]:1").unwrap().target().unwrap();
        assert_eq!((six.authority.as_str(), six.tls.unwrap().server_name.as_str()), ("[::1]:1", "::1"));
    }

    #[test]
    fn mistakes_are_named() {
        for (bad, why) in [
            ("morse+http://h/", "is not known; known are native and"),
            ("bare+ftp://h/", "only http:// and https://"),
            ("ws://h/", "only http:// and https://"),
            ("bare+http://", "empty host"),
            ("bare+http://h:port/", "invalid port"),
            ("bare+http://h/a b", "no spaces"),
            ("bare+http://ada:secret@h/", "user name"),
            ("http://h/?a=b", "a path only"),
        ] {
            let error = External::parse(bad).unwrap_err();
            assert!(error.contains(why), "{bad}: {error}");
        }
        let nowhere = External::parse("http://no-such-host.invalid/").unwrap().target().unwrap_err();
        assert!(nowhere.contains("cannot find no-such-host.invalid"), "{nowhere}");
    }

    #[test]
    fn a_server_is_called_as_its_host_and_port() {
        for (url, name) in [
            ("https://Push.Example.org/live", "push-example-org"),
            ("socketio+http://127.0.0.1:3000/socket.io/", "127-0-0-1-3000"),
            ("http://[::1]:80?x", "1-80"),
        ] {
            assert_eq!(name_for(url), name);
        }
    }
}
