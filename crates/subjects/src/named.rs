//! Subjects as experiments name them.

use crate::catalogue::{Entry, catalogue};
use crate::external::{self, External};
use crate::install::Cache;
use crate::manifest::{Endpoint, Manifest, Platform};
use pushlab_dialects::{Dialect, Topic, Turn};
use pushlab_experiment::Offer;
use pushlab_experiment::subject::OURS;
use pushlab_wire::transport::Transport;
use pushlab_workload::plan::Speaks;
use std::path::PathBuf;

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
    /// One of the catalogue, and which of its endpoints if not the usual ones.
    Catalogued(&'static Entry, Option<String>),
    /// One that somebody else runs.
    External(External),
}

impl Named {
    /// Reads `pushlab`, `NAME=PATH` (another build of it), `SUBJECT` or `SUBJECT:ENDPOINT` of the catalogue, or
    /// [`external::FORM`].
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
            if is_address(place) {
                return Err(format!("subject {text:?}: write a running server as {}", external::FORM));
            }
            return match place.contains("://") {
                true => named(name, Server::External(External::parse(place)?)),
                false => named(name, Server::Ours(Some(PathBuf::from(place)))),
            };
        }
        let (name, endpoint) = text.split_once(':').map_or((text, None), |(name, endpoint)| (name, Some(endpoint)));
        let entry = catalogue().and_then(|catalogue| catalogue.find(name)).map_err(|error| {
            format!("{error}; also possible: pushlab, NAME=PATH for another build of it, or {}", external::FORM)
        })?;
        let endpoints: Vec<&str> = entry.manifest.endpoints.iter().map(|endpoint| endpoint.name.as_str()).collect();
        if let Some(endpoint) = endpoint.filter(|endpoint| !endpoints.contains(endpoint)) {
            return Err(format!(
                "subject {text:?}: {name} has no transport {endpoint:?}; it has {}",
                endpoints.join(", ")
            ));
        }
        named(text, Server::Catalogued(entry, endpoint.map(str::to_owned)))
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

    fn endpoint(&self, transport: Transport) -> Option<&Endpoint> {
        match &self.server {
            Server::Catalogued(entry, endpoint) => entry.manifest.endpoint(endpoint.as_deref(), transport),
            _ => None,
        }
    }

    /// What its clients speak over a transport; `None` for the native protocol.
    pub fn speaks(&self, transport: Transport) -> Option<Speaks> {
        match &self.server {
            Server::Ours(_) => None,
            Server::Catalogued(..) => self.endpoint(transport).map(Endpoint::speaks),
            Server::External(external) => external.speaks.clone(),
        }
    }

    /// What a browser's pages load to be its clients over a transport; nothing needs to be loaded for ours.
    ///
    /// # Errors
    /// As a sentence, when it has no client for pages, with those that have one.
    pub fn page_scripts(&self, transport: Transport) -> Result<Option<Vec<PathBuf>>, String> {
        if self.speaks(transport).is_none() {
            return Ok(None);
        }
        if let (Server::Catalogued(entry, _), Some(endpoint)) = (&self.server, self.endpoint(transport))
            && let Some(scripts) = entry.manifest.page_scripts(endpoint)
        {
            let folder = Cache::of_user().folder(*entry);
            return Ok(Some(scripts.iter().map(|script| folder.join(script)).collect()));
        }
        let entries = catalogue().map_err(|error| error.to_string())?.entries();
        let with = entries.iter().filter_map(|entry| {
            Some(format!("{} ({})", entry.manifest.name, entry.manifest.browser.as_ref()?.transports.join(", ")))
        });
        let with: Vec<String> = std::iter::once(OURS.to_owned()).chain(with).collect();
        Err(format!(
            "clients_in: {} has no client for a browser's pages over {transport}; {} have one, others need a table \
             [browser] in their manifests",
            self.name,
            with.join(", ")
        ))
    }

    /// Whether it is known to hold messages back until earlier ones are acknowledged, over a transport.
    pub fn waits_for_acks(&self, transport: Transport) -> bool {
        self.endpoint(transport).is_some_and(|endpoint| endpoint.nagle)
    }

    /// What it offers; `None` of ours, which offer everything.
    pub fn offer(&self) -> Option<Offer> {
        let having = |has: &dyn Fn(Transport) -> bool| Transport::ALL.into_iter().filter(|one| has(*one)).collect();
        match &self.server {
            Server::Ours(_) => None,
            Server::External(External { speaks, .. }) => Some(Offer {
                transports: having(&|transport| speaks.as_ref().is_none_or(|speaks| can_open(speaks, transport))),
                // What it does when it is asked is seen when it is measured.
                compresses: Transport::ALL.to_vec(),
                pages: having(&|_| speaks.is_none()),
                echo: speaks.as_ref().is_none_or(|speaks| speaks.dialect.has_echo()),
                rooms: true,
                // Nobody can tell it where a back end is.
                feed: false,
                users: false,
                // Our own protocol has it, in whatever server.
                newest: speaks.is_none(),
                tls: false,
                echo_streams: speaks.is_none(),
                // Nor to keep history.
                resumes: having(&|_| speaks.is_none()),
                is_external: true,
            }),
            Server::Catalogued(entry, _) => Some(Offer {
                transports: having(&|transport| self.endpoint(transport).is_some()),
                compresses: having(&|transport| self.endpoint(transport).is_some_and(|endpoint| endpoint.compresses)),
                pages: having(&|transport| {
                    self.endpoint(transport).is_some_and(|endpoint| entry.manifest.page_scripts(endpoint).is_some())
                }),
                echo: entry.manifest.echo,
                rooms: entry.manifest.rooms,
                feed: entry.manifest.feed,
                users: entry.manifest.users,
                newest: entry.manifest.newest,
                tls: entry.manifest.tls,
                echo_streams: entry.manifest.echo_streams,
                resumes: having(&|transport| self.endpoint(transport).is_some_and(|endpoint| endpoint.resumes)),
                is_external: false,
            }),
        }
    }

    /// Whether clients can have their pings answered over a transport.
    pub fn answers_pings(&self, transport: Transport) -> bool {
        let echoes = match &self.server {
            Server::Catalogued(entry, _) => entry.manifest.echo,
            Server::External(external) => external.speaks.as_ref().is_none_or(|speaks| speaks.dialect.has_echo()),
            Server::Ours(_) => true,
        };
        let in_reach = self.speaks(transport).is_none_or(|speaks| {
            speaks.dialect == Dialect::Bare || speaks.dialect.publishes_in_frames(transport, &speaks.how)
        });
        echoes && in_reach
    }

    /// Why it cannot be measured here, if so, where a subject has so many cores.
    pub fn obstacle(&self, cache: &Cache, cores: usize) -> Option<String> {
        match &self.server {
            Server::Catalogued(entry, _) => {
                let missing = || cache.find(*entry).err().map(|error| error.to_string());
                has_too_few_cores(&entry.manifest, cores).or_else(missing)
            }
            Server::External(external) => external.reach().err(),
            Server::Ours(_) => None,
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

/// Why a server that is made for several cores cannot be measured on so few.
fn has_too_few_cores(manifest: &Manifest, cores: usize) -> Option<String> {
    let Manifest { name, cores_min, .. } = manifest;
    let is_too_few = u32::try_from(cores).is_ok_and(|cores| cores < *cores_min);
    is_too_few.then(|| {
        format!(
            "{name} is made for {cores_min} cores or more, and the subject has {cores}: what would be measured is what its \
             processes take from each other; set subject_cores = {cores_min} in the experiment, on a machine that has them"
        )
    })
}

/// Whether a place is a server's without its scheme, `HOST:PORT`, and no path.
fn is_address(place: &str) -> bool {
    let authority = place.split('/').next().unwrap_or_default();
    let port = authority.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port);
    port.is_some_and(|port| port.parse::<u16>().is_ok())
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_workload::scenario::Scenario;

    #[test]
    fn a_cluster_needs_more_than_one_core() {
        let cache = Cache::at(std::env::temp_dir().join("pushlab-that-is-empty"));
        let obstacle = |name: &str, cores| Named::parse(name).unwrap().obstacle(&cache, cores);
        let reason = obstacle("node-bare-cluster", 1).unwrap();
        assert!(reason.contains("2 cores or more, and the subject has 1"), "{reason}");
        let other = obstacle("node-bare-cluster:sse", 2);
        assert!(other.is_none_or(|reason| !reason.contains("cores")), "it is not installed, which is another reason");
        assert!(obstacle("node-bare", 1).is_none_or(|reason| !reason.contains("cores")));
    }

    #[test]
    fn clients_for_pages_are_found_or_those_that_have_one_are_told() {
        let scripts = |text: &str, transport| Named::parse(text).unwrap().page_scripts(transport);
        assert_eq!(scripts("pushlab", Transport::Sse), Ok(None));
        assert_eq!(scripts("live=https://push.example.org", Transport::Sse), Ok(None), "it speaks our protocol");
        let socketio = scripts("socketio", Transport::LongPolling).unwrap().unwrap();
        assert!(socketio.len() == 2 && socketio.iter().all(|path| path.is_absolute()), "{socketio:?}");
        assert_eq!(scripts("node-bare", Transport::Polling), Ok(Some(Vec::new())), "the bare dialect needs no library");
        let pages = |text: &str| Named::parse(text).unwrap().offer().unwrap().pages;
        assert_eq!(pages("faye"), [Transport::WebSocket, Transport::LongPolling]);
        assert_eq!((pages("sockjs:jsonp"), pages("centrifugo")), (vec![], vec![]));
        for (text, transport) in [
            ("centrifugo", Transport::WebSocket),
            ("sockjs:jsonp", Transport::LongPolling),
            ("chat=socketio+http://10.0.0.5:3000/socket.io/", Transport::WebSocket),
        ] {
            let error = scripts(text, transport).unwrap_err();
            assert!(error.contains("has no client for a browser's pages over "), "{error}");
            assert!(error.contains("pushlab, ") && error.contains("socketio (websocket, polling)"), "{error}");
        }
    }

    #[test]
    fn subjects_are_ours_catalogued_or_external() {
        assert_eq!(Named::parse("pushlab").unwrap().server, Server::Ours(None));
        let build = Named::parse("old=/opt/pushlab").unwrap();
        assert_eq!((build.name.as_str(), build.is_ours()), ("old", true));
        let chat = Named::parse("chat=bare+http://10.0.0.5:3000/live#gws").unwrap();
        assert!(matches!(chat.server, Server::External(_)), "{chat:?}");
        let has = |named: &Named, transport| named.offer().unwrap().has(transport, &Scenario::Idle, false);
        assert!(has(&chat, Transport::Sse) && !has(&chat, Transport::WebSocketPolling));
        let ours = Named::parse("live=https://push.example.org").unwrap();
        assert!(!ours.is_ours() && Transport::ALL.iter().all(|transport| ours.speaks(*transport).is_none()));
        assert!(ours.answers_pings(Transport::Sse));
        let offer = ours.offer().unwrap();
        assert!(offer.transports.len() == Transport::ALL.len() && offer.echo && offer.rooms && !offer.feed);
        let compressed = |text: &str| Named::parse(text).unwrap().offer().unwrap().compresses;
        assert_eq!(compressed("socketio"), [Transport::WebSocket, Transport::LongPolling]);
        assert_eq!((compressed("go-bare:gws"), compressed("go-bare:sse")), (vec![Transport::WebSocket], vec![]));
        assert!(offer.compresses == offer.transports, "it is asked, and seen to do what it does");
        let node = Named::parse("node-bare:sse").unwrap();
        assert!(has(&node, Transport::Sse) && !has(&node, Transport::WebSocket));
        for (bad, why) in [
            ("nginx", "is not known; known are"),
            ("node-bare:telepathy", "has no transport"),
            ("pushlab=/opt/pushlab", "use NAME=PATH"),
            ("live=127.0.0.1:8000", "write a running server as NAME=[DIALECT+]http"),
            ("live=push.example.org:8000/chat", "write a running server as NAME=[DIALECT+]http"),
            ("Old=/opt/pushlab", "lower-case"),
            ("chat=morse+http://h/", "is not known; known are native and"),
        ] {
            let error = Named::parse(bad).unwrap_err();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }
}
