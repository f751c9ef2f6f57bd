//! Inputs made of a grammar's words, which a fuzzer would need long to spell out.

/// Bytes from 0x80 on stand for the words of the table, as far as it goes; all others stand for themselves.
pub fn expand(data: &[u8], words: &[&str]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len() * 4);
    for &byte in data {
        match byte.checked_sub(0x80).and_then(|at| words.get(usize::from(at))) {
            Some(word) => out.extend_from_slice(word.as_bytes()),
            None => out.push(byte),
        }
    }
    out
}
