//! The rules of RFC 9113, one after the other. What h2spec asks as well is not asked again.

use crate::raw::*;
use pushlab_http2::frame::{Code, PREFACE};
use pushlab_http2::limits::Limits;

fn raw() -> Raw {
    Raw::new(Limits::default())
}

fn code(result: Result<Vec<Happened>, pushlab_http2::event::ConnectionError>) -> Code {
    result.unwrap_err().code
}

#[test]
fn it_begins_with_settings_on_both_sides() {
    let mut raw = Raw::fresh(Limits { max_streams: 7, ..Limits::default() });
    let first = raw.heard();
    assert_eq!((first[0].0, first[0].1, first[0].2), (SETTINGS, 0, 0));
    assert!(first[0].3.chunks(6).any(|entry| entry == [0, 3, 0, 0, 0, 7]), "streams at the same time");
    assert!(first[0].3.chunks(6).any(|entry| entry == [0, 8, 0, 0, 0, 1]), "extended CONNECT");
    assert_eq!(first[1].0, WINDOW_UPDATE);
    raw.say(PREFACE).unwrap();
    raw.frame(SETTINGS, 0, 0, &[]).unwrap();
    assert_eq!(raw.heard(), [(SETTINGS, ACK, 0, vec![])]);

    assert_eq!(code(Raw::fresh(Limits::default()).say(b"GET / HTTP/1.1\r\n\r\n")), Code::Protocol);
    let mut hasty = Raw::fresh(Limits::default());
    hasty.say(PREFACE).unwrap();
    assert_eq!(code(hasty.frame(PING, 0, 0, &[0; 8])), Code::Protocol);
    let told = hasty.heard();
    let (kind, _, _, payload) = told.last().unwrap();
    assert_eq!((*kind, &payload[..8]), (GOAWAY, &[0, 0, 0, 0, 0, 0, 0, 1][..]));
    assert!(payload.ends_with(b"the first frame is not SETTINGS"));
    assert_eq!(hasty.say(b"more").unwrap(), [], "behind its end nothing is read");
}

#[test]
fn a_request_and_its_answer() {
    let mut raw = raw();
    let events = raw.head(1, &[&POST[..], &[("content-length", "5")]].concat(), false).unwrap();
    let Happened::Request(1, fields, false) = &events[0] else { panic!("{events:?}") };
    assert_eq!(fields[0], (":method".to_owned(), "POST".to_owned()));
    raw.connection.set_owner(1, 40);
    assert_eq!(raw.frame(DATA, 0, 1, b"he").unwrap(), [Happened::Data(40, b"he".to_vec(), false)]);
    let padded = [&[3][..], b"llo", &[0; 3]].concat();
    assert_eq!(raw.frame(DATA, PADDED | END_STREAM, 1, &padded).unwrap(), [Happened::Data(40, b"llo".to_vec(), true)]);
    raw.connection.head(1, &list(&[(":status", "200"), ("a", "b")]), false);
    assert_eq!(raw.connection.data(1, b"bye"), Some(3));
    raw.connection.end(1);
    let told = raw.heard();
    assert_eq!((told[0].0, told[0].1), (HEADERS, END_HEADERS));
    assert_eq!(raw.decode(&told[0].3)[1], ("a".to_owned(), "b".to_owned()));
    assert_eq!(told[1..], [(DATA, END_STREAM, 1, b"bye".to_vec())], "the last frame says the end");
    assert_eq!((raw.connection.open_streams(), raw.connection.data(1, b"more")), (0, None));
}

#[test]
fn an_end_behind_what_has_left_is_a_frame_of_its_own() {
    let mut raw = raw();
    raw.head(1, &GET, true).unwrap();
    raw.head(3, &GET, true).unwrap();
    raw.connection.head(1, &list(&[(":status", "204")]), false);
    raw.heard();
    raw.connection.end(1);
    assert_eq!(raw.heard(), [(DATA, END_STREAM, 1, vec![])]);
    raw.connection.head(3, &list(&[(":status", "204")]), true);
    assert_eq!(raw.heard()[0].1, END_HEADERS | END_STREAM);
    assert_eq!(raw.connection.open_streams(), 0);
}

#[test]
fn a_head_may_come_in_parts() {
    let mut raw = raw();
    let block = raw.block(&GET);
    let (a, b) = block.split_at(3);
    assert_eq!(raw.frame(HEADERS, END_STREAM, 1, a).unwrap(), []);
    assert_eq!(raw.frame(CONTINUATION, 0, 1, &b[..1]).unwrap(), []);
    let events = raw.frame(CONTINUATION, END_HEADERS, 1, &b[1..]).unwrap();
    assert!(matches!(&events[..], [Happened::Request(1, fields, true)] if fields.len() == 4), "{events:?}");
    raw.frame(HEADERS, 0, 3, a).unwrap();
    assert_eq!(code(raw.frame(PING, 0, 0, &[0; 8])), Code::Protocol, "nothing stands between");
}

#[test]
fn a_large_head_of_ours_goes_out_in_parts() {
    let mut raw = raw();
    raw.head(1, &GET, true).unwrap();
    // What Huffman coding does not shorten.
    let value = "\u{7f}".repeat(40_000);
    raw.connection.head(1, &list(&[(":status", "200"), ("a", &value)]), true);
    let told = raw.heard();
    let kinds: Vec<_> = told.iter().map(|frame| (frame.0, frame.1)).collect();
    assert_eq!(kinds, [(HEADERS, END_STREAM), (CONTINUATION, 0), (CONTINUATION, END_HEADERS)]);
    let block: Vec<u8> = told.into_iter().flat_map(|frame| frame.3).collect();
    assert_eq!(raw.decode(&block)[1].1, value);
}

#[test]
fn what_breaks_a_stream_leaves_the_others() {
    let mut raw = raw();
    raw.head(1, &POST, false).unwrap();
    raw.connection.set_owner(1, 41);
    raw.head(3, &[&POST[..], &[("content-length", "5")]].concat(), false).unwrap();
    raw.connection.set_owner(3, 43);
    let reset = |owner, code| Happened::Reset(owner, code, false);
    assert_eq!(raw.frame(DATA, END_STREAM, 3, b"four").unwrap(), [reset(43, Code::Protocol)], "less than it said");
    assert_eq!(raw.frame(WINDOW_UPDATE, 0, 1, &[0; 4]).unwrap(), [reset(41, Code::Protocol)]);
    let told: Vec<_> = raw.heard();
    assert_eq!(told, [(RST_STREAM, 0, 3, vec![0, 0, 0, 1]), (RST_STREAM, 0, 1, vec![0, 0, 0, 1])]);
    // What the peer had sent before it knew is nothing, and neither is it told again.
    assert_eq!(raw.frame(DATA, 0, 3, b"late").unwrap(), []);
    let events = raw.head(5, &[&GET[..], &[("Upper", "case")]].concat(), true).unwrap();
    assert_eq!(events, [], "a malformed request is nobody's");
    assert_eq!(raw.heard(), [(RST_STREAM, 0, 5, vec![0, 0, 0, 1])]);
    assert!(matches!(raw.head(7, &GET, true).unwrap()[..], [Happened::Request(7, ..)]));
}

#[test]
fn what_breaks_the_connection_is_said_with_its_code() {
    let mut too_large = frame(PING, 0, 0, &[]);
    too_large[0] = 1;
    let cases: Vec<(&str, Code, Vec<u8>)> = vec![
        ("DATA of no stream", Code::Protocol, frame(DATA, 0, 0, b"a")),
        ("DATA before its stream", Code::Protocol, frame(DATA, 0, 9, b"a")),
        ("an even stream", Code::Protocol, frame(HEADERS, END_HEADERS, 2, &[0x82])),
        ("RST_STREAM before its stream", Code::Protocol, frame(RST_STREAM, 0, 9, &[0; 4])),
        ("WINDOW_UPDATE before its stream", Code::Protocol, frame(WINDOW_UPDATE, 0, 9, &[0, 0, 0, 1])),
        ("a push", Code::Protocol, frame(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2])),
        ("CONTINUATION without HEADERS", Code::Protocol, frame(CONTINUATION, END_HEADERS, 1, &[])),
        ("padding exceeds the payload", Code::Protocol, frame(HEADERS, PADDED | END_HEADERS, 1, &[9, 1])),
        ("a priority too short", Code::FrameSize, frame(HEADERS, WITH_PRIORITY | END_HEADERS, 1, &[0; 4])),
        ("a block that is none", Code::Compression, frame(HEADERS, END_HEADERS, 1, &[0xff, 0xff, 0xff])),
        ("a large frame", Code::FrameSize, too_large),
        ("the window of all", Code::FlowControl, frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff])),
        ("half a ping", Code::FrameSize, frame(PING, 0, 0, &[0; 4])),
    ];
    for (what, expected, bytes) in cases {
        assert_eq!(code(raw().say(&bytes)), expected, "{what}");
    }
}

#[test]
fn streams_that_have_ended_are_told_apart() {
    let mut raw = raw();
    raw.head(5, &GET, true).unwrap();
    raw.connection.head(5, &list(&[(":status", "204")]), true);
    assert_eq!(raw.frame(WINDOW_UPDATE, 0, 5, &[0, 0, 0, 1]).unwrap(), [], "it may cross the end");
    assert_eq!(raw.frame(DATA, 0, 5, b"a").unwrap(), []);
    assert!(raw.heard().contains(&(RST_STREAM, 0, 5, vec![0, 0, 0, 5])), "STREAM_CLOSED");
    assert_eq!(code(raw.head(3, &GET, true)), Code::Protocol, "numbers only rise");
}

#[test]
fn windows_hold_back_what_is_sent() {
    let mut raw = raw();
    // Ten bytes on each stream.
    raw.frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 10]).unwrap();
    for (stream, owner) in [(1, 41), (3, 43)] {
        raw.head(stream, &GET, true).unwrap();
        raw.connection.set_owner(stream, owner);
        raw.connection.head(stream, &list(&[(":status", "200")]), false);
        assert_eq!(raw.connection.data(stream, &[b'x'; 25]), Some(10));
    }
    assert_eq!(raw.connection.next_ready(), None);
    raw.frame(WINDOW_UPDATE, 0, 3, &[0, 0, 0, 5]).unwrap();
    assert_eq!((raw.connection.next_ready(), raw.connection.data(3, &[b'x'; 15])), (Some(43), Some(5)));
    assert_eq!(raw.connection.next_ready(), None);
    // A smaller window for all: what was sent beyond it is owed.
    raw.frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 3]).unwrap();
    raw.frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 7]).unwrap();
    assert_eq!(raw.connection.next_ready(), None);
    raw.frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 30]).unwrap();
    assert_eq!((raw.connection.next_ready(), raw.connection.data(1, &[b'x'; 15])), (Some(41), Some(15)));
    raw.frame(WINDOW_UPDATE, 0, 3, &[0, 0, 0, 100]).unwrap();
    assert_eq!(code(raw.frame(SETTINGS, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff])), Code::FlowControl);
}

#[test]
fn those_that_wait_take_turns() {
    let limits = Limits { max_output_bytes: 20_000, ..Limits::default() };
    let mut raw = Raw::new(limits);
    raw.frame(SETTINGS, 0, 0, &[0, 4, 0, 0x10, 0, 0]).unwrap();
    raw.frame(WINDOW_UPDATE, 0, 0, &[0, 0x10, 0, 0]).unwrap();
    for (stream, owner) in [(1, 41), (3, 43), (5, 45)] {
        raw.head(stream, &GET, true).unwrap();
        raw.connection.set_owner(stream, owner);
        raw.connection.head(stream, &list(&[(":status", "200")]), false);
    }
    let first = raw.connection.data(1, &[0; 50_000]).unwrap();
    assert!((19_000..20_000).contains(&first), "{first}: what fits");
    assert_eq!([3, 5].map(|stream| raw.connection.data(stream, &[0; 50_000])), [Some(0), Some(0)]);
    let mut order = Vec::new();
    for _ in 0..4 {
        raw.heard();
        while let Some(owner) = raw.connection.next_ready() {
            let stream = owner - 40;
            let taken = raw.connection.data(stream, &[0; 50_000]).unwrap();
            order.push((owner, taken));
        }
    }
    let owners: Vec<u32> = order.iter().map(|&(owner, _)| owner).collect();
    assert_eq!(owners[..6], [41, 43, 45, 41, 43, 45], "{order:?}");
    assert!(order.iter().all(|&(_, taken)| taken <= 16_384), "a frame at a time: {order:?}");
}

#[test]
fn what_is_used_may_come_again() {
    let mut raw = raw();
    raw.head(1, &POST, false).unwrap();
    for _ in 0..4 {
        raw.frame(DATA, 0, 1, &[0; 16_000]).unwrap();
    }
    assert_eq!(raw.heard(), [], "nothing was used");
    raw.connection.used(1, 40_000);
    assert_eq!(raw.heard(), [(WINDOW_UPDATE, 0, 1, 40_000u32.to_be_bytes().to_vec())]);
    raw.frame(DATA, 0, 1, &[0; 16_000]).unwrap();
    raw.connection.set_owner(1, 41);
    for _ in 0..2 {
        raw.frame(DATA, 0, 1, &[0; 12_000]).unwrap();
    }
    let events = raw.frame(DATA, 0, 1, &[0; 2_000]).unwrap();
    assert_eq!(events, [Happened::Reset(41, Code::FlowControl, false)], "more than it may");
}

#[test]
fn a_connection_says_that_it_goes() {
    let mut raw = raw();
    raw.head(1, &GET, true).unwrap();
    raw.connection.go_away(Code::NoError, true);
    assert_eq!(raw.heard(), [(GOAWAY, 0, 0, vec![0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0])]);
    assert!(matches!(raw.head(3, &GET, true).unwrap()[..], [Happened::Request(3, ..)]), "on its way already");
    raw.connection.go_away(Code::NoError, false);
    assert_eq!(raw.heard(), [(GOAWAY, 0, 0, vec![0, 0, 0, 3, 0, 0, 0, 0])]);
    assert!(raw.connection.is_over());
}

#[test]
fn nothing_follows_the_last_farewell() {
    let mut raw = Raw::new(Limits::default());
    raw.head(1, &GET, true).unwrap();
    raw.head(3, &POST, false).unwrap();
    raw.frame(DATA, 0, 3, &[0; 16_384]).unwrap();
    raw.frame(SETTINGS, 0, 1, &[]).unwrap_err();
    raw.connection.reset(1, Code::Cancel);
    raw.connection.used(3, 60_000);
    raw.connection.ping([0; 8]);
    raw.connection.go_away(Code::NoError, true);
    let kinds: Vec<u8> = raw.heard().into_iter().map(|frame| frame.0).collect();
    assert_eq!((kinds, raw.connection.open_streams()), (vec![GOAWAY], 1));
}
