//! What heads of requests carry beyond what HTTP demands, by the kind of request.

use pushlab_workload::plan::RequestHeaders;

/// What a Chromium of 2025 says about itself, on every request of a script.
const BROWSER: &str = "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) \
     Chrome/142.0.0.0 Safari/537.36\r\n";
const HINTS: &str = "sec-ch-ua-platform: \"Linux\"\r\nsec-ch-ua: \"Chromium\";v=\"142\", \"Not_A Brand\";v=\"99\"\r\n\
     sec-ch-ua-mobile: ?0\r\n";
/// A page asks the server that it came from.
const FETCH: &str = "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors\r\nSec-Fetch-Dest: empty\r\n";
/// A browser offers `gzip, deflate, br, zstd`. We decode none of them, and a subject that compresses would be
/// measured as something else, so we say that nothing is to be encoded (RFC 9110, section 12.5.3).
const ENCODING: &str = "Accept-Encoding: identity\r\n";
const LANGUAGE: &str = "Accept-Language: en-US,en;q=0.9\r\n";

/// Whole header lines, each with its end; empty where HTTP demands nothing.
#[derive(Debug, Clone, Default)]
pub(super) struct HeaderLines {
    /// Of a GET that is answered once: XMLHttpRequest or fetch.
    pub fetch: String,
    /// Of a GET that opens an event stream.
    pub event_source: String,
    /// Of a POST, but for type and length of its content.
    pub post: String,
    /// Of a WebSocket's handshake.
    pub websocket: String,
}

impl HeaderLines {
    /// For requests to an origin, which the page came from too: `http://` or `https://` and the host.
    pub fn new(headers: RequestHeaders, from: &str) -> Self {
        if headers == RequestHeaders::Minimal {
            return Self::default();
        }
        let (origin, referrer) = (format!("Origin: {from}\r\n"), format!("Referer: {from}/\r\n"));
        let keep_alive = "Connection: keep-alive\r\n";
        let no_cache = "Cache-Control: no-cache\r\n";
        let any = "Accept: */*\r\n";
        Self {
            // A GET to the page's own origin carries no Origin; what may change something does.
            fetch: [keep_alive, HINTS, BROWSER, any, FETCH, &referrer, ENCODING, LANGUAGE].concat(),
            event_source: [
                keep_alive,
                no_cache,
                HINTS,
                BROWSER,
                "Accept: text/event-stream\r\n",
                FETCH,
                &referrer,
                ENCODING,
                LANGUAGE,
            ]
            .concat(),
            post: [keep_alive, HINTS, BROWSER, any, &origin, FETCH, &referrer, ENCODING, LANGUAGE].concat(),
            // No permessage-deflate is offered, for the reason that ENCODING gives.
            websocket: ["Pragma: no-cache\r\n", no_cache, BROWSER, &origin, ENCODING, LANGUAGE].concat(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_wire::http::{Headers, parse_request};

    #[test]
    fn each_kind_of_request_is_a_whole_head_of_a_browsers_size() {
        let lines = HeaderLines::new(RequestHeaders::Browser, "http://127.0.0.1:8000");
        for (kind, text, accept) in [
            ("fetch", &lines.fetch, Some("*/*")),
            ("event source", &lines.event_source, Some("text/event-stream")),
            ("post", &lines.post, Some("*/*")),
            ("websocket", &lines.websocket, None),
        ] {
            let request = format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n{text}\r\n");
            let mut headers = Headers::default();
            let (head, size) = parse_request(request.as_bytes(), &mut headers).unwrap().unwrap();
            assert_eq!((size, head.header("accept")), (request.len(), accept), "{kind}");
            assert_eq!(head.header("accept-encoding"), Some("identity"), "{kind}");
            assert!(head.header("user-agent").is_some() && (250..800).contains(&size), "{kind}: {size}");
        }
    }
}
