//! What a process and whoever started it say to each other: a JSON text a line.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, BufRead as _, BufReader, Read, Write};

/// Reads lines in a thread of its own and gives each to `take`, and nothing when the input ends, until it says that nobody
/// listens any more. A line that cannot be read is a text that says why.
///
/// # Errors
/// When there is no thread left.
pub fn hear<T: DeserializeOwned>(
    input: impl Read + Send + 'static,
    mut take: impl FnMut(Option<Result<T, String>>) -> bool + Send + 'static,
) -> io::Result<()> {
    std::thread::Builder::new().name("orders".into()).spawn(move || {
        for line in BufReader::new(input).lines() {
            let line = line.map_err(|error| error.to_string());
            let read = line.and_then(|line| serde_json::from_str(&line).map_err(|error| error.to_string()));
            if !take(Some(read)) {
                return;
            }
        }
        take(None);
    })?;
    Ok(())
}

/// Writes a line at once.
///
/// # Errors
/// When it cannot be written.
pub fn say(output: &mut impl Write, what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    output.write_all(&line)?;
    output.flush()
}
