//! What a peer may make us hold or do.

use crate::raw::*;
use pushlab_http2::frame::Code;
use pushlab_http2::limits::{Limits, Rate};
use std::time::Duration;

const FEW: Rate = Rate { burst: 10, per_second: 5 };

/// How often something can be said before the connection ends, and with which code it does.
fn until_the_end(
    mut raw: Raw,
    mut say: impl FnMut(&mut Raw, u32) -> Result<Vec<Happened>, pushlab_http2::event::ConnectionError>,
) -> (u32, Code) {
    for n in 0..100_000 {
        if let Err(error) = say(&mut raw, n) {
            return (n, error.code);
        }
    }
    panic!("nothing bounds it");
}

#[test]
fn frames_that_carry_nothing_are_counted() {
    let raw = || Raw::new(Limits { idle_frames: FEW, ..Limits::default() });
    // One was the client's SETTINGS.
    for (kind, stream, payload) in [(PING, 0, &[0; 8][..]), (SETTINGS, 0, &[]), (PRIORITY, 9, &[0; 5]), (99, 0, &[])] {
        let end = until_the_end(raw(), |raw, _| raw.frame(kind, 0, stream, payload));
        assert_eq!(end, (9, Code::EnhanceYourCalm), "{kind}");
    }
    let mut open = raw();
    open.head(1, &POST, false).unwrap();
    assert_eq!(until_the_end(open, |raw, _| raw.frame(DATA, 0, 1, &[])), (9, Code::EnhanceYourCalm));
    let mut patient = raw();
    for second in 0..50 {
        patient.now = Duration::from_secs(second);
        (0..5).for_each(|_| drop(patient.frame(PING, 0, 0, &[0; 8]).unwrap()));
        patient.heard();
    }
}

#[test]
fn streams_that_are_reset_are_counted() {
    let raw = || Raw::new(Limits { resets: FEW, ..Limits::default() });
    let rapid = until_the_end(raw(), |raw, n| {
        raw.head(2 * n + 1, &GET, true)?;
        raw.frame(RST_STREAM, 0, 2 * n + 1, &[0, 0, 0, 8])
    });
    assert_eq!(rapid, (10, Code::EnhanceYourCalm));
    // So are those that we must reset: CVE-2025-8671.
    let made = until_the_end(raw(), |raw, n| {
        raw.head(2 * n + 1, &POST, false)?;
        raw.frame(WINDOW_UPDATE, 0, 2 * n + 1, &[0; 4])
    });
    assert_eq!(made, (10, Code::EnhanceYourCalm));
}

#[test]
fn there_are_so_many_streams() {
    let mut raw = Raw::new(Limits { max_streams: 3, ..Limits::default() });
    for stream in [1, 3, 5] {
        raw.head(stream, &POST, false).unwrap();
    }
    assert_eq!(raw.head(7, &POST, false).unwrap(), []);
    assert_eq!(raw.heard(), [(RST_STREAM, 0, 7, vec![0, 0, 0, 7])], "refused, so that it may be tried again");
    assert_eq!(raw.frame(DATA, END_STREAM, 7, b"body").unwrap(), [], "what was under way is passed over");
    assert_eq!(raw.heard(), []);
    raw.frame(RST_STREAM, 0, 3, &[0; 4]).unwrap();
    assert_eq!(raw.head(9, &GET, true).unwrap().len(), 1, "one has ended");
}

#[test]
fn heads_are_bounded() {
    let limits = Limits { max_head_bytes: 400, max_continuations: 3, ..Limits::default() };
    let long = "x".repeat(200);
    let mut raw = Raw::new(limits);
    let block = raw.block(&[&GET[..], &[("a", &long), ("b", &long)]].concat());
    let mut bytes = frame(HEADERS, END_HEADERS | END_STREAM, 1, &block);
    let mut head = pushlab_wire::fields::FieldList::default();
    let (_, event) = raw.connection.receive(&mut bytes, Duration::ZERO, &mut head).unwrap();
    let pushlab_http2::event::Event::Request { is_cut: true, head, .. } = event else { panic!("{event:?}") };
    assert!(head.size() <= 400 && head.get(":path").is_some(), "{head:?}");
    // The table is as it would be: the next one may refer to it.
    assert_eq!(raw.head(3, &GET, true).unwrap().len(), 1);

    let parts = until_the_end(Raw::new(limits), |raw, n| match n {
        0 => raw.frame(HEADERS, 0, 1, &[0x82]),
        _ => raw.frame(CONTINUATION, 0, 1, &[]),
    });
    assert_eq!(parts, (4, Code::EnhanceYourCalm));
    let bytes = until_the_end(Raw::new(Limits { max_continuations: 1000, ..limits }), |raw, n| {
        let kind = if n == 0 { HEADERS } else { CONTINUATION };
        raw.frame(kind, 0, 1, &[0x82; 16_384])
    });
    assert_eq!(bytes, (1, Code::EnhanceYourCalm));
}

#[test]
fn who_does_not_read_is_let_go() {
    let many = Rate { burst: u32::MAX, per_second: 0 };
    let raw = Raw::new(Limits { idle_frames: many, max_unread_bytes: 1700, ..Limits::default() });
    let (pings, code) = until_the_end(raw, |raw, _| raw.frame(PING, 0, 0, &[0; 8]));
    assert_eq!((pings, code), (101, Code::EnhanceYourCalm));
}

/// Whoever owns streams ends them with the connection, so none may be open of which nobody has heard.
#[test]
fn who_does_not_read_answers_is_let_go_with_all_streams_heard_of() {
    let mut raw = Raw::new(Limits { max_unread_bytes: 1700, ..Limits::default() });
    let answer = list(&[(":status", "200"), ("content-length", "3")]);
    let mut heard = 0;
    let error = loop {
        match raw.head(2 * heard + 1, &GET, true) {
            Ok(events) => assert_eq!(events.len(), 1),
            Err(error) => break error,
        }
        raw.connection.set_owner(2 * heard + 1, 1_000 + heard);
        raw.connection.head(2 * heard + 1, &answer, heard % 2 == 0);
        heard += 1;
    };
    assert_eq!(error.code, Code::EnhanceYourCalm);
    let unanswered: Vec<u32> = (0..heard).filter(|n| n % 2 == 1).map(|n| 1_000 + n).collect();
    assert!(heard > 10 && raw.connection.owners() == unanswered, "{heard} {:?}", raw.connection.owners());
}
