//! The order of options between which the quantities do not decide: what works in more places first, then what has fewer
//! moving parts, then what takes fewer bytes.

use pushlab_report::{CardOption, CardRow, Scorecard};
use pushlab_wire::transport::Transport;
use std::cmp::Ordering;

/// Why one of two options is preferred that are otherwise as good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Practical {
    /// It works in more places; titles of the rows in which it works and the other fails.
    Works(Vec<String>),
    Parts,
    Bytes,
    /// Only the order of the card speaks for it.
    Nothing,
}

/// The better one first; as the card has them where nothing speaks for either.
pub fn order(card: &Scorecard, a: usize, b: usize) -> Ordering {
    let more_works = works(card, b).count().cmp(&works(card, a).count());
    let fewer_parts = moving_parts(&card.options[a]).cmp(&moving_parts(&card.options[b]));
    more_works.then(fewer_parts).then_with(|| bytes(card, a).total_cmp(&bytes(card, b))).then(a.cmp(&b))
}

/// Why `first` comes before `second`.
pub fn reason(card: &Scorecard, first: usize, second: usize) -> Practical {
    if works(card, first).count() > works(card, second).count() {
        let key = &card.options[second].key;
        let is_own = |row: &&CardRow| row.cells[second].is_none() && row.failures.contains_key(key);
        return Practical::Works(works(card, first).filter(is_own).map(|row| row.title.clone()).collect());
    }
    match () {
        () if moving_parts(&card.options[first]) < moving_parts(&card.options[second]) => Practical::Parts,
        () if bytes(card, first) < bytes(card, second) => Practical::Bytes,
        () => Practical::Nothing,
    }
}

fn works(card: &Scorecard, option: usize) -> impl Iterator<Item = &CardRow> {
    card.rows.iter().filter(move |row| row.works && row.cells[option].is_some())
}

/// What there is to write, to configure and to go wrong. An `EventSource` parses, reconnects and says where it was; with
/// all else the page does that, and polls need a clock too. A variant such as HTTP/2 has to be supported on the whole way.
fn moving_parts(option: &CardOption) -> (u8, bool) {
    let own = match Transport::from_name(&option.transport) {
        Some(Transport::Sse) => 0,
        Some(Transport::WebSocket | Transport::HttpStreaming) => 1,
        Some(Transport::LongPolling | Transport::Polling) => 2,
        Some(Transport::WebSocketPolling) | None => 3,
    };
    (own, option.label.ends_with(&format!(" · {}", option.variant)))
}

/// What a delivery takes, as a factor; infinite where that is unknown.
fn bytes(card: &Scorecard, option: usize) -> f64 {
    let mut rows = card.rows.iter().filter(|row| matches!(row.metric.as_str(), "bytes_link" | "bytes_per_delivery"));
    rows.find_map(|row| Some(row.cells[option].as_ref()?.against.factor)).unwrap_or(f64::INFINITY)
}
