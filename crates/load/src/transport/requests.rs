//! What every client of a run asks, prepared once.

use super::Sending;
use super::foreign::setup::ForeignSetup;
use super::headers::HeadFields;
use crate::connection::{Fields, Outgoing, Request};
use percent_encoding::percent_encode;
use pushlab_wire::cursor::CursorText;
use pushlab_wire::http::RESERVED;
use pushlab_wire::transport::Transport;
use pushlab_workload::plan::{RequestHeaders, Speaks, Target};
use pushlab_workload::rooms::Rooms;
use std::fmt::Write as _;
use std::sync::Arc;

/// The texts of requests, shared by all clients of a loop. Where clients are in rooms, they are those of one client
/// and one publication at a time.
#[derive(Debug, Clone)]
pub struct Requests {
    pub(super) authority: String,
    pub(super) scheme: &'static str,
    /// What every path begins with.
    pub(super) path: String,
    /// A channel, or several as a query has them: `a.1&channel=a.7`.
    pub(super) channel: String,
    /// How long a poll may be held: as seconds, and as a part of its query.
    pub(super) poll_wait_s: u64,
    pub(super) poll_wait: String,
    pub(super) headers: HeadFields,
    pub(super) users: Option<String>,
    /// How many of the newest messages polls ask for, whether or not the client has them; `None`: for what is new.
    pub(super) newest: Option<u32>,
    /// Whether an echo is a GET of its own, answered with an event stream.
    pub(super) echoes_in_streams: bool,
    /// What queries say of the version of the protocol: nothing, which is the first.
    pub(super) version: &'static str,
    /// Whether a connection carries one request after another.
    keeps_alive: bool,
    pub(super) publish_to: String,
    pub(super) foreign: Option<Arc<ForeignSetup>>,
    /// From how many bytes on messages are to be compressed, if that is asked for.
    compression_from: Option<u32>,
    /// The client whose requests these are.
    pub(super) client: u32,
    /// What the rooms' channels begin with, and who is in which.
    rooms: Option<(String, Arc<Rooms>)>,
}

impl Requests {
    /// For clients that subscribe to `channel` and publish to `publish_to`, both valid channel names.
    pub fn new(target: &Target, channel: &str, publish_to: &str, poll_wait_s: u64) -> Self {
        Self {
            authority: target.authority.clone(),
            scheme: target.scheme(),
            path: target.path.clone(),
            channel: channel.into(),
            poll_wait_s,
            poll_wait: if poll_wait_s == 0 { String::new() } else { format!("&wait={poll_wait_s}") },
            headers: HeadFields::default(),
            users: None,
            newest: None,
            echoes_in_streams: false,
            version: "",
            keeps_alive: true,
            publish_to: publish_to.into(),
            foreign: None,
            compression_from: None,
            client: 0,
            rooms: None,
        }
    }

    /// The same with a connection for each request that is answered once, unless they are kept alive: to be said before
    /// what the heads carry.
    pub fn with_keep_alive(self, keeps_alive: bool) -> Self {
        Self { keeps_alive, ..self }
    }

    /// Whether a connection carries one request after another.
    pub fn keep_alive(&self) -> bool {
        self.keeps_alive
    }

    /// With what their heads carry; they ask for compression where it is said from how many bytes on.
    pub fn with_headers(self, headers: RequestHeaders, compression_from: Option<u32>) -> Self {
        let from = format!("{}://{}", self.scheme, self.authority);
        let headers = HeadFields::new(headers, &from, compression_from.is_some(), self.keeps_alive);
        Self { headers, compression_from, ..self }
    }

    /// From how many bytes on messages are to be compressed, if that is asked for.
    pub fn compression_from(&self) -> Option<u32> {
        self.compression_from
    }

    /// To a subject that speaks another dialect; `sending` is what the client is going to send.
    pub fn in_dialect(self, transport: Transport, speaks: &Speaks, sending: Option<Sending>) -> Self {
        let (authority, headers, path) = (self.authority.clone(), self.headers.clone(), speaks.path.clone());
        let setup =
            ForeignSetup { scheme: self.scheme, authority, headers, transport, speaks: speaks.clone(), sending };
        Self { path, foreign: Some(Arc::new(setup)), ..self }
    }

    /// The client's channels, as a query has them: `a.1&channel=a.7`.
    pub fn channel(&self) -> &str {
        &self.channel
    }

    /// The channel of the publication whose turn it is.
    pub fn publishes_to(&self) -> &str {
        &self.publish_to
    }

    /// The channels that the client subscribes to.
    pub(super) fn channels(&self) -> Vec<String> {
        self.channel.split("&channel=").filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    /// For a client that subscribes to nothing.
    pub fn without_channels(self) -> Self {
        Self { channel: String::new(), ..self }
    }

    /// With a second question after each poll, to a channel that stands for the list of users.
    pub fn with_user_list(self, users: &str) -> Self {
        Self { users: Some(users.into()), ..self }
    }

    /// With polls for so many of the newest messages, whether or not the client has them, in place of what is new.
    pub fn for_newest(self, count: u32) -> Self {
        Self { newest: Some(count), ..self }
    }

    /// With an event stream for each echo, which brings it as its first event, in place of a POST.
    pub fn with_echoes_in_streams(self) -> Self {
        Self { echoes_in_streams: true, ..self }
    }

    /// In the second version of the protocol: the server says when to come back.
    pub fn in_version_2(self) -> Self {
        Self { version: "&v=2", ..self }
    }

    /// How many messages polls ask for, whether or not the client has them; `None`: for what is new.
    pub fn newest(&self) -> Option<u32> {
        self.newest
    }

    /// The same for clients in rooms: channel `a` becomes `a.0`, `a.1` …
    pub fn in_rooms(self, rooms: Arc<Rooms>) -> Self {
        Self { rooms: Some((self.channel.clone(), rooms)), ..self }
    }

    /// Makes the next requests those of a client of this number.
    #[inline]
    pub fn turn_to_client(&mut self, client: u32) {
        self.client = client;
        let Some((prefix, rooms)) = &self.rooms else { return };
        self.channel.clear();
        for room in rooms.of_client(client) {
            let before = if self.channel.is_empty() { "" } else { "&channel=" };
            write!(self.channel, "{before}{prefix}.{room}").expect("a string takes any text");
        }
    }

    /// Makes the next publication one of this source: where clients are in rooms, its room.
    #[inline]
    pub fn turn_to_source(&mut self, source: u32) {
        let Some((prefix, _)) = &self.rooms else { return };
        self.publish_to.clear();
        write!(self.publish_to, "{prefix}.{source}").expect("a string takes any text");
    }

    /// Appends a GET of `path?channel=…` with `more` and, where there is one, the cursor.
    pub(super) fn encode_get(&self, out: &mut Outgoing, path: &str, more: &str, after: &CursorText) {
        self.encode_get_of(out, [path, &self.channel, more], after, &self.headers.fetch);
    }

    /// Appends a poll: for what is new, with what it says of waiting, or for the newest messages.
    pub(super) fn encode_poll(&self, out: &mut Outgoing, path: &str, wait: &str, after: &CursorText) {
        match self.newest {
            Some(count) => self.encode_get(out, path, &format!("&newest={count}"), &CursorText::default()),
            None => self.encode_get(out, path, wait, after),
        }
    }

    /// Appends a GET of `path?channel=…` with the header lines of an event stream and, where there is one, the cursor.
    pub(super) fn encode_event_source(&self, out: &mut Outgoing, path: &str, after: &CursorText) {
        self.encode_get_of(out, [path, &self.channel, ""], after, &self.headers.event_source);
    }

    /// Appends the question for the list of users; nothing where nobody asks for it.
    pub(super) fn encode_user_list(&self, out: &mut Outgoing, path: &str) {
        if let Some(users) = &self.users {
            self.encode_get_of(out, [path, users, ""], &CursorText::default(), &self.headers.fetch);
        }
    }

    fn encode_get_of(&self, out: &mut Outgoing, target: [&str; 3], after: &CursorText, fields: &Fields) {
        let [path, channel, more] = target;
        let (before_cursor, cursor) = after.get().map_or(("", ""), |cursor| ("&after=", cursor));
        let target = [&self.path, path, "?channel=", channel, self.version, more, before_cursor, cursor];
        self.encode_fields(out, &target, fields);
    }

    fn encode_fields(&self, out: &mut Outgoing, target: &[&str], fields: &Fields) {
        let (scheme, authority) = (self.scheme, &self.authority);
        out.request(&Request { method: "GET", scheme, authority, target, fields, lines: "", body: None });
    }

    /// Appends what carries `data`, a JSON text: a POST, or the GET of an event stream that brings it back.
    pub fn encode_post(&self, out: &mut Outgoing, sending: Sending, data: &[u8]) {
        if self.echoes_in_streams && sending == Sending::Echo {
            let data = percent_encode(data, RESERVED).to_string();
            return self.encode_fields(out, &[&self.path, "/sse/echo?data=", &data], &self.headers.event_source);
        }
        let (path, channel) = match sending {
            Sending::Publish => ("/publish?channel=", self.publish_to.as_str()),
            Sending::Echo => ("/echo", ""),
        };
        out.request(&Request {
            method: "POST",
            scheme: self.scheme,
            authority: &self.authority,
            target: &[&self.path, path, channel],
            fields: &self.headers.publication,
            lines: "",
            body: Some(data),
        });
    }

    /// Appends the frame that carries `data`, a JSON text, without its WebSocket head.
    pub fn encode_frame(&self, out: &mut Vec<u8>, sending: Sending, data: &[u8]) {
        match sending {
            Sending::Publish => {
                for part in ["[\"pub\",\"", &self.publish_to, "\","] {
                    out.extend_from_slice(part.as_bytes());
                }
            }
            Sending::Echo => out.extend_from_slice(b"[\"echo\","),
        }
        out.extend_from_slice(data);
        out.push(b']');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_post_is_what_http_wants() {
        let requests = Requests::new(&Target::plain("127.0.0.1:8000".parse().unwrap()), "a", "a.up", 25);
        let mut out = Outgoing::default();
        requests.encode_post(&mut out, Sending::Publish, b"\"x\"");
        let out = out.bytes();
        let mut headers = pushlab_wire::http::Headers::default();
        let (head, size) = pushlab_wire::http::parse_request(out, &mut headers).unwrap().unwrap();
        assert_eq!((head.method, head.target), ("POST", "/publish?channel=a.up"));
        assert_eq!(head.body, pushlab_wire::http::BodyKind::Length(3));
        assert_eq!(&out[size..], b"\"x\"");
    }

    #[test]
    fn a_client_asks_for_its_rooms_and_publishes_to_one() {
        let rooms = Arc::new(Rooms::draw(5, 9, 3, 1));
        let [a, b, c] = rooms.of_client(4) else { panic!("three rooms") };
        let expected = format!("GET /sse?channel=a.{a}&channel=a.{b}&channel=a.{c} HTTP/1.1\r\n");
        let mut requests =
            Requests::new(&Target::plain("127.0.0.1:1".parse().unwrap()), "a", "a", 0).in_rooms(Arc::clone(&rooms));
        for client in [0, 4] {
            requests.turn_to_client(client);
        }
        let mut out = Outgoing::default();
        requests.encode_get(&mut out, "/sse", "", &CursorText::default());
        assert!(out.bytes().starts_with(expected.as_bytes()), "{:?}", str::from_utf8(out.bytes()));
        requests.turn_to_source(*b);
        let mut out = Vec::new();
        requests.encode_frame(&mut out, Sending::Publish, b"1");
        assert_eq!(String::from_utf8(out).unwrap(), format!("[\"pub\",\"a.{b}\",1]"));
    }
}
