//! The native protocol's frames: JSON arrays, the same on every transport.

use crate::cursor::Cursor;
use crate::http::Version;
use crate::receipt::Receipt;
use serde::de::{Error as _, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// What a client sends over a WebSocket.
#[derive(Debug)]
pub enum ClientFrame<'a> {
    /// `["pub",channel,data]`
    Publish {
        /// Channel name, unchecked.
        channel: Cow<'a, str>,
        /// Valid JSON text.
        data: &'a str,
    },
    /// `["sub",channel]`
    Subscribe(Cow<'a, str>),
    /// `["unsub",channel]`
    Unsubscribe(Cow<'a, str>),
    /// `["poll",cursor]`: answer with what came after it.
    Poll(Cow<'a, str>),
    /// `["ping",n]`
    Ping(u64),
    /// `["echo",data]`
    Echo(&'a str),
    /// `["auth",token]`: goes on with another token.
    Auth(Cow<'a, str>),
}

/// What a server says of itself to a client that asked with `v=2`. Fields that a newer server adds are passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announcement {
    /// Milliseconds between two heartbeats: a stream on which nothing comes for two of them is dead.
    pub heartbeat_ms: u64,
    /// Bytes of a WebSocket message from the client, at most.
    pub max_message_bytes: u64,
    /// Channels of a connection, at most.
    pub max_channels: u64,
    /// The version of HTTP in which the server was asked; `None` where it does not say, or one that is not known here.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "number_of",
        deserialize_with = "version_of"
    )]
    pub http: Option<Version>,
}

fn number_of<S: Serializer>(version: &Option<Version>, serializer: S) -> Result<S::Ok, S::Error> {
    version.map(Version::number).serialize(serializer)
}

fn version_of<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Version>, D::Error> {
    Ok(Version::parse(&Text::deserialize(deserializer)?.0))
}

impl Announcement {
    /// `["server",{"heartbeat_ms":25000,…}]`
    pub fn encode(&self) -> String {
        serde_json::to_string(&("server", self)).expect("numbers and texts always serialise")
    }
}

/// What a server sends.
#[derive(Debug, PartialEq, Eq)]
pub enum ServerFrame<'a> {
    /// `["server",{…}]`: first of all on a connection, where the client asked for it.
    Server(Announcement),
    /// `["msg",channel,cursor,data]`; in an event stream `["msg",channel,data]`, and the event's id is the cursor.
    Message {
        /// Channel name.
        channel: Cow<'a, str>,
        /// Position of this message; `None` in an event stream.
        cursor: Option<Cow<'a, str>>,
        /// JSON text.
        data: &'a str,
    },
    /// `["cursor",cursor]`: everything up to it has been sent.
    Cursor(Cow<'a, str>),
    /// `["pong",n]`
    Pong(u64),
    /// `["echo",data]`
    Echo(&'a str),
    /// `["gap",from,to]`: messages after `from` up to `to` are gone; reload.
    Gap {
        /// The cursor the client had.
        from: Cow<'a, str>,
        /// Where the messages go on.
        to: Cow<'a, str>,
    },
    /// `["reconnect",after_ms]`: the connection ends, and its client is to come back after so many milliseconds.
    Reconnect(u64),
    /// `["error",code,text]`, and behind it the channel where it is about that one alone.
    Error {
        /// A name from the table of errors.
        code: Cow<'a, str>,
        /// For people.
        text: Cow<'a, str>,
        /// The channel that is refused; the connection goes on with the others.
        channel: Option<Cow<'a, str>>,
    },
    /// `["auth",seconds]`: the token that was sent is taken, and is good for so long.
    Auth(u64),
    /// `["token-expires",seconds]`: the client's token is good for so much longer.
    TokenExpires(u64),
}

/// Text that is no frame of the native protocol.
#[derive(Debug, thiserror::Error)]
#[error("not a frame of the native protocol: {0}")]
pub struct BadFrame(#[from] serde_json::Error);

impl<'a> ClientFrame<'a> {
    /// Parses one frame, checking all of its JSON.
    pub fn parse(text: &'a str) -> Result<Self, BadFrame> {
        Ok(serde_json::from_str(text)?)
    }
}

impl<'a> ServerFrame<'a> {
    /// Parses one frame.
    ///
    /// Messages in the form our server writes (no spaces, no escapes before the data) take a short way that
    /// does not check the JSON of their data; all else is parsed in full.
    pub fn parse(text: &'a str) -> Result<Self, BadFrame> {
        match Self::parse_plain_message(text) {
            Some(frame) => Ok(frame),
            None => Ok(serde_json::from_str(text)?),
        }
    }

    fn parse_plain_message(text: &'a str) -> Option<Self> {
        let rest = text.strip_prefix("[\"msg\",\"")?;
        let (channel, rest) = plain_string(rest)?;
        let rest = rest.strip_prefix(',')?;
        let (cursor, data) = match rest.strip_prefix('"') {
            // A string is the cursor if something follows, and the data if nothing does.
            Some(string) => match plain_string(string)? {
                (cursor, data) if data.starts_with(',') => (Some(Cow::Borrowed(cursor)), &data[1..]),
                (_, "]") => (None, rest),
                _ => return None,
            },
            // Anything else in its place is data, but for what may be a cursor behind a space.
            None => (None, rest),
        };
        let data = data.strip_suffix(']')?;
        if data.trim_ascii().len() != data.len() || data.is_empty() {
            return None;
        }
        Some(Self::Message { channel: Cow::Borrowed(channel), cursor, data })
    }
}

/// The text up to the closing quote and what follows it; `None` if it holds an escape.
fn plain_string(text: &str) -> Option<(&str, &str)> {
    let end = memchr::memchr2(b'"', b'\\', text.as_bytes())?;
    (text.as_bytes()[end] == b'"').then(|| (&text[..end], &text[end + 1..]))
}

/// Where a string, an object or an array at the front of a text ends; what is in it is not checked. `None` for
/// anything else, and for one that does not end.
fn end_of_value(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0usize);
    loop {
        match *bytes.get(at)? {
            b'"' => at = end_of_string(bytes, at)?,
            b'{' | b'[' => (at, depth) = (at + 1, depth + 1),
            b'}' | b']' => (at, depth) = (at + 1, depth.checked_sub(1)?),
            _ if depth == 0 => return None,
            _ => at += 1,
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

/// Behind the closing quote of the string that begins at `start`.
fn end_of_string(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        match bytes[at] {
            b'"' => return Some(at + 1),
            _ => at += 2,
        }
    }
}

/// A message or a cursor at the front of a text, in the form that our server writes, and what follows it.
fn plain_element(text: &str) -> Option<(ServerFrame<'_>, &str)> {
    if let Some(rest) = text.strip_prefix("[\"cursor\",\"") {
        let (cursor, rest) = plain_string(rest)?;
        return Some((ServerFrame::Cursor(Cow::Borrowed(cursor)), rest.strip_prefix(']')?));
    }
    let (channel, rest) = plain_string(text.strip_prefix("[\"msg\",\"")?)?;
    let (cursor, rest) = plain_string(rest.strip_prefix(",\"")?)?;
    let (data, rest) = rest.strip_prefix(',').and_then(|rest| rest.split_at_checked(end_of_value(rest)?))?;
    let message = ServerFrame::Message { channel: Cow::Borrowed(channel), cursor: Some(Cow::Borrowed(cursor)), data };
    Some((message, rest.strip_prefix(']')?))
}

/// Parses the reply to a poll: an array of frames, the last of which is a cursor.
///
/// Messages and cursors take a short way, as in [`ServerFrame::parse`]; from the first frame on that cannot, all are
/// parsed in full.
pub fn parse_reply<'a>(text: &'a str, mut sink: impl FnMut(ServerFrame<'a>)) -> Result<(), BadFrame> {
    let (mut rest, mut taken) = (text.strip_prefix('[').unwrap_or_default(), 0);
    while let Some((frame, after)) = plain_element(rest) {
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None if after == "]" => {
                sink(frame);
                return Ok(());
            }
            None => break,
        }
        sink(frame);
        taken += 1;
    }
    parse_whole_reply(text, taken, sink)
}

/// The same, checking all of the JSON, without the first frames.
fn parse_whole_reply<'a>(
    text: &'a str,
    mut skipped: usize,
    mut sink: impl FnMut(ServerFrame<'a>),
) -> Result<(), BadFrame> {
    struct Frames<F>(F);
    impl<'de, F: FnMut(ServerFrame<'de>)> Visitor<'de> for Frames<F> {
        type Value = ();
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array of frames")
        }
        fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
            while let Some(raw) = seq.next_element::<&'de RawValue>()? {
                (self.0)(ServerFrame::parse(raw.get()).map_err(A::Error::custom)?);
            }
            Ok(())
        }
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    deserializer.deserialize_seq(Frames(|frame| match skipped.checked_sub(1) {
        Some(left) => skipped = left,
        None => sink(frame),
    }))?;
    Ok(deserializer.end()?)
}

/// Whether a text is exactly one JSON value.
pub fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// How deep published JSON may be nested: with the frame and the reply around it, still within the limits of the
/// strictest common parsers (64 in .NET, 100 in Ruby, some 1,000 in Python).
pub const MAX_JSON_DEPTH: usize = 60;

/// Whether a text that is JSON is nested more than [`MAX_JSON_DEPTH`] levels deep.
pub fn is_too_deep(json: &str) -> bool {
    let bytes = json.as_bytes();
    // Few have so many brackets at all, and counting is quick.
    if bytes.iter().filter(|&&byte| byte == b'[' || byte == b'{').count() <= MAX_JSON_DEPTH {
        return false;
    }
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'"' => at = end_of_string(bytes, at - 1).unwrap_or(bytes.len()),
            b'[' | b'{' if depth == MAX_JSON_DEPTH => return true,
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// A string that borrows when it can (serde's `Cow` always owns).
struct Text<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrowing;
        impl<'de> Visitor<'de> for Borrowing {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Borrowing)
    }
}

/// Takes the elements of one frame.
struct Elements<A>(A);

impl<'de, A: SeqAccess<'de>> Elements<A> {
    fn need<T: Deserialize<'de>>(&mut self, what: &'static str) -> Result<T, A::Error> {
        self.0.next_element()?.ok_or_else(|| A::Error::custom(format_args!("{what} is missing")))
    }
    fn text(&mut self, what: &'static str) -> Result<Cow<'de, str>, A::Error> {
        Ok(self.need::<Text<'de>>(what)?.0)
    }
    fn json(&mut self) -> Result<&'de str, A::Error> {
        Ok(self.need::<&'de RawValue>("data")?.get())
    }
    fn end(&mut self) -> Result<(), A::Error> {
        match self.0.next_element::<IgnoredAny>()? {
            None => Ok(()),
            Some(_) => Err(A::Error::custom("more elements than this frame has")),
        }
    }
}

macro_rules! deserialize_frame {
    ($frame:ident, $what:literal, |$elements:ident, $name:ident| $body:expr) => {
        impl<'de: 'a, 'a> Deserialize<'de> for $frame<'a> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Frame;
                impl<'de> Visitor<'de> for Frame {
                    type Value = $frame<'de>;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($what)
                    }
                    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                        let mut $elements = Elements(seq);
                        let $name = $elements.text("the frame's name")?;
                        let frame = $body;
                        $elements.end()?;
                        Ok(frame)
                    }
                }
                deserializer.deserialize_seq(Frame)
            }
        }
    };
}

deserialize_frame!(ClientFrame, "an array such as [\"pub\",channel,data]", |e, name| match &*name {
    "pub" => ClientFrame::Publish { channel: e.text("the channel")?, data: e.json()? },
    "sub" => ClientFrame::Subscribe(e.text("the channel")?),
    "unsub" => ClientFrame::Unsubscribe(e.text("the channel")?),
    "poll" => ClientFrame::Poll(e.text("the cursor")?),
    "ping" => ClientFrame::Ping(e.need("the number")?),
    "echo" => ClientFrame::Echo(e.json()?),
    "auth" => ClientFrame::Auth(e.text("the token")?),
    other =>
        return Err(A::Error::custom(format_args!(
            "unknown name {other:?}; known are pub, sub, unsub, poll, ping, echo, auth"
        ))),
});

deserialize_frame!(ServerFrame, "an array such as [\"msg\",channel,cursor,data]", |e, name| match &*name {
    "msg" => {
        let channel = e.text("the channel")?;
        let third = e.json()?;
        match e.0.next_element::<&RawValue>()? {
            Some(data) => {
                let cursor: Text<'_> = serde_json::from_str(third).map_err(A::Error::custom)?;
                ServerFrame::Message { channel, cursor: Some(cursor.0), data: data.get() }
            }
            None => ServerFrame::Message { channel, cursor: None, data: third },
        }
    }
    "cursor" => ServerFrame::Cursor(e.text("the cursor")?),
    "pong" => ServerFrame::Pong(e.need("the number")?),
    "echo" => ServerFrame::Echo(e.json()?),
    "gap" => ServerFrame::Gap { from: e.text("the first cursor")?, to: e.text("the second cursor")? },
    "server" => ServerFrame::Server(e.need("what the server announces")?),
    "error" => {
        let (code, text) = (e.text("the code")?, e.text("the text")?);
        ServerFrame::Error { code, text, channel: e.0.next_element::<Text<'_>>()?.map(|channel| channel.0) }
    }
    "auth" => ServerFrame::Auth(e.need("the seconds")?),
    "token-expires" => ServerFrame::TokenExpires(e.need("the seconds")?),
    "reconnect" => ServerFrame::Reconnect(e.need("the milliseconds")?),
    other => return Err(A::Error::custom(format_args!("unknown name {other:?}"))),
});

/// A message's text, encoded once: every transport writes these bytes with a head and a tail of its own.
#[derive(Debug)]
pub struct MessageText {
    /// `["msg","channel","cursor",data]`
    text: Box<str>,
    cursor_start: u32,
    data_start: u32,
}

impl MessageText {
    /// Encodes a message; `data` is JSON text without line breaks outside of strings.
    pub fn new(channel: &str, cursor: &Cursor, data: &str) -> Self {
        use fmt::Write as _;
        let mut text = String::with_capacity(channel.len() + data.len() + 48);
        text.push_str("[\"msg\",\"");
        text.push_str(channel);
        text.push_str("\",");
        let cursor_start = text.len() as u32;
        write!(text, "\"{cursor}\",").expect("writing to a String cannot fail");
        let data_start = text.len() as u32;
        text.push_str(data);
        text.push(']');
        Self { text: text.into_boxed_str(), cursor_start, data_start }
    }

    /// Writes a receipt mark into the data's place for one, if it has one; allocates nothing.
    pub fn mark(&mut self, receipt: Receipt) {
        let mut bytes = std::mem::take(&mut self.text).into_boxed_bytes().into_vec();
        receipt.fill(&mut bytes[self.data_start as usize..]);
        self.text = String::from_utf8(bytes).expect("ASCII took the place of ASCII").into_boxed_str();
    }

    /// `["msg","channel","cursor",data]`
    pub fn as_bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    /// The cursor's text.
    pub fn cursor(&self) -> &[u8] {
        &self.as_bytes()[self.cursor_start as usize + 1..self.data_start as usize - 2]
    }

    /// `["msg","channel",` and `data]`: the form for an event stream, whose id is the cursor.
    pub fn without_cursor(&self) -> [&[u8]; 2] {
        let bytes = self.as_bytes();
        [&bytes[..self.cursor_start as usize], &bytes[self.data_start as usize..]]
    }
}

/// `text` as a JSON string.
pub fn json_string(text: &str) -> String {
    serde_json::to_string(text).expect("a string always serialises")
}

/// JSON text as one line: a line break outside of strings becomes a space.
///
/// Inside a string JSON has no raw line breaks, so the value stays the same.
pub fn single_line(json: &str) -> Cow<'_, str> {
    if memchr::memchr2(b'\n', b'\r', json.as_bytes()).is_none() {
        return Cow::Borrowed(json);
    }
    Cow::Owned(json.replace(['\n', '\r'], " "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::ErrorCode;
    use crate::cursor::Epoch;
    use proptest::prelude::*;

    fn json() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<String>().prop_map(|s| json_string(&s)),
            any::<i64>().prop_map(|n| n.to_string()),
            prop::collection::vec(any::<String>(), 0..4).prop_map(|v| serde_json::to_string(&v).unwrap()),
        ]
    }

    #[test]
    fn depth_is_that_of_the_deepest_value() {
        let nested = |depth: usize, inside: &str| format!("{}{inside}{}", "[".repeat(depth), "]".repeat(depth));
        for (json, is_deep) in [
            (nested(MAX_JSON_DEPTH, ""), false),
            (nested(MAX_JSON_DEPTH + 1, ""), true),
            (nested(30_000, "1"), true),
            (nested(MAX_JSON_DEPTH - 1, "{\"[\": \"\\\"[{[\"}"), false),
            (nested(MAX_JSON_DEPTH, "\"\\\"\", {}"), true),
            (nested(1, &["[{}]"; 1000].join(",")), false),
            (format!("[{},{}]", nested(40, ""), nested(40, "")), false),
            (json_string(&"[".repeat(1000)), false),
        ] {
            assert!(is_json(&json), "{json}");
            assert_eq!(is_too_deep(&json), is_deep, "{json}");
        }
        let told = ErrorCode::JsonTooDeep.meaning();
        assert!(told.contains(&format!(" {MAX_JSON_DEPTH} ")), "{told}");
    }

    proptest! {
        #[test]
        fn a_message_is_read_back_in_both_forms(channel in "[a-z0-9][a-z0-9._:-]{0,20}", number: u64, offset: u64, data in json()) {
            let cursor = Cursor { epoch: Epoch::from_number(number), offset };
            let message = MessageText::new(&channel, &cursor, &data);
            let text = std::str::from_utf8(message.as_bytes()).unwrap();
            let full: ServerFrame<'_> = serde_json::from_str(text).unwrap();
            let expected = ServerFrame::Message { channel: channel.as_str().into(), cursor: Some(cursor.to_string().into()), data: &data };
            prop_assert_eq!(&full, &expected);
            prop_assert_eq!(ServerFrame::parse(text).unwrap(), full);
            prop_assert_eq!(message.cursor().to_vec(), cursor.to_string().into_bytes());

            let short = message.without_cursor().concat();
            let short = std::str::from_utf8(&short).unwrap();
            let expected = ServerFrame::Message { channel: channel.as_str().into(), cursor: None, data: &data };
            prop_assert_eq!(&serde_json::from_str::<ServerFrame<'_>>(short).unwrap(), &expected);
            prop_assert_eq!(ServerFrame::parse(short).unwrap(), expected);
        }

        #[test]
        fn an_announcement_is_read_back(heartbeat_ms: u64, max_message_bytes: u64, max_channels: u64, number: u64) {
            let http = [None, Some(Version::Http10), Some(Version::Http11), Some(Version::Http2)][number as usize % 4];
            let announcement = Announcement { heartbeat_ms, max_message_bytes, max_channels, http };
            let text = announcement.encode();
            prop_assert_eq!(ServerFrame::parse(&text).unwrap(), ServerFrame::Server(announcement));
            let newer = text.replace("{", &format!("{{\"newer\":[{number}],"));
            prop_assert_eq!(ServerFrame::parse(&newer).unwrap(), ServerFrame::Server(announcement));
            let reply = format!("[{text},[\"cursor\",\"k.1\"]]");
            let mut frames = Vec::new();
            parse_reply(&reply, |frame| frames.push(frame)).unwrap();
            prop_assert_eq!(frames, [ServerFrame::Server(announcement), ServerFrame::Cursor("k.1".into())]);
        }

        #[test]
        fn any_text_is_refused_or_read(text: String) {
            let _ = ClientFrame::parse(&text);
            let _ = ServerFrame::parse(&text);
            let _ = parse_reply(&text, |_| {});
        }
    }

    #[test]
    fn a_mark_goes_into_the_data_alone() {
        let cursor = Cursor { epoch: Epoch::from_number(7), offset: 3 };
        let receipt = Receipt { instant_ns: 1_234_500 };
        let data = "{\"at\":\"!.........!\",\"text\":\"ä\"}";
        let mut message = MessageText::new("a", &cursor, data);
        let size = message.as_bytes().len();
        message.mark(receipt);
        assert_eq!((message.as_bytes().len(), Receipt::find(message.as_bytes())), (size, Some(receipt)));
        let mut other = MessageText::new("a", &cursor, "1");
        let before = other.as_bytes().to_vec();
        other.mark(receipt);
        assert_eq!(other.as_bytes(), before);
    }

    #[test]
    fn client_frames_are_read() {
        assert!(matches!(
            ClientFrame::parse(r#" ["pub", "a", {"x": [1]}] "#),
            Ok(ClientFrame::Publish { data: r#"{"x": [1]}"#, .. })
        ));
        assert!(matches!(ClientFrame::parse(r#"["sub","a\u0062"]"#), Ok(ClientFrame::Subscribe(c)) if c == "ab"));
        assert!(matches!(ClientFrame::parse(r#"["ping",7]"#), Ok(ClientFrame::Ping(7))));
        for bad in [
            "",
            "{}",
            "[]",
            "[1]",
            r#"["pub"]"#,
            r#"["pub","a"]"#,
            r#"["pub","a",]"#,
            r#"["pub","a",1,2]"#,
            r#"["ping",-1]"#,
            r#"["what"]"#,
            r#"["echo",nul]"#,
        ] {
            assert!(ClientFrame::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_announcement_is_as_documented() {
        let http = Some(Version::Http2);
        let announcement = Announcement { heartbeat_ms: 25_000, max_message_bytes: 65_536, max_channels: 64, http };
        let text = r#"["server",{"heartbeat_ms":25000,"max_message_bytes":65536,"max_channels":64,"http":"2"}]"#;
        assert_eq!(announcement.encode(), text);
        // An older server, and a newer one.
        let unsaid = ServerFrame::Server(Announcement { http: None, ..announcement });
        for other in ["", r#","http":"3""#] {
            assert_eq!(ServerFrame::parse(&text.replace(r#","http":"2""#, other)).unwrap(), unsaid);
        }
        for bad in [
            r#"["server"]"#,
            r#"["server",{}]"#,
            r#"["server",{"heartbeat_ms":-1,"max_message_bytes":1,"max_channels":1}]"#,
            r#"["server",{"heartbeat_ms":1,"max_message_bytes":1,"max_channels":1},2]"#,
            r#"["server",{"heartbeat_ms":1,"max_message_bytes":1,"max_channels":1,"http":2}]"#,
        ] {
            assert!(ServerFrame::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_short_way_never_differs_from_the_long_one() {
        for text in [
            r#"["msg","a","k.1" ,1]"#,
            r#"["msg","a", "k.1",1]"#,
            r#"["msg","a","\u0061.1",1]"#,
            r#"["msg","a","k.1",1 ]"#,
            r#"["msg","a","text"]"#,
            r#"["msg","a","te\"xt"]"#,
            r#"["msg","a",["k.1",1]]"#,
        ] {
            assert_eq!(ServerFrame::parse(text).unwrap(), serde_json::from_str(text).unwrap(), "{text}");
        }
    }

    #[test]
    fn a_reply_is_the_same_by_the_short_way_and_by_the_long_one() {
        let read = |text: &str, is_whole: bool| {
            let mut frames = Vec::new();
            let sink = |frame: ServerFrame<'_>| frames.push(format!("{frame:?}"));
            let read = if is_whole { parse_whole_reply(text, 0, sink) } else { parse_reply(text, sink) };
            (frames, read.is_ok())
        };
        let message = r#"["msg","a","k.1",{"x":["]\"}",{"y":"\\\\"}]}]"#;
        for text in [
            format!(r#"[{message},{message},["cursor","k.1"]]"#),
            format!(r#"[{message},["gap","k.1","k.9"],{message},["cursor","k.9"]]"#),
            format!(r#"[{message},["msg","a","k.2",17],["cursor","k.2"]]"#),
            format!(r#"[{message},["msg","a","k.2","text"],["msg","a","k.3",[]],["cursor","k.3"]]"#),
            format!(r#"[{message}, ["cursor","k.1"]]"#),
            format!("[{message},[\"cursor\",\"k.1\"]] \n"),
            format!(r#"[{message},["cursor","\u006b.1"]]"#),
            r#"[["cursor","k.1"]]"#.to_owned(),
            r#"[["msg","a","data"],["cursor","k.1"]]"#.to_owned(),
            "[]".to_owned(),
            " [[\"pong\",1]]".to_owned(),
        ] {
            assert!(read(&text, true).1, "{text}");
            assert_eq!(read(&text, false), read(&text, true), "{text}");
        }
        for bad in [
            format!(r#"[{message}"#),
            format!(r#"[{message},"#),
            format!(r#"[{message}]]"#),
            format!(r#"[{message}{message}]"#),
            format!(r#"[{message},["cursor","k.1"]"#),
            format!(r#"[{message},["cursor","k.1"]] x"#),
            format!(r#"[{message},["msg","a","k.2",{{"x":"]"#),
            format!(r#"[{message},["msg","a","k.2",}}]]"#),
            String::new(),
            "[".to_owned(),
        ] {
            assert!(!read(&bad, false).1 && !read(&bad, true).1, "{bad}");
        }
    }

    #[test]
    fn replies_are_read_frame_by_frame() {
        let mut names = Vec::new();
        parse_reply(r#"[["gap","a.1","b.2"],["msg","c","b.3",{"d":[1,"]"]}],["cursor","b.3"]]"#, |f| {
            names.push(format!("{f:?}"))
        })
        .unwrap();
        assert_eq!(names.len(), 3);
        assert!(names[1].contains(r#"{\"d\":[1,\"]\"]}"#), "{}", names[1]);
        assert!(parse_reply("[[\"cursor\",\"b.3\"]] x", |_| {}).is_err());
        assert!(parse_reply("[\"cursor\"]", |_| {}).is_err());
    }
}
