//! Pages and their files, and who gets none.

use crate::harness::Place;
use pushlab_server::Site;

#[test]
fn every_page_is_the_same_file_under_a_strict_policy() {
    let place = Place::new("pages");
    let first = place.get("/");
    assert_eq!((first.status, first.field("content-type")), (200, Some("text/html; charset=utf-8")));
    for path in ["/live", "/compare?baseline=1", "/new", "/measure", "/demos", "/demos/auction"] {
        assert_eq!(place.get(path).body, first.body, "{path}");
    }
    let policy = first.field("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'self';") && policy.contains("frame-ancestors 'none'"), "{policy}");
    assert!(!policy.contains("script-src"), "scripts are those of the default: {policy}");
    let script = place.get("/assets/console.js");
    assert_eq!((script.status, script.field("content-type")), (200, Some("text/javascript; charset=utf-8")));
    for unknown in ["/assets/other.js", "/assets/../console.js", "/demos/none", "/live/", "/api/none", "/reports"] {
        assert_eq!(place.get(unknown).refused(), (404, "unknown-path".to_owned()), "{unknown}");
    }
    let posted = place.post("/", &serde_json::json!({}));
    assert_eq!((posted.refused(), posted.field("allow")), ((405, "method-not-allowed".to_owned()), Some("GET")));
}

#[test]
fn a_file_that_is_known_is_not_sent_again() {
    let place = Place::new("tags");
    let first = place.get("/assets/console.js");
    assert_eq!(first.field("cache-control"), Some("no-cache"));
    let tag = first.field("etag").unwrap();
    let again = place.ask("GET", "/assets/console.js", &format!("If-None-Match: \"x\", {tag}\r\n"), "");
    assert_eq!((again.status, again.body.as_str(), again.field("etag")), (304, "", Some(tag)));
    assert_eq!(place.ask("GET", "/assets/console.js", "If-None-Match: \"x\"\r\n", "").status, 200);
    assert_ne!(place.get("/assets/console.css").field("etag"), Some(tag));
}

#[test]
fn what_a_host_may_be_in_a_policy_is_checked() {
    let place = Place::new("policy");
    let policy = |host: &str| {
        let answer = place.ask_host("GET", "/", &format!("Host: {host}\r\n"), "");
        answer.field("content-security-policy").unwrap_or_default().to_owned()
    };
    assert!(policy("lab.example:8080").contains("connect-src 'self' ws://lab.example:8080 wss://lab.example:8080;"));
    assert!(!policy("x; script-src *").contains("script-src"));
}

/// A proxy that changes `Host` hides by which name the pages connect.
#[test]
fn named_pages_may_connect_to_where_they_are_from() {
    let named = ["https://push.example", "http://localhost:9000"];
    let place = Place::with("named-policy", |config| config.origins = named.map(|url| url.parse().unwrap()).to_vec());
    let page = place.ask_host("GET", "/", "Host: behind:8080\r\n", "");
    let policy = page.field("content-security-policy").unwrap();
    let sockets = "connect-src 'self' ws://behind:8080 wss://behind:8080 wss://push.example ws://localhost:9000;";
    assert!(policy.contains(sockets), "{policy}");
}

#[test]
fn on_a_loopback_address_only_its_names_are_answered() {
    let site =
        Site { is_loopback_only: true, origins: vec!["https://push.example".parse().unwrap()], ..Site::default() };
    let place = Place::with_site("hosts", site, |_| {});
    let status = |host: &str| place.ask_host("GET", "/api/about", &format!("Host: {host}\r\n"), "").status;
    for good in ["localhost", "LOCALHOST:8080", "127.0.0.1", "127.0.0.1:8080", "[::1]", "[::1]:8080", "push.example"] {
        assert_eq!(status(good), 200, "{good}");
    }
    for bad in
        ["evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "[::2]"]
    {
        assert_eq!(status(bad), 403, "{bad}");
    }
    assert_eq!(place.ask_host("GET", "/", "Host: evil.example\r\n", "").refused(), (403, "forbidden".to_owned()));
    assert_eq!(place.ask_host("GET", "/nothing", "Host: evil.example\r\n", "").status, 403);
    let open = Place::new("hosts-open");
    assert_eq!(open.ask_host("GET", "/api/about", "Host: lab.example\r\n", "").status, 200);
}

#[test]
fn about_says_what_may_be_done() {
    let place = Place::with("about", |config| config.demos = vec!["chat".to_owned()]);
    let about = place.get("/api/about").json();
    assert_eq!((&about["can_run"], &about["can_store"]), (&false.into(), &true.into()));
    assert_eq!(about["demos"], serde_json::json!(["chat"]));
    assert_eq!(about["live_channel"], "console.live");
    assert_eq!(about["transports"][4], "polling");
}
