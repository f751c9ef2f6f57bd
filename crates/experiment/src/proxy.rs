//! Proxies between clients and server.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A proxy between clients and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Proxy {
    /// nginx, told nothing but where the server is. It ends the clients' TLS.
    Nginx,
    /// One that passes an answer on when it has all of it, and knows no upgrades; without TLS.
    Buffering,
}
