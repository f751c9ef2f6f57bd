//! What an experiment expects.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that is expected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// An assertion, e.g. `cpu(websocket) < cpu(long-polling)`; docs/experiments.md has the grammar.
    pub that: String,
    /// What it stands for.
    #[serde(default)]
    pub finding: String,
    /// Where a study says so, and as what: `§5.3.2, table 5, a hypothesis`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
}
