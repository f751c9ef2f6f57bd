//! The demonstrations: a ticker, a chat and an auction house, served beside the transports they use.
//!
//! [`Demos`] is an [`Application`]: given to a server it answers below `/api/demos/` and publishes on channels that
//! begin with [`CHANNELS`], which the server must keep for it.

// A server goes on where nobody hears it.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod allowance;
pub mod auction;
pub mod chat;
mod clock;
mod lock;
mod refusals;
mod repeating;
mod telling;
pub mod ticker;

use pushlab_application::requests;
use pushlab_application::routes::Routes;
use pushlab_application::{Application, Publisher, Request, Response};
use serde_json::json;
use std::sync::LazyLock;

/// What the names of all channels of the demonstrations begin with.
pub const CHANNELS: &str = "demo.";

/// What the clock shows by which messages are dated: a page compares it with its own.
static ROUTES: LazyLock<Routes<Demos>> = LazyLock::new(|| {
    Routes::new(&[("GET", "/api/demos/time", |_, _, _| Ok(requests::json(&json!({ "now_ms": clock::now_ms() }))))])
});

/// The three demonstrations. Their threads begin with the server and end when this is dropped.
pub struct Demos([Box<dyn Application>; 3]);

impl Demos {
    /// Ticker and chat as they are by default, and this auction house.
    pub fn new(auction: impl Application + 'static) -> Self {
        Self([Box::new(ticker::Ticker::default()), Box::new(chat::Chat::default()), Box::new(auction)])
    }
}

impl Application for Demos {
    fn begin(&self, publisher: Publisher) {
        self.0.iter().for_each(|demo| demo.begin(publisher.clone()));
    }

    fn answer(&self, request: &Request) -> Option<Response> {
        let time = ROUTES.answer(self, request).map(requests::respond);
        time.or_else(|| self.0.iter().find_map(|demo| demo.answer(request)))
    }

    fn may_wait(&self, request: &Request) -> bool {
        self.0.iter().any(|demo| demo.may_wait(request))
    }
}
