//! Durations and sizes as people write them.

use std::time::Duration;

/// `500ms`, `25s`, `5m`, `200us`; the unit is needed.
pub fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
    let seconds = match unit {
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("a duration needs a unit: 200us, 500ms, 25s, 5m or 1h".to_owned()),
    };
    let value: f64 = number.parse().map_err(|_| format!("{number:?} is not a number"))?;
    Duration::try_from_secs_f64(value * seconds).map_err(|e| e.to_string())
}

/// `4096`, `64KiB`, `8MiB`, `1GiB`.
pub fn bytes(text: &str) -> Result<usize, String> {
    let (number, unit) = split(text);
    let shift = match unit {
        "" | "B" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        _ => return Err("a size is a number of bytes, or has KiB, MiB or GiB behind it".to_owned()),
    };
    let value: usize = number.parse().map_err(|_| format!("{number:?} is not a whole number"))?;
    value.checked_shl(shift).filter(|n| n >> shift == value).ok_or_else(|| "too large".to_owned())
}

fn split(text: &str) -> (&str, &str) {
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    (&text[..at], text[at..].trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1.5 s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("200us"), Ok(Duration::from_micros(200)));
        for bad in ["", "5", "s", "-1s", "1.2.3s", "5 parsecs"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_are_binary() {
        assert_eq!(bytes("4096"), Ok(4096));
        assert_eq!(bytes("64KiB"), Ok(65_536));
        for bad in ["", "x", "1.5KiB", "64kb", "99999999999GiB"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }
}
