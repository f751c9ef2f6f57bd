//! What back ends ask of the server, under `/api`, where an access file is in force: to publish, to end the connections of
//! an identity, to read history.

use crate::requests::{self, Answer, Refusal, bad, json};
use crate::routes::{Route, Routes};
use crate::{Application, Body, Publisher, Request, Response};
use pushlab_access::{Holder, LiveAccess, Person, Right};
use pushlab_session::gate::{self, Gate, refusal_of_token};
use pushlab_wire::channel::Channel;
use pushlab_wire::codes::ErrorCode;
use pushlab_wire::cursor::Cursor;
use pushlab_wire::native::single_line;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Channels that one request may publish to.
const MAX_CHANNELS: usize = 1000;
/// Requests that are remembered by their `Idempotency-Key`; with their answers some 70 MiB at worst, when each names a
/// thousand channels.
const MAX_REMEMBERED: usize = 1000;
/// How long they are.
const REMEMBERED_FOR: Duration = Duration::from_secs(600);
/// Longest key, bytes.
const MAX_KEY_BYTES: usize = 255;

/// The back end's interface, before an application that may have others.
pub struct BackEnd {
    access: Arc<LiveAccess>,
    /// Which channels are the server's own.
    gate: Gate,
    application: Option<Arc<dyn Application>>,
    routes: Routes<Self>,
    publisher: OnceLock<Publisher>,
    remembered: Mutex<HashMap<String, Remembered>>,
}

const TABLE: &[Route<BackEnd>] = &[
    ("POST", "/api/publish", |this, request, _| this.publish(request)),
    ("POST", "/api/disconnect", |this, request, _| this.disconnect(request)),
    ("GET", "/api/history", |this, request, _| this.history(request)),
    ("GET", "/api/presence", |this, request, _| this.presence(request)),
];

/// A request that came with a key.
struct Remembered {
    /// What it asked for.
    fingerprint: u64,
    at: Instant,
    /// What it was answered; `None` while it is being done.
    answer: Option<Response>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Publication {
    #[serde(default)]
    channel: Option<String>,
    #[serde(default)]
    channels: Vec<String>,
    data: Box<RawValue>,
}

#[derive(Serialize)]
struct Published {
    published: Vec<PublishedTo>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failed: Vec<Failed>,
}

#[derive(Serialize)]
struct PublishedTo {
    channel: String,
    cursor: String,
}

#[derive(Serialize)]
struct Failed {
    channel: String,
    error: &'static str,
    message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Disconnection {
    identity: String,
}

impl BackEnd {
    /// The interface by these rules, and the application for everything else.
    pub fn new(access: Arc<LiveAccess>, gate: Gate, application: Option<Arc<dyn Application>>) -> Self {
        Self {
            access,
            gate,
            application,
            routes: Routes::new(TABLE),
            publisher: OnceLock::new(),
            remembered: Mutex::default(),
        }
    }

    fn publisher(&self) -> &Publisher {
        self.publisher.get().expect("an application begins before its first request")
    }

    /// Who asks.
    fn person(&self, request: &Request) -> Result<Arc<Person>, Refusal> {
        let person = request.person.clone().unwrap_or_else(|| Ok(self.access.rules().anonymous()));
        person.map_err(|cause| {
            self.access.refusals.add(cause, Some(request.peer));
            let (code, text) = refusal_of_token(cause);
            Refusal::new(code, text)
        })
    }

    /// Lets nobody but the back end go on.
    fn only_back_end(&self, request: &Request) -> Result<(), Refusal> {
        if self.person(request)?.is_back_end() {
            return Ok(());
        }
        let text = match self.access.rules().has_back_end() {
            true => "this is for the back end: send Authorization: Bearer KEY, with the key of [back_end]",
            false => "the access file has no [back_end], so nobody may do this; give it a key_file there",
        };
        Err(Refusal::new(ErrorCode::Unauthorized, text))
    }

    // --- Publishing ---

    fn publish(&self, request: &Request) -> Answer {
        self.only_back_end(request)?;
        self.once(request, || {
            let Publication { channel, mut channels, data } = requests::body(request)?;
            channels.extend(channel);
            if channels.is_empty() || channels.len() > MAX_CHANNELS {
                return Err(bad(format!("name a channel, or up to {MAX_CHANNELS} channels")));
            }
            // All of them before any: a request that is wrong has done nothing.
            for channel in &channels {
                Channel::parse(channel).map_err(|error| Refusal::new(ErrorCode::BadChannel, error.to_string()))?;
                self.gate.may_publish(None, channel).map_err(|(code, text)| Refusal::new(code, text))?;
            }
            let data = single_line(data.get());
            let mut done = Published { published: Vec::new(), failed: Vec::new() };
            for channel in channels {
                match self.publisher().publish(&channel, &data) {
                    Ok(cursor) => done.published.push(PublishedTo { channel, cursor: cursor.to_string() }),
                    Err(error) => {
                        let (code, message) = (error.code(), error.to_string());
                        done.failed.push(Failed { channel, error: code.name(), message });
                    }
                }
            }
            match done.failed.first() {
                Some(failed) if done.published.is_empty() => {
                    let code = ErrorCode::from_name(failed.error).unwrap_or(ErrorCode::InternalError);
                    Err(Refusal::new(code, failed.message.clone()))
                }
                _ => Ok(json(&done)),
            }
        })
    }

    /// Does what a request asks for, but once: one with the same `Idempotency-Key` gets the same answer. A request that
    /// failed may be sent again.
    fn once(&self, request: &Request, action: impl FnOnce() -> Answer) -> Answer {
        let Some(key) = request.field("idempotency-key") else { return action() };
        if key.is_empty() || key.len() > MAX_KEY_BYTES {
            return Err(bad(format!("an Idempotency-Key has 1 to {MAX_KEY_BYTES} bytes")));
        }
        let mut hasher = DefaultHasher::new();
        (&request.path, &request.body).hash(&mut hasher);
        let fingerprint = hasher.finish();
        if let Some(answer) = self.begin(key, fingerprint)? {
            return Ok(answer);
        }
        // Forgotten again unless it succeeds, by a panic too.
        let mut begun = Begun { remembered: &self.remembered, key, answer: None };
        let answer = action()?;
        begun.answer = Some(answer.clone());
        Ok(answer)
    }

    /// Remembers that a request has begun; gives the answer if it was done before.
    fn begin(&self, key: &str, fingerprint: u64) -> Result<Option<Response>, Refusal> {
        let mut remembered = lock(&self.remembered);
        let now = Instant::now();
        let is_young = |known: &Remembered| now.saturating_duration_since(known.at) < REMEMBERED_FOR;
        if let Some(known) = remembered.get(key).filter(|known| is_young(known)) {
            return match &known.answer {
                _ if known.fingerprint != fingerprint => {
                    let text = "this Idempotency-Key came with another request before; make a new key for each request";
                    Err(Refusal::new(ErrorCode::KeyReused, text))
                }
                Some(answer) => Ok(Some(answer.clone())),
                None => {
                    let text = "the request with this Idempotency-Key is still under way; send it again for its answer";
                    Err(Refusal::new(ErrorCode::Busy, text).after(Duration::from_secs(1)))
                }
            };
        }
        if remembered.len() >= MAX_REMEMBERED {
            remembered.retain(|_, known| is_young(known));
        }
        if remembered.len() >= MAX_REMEMBERED {
            // The oldest goes: whoever repeats a request does so soon.
            let oldest =
                remembered.iter().filter(|(_, known)| known.answer.is_some()).min_by_key(|(_, known)| known.at);
            if let Some(key) = oldest.map(|(key, _)| key.clone()) {
                remembered.remove(&key);
            }
        }
        remembered.insert(key.to_owned(), Remembered { fingerprint, at: now, answer: None });
        Ok(None)
    }

    // --- The rest ---

    fn disconnect(&self, request: &Request) -> Answer {
        self.only_back_end(request)?;
        let Disconnection { identity } = requests::body(request)?;
        if identity.is_empty() {
            return Err(bad("name an identity, as tokens have it in the claim that the access file names"));
        }
        self.publisher().dismiss(&Holder::Identity(identity.into()));
        Ok(Response::new(204, "application/json", Body::Static(b"")))
    }

    /// The channel that a request names, with which whoever asks may do this.
    fn channel(&self, request: &Request, right: Right, what: &str) -> Result<Channel, Refusal> {
        let person = self.person(request)?;
        let name = request.parameter("channel").ok_or_else(|| bad("name a channel: ?channel=NAME"))?;
        let channel = Channel::parse(name).map_err(|error| Refusal::new(ErrorCode::BadChannel, error.to_string()))?;
        if gate::may_receive(&person, name, right) {
            return Ok(channel);
        }
        let (code, text) = match person.identity() {
            None => (ErrorCode::Unauthorized, "; send Authorization: Bearer TOKEN, or the back end's key"),
            Some(_) => (ErrorCode::Forbidden, ""),
        };
        Err(Refusal::new(code, format!("no rule of the access file lets you {what} {name}{text}")))
    }

    fn presence(&self, request: &Request) -> Answer {
        let channel = self.channel(request, Right::Presence, "learn who is in")?;
        let present = self.publisher().present(&channel).ok_or_else(|| {
            let text = format!("{channel} has no presence: presence in the access file names no such channel");
            Refusal::new(ErrorCode::NotFound, text)
        })?;
        Ok(json(&present))
    }

    fn history(&self, request: &Request) -> Answer {
        let channel = self.channel(request, Right::History, "read the history of")?;
        let after = request.parameter("after").filter(|text| !text.is_empty()).map(Cursor::parse).transpose();
        let after = after.map_err(|error| Refusal::new(ErrorCode::BadCursor, error.to_string()))?;
        let reply = self.publisher().history(&channel, after);
        reply.map(Response::json).ok_or_else(|| {
            Refusal::new(ErrorCode::Overloaded, "the log did not answer; try again in a moment")
                .after(Duration::from_secs(1))
        })
    }
}

/// A request that is being done under its key.
struct Begun<'a> {
    remembered: &'a Mutex<HashMap<String, Remembered>>,
    key: &'a str,
    answer: Option<Response>,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        let mut remembered = lock(self.remembered);
        match self.answer.take() {
            Some(answer) => {
                if let Some(known) = remembered.get_mut(self.key) {
                    known.answer = Some(answer);
                }
            }
            None => drop(remembered.remove(self.key)),
        }
    }
}

/// Locks, also after a panic of another thread: every change under this lock leaves the state whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Application for BackEnd {
    fn begin(&self, publisher: Publisher) {
        if let Some(application) = &self.application {
            application.begin(publisher.clone());
        }
        let _ = self.publisher.set(publisher);
    }

    fn answer(&self, request: &Request) -> Option<Response> {
        match self.routes.answer(self, request) {
            Some(answer) => Some(requests::respond(answer)),
            None => self.application.as_ref()?.answer(request),
        }
    }

    fn may_wait(&self, request: &Request) -> bool {
        self.application.as_ref().is_some_and(|application| application.may_wait(request))
    }
}
