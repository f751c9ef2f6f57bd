//! Subjects as experiments name them.

use crate::catalogue::{Entry, catalogue};
use crate::install::{Cache, InstallError};
use crate::manifest::{Platform, Way};
use pushlab_dialects::{Dialect, Topic, Turn};
use pushlab_experiment::Offer;
use pushlab_experiment::subject::OURS;
use pushlab_wire::transport::Transport;
use pushlab_workload::plan::Speaks;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use url::{Position, Url};

/// A subject of an experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// What it is called in results.
    pub name: String,
    /// Which server it is.
    pub server: Server,
}

/// Which server a subject is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Server {
    /// Ours; another build of it, if a program is named.
    Ours(Option<PathBuf>),
    /// One of the catalogue, and which of its ways to speak if not the usual ones.
    Catalogued(&'static Entry, Option<String>),
    /// One that somebody else runs.
    Elsewhere(Elsewhere),
}

/// A server that somebody else runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    /// As it was given.
    pub url: String,
    /// Host and port.
    pub authority: String,
    /// What is spoken there.
    pub speaks: Speaks,
}

impl Elsewhere {
    /// Reads `DIALECT+http://HOST:PORT/PATH[#HOW]`.
    fn parse(text: &str) -> Result<Self, String> {
        let bad = |why: &str| {
            format!(
                "subject {text:?}: {why}; write DIALECT+http://HOST:PORT/PATH, e.g. socketio+http://127.0.0.1:3000/socket.io/"
            )
        };
        let (dialect, url) = text.split_once('+').ok_or_else(|| bad("no dialect"))?;
        let known = Dialect::ALL.iter().copied().find(|known| known.name() == dialect);
        let dialect = known.ok_or_else(|| {
            let known: Vec<String> = Dialect::ALL.iter().copied().map(Dialect::name).collect();
            bad(&format!("dialect {dialect:?} is not known; known are {}", known.join(", ")))
        })?;
        // The parser would leave them out, or escape them.
        if url.bytes().any(|byte| byte <= b' ') {
            return Err(bad("an address has no spaces"));
        }
        let parsed = Url::parse(url).map_err(|error| bad(&error.to_string()))?;
        if parsed.scheme() != "http" {
            return Err(bad("only http:// can be measured"));
        }
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
        let how = parsed.fragment().unwrap_or_default();
        let authority = format!("{host}:{port}");
        let speaks = Speaks { dialect, path: path.to_owned(), how: how.to_owned(), recording: None };
        Ok(Self { url: text.to_owned(), authority, speaks })
    }

    /// Where it is now.
    ///
    /// # Errors
    /// As a sentence, when the name is not known.
    pub fn address(&self) -> Result<SocketAddr, String> {
        let found = self.authority.to_socket_addrs().map(|mut addresses| addresses.next());
        match found {
            Ok(Some(address)) => Ok(address),
            Ok(None) => Err(format!("{} has no address", self.authority)),
            Err(error) => Err(format!("cannot find {}: {error}", self.authority)),
        }
    }
}

impl Named {
    /// Reads `pushlab`, `NAME=PATH` (another build of it), `SUBJECT` or `SUBJECT:WAY` of the catalogue, or
    /// `NAME=DIALECT+http://HOST:PORT/PATH`.
    ///
    /// # Errors
    /// As a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let named = |name: &str, server| Ok(Self { name: name.to_owned(), server });
        if text == OURS {
            return named(text, Server::Ours(None));
        }
        if let Some((name, place)) = text.split_once('=') {
            if place.is_empty() || name == OURS || !is_name(name) {
                return Err(format!("subject {text:?}: use NAME=PATH, NAME of lower-case letters, digits and hyphens"));
            }
            return match place.contains("://") {
                true => named(name, Server::Elsewhere(Elsewhere::parse(place)?)),
                false => named(name, Server::Ours(Some(PathBuf::from(place)))),
            };
        }
        let (name, way) = text.split_once(':').map_or((text, None), |(name, way)| (name, Some(way)));
        let entry = catalogue().and_then(|catalogue| catalogue.find(name)).map_err(|error| {
            format!("{error}; or pushlab, NAME=PATH for another build of it, or NAME=DIALECT+http://HOST:PORT/PATH")
        })?;
        let ways: Vec<&str> = entry.manifest.ways.iter().map(|way| way.name.as_str()).collect();
        if let Some(way) = way.filter(|way| !ways.contains(way)) {
            return Err(format!("subject {text:?}: {name} has no transport {way:?}; it has {}", ways.join(", ")));
        }
        named(text, Server::Catalogued(entry, way.map(str::to_owned)))
    }

    /// Whether it is one of our builds.
    pub fn is_ours(&self) -> bool {
        matches!(self.server, Server::Ours(_))
    }

    /// On what it runs; `None` for ours and those that somebody else runs.
    pub fn platform(&self) -> Option<Platform> {
        match &self.server {
            Server::Catalogued(entry, _) => Some(entry.manifest.platform),
            _ => None,
        }
    }

    fn way(&self, transport: Transport) -> Option<&Way> {
        match &self.server {
            Server::Catalogued(entry, way) => entry.manifest.way(way.as_deref(), transport),
            _ => None,
        }
    }

    /// What its clients speak over a transport; `None` for the native protocol.
    pub fn speaks(&self, transport: Transport) -> Option<Speaks> {
        match &self.server {
            Server::Ours(_) => None,
            Server::Catalogued(..) => self.way(transport).map(Way::speaks),
            Server::Elsewhere(elsewhere) => Some(elsewhere.speaks.clone()),
        }
    }

    /// Whether it is known to hold messages back until earlier ones are acknowledged, over a transport.
    pub fn waits_for_acks(&self, transport: Transport) -> bool {
        self.way(transport).is_some_and(|way| way.nagle)
    }

    /// What it offers; `None` of ours, which offer everything.
    pub fn offer(&self) -> Option<Offer> {
        let having = |has: &dyn Fn(Transport) -> bool| Transport::ALL.into_iter().filter(|one| has(*one)).collect();
        match &self.server {
            Server::Ours(_) => None,
            Server::Elsewhere(Elsewhere { speaks, .. }) => Some(Offer {
                transports: having(&|transport| can_open(speaks, transport)),
                echo: speaks.dialect.has_echo(),
                rooms: true,
                // Nobody can tell it where a back end is.
                feed: false,
                is_elsewhere: true,
            }),
            Server::Catalogued(entry, _) => Some(Offer {
                transports: having(&|transport| self.way(transport).is_some()),
                echo: entry.manifest.echo,
                rooms: entry.manifest.rooms,
                feed: entry.manifest.feed,
                is_elsewhere: false,
            }),
        }
    }

    /// Whether clients can have their pings answered over a transport.
    pub fn answers_pings(&self, transport: Transport) -> bool {
        let echoes = match &self.server {
            Server::Catalogued(entry, _) => entry.manifest.echo,
            Server::Elsewhere(elsewhere) => elsewhere.speaks.dialect.has_echo(),
            Server::Ours(_) => true,
        };
        let in_reach = self.speaks(transport).is_none_or(|speaks| {
            speaks.dialect == Dialect::Bare || speaks.dialect.publishes_in_frames(transport, &speaks.how)
        });
        echoes && in_reach
    }

    /// Why it cannot be measured here, if so.
    pub fn obstacle(&self, cache: &Cache) -> Option<InstallError> {
        match &self.server {
            Server::Catalogued(entry, _) => cache.find(entry).err(),
            _ => None,
        }
    }
}

/// What the subject of this text in an experiment offers; `None` of ours, which offer everything.
///
/// # Errors
/// As a sentence, when there is no such subject.
pub fn offer(text: &str) -> Result<Option<Offer>, String> {
    Named::parse(text).map(|named| named.offer())
}

/// Whether there is a client of what is spoken there over a transport.
fn can_open(speaks: &Speaks, transport: Transport) -> bool {
    let topic =
        Topic { transport: Some(transport), path: speaks.path.clone(), how: speaks.how.clone(), ..Topic::default() };
    let mut client = speaks.dialect.protocol_client();
    client.open(&mut Turn::new(&topic, &mut Vec::new(), &mut |_| ())).is_ok()
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_workload::scenario::Scenario;

    #[test]
    fn subjects_are_ours_catalogued_or_elsewhere() {
        assert_eq!(Named::parse("pushlab").unwrap().server, Server::Ours(None));
        let build = Named::parse("old=/opt/pushlab").unwrap();
        assert_eq!((build.name.as_str(), build.is_ours()), ("old", true));
        let chat = Named::parse("chat=bare+http://10.0.0.5:3000/live#gws").unwrap();
        let Server::Elsewhere(elsewhere) = &chat.server else { panic!("{chat:?}") };
        assert_eq!((elsewhere.authority.as_str(), elsewhere.speaks.path.as_str()), ("10.0.0.5:3000", "/live"));
        assert_eq!(elsewhere.speaks.how, "gws");
        let has = |named: &Named, transport| named.offer().unwrap().has(transport, &Scenario::Idle);
        assert!(has(&chat, Transport::Sse) && !has(&chat, Transport::WebSocketPolling));
        for (place, authority, path) in [
            ("http://h", "h:80", ""),
            ("http://h#gws", "h:80", ""),
            ("http://h/#gws", "h:80", "/"),
            ("http://h:3000/", "h:3000", "/"),
            ("http://[::1]/a?b=%63", "[::1]:80", "/a?b=%63"),
        ] {
            let elsewhere = Elsewhere::parse(&format!("bare+{place}")).unwrap();
            let found = (elsewhere.authority.as_str(), elsewhere.speaks.path.as_str());
            assert_eq!(found, (authority, path), "{place}");
        }
        let node = Named::parse("node-bare:sse").unwrap();
        assert!(has(&node, Transport::Sse) && !has(&node, Transport::WebSocket));
        for (bad, why) in [
            ("nginx", "is not known; known are"),
            ("node-bare:telepathy", "has no transport"),
            ("pushlab=/opt/pushlab", "use NAME=PATH"),
            ("Old=/opt/pushlab", "lower-case"),
            ("chat=morse+http://h/", "is not known; known are"),
            ("chat=bare+https://h/", "only http://"),
            ("chat=http://h/", "no dialect"),
            ("chat=bare+http://", "empty host"),
            ("chat=bare+http://h:port/", "invalid port"),
            ("chat=bare+http://h/a b", "no spaces"),
            ("chat=bare+http://ada:secret@h/", "user name"),
        ] {
            let error = Named::parse(bad).unwrap_err();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }
}
