//! A client's frame that is read is JSON, and written again it is read as itself.
#![no_main]

mod tokens;

use libfuzzer_sys::fuzz_target;
use pushlab_wire::native::{ClientFrame, is_json, json_string, single_line};

const WORDS: &[&str] = &[
    "[\"pub\",",
    "[\"sub\",",
    "[\"unsub\",",
    "[\"poll\",",
    "[\"ping\",",
    "[\"echo\",",
    "[\"auth\",",
    "\"a\"",
    "\\u0061",
    "\\ud800",
    "{\"x\":1}",
    "null",
    "\r\n",
];

fn write(frame: &ClientFrame<'_>) -> String {
    match frame {
        ClientFrame::Publish { channel, data } => format!("[\"pub\",{},{data}]", json_string(channel)),
        ClientFrame::Subscribe(channel) => format!("[\"sub\",{}]", json_string(channel)),
        ClientFrame::Unsubscribe(channel) => format!("[\"unsub\",{}]", json_string(channel)),
        ClientFrame::Poll(cursor) => format!("[\"poll\",{}]", json_string(cursor)),
        ClientFrame::Ping(number) => format!("[\"ping\",{number}]"),
        ClientFrame::Echo(data) => format!("[\"echo\",{data}]"),
        ClientFrame::Auth(token) => format!("[\"auth\",{}]", json_string(token)),
    }
}

fuzz_target!(|data: &[u8]| {
    let data = tokens::expand(data, WORDS);
    let Ok(text) = std::str::from_utf8(&data) else { return };
    let Ok(frame) = ClientFrame::parse(text) else { return };
    assert!(is_json(text));
    let written = write(&frame);
    let again = ClientFrame::parse(&written).expect("a frame that we wrote");
    assert_eq!(format!("{again:?}"), format!("{frame:?}"));

    if let ClientFrame::Publish { data, .. } | ClientFrame::Echo(data) = frame {
        assert!(is_json(data));
        let line = single_line(data);
        assert!(!line.contains(['\r', '\n']));
        let value = |json: &str| serde_json::from_str::<serde_json::Value>(json).ok();
        assert_eq!(value(&line), value(data));
    }
});
