//! A head is read once it is whole, never before, and neither what follows nor how it came in changes it.
#![no_main]

mod tokens;

use libfuzzer_sys::fuzz_target;
use pushlab_wire::http::{Headers, HttpError, decode_path, parse_request, parse_response, split_target};

const WORDS: &[&str] = &[
    "GET /p?a=%41+ HTTP/1.1\r\n",
    "POST / HTTP/1.0\r\n",
    "GET http://h/p HTTP/1.1\r\n",
    "Host: ",
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.0 304\r\n",
    "Content-Length: ",
    "Transfer-Encoding: ",
    "chunked",
    "Connection: ",
    "keep-alive",
    "close",
    "\r\n",
    "\r\n\r\n",
    "X: y\r\n",
];

/// What a head says, with its size; `None` while it is incomplete.
type Head = Result<Option<(String, usize)>, HttpError>;

fn request(input: &[u8]) -> Head {
    let mut headers = Headers::default();
    Ok(parse_request(input, &mut headers)?.map(|(head, size)| (format!("{head:?} {}", head.keeps_alive()), size)))
}

fn response(input: &[u8]) -> Head {
    let mut headers = Headers::default();
    Ok(parse_response(input, &mut headers)?.map(|(head, size)| (format!("{head:?} {}", head.keeps_alive()), size)))
}

fuzz_target!(|data: &[u8]| {
    let Some((&cut, data)) = data.split_first() else { return };
    let input = &*tokens::expand(data, WORDS);
    let cut = usize::from(cut).min(input.len());
    for parse in [request, response] {
        let (whole, prefix) = (parse(input), parse(&input[..cut]));
        match (&whole, &prefix) {
            (Ok(Some((_, size))), Ok(None)) => assert!(cut < *size, "a whole head was not seen"),
            (Ok(Some((_, size))), Ok(Some(_))) => {
                assert!(cut >= *size, "a head was seen before it was whole");
                assert_eq!(whole, prefix);
            }
            (Ok(None), Ok(None)) | (Err(_), Ok(None)) => {}
            (_, Ok(Some(_))) => panic!("a whole head is no longer one with more behind it: {whole:?}"),
            (_, Err(_)) => assert_eq!(whole, prefix, "a head that was refused became good"),
        }
    }

    let text = String::from_utf8_lossy(input);
    let escape = |text: &str| text.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
    if let Some(path) = decode_path(&text) {
        assert_eq!(decode_path(&escape(&path)).as_deref(), Some(&*path));
    }
    for (name, value) in split_target(&text).1 {
        let target = format!("/p?{}={}", escape(&name), escape(&value));
        let (path, parameters) = split_target(&target);
        assert_eq!(path, "/p");
        assert_eq!(parameters.collect::<Vec<_>>(), [(name, value)]);
    }
});
