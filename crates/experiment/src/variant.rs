//! Variants of an experiment's traffic.

use crate::polling::Polling;
use pushlab_wire::transport::Transport;
use pushlab_workload::payload::Content;
use pushlab_workload::plan::{ClientsIn, Phases, Prober, RequestHeaders, Sockets};
use pushlab_workload::scenario::{Scenario, Shape};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A variant of the traffic: what it names replaces the experiment's own, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Lower-case letters, digits and hyphens.
    pub name: String,
    /// Transports that it is for; all of the experiment's by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transports: Vec<Transport>,
    /// Names of the subjects that it is for; all of the experiment's by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subjects: Vec<String>,
    /// Numbers of clients that it is for; all of the experiment's by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<u32>,
    /// Rates that it is for; all of the experiment's by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deliveries_per_s: Vec<u32>,
    /// Sizes that it is for; all of the experiment's by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub payload_bytes: Vec<u32>,
    /// The traffic.
    #[serde(default)]
    pub scenario: Option<Scenario>,
    /// What publications are made of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
    /// How the load's intensity changes.
    #[serde(default)]
    pub shape: Option<Shape>,
    /// How polling transports ask.
    #[serde(default)]
    pub polling: Option<Polling>,
    /// The client that measures response time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prober: Option<Prober>,
    /// What heads of HTTP requests carry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<RequestHeaders>,
    /// Further options of `pushlab serve`.
    #[serde(default)]
    pub server_options: Option<Vec<String>>,
    /// Further variables in the environment of foreign subjects.
    #[serde(default)]
    pub environment: Option<BTreeMap<String, String>>,
    /// Clients ask for compression, and messages of at least so many bytes are compressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression_from: Option<u32>,
    /// How long the phases take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<Phases>,
    /// How connections are set.
    #[serde(default)]
    pub sockets: Option<Sockets>,
    /// Where clients live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients_in: Option<ClientsIn>,
    /// Event loops of the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loops: Option<u32>,
    /// Processes over which they are spread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<u32>,
}

impl Variant {
    /// Whether it is for this transport.
    pub(crate) fn is_for(&self, transport: Transport) -> bool {
        self.transports.is_empty() || self.transports.contains(&transport)
    }

    /// Points of the matrix that it is for, of so many subjects, transports, numbers of clients, rates and sizes.
    pub(crate) fn cells_of(&self, all: [usize; 5]) -> usize {
        let Self { subjects, transports, clients, deliveries_per_s, payload_bytes, .. } = self;
        let named = [subjects.len(), transports.len(), clients.len(), deliveries_per_s.len(), payload_bytes.len()];
        // Where it names none, it is for all.
        let own = |(named, all): (usize, usize)| if named == 0 { all } else { named.min(all) };
        named.into_iter().zip(all).map(own).fold(1, usize::saturating_mul)
    }

    /// Whether it is for less than the whole matrix.
    pub(crate) fn leaves_out(&self) -> bool {
        let Self { transports, subjects, clients, deliveries_per_s, payload_bytes, .. } = self;
        let is_any_named = !transports.is_empty() || !subjects.is_empty() || !clients.is_empty();
        is_any_named || !deliveries_per_s.is_empty() || !payload_bytes.is_empty()
    }

    /// Whether it is the experiment as it is, but for points of the matrix that it leaves out.
    pub fn changes_nothing(&self) -> bool {
        let Self {
            name: _,
            transports: _,
            subjects: _,
            clients: _,
            deliveries_per_s: _,
            payload_bytes: _,
            scenario,
            content,
            shape,
            polling,
            prober,
            headers,
            server_options,
            environment,
            compression_from,
            phases,
            sockets,
            clients_in,
            loops,
            workers,
        } = self;
        let is_traffic = scenario.is_some() || content.is_some() || shape.is_some() || phases.is_some();
        let is_asking = polling.is_some() || headers.is_some();
        let is_server = server_options.is_some() || environment.is_some() || compression_from.is_some();
        let is_load = sockets.is_some() || clients_in.is_some() || loops.is_some() || workers.is_some();
        !(is_traffic || is_asking || is_server || is_load || prober.is_some())
    }
}
