//! Stock prices that a back end publishes: a dozen invented companies, each a geometric random walk.
//!
//! `GET /api/demos/ticker` answers `{"cursor":CURSOR,"stocks":[{"symbol","name","price_cents","open_cents"}]}`. The
//! channel [`CHANNEL`] has one message for each step, `[N,[[SYMBOL,PRICE_CENTS],…],SENT_MS]`, with every stock and the
//! instant at which it was sent. Prices move and are published under the lock under which a snapshot reads them and the cursor, so the snapshot has the steps up
//! to its cursor and none after: who subscribes after the cursor gets each later step once.

use crate::clock;
use crate::lock::lock;
use crate::repeating::Repeating;
use crate::telling::tell;
use pushlab_application::requests::{self, Answer, Refusal};
use pushlab_application::routes::Routes;
use pushlab_application::{Application, Publisher, Request, Response};
use pushlab_wire::codes::ErrorCode;
use serde::Serialize;
use std::f64::consts::TAU;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::time::Duration;

/// Where prices are published.
pub const CHANNEL: &str = "demo.ticker";
/// Time between two steps: four a second. Five minutes of history, the server's default, are 0.5 MiB.
pub const INTERVAL: Duration = Duration::from_millis(250);

/// Standard deviation of one step's return. At four steps a second the price wanders about 1.5 % in a minute.
const STEP_DEVIATION: f64 = 0.001;
/// A price stays within its opening price divided and multiplied by this, however long the server runs.
const MAX_RATIO: f64 = 10.0;

/// Symbol, name, opening price in cents.
const COMPANIES: [(&str, &str, u32); 12] = [
    ("ALPN", "Alpenglow Optics", 8_412),
    ("BRKW", "Breakwater Shipping", 3_127),
    ("CNDR", "Cinder & Daughters Foundries", 15_960),
    ("DRFT", "Driftless Dairies", 2_245),
    ("EMBR", "Emberlight Power", 6_733),
    ("FJRD", "Fjordline Ferries", 11_080),
    ("GRVL", "Gravel Road Bicycles", 4_518),
    ("HZLW", "Hazelwood Paper", 1_892),
    ("KSTR", "Kestrel Aerial Survey", 27_340),
    ("LNTN", "Lanternfish Robotics", 19_475),
    ("MRSH", "Marsh Harrier Insurance", 5_206),
    ("QRRY", "Quarry Lane Stone", 7_651),
];

static ROUTES: LazyLock<Routes<Ticker>> =
    LazyLock::new(|| Routes::new(&[("GET", "/api/demos/ticker", |ticker, _, _| ticker.snapshot())]));

/// The demonstration. Its back end runs from the server's start until this is dropped.
pub struct Ticker {
    seed: u64,
    interval: Duration,
    running: OnceLock<(Arc<Exchange>, Repeating)>,
}

/// The market and the way out of it.
struct Exchange {
    market: Mutex<Market>,
    publisher: Publisher,
}

/// Prices. The same seed gives the same prices.
#[derive(Debug)]
struct Market {
    random: fastrand::Rng,
    /// Steps that were published.
    steps: u64,
    /// In cents, with their fractions, in the order of [`COMPANIES`].
    prices: [f64; COMPANIES.len()],
}

#[derive(Serialize)]
struct Snapshot {
    cursor: String,
    stocks: Vec<Stock>,
}

#[derive(Serialize)]
struct Stock {
    symbol: &'static str,
    name: &'static str,
    price_cents: u64,
    open_cents: u32,
}

impl Default for Ticker {
    fn default() -> Self {
        Self::new(fastrand::u64(..), INTERVAL)
    }
}

impl Ticker {
    /// A ticker whose prices follow from the seed, with a step every interval.
    pub fn new(seed: u64, interval: Duration) -> Self {
        Self { seed, interval, running: OnceLock::new() }
    }

    fn snapshot(&self) -> Answer {
        let Some((exchange, _)) = self.running.get() else {
            return Err(Refusal::new(
                ErrorCode::InternalError,
                "the ticker did not start; the server's output says why",
            ));
        };
        let market = lock(&exchange.market);
        let cursor = exchange.publisher.head().to_string();
        let stocks = COMPANIES.iter().zip(market.prices);
        let stocks = stocks.map(|(&(symbol, name, open_cents), price)| Stock {
            symbol,
            name,
            price_cents: cents(price),
            open_cents,
        });
        Ok(requests::json(&Snapshot { cursor, stocks: stocks.collect() }))
    }
}

impl Application for Ticker {
    fn begin(&self, publisher: Publisher) {
        let exchange = Arc::new(Exchange { market: Mutex::new(Market::new(self.seed)), publisher });
        let moved = exchange.clone();
        match Repeating::start("pushlab-ticker", self.interval, move || moved.step()) {
            // It begins once.
            Ok(thread) => drop(self.running.set((exchange, thread))),
            Err(error) => tell(format_args!("the ticker has no thread: {error}")),
        }
    }

    fn answer(&self, request: &Request) -> Option<Response> {
        ROUTES.answer(self, request).map(requests::respond)
    }
}

impl Exchange {
    fn step(&self) {
        let mut market = lock(&self.market);
        market.step();
        // A step that an overloaded server refuses is no loss: the next has every price.
        if self.publisher.publish(CHANNEL, &market.message(clock::now_ms())).is_ok() {
            market.steps += 1;
        }
    }
}

impl Market {
    fn new(seed: u64) -> Self {
        let prices = COMPANIES.map(|(_, _, open_cents)| f64::from(open_cents));
        Self { random: fastrand::Rng::with_seed(seed), steps: 0, prices }
    }

    fn step(&mut self) {
        for (price, (_, _, open_cents)) in self.prices.iter_mut().zip(COMPANIES) {
            // The drift takes back what the mean of a lognormal factor has above 1: no price rises by itself.
            let drift = -STEP_DEVIATION * STEP_DEVIATION / 2.0;
            *price *= (drift + STEP_DEVIATION * normal(&mut self.random)).exp();
            let open = f64::from(open_cents);
            *price = price.clamp(open / MAX_RATIO, open * MAX_RATIO);
        }
    }

    fn message(&self, sent_ms: f64) -> String {
        let prices = COMPANIES.iter().zip(self.prices).map(|((symbol, ..), price)| (symbol, cents(price)));
        let message = (self.steps + 1, prices.collect::<Vec<_>>(), sent_ms);
        serde_json::to_string(&message).expect("numbers and text always serialise")
    }
}

fn cents(price: f64) -> u64 {
    price.round() as u64
}

/// A number from the standard normal distribution (Box and Muller 1958).
fn normal(random: &mut fastrand::Rng) -> f64 {
    // Above zero, so that its logarithm is finite.
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    radius * (TAU * random.f64()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_follow_from_the_seed() {
        let walk = |seed| {
            let mut market = Market::new(seed);
            (0..100).for_each(|_| market.step());
            market.message(0.0)
        };
        assert_eq!(walk(1), walk(1));
        assert_ne!(walk(1), walk(2));
    }

    #[test]
    fn a_message_has_its_number_and_every_price() {
        let market = Market::new(7);
        let message = market.message(1_700_000_000_000.123);
        assert!(message.starts_with(r#"[1,[["ALPN",8412],["BRKW",3127],"#), "{message}");
        assert!(message.ends_with("]],1700000000000.123]"), "{message}");
        assert!(message.len() < 256, "five minutes of them stay small");
        assert_eq!(message.matches("[\"").count(), COMPANIES.len());
    }

    /// Their logarithms have the mean and deviation that the constants say, and never leave the bounds.
    #[test]
    fn returns_are_what_they_should_be() {
        let mut market = Market::new(3);
        let mut returns = Vec::new();
        for _ in 0..5_000 {
            let before = market.prices;
            market.step();
            returns.extend(market.prices.iter().zip(before).map(|(after, before)| (after / before).ln()));
        }
        let count = returns.len() as f64;
        let mean = returns.iter().sum::<f64>() / count;
        let deviation = (returns.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / count).sqrt();
        // Four standard errors of either.
        assert!(mean.abs() < 4.0 * STEP_DEVIATION / count.sqrt(), "{mean}");
        assert!((deviation / STEP_DEVIATION - 1.0).abs() < 4.0 / (2.0 * count).sqrt(), "{deviation}");
    }

    #[test]
    fn prices_stay_within_their_bounds() {
        let mut market = Market::new(5);
        let opened = f64::from(COMPANIES[0].2);
        market.prices[0] = opened * MAX_RATIO;
        market.prices[1] = f64::from(COMPANIES[1].2) / MAX_RATIO;
        for _ in 0..1_000 {
            market.step();
            for (price, (symbol, _, open_cents)) in market.prices.iter().zip(COMPANIES) {
                let open = f64::from(open_cents);
                assert!((open / MAX_RATIO..=open * MAX_RATIO).contains(price), "{symbol} {price}");
            }
        }
        assert!(market.prices[0] < opened * MAX_RATIO, "and move on from there");
    }
}
