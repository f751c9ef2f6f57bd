//! Event streams (WHATWG HTML, section 9.2): what `EventSource` reads.

use std::borrow::Cow;

/// One event, borrowed from the decoder until the next.
#[derive(Debug, PartialEq, Eq)]
pub struct StreamEvent<'a> {
    /// The last `id` seen so far, this event's or an earlier one's.
    pub id: &'a str,
    /// Its `event` field; `message` when it had none.
    pub name: &'a str,
    /// Its `data` lines joined with line feeds.
    pub data: &'a str,
}

/// A stream that breaks a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// A line or an event beyond the limit.
    #[error("an event of more than {max} bytes")]
    TooLarge {
        /// The limit.
        max: usize,
    },
}

/// Reads an event stream in pieces.
#[derive(Debug)]
pub struct EventStreamDecoder {
    max_event_bytes: usize,
    partial: Vec<u8>,
    data: String,
    name: String,
    id: String,
    /// The id when the last event ended: an id inside an event that is cut off does not count.
    last_id: String,
    has_data: bool,
    retry_ms: Option<u32>,
    /// Whether lines of an event have been read that has not ended.
    is_in_event: bool,
    is_past_bom: bool,
    ended_in_cr: bool,
}

impl EventStreamDecoder {
    /// A decoder at the start of a stream. An event (or line) of more than `max_event_bytes` is an error.
    pub fn new(max_event_bytes: usize) -> Self {
        Self {
            max_event_bytes,
            partial: Vec::new(),
            data: String::new(),
            name: String::new(),
            id: String::new(),
            last_id: String::new(),
            has_data: false,
            retry_ms: None,
            is_in_event: false,
            is_past_bom: false,
            ended_in_cr: false,
        }
    }

    /// The id of the last event that ended, to resume from.
    pub fn last_id(&self) -> &str {
        &self.last_id
    }

    /// The last reconnection time that the stream has named, ms.
    pub fn retry_ms(&self) -> Option<u32> {
        self.retry_ms
    }

    /// Reads a piece and calls `sink` for every event that it completes.
    pub fn decode(&mut self, mut input: &[u8], mut sink: impl FnMut(StreamEvent<'_>)) -> Result<(), StreamError> {
        if self.ended_in_cr && !input.is_empty() {
            self.ended_in_cr = false;
            if input[0] == b'\n' {
                input = &input[1..];
            }
        }
        loop {
            input = self.plain_events(input, &mut sink);
            let Some(end) = memchr::memchr2(b'\n', b'\r', input) else { break };
            let mut next = end + 1;
            if input[end] == b'\r' {
                match input.get(next) {
                    Some(b'\n') => next += 1,
                    Some(_) => {}
                    None => self.ended_in_cr = true,
                }
            }
            self.check_size(self.partial.len() + end)?;
            if self.partial.is_empty() {
                self.line(&input[..end], &mut sink)?;
            } else {
                let mut line = std::mem::take(&mut self.partial);
                line.extend_from_slice(&input[..end]);
                self.line(&line, &mut sink)?;
                line.clear();
                self.partial = line;
            }
            input = &input[next..];
        }
        self.check_size(self.partial.len() + input.len())?;
        self.partial.extend_from_slice(input);
        Ok(())
    }

    /// Passes on the whole events at the front of a piece that [`plain_event`] can read, without copying them, and
    /// returns what is behind them.
    fn plain_events<'i>(&mut self, mut input: &'i [u8], sink: &mut impl FnMut(StreamEvent<'_>)) -> &'i [u8] {
        if self.is_in_event || !self.partial.is_empty() || !self.is_past_bom {
            return input;
        }
        let mut latest = None;
        while let Some((id, data, size)) = plain_event(input).filter(|&(_, _, size)| size <= self.max_event_bytes) {
            latest = id.or(latest);
            sink(StreamEvent { id: latest.unwrap_or(&self.last_id), name: "message", data });
            input = &input[size..];
        }
        if let Some(id) = latest {
            id.clone_into(&mut self.id);
            id.clone_into(&mut self.last_id);
        }
        input
    }

    fn check_size(&self, line: usize) -> Result<(), StreamError> {
        if line + self.data.len() > self.max_event_bytes {
            return Err(StreamError::TooLarge { max: self.max_event_bytes });
        }
        Ok(())
    }

    fn line(&mut self, mut line: &[u8], sink: &mut impl FnMut(StreamEvent<'_>)) -> Result<(), StreamError> {
        if !self.is_past_bom {
            self.is_past_bom = true;
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        self.is_in_event = !line.is_empty();
        if !self.is_in_event {
            self.dispatch(sink);
            return Ok(());
        }
        // The lossy way looks at every byte by itself, and nearly all text is right.
        let text = std::str::from_utf8(line).map_or_else(|_| String::from_utf8_lossy(line), Cow::Borrowed);
        let (field, value) = text.split_once(':').unwrap_or((&text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.data.push_str(value);
                self.has_data = true;
                self.check_size(0)?;
            }
            "event" => value.clone_into(&mut self.name),
            "id" if !value.contains('\0') => value.clone_into(&mut self.id),
            "retry" if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.retry_ms = value.parse().ok().or(self.retry_ms);
            }
            // Comments and unknown fields.
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self, sink: &mut impl FnMut(StreamEvent<'_>)) {
        self.last_id.clone_from(&self.id);
        if self.has_data {
            let name = if self.name.is_empty() { "message" } else { &self.name };
            sink(StreamEvent { id: &self.id, name, data: &self.data });
        }
        self.data.clear();
        self.name.clear();
        self.has_data = false;
    }
}

/// The event at the front of a piece, if all of it is there and it is as most servers write it: an `id` or none, one line
/// of `data`, line feeds alone. Its id, its data and its length in bytes.
fn plain_event(input: &[u8]) -> Option<(Option<&str>, &str, usize)> {
    let (id, rest) = match input.strip_prefix(b"id:") {
        Some(rest) => {
            let (id, rest) = plain_value(rest)?;
            (Some(id), rest)
        }
        None => (None, input),
    };
    let (data, rest) = plain_value(rest.strip_prefix(b"data:")?)?;
    let rest = rest.strip_prefix(b"\n")?;
    if id.is_some_and(|id| id.contains('\0')) {
        return None;
    }
    Some((id, data, input.len() - rest.len()))
}

/// A field's value up to a line feed, and what is behind that.
fn plain_value(input: &[u8]) -> Option<(&str, &[u8])> {
    let end = memchr::memchr2(b'\n', b'\r', input).filter(|&end| input[end] == b'\n')?;
    let value = std::str::from_utf8(&input[..end]).ok()?;
    Some((value.strip_prefix(' ').unwrap_or(value), &input[end + 1..]))
}

/// Appends an event whose data is given in parts of one line each together: `id:`, `data:`.
///
/// The parts must not contain line breaks; JSON text never does.
pub fn encode(out: &mut Vec<u8>, id: &[u8], data: &[&[u8]]) {
    out.extend_from_slice(b"id:");
    out.extend_from_slice(id);
    out.extend_from_slice(b"\ndata:");
    for part in data {
        out.extend_from_slice(part);
    }
    out.extend_from_slice(EVENT_END);
}

/// What an event ends with.
pub const EVENT_END: &[u8] = b"\n\n";

/// Bytes that [`encode`] adds to id and data.
pub const EVENT_OVERHEAD_BYTES: usize = "id:\ndata:\n\n".len();

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Owned = (String, String, String);

    fn decode(input: &[u8], cuts: &[usize]) -> Result<Vec<Owned>, StreamError> {
        let mut decoder = EventStreamDecoder::new(1000);
        let mut events = Vec::new();
        let (mut start, mut cut) = (0, 0);
        while start < input.len() {
            let size = cuts.get(cut).or(cuts.last()).copied().unwrap_or(input.len()).max(1);
            cut += 1;
            let end = (start + size).min(input.len());
            decoder.decode(&input[start..end], |e| events.push((e.id.into(), e.name.into(), e.data.into())))?;
            start = end;
        }
        Ok(events)
    }

    fn event(id: &str, name: &str, data: &str) -> Owned {
        (id.into(), name.into(), data.into())
    }

    /// The examples of WHATWG HTML 9.2.6 that have an outcome.
    #[test]
    fn the_examples_of_the_standard() {
        let stock = "data: YHOO\ndata: +2\ndata: 10\n\n";
        assert_eq!(decode(stock.as_bytes(), &[]), Ok(vec![event("", "message", "YHOO\n+2\n10")]));
        let ids = ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n";
        let expected = [
            event("1", "message", "first event"),
            event("", "message", "second event"),
            event("", "message", " third event"),
        ];
        assert_eq!(decode(ids.as_bytes(), &[]), Ok(expected.to_vec()));
        let blocks = "data\n\ndata\ndata\n\ndata:";
        assert_eq!(decode(blocks.as_bytes(), &[]), Ok(vec![event("", "message", ""), event("", "message", "\n")]));
    }

    #[test]
    fn line_ends_names_and_marks() {
        let text = "\u{feff}event: a\rdata: 1\r\r\nid: 7\r\n\r\ndata: 2\n\n";
        let expected = [event("", "a", "1"), event("7", "message", "2")];
        assert_eq!(decode(text.as_bytes(), &[]), Ok(expected.to_vec()));
        assert_eq!(decode(text.as_bytes(), &[1]), Ok(expected.to_vec()));
    }

    #[test]
    fn an_event_that_is_cut_off_does_not_count_as_seen() {
        let mut decoder = EventStreamDecoder::new(1000);
        decoder.decode(b"id:a.1\n\nid:a.2\ndata:[1", |_| panic!("nothing was complete")).unwrap();
        assert_eq!(decoder.last_id(), "a.1");
    }

    #[test]
    fn a_reconnection_time_is_of_digits_alone() {
        let told = |lines: &str| {
            let mut decoder = EventStreamDecoder::new(1000);
            lines.bytes().for_each(|byte| decoder.decode(&[byte], |_| ()).unwrap());
            decoder.retry_ms()
        };
        assert_eq!([told("retry:618\n\n"), told("retry: 7\nretry:\nretry:-1\nretry:1e3\n\n")], [Some(618), Some(7)]);
        assert_eq!([told("retry:5"), told("retry:99999999999999999999\n"), told("data:5\n\n")], [None; 3]);
    }

    #[test]
    fn an_endless_event_is_an_error() {
        assert_eq!(decode(&[b'x'; 2000], &[7]), Err(StreamError::TooLarge { max: 1000 }));
        assert_eq!(decode("data:xxxxxxxxxx\n".repeat(200).as_bytes(), &[]), Err(StreamError::TooLarge { max: 1000 }));
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(messages in prop::collection::vec(("[a-z0-9.]{1,9}", "[^\r\n\0]{0,40}"), 0..9), cuts in prop::collection::vec(1usize..30, 1..6)) {
            let mut wire = Vec::new();
            for (id, data) in &messages {
                encode(&mut wire, id.as_bytes(), &[b"[", data.as_bytes(), b"]"]);
                wire.extend_from_slice(b": a comment\n\n");
            }
            let expected: Vec<_> = messages.iter().map(|(id, data)| event(id, "message", &format!("[{data}]"))).collect();
            prop_assert_eq!(decode(&wire, &cuts), Ok(expected));
        }

        #[test]
        fn any_bytes_give_the_same_events_however_they_are_cut(input in prop::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b':'), Just(b'd'), any::<u8>()], 0..80), cuts in prop::collection::vec(1usize..9, 1..6)) {
            prop_assert_eq!(decode(&input, &cuts), decode(&input, &[1]));
        }

        /// Byte by byte no event is ever whole, so that each is read line by line.
        #[test]
        fn whole_events_are_those_of_single_lines(parts in prop::collection::vec(part(), 0..40), cuts in prop::collection::vec(1usize..200, 1..4)) {
            let input = parts.concat();
            prop_assert_eq!(decode(&input, &cuts), decode(&input, &[1]));
        }
    }

    /// What event streams are made of, and what breaks them.
    fn part() -> impl Strategy<Value = &'static [u8]> {
        const PARTS: &[u8] =
            b"id:|data:|event:|id|data|\n|\n\n|\r|\r\n| |:|\0|\xff|x|id:7\ndata:[1]\n\n|data: 2\n\n|id: 8\n\n|\xef\xbb\xbf";
        prop::sample::select(PARTS.split(|&byte| byte == b'|').collect::<Vec<_>>())
    }
}
