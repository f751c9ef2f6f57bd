//! Days of the calendar, as `2026-11-29`, in UTC.

use std::fmt::{Display, Formatter};
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use serde::Deserialize;

const DAY_S: u64 = 86_400;

/// A day, by its number since 1970-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Date(u64);

impl Date {
    /// Today, by the system's clock.
    pub fn today() -> Self {
        Self::of(SystemTime::now())
    }

    fn of(time: SystemTime) -> Self {
        Self(time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs() / DAY_S))
    }

    /// Days from another to this one.
    pub fn days_since(self, other: Self) -> i64 {
        self.0 as i64 - other.0 as i64
    }
}

impl Display for Date {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        let midnight = SystemTime::UNIX_EPOCH + Duration::from_secs(self.0 * DAY_S);
        let text = humantime::format_rfc3339_seconds(midnight).to_string();
        formatter.write_str(text.trim_end_matches("T00:00:00Z"))
    }
}

impl FromStr for Date {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        humantime::parse_rfc3339(&format!("{text}T00:00:00Z"))
            .map(Self::of)
            .map_err(|_| format!("{text} is no date like 2026-11-29"))
    }
}

impl TryFrom<String> for Date {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_a_number_of_days() {
        let days = [("1970-01-01", 0), ("2000-02-29", 11_016), ("2000-03-01", 11_017), ("2026-11-29", 20_786)];
        for (text, days) in days {
            assert_eq!(text.parse(), Ok(Date(days)), "{text}");
            assert_eq!(Date(days).to_string(), text);
        }
    }

    #[test]
    fn what_is_no_day_is_refused() {
        for text in ["", "2026-11", "2026-11-31", "2100-02-29", "2026-13-01", "2026-1-1", "-2026-01-01", "29.11.2026"] {
            assert!(text.parse::<Date>().is_err(), "{text}");
        }
    }
}
