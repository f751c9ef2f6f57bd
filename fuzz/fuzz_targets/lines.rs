//! Any split gives the lines of the whole; a script line holds its JSON unharmed and cannot end its element.
#![no_main]

mod split;

use libfuzzer_sys::fuzz_target;
use pushlab_wire::lines::{LineDecoder, LineTooLong, SCRIPT_END, SCRIPT_START, escape_script, unwrap_script};
use pushlab_wire::native::json_string;
use split::{pieces, take_cuts};

fn decode(pieces: Vec<&[u8]>, max_line_bytes: usize) -> (Vec<Vec<u8>>, Option<LineTooLong>) {
    let mut decoder = LineDecoder::new(max_line_bytes);
    let mut lines = Vec::new();
    for piece in pieces {
        if let Err(error) = decoder.decode(piece, |line| lines.push(line.to_vec())) {
            return (lines, Some(error));
        }
    }
    (lines, None)
}

fuzz_target!(|data: &[u8]| {
    let Some((cuts, input)) = take_cuts(data) else { return };
    let mut expected: Vec<_> = input.split(|&b| b == b'\n').map(|l| l.strip_suffix(b"\r").unwrap_or(l)).collect();
    expected.pop();
    expected.retain(|line| !line.is_empty());
    let (lines, error) = decode(pieces(input, &cuts), usize::MAX / 2);
    assert_eq!(lines, expected);
    assert_eq!(error, None);
    assert_eq!(decode(pieces(input, &cuts), 20), decode(vec![input], 20));

    let json = json_string(&String::from_utf8_lossy(input));
    let escaped = escape_script(json.as_bytes());
    assert!(!escaped.contains(&b'<'));
    let line = [SCRIPT_START, &escaped, SCRIPT_END].concat();
    let inner = unwrap_script(&line).expect("a line that we wrapped");
    assert_eq!(serde_json::from_slice::<String>(&inner).ok(), serde_json::from_str(&json).ok());
});
