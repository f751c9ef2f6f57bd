//! Any split gives the events of a plain reading of the standard (WHATWG HTML 9.2.6), and what is encoded is read back.
#![no_main]

mod split;
mod tokens;

use libfuzzer_sys::fuzz_target;
use pushlab_wire::event_stream::{EventStreamDecoder, StreamError, encode};
use split::{pieces, take_cuts};

const WORDS: &[&str] = &["id:", "id", "data:", "data", "event:", "retry:", "\n\n", "\r\n", "\u{feff}", ": "];

/// Id, name and data of an event.
type Event = (String, String, String);

/// Events and the id to resume from.
fn decode(pieces: Vec<&[u8]>, max_event_bytes: usize) -> Result<(Vec<Event>, String), (Vec<Event>, StreamError)> {
    let mut decoder = EventStreamDecoder::new(max_event_bytes);
    let mut events = Vec::new();
    for piece in pieces {
        let step = decoder.decode(piece, |e| events.push((e.id.into(), e.name.into(), e.data.into())));
        if let Err(error) = step {
            return Err((events, error));
        }
    }
    Ok((events, decoder.last_id().into()))
}

/// The standard's algorithm on a whole stream. The id to resume from moves only when a block ends: a client that was
/// cut between an event's id and its end has not seen the event.
fn plain_reading(input: &[u8]) -> (Vec<Event>, String) {
    let text = String::from_utf8_lossy(input.strip_prefix(b"\xef\xbb\xbf").unwrap_or(input)).replace("\r\n", "\n");
    let (mut events, mut last_id) = (Vec::new(), String::new());
    let (mut id, mut name, mut data) = (String::new(), String::new(), None::<String>);
    for line in text.split_inclusive(['\n', '\r']) {
        let Some(line) = line.strip_suffix(['\n', '\r']) else { break };
        if line.is_empty() {
            last_id.clone_from(&id);
            let name = std::mem::take(&mut name);
            if let Some(data) = data.take() {
                events.push((id.clone(), if name.is_empty() { "message".into() } else { name }, data));
            }
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => name = value.into(),
            "data" => data = Some(data.map_or_else(|| value.into(), |before| format!("{before}\n{value}"))),
            "id" if !value.contains('\0') => id = value.into(),
            _ => {}
        }
    }
    (events, last_id)
}

fuzz_target!(|data: &[u8]| {
    let Some((cuts, data)) = take_cuts(data) else { return };
    let input = &*tokens::expand(data, WORDS);
    assert_eq!(decode(pieces(input, &cuts), usize::MAX / 2), Ok(plain_reading(input)));
    assert_eq!(decode(pieces(input, &cuts), 40), decode(vec![input], 40));

    let text = String::from_utf8_lossy(input).replace(['\r', '\n', '\0'], "_");
    let middle = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at);
    let (id, data) = (format!("e.{}", &text[..middle]), format!("[{}]", &text[middle..]));
    let mut encoded = Vec::new();
    encode(&mut encoded, id.as_bytes(), &[data.as_bytes()]);
    encoded.extend_from_slice(b": a comment\n\n");
    let expected = vec![(id.clone(), "message".into(), data)];
    assert_eq!(decode(pieces(&encoded, &cuts), usize::MAX / 2), Ok((expected, id)));
});
