//! What a page is told of a campaign while it lasts.

use pushlab_workload::plan::Phase;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A campaign at an instant. After its end, and before the first, it is idle.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveState {
    /// Whether one is being carried out.
    pub state: Activity,
    /// Its name, or that of the last one; empty before the first.
    pub name: String,
    /// Number of its result in the store, once it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<i64>,
    /// Runs of the campaign.
    pub runs_planned: u32,
    /// Runs that have ended, those of an interrupted part of the campaign among them.
    pub runs_done: u32,
    /// Runs that a warning took out of the figures.
    pub runs_void: u32,
    /// Runs that did not come to their end.
    pub runs_failed: u32,
    /// The run that goes on; absent between runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<LiveRun>,
    /// Why the last campaign did not come to its end, as its last lines say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Whether a campaign is being carried out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Activity {
    /// None is.
    #[default]
    Idle,
    /// One is.
    Running,
}

/// A run at an instant. Rates and latency are those of the last second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveRun {
    /// Its place in the order, from 1.
    pub number: u32,
    /// For people: `tangen-chat · websocket · 100 clients`.
    pub label: String,
    /// Which phase it is in; absent while its subject is started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Time since it began, ms.
    pub elapsed_ms: u64,
    /// Clients subscribed.
    pub clients: u32,
    /// Publications sent, in all its phases.
    pub published: u64,
    /// Deliveries received, in all its phases.
    pub delivered: u64,
    /// Deliveries per second.
    pub deliveries_per_s: f64,
    /// Median delivery latency, ms; absent where nothing was delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_p50_ms: Option<f64>,
    /// 99th percentile of delivery latency, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_p99_ms: Option<f64>,
    /// CPU of the subject, per cent of one core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject_cpu: Option<f64>,
    /// CPU of the generator, per cent of one core: near 100 it is the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator_cpu: Option<f64>,
    /// Resident memory of the subject, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject_rss_bytes: Option<u64>,
}
