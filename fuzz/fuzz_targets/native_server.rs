//! The short way and the full parser agree, a reply is the frames it was made of, and a message is read back from
//! both of its forms; so is an announcement.
#![no_main]

mod tokens;

use libfuzzer_sys::fuzz_target;
use pushlab_wire::channel::Channel;
use pushlab_wire::cursor::{Cursor, Epoch};
use pushlab_wire::http::Version;
use pushlab_wire::native::{Announcement, MessageText, ServerFrame, is_json, parse_reply, single_line};

const WORDS: &[&str] = &[
    "[\"msg\",",
    "\"a\",",
    "\"k3x9a.7\",",
    "[\"cursor\",",
    "[\"gap\",",
    "[\"error\",",
    "[\"pong\",",
    "[\"echo\",",
    "[\"server\",",
    "{\"heartbeat_ms\":25000,\"max_message_bytes\":65536,\"max_channels\":64}",
    "{\"heartbeat_ms\":25000,\"max_message_bytes\":65536,\"max_channels\":64,\"http\":\"2\"}",
    "\\u0061",
    "{\"x\":1}",
    "\"text\"",
    "[[",
    "]]",
    "null",
    " , ",
];

fuzz_target!(|data: &[u8]| {
    let Some((number, rest)) = data.split_first_chunk::<8>() else { return };
    let rest = tokens::expand(rest, WORDS);
    let Ok(text) = std::str::from_utf8(&rest) else { return };

    if let Ok(frame) = serde_json::from_str::<ServerFrame<'_>>(text) {
        assert_eq!(ServerFrame::parse(text).ok().as_ref(), Some(&frame));
        let reply = format!("[{text},[\"cursor\",\"a.1\"] , {text}]");
        let mut frames = Vec::new();
        parse_reply(&reply, |frame| frames.push(format!("{frame:?}"))).expect("a reply of whole frames");
        let frame = format!("{frame:?}");
        assert_eq!(frames, [frame.clone(), format!("{:?}", ServerFrame::Cursor("a.1".into())), frame]);
    }
    let numbers = u64::from_le_bytes(*number);
    let announcement = Announcement {
        heartbeat_ms: numbers,
        max_message_bytes: !numbers,
        max_channels: numbers >> 32,
        http: (numbers % 2 == 0).then_some(Version::Http2),
    };
    let encoded = announcement.encode();
    assert_eq!(ServerFrame::parse(&encoded).ok(), Some(ServerFrame::Server(announcement)));
    let mut count = 0;
    if parse_reply(text, |_| count += 1).is_ok() {
        assert!(text.contains('[') && (count > 0 || text.trim().starts_with('[')));
    }

    let (channel, json) = text.split_once(' ').unwrap_or(("a", text));
    if let Ok(channel) = Channel::parse(channel)
        && is_json(json)
    {
        let number = u64::from_le_bytes(*number);
        let cursor = Cursor { epoch: Epoch::from_number(number), offset: number };
        let line = single_line(json.trim());
        let message = MessageText::new(channel.as_str(), &cursor, &line);
        let whole = std::str::from_utf8(message.as_bytes()).expect("made of strings");
        let parts = message.without_cursor().concat();
        let short = std::str::from_utf8(&parts).expect("made of strings");
        for (text, cursor) in [(whole, Some(cursor.to_string().into())), (short, None)] {
            let expected = ServerFrame::Message { channel: channel.as_str().into(), cursor, data: &line };
            assert_eq!(serde_json::from_str::<ServerFrame<'_>>(text).ok().as_ref(), Some(&expected));
            assert_eq!(ServerFrame::parse(text).ok().as_ref(), Some(&expected));
        }
    }
});
