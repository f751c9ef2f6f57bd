//! The prober as files have it: TOML has no null, so "no prober" is `false`.

use pushlab_workload::plan::{Prober, ProberPath};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A ping every 50 ms, over what the clients speak.
pub fn default_prober() -> Option<Prober> {
    Some(Prober { interval_ms: 50, over: ProberPath::SameTransport, closed_loop: false, subscribed: false })
}

/// A prober, or whether there is one.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Choice {
    /// `true` is the ordinary one.
    Is(bool),
    /// A prober of one's own.
    Own(Prober),
}

/// As a choice.
pub fn serialize<S: Serializer>(prober: &Option<Prober>, serializer: S) -> Result<S::Ok, S::Error> {
    prober.clone().map_or(Choice::Is(false), Choice::Own).serialize(serializer)
}

/// From a choice.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Prober>, D::Error> {
    Ok(match Choice::deserialize(deserializer)? {
        Choice::Is(false) => None,
        Choice::Is(true) => default_prober(),
        Choice::Own(prober) => Some(prober),
    })
}
