//! What the tests of several modules need.

use crate::effect::{Context, Effect, Output, Time};
use crate::exchange::{Exchange, Silence};
use crate::gate::Gate;
use crate::rules::Rules;
use crate::site::{Guests, Site};
use crate::spread::Spread;
use pushlab_log::{Limits, MemoryLog, Publication};
use pushlab_wire::cursor::Epoch;
use pushlab_wire::fields::FieldList;
use std::sync::Arc;
use std::time::Duration;

/// So many publications, each longer than the one before.
pub fn publications(count: u64) -> Vec<Arc<Publication>> {
    let mut log = MemoryLog::new(Epoch::from_number(1), Limits::default());
    (0..count).map(|i| log.append("a", &"1".repeat(1 + i as usize), None, 0).unwrap()).collect()
}

pub const NOTHING_HEARD: Silence = Silence { has_queued: false, has_partial: false, is_long: true };

/// An exchange, and the world as it sees it.
pub struct Server {
    pub exchange: Exchange,
    pub rules: Rules,
    pub output: Output,
    pub is_draining: bool,
    pub time: Time,
    /// It was given a head of HTTP/2.
    is_http2: bool,
}

impl Server {
    pub fn new() -> Self {
        let second = Duration::from_secs(1);
        let rules = Rules {
            gate: Gate { site: Site { guests: Guests::Everybody, ..Site::default() }, ..Gate::default() },
            has_application: false,
            echoes: false,
            is_tls: false,
            max_head_bytes: 1000,
            max_body_bytes: 1000,
            max_message_bytes: 1000,
            max_channels: 4,
            max_reply_bytes: 1000,
            max_wait: second,
            compression_from: None,
            head_timeout: second,
            answer_timeout: second,
            write_timeout: second,
            idle_timeout: second,
            heartbeat: second,
            first_heartbeat: second,
        };
        let (exchange, output) = (Exchange::default(), Output::default());
        Self { exchange, rules, output, is_draining: false, time: Time::default(), is_http2: false }
    }

    /// What it says in one step, and what it needs then. Nothing is said in the form of another version.
    pub fn step(&mut self, with: impl FnOnce(&mut Exchange, &mut Context<'_>) -> Effect) -> (String, Effect) {
        let epoch = Epoch::parse("new").unwrap();
        self.output.bytes.clear();
        self.output.head.clear();
        self.output.is_interim = false;
        self.output.patience = None;
        // Whoever is sent away first comes back after 618 ms.
        let mut spread = Spread::new(Duration::from_secs(1), 0);
        let (drain, time, output) = (self.is_draining.then_some(&mut spread), self.time, &mut self.output);
        let (rules, peer, is_leaving) = (&self.rules, None, false);
        let mut cx = Context { rules, peer, is_leaving, drain, time, epoch, offered_to: 7, receipt: None, output };
        let effect = with(&mut self.exchange, &mut cx);
        let said = String::from_utf8_lossy(&self.output.bytes).into_owned();
        if self.is_http2 {
            assert!(!said.contains("HTTP/1.1 ") && !said.contains("\r\n"), "{said:?}");
        } else {
            assert!(self.output.head.is_empty() && !self.output.is_interim, "{:?}", self.output);
        }
        (said, effect)
    }

    pub fn receive(&mut self, bytes: &[u8]) -> (String, Effect) {
        let mut bytes = bytes.to_vec();
        self.step(|exchange, cx| exchange.receive(&mut bytes, cx).1)
    }

    pub fn receive_head(&mut self, fields: &FieldList, has_ended: bool) -> (String, Effect) {
        self.is_http2 = true;
        self.step(|exchange, cx| exchange.receive_head(fields, has_ended, cx))
    }

    pub fn expire(&mut self) -> (String, Effect) {
        self.step(|exchange, cx| exchange.expire(NOTHING_HEARD, cx))
    }

    pub fn park(&mut self) {
        let _ = self.step(|exchange, cx| {
            exchange.park(cx);
            Effect::Nothing
        });
    }
}
