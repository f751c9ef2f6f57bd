//! How a message looks on each transport: heads and tails around text that is encoded once.

use pushlab_log::Publication;
use pushlab_wire::cursor::Cursor;
use pushlab_wire::websocket::{self, Opcode};
use pushlab_wire::{event_stream, http, lines};

/// The form in which a connection receives. *Plain* is for HTTP/1.0 (proxies), which knows no chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// A text frame each.
    WebSocket {
        /// Whether what was compressed is sent so.
        is_compressed: bool,
    },
    /// An event each.
    Events {
        /// Whether each is a chunk.
        is_chunked: bool,
    },
    /// A line each.
    Lines {
        /// Whether each is a chunk.
        is_chunked: bool,
    },
    /// A script element each, for an iframe.
    Script {
        /// Whether each is a chunk.
        is_chunked: bool,
    },
    /// One reply for all: a held poll.
    Reply,
}

/// Number of distinct framings.
pub const FRAMINGS: usize = 9;

impl Framing {
    /// Every framing, by [`Self::index`].
    pub const ALL: [Self; FRAMINGS] = [
        Self::WebSocket { is_compressed: false },
        Self::Events { is_chunked: false },
        Self::Events { is_chunked: true },
        Self::Lines { is_chunked: false },
        Self::Lines { is_chunked: true },
        Self::Script { is_chunked: false },
        Self::Script { is_chunked: true },
        Self::Reply,
        Self::WebSocket { is_compressed: true },
    ];

    /// Position in tables.
    pub fn index(self) -> usize {
        match self {
            Self::WebSocket { is_compressed } => 8 * usize::from(is_compressed),
            Self::Events { is_chunked } => 1 + usize::from(is_chunked),
            Self::Lines { is_chunked } => 3 + usize::from(is_chunked),
            Self::Script { is_chunked } => 5 + usize::from(is_chunked),
            Self::Reply => 7,
        }
    }

    /// Appends a delivery.
    #[inline]
    pub fn message(self, out: &mut Vec<u8>, publication: &Publication) {
        let text = &publication.text;
        match (self, publication.compressed()) {
            (Self::Events { is_chunked }, _) => {
                let [head, data] = text.without_cursor();
                event(out, is_chunked, text.cursor(), &[head, data]);
            }
            (Self::WebSocket { is_compressed: true }, Some(compressed)) => {
                websocket::encode_compressed(out, compressed, None);
            }
            _ => self.frame(out, text.as_bytes(), b""),
        }
    }

    /// Appends any other frame; `id` becomes the id of an event.
    pub fn frame(self, out: &mut Vec<u8>, json: &[u8], id: &[u8]) {
        match self {
            Self::WebSocket { .. } => websocket::encode(out, Opcode::Text, json, None),
            Self::Events { is_chunked } => event(out, is_chunked, id, &[json]),
            Self::Lines { is_chunked } => chunk(out, is_chunked, &[json, b"\n"]),
            Self::Script { is_chunked } => {
                chunk(out, is_chunked, &[lines::SCRIPT_START, &lines::escape_script(json), lines::SCRIPT_END, b"\n"]);
            }
            Self::Reply => out.extend_from_slice(json),
        }
    }

    /// Where a frame is parted that is to leave in two writes: behind the head that the transport puts before the
    /// payload, in the middle where it has none (HTTP/1.0).
    pub fn head_len(self, frame: &[u8]) -> usize {
        let after = |mark: &[u8]| frame.windows(mark.len()).position(|w| w == mark).map(|at| at + mark.len());
        match self {
            Self::WebSocket { .. } => Some(match frame.get(1) {
                Some(127) => 10,
                Some(126) => 4,
                _ => 2,
            }),
            Self::Events { is_chunked: true }
            | Self::Lines { is_chunked: true }
            | Self::Script { is_chunked: true } => after(b"\r\n"),
            Self::Reply => after(b"\r\n\r\n"),
            _ => None,
        }
        .filter(|&at| at < frame.len())
        .unwrap_or(frame.len() / 2)
    }

    /// Appends what stands before the first frame.
    pub fn preamble(self, out: &mut Vec<u8>) {
        if let Self::Script { is_chunked } = self {
            // Browsers wait for about a kilobyte before they show anything.
            let padding = [b' '; 1024];
            let html = b"<!doctype html><meta charset=utf-8><title>pushlab</title>";
            chunk(out, is_chunked, &[html, &padding, b"\n"]);
        }
    }

    /// Appends what the server says of itself. An event of it has no id: that would be a position to resume from.
    pub fn announcement(self, out: &mut Vec<u8>, json: &[u8]) {
        match self {
            Self::Events { is_chunked } => chunk(out, is_chunked, &[b"data:", json, b"\n\n"]),
            _ => self.frame(out, json, b""),
        }
    }

    /// Appends the position at which a stream begins.
    pub fn start(self, out: &mut Vec<u8>, cursor: &str) {
        match self {
            Self::Events { is_chunked } => chunk(out, is_chunked, &[b"id:", cursor.as_bytes(), b"\n\n"]),
            _ => self.frame(out, cursor_frame(cursor).as_bytes(), b""),
        }
    }

    /// Appends what keeps an idle connection alive. On a stream it is the position, so that a client whose channels
    /// were quiet resumes from where the server was, not from its last message.
    pub fn heartbeat(self, out: &mut Vec<u8>, cursor: &str) {
        match self {
            Self::WebSocket { .. } => websocket::encode(out, Opcode::Ping, b"", None),
            Self::Reply => {}
            _ => self.start(out, cursor),
        }
    }

    /// Appends the proper end of a stream.
    pub fn end(self, out: &mut Vec<u8>) {
        if let Self::Events { is_chunked: true }
        | Self::Lines { is_chunked: true }
        | Self::Script { is_chunked: true } = self
        {
            out.extend_from_slice(http::LAST_CHUNK);
        }
    }
}

/// `["cursor",cursor]`
pub fn cursor_frame(cursor: &str) -> String {
    format!("[\"cursor\",\"{cursor}\"]")
}

/// `["gap",from,to]`
pub fn gap_frame(from: Cursor, to: Cursor) -> String {
    format!("[\"gap\",\"{from}\",\"{to}\"]")
}

fn event(out: &mut Vec<u8>, is_chunked: bool, id: &[u8], data: &[&[u8]]) {
    if is_chunked {
        let size = id.len() + data.iter().map(|d| d.len()).sum::<usize>() + event_stream::EVENT_OVERHEAD_BYTES;
        http::encode_chunk_head(out, size);
    }
    event_stream::encode(out, id, data);
    if is_chunked {
        out.extend_from_slice(http::CHUNK_END);
    }
}

fn chunk(out: &mut Vec<u8>, is_chunked: bool, parts: &[&[u8]]) {
    if is_chunked {
        http::encode_chunk_head(out, parts.iter().map(|p| p.len()).sum());
    }
    for part in parts {
        out.extend_from_slice(part);
    }
    if is_chunked {
        out.extend_from_slice(http::CHUNK_END);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_log::{Limits, MemoryLog};
    use pushlab_wire::cursor::Epoch;
    use std::sync::Arc;

    #[test]
    fn the_table_is_in_order() {
        for (i, framing) in Framing::ALL.into_iter().enumerate() {
            assert_eq!(framing.index(), i);
        }
    }

    fn published(data: &str) -> Arc<Publication> {
        let mut log = MemoryLog::new(Epoch::parse("e").unwrap(), Limits::default());
        log.append("a", data, None, 0).unwrap()
    }

    #[test]
    fn each_framing_is_as_documented() {
        let publication = published("\"</b>\"");
        let encode = |framing: Framing| {
            let mut out = Vec::new();
            framing.message(&mut out, &publication);
            String::from_utf8_lossy(&out).into_owned()
        };
        assert_eq!(encode(Framing::Events { is_chunked: false }), "id:e.1\ndata:[\"msg\",\"a\",\"</b>\"]\n\n");
        assert_eq!(encode(Framing::Events { is_chunked: true }), "20\r\nid:e.1\ndata:[\"msg\",\"a\",\"</b>\"]\n\n\r\n");
        assert_eq!(encode(Framing::Lines { is_chunked: true }), "19\r\n[\"msg\",\"a\",\"e.1\",\"</b>\"]\n\r\n");
        assert_eq!(
            encode(Framing::Script { is_chunked: false }),
            "<script>parent.pushlab('[\"msg\",\"a\",\"e.1\",\"\\x3c/b>\"]')</script>\n"
        );
        assert_eq!(
            encode(Framing::WebSocket { is_compressed: false }),
            "\u{fffd}\u{18}[\"msg\",\"a\",\"e.1\",\"</b>\"]"
        );
    }

    #[test]
    fn what_was_compressed_is_sent_so_to_those_who_take_it() {
        let publication = published(&format!("\"{}\"", "x".repeat(500)));
        let encode = |is_compressed| {
            let mut out = Vec::new();
            Framing::WebSocket { is_compressed }.message(&mut out, &publication);
            out
        };
        let plain = encode(false);
        assert_eq!(encode(true), plain, "nobody has compressed it");
        publication.compress(|text| Some(text[..7].into()));
        publication.compress(|_| panic!("once is enough"));
        assert_eq!(encode(true), [&[0xc1, 7][..], b"[\"msg\",".get(..7).unwrap()].concat());
        assert_eq!(encode(false), plain);
    }

    #[test]
    fn frames_are_parted_behind_their_heads() {
        for (size, head) in [(2, 2), (90, 2), (200, 4), (70_000, 10)] {
            let publication = published(&format!("\"{}\"", "x".repeat(size)));
            for framing in Framing::ALL {
                let mut frame = Vec::new();
                framing.message(&mut frame, &publication);
                let border = framing.head_len(&frame);
                assert!(0 < border && border < frame.len(), "{framing:?}");
                match framing {
                    Framing::WebSocket { .. } => assert_eq!(border, head),
                    Framing::Events { is_chunked: true }
                    | Framing::Lines { is_chunked: true }
                    | Framing::Script { is_chunked: true } => {
                        let rest = usize::from_str_radix(str::from_utf8(&frame[..border - 2]).unwrap(), 16).unwrap();
                        assert_eq!(border + rest + 2, frame.len(), "{framing:?}");
                    }
                    _ => assert_eq!(border, frame.len() / 2, "{framing:?}"),
                }
            }
        }
        assert_eq!(Framing::Reply.head_len(b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n[]"), 25);
    }
}
