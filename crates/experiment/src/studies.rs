//! The published studies that experiments repeat: who, what, their numbers and what they found.

use crate::findings::Inventory;

/// A published study.
#[derive(Debug, Clone, Copy)]
pub struct Study {
    /// As experiments name it.
    pub id: &'static str,
    /// Authors, title, year.
    pub citation: &'static str,
    /// Its numbers: files in the layout of the CSV export, docs/store.md.
    pub csv: &'static [&'static str],
    /// What it gives of single seconds of its runs, where it does: experiments/published/README.md has the layout.
    pub seconds: Option<&'static str>,
    /// What it found: an [`Inventory`] in TOML.
    findings: &'static str,
}

impl Study {
    /// What it found.
    pub fn inventory(&self) -> Inventory {
        toml::from_str(self.findings).expect("a test reads all inventories")
    }
}

/// All of them. The files' facts are the studies'; experiments/published/README.md says how they were taken over.
pub const STUDIES: [Study; 5] = [
    Study {
        id: "tangen-2015",
        citation: "Tangen 2015: WebSocket, Server-Sent Events and long polling under load and stress",
        csv: &[include_str!("../../../experiments/published/tangen-2015.csv")],
        seconds: None,
        findings: include_str!("../../../experiments/findings/tangen-2015.toml"),
    },
    Study {
        id: "johannessen-2014",
        citation: "Johannessen 2014: five real-time frameworks and their transports",
        csv: &[
            include_str!("../../../experiments/published/johannessen-2014-load.csv"),
            include_str!("../../../experiments/published/johannessen-2014-runs.csv"),
        ],
        seconds: Some(include_str!("../../../experiments/published/johannessen-2014-seconds.csv")),
        findings: include_str!("../../../experiments/findings/johannessen-2014.toml"),
    },
    Study {
        id: "cometd-2011",
        citation: "CometD 2.4.0, 2011: WebSocket and long polling at scale",
        csv: &[include_str!("../../../experiments/published/cometd-2011.csv")],
        seconds: None,
        findings: include_str!("../../../experiments/findings/cometd-2011.toml"),
    },
    Study {
        id: "polling-study-2017",
        citation: "The polling study, 2017: what polling, long polling, Server-Sent Events and WebSocket cost the server",
        csv: &[include_str!("../../../experiments/published/polling-study-2017.csv")],
        seconds: None,
        findings: include_str!("../../../experiments/findings/polling-study-2017.toml"),
    },
    Study {
        id: "bigestans-2014",
        citation: "Bigestans 2014: a chat room over WebSocket, Server-Sent Events and polling, on three networks",
        csv: &[include_str!("../../../experiments/published/bigestans-2014.csv")],
        seconds: None,
        findings: include_str!("../../../experiments/findings/bigestans-2014.toml"),
    },
];

/// The study of this id.
pub fn find(id: &str) -> Option<&'static Study> {
    STUDIES.iter().find(|study| study.id == id)
}

/// All ids, for messages.
pub fn names() -> String {
    STUDIES.map(|study| study.id).join(", ")
}
