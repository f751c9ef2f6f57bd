//! Sizes, addresses and switches as people write them. (Durations are `humantime`'s: `500ms`, `25s`, `5m`.)

use std::net::SocketAddr;

/// `4096`, `64KiB`, `8MiB`, `1GiB`.
pub fn bytes(text: &str) -> Result<usize, String> {
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = (&text[..at], text[at..].trim());
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

/// The size of a message, which clients are to take: the client library refuses more than four times the largest.
pub fn message_bytes(text: &str) -> Result<usize, String> {
    bytes(text).and_then(|bytes| match bytes <= 16 << 20 {
        true => Ok(bytes),
        false => Err("at most 16MiB is allowed".to_owned()),
    })
}

/// A switch, as the environment has it: set to nothing, it is off.
pub fn switch(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "yes" | "true" | "on" => Ok(true),
        "" | "0" | "no" | "false" | "off" => Ok(false),
        _ => Err("write 1 or 0, yes or no, true or false".to_owned()),
    }
}

/// Bytes in mebibytes, for people.
pub fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// `127.0.0.1:8000`, `[::1]:8000`.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "an address to listen on is IP:PORT, such as 127.0.0.1:8000, [::1]:8000 or 0.0.0.0:8000".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_set_as_people_set_it() {
        for on in ["1", "yes", "true", "TRUE", "on"] {
            assert_eq!(switch(on), Ok(true), "{on}");
        }
        for off in ["0", "no", "false", "No", "off", ""] {
            assert_eq!(switch(off), Ok(false), "{off}");
        }
        assert!(switch("2").is_err() && switch("nope").is_err());
    }

    #[test]
    fn sizes_are_binary() {
        assert_eq!(bytes("4096"), Ok(4096));
        assert_eq!(bytes("64KiB"), Ok(65_536));
        assert_eq!((message_bytes("16MiB"), message_bytes("17MiB").is_err()), (Ok(16 << 20), true));
        for bad in ["", "x", "1.5KiB", "64kb", "99999999999GiB"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }
}
