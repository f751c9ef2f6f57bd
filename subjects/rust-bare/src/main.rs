//! Axum with its own WebSockets; event streams are bodies, encoded once for all who get them.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use futures_util::stream::SplitSink;
use futures_util::{SinkExt as _, StreamExt as _};
use std::collections::HashMap;
use std::convert::Infallible;
use std::env;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_stream::wrappers::UnboundedReceiverStream;

/// Read buffer of a WebSocket, bytes: each read fills all of it with zeros first, and 128 KiB are the default.
const READ_BUFFER_SIZE: usize = 4096;

/// Subscribers of one channel. Who is gone is taken out by the next publication.
#[derive(Default)]
struct Subscribers {
    texts: Vec<UnboundedSender<Utf8Bytes>>,
    events: Vec<UnboundedSender<Bytes>>,
}

#[derive(Clone, Default)]
struct Hub(Arc<Mutex<HashMap<String, Subscribers>>>);

impl Hub {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Subscribers>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, channel: &str, data: &Utf8Bytes) {
        let mut channels = self.lock();
        let Some(subscribers) = channels.get_mut(channel) else { return };
        subscribers.texts.retain(|send| send.send(data.clone()).is_ok());
        if !subscribers.events.is_empty() {
            let event = Bytes::from(format!("data: {data}\n\n"));
            subscribers.events.retain(|send| send.send(event.clone()).is_ok());
        }
    }

    fn texts(&self, names: &[String]) -> UnboundedReceiver<Utf8Bytes> {
        let (send, receive) = unbounded_channel();
        let mut channels = self.lock();
        for name in names {
            channels.entry(name.clone()).or_default().texts.push(send.clone());
        }
        receive
    }

    fn events(&self, names: &[String]) -> UnboundedReceiver<Bytes> {
        let (send, receive) = unbounded_channel();
        let mut channels = self.lock();
        for name in names {
            channels.entry(name.clone()).or_default().events.push(send.clone());
        }
        receive
    }
}

type Pairs = Query<Vec<(String, String)>>;

fn channels(query: &Pairs) -> Vec<String> {
    query.iter().filter(|(key, _)| key == "channel").map(|(_, value)| value.clone()).collect()
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
    let first = tokio_stream::once(Bytes::from_static(b":\n\n"));
    let body = Body::from_stream(first.chain(events).map(Ok::<_, Infallible>));
    ([(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")], body)
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
