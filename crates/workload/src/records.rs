//! Records as applications send them, in JSON: what a feed of measurements, quotes or events looks like. Compressed, they
//! become about as small as those do, which a repeated sentence does not.

use fastrand::Rng;
use std::io::Write as _;

const KINDS: [&str; 8] = ["created", "updated", "deleted", "quote", "trade", "alert", "login", "measurement"];
const NAMES: [&str; 12] = [
    "pressure",
    "temperature",
    "humidity",
    "voltage",
    "current",
    "level",
    "speed",
    "price",
    "volume",
    "load",
    "signal",
    "distance",
];
const UNITS: [&str; 6] = ["bar", "celsius", "percent", "volt", "ampere", "metre"];
const PLACES: [&str; 10] =
    ["Oslo", "Bergen", "Trondheim", "Berlin", "Lyon", "Porto", "Gdansk", "Vienna", "Torino", "Utrecht"];

/// Appends members of an object, each with a comma before it, up to a length at most. What is random comes of `rng`
/// alone.
pub(super) fn append_members(text: &mut Vec<u8>, rng: &mut Rng, max: usize) {
    const ITEMS: &[u8] = b",\"items\":[";
    let mut id = rng.u32(10_000..9_000_000);
    let mut second = rng.u32(..MONTH_S);
    // One record of the message itself, as far as there is room for it.
    for member in 0..4 {
        let begin = text.len();
        match member {
            0 => print(text, format_args!(",\"id\":{id}")),
            1 => print(text, format_args!(",\"type\":\"{}\"", pick(rng, &KINDS))),
            2 => print(text, format_args!(",\"value\":{}", Decimal(rng.i32(-90_000..900_000)))),
            _ => print(text, format_args!(",\"at\":\"{}\"", Instant(second))),
        }
        if text.len() > max {
            return text.truncate(begin);
        }
    }
    // The rest is a list of others.
    let begin = text.len();
    text.extend_from_slice(ITEMS);
    let first = text.len();
    loop {
        let item = text.len();
        if item > first {
            text.push(b',');
        }
        // Numbers and instants of one list are near each other.
        id += rng.u32(1..50);
        second += rng.u32(..20);
        append_item(text, rng, id, second);
        // The bracket that ends the list needs room too.
        if text.len() + 1 > max {
            text.truncate(item);
            break;
        }
    }
    if text.len() == first {
        return text.truncate(begin);
    }
    text.push(b']');
}

fn append_item(text: &mut Vec<u8>, rng: &mut Rng, id: u32, second: u32) {
    let (name, number, value) = (pick(rng, &NAMES), rng.u8(1..40), Decimal(rng.i32(-90_000..900_000)));
    print(text, format_args!("{{\"id\":{id},\"name\":\"{name}-{number}\",\"value\":{value}"));
    // Not every record has everything.
    if rng.u8(..) < 170 {
        print(text, format_args!(",\"unit\":\"{}\"", pick(rng, &UNITS)));
    }
    if rng.u8(..) < 120 {
        print(text, format_args!(",\"place\":\"{}\"", pick(rng, &PLACES)));
    }
    print(text, format_args!(",\"at\":\"{}\",\"ok\":{}}}", Instant(second), rng.u8(..) < 230));
}

fn pick<'t>(rng: &mut Rng, texts: &[&'t str]) -> &'t str {
    texts[rng.usize(..texts.len())]
}

fn print(text: &mut Vec<u8>, what: std::fmt::Arguments<'_>) {
    // Into memory, so it cannot fail.
    let _ = text.write_fmt(what);
}

/// Hundredths, as JSON writes a number.
struct Decimal(i32);

impl std::fmt::Display for Decimal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (sign, amount) = (if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs());
        write!(f, "{sign}{}.{:02}", amount / 100, amount % 100)
    }
}

/// Seconds of March 2026.
const MONTH_S: u32 = 31 * 86_400;

/// So many seconds after March 2026 began, as RFC 3339 writes it; it begins again when it is over.
struct Instant(u32);

impl std::fmt::Display for Instant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (day, second) = (1 + self.0 % MONTH_S / 86_400, self.0 % 86_400);
        write!(f, "2026-03-{day:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
    }
}
