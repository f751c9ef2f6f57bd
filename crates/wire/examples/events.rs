//! Reads event streams from standard input, each a line of JSON: the list of its pieces. Answers each with a line: the list of
//! its events, `[id, name, data]`. So programs in other languages check the decoder.
#![allow(clippy::disallowed_macros, reason = "a program says what it found")]

use pushlab_wire::event_stream::EventStreamDecoder;
use serde_json::{Value, json};
use std::io::BufRead as _;

const MAX_EVENT_BYTES: usize = 1 << 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for line in std::io::stdin().lock().lines() {
        let pieces: Vec<String> = serde_json::from_str(&line?)?;
        let mut decoder = EventStreamDecoder::new(MAX_EVENT_BYTES);
        let mut events: Vec<Value> = Vec::new();
        for piece in &pieces {
            decoder.decode(piece.as_bytes(), |event| events.push(json!([event.id, event.name, event.data])))?;
        }
        println!("{}", Value::from(events));
    }
    Ok(())
}
