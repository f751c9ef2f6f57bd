//! An auction house on a server, and those who bid there.

use super::Empty;
use super::harness::{Answer, Site};
use pushlab_application::{Application, Request};
use pushlab_demos::Demos;
use pushlab_demos::auction::{Auction, PATH, SESSION_FIELD};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// The instant at which the tests' clocks begin, milliseconds since 1970.
pub const START_MS: i64 = 1_700_000_000_000;

/// A house whose clock goes when it is told to.
pub struct World {
    pub site: Site,
    pub auction: Arc<Auction>,
    clock: Arc<AtomicI64>,
}

/// Somebody with an account.
#[derive(Clone)]
pub struct Person {
    /// The token of a session.
    pub session: String,
}

impl World {
    pub fn open(url: &str) -> Self {
        Self::open_at(url, START_MS)
    }

    pub fn open_at(url: &str, now_ms: i64) -> Self {
        let clock = Arc::new(AtomicI64::new(now_ms));
        let read = clock.clone();
        let auction = Arc::new(Auction::open_at(url, Arc::new(move || read.load(Ordering::SeqCst))).unwrap());
        // The other demonstrations beside it, as they are on a server.
        let all: Vec<Arc<dyn Application>> = vec![auction.clone(), Arc::new(Demos::new(Empty))];
        Self { site: Site::start(all), auction, clock }
    }

    pub fn now_ms(&self) -> i64 {
        self.clock.load(Ordering::SeqCst)
    }

    pub fn pass(&self, ms: i64) {
        self.clock.fetch_add(ms, Ordering::SeqCst);
    }

    /// A request over the network, as a page of the server sends it.
    pub fn ask(&self, who: Option<&Person>, method: &str, path: &str, body: &Value) -> Answer {
        let origin = format!("http://{}", self.site.host());
        let session = who.map_or_else(String::new, |person| person.session.clone());
        let fields = [
            ("Content-Type", "application/json"),
            ("Origin", &*origin),
            ("Sec-Fetch-Site", "same-origin"),
            (SESSION_FIELD, &*session),
        ];
        self.site.ask(method, &format!("{PATH}/{path}"), &fields, body.to_string().as_bytes())
    }

    pub fn register(&self, name: &str) -> Person {
        let answer = self.ask(None, "POST", "register", &json!({ "name": name, "password": "correct horse" }));
        assert_eq!((answer.status, answer.text("name")), (200, name.to_owned()), "{answer:?}");
        Person { session: answer.text("session") }
    }

    /// An item whose auction lasts an hour, and its number.
    pub fn offer(&self, owner: &Person, name: &str, minimum_cents: i64) -> i64 {
        let new = self.new_item(name, minimum_cents);
        let answer = self.ask(Some(owner), "POST", "items", &new);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body["item"]["id"].as_i64().unwrap()
    }

    pub fn new_item(&self, name: &str, minimum_cents: i64) -> Value {
        let expires_ms = self.now_ms() + 3_600_000;
        json!({ "name": name, "description": "", "minimum_cents": minimum_cents, "expires_ms": expires_ms })
    }

    pub fn bid(&self, who: &Person, item: i64, amount_cents: i64) -> Answer {
        self.ask(Some(who), "POST", &format!("items/{item}/bids"), &json!({ "amount_cents": amount_cents }))
    }

    /// The same without the network in between.
    pub fn bid_directly(&self, who: &Person, item: i64, amount_cents: i64) -> (u16, Value) {
        let fields = [("content-type", "application/json"), (SESSION_FIELD, &*who.session)];
        let request = Request {
            method: "POST".to_owned(),
            path: format!("{PATH}/items/{item}/bids"),
            query: Vec::new(),
            fields: fields.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            body: json!({ "amount_cents": amount_cents }).to_string().into_bytes(),
            peer: [127, 0, 0, 1].into(),
            is_tls: false,
            person: None,
        };
        let response = self.auction.answer(&request).unwrap();
        (response.status, serde_json::from_slice(response.body.as_bytes()).unwrap())
    }

    /// The amounts of an item's bids, the first bid first.
    pub fn history(&self, item: i64) -> Vec<i64> {
        let answer = self.site.get(&format!("{PATH}/items/{item}"));
        assert_eq!(answer.status, 200, "{answer:?}");
        let history = answer.body["history"].as_array().unwrap();
        let numbers: Vec<i64> = history.iter().rev().map(|bid| bid["number"].as_i64().unwrap()).collect();
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
        let bids = answer.body["item"]["bids"].as_i64().unwrap();
        assert_eq!(numbers.last().copied().unwrap_or_default(), bids, "{answer:?}");
        history.iter().rev().map(|bid| bid["amount_cents"].as_i64().unwrap()).collect()
    }

    /// Where whoever loads the house now goes on.
    pub fn cursor(&self) -> String {
        self.site.get(&format!("{PATH}/items")).text("cursor")
    }

    /// What was told after a cursor, until it is enough.
    pub fn told(&self, after: &str, is_enough: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let told = self.site.deliveries("channel=demo.auction", after, is_enough);
        let versions: Vec<i64> = told.iter().map(|m| m["item"]["version"].as_i64().unwrap()).collect();
        assert!(versions.windows(2).all(|pair| pair[0] < pair[1]), "in the order of the commits: {versions:?}");
        told
    }
}

/// The amounts of the bids on an item that were told.
pub fn amounts(told: &[Value], item: i64) -> Vec<i64> {
    let bids = told.iter().filter(|m| m["kind"] == "bid" && m["item"]["id"] == item);
    bids.map(|m| m["item"]["leading"]["amount_cents"].as_i64().unwrap()).collect()
}
