//! What an experiment says to the scorecard.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A row of the scorecard: one quantity, by which everything that the experiment compares is judged against the best.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CardRow {
    /// For people, in a few words, e.g. `Latency, 4G`.
    pub title: String,
    /// What else has to be known of it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// When it decides, to be read after "if": `clients send often`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub when: String,
    /// The metric that is compared.
    pub metric: String,
    /// Words that a series must bear to be in the row: a variant, a network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
    /// The place on the axis; not needed where there is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u32>,
    /// Whether the row only says what works: whose deliveries arrive. The metric is then `delivered_share`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub works: bool,
    /// Whose choice it bears on; nobody's by default, so that the row only informs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<Workload>,
}

/// A kind of application, for which the scorecard says what to choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// A server tells many clients the same.
    Broadcast,
    /// Clients write as well as read.
    Chat,
    /// A page that shows changing figures, in browsers behind whatever proxies there are.
    Dashboard,
    /// Phones: slow links that lose packets, and connections that break.
    Mobile,
    /// Many clients that hear something once in a while.
    ManyIdle,
}

impl Workload {
    /// All of them, in the order in which they are told.
    pub const ALL: [Self; 5] = [Self::Broadcast, Self::Chat, Self::Dashboard, Self::Mobile, Self::ManyIdle];

    /// For people, as in `For a broadcast`.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Broadcast => "broadcast",
            Self::Chat => "chat",
            Self::Dashboard => "dashboard",
            Self::Mobile => "mobile networks",
            Self::ManyIdle => "many idle clients",
        }
    }
}
