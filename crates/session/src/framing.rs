//! How a message looks on each transport: heads and tails around text that is encoded once.

use pushlab_log::{Form, Publication};
use pushlab_wire::cursor::Cursor;
use pushlab_wire::deflate::Deflater;
use pushlab_wire::websocket::{self, Opcode};
use pushlab_wire::{event_stream, gzip, http, lines};

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
        /// Whether the stream is gzip.
        is_compressed: bool,
    },
    /// A line each.
    Lines {
        /// Whether each is a chunk.
        is_chunked: bool,
        /// Whether the stream is gzip.
        is_compressed: bool,
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
pub const FRAMINGS: usize = 13;

impl Framing {
    /// Every framing, by [`Self::index`].
    pub const ALL: [Self; FRAMINGS] = [
        Self::WebSocket { is_compressed: false },
        Self::WebSocket { is_compressed: true },
        Self::Events { is_chunked: false, is_compressed: false },
        Self::Events { is_chunked: false, is_compressed: true },
        Self::Events { is_chunked: true, is_compressed: false },
        Self::Events { is_chunked: true, is_compressed: true },
        Self::Lines { is_chunked: false, is_compressed: false },
        Self::Lines { is_chunked: false, is_compressed: true },
        Self::Lines { is_chunked: true, is_compressed: false },
        Self::Lines { is_chunked: true, is_compressed: true },
        Self::Script { is_chunked: false },
        Self::Script { is_chunked: true },
        Self::Reply,
    ];

    /// Position in tables.
    pub fn index(self) -> usize {
        let of = |is_chunked, is_compressed| 2 * usize::from(is_chunked) + usize::from(is_compressed);
        match self {
            Self::WebSocket { is_compressed } => of(false, is_compressed),
            Self::Events { is_chunked, is_compressed } => 2 + of(is_chunked, is_compressed),
            Self::Lines { is_chunked, is_compressed } => 6 + of(is_chunked, is_compressed),
            Self::Script { is_chunked } => 10 + usize::from(is_chunked),
            Self::Reply => 12,
        }
    }

    /// Whether what is written is a part of a gzip stream.
    pub fn is_gzip(self) -> bool {
        matches!(self, Self::Events { is_compressed: true, .. } | Self::Lines { is_compressed: true, .. })
    }

    /// The form of a publication that is compressed for it.
    fn form(self) -> Option<Form> {
        match self {
            Self::WebSocket { is_compressed: true } | Self::Lines { is_compressed: true, .. } => Some(Form::Text),
            Self::Events { is_compressed: true, .. } => Some(Form::Event),
            _ => None,
        }
    }

    /// Compresses what is to be delivered, if it has at least so many bytes and nobody has done so.
    pub fn compress(self, publication: &Publication, min_bytes: usize, deflater: &mut Deflater) {
        let Some(form) = self.form() else { return };
        let text = &publication.text;
        publication.compress(form, || match form {
            _ if text.as_bytes().len() < min_bytes => None,
            Form::Text => deflater.deflate(text.as_bytes()),
            Form::Event => {
                let [head, data] = text.without_cursor();
                let mut event = Vec::with_capacity(text.as_bytes().len() + event_stream::EVENT_OVERHEAD_BYTES);
                event_stream::encode(&mut event, text.cursor(), &[head, data]);
                deflater.deflate(event.strip_suffix(event_stream::EVENT_END)?)
            }
        });
    }

    /// Appends a delivery.
    #[inline]
    pub fn message(self, out: &mut Vec<u8>, publication: &Publication) {
        let text = &publication.text;
        let compressed = self.form().and_then(|form| publication.compressed(form));
        match (self, compressed) {
            (Self::WebSocket { .. }, Some(compressed)) => {
                websocket::encode_compressed(out, Opcode::Text, compressed, None)
            }
            (Self::Events { is_chunked, .. }, Some(compressed)) => {
                deflated(out, is_chunked, compressed, event_stream::EVENT_END);
            }
            (Self::Lines { is_chunked, .. }, Some(compressed)) => deflated(out, is_chunked, compressed, b"\n"),
            (Self::Events { is_chunked, is_compressed: false }, None) => {
                let [head, data] = text.without_cursor();
                event(out, is_chunked, text.cursor(), &[head, data]);
            }
            _ if self.is_gzip() => self.store(out, |plain, out| plain.message(out, publication)),
            _ => self.frame(out, text.as_bytes(), b""),
        }
    }

    /// Appends a part of a gzip stream that is not compressed: what `write` appends in the same framing without gzip and
    /// chunks.
    fn store(self, out: &mut Vec<u8>, write: impl FnOnce(Self, &mut Vec<u8>)) {
        let (plain, is_chunked) = match self {
            Self::Events { is_chunked, .. } => (Self::Events { is_chunked: false, is_compressed: false }, is_chunked),
            Self::Lines { is_chunked, .. } => (Self::Lines { is_chunked: false, is_compressed: false }, is_chunked),
            _ => unreachable!("only these are streams of gzip"),
        };
        let mut bytes = Vec::new();
        write(plain, &mut bytes);
        if is_chunked {
            http::encode_chunk_head(out, gzip::stored_len(&bytes));
        }
        gzip::push_stored(out, &bytes);
        if is_chunked {
            out.extend_from_slice(http::CHUNK_END);
        }
    }

    /// Appends any other frame; `id` becomes the id of an event.
    pub fn frame(self, out: &mut Vec<u8>, json: &[u8], id: &[u8]) {
        match self {
            _ if self.is_gzip() => self.store(out, |plain, out| plain.frame(out, json, id)),
            Self::WebSocket { .. } => websocket::encode(out, Opcode::Text, json, None),
            Self::Events { is_chunked, .. } => event(out, is_chunked, id, &[json]),
            Self::Lines { is_chunked, .. } => chunk(out, is_chunked, &[json, b"\n"]),
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
            Self::Events { is_chunked: true, .. }
            | Self::Lines { is_chunked: true, .. }
            | Self::Script { is_chunked: true } => after(b"\r\n"),
            Self::Reply => after(b"\r\n\r\n"),
            _ => None,
        }
        .filter(|&at| at < frame.len())
        .unwrap_or(frame.len() / 2)
    }

    /// Appends what stands before the first frame.
    pub fn preamble(self, out: &mut Vec<u8>) {
        match self {
            Self::Events { is_chunked, is_compressed: true } | Self::Lines { is_chunked, is_compressed: true } => {
                chunk(out, is_chunked, &[&gzip::HEAD]);
            }
            Self::Script { is_chunked } => {
                // Browsers wait for about a kilobyte before they show anything.
                let padding = [b' '; 1024];
                let html = b"<!doctype html><meta charset=utf-8><title>pushlab</title>";
                chunk(out, is_chunked, &[html, &padding, b"\n"]);
            }
            _ => {}
        }
    }

    /// Appends what the server says of itself. An event of it has no id: that would be a position to resume from.
    pub fn announcement(self, out: &mut Vec<u8>, json: &[u8]) {
        match self {
            _ if self.is_gzip() => self.store(out, |plain, out| plain.announcement(out, json)),
            Self::Events { is_chunked, .. } => chunk(out, is_chunked, &[b"data:", json, event_stream::EVENT_END]),
            _ => self.frame(out, json, b""),
        }
    }

    /// Appends the position at which a stream begins.
    pub fn start(self, out: &mut Vec<u8>, cursor: &str) {
        match self {
            _ if self.is_gzip() => self.store(out, |plain, out| plain.start(out, cursor)),
            Self::Events { is_chunked, .. } => {
                chunk(out, is_chunked, &[b"id:", cursor.as_bytes(), event_stream::EVENT_END]);
            }
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

    /// Appends when an event source is to come back that does so by itself (HTML standard, section 9.2.6): it keeps to that
    /// from then on.
    pub fn retry(self, out: &mut Vec<u8>, after_ms: u64) {
        match self {
            _ if self.is_gzip() => self.store(out, |plain, out| plain.retry(out, after_ms)),
            Self::Events { is_chunked, .. } => {
                chunk(out, is_chunked, &[b"retry:", after_ms.to_string().as_bytes(), event_stream::EVENT_END]);
            }
            _ => unreachable!("only event streams have such a field"),
        }
    }

    /// Appends the proper end of a stream. One of gzip has none: the connection ends it, as if it broke.
    pub fn end(self, out: &mut Vec<u8>) {
        if let Self::Events { is_chunked: true, is_compressed: false }
        | Self::Lines { is_chunked: true, is_compressed: false }
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

/// `["reconnect",after_ms]`
pub fn reconnect_frame(after_ms: u64) -> String {
    format!("[\"reconnect\",{after_ms}]")
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

fn deflated(out: &mut Vec<u8>, is_chunked: bool, compressed: &[u8], tail: &'static [u8]) {
    if is_chunked {
        http::encode_chunk_head(out, gzip::deflated_len(compressed, tail));
    }
    gzip::push_deflated(out, compressed, tail);
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
    use std::io::Write as _;
    use std::sync::Arc;

    const EVENTS: Framing = Framing::Events { is_chunked: false, is_compressed: false };

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
        assert_eq!(encode(EVENTS), "id:e.1\ndata:[\"msg\",\"a\",\"</b>\"]\n\n");
        let events = Framing::Events { is_chunked: true, is_compressed: false };
        assert_eq!(encode(events), "20\r\nid:e.1\ndata:[\"msg\",\"a\",\"</b>\"]\n\n\r\n");
        let lines = Framing::Lines { is_chunked: true, is_compressed: false };
        assert_eq!(encode(lines), "19\r\n[\"msg\",\"a\",\"e.1\",\"</b>\"]\n\r\n");
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
        publication.compress(Form::Text, || Some((*b"1234567").into()));
        publication.compress(Form::Text, || panic!("once is enough"));
        assert_eq!(encode(true), b"\xc1\x071234567");
        assert_eq!(encode(false), plain);
    }

    /// Something that a stream says, in a framing.
    type Say<'s> = &'s dyn Fn(Framing, &mut Vec<u8>);

    /// Whatever is said on a stream of gzip is what is said on the same stream without it, message by message.
    #[test]
    fn a_stream_of_gzip_says_what_a_plain_one_does() {
        let mut deflater = Deflater::default();
        let publications = ["7".to_owned(), format!("\"{}\"", "</x>".repeat(300))].map(|data| published(&data));
        for framing in Framing::ALL.into_iter().filter(|framing| framing.is_gzip()) {
            let (is_chunked, plain) = match framing {
                Framing::Events { is_chunked, .. } => (is_chunked, EVENTS),
                Framing::Lines { is_chunked, .. } => {
                    (is_chunked, Framing::Lines { is_chunked: false, is_compressed: false })
                }
                _ => unreachable!("the others are no gzip"),
            };
            publications.iter().for_each(|publication| framing.compress(publication, 100, &mut deflater));
            let publications = &publications;
            let said: [Say<'_>; 8] = [
                &|framing, out| framing.preamble(out),
                &|framing, out| framing.announcement(out, b"{}"),
                &|framing, out| framing.start(out, "e.1"),
                &|framing, out| framing.message(out, &publications[0]),
                &|framing, out| framing.message(out, &publications[1]),
                &|framing, out| framing.frame(out, b"[1]", b"e.2"),
                &|framing, out| framing.heartbeat(out, "e.3"),
                &|framing, out| match framing {
                    Framing::Events { .. } => framing.retry(out, 250),
                    _ => framing.frame(out, reconnect_frame(250).as_bytes(), b""),
                },
            ];
            let mut decoder = flate2::write::GzDecoder::new(Vec::new());
            for say in said {
                let (mut expected, mut out) = (Vec::new(), Vec::new());
                say(plain, &mut expected);
                say(framing, &mut out);
                let mut bytes = &out[..];
                if is_chunked {
                    let head = framing.head_len(&out);
                    let size = usize::from_str_radix(str::from_utf8(&out[..head - 2]).unwrap(), 16).unwrap();
                    assert_eq!((&out[head + size..], out.len()), (&b"\r\n"[..], head + size + 2));
                    bytes = &out[head..head + size];
                }
                decoder.write_all(bytes).unwrap();
                decoder.flush().unwrap();
                assert_eq!(String::from_utf8_lossy(decoder.get_ref()), String::from_utf8_lossy(&expected));
                decoder.get_mut().clear();
            }
            let mut out = Vec::new();
            framing.message(&mut out, &publications[1]);
            assert!(out.len() < 100 && publications[1].text.as_bytes().len() > 1200);
            out.clear();
            framing.end(&mut out);
            assert!(out.is_empty());
        }
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
                    Framing::Events { is_chunked: true, .. }
                    | Framing::Lines { is_chunked: true, .. }
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
