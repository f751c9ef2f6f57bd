//! What the console's pages read and write: the published schema and the pages' types are made from these.

use pushlab_lab::archive::ResultSummary;
use pushlab_lab::live::LiveState;
use pushlab_wire::transport::Transport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most latencies of one transport in a browser's measurement; a longer list is refused.
pub const MAX_LATENCIES: usize = 200;
/// Longest text in a browser's measurement, bytes; a longer one is refused.
pub const MAX_TEXT_BYTES: usize = 1024;

/// Every message of the console's interface, one property for each.
#[derive(Debug, JsonSchema)]
pub struct Interface {
    /// Answer of `GET /api/about`.
    pub about: About,
    /// Answer of `GET /api/results`, newest first.
    pub results: Vec<ResultSummary>,
    /// Answer of `GET /api/presets`.
    pub presets: Vec<Preset>,
    /// Answer of `GET /api/presets/NAME`.
    pub preset_text: PresetText,
    /// Body of `POST /api/experiments/check` and of `POST /api/campaigns`.
    pub experiment_request: ExperimentRequest,
    /// Answer of `POST /api/experiments/check`.
    pub experiment_check: ExperimentCheck,
    /// Answer of `GET /api/live`.
    pub live_start: LiveStart,
    /// Each message of the channel `console.live`.
    pub live: LiveState,
    /// Body of `POST /api/measurements`.
    pub measurement: Measurement,
    /// Answer of `POST /api/measurements`.
    pub stored: Stored,
    /// Answer with a status of 400 or above, of everything.
    pub failure: Failure,
}

/// What this server is and what may be done here.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct About {
    /// Version of the program.
    pub version: String,
    /// Whether experiments may be started here.
    pub can_run: bool,
    /// Whether measurements of browsers are kept here.
    pub can_store: bool,
    /// Transports of the port, in the order in which clients try them.
    pub transports: Vec<Transport>,
    /// Demos that are served: `ticker`, `chat`, `auction`.
    pub demos: Vec<String>,
    /// Channel of the live figures.
    pub live_channel: String,
}

/// An experiment that comes with the program.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Preset {
    /// Name.
    pub name: String,
    /// Title for people.
    pub title: String,
    /// What the traffic is, in one or two sentences.
    pub about: String,
    /// Its profiles, beside the full form.
    pub profiles: Vec<String>,
    /// Runs of the full form.
    pub runs: u32,
    /// How long the full form takes, about, in seconds.
    pub estimated_s: u64,
}

/// The text of a preset.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PresetText {
    /// An experiment's file.
    pub toml: String,
}

/// An experiment, to be looked at or to be carried out.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExperimentRequest {
    /// An experiment's file.
    pub toml: String,
    /// A profile of it; its full form without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Seed of the order of runs and of everything random, below 2^53; a new one without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// What an experiment would be.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ExperimentCheck {
    /// Name of its campaign; empty where it cannot be read.
    pub name: String,
    /// Runs; 0 where it cannot be read.
    pub runs: u32,
    /// How long it takes, about, in seconds.
    pub estimated_s: u64,
    /// Why it cannot be carried out; nothing if it can.
    pub problems: Vec<String>,
    /// What would be left out of it, with the reason: a subject that is not installed, for instance.
    pub left_out: Vec<String>,
}

/// The live figures, and whence to follow them.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LiveStart {
    /// Subscribe to the channel after this cursor.
    pub cursor: String,
    /// The figures now.
    pub live: LiveState,
}

/// What a browser measured.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// What the browser calls itself.
    pub user_agent: String,
    /// When it was measured, by the browser's clock, ms since 1970.
    pub page_ms: f64,
    /// Whether the page was in the background meanwhile.
    #[serde(default)]
    pub was_hidden: bool,
    /// Each transport that was tried, once.
    pub transports: Vec<MeasuredTransport>,
}

/// What a browser measured over one transport.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeasuredTransport {
    /// Which.
    pub transport: Transport,
    /// Whether it works.
    pub ok: bool,
    /// Why it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// From the beginning to being subscribed, ms; absent where that did not happen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_ms: Option<f64>,
    /// Time from sending each own message to its coming back, ms; 200 at most.
    pub latencies_ms: Vec<f64>,
    /// Mean difference between one latency and the next, ms; absent with fewer than two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_ms: Option<f64>,
    /// HTTP requests that it took.
    pub requests: u32,
    /// Bytes that came, as the browser counts them; absent where it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_received: Option<u64>,
    /// Bytes that went; absent where nobody counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_sent: Option<u64>,
    /// Whether something on the way holds the stream back instead of passing it on.
    pub is_buffered: bool,
    /// How often the connection was cut, and resumed.
    #[serde(default)]
    pub cuts: u32,
}

/// Where something was stored.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct Stored {
    /// Number of the result.
    pub id: i64,
}

/// Why a request was refused.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// One of the codes in `docs/codes.md`.
    pub error: String,
    /// What was wrong, and what to try.
    pub message: String,
}

/// The published schema of all of them.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Interface).to_value()
}
