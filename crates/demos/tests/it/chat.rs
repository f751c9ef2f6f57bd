//! Chatting, and those who would rather break it.

use super::harness::{Answer, Site};
use pushlab_demos::chat::Chat;
use serde_json::{Value, json};
use std::time::Duration;

/// Somebody who entered.
struct Visitor<'s> {
    site: &'s Site,
    token: String,
    inbox: String,
    cursor: String,
}

impl<'s> Visitor<'s> {
    fn enter(site: &'s Site, name: &str) -> Self {
        let entered = act(site, "enter", &json!({ "name": name }));
        assert_eq!(entered.status, 200, "{entered:?}");
        let text = |member| entered.text(member);
        Self { site, token: text("token"), inbox: text("inbox"), cursor: text("cursor") }
    }

    fn act(&self, action: &str, mut rest: Value) -> Answer {
        rest["token"] = json!(self.token);
        act(self.site, action, &rest)
    }
}

fn act(site: &Site, action: &str, body: &Value) -> Answer {
    site.post(&format!("/api/demos/chat/{action}"), &body.to_string())
}

fn kinds(events: &[Value]) -> Vec<String> {
    events.iter().map(|e| format!("{} {}", e["kind"].as_str().unwrap(), e["from"].as_str().unwrap())).collect()
}

#[test]
fn two_people_meet_talk_and_part() {
    let site = Site::start(Chat::default());
    let ida = Visitor::enter(&site, "Ida");
    let joined = ida.act("join", json!({ "room": "lobby" }));
    assert_eq!((&joined.body["room"], &joined.body["people"]), (&json!("lobby"), &json!(["Ida"])));
    let bo = Visitor::enter(&site, "Bo");
    let rooms = site.get("/api/demos/chat/rooms");
    assert_eq!(rooms.body["rooms"], json!([{ "room": "lobby", "people": ["Ida"] }]));
    let before = rooms.text("cursor");
    let met = bo.act("join", json!({ "room": "lobby" }));
    assert_eq!(met.body["people"], json!(["Bo", "Ida"]));
    let said = bo.act("say", json!({ "room": "lobby", "text": "hello" }));
    ida.act("tell", json!({ "to": "bo", "text": "psst" }));
    ida.act("say", json!({ "room": "lobby", "text": "hi" }));
    assert_eq!(bo.act("beat", json!({})).status, 200);
    assert_eq!(bo.act("leave", json!({})).status, 200);

    let all = ["said Bo", "said Ida", "left Bo"];
    let lobby = "channel=demo.chat.room.lobby";
    let has_left = |events: &[Value]| events.last().is_some_and(|e| e["kind"] == "left");
    let at_bo = site.deliveries(lobby, &met.text("cursor"), has_left);
    assert_eq!(kinds(&at_bo), all, "the cursor of the join stands behind it");
    assert_eq!(at_bo[0], said.body, "what is said is answered as it is published");
    let at_ida = site.deliveries(lobby, &joined.text("cursor"), has_left);
    assert_eq!(kinds(&at_ida), [&["joined Bo"], &all[..]].concat());
    assert_eq!(at_ida, site.deliveries(lobby, &before, has_left));

    let told = site.deliveries(&format!("channel={}", bo.inbox), &bo.cursor, |events| !events.is_empty());
    assert_eq!((&told[0]["kind"], &told[0]["text"], told.len()), (&json!("told"), &json!("psst"), 1));
    assert_eq!(bo.act("beat", json!({})).code(), (401, "unauthorized"), "left is left");
    assert_eq!(site.get("/api/demos/chat/rooms").body["rooms"], json!([{ "room": "lobby", "people": ["Ida"] }]));
}

#[test]
fn a_taken_name_is_refused() {
    let site = Site::start(Chat::default());
    let ida = Visitor::enter(&site, "Ida");
    assert_eq!(act(&site, "enter", &json!({ "name": "IDA" })).code(), (409, "name-taken"));
    ida.act("leave", json!({}));
    Visitor::enter(&site, "IDA");
}

#[test]
fn who_shows_the_token_of_the_visit_before_takes_its_place() {
    let site = Site::start(Chat::default());
    let ida = Visitor::enter(&site, "Ida");
    ida.act("join", json!({ "room": "lobby" }));
    let again = ida.act("enter", json!({ "name": "Ida" }));
    assert_eq!(again.status, 200, "{again:?}");
    assert_eq!(ida.act("beat", json!({})).code(), (401, "unauthorized"), "the visit before has ended");
    assert_eq!(site.get("/api/demos/chat/rooms").body["rooms"], json!([]), "in no room yet");
    // Another time, the token is nobody's any more, and then of no use.
    assert_eq!(ida.act("enter", json!({ "name": "Ida" })).code(), (409, "name-taken"));
    assert_eq!(act(&site, "enter", &json!({ "name": "Bo", "token": "?" })).status, 200);
}

#[test]
fn a_name_that_looks_like_a_taken_one_is_refused() {
    let site = Site::start(Chat::default());
    Visitor::enter(&site, "Ida");
    let refused = act(&site, "enter", &json!({ "name": "lda" }));
    assert_eq!(refused.code(), (409, "name-taken"));
    assert!(refused.text("message").contains("looks like Ida"), "{refused:?}");
}

#[test]
fn one_address_enters_at_a_pace() {
    let site = Site::start(Chat::default());
    // More than may be, should the machine be so slow that places come back.
    let mut entries = (0..10_000).map(|n| act(&site, "enter", &json!({ "name": format!("p{}", n + 2) })));
    let refused = entries.find(|answer| !matches!(answer.status, 200 | 409)).unwrap();
    assert_eq!(refused.code(), (429, "limit-reached"));
    assert!(refused.head.contains("Retry-After: 1"), "{}", refused.head);
}

#[test]
fn who_falls_silent_is_announced_as_gone() {
    let site = Site::start(Chat::new(Duration::from_secs(2)));
    let ida = Visitor::enter(&site, "Ida");
    let joined = ida.act("join", json!({ "room": "lobby" }));
    let gone = site.deliveries("channel=demo.chat.room.lobby", &joined.text("cursor"), |events| !events.is_empty());
    assert_eq!(kinds(&gone), ["left Ida"]);
    assert_eq!(ida.act("beat", json!({})).code(), (401, "unauthorized"));
    assert_eq!(site.get("/api/demos/chat/rooms").body["rooms"], json!([]));
}

#[test]
fn scripts_are_text() {
    let site = Site::start(Chat::default());
    let script = "<img src=x onerror=\"alert('&lt;')\"></script><!-- \\u0000 ${1}' OR 1=1; DROP TABLE people --";
    for name in [script, "<b>", "a\u{202e}b", "Ida ", "a\u{a0}b", ""] {
        assert_eq!(act(&site, "enter", &json!({ "name": name })).code(), (400, "bad-request"), "{name}");
    }
    let ida = Visitor::enter(&site, "Ida");
    let joined = ida.act("join", json!({ "room": "lobby" }));
    assert_eq!(ida.act("join", json!({ "room": "<b>" })).code(), (400, "bad-request"));
    let said = ida.act("say", json!({ "room": "lobby", "text": script }));
    let heard = site.deliveries("channel=demo.chat.room.lobby", &joined.text("cursor"), |events| !events.is_empty());
    assert_eq!((&heard[0]["text"], &heard[0]), (&json!(script), &said.body));
    assert!(said.head.contains("Content-Type: application/json"), "{}", said.head);
    assert_eq!(ida.act("say", json!({ "room": "lobby", "text": "a\nb" })).code(), (400, "bad-request"));
}

#[test]
fn forged_requests_are_refused() {
    let site = Site::start(Chat::default());
    let ida = Visitor::enter(&site, "Ida");
    for token in ["", "0", &"0".repeat(32), &ida.token.to_uppercase(), &ida.inbox, "' OR 1=1 --"] {
        let forged = act(&site, "beat", &json!({ "token": token }));
        assert!(token == ida.token || forged.code() == (401, "unauthorized"), "{token}: {forged:?}");
    }
    let body = json!({ "token": ida.token }).to_string();
    let json = ("Content-Type", "application/json");
    let own = format!("http://{}", site.host());
    for fields in [
        &[json, ("Origin", "https://evil.example")][..],
        &[json, ("Origin", "null")],
        &[json, ("Origin", &own), ("Sec-Fetch-Site", "cross-site")],
        &[json, ("Sec-Fetch-Site", "same-site")],
    ] {
        let refused = site.ask("POST", "/api/demos/chat/leave", fields, body.as_bytes());
        assert_eq!(refused.code(), (403, "forbidden"), "{fields:?}");
        assert!(!refused.head.to_lowercase().contains("access-control"), "{}", refused.head);
    }
    let form = [("Content-Type", "text/plain"), ("Origin", own.as_str())];
    assert_eq!(site.ask("POST", "/api/demos/chat/leave", &form, body.as_bytes()).code(), (400, "bad-request"));
    assert_eq!(ida.act("beat", json!({})).status, 200, "she is still there");
    for channel in ["demo.chat.room.lobby", &ida.inbox] {
        let refused = site.post(&format!("/publish?channel={channel}"), r#"{"kind":"said","from":"Ida"}"#);
        assert_eq!(refused.code(), (403, "forbidden"));
    }
}

#[test]
fn what_is_too_large_or_of_another_shape_is_refused() {
    let site = Site::start(Chat::default());
    let ida = Visitor::enter(&site, "Ida");
    ida.act("join", json!({ "room": "lobby" }));
    let say = |text: &str| ida.act("say", json!({ "room": "lobby", "text": text }));
    assert_eq!(say(&"😀".repeat(1000)).status, 200);
    assert_eq!(say(&"a".repeat(1001)).code(), (400, "bad-request"));
    assert_eq!(say(&"a".repeat(64 * 1024)).code(), (413, "body-too-large"));
    assert_eq!(say(&"a".repeat(64 * 1024)).code(), (413, "body-too-large"));
    for body in ["", "{", "[]", "{}", r#"{"name":"a","admin":true}"#, r#"{"name":{"$ne":1}}"#, "\u{0}"] {
        assert_eq!(site.post("/api/demos/chat/enter", body).code(), (400, "bad-request"), "{body}");
    }
}
