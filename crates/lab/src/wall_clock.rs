//! The time of day, as it is stored.

use std::time::SystemTime;

/// Now: RFC 3339, UTC, whole seconds.
pub fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}
