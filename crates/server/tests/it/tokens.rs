//! What tokens may not do: count for pages that did not send them, reach the channels of others, go unnoticed when refused.

use crate::access::{RULES, SECRET, UPGRADE, ask, bearer, now_s, sign, sign_with, start, start_for, token};
use crate::harness::client::{Client, Frame, Kind};
use crate::harness::http::Http;
use crate::strict;
use pushlab_server::Guests;
use serde_json::{Value, json};

/// A browser sends the cookie whichever page makes the request.
#[test]
fn a_cookie_counts_from_named_pages_alone() {
    let app = Guests::These(vec!["https://app.example".parse().unwrap()]);
    let cookie = format!("Cookie: push-token={}\r\n", token("ada", 600));
    let requests = [
        ("GET /ws?channel=ada:a", UPGRADE, "", 101),
        ("GET /sse?channel=ada:a", "", "", 200),
        ("GET /stream?channel=ada:a&format=script", "", "", 200),
        ("GET /poll?channel=ada:a", "", "", 200),
        ("POST /publish?channel=ada:a", "", "1", 200),
        ("POST /ticket", "", "", 200),
        ("GET /api/history?channel=ada:a", "", "", 200),
    ];
    for guests in [Guests::Everybody, app] {
        let (server, _) = start_for(guests.clone(), RULES);
        let named = guests != Guests::Everybody;
        let own = format!("Origin: http://{}\r\n", server.address());
        for (origin, is_own, is_good) in [
            ("", true, true),
            (&*own, true, true),
            ("Origin: https://app.example\r\nSec-Fetch-Site: cross-site\r\n", false, named),
            ("Origin: https://evil.example\r\n", false, false),
            ("Origin: null\r\n", false, false),
            ("Sec-Fetch-Site: same-site\r\n", false, false),
            ("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n", false, false),
        ] {
            for (request, more, body, fine) in requests {
                // What an application answers is for own pages alone.
                let is_good = is_good && (is_own || !request.contains("/api/"));
                let answer = ask(&server, request, &format!("{origin}{cookie}{more}"), body);
                let seen = (answer.status == fine, matches!(answer.status, 401 | 403));
                assert_eq!(seen, (is_good, !is_good), "{request} from {origin:?}, {guests:?}: {}", answer.body);
            }
        }
    }
}

/// The documentation's own patterns, and subjects that look like somebody else's channels.
#[test]
fn a_claim_is_no_part_of_anothers_channels() {
    let rules = "[[rule]]\nwho = \"identified\"\nchannels = [\"user:{sub}\", \"user:{sub}:*\"]\n\
                 may = [\"subscribe\", \"publish\", \"history\"]\n";
    let (server, _) = start(rules);
    let status = |sub: &str, channel: &str| {
        let token = bearer(&token(sub, 600));
        let requests = [("GET /poll", ""), ("POST /publish", "1"), ("GET /api/history", "")];
        requests.map(|(request, body)| ask(&server, &format!("{request}?channel={channel}"), &token, body).status)
    };
    let channels = ["user:ada", "user:ada:inbox", "user:ada:inbox:new", "user:ada.b:inbox"];
    for channel in &channels[..3] {
        assert_eq!(status("ada", channel), [200; 3], "{channel}");
    }
    for hostile in ["ada:inbox", "ada:", "ada:inbox:new", ":ada", "ada.b", "ada*", "*", "ad", "adaa", "user:ada"] {
        for channel in channels {
            assert_eq!(status(hostile, channel), [403; 3], "{hostile} {channel}");
        }
    }
}

/// What a token asks for, and for how long, is done as it is meant or refused; and each refusal shows.
#[test]
fn refused_tokens_are_counted_by_cause() {
    let (server, live) = start(RULES);
    let claims = |changes: Value| {
        let mut claims = json!({ "aud": "push", "sub": "ada", "exp": now_s() + 600 });
        changes.as_object().unwrap().iter().for_each(|(name, value)| claims[name] = value.clone());
        claims
    };
    let good = claims(json!({}));
    let head = |more: Value| {
        let mut head = json!({ "alg": "HS256" });
        more.as_object().unwrap().iter().for_each(|(name, value)| head[name] = value.clone());
        sign_with(head, SECRET, &good)
    };
    let tokens = [
        ("unknown-extension", head(json!({ "crit": ["exp"], "exp": 1 }))),
        ("unknown-extension", head(json!({ "b64": false }))),
        ("other-type", head(json!({ "typ": "logout+jwt" }))),
        ("bad-time", sign(SECRET, &claims(json!({ "exp": 1e300 })))),
        ("bad-time", sign(SECRET, &claims(json!({ "exp": (now_s() + 600) * 1000 })))),
        ("wrong-signature", sign(&"x".repeat(32), &good)),
        ("malformed", "nonsense".to_owned()),
    ];
    for (cause, token) in &tokens {
        for request in ["GET /poll?channel=ada:a", "GET /api/history?channel=ada:a"] {
            assert_eq!(ask(&server, request, &bearer(token), "").status, 401, "{request} {cause}");
        }
    }
    assert_eq!(ask(&server, "GET /poll?channel=ada:a&ticket=0", "", "").status, 401);
    let fields = format!("Host: h\r\n{}", bearer(&token("ada", 600)));
    let mut socket = Client::open_with(server.address(), Kind::WebSocket, "channel=ada:a", &fields);
    for (token, code) in [("nonsense", "unauthorized"), (&*token("bob", 600), "forbidden")] {
        socket.send(&json!(["auth", token]).to_string());
        assert_eq!(socket.next(), Some(Frame::Error(code.into())));
    }
    let mut http = Http::connect(server.address());
    http.send(&format!("GET /metrics HTTP/1.1\r\nHost: h\r\n{}\r\n", bearer("the-key-of-the-back-end-0123456789")));
    let families = strict::parse(&http.response().body);
    let count = |cause| families["pushlab_tokens_refused_total"].value(&[("cause", cause)]);
    for (cause, expected) in [
        ("unknown-extension", 4.0),
        ("other-type", 2.0),
        ("bad-time", 4.0),
        ("wrong-signature", 2.0),
        ("malformed", 3.0),
        ("bad-ticket", 1.0),
        ("other-identity", 1.0),
        ("expired", 0.0),
    ] {
        assert_eq!(count(cause), Some(expected), "{cause}");
    }
    let untold = live.refusals.take_untold().unwrap();
    // Lanes are nowhere.
    assert_eq!((untold.count, untold.address.is_none_or(|address| address.is_loopback())), (17, true));
    assert_eq!(live.refusals.take_untold(), None);
}
