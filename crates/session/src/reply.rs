//! Replies to polls.

use crate::framing::{cursor_frame, gap_frame, reconnect_frame};
use pushlab_log::Publication;
use pushlab_wire::cursor::Cursor;
use pushlab_wire::deflate::Deflater;
use pushlab_wire::gzip;
use std::sync::Arc;

/// A gap, if any, and the position: what surrounds the messages of a reply.
pub type ReplyFrame = (Option<(Cursor, Cursor)>, Cursor);

/// The body of a reply. Without a frame it ends at its last message.
pub fn body(messages: &[Arc<Publication>], frame: Option<ReplyFrame>) -> Vec<u8> {
    let mut body = Vec::with_capacity(64 + messages.iter().map(|m| m.text.as_bytes().len() + 1).sum::<usize>());
    body.push(b'[');
    if let Some((Some((from, to)), _)) = frame {
        body.extend_from_slice(gap_frame(from, to).as_bytes());
        body.push(b',');
    }
    for message in messages {
        body.extend_from_slice(message.text.as_bytes());
        body.push(b',');
    }
    match (frame, messages.last()) {
        (None, Some(last)) => {
            body.extend_from_slice(b"[\"cursor\",\"");
            body.extend_from_slice(last.text.cursor());
            body.extend_from_slice(b"\"]");
        }
        (Some((_, cursor)), _) => body.extend_from_slice(cursor_frame(&cursor.to_string()).as_bytes()),
        (None, None) => unreachable!("a reply has messages or a frame"),
    }
    body.push(b']');
    body
}

/// Tells in the body of a reply, before all else, after how many milliseconds to come back.
pub fn announce_return(body: &mut Vec<u8>, after_ms: u64) {
    body.splice(1..1, [reconnect_frame(after_ms).as_bytes(), b","].concat());
}

/// A reply as gzip, if it has at least so many bytes and that is smaller.
pub fn compress(body: &[u8], min_bytes: usize, deflater: &mut Deflater) -> Option<Vec<u8>> {
    if body.len() < min_bytes { None } else { gzip::encode(deflater, body) }
}
