//! HTTP streaming: one JSON text a line (NDJSON), bare or wrapped in a script for an iframe (forever frame).

use std::borrow::Cow;

/// Reads lines in pieces; empty lines are passed over.
#[derive(Debug)]
pub struct LineDecoder {
    max_line_bytes: usize,
    partial: Vec<u8>,
}

/// A line beyond the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a line of more than {max} bytes")]
pub struct LineTooLong {
    /// The limit.
    pub max: usize,
}

impl LineDecoder {
    /// A decoder at the start of a stream.
    pub fn new(max_line_bytes: usize) -> Self {
        Self { max_line_bytes, partial: Vec::new() }
    }

    /// Reads a piece and calls `sink` for every line that it completes, without its line feed.
    pub fn decode(&mut self, mut input: &[u8], mut sink: impl FnMut(&[u8])) -> Result<(), LineTooLong> {
        while let Some(end) = memchr::memchr(b'\n', input) {
            self.check_size(end)?;
            if self.partial.is_empty() {
                emit(&input[..end], &mut sink);
            } else {
                self.partial.extend_from_slice(&input[..end]);
                emit(&self.partial, &mut sink);
                self.partial.clear();
            }
            input = &input[end + 1..];
        }
        self.check_size(input.len())?;
        self.partial.extend_from_slice(input);
        Ok(())
    }

    fn check_size(&self, more: usize) -> Result<(), LineTooLong> {
        if self.partial.len() + more > self.max_line_bytes {
            return Err(LineTooLong { max: self.max_line_bytes });
        }
        Ok(())
    }
}

fn emit(line: &[u8], sink: &mut impl FnMut(&[u8])) {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if !line.is_empty() {
        sink(line);
    }
}

/// What a forever frame's line begins with: it calls `pushlab` in the page around the iframe, with JSON as a string. (As
/// a literal, a key `__proto__` would set the prototype instead of a value.)
pub const SCRIPT_START: &[u8] = b"<script>parent.pushlab('";
/// What a forever frame's line ends with, before its line feed.
pub const SCRIPT_END: &[u8] = b"')</script>";

/// JSON made safe inside a single-quoted string inside a script element.
pub fn escape_script(json: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = memchr::memchr3(b'<', b'\\', b'\'', json) else { return Cow::Borrowed(json) };
    let mut out = Vec::with_capacity(json.len() + 16);
    out.extend_from_slice(&json[..first]);
    for &byte in &json[first..] {
        match byte {
            b'<' => out.extend_from_slice(b"\\x3c"),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\'' => out.extend_from_slice(b"\\'"),
            byte => out.push(byte),
        }
    }
    Cow::Owned(out)
}

/// The JSON inside a forever frame's line; `None` for its first lines of HTML.
pub fn unwrap_script(line: &[u8]) -> Option<Cow<'_, [u8]>> {
    let escaped = line.strip_prefix(SCRIPT_START)?.strip_suffix(SCRIPT_END)?;
    if memchr::memchr(b'\\', escaped).is_none() {
        return Some(Cow::Borrowed(escaped));
    }
    let mut out = Vec::with_capacity(escaped.len());
    let mut rest = escaped;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        let (byte, size) = match &rest[at + 1..] {
            [b'x', b'3', b'c', ..] => (b'<', 4),
            [byte @ (b'\\' | b'\''), ..] => (*byte, 2),
            _ => return None,
        };
        out.push(byte);
        rest = &rest[at + size..];
    }
    out.extend_from_slice(rest);
    Some(Cow::Owned(out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(input: &[u8], cuts: &[usize]) -> Result<Vec<Vec<u8>>, LineTooLong> {
        let mut decoder = LineDecoder::new(200);
        let mut lines = Vec::new();
        let (mut start, mut cut) = (0, 0);
        while start < input.len() {
            let size = cuts.get(cut).or(cuts.last()).copied().unwrap_or(input.len()).max(1);
            cut += 1;
            let end = (start + size).min(input.len());
            decoder.decode(&input[start..end], |line| lines.push(line.to_vec()))?;
            start = end;
        }
        Ok(lines)
    }

    proptest! {
        #[test]
        fn lines_come_back_however_they_are_cut(lines in prop::collection::vec("[^\r\n]{1,40}", 0..9), cuts in prop::collection::vec(1usize..30, 1..6)) {
            let wire = lines.iter().flat_map(|l| [l.as_str(), "\n\n"]).collect::<String>();
            let expected: Vec<_> = lines.iter().map(|l| l.as_bytes().to_vec()).collect();
            prop_assert_eq!(decode(wire.as_bytes(), &cuts), Ok(expected));
        }

        #[test]
        fn a_script_holds_any_json_text(text: String) {
            let json = serde_json::to_string(&text).unwrap();
            let escaped = escape_script(json.as_bytes());
            prop_assert!(!escaped.contains(&b'<'));
            let line = [SCRIPT_START, &escaped, SCRIPT_END].concat();
            let inner = unwrap_script(&line).unwrap();
            prop_assert_eq!(serde_json::from_slice::<String>(&inner).unwrap(), text);
        }
    }

    #[test]
    fn an_endless_line_is_an_error() {
        assert_eq!(decode(&[b'x'; 500], &[3]), Err(LineTooLong { max: 200 }));
        assert_eq!(unwrap_script(b"<!doctype html>"), None);
    }
}
