//! The table of transports.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How bytes travel between server and client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// RFC 6455, both directions on one connection.
    #[serde(rename = "websocket")]
    WebSocket,
    /// An event stream (WHATWG); publishes by POST.
    Sse,
    /// One endless response, a JSON array a line; publishes by POST.
    HttpStreaming,
    /// A request that waits for the next message; publishes by POST.
    LongPolling,
    /// A request at an interval; publishes by POST.
    Polling,
    /// A request at an interval, over a WebSocket.
    #[serde(rename = "websocket-polling")]
    WebSocketPolling,
}

/// Number of transports.
pub const TRANSPORTS: usize = 6;

impl Transport {
    /// Every transport, in the order in which reports list them.
    pub const ALL: [Self; TRANSPORTS] =
        [Self::WebSocket, Self::Sse, Self::HttpStreaming, Self::LongPolling, Self::Polling, Self::WebSocketPolling];

    /// The name used in files, options and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::WebSocket => "websocket",
            Self::Sse => "sse",
            Self::HttpStreaming => "http-streaming",
            Self::LongPolling => "long-polling",
            Self::Polling => "polling",
            Self::WebSocketPolling => "websocket-polling",
        }
    }

    /// What people call it, within a sentence.
    pub const fn title(self) -> &'static str {
        match self {
            Self::WebSocket => "WebSocket",
            Self::Sse => "SSE",
            Self::HttpStreaming => "HTTP streaming",
            Self::LongPolling => "long polling",
            Self::Polling => "polling",
            Self::WebSocketPolling => "polling over WebSocket",
        }
    }

    /// The transport of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.name() == name)
    }

    /// Position in [`Self::ALL`], for tables of counters.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether clients ask at an interval instead of being told.
    pub const fn is_interval_driven(self) -> bool {
        matches!(self, Self::Polling | Self::WebSocketPolling)
    }

    /// Whether the server sends by itself; otherwise every delivery answers a request.
    pub const fn is_push(self) -> bool {
        matches!(self, Self::WebSocket | Self::Sse | Self::HttpStreaming)
    }

    /// Whether publications travel on the connection that receives (otherwise by POST on a second one).
    pub const fn is_bidirectional(self) -> bool {
        matches!(self, Self::WebSocket | Self::WebSocketPolling)
    }
}

impl std::fmt::Display for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Transport {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::from_name(name).ok_or_else(|| format!("expected one of {}", Self::ALL.map(Self::name).join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_table() {
        for (index, transport) in Transport::ALL.into_iter().enumerate() {
            assert_eq!(transport.index(), index);
            assert_eq!(Transport::from_name(transport.name()), Some(transport));
            assert_eq!(serde_json::to_value(transport).unwrap(), transport.name());
        }
        assert!("carrier-pigeon".parse::<Transport>().unwrap_err().starts_with("expected one of websocket, sse"));
    }
}
