//! Both ends agree for any key, on no other key, and nothing that a peer sends in a handshake panics.
#![no_main]

mod tokens;

use libfuzzer_sys::fuzz_target;
use pushlab_wire::fields::trimmed;
use pushlab_wire::http::{Headers, parse_request, parse_response};
use pushlab_wire::websocket::handshake::{accept, check_response, encode_request, encode_response};

const WORDS: &[&str] = &[
    "GET /ws HTTP/1.1\r\n",
    "HTTP/1.1 101 Switching Protocols\r\n",
    "Upgrade: ",
    "websocket",
    "Connection: ",
    "Sec-WebSocket-Version: ",
    "13",
    "Sec-WebSocket-Key: ",
    "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Accept: ",
    "\r\n",
    ", ",
];

fuzz_target!(|data: &[u8]| {
    let Some((key, data)) = data.split_first_chunk::<16>() else { return };
    let key = *key;
    let input = &*tokens::expand(data, WORDS);

    let mut request = Vec::new();
    encode_request(&mut request, "localhost", "/ws?channel=a", key);
    let mut headers = Headers::default();
    let (head, size) = parse_request(&request, &mut headers).expect("our head is HTTP").expect("it is whole");
    assert_eq!(size, request.len());
    let value = accept(&head).expect("our request is a handshake");

    let mut response = Vec::new();
    encode_response(&mut response, &value);
    let mut headers = Headers::default();
    let (head, _) = parse_response(&response, &mut headers).expect("our head is HTTP").expect("it is whole");
    assert_eq!(check_response(&head, key), Ok(()));
    let mut other = key;
    other[usize::from(key[0] % 16)] ^= 1;
    assert!(check_response(&head, other).is_err());

    let mut headers = Headers::default();
    if let Ok(Some((head, _))) = parse_request(input, &mut headers)
        && let Ok(value) = accept(&head)
    {
        assert_eq!(head.method, "GET");
        assert_eq!(value.len(), 28);
    }
    let mut headers = Headers::default();
    if let Ok(Some((head, _))) = parse_response(input, &mut headers)
        && check_response(&head, key).is_ok()
    {
        assert_eq!(head.status, 101);
        assert_eq!(head.header("sec-websocket-accept").map(trimmed), Some(value.as_str()));
    }
});
