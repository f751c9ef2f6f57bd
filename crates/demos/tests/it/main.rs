//! The demonstrations on a real server, over real sockets.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod auction;
mod bidders;
mod chat;
mod databases;
mod engines;
mod harness;
mod proxy;
mod ticker;

use harness::{Site, now_ms, wait_until};
use pushlab_application::{Application, Request, Response};
use pushlab_demos::Demos;
use std::sync::Arc;
use std::time::Duration;

/// Stands where the auction house would: what is tested here needs no database.
struct Empty;

impl Application for Empty {
    fn answer(&self, _: &Request) -> Option<Response> {
        None
    }
}

#[test]
fn each_demonstration_answers_below_its_path() {
    let site = Site::start(Demos::new(Empty));
    assert_eq!(site.get("/api/demos/ticker").status, 200);
    assert_eq!(site.get("/api/demos/chat/rooms").status, 200);
    assert_eq!(site.get("/api/demos/chat/no-such").code(), (404, "unknown-path"));
    assert_eq!(site.get("/api/demos/no-such").code(), (404, "unknown-path"));
    assert_eq!(site.post("/api/demos/ticker", "{}").code(), (405, "method-not-allowed"));
    assert_eq!(site.get("/api/demos/chat/say").code(), (405, "method-not-allowed"));
}

/// Messages are dated by the clock that a page can read, so that it can compare it with its own.
#[test]
fn the_clock_can_be_read() {
    let site = Site::start(Demos::new(Empty));
    let before = now_ms();
    let time = site.get("/api/demos/time");
    let shown = time.body["now_ms"].as_f64().unwrap();
    // Whole microseconds, so it may be one behind.
    assert!((before - 0.001..=now_ms()).contains(&shown), "{before} {shown}");
    assert!(time.head.contains("Cache-Control: no-store"), "{}", time.head);
    assert_eq!(site.post("/api/demos/time", "{}").code(), (405, "method-not-allowed"));
}

/// Their threads hold nothing that would keep them, or the server, from ending.
#[test]
fn demonstrations_end_with_their_server() {
    let demos = Arc::new(Demos::new(Empty));
    let left = Arc::downgrade(&demos);
    let site = Site::start_shared(demos);
    assert_eq!(site.get("/api/demos/ticker").status, 200);
    site.stop();
    wait_until("the demonstrations are gone", Duration::from_secs(20), || left.upgrade().is_none());
}
