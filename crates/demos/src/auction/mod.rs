//! The auction house: accounts, items with an expiry, bids, and everybody told of each.
//!
//! [`Auction`] answers below [`PATH`] and publishes on [`CHANNEL`]. All that lasts is in a database; `docs/demos.md`
//! has the requests and messages.

mod announcer;
mod change;
mod database;
mod house;
mod model;
mod passwords;
mod schema;
mod values;

pub use announcer::CHANNEL;
pub use database::{BadLocation, Failure, Location};
pub use house::{Clock, KEEP_ENDED_MS, MAX_ACCOUNTS, MAX_HISTORY, MAX_ITEMS, MAX_ITEMS_OF_ACCOUNT, MAX_SESSIONS};
pub use model::{Bid, Item, Kind, Leading, OwnBid, SESSION_MS};
pub use passwords::{
    HashError, LOG_IN_INTERVAL, MAX_FAILURES, MAX_HASHES, MAX_LOG_INS, MAX_REGISTRATIONS, MAX_WAITING,
    REGISTRATION_INTERVAL, RETRY_INTERVAL,
};
pub use values::{
    MAX_ACCOUNT_NAME_CHARS, MAX_AMOUNT_CENTS, MAX_AUCTION_MS, MAX_DESCRIPTION_CHARS, MAX_ITEM_NAME_CHARS,
    MAX_PASSWORD_CHARS, MIN_ACCOUNT_NAME_CHARS, MIN_AUCTION_MS, MIN_PASSWORD_CHARS,
};

use crate::allowance::{Allowances, Peer};
use crate::clock;
use crate::lock::lock;
use crate::refusals::{failed, unknown_path};
use crate::repeating::Repeating;
use crate::telling::tell;
use announcer::{Announcer, LOOK_INTERVAL};
use house::House;
use model::{Account, HouseError};
use passwords::Passwords;
use pushlab_application::requests::{Answer, Refusal, body, json, respond};
use pushlab_application::routes::{Route, Routes};
use pushlab_application::secret::Secret;
use pushlab_application::{Application, Publisher, Request, Response};
use pushlab_wire::codes::ErrorCode;
use serde::Deserialize;
use serde_json::json as value;
use sha2::{Digest, Sha256};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::time::{Duration, Instant};
use thiserror::Error;
use values::{AccountName, Cents, Offer, Password};

/// All requests are below it.
pub const PATH: &str = "/api/demos/auction";

const TABLE: &[Route<Auction>] = &[
    ("GET", "/api/demos/auction/me", |auction, request, _| auction.me(request)),
    ("POST", "/api/demos/auction/register", |auction, request, _| auction.register(request)),
    ("POST", "/api/demos/auction/log-in", |auction, request, _| auction.log_in(request)),
    ("POST", "/api/demos/auction/log-out", |auction, request, _| auction.log_out(request)),
    ("GET", "/api/demos/auction/own-bids", |auction, request, _| auction.own_bids(request)),
    ("GET", "/api/demos/auction/items", |auction, _, _| auction.items()),
    ("POST", "/api/demos/auction/items", |auction, request, _| auction.add(request)),
    ("GET", "/api/demos/auction/items/{id}", |auction, _, id| auction.item(number(id)?)),
    ("DELETE", "/api/demos/auction/items/{id}", |auction, request, id| auction.remove(request, number(id)?)),
    ("POST", "/api/demos/auction/items/{id}/bids", |auction, request, id| auction.bid(request, number(id)?)),
];

static ROUTES: LazyLock<Routes<Auction>> = LazyLock::new(|| Routes::new(TABLE));

/// The field with a session's token. Browsers would send a cookie to every port of the host, whoever listens there.
pub const SESSION_FIELD: &str = "Auction-Session";

/// Items that one account offers or removes, and bids that it makes, at once: 100, and then one every
/// [`CHANGE_INTERVAL`]. Each is a commit, and a message to all.
pub const MAX_CHANGES: u32 = 100;
/// Ten a second.
pub const CHANGE_INTERVAL: Duration = Duration::from_millis(100);

/// After which time to try again while the database is away.
const RETRY_AFTER: Duration = database::MAX_BACKOFF;

/// The auction house as an application of the server.
pub struct Auction {
    house: Arc<House>,
    passwords: Passwords,
    /// What accounts change, by their numbers.
    changes: Mutex<Allowances<i64>>,
    /// The version of the house at the opening: what comes later is told.
    opened: i64,
    telling: OnceLock<Telling>,
}

struct Telling {
    publisher: Publisher,
    announcer: Repeating,
}

/// Why the auction house does not open.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The URL names no database.
    #[error(transparent)]
    Location(#[from] BadLocation),
    /// The database cannot be used.
    #[error("the auction house's database {label}: {failure}")]
    Database {
        /// Where it is, without whom to log in as.
        label: String,
        /// What it does.
        failure: Failure,
    },
    /// Passwords cannot be kept.
    #[error(transparent)]
    Hash(#[from] HashError),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Credentials {
    name: String,
    password: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewItem {
    name: String,
    description: String,
    minimum_cents: i64,
    expires_ms: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewBid {
    amount_cents: i64,
}

impl Auction {
    /// Opens the house whose database is at this URL: `sqlite:PATH`, `sqlite::memory:`, which ends with the program,
    /// `mysql://USER:PASSWORD@HOST:PORT/DATABASE` (MariaDB too) or `postgres://USER:PASSWORD@HOST:PORT/DATABASE`.
    /// Tables are made where there are none.
    pub fn open(url: &str) -> Result<Self, OpenError> {
        Self::open_at(url, Arc::new(|| clock::now_ms() as i64))
    }

    /// The same by another clock, in milliseconds since 1970.
    pub fn open_at(url: &str, clock: Clock) -> Result<Self, OpenError> {
        let location: Location = url.parse()?;
        let label = location.label().to_owned();
        let opened = House::open(location, clock).and_then(|house| Ok((house.version()?, Arc::new(house))));
        let (opened, house) = opened.map_err(|failure| OpenError::Database { label, failure })?;
        let changes = Mutex::new(Allowances::new(MAX_CHANGES, CHANGE_INTERVAL));
        Ok(Self { house, passwords: Passwords::new()?, changes, opened, telling: OnceLock::new() })
    }

    fn me(&self, request: &Request) -> Answer {
        let account = self.session(request)?;
        Ok(json(&value!({ "name": account.map(|account| account.name) })))
    }

    fn register(&self, request: &Request) -> Answer {
        let Credentials { name, password } = body(request)?;
        let (name, password) = (AccountName::parse(&name)?, Password::parse(password)?);
        self.passwords.allow_registration(Peer::from(request.peer))?;
        let hash = self.passwords.hash(&password)?;
        let token = token()?;
        let registered = self.house.register(&name, &hash, &hashed(&token));
        Ok(logged_in(&registered.map_err(|error| self.refusal(error))?, &token))
    }

    fn log_in(&self, request: &Request) -> Answer {
        let Credentials { name, password } = body(request)?;
        let (name, password) = (AccountName::parse(&name)?, Password::parse(password)?);
        let peer = Peer::from(request.peer);
        // First what costs least, last what costs most.
        self.passwords.allow_log_in(peer, &name)?;
        let known = self.house.account(&name).map_err(|failure| self.refusal(failure.into()))?;
        let hash = known.as_ref().map(|(_, hash)| hash.as_str());
        let is_it = self.passwords.check(&password, hash)?;
        let Some((account, _)) = known.filter(|_| is_it) else {
            return Err(Refusal::new(ErrorCode::Unauthorized, "name and password do not belong together"));
        };
        self.passwords.succeeded(peer, &name);
        let token = token()?;
        self.house.begin_session(&account, &hashed(&token)).map_err(|error| self.refusal(error))?;
        Ok(logged_in(&account, &token))
    }

    fn log_out(&self, request: &Request) -> Answer {
        let is_in = self.session(request)?.is_some();
        // A change of the house, so not for whoever sends any token.
        if let Some(token) = session(request).filter(|_| is_in) {
            self.house.end_session(&hashed(token)).map_err(|error| self.refusal(error))?;
        }
        Ok(json(&value!({ "name": null })))
    }

    fn own_bids(&self, request: &Request) -> Answer {
        let account = self.session(request)?.ok_or_else(nobody)?;
        let bids = self.house.bids_of(&account).map_err(|failure| self.refusal(failure.into()))?;
        Ok(json(&value!({ "bids": bids })))
    }

    fn items(&self) -> Answer {
        // The cursor first: what is published between the two comes again, and its version says that it is known.
        let cursor = self.telling.get().map(|telling| telling.publisher.head().to_string());
        let (version, items) = self.house.items().map_err(|failure| self.refusal(failure.into()))?;
        Ok(json(&value!({ "cursor": cursor, "version": version, "items": items })))
    }

    fn item(&self, id: i64) -> Answer {
        let (item, history) = self.house.item(id).map_err(|error| self.refusal(error))?;
        Ok(json(&value!({ "item": item, "history": history })))
    }

    fn add(&self, request: &Request) -> Answer {
        let account = self.account(request)?;
        let new: NewItem = body(request)?;
        let now_ms = self.house.now_ms();
        let offer = Offer::parse(&new.name, &new.description, new.minimum_cents, new.expires_ms, now_ms)?;
        self.changed(self.house.add(&account, &offer))
    }

    fn remove(&self, request: &Request, id: i64) -> Answer {
        let account = self.account(request)?;
        self.changed(self.house.remove(&account, id))
    }

    fn bid(&self, request: &Request, id: i64) -> Answer {
        let account = self.account(request)?;
        let new: NewBid = body(request)?;
        self.changed(self.house.bid(&account, id, Cents::parse(new.amount_cents)?))
    }

    /// Answers a change of an item and has it told. A change of which nothing is known is looked for, too.
    fn changed(&self, done: Result<Item, HouseError>) -> Answer {
        if let Some(telling) = self.telling.get() {
            telling.announcer.wake();
        }
        let item = done.map_err(|error| self.refusal(error))?;
        Ok(json(&value!({ "item": item })))
    }

    /// Whose session the request is of.
    fn session(&self, request: &Request) -> Result<Option<Account>, Refusal> {
        let Some(token) = session(request) else { return Ok(None) };
        self.house.session(&hashed(token)).map_err(|failure| self.refusal(failure.into()))
    }

    /// The same, and it must be somebody's, who is about to change something and may do so.
    fn account(&self, request: &Request) -> Result<Account, Refusal> {
        let account = self.session(request)?.ok_or_else(nobody)?;
        let taken = lock(&self.changes).take(account.id, Instant::now());
        taken.map_err(|wait| {
            let text = "too much in a short time; try again after the seconds in Retry-After";
            Refusal::new(ErrorCode::LimitReached, text).after(wait)
        })?;
        Ok(account)
    }

    /// What is told of an error: of the database its kind, and not where it is; the operator reads the rest.
    fn refusal(&self, error: HouseError) -> Refusal {
        let text = error.to_string();
        let kind = self.house.location().kind();
        match error {
            HouseError::NoItem => Refusal::new(ErrorCode::NotFound, text),
            HouseError::NotOwner => Refusal::new(ErrorCode::Forbidden, text),
            HouseError::NameTaken => Refusal::new(ErrorCode::NameTaken, "somebody has this name; choose another"),
            HouseError::Outbid { leading, least_cents } => {
                Refusal::new(ErrorCode::Outbid, format!("bid {least_cents} cents or more"))
                    .with("leading", value!(leading))
                    .with("least_cents", value!(least_cents))
            }
            HouseError::NoAccount => Refusal::new(ErrorCode::Unauthorized, text),
            HouseError::Expired => Refusal::new(ErrorCode::Expired, text),
            HouseError::Full(_) => Refusal::new(ErrorCode::LimitReached, text),
            HouseError::Database(Failure::Full(_)) => {
                tell(format_args!("auction: the database {}: {text}", self.house.location().label()));
                let text = format!(
                    "the auction house's database ({kind}) has no room left on its disk; nothing was changed, and \
                     nothing can be until its operator has made room"
                );
                Refusal::new(ErrorCode::DatabaseAway, text).after(RETRY_AFTER)
            }
            HouseError::Database(Failure::Refused(_)) => {
                tell(format_args!("auction: the database {}: {text}", self.house.location().label()));
                let text = format!("the auction house's database ({kind}) refused the work; nothing was changed");
                Refusal::new(ErrorCode::DatabaseAway, text).after(RETRY_AFTER)
            }
            HouseError::Database(_) => {
                let text = format!("the auction house's database ({kind}) does not answer; nothing was changed");
                Refusal::new(ErrorCode::DatabaseAway, text).after(RETRY_AFTER)
            }
            HouseError::Unknown(_) => {
                let text = format!(
                    "the auction house's database ({kind}) went away at the last moment, and whether this was done is not \
                     known; look when it is back, before you try again"
                );
                // Whoever tries again by themselves might do it twice.
                Refusal::new(ErrorCode::OutcomeUnknown, text)
            }
        }
    }
}

impl Application for Auction {
    fn begin(&self, publisher: Publisher) {
        let mut announcer = Announcer::new(self.house.clone(), publisher.clone(), self.opened);
        match Repeating::start("auction", LOOK_INTERVAL, move || announcer.turn()) {
            Ok(announcer) => {
                let is_first = self.telling.set(Telling { publisher, announcer }).is_ok();
                debug_assert!(is_first, "a server begins once");
            }
            Err(error) => tell(format_args!("auction: nothing can be announced, because no thread starts: {error}")),
        }
    }

    fn answer(&self, request: &Request) -> Option<Response> {
        let rest = request.path.strip_prefix(PATH)?;
        let is_below = rest.is_empty() || rest.starts_with('/');
        is_below.then(|| respond(ROUTES.answer(self, request).unwrap_or_else(|| Err(unknown_path()))))
    }

    /// For its database, and for the hash of a password.
    fn may_wait(&self, request: &Request) -> bool {
        request.path.starts_with(PATH)
    }
}

fn number(text: &str) -> Result<i64, Refusal> {
    text.parse().map_err(|_| Refusal::new(ErrorCode::NotFound, "an item's number is a whole number"))
}

fn nobody() -> Refusal {
    Refusal::new(ErrorCode::Unauthorized, "nobody is logged in, or the session is over; log in or register first")
}

/// 256 random bits.
fn token() -> Result<String, Refusal> {
    let secret = || Secret::new().map_err(|error| failed("auction", &error));
    Ok(format!("{}{}", secret()?, secret()?))
}

/// What is kept of a token: whoever reads the database cannot go on as somebody. The token is random, so a fast hash
/// is enough.
fn hashed(token: &str) -> String {
    Sha256::digest(token).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn logged_in(account: &Account, token: &str) -> Response {
    json(&value!({ "name": account.name, "session": token }))
}

/// The token of whoever is logged in.
fn session(request: &Request) -> Option<&str> {
    request.fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(SESSION_FIELD)).map(|(_, token)| token.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn post(auction: &Auction, path: &str, address: [u8; 4], name: &str) -> (u16, Value, bool) {
        let request = Request {
            method: "POST".to_owned(),
            path: format!("{PATH}/{path}"),
            query: Vec::new(),
            fields: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: value!({ "name": name, "password": "correct horse" }).to_string().into_bytes(),
            peer: address.into(),
            is_tls: false,
            person: None,
        };
        assert!(auction.may_wait(&request), "its database may hang");
        let response = auction.answer(&request).expect("its own path");
        let has_retry = response.fields.iter().any(|(name, _)| name == "Retry-After");
        let body = serde_json::from_slice(response.body.as_bytes()).expect("an answer");
        (response.status, body, has_retry)
    }

    #[test]
    fn one_address_registers_and_logs_in_at_a_pace() {
        let auction = Auction::open("sqlite::memory:").expect("in memory");
        let (busy, calm) = ([192, 0, 2, 1], [192, 0, 2, 2]);
        let peer = Peer::from(std::net::IpAddr::from(busy));
        while auction.passwords.allow_registration(peer).is_ok() {}
        let (status, body, has_retry) = post(&auction, "register", busy, "ada");
        assert_eq!((status, &body["error"], has_retry), (429, &value!("limit-reached"), true), "{body}");
        assert_eq!(post(&auction, "register", calm, "ada").0, 200, "from elsewhere");
        let names = (0..).map(|n| AccountName::parse(&format!("n{n}")).expect("a good name"));
        let _ = names.take_while(|name| auction.passwords.allow_log_in(peer, name).is_ok()).count();
        let (status, body, has_retry) = post(&auction, "log-in", busy, "ada");
        assert_eq!((status, &body["error"], has_retry), (429, &value!("limit-reached"), true), "{body}");
        assert_eq!(post(&auction, "log-in", calm, "ada").0, 200, "from elsewhere");
    }

    #[test]
    fn whoever_fails_in_somebodys_name_does_not_keep_them_out() {
        let auction = Auction::open("sqlite::memory:").expect("in memory");
        assert_eq!(post(&auction, "register", [192, 0, 2, 1], "ada").0, 200);
        let peer = Peer::from(std::net::IpAddr::from([192, 0, 2, 66]));
        let ada = AccountName::parse("ada").expect("a good name");
        while auction.passwords.allow_log_in(peer, &ada).is_ok() {}
        assert_eq!(post(&auction, "log-in", [192, 0, 2, 66], "ada").0, 429);
        assert_eq!(post(&auction, "log-in", [192, 0, 2, 1], "ada").0, 200);
    }

    #[test]
    fn failures_of_the_database_are_told_as_what_they_are() {
        let auction = Auction::open("sqlite::memory:").expect("in memory");
        let full = HouseError::Database(Failure::Full("on purpose".into()));
        let unknown = HouseError::Unknown(Failure::Away("on purpose".into()));
        for (error, status, code, parts, can_retry) in [
            (full, 503, "database-away", ["no room", "nothing was changed"], true),
            (unknown, 504, "outcome-unknown", ["not known", "before you try again"], false),
        ] {
            let response = Response::from(auction.refusal(error));
            let body: Value = serde_json::from_slice(response.body.as_bytes()).expect("an answer");
            assert_eq!((response.status, &body["error"]), (status, &value!(code)));
            let text = body["message"].as_str().expect("a text");
            assert!(parts.iter().all(|part| text.contains(part)), "{text}");
            assert_eq!(response.fields.iter().any(|(name, _)| name == "Retry-After"), can_retry, "{code}");
        }
    }
}
