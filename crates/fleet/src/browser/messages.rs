//! What pages and worker tell each other: JSON, page by page, over HTTP.
//!
//! A page reports what has happened since its last report; the answer says what it is to do. Instants are ms of the
//! page's own clock, so that one side alone, the worker, has to know how clocks differ.

use pushlab_wire::http::split_target;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What a page says.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Whether it is hidden now.
    pub hidden: bool,
    /// How often it was hidden or shown.
    pub visibility_changes: u32,
    /// Of its clients, those subscribed now.
    pub subscribed: u32,
    /// Client, instant, and the part of the data that bears the stamp.
    pub deliveries: Vec<(u32, f64, String)>,
    /// Publication, when it was sent, and since when its client could have sent it.
    pub published: Vec<(u64, f64, f64)>,
    /// Client and instant of each HTTP request; those of a framework's own client are nobody's in particular.
    pub requests: Vec<(Option<u32>, f64)>,
    /// Times that clients took to subscribe, ms.
    pub connects: Vec<f64>,
    /// Gap frames.
    pub gaps: u32,
    /// Connections opened again.
    pub reconnects: u32,
    /// What went wrong.
    pub errors: Vec<String>,
    /// With what publications were refused.
    #[serde(default)]
    pub refused: Vec<String>,
}

/// Which page reports, and when.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sender {
    /// Its number.
    pub page: usize,
    /// When it sent this.
    pub sent_ms: f64,
    /// When the answer to its last report came; `None` in the first.
    pub answered_ms: Option<f64>,
}

impl Sender {
    /// Reads the target of a report: `/report?page=0&sent=12.3&answered=11.9`.
    pub fn parse(target: &str) -> Option<Self> {
        let value = |name: &str| split_target(target).1.find(|(key, _)| key == name).map(|(_, value)| value);
        let instant = |text: Cow<'_, str>| text.parse().ok().filter(|ms: &f64| ms.is_finite());
        let answered_ms = match value("answered")? {
            text if text.is_empty() => None,
            text => Some(instant(text)?),
        };
        Some(Self { page: value("page")?.parse().ok()?, sent_ms: instant(value("sent")?)?, answered_ms })
    }
}

/// What a page is to do.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Answer {
    /// When to report again: after so many ms, at once with 0.
    pub again_ms: u64,
    /// What its clients are to do; once.
    pub setup: Option<Setup>,
    /// What they are to publish next, in the order of instants.
    pub publish: Vec<Publication>,
}

/// What the clients of a page are to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Setup {
    /// What the paths are appended to: `http://127.0.0.1:8000`.
    pub target: String,
    /// How they receive.
    pub transport: &'static str,
    /// Whether what they send is an echo.
    pub sends_echoes: bool,
    /// What the adapter of a framework's client has to know besides; `None` where they speak our own protocol.
    pub framework: Option<Framework>,
    /// Number and channels of each, as a query has them: `channel=a.1&channel=a.7`.
    pub clients: Vec<(u32, String)>,
    /// Time between the first attempts of two clients to connect: client i begins at i times it.
    pub connect_every_ms: f64,
    /// How long a long poll may be held, s.
    pub wait_s: u64,
    /// When client 0 polls for the first time; client i of N does at i/N of the interval after that.
    pub poll_from_ms: f64,
    /// Time between two polls of a client.
    pub poll_every_ms: u64,
    /// Clients of all pages.
    pub poll_of: u32,
    /// The channel that stands for the list of users, where that is asked for after each poll.
    pub users: Option<String>,
}

/// What a foreign subject's adapter has to know.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Framework {
    /// The dialect's path: `/socket.io/`.
    pub path: String,
    /// Which of several ways the dialect has over the transport.
    pub how: String,
    /// The channel to which clients publish, where they are not in rooms.
    pub publishes_to: String,
}

/// Something to publish.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Publication {
    /// Which: counts all publications of the run.
    pub number: u64,
    /// When.
    pub due_ms: f64,
    /// By which client.
    pub client: u32,
    /// To which channel.
    pub channel: String,
    /// The data, a JSON text.
    pub data: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_is_read_or_refused() {
        let sender = Sender::parse("/report?page=3&sent=12.5&answered=").unwrap();
        assert_eq!(sender, Sender { page: 3, sent_ms: 12.5, answered_ms: None });
        assert_eq!(Sender::parse("/report?sent=1&answered=0.5&page=0").unwrap().answered_ms, Some(0.5));
        for bad in ["", "page=3", "page=-1&sent=1&answered=", "page=1&sent=inf&answered=", "page=1&sent=1&answered=x"] {
            assert_eq!(Sender::parse(&format!("/report?{bad}")), None, "{bad}");
        }
    }
}
