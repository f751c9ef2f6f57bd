//! A connection to a broker, for threads that wait: the client library's tasks run on a thread of its own.

use crate::address::{Access, Address, Entry};
use crate::names::{INBOX, inbox_of};
use async_nats::{Client, ConnectOptions, Event, ServerAddr, ServerError};
use futures_util::StreamExt as _;
use pushlab_os::files;
use std::future::{Ready, ready};
use std::io;
use std::path::PathBuf;
use std::str::FromStr as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Time to be let in.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Time for a message to be taken by the client, which keeps 2,048 of them.
const SEND_WITHIN: Duration = Duration::from_secs(2);
/// Time for what was sent to have left.
const FLUSH_WITHIN: Duration = Duration::from_secs(1);
/// Longest time between two attempts to reach a broker that went away.
const RETRY_MAX: Duration = Duration::from_secs(1);
/// How often either end asks whether the other is there.
const PING_INTERVAL: Duration = Duration::from_secs(2);

/// Why nothing is said or heard.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// It cannot be reached, or it does not speak as a broker does.
    #[error("the broker at {address} cannot be reached: {why}")]
    Unreachable {
        /// Where.
        address: String,
        /// Why.
        why: String,
    },
    /// It is there, and lets nobody in who says what was said.
    #[error("the broker at {address} lets us in only with the right --token, --credentials or user: {why}")]
    Refused {
        /// Where.
        address: String,
        /// What it said.
        why: String,
    },
    /// The broker let us in, but does not let us do our part.
    #[error("the broker at {address}: {why}; labs and workers need separate users with the rights in docs/fleet.md")]
    Forbidden {
        /// Where.
        address: String,
        /// What it said.
        why: String,
    },
    /// What lets us in cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A message could not be sent.
    #[error("cannot send to the broker at {address}: {why}")]
    Unsent {
        /// Where.
        address: String,
        /// Why.
        why: String,
    },
    /// There is no thread or random number left.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Whether the broker is there, as the client last noticed.
#[derive(Debug, Default)]
struct Noticed {
    away_since: Option<Instant>,
    error: Option<String>,
}

/// A connection. It is opened again by itself when the broker comes back; what was lost meanwhile is lost.
pub struct Connection {
    client: Client,
    runtime: Handle,
    address: Address,
    noticed: Arc<Mutex<Noticed>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Connection {
    /// Connects, as somebody of this name.
    ///
    /// # Errors
    /// See [`BusError`]; within 5 s.
    pub fn open(address: &Address, access: &Access, name: &str) -> Result<Self, BusError> {
        let noticed = Arc::new(Mutex::new(Noticed::default()));
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let client = runtime.block_on(connect(address, access, name, Arc::clone(&noticed)))?;
        let (stop, stopped) = oneshot::channel();
        let handle = runtime.handle().clone();
        let work = move || {
            // That it is stopped, or that whoever could do so is gone.
            let _ = runtime.block_on(stopped);
        };
        let thread = std::thread::Builder::new().name("bus".into()).spawn(work)?;
        let (stop, thread) = (Some(stop), Some(thread));
        Ok(Self { client, runtime: handle, address: address.clone(), noticed, stop, thread })
    }

    /// Longest message that the broker takes, bytes.
    pub fn message_bytes_max(&self) -> usize {
        self.client.max_payload()
    }

    /// Sends a message to whoever has subscribed.
    ///
    /// # Errors
    /// [`BusError::Unsent`].
    pub fn publish(&self, subject: String, message: Vec<u8>) -> Result<(), BusError> {
        if noticed(&self.noticed).away_since.is_some() {
            return Err(BusError::Unsent { address: self.address.to_string(), why: "it is away".to_owned() });
        }
        let sent =
            self.runtime.block_on(async { timeout(SEND_WITHIN, self.client.publish(subject, message.into())).await });
        let why = match sent {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("what waited to be sent did not leave within {SEND_WITHIN:?}"),
        };
        Err(BusError::Unsent { address: self.address.to_string(), why })
    }

    /// Has messages handed over, with the subjects on which they came. That happens on the connection's own thread, so
    /// whoever takes them must not wait.
    ///
    /// # Errors
    /// [`BusError::Unsent`].
    pub fn subscribe(
        &self,
        subject: String,
        mut hand_over: impl FnMut(&str, &[u8]) + Send + 'static,
    ) -> Result<(), BusError> {
        let mut messages = self.subscription(subject)?;
        self.runtime.spawn(async move {
            while let Some(message) = messages.next().await {
                hand_over(&message.subject, &message.payload[..]);
            }
        });
        Ok(())
    }

    /// Answers questions on a subject at once, on the connection's own thread.
    ///
    /// # Errors
    /// [`BusError::Unsent`].
    pub fn answer(
        &self,
        subject: String,
        mut answer: impl FnMut(&[u8]) -> Vec<u8> + Send + 'static,
    ) -> Result<(), BusError> {
        let mut questions = self.subscription(subject)?;
        let client = self.client.clone();
        self.runtime.spawn(async move {
            while let Some(question) = questions.next().await {
                // Who asks may name any subject, and could have us say there what he may not say himself.
                let Some(reply) = question.reply.filter(|reply| is_in_inbox(reply)) else { continue };
                // Who asks a broker that has gone away asks again.
                let _ = client.publish(reply, answer(&question.payload[..]).into()).await;
            }
        });
        Ok(())
    }

    /// Asks whoever answers on a subject; `None` where nobody does in time.
    pub fn ask(&self, subject: String, question: Vec<u8>, within: Duration) -> Option<Vec<u8>> {
        let asked = async { timeout(within, self.client.request(subject, question.into())).await };
        let answer = self.runtime.block_on(asked).ok()?.ok()?;
        Some(answer.payload.to_vec())
    }

    fn subscription(&self, subject: String) -> Result<async_nats::Subscriber, BusError> {
        let subscribed = async { timeout(SEND_WITHIN, self.client.subscribe(subject)).await };
        let why = match self.runtime.block_on(subscribed) {
            Ok(Ok(subscriber)) => return Ok(subscriber),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it is away".to_owned(),
        };
        Err(BusError::Unsent { address: self.address.to_string(), why })
    }

    /// Waits until what was sent has left, for a second at most.
    pub fn flush(&self) {
        // A broker that is away gets nothing more.
        let _ = self.runtime.block_on(async { timeout(FLUSH_WITHIN, self.client.flush()).await });
    }

    /// For how long the broker has been away; `None` while it is there.
    pub fn away_for(&self) -> Option<Duration> {
        Some(noticed(&self.noticed).away_since?.elapsed())
    }

    /// Whether the broker has let us do our part so far.
    ///
    /// # Errors
    /// [`BusError::Forbidden`].
    pub fn check_rights(&self) -> Result<(), BusError> {
        let address = self.address.to_string();
        noticed(&self.noticed).error.take().map_or(Ok(()), |why| Err(BusError::Forbidden { address, why }))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.flush();
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It does nothing that could fail.
            let _ = thread.join();
        }
    }
}

fn noticed(shared: &Mutex<Noticed>) -> MutexGuard<'_, Noticed> {
    // No step leaves anything half done.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn connect(
    address: &Address,
    access: &Access,
    name: &str,
    shared: Arc<Mutex<Noticed>>,
) -> Result<Client, BusError> {
    let unreachable = |why: String| BusError::Unreachable { address: address.to_string(), why };
    let server = ServerAddr::from_str(&address.to_string()).map_err(|error| unreachable(error.to_string()))?;
    let options = options(address, access)?.name(name).event_callback(move |event| note(&shared, event));
    let connected = timeout(CONNECT_WITHIN, options.connect(server)).await;
    let error = match connected {
        Ok(Ok(client)) => return Ok(client),
        Ok(Err(error)) => error,
        Err(_) => return Err(unreachable(format!("it did not answer within {CONNECT_WITHIN:?}"))),
    };
    let why = reasons(&error);
    Err(match error.kind() {
        async_nats::ConnectErrorKind::AuthorizationViolation | async_nats::ConnectErrorKind::Authentication => {
            BusError::Refused { address: address.to_string(), why }
        }
        _ => unreachable(why),
    })
}

fn options(address: &Address, access: &Access) -> Result<ConnectOptions, BusError> {
    let mut options = ConnectOptions::new()
        .require_tls(address.has_tls || access.tls_ca.is_some())
        .ping_interval(PING_INTERVAL)
        .connection_timeout(CONNECT_WITHIN)
        .reconnect_delay_callback(|attempts| RETRY_MAX.min(Duration::from_millis(50) * attempts as u32))
        // A broker that stands behind another address than it knows would send us to places that we do not reach.
        .ignore_discovered_servers()
        .custom_inbox_prefix(inbox_of(&access.user(address)));
    match access.entry(address) {
        Entry::Nobody => {}
        Entry::Token(token) => options = options.token(token),
        Entry::User { name, password } => options = options.user_and_password(name, password),
    }
    if let Some(path) = &access.credentials {
        let file = |source| BusError::File { path: path.clone(), source };
        let text = files::read_settings_text(path).map_err(file)?;
        options = options.credentials(&text).map_err(file)?;
    }
    if let Some(path) = &access.tls_ca {
        // A missing file, or one without an end, would be told as a broker that cannot be reached.
        files::read_settings(path).map_err(|source| BusError::File { path: path.clone(), source })?;
        options = options.add_root_certificates(path.clone());
    }
    Ok(options)
}

fn note(shared: &Mutex<Noticed>, event: Event) -> Ready<()> {
    let mut noticed = noticed(shared);
    match event {
        Event::Connected => noticed.away_since = None,
        Event::Disconnected | Event::Closed => {
            noticed.away_since.get_or_insert_with(Instant::now);
        }
        // The protocol tells errors by their words alone, and others mend themselves.
        Event::ServerError(ServerError::Other(why)) if why.to_lowercase().contains("permissions violation") => {
            noticed.error = Some(why);
        }
        Event::LameDuckMode
        | Event::Draining
        | Event::SlowConsumer(_)
        | Event::ServerError(_)
        | Event::ClientError(_) => {}
    }
    ready(())
}

/// An error and what is behind it, each said once.
fn reasons(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        if !text.contains(&cause.to_string()) {
            text = format!("{text}: {cause}");
        }
        next = cause.source();
    }
    text
}
/// Whether a subject is one that is published to in answer.
fn is_in_inbox(subject: &str) -> bool {
    subject.strip_prefix(INBOX).is_some_and(|rest| rest.len() > 1 && rest.starts_with('.'))
}
