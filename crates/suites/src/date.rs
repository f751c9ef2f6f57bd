//! Days of the calendar, as `2026-11-29`, in UTC.

use std::fmt::{Display, Formatter};
use std::str::FromStr;
use std::time::SystemTime;

use serde::Deserialize;

/// A day, by its number since 1970-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Date(i64);

impl Date {
    /// Today, by the system's clock.
    pub fn today() -> Self {
        let seconds = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
        Self((seconds / 86_400) as i64)
    }

    /// Days from another to this one.
    pub fn days_since(self, other: Self) -> i64 {
        self.0 - other.0
    }

    /// By Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms": a year begins in March, 400 years are an era.
    fn of(year: i64, month: i64, day: i64) -> Self {
        let year = year - i64::from(month <= 2);
        let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
        Self(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
    }

    /// Year, month and day, by the same source.
    fn parts(self) -> (i64, i64, i64) {
        let days = self.0 + 719_468;
        let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let from_march = (5 * of_year + 2) / 153;
        let (day, month) = (of_year - (153 * from_march + 2) / 5 + 1, (from_march + 2) % 12 + 1);
        (year + era * 400 + i64::from(month <= 2), month, day)
    }
}

impl Display for Date {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        let (year, month, day) = self.parts();
        write!(formatter, "{year:04}-{month:02}-{day:02}")
    }
}

impl FromStr for Date {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<i64> = text.split('-').filter_map(|part| part.parse().ok()).collect();
        let date = if let [year, month, day] = parts[..] { Some(Self::of(year, month, day)) } else { None };
        // What is no day of the calendar comes back as another.
        date.filter(|date| date.to_string() == text).ok_or(format!("{text} is no date like 2026-11-29"))
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
        for (text, days) in [
            ("1970-01-01", 0),
            ("1969-12-31", -1),
            ("2000-02-29", 11_016),
            ("2000-03-01", 11_017),
            ("2026-11-29", 20_786),
            ("2100-03-01", 47_541),
        ] {
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
