//! What heads of requests carry beyond what HTTP demands, by the kind of request.

use crate::connection::Fields;
use pushlab_wire::websocket::permessage_deflate::OFFER;
use pushlab_workload::plan::RequestHeaders;

/// A field's name, as HTTP/1.1 writes it, and its value.
type Field = (&'static str, &'static str);

/// What a Chromium of 2025 says about itself, on every request of a script.
const BROWSER: Field = (
    "User-Agent",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
);
const HINTS: [Field; 3] = [
    ("sec-ch-ua-platform", "\"Linux\""),
    ("sec-ch-ua", "\"Chromium\";v=\"142\", \"Not_A Brand\";v=\"99\""),
    ("sec-ch-ua-mobile", "?0"),
];
/// A page asks the server that it came from.
const FETCH: [Field; 3] = [("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Mode", "cors"), ("Sec-Fetch-Dest", "empty")];
/// A browser offers `gzip, deflate, br, zstd`. A subject that compresses would be measured as something else, so we say
/// that nothing is to be encoded (RFC 9110, section 12.5.3) …
const ENCODING: Field = ("Accept-Encoding", "identity");
/// … unless that is what is measured. We decode gzip alone.
const GZIP: Field = ("Accept-Encoding", "gzip");
/// What is offered for the messages of WebSockets then.
const EXTENSIONS: Field = ("Sec-WebSocket-Extensions", OFFER);
const LANGUAGE: Field = ("Accept-Language", "en-US,en;q=0.9");
const KEEP_ALIVE: Field = ("Connection", "keep-alive");
/// The connection carries no other request (RFC 9112, section 9.6).
const CLOSE: Field = ("Connection", "close");
const NO_CACHE: Field = ("Cache-Control", "no-cache");
const ANY: Field = ("Accept", "*/*");
/// What our publications are.
const JSON: Field = ("Content-Type", "application/json");

/// The fields of each kind of request; none where HTTP demands none.
#[derive(Debug, Clone)]
pub(super) struct HeadFields {
    /// Of a GET that is answered once: XMLHttpRequest or fetch.
    pub fetch: Fields,
    /// Of a GET that opens an event stream.
    pub event_source: Fields,
    /// Of a POST, but for type and length of its content.
    pub post: Fields,
    /// Of a POST of ours, but for its length.
    pub publication: Fields,
    /// Of a WebSocket's handshake.
    pub websocket: Fields,
}

impl Default for HeadFields {
    fn default() -> Self {
        let [fetch, event_source, post, websocket] = Default::default();
        Self { fetch, event_source, post, publication: Fields::of([JSON]), websocket }
    }
}

impl HeadFields {
    /// For requests to an origin, which the page came from too: `http://` or `https://` and the host. Requests that are
    /// answered once are the last of their connection unless it is kept alive.
    pub fn new(headers: RequestHeaders, from: &str, is_compressed: bool, keeps_alive: bool) -> Self {
        let (encoding, extensions) = if is_compressed { (GZIP, &[EXTENSIONS][..]) } else { (ENCODING, &[][..]) };
        if headers == RequestHeaders::Minimal {
            let encoding = is_compressed.then_some(encoding);
            let close = (!keeps_alive).then_some(CLOSE);
            let once = || Fields::of(encoding.into_iter().chain(close));
            let mut publication = Fields::of(close);
            publication.add(JSON.0, JSON.1);
            let event_source = Fields::of(encoding);
            let websocket = Fields::of(extensions.iter().copied());
            return Self { fetch: once(), event_source, post: once(), publication, websocket };
        }
        let page = format!("{from}/");
        let (origin, referrer) = (("Origin", from), ("Referer", page.as_str()));
        let of = |parts: &[&[(&str, &str)]]| Fields::of(parts.concat());
        let once = if keeps_alive { KEEP_ALIVE } else { CLOSE };
        let post = |encoding| of(&[&[once], &HINTS, &[BROWSER, ANY, origin], &FETCH, &[referrer, encoding, LANGUAGE]]);
        // What our server answers to a publication is a few bytes.
        let mut publication = post(ENCODING);
        publication.add(JSON.0, JSON.1);
        let events = ("Accept", "text/event-stream");
        Self {
            // A GET to the page's own origin carries no Origin; what may change something does.
            fetch: of(&[&[once], &HINTS, &[BROWSER, ANY], &FETCH, &[referrer, encoding, LANGUAGE]]),
            event_source: of(&[
                &[KEEP_ALIVE, NO_CACHE],
                &HINTS,
                &[BROWSER, events],
                &FETCH,
                &[referrer, encoding, LANGUAGE],
            ]),
            post: post(encoding),
            publication,
            websocket: of(&[&[("Pragma", "no-cache"), NO_CACHE, BROWSER, origin, encoding, LANGUAGE], extensions]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_wire::http::{Headers, parse_request};

    #[test]
    fn each_kind_of_request_is_a_whole_head_of_a_browsers_size() {
        for is_compressed in [false, true] {
            each_kind(is_compressed);
        }
        let bare = HeadFields::new(RequestHeaders::Minimal, "http://h", true, true);
        for fields in [&bare.fetch, &bare.event_source, &bare.post] {
            assert_eq!(fields.lines(), "Accept-Encoding: gzip\r\n");
        }
        let offer = "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n";
        assert_eq!(bare.websocket.lines(), offer);
        assert_eq!(HeadFields::new(RequestHeaders::Minimal, "http://h", false, true).fetch.lines(), "");
    }

    #[test]
    fn what_is_answered_once_closes_its_connection_unless_that_is_kept_alive() {
        for headers in [RequestHeaders::Minimal, RequestHeaders::Browser] {
            for keeps_alive in [true, false] {
                let kinds = HeadFields::new(headers, "http://h", false, keeps_alive);
                for fields in [&kinds.fetch, &kinds.post, &kinds.publication] {
                    assert_eq!(fields.lines().contains("Connection: close\r\n"), !keeps_alive, "{headers:?}");
                    assert!(fields.lines().matches("Connection: ").count() <= 1, "{headers:?}");
                }
                assert!(!kinds.event_source.lines().contains("close") && !kinds.websocket.lines().contains("close"));
            }
        }
    }

    fn each_kind(is_compressed: bool) {
        let kinds = HeadFields::new(RequestHeaders::Browser, "http://127.0.0.1:8000", is_compressed, true);
        let encoding = if is_compressed { "gzip" } else { "identity" };
        let offer = kinds.websocket.list().get("sec-websocket-extensions").is_some();
        assert_eq!(offer, is_compressed);
        for (kind, fields, accept) in [
            ("fetch", &kinds.fetch, Some("*/*")),
            ("event source", &kinds.event_source, Some("text/event-stream")),
            ("post", &kinds.post, Some("*/*")),
            ("websocket", &kinds.websocket, None),
        ] {
            let request = format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n{}\r\n", fields.lines());
            let mut headers = Headers::default();
            let (head, size) = parse_request(request.as_bytes(), &mut headers).unwrap().unwrap();
            assert_eq!((size, head.header("accept")), (request.len(), accept), "{kind}");
            assert_eq!(head.header("accept-encoding"), Some(encoding), "{kind}");
            assert!(head.header("user-agent").is_some() && (250..800).contains(&size), "{kind}: {size}");
        }
    }
}
