//! The server's clock, as all that the demonstrations tell is dated by it.

use std::time::SystemTime;

/// Milliseconds since 1970, the microseconds behind the point.
pub fn now_ms() -> f64 {
    SystemTime::UNIX_EPOCH.elapsed().map_or(0.0, |since| since.as_micros() as f64 / 1000.0)
}
