//! Axum with its own WebSockets and event streams; long polls are bodies, encoded once for all who get them.

use axum::Router;
use axum::body::Bytes;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use futures_util::stream::SplitSink;
use futures_util::{SinkExt as _, StreamExt as _};
use std::collections::{HashMap, HashSet, VecDeque};
use std::convert::Infallible;
use std::env;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_stream::wrappers::UnboundedReceiverStream;

/// Read buffer of a WebSocket, bytes: each read fills all of it with zeros first, and 128 KiB are the default.
const READ_BUFFER_SIZE: usize = 4096;

/// Publications that are kept for those who poll, of all channels together.
const HISTORY_MAX: usize = 1000;

/// Subscribers of one channel. Who is gone is taken out by the next publication, a poll at once.
#[derive(Default)]
struct Subscribers {
    texts: Vec<UnboundedSender<Utf8Bytes>>,
    events: Vec<UnboundedSender<Event>>,
    polls: HashSet<u64>,
}

#[derive(Default)]
struct Shared {
    channels: HashMap<String, Subscribers>,
    /// Number of the newest publication, which is the last of `history`.
    count: u64,
    history: VecDeque<(String, String)>,
    /// Who is held, by a number, as a poll may wait for several channels.
    polls: HashMap<u64, oneshot::Sender<Bytes>>,
    polls_so_far: u64,
}

#[derive(Clone, Default)]
struct Hub(Arc<Mutex<Shared>>);

impl Hub {
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, channel: &str, data: &Utf8Bytes) {
        let mut shared = self.lock();
        let Shared { channels, count, history, polls, .. } = &mut *shared;
        *count += 1;
        if history.len() == HISTORY_MAX {
            history.pop_front();
        }
        // A copy, as what a frame brought shares the buffer that its connection reads into.
        history.push_back((channel.to_owned(), data.as_str().to_owned()));
        let Some(subscribers) = channels.get_mut(channel) else { return };
        subscribers.texts.retain(|send| send.send(data.clone()).is_ok());
        if !subscribers.events.is_empty() {
            let event = Event::default().data(data.as_str());
            subscribers.events.retain(|send| send.send(event.clone()).is_ok());
        }
        if !subscribers.polls.is_empty() {
            let reply = Bytes::from(format!("[{count},{data}]"));
            for send in subscribers.polls.drain().filter_map(|number| polls.remove(&number)) {
                send.send(reply.clone()).ok();
            }
        }
    }

    fn texts(&self, names: &[String]) -> UnboundedReceiver<Utf8Bytes> {
        let (send, receive) = unbounded_channel();
        let mut shared = self.lock();
        for name in names {
            shared.channels.entry(name.clone()).or_default().texts.push(send.clone());
        }
        receive
    }

    fn events(&self, names: &[String]) -> UnboundedReceiver<Event> {
        let (send, receive) = unbounded_channel();
        let mut shared = self.lock();
        for name in names {
            shared.channels.entry(name.clone()).or_default().events.push(send.clone());
        }
        receive
    }

    /// The reply to who has seen everything up to `after`.
    fn missed(&self, names: &[String], after: u64) -> Bytes {
        self.lock().missed(names, after).1
    }

    /// That reply, if it says something. If not, the poll joins those who wait, before anything else is published.
    fn hold<'a>(&'a self, names: &'a [String], after: u64) -> Result<Bytes, Held<'a>> {
        let mut shared = self.lock();
        if let (true, reply) = shared.missed(names, after) {
            return Ok(reply);
        }
        let (send, next) = oneshot::channel();
        let number = shared.polls_so_far;
        shared.polls_so_far += 1;
        shared.polls.insert(number, send);
        for name in names {
            shared.channels.entry(name.clone()).or_default().polls.insert(number);
        }
        Err(Held { hub: self, names, number, next })
    }
}

impl Shared {
    /// Whether there is anything new after that number, and the reply.
    fn missed(&self, names: &[String], after: u64) -> (bool, Bytes) {
        let new = usize::try_from(self.count.saturating_sub(after)).unwrap_or(usize::MAX);
        let mut reply = format!("[{}", self.count);
        let head = reply.len();
        for (channel, data) in self.history.range(self.history.len().saturating_sub(new)..) {
            if names.contains(channel) {
                reply.push(',');
                reply.push_str(data);
            }
        }
        let is_new = reply.len() > head;
        reply.push(']');
        (is_new, reply.into())
    }
}

/// A poll that waits. Axum drops it with its request when the client is gone.
struct Held<'a> {
    hub: &'a Hub,
    names: &'a [String],
    number: u64,
    next: oneshot::Receiver<Bytes>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut shared = self.hub.lock();
        shared.polls.remove(&self.number);
        for name in self.names {
            if let Some(subscribers) = shared.channels.get_mut(name) {
                subscribers.polls.remove(&self.number);
            }
        }
    }
}

type Pairs = Query<Vec<(String, String)>>;

fn channels(query: &Pairs) -> Vec<String> {
    query.iter().filter(|(key, _)| key == "channel").map(|(_, value)| value.clone()).collect()
}

fn number(query: &Pairs, name: &str) -> Option<u64> {
    query.iter().find(|(key, _)| key == name).and_then(|(_, value)| value.parse().ok())
}

fn target(query: &Pairs) -> String {
    let named = query.iter().find(|(key, _)| key == "publish");
    let first = || query.iter().find(|(key, _)| key == "channel");
    named.or_else(first).map(|(_, value)| value.clone()).unwrap_or_default()
}

async fn websocket(State(hub): State<Hub>, query: Pairs, upgrade: WebSocketUpgrade) -> Response {
    // Before the handshake is answered, so that nothing is missed.
    let receive = hub.texts(&channels(&query));
    let target = target(&query);
    upgrade.read_buffer_size(READ_BUFFER_SIZE).on_upgrade(move |socket| serve(hub, socket, receive, target))
}

async fn serve(hub: Hub, socket: WebSocket, receive: UnboundedReceiver<Utf8Bytes>, target: String) {
    let (send, mut messages) = socket.split();
    // A task of its own, so that a delivery does not try to read as well.
    let sending = tokio::spawn(deliver(send, receive));
    while let Some(Ok(message)) = messages.next().await {
        if let Message::Text(data) = message {
            hub.publish(&target, &data);
        }
    }
    sending.abort();
}

/// Writes what has gathered together, as hyper does with a body.
async fn deliver(mut send: SplitSink<WebSocket, Message>, mut receive: UnboundedReceiver<Utf8Bytes>) {
    while let Some(first) = receive.recv().await {
        let mut next = Some(first);
        while let Some(data) = next {
            if send.feed(Message::Text(data)).await.is_err() {
                return;
            }
            next = receive.try_recv().ok();
        }
        if send.flush().await.is_err() {
            return;
        }
    }
}

async fn websocket_echo(upgrade: WebSocketUpgrade) -> Response {
    upgrade.read_buffer_size(READ_BUFFER_SIZE).on_upgrade(|mut socket| async move {
        while let Some(Ok(message)) = socket.recv().await {
            if matches!(message, Message::Text(_)) && socket.send(message).await.is_err() {
                return;
            }
        }
    })
}

async fn sse(State(hub): State<Hub>, query: Pairs) -> impl IntoResponse {
    let events = UnboundedReceiverStream::new(hub.events(&channels(&query)));
    let first = tokio_stream::once(Event::default().comment(""));
    Sse::new(first.chain(events).map(Ok::<_, Infallible>))
}

async fn poll(State(hub): State<Hub>, query: Pairs) -> impl IntoResponse {
    let names = channels(&query);
    let reply = match (number(&query, "after"), number(&query, "wait")) {
        (Some(after), Some(wait)) => match hub.hold(&names, after) {
            Ok(reply) => reply,
            Err(mut held) => match timeout(Duration::from_secs(wait), &mut held.next).await {
                Ok(Ok(reply)) => reply,
                _ => hub.missed(&names, after),
            },
        },
        // Who does not say what it has seen asks only where the end is.
        (after, _) => hub.missed(&names, after.unwrap_or(u64::MAX)),
    };
    ([(header::CONTENT_TYPE, "application/json")], reply)
}

async fn publish(State(hub): State<Hub>, query: Pairs, data: String) -> StatusCode {
    hub.publish(&target(&query), &data.into());
    StatusCode::NO_CONTENT
}

async fn echo(data: Bytes) -> Bytes {
    data
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let app = Router::new()
        .route("/ws", get(websocket))
        .route("/ws/echo", get(websocket_echo))
        .route("/sse", get(sse))
        .route("/poll", get(poll))
        .route("/publish", post(publish))
        .route("/echo", post(echo))
        .with_state(Hub::default());
    let host = env::var("HOST").unwrap_or_else(|_| "127.0.0.1".into());
    let port = env::var("PORT").unwrap_or_else(|_| "0".into());
    let listener = TcpListener::bind(format!("{host}:{port}")).await?;
    println!("{{\"listening\":\"{}\"}}", listener.local_addr()?);
    let listener = listener.tap_io(|stream| {
        stream.set_nodelay(true).ok();
    });
    axum::serve(listener, app).await
}
