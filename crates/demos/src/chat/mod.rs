//! Chat rooms: unique names, who is there, private messages.
//!
//! Below `/api/demos/chat/`; `docs/demos.md` has the whole interface. Whoever enters gets a token, which goes with
//! everything they do, and an inbox, a channel whose name nobody else knows. They stay as long as they are heard of.
//!
//! Everything happens and is published under one lock, and each answer is made under it, with the cursor after what
//! happened: who subscribes after that cursor gets what happens later, all of it and once.

mod gathering;
mod names;

use crate::allowance::Peer;
use crate::clock;
use crate::lock::lock;
use crate::repeating::Repeating;
use crate::telling::tell;
use gathering::{Event, Gathering, INBOX_CHANNELS, Now, Room};
use names::{Name, RoomName, Text};
use pushlab_application::requests::{self, Answer, Refusal};
use pushlab_application::routes::{Route, Routes};
use pushlab_application::secret::Secret;
use pushlab_application::{Application, Publisher, Request, Response};
use pushlab_wire::codes::ErrorCode;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::time::{Duration, Instant};

const PATHS: &str = "/api/demos/chat/";

const TABLE: &[Route<Chat>] = &[
    ("GET", "/api/demos/chat/rooms", |chat, _, _| chat.house()?.rooms()),
    ("POST", "/api/demos/chat/enter", |chat, request, _| chat.house()?.enter(request)),
    ("POST", "/api/demos/chat/beat", |chat, request, _| chat.house()?.beat(request)),
    ("POST", "/api/demos/chat/leave", |chat, request, _| chat.house()?.leave(request)),
    ("POST", "/api/demos/chat/join", |chat, request, _| chat.house()?.join(request)),
    ("POST", "/api/demos/chat/part", |chat, request, _| chat.house()?.part(request)),
    ("POST", "/api/demos/chat/say", |chat, request, _| chat.house()?.say(request)),
    ("POST", "/api/demos/chat/tell", |chat, request, _| chat.house()?.tell(request)),
];

static ROUTES: LazyLock<Routes<Chat>> = LazyLock::new(|| Routes::new(TABLE));

/// How long somebody stays of whom nothing is heard.
pub const LEASE: Duration = Duration::from_secs(10);

/// The demonstration. Its thread, which ends leases, runs from the server's start until this is dropped.
pub struct Chat {
    lease: Duration,
    running: OnceLock<(Arc<House>, Repeating)>,
}

/// The gathering and the way out of it.
struct House {
    beat: Duration,
    gathering: Mutex<Gathering>,
    publisher: Publisher,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entering {
    name: Name,
    /// Of the same person's visit before, which may not have ended.
    token: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    token: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InRoom {
    token: String,
    room: RoomName,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Saying {
    token: String,
    room: RoomName,
    text: Text,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Telling {
    token: String,
    to: Name,
    text: Text,
}

#[derive(Serialize)]
struct Entered {
    token: String,
    name: Name,
    inbox: String,
    beat_ms: u128,
    #[serde(flatten)]
    rooms: Rooms,
}

#[derive(Serialize)]
struct Rooms {
    cursor: String,
    rooms: Vec<Room>,
}

#[derive(Serialize)]
struct Joined {
    cursor: String,
    #[serde(flatten)]
    room: Room,
}

#[derive(Serialize)]
struct Done {}

/// An event as its channel tells it.
#[derive(Serialize)]
struct Sent<'e> {
    #[serde(flatten)]
    event: &'e Event,
    /// When it was given to the server's loops, ms since 1970.
    sent_ms: f64,
}

impl Default for Chat {
    fn default() -> Self {
        Self::new(LEASE)
    }
}

impl Application for Chat {
    fn begin(&self, publisher: Publisher) {
        let gathering = Mutex::new(Gathering::new(self.lease));
        let house = Arc::new(House { beat: self.lease / 3, gathering, publisher });
        let moved = house.clone();
        // What is refused to the thread because the server is overloaded, the next time does.
        let expire = move || drop(moved.act(|_, _| Ok(())));
        match Repeating::start("pushlab-chat", self.lease / 10, expire) {
            // It begins once.
            Ok(thread) => drop(self.running.set((house, thread))),
            Err(error) => tell(format_args!("the chat has no thread: {error}")),
        }
    }

    fn answer(&self, request: &Request) -> Option<Response> {
        let is_below = request.path.starts_with(PATHS);
        is_below.then(|| {
            requests::respond(ROUTES.answer(self, request).unwrap_or_else(|| Err(crate::refusals::unknown_path())))
        })
    }
}

impl Chat {
    /// A chat in which somebody is gone of whom nothing is heard for this long. Each is asked to beat three times as
    /// often, so that two beats may be lost.
    pub fn new(lease: Duration) -> Self {
        Self { lease, running: OnceLock::new() }
    }

    fn house(&self) -> Result<&House, Refusal> {
        let (house, _) = self.running.get().ok_or_else(|| {
            Refusal::new(ErrorCode::InternalError, "the chat did not start; the server's output says why")
        })?;
        Ok(house)
    }
}

impl House {
    fn rooms(&self) -> Answer {
        Ok(requests::json(&self.act(|gathering, _| Ok(self.snapshot(gathering)))?))
    }

    fn enter(&self, request: &Request) -> Answer {
        let Entering { name, token: before } = requests::body(request)?;
        let secret =
            || Secret::new().map_err(|error| crate::refusals::failed("the system gives no random bytes", &error));
        let (token, inbox) = (secret()?, secret()?);
        let entered = self.act(|gathering, now| {
            if let Some(before) = &before {
                gathering.leave(Secret::parse(before), now);
            }
            gathering.enter(name.clone(), Peer::from(request.peer), (token, inbox), now)?;
            let inbox = format!("{INBOX_CHANNELS}{inbox}");
            let rooms = self.snapshot(gathering);
            Ok(Entered { token: token.to_string(), name, inbox, beat_ms: self.beat.as_millis(), rooms })
        })?;
        Ok(requests::json(&entered))
    }

    fn beat(&self, request: &Request) -> Answer {
        let Known { token } = requests::body(request)?;
        self.act(|gathering, now| gathering.beat(Secret::parse(&token), now))?;
        Ok(requests::json(&Done {}))
    }

    fn leave(&self, request: &Request) -> Answer {
        let Known { token } = requests::body(request)?;
        self.act(|gathering, now| {
            gathering.leave(Secret::parse(&token), now);
            Ok(())
        })?;
        Ok(requests::json(&Done {}))
    }

    fn join(&self, request: &Request) -> Answer {
        let InRoom { token, room } = requests::body(request)?;
        let joined = self.act(|gathering, now| {
            let room = gathering.join(Secret::parse(&token), room, now)?;
            self.publish(gathering);
            Ok(Joined { cursor: self.publisher.head().to_string(), room })
        })?;
        Ok(requests::json(&joined))
    }

    fn part(&self, request: &Request) -> Answer {
        let InRoom { token, room } = requests::body(request)?;
        self.act(|gathering, now| gathering.part(Secret::parse(&token), room, now))?;
        Ok(requests::json(&Done {}))
    }

    fn say(&self, request: &Request) -> Answer {
        let Saying { token, room, text } = requests::body(request)?;
        let said: Event = self.act(|gathering, now| gathering.say(Secret::parse(&token), room, text, now))?;
        Ok(requests::json(&said))
    }

    fn tell(&self, request: &Request) -> Answer {
        let Telling { token, to, text } = requests::body(request)?;
        let told: Event = self.act(|gathering, now| gathering.tell(Secret::parse(&token), &to, text, now))?;
        Ok(requests::json(&told))
    }

    /// Does something under the lock, after everything before it has been published: so nothing happens while the
    /// server takes no publications, and what waits is bounded. What does not go out at once goes out before anything
    /// else happens; a snapshot has it already, and who then gets it too learns nothing that is not so.
    fn act<T>(&self, act: impl FnOnce(&mut Gathering, Now) -> Result<T, Refusal>) -> Result<T, Refusal> {
        let mut gathering = lock(&self.gathering);
        let now = Now { instant: Instant::now(), wall_ms: clock::now_ms() as u64 };
        if !self.publish(&mut gathering) {
            let text = "the server is behind; try again in a moment";
            return Err(Refusal::new(ErrorCode::Overloaded, text));
        }
        gathering.expire(now);
        self.publish(&mut gathering);
        let done = act(&mut gathering, now);
        self.publish(&mut gathering);
        done
    }

    /// Whether everything is published.
    fn publish(&self, gathering: &mut Gathering) -> bool {
        gathering.poll_publications(|channel, event| {
            let sent = Sent { event, sent_ms: clock::now_ms() };
            let data = serde_json::to_string(&sent).expect("text and numbers always serialise");
            self.publisher.publish(channel, &data).is_ok()
        })
    }

    fn snapshot(&self, gathering: &Gathering) -> Rooms {
        Rooms { cursor: self.publisher.head().to_string(), rooms: gathering.rooms() }
    }
}
