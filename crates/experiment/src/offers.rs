//! What the subjects of an experiment can do: points of its matrix that one does not offer are left out.

use crate::cell::SlowPolicy;
use crate::polling::Polling;
use pushlab_wire::transport::Transport;
use pushlab_workload::scenario::{FeedBy, Outage, Scenario};
use std::collections::BTreeMap;

/// What somebody else's server can do. Ours can do everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Its transports.
    pub transports: Vec<Transport>,
    /// Over which of them it compresses, if it is told to.
    pub compresses: Vec<Transport>,
    /// Over which of them a browser's pages can be its clients.
    pub pages: Vec<Transport>,
    /// Whether it sends a message back to whoever sent it.
    pub echo: bool,
    /// Whether it has rooms.
    pub rooms: bool,
    /// Whether it publishes what a back end feeds it.
    pub feed: bool,
    /// Whether a client that polls can ask it for a list of users, too.
    pub users: bool,
    /// Whether a poll may ask it for the newest messages.
    pub newest: bool,
    /// Whether an event stream can bring a client its own message back.
    pub echo_streams: bool,
    /// Over which of them clients that were cut off can have what they missed, if it is told to keep that.
    pub resumes: Vec<Transport>,
    /// Whether it can speak TLS.
    pub tls: bool,
    /// Whether somebody else runs it.
    pub is_external: bool,
}

impl Offer {
    /// Whether a browser's pages can be its clients over a transport. Where they cannot be over any, that is not known
    /// here: whoever starts such a run refuses it and says which subjects can.
    pub fn has_pages(&self, transport: Transport) -> bool {
        self.pages.is_empty() || self.pages.contains(&transport)
    }

    /// Whether it answers polls as they are to be asked.
    pub fn has_polls(&self, transport: Transport, polling: &Polling) -> bool {
        self.newest || polling.newest.is_none() || transport != Transport::Polling
    }

    /// Whether a transport is among it, what a scenario needs, and compression over it if that is asked for.
    pub fn has(&self, transport: Transport, scenario: &Scenario, is_compressed: bool) -> bool {
        let has_scenario = match scenario {
            Scenario::Echo { streamed: true, .. } if transport == Transport::Sse => self.echo && self.echo_streams,
            Scenario::Echo { .. } | Scenario::Request { .. } => self.echo,
            Scenario::Rooms { .. } => self.rooms,
            // To take over is our server's own.
            Scenario::Storm { outage: Outage::Takeover, .. } => false,
            Scenario::Storm { outage, .. } => {
                self.resumes.contains(&transport) && (outage.is_cut() || !self.is_external)
            }
            Scenario::Feed { by: FeedBy::BackEnd, .. } => self.feed,
            _ => true,
        };
        let has_compression = !is_compressed || self.compresses.contains(&transport);
        has_scenario && has_compression && self.transports.contains(&transport)
    }
}

/// Tells what the subject offers that experiments name so; nothing of ours, or why there is no such subject.
pub type Find<'a> = &'a dyn Fn(&str) -> Result<Option<Offer>, String>;

/// What the subjects of an experiment offer, by their text there. Of those that are not here, which are ours or of
/// whom only figures are known, anything is believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offers(BTreeMap<String, Offer>);

impl Offers {
    /// Of these subjects.
    pub fn find(subjects: &[String], find: Find<'_>) -> Result<Self, String> {
        let found = subjects.iter().filter_map(|text| Some((text.clone(), find(text).transpose()?)));
        found.map(|(text, offer)| Ok((text, offer?))).collect::<Result<_, String>>().map(Self)
    }

    /// Of those of these subjects that are known.
    pub fn known(subjects: &[String], find: Find<'_>) -> Self {
        Self(subjects.iter().filter_map(|text| Some((text.clone(), find(text).ok()??))).collect())
    }

    /// What the subject of this text offers, if that is known to be less than everything.
    pub fn of(&self, subject: &str) -> Option<&Offer> {
        self.0.get(subject)
    }
}

/// Policies are our server's; where one is chosen or several are compared, others stand beside them with their own.
pub fn policies<'p>(offer: Option<&Offer>, policies: &'p [SlowPolicy]) -> &'p [SlowPolicy] {
    match (offer, policies) {
        (Some(_), [first, rest @ ..]) if *first != SlowPolicy::Close || !rest.is_empty() => &[SlowPolicy::Own],
        _ => policies,
    }
}
