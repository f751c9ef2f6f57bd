//! Proxies between clients and server.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A proxy between clients and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Proxy {
    /// nginx, configured with only the server's address. It ends the clients' TLS.
    Nginx,
    /// One that passes on only whole answers and does not support upgrades; without TLS.
    Buffering,
}
