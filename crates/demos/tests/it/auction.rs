//! The auction house over HTTP: what it does for those who mean well, and what it refuses to the others. What depends
//! on the database is in `databases`.

use super::bidders::{START_MS, World};
use pushlab_demos::auction::{
    MAX_AMOUNT_CENTS, MAX_FAILURES, MAX_ITEM_NAME_CHARS, MAX_ITEMS_OF_ACCOUNT, MAX_SESSIONS, PATH, SESSION_FIELD,
    SESSION_MS,
};
use serde_json::{Value, json};

fn world() -> World {
    World::open("sqlite::memory:")
}

fn credentials(name: &str, password: &str) -> Value {
    json!({ "name": name, "password": password })
}

#[test]
fn people_register_log_in_and_log_out() {
    let world = world();
    let ada = world.register("Ada");
    assert_eq!(world.ask(Some(&ada), "GET", "me", &json!(null)).body, json!({ "name": "Ada" }));
    assert_eq!(world.ask(None, "GET", "me", &json!(null)).body, json!({ "name": null }));
    let taken = world.ask(None, "POST", "register", &credentials("ADA", "another one"));
    assert_eq!(taken.code(), (409, "name-taken"));

    let again = world.ask(None, "POST", "log-in", &credentials("aDa", "correct horse"));
    assert_eq!((again.status, again.text("name")), (200, "Ada".to_owned()));
    assert_ne!(again.text("session"), ada.session, "each session has a token of its own");
    for cookie in [format!("auction={}", ada.session), format!("__Host-auction={}", ada.session)] {
        let me = world.site.ask("GET", &format!("{PATH}/me"), &[("Cookie", &cookie)], b"");
        assert_eq!(me.body, json!({ "name": null }), "a cookie goes to every port of the host");
    }
    assert!(!again.head.contains("Set-Cookie"), "{}", again.head);

    let out = world.ask(Some(&ada), "POST", "log-out", &json!({}));
    assert_eq!((out.status, out.body), (200, json!({ "name": null })));
    assert_eq!(world.ask(Some(&ada), "GET", "me", &json!(null)).body, json!({ "name": null }), "it has ended");
}

#[test]
fn a_session_ends_with_its_time_and_the_oldest_makes_room() {
    let world = world();
    let mut ada = world.register("ada");
    let first = ada.clone();
    let is_in = |who: &_| world.ask(Some(who), "GET", "me", &json!(null)).body["name"] == "ada";
    for _ in 0..MAX_SESSIONS {
        assert!(is_in(&first));
        world.pass(1000);
        ada.session = world.ask(None, "POST", "log-in", &credentials("ada", "correct horse")).text("session");
    }
    assert!(!is_in(&first) && is_in(&ada));
    world.pass(SESSION_MS - 1);
    assert!(is_in(&ada));
    world.pass(1);
    assert!(!is_in(&ada));
    assert_eq!(world.ask(Some(&ada), "POST", "items", &world.new_item("a", 1)).code(), (401, "unauthorized"));
}

#[test]
fn nobody_gets_in_by_guessing() {
    let world = world();
    world.register("ada");
    let unknown = world.ask(None, "POST", "log-in", &credentials("eve", "correct horse"));
    let wrong = world.ask(None, "POST", "log-in", &credentials("ada", "battery staple"));
    assert_eq!((unknown.code(), &unknown.body), ((401, "unauthorized"), &wrong.body), "nor learns who is here");
    let guess = || world.ask(None, "POST", "log-in", &credentials("ADA", "battery staple"));
    let refused = (0..=MAX_FAILURES).map(|_| guess()).find(|answer| answer.status != 401).unwrap();
    assert_eq!(refused.code(), (429, "limit-reached"));
    assert!(refused.head.contains("Retry-After: "), "{}", refused.head);
}

#[test]
fn what_needs_somebody_refuses_forged_sessions() {
    let world = world();
    let ada = world.register("ada");
    let item = world.offer(&ada, "a chair", 100);
    let token = &*ada.session;
    let other = if token.starts_with('0') { "1" } else { "0" };
    let mut forged = ada.clone();
    for token in [
        "",
        "0",
        "' OR '1'='1",
        "\" OR 1=1 --",
        "%",
        "../../etc/passwd",
        &"0".repeat(64),
        &"f".repeat(5000),
        &format!("{other}{}", &token[1..]),
        &token[..63],
        &token.to_uppercase(),
    ] {
        if token == ada.session {
            continue;
        }
        forged.session = token.to_owned();
        for (method, path, body) in [
            ("POST", "items".to_owned(), world.new_item("a", 1)),
            ("DELETE", format!("items/{item}"), json!(null)),
            ("POST", format!("items/{item}/bids"), json!({ "amount_cents": 100 })),
        ] {
            let answer = world.ask(Some(&forged), method, &path, &body);
            assert_eq!(answer.code(), (401, "unauthorized"), "{token} {method} {path}");
        }
    }
    assert_eq!(world.history(item), Vec::<i64>::new());
}

#[test]
fn pages_of_other_sites_change_nothing() {
    let world = world();
    let ada = world.register("ada");
    let item = world.offer(&ada, "a chair", 100);
    let own = format!("http://{}", world.site.host());
    for (origin, site) in [
        ("https://evil.example", "cross-site"),
        ("https://evil.example", "same-origin"),
        (&*own, "cross-site"),
        (&*own, "same-site"),
        ("null", "cross-site"),
        ("null", "none"),
    ] {
        for (method, path, body) in [
            ("POST", format!("items/{item}/bids"), r#"{"amount_cents":100}"#.to_owned()),
            ("POST", "items".to_owned(), world.new_item("a", 1).to_string()),
            ("DELETE", format!("items/{item}"), String::new()),
            ("POST", "log-out".to_owned(), "{}".to_owned()),
            ("POST", "log-in".to_owned(), credentials("ada", "correct horse").to_string()),
            ("POST", "register".to_owned(), credentials("eve", "correct horse").to_string()),
        ] {
            let fields = [
                ("Content-Type", "application/json"),
                ("Origin", origin),
                ("Sec-Fetch-Site", site),
                (SESSION_FIELD, &ada.session),
            ];
            let answer = world.site.ask(method, &format!("{PATH}/{path}"), &fields, body.as_bytes());
            assert_eq!(answer.code(), (403, "forbidden"), "{origin} {site} {method} {path}");
        }
    }
    let form = [("Content-Type", "application/x-www-form-urlencoded"), (SESSION_FIELD, &*ada.session)];
    let path = format!("{PATH}/items/{item}/bids");
    assert_eq!(world.site.ask("POST", &path, &form, b"amount_cents=100").code(), (400, "bad-request"));
    assert_eq!(world.history(item), Vec::<i64>::new());
    assert_eq!(world.ask(Some(&ada), "GET", "me", &json!(null)).body["name"], "ada", "still logged in");
}

#[test]
fn amounts_are_whole_cents_within_bounds() {
    let world = world();
    let ada = world.register("ada");
    let item = world.offer(&ada, "a chair", 100);
    let fields = [("Content-Type", "application/json"), (SESSION_FIELD, &*ada.session)];
    for amount in [
        "-1",
        "0",
        "-9223372036854775808",
        "9223372036854775807",
        "9223372036854775808",
        "1e3",
        "100.5",
        "100.0",
        "1e400",
        "\"100\"",
        "null",
        "true",
        "[100]",
        "NaN",
        "0x64",
        "99999999999999999999999999",
    ] {
        let body = format!(r#"{{"amount_cents":{amount}}}"#);
        let answer = world.site.ask("POST", &format!("{PATH}/items/{item}/bids"), &fields, body.as_bytes());
        assert_eq!(answer.code(), (400, "bad-request"), "{amount}");
        let body =
            format!(r#"{{"name":"a","description":"","minimum_cents":{amount},"expires_ms":{}}}"#, START_MS + 5000);
        let answer = world.site.ask("POST", &format!("{PATH}/items"), &fields, body.as_bytes());
        assert_eq!(answer.code(), (400, "bad-request"), "{amount}");
    }
    assert_eq!(world.bid(&ada, item, MAX_AMOUNT_CENTS + 1).code(), (400, "bad-request"));
    assert_eq!(world.bid(&ada, item, MAX_AMOUNT_CENTS).status, 200);
    assert_eq!(world.bid(&ada, item, MAX_AMOUNT_CENTS).code(), (409, "outbid"), "the end of all bidding");
}

#[test]
fn bodies_of_another_shape_or_size_are_refused() {
    let world = world();
    let ada = world.register("ada");
    let fields = [("Content-Type", "application/json"), (SESSION_FIELD, &*ada.session)];
    let post = |path: &str, body: &[u8]| world.site.ask("POST", &format!("{PATH}/{path}"), &fields, body);
    let deep = "[".repeat(10_000);
    for body in ["", "null", "[]", "{}", "\0", "{\"name\":\"a\"", "{\"__proto__\":{}}", deep.as_str()] {
        for path in ["register", "log-in", "items"] {
            assert_eq!(post(path, body.as_bytes()).code(), (400, "bad-request"), "{path} {body:.20}");
        }
    }
    assert_eq!(post("items", b"{\"name\":\"\xff\"}").code(), (400, "bad-request"));
    let mut item = world.new_item("a", 1);
    item["owner"] = json!("eve");
    assert_eq!(post("items", item.to_string().as_bytes()).code(), (400, "bad-request"), "nobody offers for others");
    let long = world.new_item(&"a".repeat(MAX_ITEM_NAME_CHARS + 1), 1).to_string();
    assert_eq!(post("items", long.as_bytes()).code(), (400, "bad-request"));
    let huge = world.new_item(&"a".repeat(70_000), 1).to_string();
    assert_eq!(post("items", huge.as_bytes()).code(), (413, "body-too-large"));
}

#[test]
fn paths_that_are_none_are_told_apart_from_items_that_are_gone() {
    let world = world();
    for path in ["", "/", "/items/", "/items/1/bids/2", "/items/1/", "/ITEMS", "/me/x", "/admin"] {
        assert_eq!(world.site.get(&format!("{PATH}{path}")).status, 404, "{path}");
    }
    for id in ["1", "-1", "x", "9223372036854775808", "1%27--", "%00"] {
        assert_eq!(world.site.get(&format!("{PATH}/items/{id}")).code(), (404, "not-found"), "{id}");
    }
    assert_eq!(world.site.get(&format!("{PATH}/register")).code(), (405, "method-not-allowed"));
    assert_eq!(world.ask(None, "POST", "me", &json!({})).code(), (405, "method-not-allowed"));
}

#[test]
fn one_account_has_a_limit_of_items() {
    let world = world();
    let (ada, bob) = (world.register("ada"), world.register("bob"));
    let items: Vec<i64> = (0..MAX_ITEMS_OF_ACCOUNT).map(|n| world.offer(&ada, &format!("item {n}"), 1)).collect();
    let more = || world.ask(Some(&ada), "POST", "items", &world.new_item("one more", 1));
    assert_eq!(more().code(), (429, "limit-reached"));
    world.offer(&bob, "another's", 1);
    assert_eq!(world.ask(Some(&ada), "DELETE", &format!("items/{}", items[0]), &json!(null)).status, 200);
    assert_eq!(more().status, 200);
}

#[test]
fn one_account_bids_at_a_pace() {
    let world = world();
    let (ada, bob) = (world.register("ada"), world.register("bob"));
    let item = world.offer(&bob, "a chair", 1);
    // Many more than may be at once, should the machine be so slow that places come back.
    let mut bids = (1..10_000).map(|amount| world.bid(&ada, item, amount));
    let refused = bids.find(|answer| answer.status != 200).unwrap();
    assert_eq!(refused.code(), (429, "limit-reached"));
    assert!(refused.head.contains("Retry-After: 1"), "{}", refused.head);
    assert_eq!(world.bid(&bob, item, 10_000).status, 200, "others bid");
}

/// Logging out is a change of the house, which nobody causes with a session that is none.
#[test]
fn whoever_is_not_logged_in_changes_nothing_by_logging_out() {
    let world = world();
    let ada = world.register("ada");
    let version = || world.site.get(&format!("{PATH}/items")).body["version"].as_i64().unwrap();
    let before = version();
    let mut forged = ada.clone();
    forged.session = "0".repeat(64);
    for who in [None, Some(&forged)] {
        assert_eq!(world.ask(who, "POST", "log-out", &json!({})).status, 200);
    }
    assert_eq!(version(), before);
    assert_eq!(world.ask(Some(&ada), "POST", "log-out", &json!({})).status, 200);
    assert_eq!(version(), before + 1);
}
