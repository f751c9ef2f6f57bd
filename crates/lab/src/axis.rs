//! What an experiment sweeps besides transports: clients, deliveries per second, size of a publication.

use crate::record::Cell;
use crate::report::model::Axis;
use pushlab_load::plan::Scenario;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

/// Mean size of a publication's data, bytes; `None` where nothing is published.
pub fn mean_payload_bytes(scenario: &Scenario) -> Option<f64> {
    match *scenario {
        Scenario::Chat { payload_bytes, payload_bytes_max: Some(max), .. } => {
            Some(f64::from(payload_bytes).midpoint(f64::from(max)))
        }
        Scenario::Feed { payload_bytes, .. }
        | Scenario::Chat { payload_bytes, .. }
        | Scenario::Rooms { payload_bytes, .. }
        | Scenario::Echo { payload_bytes, .. }
        | Scenario::Upstream { payload_bytes, .. }
        | Scenario::Request { payload_bytes } => Some(f64::from(payload_bytes)),
        Scenario::Idle => None,
    }
}

/// The same traffic with publications of another size.
pub fn with_payload_bytes(mut scenario: Scenario, bytes: u32) -> Scenario {
    match &mut scenario {
        Scenario::Chat { payload_bytes, payload_bytes_max, .. } => {
            *payload_bytes = bytes;
            *payload_bytes_max = None;
        }
        Scenario::Feed { payload_bytes, .. }
        | Scenario::Rooms { payload_bytes, .. }
        | Scenario::Echo { payload_bytes, .. }
        | Scenario::Upstream { payload_bytes, .. }
        | Scenario::Request { payload_bytes } => *payload_bytes = bytes,
        Scenario::Idle => {}
    }
    scenario
}

/// The same traffic at another rate: intervals are set so that so many deliveries per second are planned. What
/// follows its answers, or does nothing, has no planned rate and stays as it is.
pub fn with_deliveries_per_s(mut scenario: Scenario, clients: u32, deliveries: u32) -> Scenario {
    let (clients, deliveries) = (f64::from(clients), f64::from(deliveries));
    let whole = |interval: f64| (interval.round() as u64).max(1);
    match &mut scenario {
        Scenario::Feed { interval_us, .. } => *interval_us = whole(1e6 * clients / deliveries),
        Scenario::Chat { interval_ms, publishers, .. } => {
            let publishers = publishers.map_or(clients, f64::from);
            *interval_ms = whole(1e3 * publishers * clients / deliveries);
        }
        Scenario::Rooms { rooms, rooms_per_client, interval_us, .. } => {
            let members = clients * f64::from(*rooms_per_client) / f64::from((*rooms).max(1));
            *interval_us = whole(1e6 * members / deliveries);
        }
        Scenario::Echo { interval_ms, .. } | Scenario::Upstream { interval_ms, .. } => {
            *interval_ms = whole(1e3 * clients / deliveries);
        }
        Scenario::Request { .. } | Scenario::Idle => {}
    }
    scenario
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_become_intervals() {
        let feed = Scenario::Feed { interval_us: 1, payload_bytes: 50 };
        assert_eq!(
            with_deliveries_per_s(feed, 1000, 20_000),
            Scenario::Feed { interval_us: 50_000, payload_bytes: 50 }
        );
        let rooms = Scenario::Rooms { rooms: 100, rooms_per_client: 10, interval_us: 1, payload_bytes: 50 };
        let Scenario::Rooms { interval_us, .. } = with_deliveries_per_s(rooms, 5000, 20_000) else { panic!() };
        assert_eq!(interval_us, 25_000, "500 members a room, so 40 publications a second");
    }

    #[test]
    fn sizes_replace_ranges() {
        let chat =
            Scenario::Chat { interval_ms: 200, payload_bytes: 60, payload_bytes_max: Some(180), publishers: Some(1) };
        assert_eq!(mean_payload_bytes(&chat), Some(120.0));
        assert_eq!(mean_payload_bytes(&with_payload_bytes(chat, 500)), Some(500.0));
    }
}
