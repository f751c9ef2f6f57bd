//! Rust source with everything blanked that is not code, line numbers kept.

use std::ops::Range;

/// Comments, strings and character literals become spaces.
pub fn code_only(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        match not_code(bytes, at) {
            Some(end) => {
                blank(&mut code, at..end);
                at = end;
            }
            None => at += 1,
        }
    }
    String::from_utf8_lossy(&code).into_owned()
}

/// Items under `#[cfg(test)]` become spaces; takes what [`code_only`] returns.
pub fn without_tests(code: &str) -> String {
    let mut bytes = code.as_bytes().to_vec();
    for marker in ["#[cfg(test)]", "#[cfg(all(test"] {
        for (start, _) in code.match_indices(marker) {
            if let Some(body) = body_after(code, start) {
                blank(&mut bytes, start..body.end);
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The `{…}` of the item that starts at `start`; `None` if a `;` outside brackets ends it first.
pub fn body_after(code: &str, start: usize) -> Option<Range<usize>> {
    let bytes = code.as_bytes();
    let mut depth = 0_usize;
    let mut at = start;
    loop {
        match bytes.get(at)? {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            b';' if depth == 0 => return None,
            b'{' if depth == 0 => break,
            _ => {}
        }
        at += 1;
    }
    let open = at;
    let mut braces = 0_usize;
    for (offset, byte) in bytes[open..].iter().enumerate() {
        match byte {
            b'{' => braces += 1,
            b'}' if braces == 1 => return Some(open..open + offset + 1),
            b'}' => braces -= 1,
            _ => {}
        }
    }
    None
}

/// Offsets at which `word` stands alone, not inside a longer identifier.
pub fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let part = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let bytes = text.as_bytes();
    text.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let before = at.checked_sub(1).and_then(|i| bytes.get(i));
        let opens_in_word = part(word.as_bytes().first());
        let ends_in_word = part(word.as_bytes().last());
        !(opens_in_word && part(before) || ends_in_word && part(bytes.get(at + word.len())))
    })
}

/// Line number, from 1, of an offset.
pub fn line_of(text: &str, at: usize) -> usize {
    1 + text.as_bytes()[..at].iter().filter(|&&b| b == b'\n').count()
}

fn blank(code: &mut [u8], range: Range<usize>) {
    for byte in &mut code[range] {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
}

/// Where the comment, string or character literal that starts at `at` ends.
fn not_code(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    let in_word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    let length = match rest {
        [b'/', b'/', ..] => rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len()),
        [b'/', b'*', ..] => block_comment(rest),
        [b'"', ..] => quoted(rest, b'"'),
        [b'r', b'"' | b'#', ..] if !in_word => raw_string(rest)?,
        [b'b' | b'c', b'r', b'"' | b'#', ..] if !in_word => 1 + raw_string(&rest[1..])?,
        [b'\'', b'\\', ..] => quoted(rest, b'\''),
        [b'\'', first, ..] => {
            let width = match first {
                0xf0.. => 4,
                0xe0.. => 3,
                0xc0.. => 2,
                _ => 1,
            };
            (rest.get(1 + width) == Some(&b'\'')).then_some(2 + width)?
        }
        _ => return None,
    };
    Some(at + length)
}

fn block_comment(rest: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at + 1 < rest.len() {
        match &rest[at..at + 2] {
            b"/*" => depth += 1,
            b"*/" if depth == 1 => return at + 2,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
    }
    rest.len()
}

fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

fn raw_string(rest: &[u8]) -> Option<usize> {
    let hashes = rest[1..].iter().take_while(|&&b| b == b'#').count();
    (rest.get(1 + hashes) == Some(&b'"')).then_some(())?;
    let mut end = vec![b'#'; hashes + 1];
    end[0] = b'"';
    let body = 2 + hashes;
    let length = rest[body..].windows(end.len()).position(|w| w == end);
    Some(length.map_or(rest.len(), |length| body + length + end.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_what_is_not_code_and_keeps_lines() {
        let text = "a(); // Bad\n/* Bad /* Bad */ Bad */ b(\"Bad \\\" Bad\", r#\"Bad\" Bad\"#, 'B', '\\'');\nfn c<'a>() { Good }";
        let code = code_only(text);
        assert!(!code.contains("Bad") && !code.contains('B'), "{code}");
        assert!(code.contains("Good") && code.contains("<'a>"), "{code}");
        assert_eq!(code.lines().count(), 3);
    }

    #[test]
    fn drops_test_modules_only() {
        let code = "fn a() { One }\n#[cfg(test)]\nmod tests { fn b(x: [u8; 2]) { Two } }\nfn c() { Three }";
        let left = without_tests(code);
        assert!(left.contains("One") && !left.contains("Two") && left.contains("Three"));
    }

    #[test]
    fn words_stand_alone() {
        let found: Vec<usize> = words("lib a_lib lib::x liberal", "lib").collect();
        assert_eq!(found, [0, 10]);
    }
}
