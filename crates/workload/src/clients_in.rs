//! Where the clients of a plan live.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where clients live: in the worker itself, or in the pages of a browser that it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClientsIn {
    /// What they live in.
    pub kind: ClientKind,
    /// Pages over which a browser's clients are spread evenly, 1 to 200; `native` has none.
    pub pages: u32,
    /// How many clients share a page, in place of `pages`: the number of pages then grows with `clients`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients_per_page: Option<u32>,
    /// Whether the pages are background tabs, whose timers a browser slows down. Otherwise each has a window of its own.
    pub hidden: bool,
    /// Firefox: most HTTP/1.1 connections to one host, 1 to 255; by default 6. Sets
    /// `network.http.max-persistent-connections-per-server`. WebSockets do not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections_per_host_max: Option<u32>,
    /// Firefox: most HTTP connections in all, 1 to 65535; by default 900. Sets `network.http.max-connections`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections_max: Option<u32>,
    /// Firefox: most WebSockets in all, 1 to 65535; by default 200. Sets `network.websocket.max-connections`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub websockets_max: Option<u32>,
    /// Firefox: shortest timer of a hidden page, in ms, 1 to 60000; by default 1000. Sets
    /// `dom.min_background_timeout_value`. With it, Firefox does not ration the CPU time of hidden pages' timers either.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden_timer_min_ms: Option<u32>,
}

impl Default for ClientsIn {
    fn default() -> Self {
        Self::of(ClientKind::Native, 1)
    }
}

/// A preference of Firefox that an experiment may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirefoxPreference {
    /// The key of `clients_in`.
    pub key: &'static str,
    /// As Firefox calls it.
    pub name: &'static str,
    /// What it is set to, if it is.
    pub value: Option<u32>,
    /// The largest value that Firefox takes as it is; the least is 1.
    pub most: u32,
}

impl ClientsIn {
    /// This many pages of this kind, with everything else as is usual in the browser.
    pub fn of(kind: ClientKind, pages: u32) -> Self {
        Self {
            kind,
            pages,
            clients_per_page: None,
            hidden: false,
            connections_per_host_max: None,
            connections_max: None,
            websockets_max: None,
            hidden_timer_min_ms: None,
        }
    }

    /// With the pages that so many clients need.
    pub fn for_clients(self, clients: u32) -> Self {
        let needed = self.clients_per_page.filter(|each| *each > 0).map(|each| clients.div_ceil(each));
        Self { pages: needed.unwrap_or(self.pages), ..self }
    }

    /// Every preference that can be set, whether it is or not.
    pub fn preferences(&self) -> [FirefoxPreference; 4] {
        let preference = |key, name, value, most| FirefoxPreference { key, name, value, most };
        let per_host = "network.http.max-persistent-connections-per-server";
        [
            // Firefox keeps eight bits of it (nsHttpHandler::PrefsChanged).
            preference("clients_in.connections_per_host_max", per_host, self.connections_per_host_max, 255),
            preference("clients_in.connections_max", "network.http.max-connections", self.connections_max, 65_535),
            preference("clients_in.websockets_max", "network.websocket.max-connections", self.websockets_max, 65_535),
            preference(
                "clients_in.hidden_timer_min_ms",
                "dom.min_background_timeout_value",
                self.hidden_timer_min_ms,
                60_000,
            ),
        ]
    }

    /// Longest time for a browser to start and all of its pages to report, ms: two seconds more for each beyond ten.
    pub fn start_max_ms(&self) -> u64 {
        25_000 + u64::from(self.pages.saturating_sub(10)) * 2_000
    }

    /// Time between two reports of a page, ms: reporting must not keep a browser with many pages busy.
    pub fn report_every_ms(&self) -> u64 {
        (u64::from(self.pages) * 20).clamp(100, 1_000)
    }

    /// Whether clients live in a browser.
    pub fn is_browser(&self) -> bool {
        self.kind != ClientKind::Native
    }

    /// Whether nothing differs from the defaults.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What clients live in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClientKind {
    /// The worker's own virtual clients.
    #[default]
    Native,
    /// Headless Chromium, or Chrome where only that is installed.
    Chromium,
    /// Headless Firefox.
    Firefox,
}
