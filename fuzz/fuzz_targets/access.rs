//! Whatever a token says, it is taken only if its signature is the secret's; whatever an access file says, it is read or
//! refused; and a pattern means what it seems to.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pushlab_access::{Access, LiveAccess, Pattern};
use ring::hmac;
use std::sync::LazyLock;

const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";
const NOW_S: u64 = 1_800_000_000;
const RULES: &str = r#"
[token]
[[token.key]]
algorithm = "HS256"
file = "secret"
[[rule]]
who = "identified"
channels = ["a:{sub}", "b:*"]
may = ["subscribe"]
"#;

static LIVE: LazyLock<LiveAccess> = LazyLock::new(|| LiveAccess::new(read(RULES).expect("these rules are right")));

fn read(text: &str) -> Result<Access, pushlab_access::AccessError> {
    Access::read(text, "access.toml", &mut |_| Ok(SECRET.to_vec()))
}

/// The value of a digit of base64url.
fn digit(byte: u8) -> Option<u32> {
    let value = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'-' => 62,
        b'_' => 63,
        _ => return None,
    };
    Some(value.into())
}

/// Whether the secret signed a token; read without the code that is tested.
fn is_signed(token: &str) -> bool {
    let Some((message, signature)) = token.rsplit_once('.') else { return false };
    let mut bits = Vec::new();
    for byte in signature.bytes() {
        let Some(value) = digit(byte) else { return false };
        bits.extend((0..6).rev().map(|bit| value >> bit & 1 == 1));
    }
    let bytes: Vec<u8> =
        bits.chunks_exact(8).map(|byte| byte.iter().fold(0, |all, &bit| all << 1 | u8::from(bit))).collect();
    hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, SECRET), message.as_bytes(), &bytes).is_ok()
}

fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match pattern.split_first() {
        None => name.is_empty(),
        Some((b'*', rest)) => (0..=name.len()).any(|skipped| matches(rest, &name[skipped..])),
        Some((first, rest)) => name.first() == Some(first) && matches(rest, &name[1..]),
    }
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match LIVE.person(text, NOW_S) {
        Ok(person) => assert!(is_signed(text) && person.identity().is_some() && !person.has_expired(NOW_S), "{text}"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    assert!(LIVE.person_by_ticket(text, NOW_S, &mut 0).is_err(), "no ticket was given");
    if let Ok(access) = read(text) {
        assert!(access.anonymous().identity().is_none());
    }
    if let Some((pattern, name)) = text.split_once(' ') {
        let is_small = pattern.len() <= 16 && name.len() <= 24;
        if let Some(pattern) = Pattern::parse(pattern).ok().filter(|_| is_small) {
            let (written, name) = text.split_once(' ').expect("it was just cut");
            assert_eq!(pattern.matches(name), matches(written.as_bytes(), name.as_bytes()), "{text}");
        }
    }
});
