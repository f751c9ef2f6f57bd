//! Who may do what by an access file: over every transport, and for back ends.

use crate::harness::client::{Client, Frame, Kind, PUSHED};
use crate::harness::http::{Http, Response};
use crate::harness::http2::Http2;
use crate::harness::{Dial, Subject, until};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use pushlab_server::Guests;
use pushlab_server::access::{Access, LiveAccess};
use ring::hmac;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

pub const SECRET: &str = "0123456789abcdef0123456789abcdef";
pub const KEY: &str = "the-key-of-the-back-end-0123456789";
pub const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

pub fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

pub fn sign(secret: &str, claims: &Value) -> String {
    sign_with(json!({ "alg": "HS256" }), secret, claims)
}

/// A token with this head.
pub fn sign_with(head: Value, secret: &str, claims: &Value) -> String {
    let text = |part: &Value| BASE64_URL_SAFE_NO_PAD.encode(part.to_string());
    let message = format!("{}.{}", text(&head), text(claims));
    let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), message.as_bytes());
    format!("{message}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
}

/// A token of somebody, good for so many seconds.
pub fn token(sub: &str, good_for_s: u64) -> String {
    sign(SECRET, &json!({ "aud": "push", "sub": sub, "exp": now_s() + good_for_s }))
}

pub fn access(rules: &str) -> Access {
    let text = format!(
        "{rules}\n[token]\naudience = \"push\"\nleeway_s = 0\nwarning_s = 2\ncookie = \"push-token\"\n[[token.key]]\n\
         algorithm = \"HS256\"\nfile = \"secret\"\n[back_end]\nkey_file = \"key\"\n"
    );
    let contents = |file: &str| if file == "secret" { SECRET } else { KEY }.as_bytes().to_vec();
    Access::read(&text, "access.toml", &mut |file| Ok(contents(file))).unwrap()
}

/// Ada may do everything in channels of hers, others nothing.
pub const RULES: &str = "[[rule]]\nwho = \"identified\"\nclaims = { sub = \"ada\" }\nchannels = [\"ada:*\"]\n\
                     may = [\"subscribe\", \"publish\", \"history\"]\n\
                     [[rule]]\nwho = \"identified\"\nclaims = { sub = \"bob\" }\nchannels = [\"bob:*\"]\n\
                     may = [\"subscribe\", \"publish\", \"history\"]\n";

pub fn start(rules: &str) -> (Subject, Arc<LiveAccess>) {
    start_for(Guests::default(), rules)
}

/// The same with pages of these origins as guests.
pub fn start_for(guests: Guests, rules: &str) -> (Subject, Arc<LiveAccess>) {
    let live = Arc::new(LiveAccess::new(access(rules)));
    let for_server = live.clone();
    let server = Subject::start(2, |config| {
        config.access = Some(for_server);
        config.site.guests = guests;
    });
    (server, live)
}

pub fn ask(server: &Subject, request: &str, fields: &str, body: &str) -> Response {
    let mut http = Http::connect(server.address());
    let length = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    let length = if body.is_empty() { String::new() } else { length };
    http.send(&format!("{request} HTTP/1.1\r\nHost: {}\r\n{fields}{length}\r\n{body}", server.address()));
    if request.contains("/ws?") || request.contains("/sse?") || request.contains("/stream?") {
        return http.head_or_refusal();
    }
    http.response()
}

pub fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

/// Every transport and call of the back end, by every kind of token, from every kind of page: each is answered with its
/// code, and what is published reaches nobody who may not see it.
#[test]
fn everybody_gets_what_the_rules_allow() {
    let (server, _) = start(RULES);
    let requests = [
        ("GET /ws?channel=ada:a", UPGRADE, "", 101),
        ("GET /ws?channel=ada:a&mode=poll", UPGRADE, "", 101),
        ("GET /sse?channel=ada:a", "", "", 200),
        ("GET /stream?channel=ada:a", "", "", 200),
        ("GET /stream?channel=ada:a&format=script", "", "", 200),
        ("GET /poll?channel=ada:a", "", "", 200),
        ("GET /poll?channel=ada:a&newest=1", "", "", 200),
        ("POST /publish?channel=ada:a", "", "1", 200),
        ("GET /api/history?channel=ada:a", "", "", 200),
    ];
    let of_back_end = [
        ("POST /api/publish", "{\"channel\":\"ada:a\",\"data\":1}", 200),
        ("POST /api/disconnect", "{\"identity\":\"nobody\"}", 204),
        ("GET /stats", "", 200),
        ("GET /metrics", "", 200),
    ];
    let ada = |changes: Value| {
        let mut claims = json!({ "aud": "push", "sub": "ada", "exp": now_s() + 600 });
        changes.as_object().unwrap().iter().for_each(|(name, value)| claims[name] = value.clone());
        claims
    };
    let tokens = [
        ("none", String::new(), 401, "unauthorized"),
        ("wrong signature", bearer(&sign(&"x".repeat(32), &ada(json!({})))), 401, "unauthorized"),
        ("wrong audience", bearer(&sign(SECRET, &ada(json!({ "aud": "pull" })))), 401, "unauthorized"),
        ("expired", bearer(&sign(SECRET, &ada(json!({ "exp": now_s() - 1 })))), 401, "token-expired"),
        ("not yet valid", bearer(&sign(SECRET, &ada(json!({ "nbf": now_s() + 600 })))), 401, "unauthorized"),
        ("without the right", bearer(&token("bob", 600)), 403, "forbidden"),
        ("right", bearer(&token("ada", 600)), 0, ""),
        ("back end", bearer(KEY), 0, ""),
    ];
    let origins = [
        ("own", format!("Origin: http://{}\r\n", server.address()), true),
        ("none", String::new(), true),
        ("foreign", "Origin: https://evil.example\r\n".to_owned(), false),
    ];
    for (from, origin, is_own) in &origins {
        for (kind, token, status, code) in &tokens {
            for (request, more, body, fine) in requests {
                let answer = ask(&server, request, &format!("{origin}{token}{more}"), body);
                let expected = match (is_own, *status) {
                    (false, _) => (403, "forbidden"),
                    (true, 0) => (fine, ""),
                    (true, status) => (status, *code),
                };
                let seen = (
                    answer.status,
                    answer.body.contains(&format!("\"error\":\"{}\"", expected.1)) || expected.1.is_empty(),
                );
                assert_eq!(seen, (expected.0, true), "{request}, token {kind}, origin {from}: {}", answer.body);
            }
            for (request, body, fine) in of_back_end {
                let answer = ask(&server, request, &format!("{origin}{token}"), body);
                let expected = match (is_own, *kind) {
                    (false, _) => 403,
                    (true, "back end") => fine,
                    (true, _) => 401,
                };
                assert_eq!(answer.status, expected, "{request}, token {kind}, origin {from}: {}", answer.body);
            }
        }
    }
}

/// Of several channels, one that is refused is refused alone, over whatever lasts.
#[test]
fn a_refused_channel_refuses_nothing_else() {
    let (server, _) = start(RULES);
    let fields = format!("Host: h\r\n{}", bearer(&token("ada", 600)));
    for kind in PUSHED {
        let mut client = Client::resume_with(server.address(), kind, "channel=ada:a&channel=bob:a", "", &fields);
        assert_eq!(client.next(), Some(Frame::Error("forbidden".into())), "{kind:?}");
        until("it has begun", || matches!(client.next(), Some(Frame::Cursor(_))));
        server.publisher().publish("bob:a", "\"secret\"").unwrap();
        server.publisher().publish("ada:a", "\"hello\"").unwrap();
        assert_eq!(client.message().2, "\"hello\"", "{kind:?}");
    }
    let poll = ask(&server, "GET /poll?channel=ada:a&channel=bob:a", &bearer(&token("ada", 600)), "");
    assert_eq!(poll.status, 403);
    let mut socket = Client::open_with(server.address(), Kind::WebSocket, "channel=ada:a", &fields);
    for frame in ["[\"sub\",\"bob:a\"]", "[\"pub\",\"bob:a\",1]"] {
        socket.send(frame);
        assert_eq!(socket.next(), Some(Frame::Error("forbidden".into())), "{frame}");
    }
}

/// A browser's WebSocket brings its token as a subprotocol, an EventSource a ticket, a page its cookie.
#[test]
fn a_token_comes_by_every_way_that_browsers_have() {
    let (server, _) = start(RULES);
    let ada = token("ada", 600);
    let offered = format!("{UPGRADE}Sec-WebSocket-Protocol: pushlab, pushlab.token.{ada}\r\n");
    let answer = ask(&server, "GET /ws?channel=ada:a", &offered, "");
    assert_eq!(answer.status, 101);
    let selected = answer.head.lines().filter(|line| line.to_ascii_lowercase().starts_with("sec-websocket-protocol:"));
    assert_eq!(selected.collect::<Vec<_>>(), ["Sec-WebSocket-Protocol: pushlab"]);
    let cookie = format!("Cookie: a=b; push-token={ada}\r\n");
    assert_eq!(ask(&server, "GET /poll?channel=ada:a", &cookie, "").status, 200);
    let answer = ask(&server, "POST /ticket", &bearer(&ada), "");
    let ticket: Value = serde_json::from_str(&answer.body).unwrap();
    let target = format!("GET /sse?channel=ada:a&ticket={}", ticket["ticket"].as_str().unwrap());
    assert_eq!(ask(&server, &target, "", "").status, 200);
    let again = ask(&server, &target, &cookie, "");
    assert_eq!((again.status, again.body.contains("ticket")), (401, true), "it was used: {}", again.body);
    assert_eq!(ask(&server, "POST /ticket", "", "").status, 401);
    assert_eq!(ask(&server, "POST /ticket", &bearer("nonsense"), "").status, 401);
}

/// Whoever reads slowly, and so has a queue that begins again and again, is sent away in time too.
#[test]
fn a_token_expires_for_a_slow_reader() {
    let live = Arc::new(LiveAccess::new(access(RULES)));
    let server = Subject::start(2, |config| {
        config.access = Some(live);
        config.limits.max_send_buffer_bytes = Some(4096);
        config.limits.max_queue_bytes = 64 << 20;
    });
    let back_end = format!("Authorization: Bearer {KEY}\r\nHost: {}\r\n", server.address());
    let fields = |token: &str| format!("{}Host: {}\r\n", bearer(token), server.address());
    let text = format!("\"{}\"", "x".repeat(60_000));
    let (server, back_end, text) = (&server, &back_end, &text);
    let read_slowly = |dial: Dial, kind: Kind, channel: &str| {
        let is_streamed = dial.http2.is_some();
        let query = format!("channel=ada:{channel}");
        let mut client = Client::open_with(dial, kind, &query, &fields(&token("ada", 3)));
        let mut http = Http::connect(server.address());
        let mut publish = || {
            let length = text.len();
            let head = format!("POST /publish?{query} HTTP/1.1\r\n{back_end}Content-Length: {length}\r\n\r\n");
            http.send(&[&head, &text[..]].concat());
            assert_eq!(http.response().status, 200);
        };
        let mut has_ended = false;
        until("it is sent away", || {
            if is_streamed {
                client.stream().hold();
            }
            // More than the kernel takes.
            (0..10).for_each(|_| publish());
            if is_streamed {
                client.stream().release();
            }
            let mut messages = 0;
            while messages < 10 && !has_ended {
                match client.next() {
                    Some(Frame::Message(..)) => messages += 1,
                    Some(Frame::Error(code)) => assert_eq!(code, "token-expired"),
                    Some(_) => {}
                    None => has_ended = true,
                }
            }
            has_ended
        });
        assert!(client.close_code.is_none_or(|code| code == 4004), "{kind:?}");
    };
    std::thread::scope(|scope| {
        for (number, kind) in [Kind::WebSocket, Kind::Sse].into_iter().enumerate() {
            let (streams, read_slowly) = (Http2::dial(server.dial(false)).streams(), &read_slowly);
            scope.spawn(move || read_slowly(server.address().into(), kind, &format!("a{number}")));
            scope.spawn(move || read_slowly(streams, kind, &format!("b{number}")));
        }
    });
}

/// Who is connected when the token expires is told before, may renew it on a WebSocket, and is otherwise sent away.
#[test]
fn a_token_expires_in_the_middle_of_a_connection() {
    let (server, _) = start(RULES);
    let fields = format!("Host: h\r\n{}", bearer(&token("ada", 5)));
    let clients = PUSHED.map(|kind| (kind, Client::resume_with(server.address(), kind, "channel=ada:a", "", &fields)));
    for (kind, mut client) in clients {
        let frames: Vec<Frame> = std::iter::from_fn(|| client.next()).collect();
        assert!(frames.iter().any(|frame| matches!(frame, Frame::TokenExpires(1 | 2))), "{kind:?} {frames:?}");
        let has_ended = match kind {
            Kind::WebSocket => client.close_code == Some(4004),
            _ => frames.last() == Some(&Frame::Error("token-expired".into())),
        };
        assert!(has_ended, "{kind:?} {frames:?} {:?}", client.close_code);
    }
    // The held poll ends with the token, with what there was.
    let poll = ask(&server, "GET /poll?channel=ada:a&wait=30", &bearer(&token("ada", 4)), "");
    assert_eq!((poll.status, poll.body.starts_with("[[\"cursor\"")), (200, true), "{}", poll.body);
    let fields = format!("Host: h\r\n{}", bearer(&token("ada", 5)));
    let has_expired_by = now_s() + 6;
    let mut socket = Client::resume_with(server.address(), Kind::WebSocket, "channel=ada:a", "", &fields);
    until("it is told", || matches!(socket.next(), Some(Frame::TokenExpires(_))));
    for (bad, code) in [
        (token("bob", 600), "forbidden"),
        ("nonsense".to_owned(), "unauthorized"),
        (sign(SECRET, &json!({ "aud": "push", "sub": "ada", "exp": 1 })), "token-expired"),
    ] {
        socket.send(&format!("[\"auth\",\"{bad}\"]"));
        assert_eq!(socket.next(), Some(Frame::Error(code.into())));
    }
    socket.send(&format!("[\"auth\",\"{}\"]", token("ada", 600)));
    assert!(matches!(socket.next(), Some(Frame::Auth(590..=600))));
    until("the first token has expired", || now_s() >= has_expired_by);
    server.publisher().publish("ada:a", "\"still here\"").unwrap();
    assert_eq!(socket.message().2, "\"still here\"");
}

/// New rules are for what comes; a renewed token brings them to what is there.
#[test]
fn a_renewed_token_loses_what_new_rules_do_not_allow() {
    let (server, live) = start(&RULES.replacen("\"ada:*\"", "\"ada:*\", \"club\"", 1));
    let fields = format!("Host: h\r\n{}", bearer(&token("ada", 600)));
    let mut socket = Client::open_with(server.address(), Kind::WebSocket, "channel=ada:a&channel=club", &fields);
    live.replace(access(RULES));
    server.publisher().publish("club", "1").unwrap();
    assert_eq!(socket.message().0, "club", "what was allowed stays");
    socket.send(&format!("[\"auth\",\"{}\"]", token("ada", 601)));
    assert!(matches!(socket.next(), Some(Frame::Auth(_))));
    assert_eq!(socket.next(), Some(Frame::Error("forbidden".into())));
    server.publisher().publish("club", "2").unwrap();
    server.publisher().publish("ada:a", "3").unwrap();
    assert_eq!(socket.message().0, "ada:a");
    assert_eq!(ask(&server, "GET /poll?channel=club", &bearer(&token("ada", 602)), "").status, 403);
}

/// A back end publishes to many, once for each key, reads history, and ends an identity's connections.
#[test]
fn a_back_end_has_an_interface_of_its_own() {
    let (server, _) = start(RULES);
    let post = |target: &str, more: &str, body: &str| {
        ask(&server, &format!("POST {target}"), &format!("{}{more}", bearer(KEY)), body)
    };
    let fields = format!("Host: h\r\n{}", bearer(&token("ada", 600)));
    let mut ada = Client::open_with(server.address(), Kind::WebSocket, "channel=ada:a&channel=ada:b", &fields);
    let many = "{\"channels\":[\"ada:a\",\"ada:b\",\"x\"],\"data\":{\"n\":\n1}}";
    let first = post("/api/publish", "Idempotency-Key: k1\r\n", many);
    let told: Value = serde_json::from_str(&first.body).unwrap();
    assert_eq!((first.status, told["published"].as_array().unwrap().len()), (200, 3), "{}", first.body);
    assert_eq!([ada.message().0, ada.message().0], ["ada:a", "ada:b"]);
    let again = post("/api/publish", "Idempotency-Key: k1\r\n", many);
    assert_eq!((again.status, again.body), (200, first.body), "it was done before");
    let other = post("/api/publish", "Idempotency-Key: k1\r\n", "{\"channel\":\"ada:a\",\"data\":2}");
    assert_eq!((other.status, other.body.contains("key-reused")), (409, true));
    for (body, status) in [
        ("{\"channel\":\"a b\",\"data\":1}", 400),
        ("{\"channels\":[\"ada:a\",\"a/b\"],\"data\":1}", 400),
        ("{\"channels\":[],\"data\":1}", 400),
        ("{\"channel\":\"a\"}", 400),
        ("{\"channel\":\"a\",\"data\":1,\"more\":2}", 400),
        ("nonsense", 400),
    ] {
        assert_eq!(post("/api/publish", "Idempotency-Key: k2\r\n", body).status, status, "{body}");
    }
    let last = post("/api/publish", "Idempotency-Key: k2\r\n", "{\"channel\":\"ada:a\",\"data\":\"last\"}");
    assert_eq!(last.status, 200, "what failed was not remembered");
    assert_eq!(ada.message().2, "\"last\"", "and nothing else was published meanwhile");
    let history = ask(&server, "GET /api/history?channel=ada:a", &bearer(KEY), "").body;
    assert!(
        history.starts_with("[[\"msg\",\"ada:a\",") && history.contains("{\"n\": 1}") && history.contains("\"last\""),
        "{history}"
    );
    let after = &told["published"][0]["cursor"];
    let rest =
        ask(&server, &format!("GET /api/history?channel=ada:a&after={}", after.as_str().unwrap()), &bearer(KEY), "");
    assert!(!rest.body.contains("{\"n\"") && rest.body.contains("\"last\""), "{}", rest.body);
    let mut others = Client::resume_with(
        server.address(),
        Kind::Sse,
        "channel=bob:a",
        "",
        &format!("Host: h\r\n{}", bearer(&token("bob", 600))),
    );
    let mut stream = Client::resume_with(server.address(), Kind::Sse, "channel=ada:a", "", &fields);
    until("they have begun", || {
        matches!(others.next(), Some(Frame::Cursor(_))) && matches!(stream.next(), Some(Frame::Cursor(_)))
    });
    assert_eq!(post("/api/disconnect", "", "{\"identity\":\"ada\"}").status, 204);
    until("the WebSocket has ended", || ada.next().is_none());
    assert_eq!(ada.close_code, Some(4005));
    assert_eq!(stream.next(), Some(Frame::Error("disconnected".into())));
    assert_eq!(stream.next(), None);
    server.publisher().publish("bob:a", "1").unwrap();
    assert_eq!(others.message().0, "bob:a");
}

/// Who is in a room is told to those who may know it, on a channel that nobody else publishes to.
#[test]
fn who_is_there_is_told_to_those_who_may_know() {
    let rules = "presence = [\"room:*\"]\n[[rule]]\nwho = \"identified\"\nchannels = [\"room:*\", \"presence:*\"]\n\
                 may = [\"subscribe\", \"publish\"]\n[[rule]]\nwho = \"identified\"\nclaims = { sub = \"ada\" }\n\
                 channels = [\"room:*\"]\nmay = [\"presence\"]\n";
    let (server, _) = start(rules);
    let present = |who: &str, channel: &str| {
        ask(&server, &format!("GET /api/presence?channel={channel}"), &bearer(&token(who, 600)), "")
    };
    let count = || serde_json::from_str::<Value>(&present("ada", "room:1").body).unwrap()["count"].clone();
    let fields = |who: &str| format!("Host: h\r\n{}", bearer(&token(who, 600)));
    let mut ada = Client::resume_with(server.address(), Kind::WebSocket, "channel=presence:room:1", "", &fields("ada"));
    until("it has begun", || matches!(ada.next(), Some(Frame::Cursor(_))));
    let bob = Client::open_with(server.address(), Kind::Sse, "channel=room:1", &fields("bob"));
    assert_eq!(ada.message().2, "{\"joined\":[\"bob\"],\"count\":1}");
    let told: Value = serde_json::from_str(&present("ada", "room:1").body).unwrap();
    assert_eq!((&told["count"], &told["identities"]), (&json!(1), &json!(["bob"])), "{told}");
    assert_eq!(count(), 1);
    // To come back at once is not to have been away.
    drop(bob);
    let again = Client::open_with(server.address(), Kind::Lines, "channel=room:1", &fields("bob"));
    drop(again);
    assert_eq!(ada.message().2, "{\"left\":[\"bob\"],\"count\":0}");
    for (who, channel, status) in [("bob", "room:1", 403), ("ada", "hall", 403), ("eve", "room:1", 403)] {
        assert_eq!(present(who, channel).status, status, "{who} {channel}");
    }
    assert_eq!(ask(&server, "GET /api/presence?channel=hall", &bearer(KEY), "").status, 404);
    let spy = ask(&server, "GET /poll?channel=presence:room:1", &bearer(&token("bob", 600)), "");
    assert_eq!(spy.status, 403, "the right to subscribe is not enough: {}", spy.body);
    for who in [bearer(&token("bob", 600)), bearer(KEY)] {
        let forged = ask(&server, "POST /publish?channel=presence:room:1", &who, "1");
        assert_eq!(forged.status, 403, "{}", forged.body);
    }
}

/// A channel of presence gives names away, whichever way its messages come: as they are told, again, or as history.
#[test]
fn what_gives_names_takes_the_right_to_them() {
    let rules = "presence = [\"room:*\"]\n[[rule]]\nwho = \"identified\"\nchannels = [\"*\"]\n\
                 may = [\"subscribe\", \"publish\", \"history\"]\n[[rule]]\nwho = \"identified\"\n\
                 claims = { sub = \"ada\" }\nchannels = [\"room:*\"]\nmay = [\"presence\"]\n";
    let (server, _) = start(rules);
    for (request, fields) in [
        ("GET /api/history?channel=presence:room:7", ""),
        ("GET /api/presence?channel=room:7", ""),
        ("GET /poll?channel=presence:room:7", ""),
        ("GET /poll?channel=presence:room:7&newest=1", ""),
        ("GET /poll?channel=room:7&channel=presence:room:7&after=", ""),
        ("GET /sse?channel=presence:room:7", ""),
        ("GET /stream?channel=presence:room:7", ""),
        ("GET /ws?channel=presence:room:7", UPGRADE),
    ] {
        let status = |who: &str| ask(&server, request, &format!("{fields}{}", bearer(&token(who, 600))), "").status;
        let allowed = if fields.is_empty() { 200 } else { 101 };
        assert_eq!([status("bob"), status("ada")], [403, allowed], "{request}");
    }
    let secret = ask(&server, "GET /api/history?channel=hall", &bearer(&token("bob", 600)), "");
    assert_eq!(secret.status, 200, "the history of other channels takes its own right: {}", secret.body);
}

/// New rules say of other channels who is there, and count whoever is connected.
#[test]
fn new_rules_tell_who_is_there_already() {
    let rules = |presence: &str| {
        format!(
            "presence = [\"{presence}\"]\n[[rule]]\nwho = \"identified\"\nchannels = [\"room:*\"]\n\
             may = [\"subscribe\", \"presence\"]\n"
        )
    };
    let (server, live) = start(&rules("hall"));
    let fields = |who: &str| format!("Host: h\r\n{}", bearer(&token(who, 600)));
    let present = || ask(&server, "GET /api/presence?channel=room:1", &bearer(&token("ada", 600)), "");
    let open = |query: &str, who: &str| {
        let mut client = Client::resume_with(server.address(), Kind::WebSocket, query, "", &fields(who));
        until("it has begun", || matches!(client.next(), Some(Frame::Cursor(_))));
        client
    };
    let mut ada = open("channel=presence:room:1", "ada");
    let _others = ["bob", "bob", "bob", "cy"].map(|who| open("channel=room:1", who));
    assert_eq!(present().status, 404);
    let change = |ada: &mut Client| serde_json::from_str::<Value>(&ada.message().2).unwrap();
    let both_are_told_of = |ada: &mut Client| {
        live.replace(access(&rules("room:*")));
        let mut joined = Vec::new();
        until("both are there", || {
            let told = change(ada);
            joined.extend(told["joined"].as_array().unwrap().iter().map(ToString::to_string));
            told["count"] == 2
        });
        joined.sort();
        assert_eq!(joined, ["\"bob\"", "\"cy\""]);
    };
    both_are_told_of(&mut ada);
    live.replace(access(&rules("hall")));
    assert_eq!(present().status, 404);
    until("nobody is there", || change(&mut ada)["count"] == 0);
    both_are_told_of(&mut ada);
}

/// A ticket stands for a token on every path.
#[test]
fn a_ticket_opens_the_back_ends_paths_too() {
    let (server, _) = start(RULES);
    let answer = ask(&server, "POST /ticket", &bearer(&token("ada", 600)), "");
    let ticket: Value = serde_json::from_str(&answer.body).unwrap();
    let target = format!("GET /api/history?channel=ada:a&ticket={}", ticket["ticket"].as_str().unwrap());
    assert_eq!(ask(&server, &target, "", "").status, 200);
    let again = ask(&server, &target, &bearer(&token("bob", 600)), "");
    assert_eq!(again.status, 403, "a token counts before a ticket: {}", again.body);
    assert_eq!(ask(&server, &target, "", "").status, 401, "it was used");
}

/// Connections, subscriptions and publications of one identity, and of one address, have limits; those of others do not
/// suffer.
#[test]
fn an_identity_and_an_address_have_limits() {
    let limits = "[limits.identity]\nconnections = 2\nsubscriptions = 3\npublications_per_s = 2\nbytes_per_s = 1000\n";
    let (server, _) = start(&format!("{RULES}{limits}"));
    let open = |sub: &str, query: &str| {
        let fields = format!("Host: h\r\n{}", bearer(&token(sub, 600)));
        let mut client = Client::resume_with(server.address(), Kind::WebSocket, query, "", &fields);
        until("it has begun", || matches!(client.next(), Some(Frame::Cursor(_))));
        client
    };
    let mut first = open("ada", "channel=ada:a&channel=ada:b");
    let second = open("ada", "channel=ada:c");
    let ada = bearer(&token("ada", 600));
    for target in ["GET /ws?", "GET /sse?", "GET /poll?wait=9&"] {
        let more = if target.contains("ws") { UPGRADE } else { "" };
        let refused = ask(&server, &format!("{target}channel=ada:a"), &format!("{ada}{more}"), "");
        assert_eq!((refused.status, refused.head.contains("Retry-After")), (429, true), "{target} {}", refused.body);
    }
    assert_eq!(
        ask(&server, "GET /poll?channel=ada:a", &ada, "").status,
        200,
        "a poll that is answered at once takes no place"
    );
    first.send("[\"sub\",\"ada:d\"]");
    assert_eq!(first.next(), Some(Frame::Error("limit-reached".into())));
    drop(second);
    until("its place is free", || {
        first.send("[\"sub\",\"ada:d\"]");
        matches!(first.next(), Some(Frame::Cursor(_)))
    });
    let publish = |body: &str, who: &str| {
        ask(&server, &format!("POST /publish?channel={who}:x"), &bearer(&token(who, 600)), body).status
    };
    let large = format!("\"{}\"", "x".repeat(2000));
    assert_eq!(publish(&large, "ada"), 429, "more than a second's bytes");
    let taken = (0..20).filter(|_| publish("1", "ada") == 200).count();
    assert!((1..20).contains(&taken), "{taken} of 20");
    assert_eq!(publish("1", "bob"), 200);
    drop(open("bob", "channel=bob:a"));
    let (server, _) = start(&format!("{RULES}[limits.address]\nconnections = 3\n"));
    let held: Vec<Client> = (0..3)
        .map(|n| {
            let who = if n % 2 == 0 { "ada" } else { "bob" };
            let fields = format!("Host: h\r\n{}", bearer(&token(who, 600)));
            let mut client =
                Client::resume_with(server.listens_at(), Kind::Sse, &format!("channel={who}:a"), "", &fields);
            until("it has begun", || matches!(client.next(), Some(Frame::Cursor(_))));
            client
        })
        .collect();
    let mut fourth = Http::connect(server.listens_at());
    let refused = fourth.get("/healthz");
    assert_eq!((refused.status, refused.body.contains("limit-reached")), (429, true), "{}", refused.body);
    drop(held);
    until("there is room", || {
        let mut http = Http::connect(server.listens_at());
        http.get("/healthz").status == 200
    });
}
