//! What own pages may do and those of other sites may not.

use crate::application::start;
use crate::harness::client::{Client, Frame, Kind, PUSHED};
use crate::harness::http::{Http, Response};
use crate::harness::{Subject, until};
use pushlab_server::Guests;

/// What keeps other sites' pages from loading an answer as something that it is not.
const POLICY: &str = "X-Content-Type-Options: nosniff\r\nCross-Origin-Resource-Policy: same-origin\r\n";

/// A page of another site, or one that leads its own name here, hears nothing on private channels, over no transport.
#[test]
fn same_origin_channels_are_for_own_pages() {
    let ask = |server: &Subject, fields: &str, request: &str, body: &str| {
        let mut http = Http::connect(server.address());
        let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        http.send(&format!("{request} HTTP/1.1\r\n{fields}{length}\r\n{body}"));
        http.response()
    };
    for is_loopback_only in [false, true] {
        let (server, _) = start(1, false, |config| {
            config.same_origin_channels = vec!["own.".to_owned()];
            config.site.is_loopback_only = is_loopback_only;
        });
        server.publisher().publish("own.a", "\"secret\"").unwrap();
        let start = server.stats().cursor.split_once('.').unwrap().0.to_owned() + ".0";
        let targets = ["GET /poll?", "GET /poll?wait=1&", "POST /publish?channel=a&"];
        let host = format!("Host: {}\r\n", server.address());
        let mut foreign = vec![
            format!("{host}Origin: https://evil.example\r\n"),
            format!("{host}Origin: null\r\n"),
            format!("{host}Sec-Fetch-Site: cross-site\r\n"),
        ];
        if is_loopback_only {
            foreign.push("Host: evil.example\r\n".to_owned());
            foreign.push("Host: evil.example\r\nOrigin: http://evil.example\r\n".to_owned());
        }
        for fields in &foreign {
            for target in targets {
                let body = if target.starts_with("POST") { "1" } else { "" };
                let request = format!("{target}channel=b&channel=own.a&after={start}");
                let refused = ask(&server, fields, &request, body);
                assert_eq!(
                    (refused.status, refused.body.contains("\"forbidden\"")),
                    (403, true),
                    "{request} {fields} {}",
                    refused.body
                );
                assert!(!refused.body.contains("secret") && refused.body.contains("own.a"), "{}", refused.body);
            }
            // What lasts goes on with the channel that is everybody's, and so do others.
            for kind in PUSHED {
                let query = "channel=b&channel=own.a";
                let mut client = Client::resume_with(server.address(), kind, query, &start, fields);
                assert_eq!(client.next(), Some(Frame::Error("forbidden".into())), "{kind:?} {fields}");
                server.publisher().publish("b", "1").unwrap();
                assert_eq!(client.message().0, "b", "{kind:?} {fields}");
            }
            let open = ask(&server, fields, &format!("GET /poll?channel=b&after={start}"), "");
            assert_eq!(open.status, 200, "{fields}");
            let mut socket = Client::resume_with(server.address(), Kind::WebSocket, "channel=b", "", fields);
            socket.send("[\"sub\",\"own.a\"]");
            let told = std::iter::from_fn(|| socket.next()).find(|frame| !matches!(frame, Frame::Cursor(_)));
            assert_eq!(told, Some(Frame::Error("forbidden".into())), "{fields}");
        }
        let own = format!("{host}Origin: http://{}\r\nSec-Fetch-Site: same-origin\r\n", server.address());
        for fields in [&own, &host] {
            let heard = ask(&server, fields, &format!("GET /poll?channel=own.a&after={start}"), "");
            assert!(heard.body.contains("secret"), "{}", heard.body);
            let mut socket = Client::resume_with(server.address(), Kind::WebSocket, "channel=b", "", fields);
            until("it has begun", || matches!(socket.next(), Some(Frame::Cursor(_))));
            socket.send("[\"sub\",\"own.a\"]");
            until("it is subscribed", || matches!(socket.next(), Some(Frame::Cursor(_))));
            server.publisher().publish("own.a", "1").unwrap();
            assert_eq!(socket.message().0, "own.a");
        }
    }
}

/// The transports are for programs, for the server's own pages and for those that are named: whoever is another site's page,
/// or leads a name of its own here, gets nothing, changes nothing, and can read no answer.
#[test]
fn transports_are_for_own_pages_and_guests() {
    const GUEST: &str = "https://app.example";
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let requests = [
        ("GET /sse?channel=a", "", 200),
        ("GET /stream?channel=a", "", 200),
        ("GET /stream?channel=a&format=script", "", 200),
        ("GET /poll?channel=a", "", 200),
        ("GET /poll?channel=a&newest=1", "", 200),
        ("POST /publish?channel=a", "Content-Length: 1\r\n", 200),
        ("POST /echo", "Content-Length: 1\r\n", 200),
        ("GET /ws?channel=a", upgrade, 101),
        ("GET /ws?channel=a&mode=poll", upgrade, 101),
        ("GET /stats", "", 200),
        ("GET /metrics", "", 200),
        ("OPTIONS /publish", "", 204),
    ];
    for is_loopback_only in [false, true] {
        let server = Subject::start(1, |config| {
            config.site.is_loopback_only = is_loopback_only;
            config.site.guests = Guests::These(vec![GUEST.parse().unwrap()]);
        });
        let host = format!("Host: {}\r\n", server.address());
        let ask = |fields: &str, (request, more, _): (&str, &str, u16)| {
            let mut http = Http::connect(server.address());
            let body = if more.contains("Content-Length") { "1" } else { "" };
            http.send(&format!("{request} HTTP/1.1\r\n{fields}{more}\r\n{body}"));
            let Response { status, head, .. } = http.head_of_response();
            assert_eq!(head.contains(POLICY), !matches!(status, 101 | 204), "{fields}{request}: {head}");
            (status, head)
        };
        let rebound = "Host: evil.example\r\nOrigin: http://evil.example\r\n".to_owned();
        let may = [
            (host.clone(), None),
            (format!("{host}Origin: http://{}\r\nSec-Fetch-Site: same-origin\r\n", server.address()), None),
            (format!("{host}Origin: {GUEST}\r\nSec-Fetch-Site: cross-site\r\n"), Some(GUEST)),
        ];
        let may_not = [
            format!("{host}Origin: https://evil.example\r\n"),
            format!("{host}Origin: null\r\n"),
            format!("{host}Sec-Fetch-Site: cross-site\r\n"),
            format!("{host}Origin: {GUEST}\r\nOrigin: https://evil.example\r\n"),
        ];
        let named = is_loopback_only.then(|| ["Host: evil.example\r\n".to_owned(), rebound]);
        for fields in may_not.iter().chain(named.iter().flatten()) {
            for request in requests {
                let (status, head) = ask(fields, request);
                assert_eq!((status, head.contains("Access-Control")), (403, false), "{fields}{request:?}: {head}");
            }
            assert_eq!(ask(fields, ("GET /healthz", "", 200)).0, 200, "{fields}");
        }
        assert_eq!(server.stats().received, 0, "nothing was published");
        for (fields, reader) in &may {
            for request in requests {
                let (status, head) = ask(fields, request);
                assert_eq!(status, request.2, "{fields}{request:?}: {head}");
                let allowed = reader.map(|page| {
                    format!("Access-Control-Allow-Origin: {page}\r\nAccess-Control-Allow-Credentials: true\r\n")
                });
                // A handshake needs no leave.
                let is_told = allowed.as_ref().is_some_and(|_| request.2 != 101);
                assert_eq!(head.contains("Access-Control-Allow-Origin"), is_told, "{fields}{request:?}: {head}");
                assert!(!is_told || head.contains(&allowed.unwrap()), "{fields}{request:?}: {head}");
            }
        }
        assert_eq!(server.stats().received, may.len() as u64);
    }
}

/// Behind a proxy that rewrites `Host` the named origins are the own pages'; their TLS is told to the application.
#[test]
fn pages_behind_a_proxy_are_known_by_the_named_origins() {
    let (server, pages) = start(1, false, |config| config.site.origins = vec!["https://push.example".parse().unwrap()]);
    let mut http = Http::connect(server.address());
    let mut ask = |method: &str, fields: &str| {
        http.send(&format!("{method} /request HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n{fields}Content-Length: 0\r\n\r\n"));
        http.response()
    };
    for (method, fields) in [("POST", "Origin: https://push.example\r\n"), ("POST", ""), ("GET", "")] {
        let answer = ask(method, fields);
        assert_eq!((answer.status, answer.body.contains("is_tls: true")), (200, true), "{}", answer.body);
    }
    let begun = pages.begun();
    for foreign in ["http://push.example", "http://127.0.0.1:8000", "https://evil.example"] {
        let refused = ask("POST", &format!("Origin: {foreign}\r\n"));
        assert_eq!((refused.status, refused.body.contains("--public-url")), (403, true), "{}", refused.body);
    }
    // Forwarded by somebody: by whom nobody knows.
    let forged = "Origin: https://evil.example\r\nX-Forwarded-Host: evil.example\r\nForwarded: host=evil.example\r\n";
    assert_eq!(ask("POST", forged).status, 403);
    assert_eq!(pages.begun(), begun, "the application hears of none");
}
