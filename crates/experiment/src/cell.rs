//! One point of an experiment's matrix, and the axes that are swept.

use pushlab_wire::transport::Transport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One point of an experiment's matrix.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cell {
    /// Name of the experiment.
    pub experiment: String,
    /// Name of the subject.
    pub subject: String,
    /// How the clients receive.
    pub transport: Transport,
    /// What our server does with slow subscribers.
    pub policy: SlowPolicy,
    /// Name of the variant, where the experiment has any.
    pub variant: Option<String>,
    /// Name of the profile of the link between clients and subject; `None` without a link.
    #[serde(default)]
    pub network: Option<String>,
    /// Number of virtual clients.
    pub clients: u32,
    /// Planned deliveries per second, where they are swept.
    pub deliveries_per_s: Option<u32>,
    /// Size of a publication's data, bytes, where it is swept.
    pub payload_bytes: Option<u32>,
}

impl Cell {
    /// Name for people: `tangen-chat · websocket · 100 clients`.
    pub fn label(&self) -> String {
        let mut parts = vec![self.experiment.clone()];
        parts.extend((self.subject != "pushlab").then(|| self.subject.clone()));
        parts.push(self.transport.name().to_owned());
        parts.extend(self.variant.clone());
        parts.extend((self.policy != SlowPolicy::Close).then(|| self.policy.name().to_owned()));
        parts.extend(self.network.clone());
        parts.push(Sweep::Clients.place(self.clients));
        parts.extend(self.deliveries_per_s.map(|rate| Sweep::DeliveriesPerS.place(rate)));
        parts.extend(self.payload_bytes.map(|bytes| Sweep::PayloadBytes.place(bytes)));
        parts.join(" · ")
    }
}

/// What our server does with a slow subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SlowPolicy {
    /// The connection is closed.
    Close,
    /// The oldest messages go, and a gap is told.
    DropOldest,
    /// Only the latest message of each channel stays.
    Conflate,
    /// Whatever somebody else's server does.
    Own,
}

impl SlowPolicy {
    /// The name, as the server's option takes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Close => "close",
            Self::DropOldest => "drop-oldest",
            Self::Conflate => "conflate",
            Self::Own => "own",
        }
    }
}

/// An axis that can be swept and drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sweep {
    /// Numbers of virtual clients.
    Clients,
    /// Planned deliveries per second, of all clients together.
    DeliveriesPerS,
    /// Sizes of a publication's data, bytes.
    PayloadBytes,
}

impl Sweep {
    /// All of them, in the order in which one is chosen for the charts.
    pub const ALL: [Self; 3] = [Self::Clients, Self::DeliveriesPerS, Self::PayloadBytes];

    /// A cell's place.
    pub fn of(self, cell: &Cell) -> Option<u32> {
        match self {
            Self::Clients => Some(cell.clients),
            Self::DeliveriesPerS => cell.deliveries_per_s,
            Self::PayloadBytes => cell.payload_bytes,
        }
    }

    /// How a place is called: `300 clients`.
    pub fn place(self, value: u32) -> String {
        match self {
            Self::Clients if value == 1 => "1 client".to_owned(),
            Self::Clients => format!("{value} clients"),
            Self::DeliveriesPerS => format!("{value} deliveries/s"),
            Self::PayloadBytes => format!("{value} B"),
        }
    }

    /// What a report says of it. Sizes span orders of magnitude, so they are drawn on a logarithmic scale.
    pub fn axis(self) -> Axis {
        let (name, title, unit) = match self {
            Self::Clients => ("clients", "Clients", ""),
            Self::DeliveriesPerS => ("deliveries_per_s", "Planned deliveries", "/s"),
            Self::PayloadBytes => ("payload_bytes", "Payload", "B"),
        };
        Axis {
            name: name.to_owned(),
            title: title.to_owned(),
            unit: unit.to_owned(),
            is_logarithmic: self == Self::PayloadBytes,
        }
    }
}

/// What an axis is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Axis {
    /// `clients`, `deliveries_per_s` or `payload_bytes`.
    pub name: String,
    /// For people, e.g. `Clients`.
    pub title: String,
    /// Unit; empty for a number of things.
    pub unit: String,
    /// Whether it is drawn on a logarithmic scale.
    pub is_logarithmic: bool,
}
