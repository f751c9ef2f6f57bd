//! A scenario's size and rate, read and changed.

use pushlab_workload::scenario::Scenario;

/// Mean size of a publication's data, bytes; `None` where nothing is published.
pub fn mean_payload_bytes(scenario: &Scenario) -> Option<f64> {
    match *scenario {
        Scenario::Chat { payload_bytes, payload_bytes_max: Some(max), .. } => {
            Some(f64::from(payload_bytes).midpoint(f64::from(max)))
        }
        Scenario::Feed { payload_bytes, .. }
        | Scenario::FanOut { payload_bytes, .. }
        | Scenario::Chat { payload_bytes, .. }
        | Scenario::Rooms { payload_bytes, .. }
        | Scenario::Echo { payload_bytes, .. }
        | Scenario::Upstream { payload_bytes, .. }
        | Scenario::Storm { payload_bytes, .. }
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
        | Scenario::FanOut { payload_bytes, .. }
        | Scenario::Rooms { payload_bytes, .. }
        | Scenario::Echo { payload_bytes, .. }
        | Scenario::Upstream { payload_bytes, .. }
        | Scenario::Storm { payload_bytes, .. }
        | Scenario::Request { payload_bytes } => *payload_bytes = bytes,
        Scenario::Idle => {}
    }
    scenario
}

/// The same traffic at another rate: intervals are set so that so many deliveries per second are planned. What
/// follows its answers or deliveries, publishes a number that is set, or does nothing, has no planned rate and stays as it
/// is.
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
        Scenario::FanOut { .. } | Scenario::Request { .. } | Scenario::Storm { .. } | Scenario::Idle => {}
    }
    scenario
}

/// Publications per second that a scenario plans; `None` where it follows its answers or deliveries,
/// publishes a number that is set, or does nothing.
pub fn publications_per_s(scenario: &Scenario, clients: u32) -> Option<f64> {
    let clients = f64::from(clients);
    Some(match *scenario {
        Scenario::Feed { interval_us, .. } | Scenario::Rooms { interval_us, .. } => 1e6 / interval_us as f64,
        Scenario::Chat { interval_ms, publishers, .. } => {
            publishers.map_or(clients, f64::from) * 1e3 / interval_ms as f64
        }
        Scenario::Echo { interval_ms, .. } | Scenario::Upstream { interval_ms, .. } => {
            clients * 1e3 / interval_ms as f64
        }
        Scenario::FanOut { .. } | Scenario::Request { .. } | Scenario::Storm { .. } | Scenario::Idle => return None,
    })
}

/// Deliveries per second that a scenario plans; `None` where it follows its answers or deliveries,
/// publishes a number that is set, or does nothing.
pub fn deliveries_per_s(scenario: &Scenario, clients: u32) -> Option<f64> {
    let all = f64::from(clients);
    let each = match *scenario {
        Scenario::Feed { .. } | Scenario::Chat { .. } => all,
        Scenario::Rooms { rooms, rooms_per_client, .. } => all * f64::from(rooms_per_client) / f64::from(rooms.max(1)),
        _ => 1.0,
    };
    Some(publications_per_s(scenario, clients)? * each)
}

/// Whether publications follow deliveries or answers, and no schedule: such a load goes as fast as the server does.
pub fn is_closed_loop(scenario: &Scenario) -> bool {
    matches!(scenario, Scenario::FanOut { .. } | Scenario::Request { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_workload::scenario::FeedBy;

    #[test]
    fn rates_become_intervals() {
        let feed = |interval_us| Scenario::Feed {
            interval_us,
            payload_bytes: 50,
            by: FeedBy::Publisher,
            upstream_interval_ms: None,
        };
        assert_eq!(with_deliveries_per_s(feed(1), 1000, 20_000), feed(50_000));
        let rooms = Scenario::Rooms { rooms: 100, rooms_per_client: 10, interval_us: 1, payload_bytes: 50 };
        let Scenario::Rooms { interval_us, .. } = with_deliveries_per_s(rooms, 5000, 20_000) else { panic!() };
        assert_eq!(interval_us, 25_000, "500 members a room, so 40 publications a second");
    }

    #[test]
    fn a_closed_loop_has_no_schedule_and_is_not_silent() {
        let closed = [Scenario::FanOut { publishers: 4, payload_bytes: 50 }, Scenario::Request { payload_bytes: 50 }];
        assert!(closed.iter().all(is_closed_loop));
        let open = [Scenario::Upstream { interval_ms: 5, payload_bytes: 50 }, Scenario::Idle];
        assert!(!open.iter().any(is_closed_loop));
    }

    #[test]
    fn sizes_replace_ranges() {
        let chat = Scenario::Chat {
            interval_ms: 200,
            payload_bytes: 60,
            payload_bytes_max: Some(180),
            publishers: Some(1),
            in_bursts: false,
        };
        assert_eq!(mean_payload_bytes(&chat), Some(120.0));
        assert_eq!(mean_payload_bytes(&with_payload_bytes(chat, 500)), Some(500.0));
    }

    #[test]
    fn a_closed_loop_of_broadcasts_has_a_size_and_no_rate() {
        let fan_out = |payload_bytes| Scenario::FanOut { publishers: 8, payload_bytes };
        assert_eq!(with_payload_bytes(fan_out(50), 500), fan_out(500));
        assert_eq!((mean_payload_bytes(&fan_out(50)), deliveries_per_s(&fan_out(50), 9)), (Some(50.0), None));
        assert_eq!(with_deliveries_per_s(fan_out(50), 9, 20_000), fan_out(50));
    }
}
