//! Packets as a pcapng file, for Wireshark and its kin.
//!
//! The format is IETF draft-ietf-opsawg-pcapng: a section header, one interface for each direction, and an enhanced
//! packet block for each packet, with nanoseconds since 1970. A packet that did not arrive, or was held back, has a
//! comment that says so.

use crate::direction::{Fate, Heading};
use std::io::{self, Write};

/// Most bytes of a packet that are kept unless told otherwise: all of it.
pub const DEFAULT_SNAP_BYTES: u32 = 65_535;
/// Longest capture unless told otherwise, 1 GiB on disk; packets beyond it are left out and counted.
pub const DEFAULT_MAX_CAPTURE_BYTES: u64 = 1 << 30;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// Packets begin with their IP header.
const LINKTYPE_RAW: u16 = 101;

const OPT_END: u16 = 0;
const OPT_COMMENT: u16 = 1;
const SHB_HARDWARE: u16 = 2;
const SHB_OS: u16 = 3;
const SHB_APPLICATION: u16 = 4;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
/// 10 to the power of minus that.
const NANOSECONDS: u8 = 9;

/// What a capture says of where it was made, and its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureConfig {
    /// The processor, for instance.
    pub hardware: String,
    /// Name and version of the operating system.
    pub os: String,
    /// Name and version of the program.
    pub application: String,
    /// Most bytes kept of each packet; its length is recorded all the same.
    pub snap_bytes: u32,
    /// Longest capture, bytes. The packets after the first one that does not fit are left out.
    pub max_bytes: u64,
}

impl Default for CaptureConfig {
    fn default() -> Self {
        Self {
            hardware: String::new(),
            os: String::new(),
            application: String::new(),
            snap_bytes: DEFAULT_SNAP_BYTES,
            max_bytes: DEFAULT_MAX_CAPTURE_BYTES,
        }
    }
}

/// A capture that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file, or what else it goes to, took no more.
    #[error("cannot write the capture: {0}; look at the free space, or capture fewer bytes of each packet")]
    Write(#[from] io::Error),
}

/// A pcapng file being written. Writes once for each packet: give it a [`io::BufWriter`].
#[derive(Debug)]
pub struct Capture<W> {
    writer: W,
    snap_bytes: u32,
    room_bytes: u64,
    left_out: u64,
    /// The block being put together: one packet and its comment, 65 kB at most.
    block: Vec<u8>,
}

impl<W: Write> Capture<W> {
    /// Begins a file.
    pub fn new(writer: W, config: &CaptureConfig) -> Result<Self, CaptureError> {
        let (snap_bytes, room_bytes) = (config.snap_bytes, config.max_bytes);
        let mut capture = Self { writer, snap_bytes, room_bytes, left_out: 0, block: Vec::new() };
        capture.section(config)?;
        capture.interface("subject-to-load")?;
        capture.interface("load-to-subject")?;
        Ok(capture)
    }

    /// Adds a packet that was offered to the link at `unix_ns`, nanoseconds since 1970.
    pub fn packet(&mut self, heading: Heading, unix_ns: u64, packet: &[u8], fate: Fate) -> Result<(), CaptureError> {
        let kept = &packet[..packet.len().min(self.snap_bytes as usize)];
        self.begin(ENHANCED_PACKET);
        self.word(match heading {
            Heading::Down => 0,
            Heading::Up => 1,
        });
        self.word((unix_ns >> 32) as u32);
        self.word(unix_ns as u32);
        self.word(kept.len() as u32);
        self.word(u32::try_from(packet.len()).unwrap_or(u32::MAX));
        self.padded(kept);
        let comment = match fate {
            Fate::Accepted => None,
            Fate::HeldBack => Some("held back"),
            Fate::Lost => Some("lost on the medium"),
            Fate::QueueFull => Some("dropped: queue full"),
        };
        if let Some(comment) = comment {
            self.option(OPT_COMMENT, comment.as_bytes());
            self.option(OPT_END, b"");
        }
        // The two lengths of a block are 4 bytes each, and `begin` has written one.
        let room = self.room_bytes.checked_sub(self.block.len() as u64 + 4);
        if self.left_out > 0 || room.is_none() {
            self.left_out += 1;
            return Ok(());
        }
        self.end()
    }

    /// Packets that [`CaptureConfig::max_bytes`] left out.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Ends the file.
    pub fn finish(mut self) -> Result<W, CaptureError> {
        self.writer.flush()?;
        Ok(self.writer)
    }

    fn section(&mut self, config: &CaptureConfig) -> Result<(), CaptureError> {
        self.begin(SECTION_HEADER);
        self.word(BYTE_ORDER);
        self.half(1);
        self.half(0);
        // The length of the section is not known.
        self.word(u32::MAX);
        self.word(u32::MAX);
        let options = [(SHB_HARDWARE, &config.hardware), (SHB_OS, &config.os), (SHB_APPLICATION, &config.application)];
        for (code, text) in options.into_iter().filter(|(_, text)| !text.is_empty()) {
            self.option(code, text.as_bytes());
        }
        self.option(OPT_END, b"");
        self.end()
    }

    fn interface(&mut self, name: &str) -> Result<(), CaptureError> {
        self.begin(INTERFACE);
        self.half(LINKTYPE_RAW);
        self.half(0);
        self.word(self.snap_bytes);
        self.option(IF_NAME, name.as_bytes());
        self.option(IF_TSRESOL, &[NANOSECONDS]);
        self.option(OPT_END, b"");
        self.end()
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.word(kind);
        // The length, which `end` knows.
        self.word(0);
    }

    fn end(&mut self) -> Result<(), CaptureError> {
        let length = self.block.len() as u32 + 4;
        self.block[4..8].copy_from_slice(&length.to_le_bytes());
        self.word(length);
        self.room_bytes = self.room_bytes.saturating_sub(u64::from(length));
        self.writer.write_all(&self.block)?;
        Ok(())
    }

    /// A text longer than 65,535 bytes is cut.
    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.half(code);
        self.half(value.len() as u16);
        self.padded(value);
    }

    fn word(&mut self, word: u32) {
        self.block.extend_from_slice(&word.to_le_bytes());
    }

    fn half(&mut self, half: u16) {
        self.block.extend_from_slice(&half.to_le_bytes());
    }

    /// Bytes, filled up to a multiple of four.
    fn padded(&mut self, bytes: &[u8]) {
        self.block.extend_from_slice(bytes);
        let padding = bytes.len().next_multiple_of(4) - bytes.len();
        self.block.extend_from_slice(&[0; 3][..padding]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::flags;
    use crate::packet::tests::ipv4_tcp;
    use std::net::Ipv4Addr;

    fn config() -> CaptureConfig {
        let text = |text: &str| text.to_owned();
        CaptureConfig {
            hardware: text("a processor"),
            os: text("Linux"),
            application: text("pushlab"),
            ..CaptureConfig::default()
        }
    }

    fn packet(payload: usize) -> Vec<u8> {
        let [subject, load] = [1, 2].map(|host| (Ipv4Addr::new(10, 83, 0, host), 80));
        ipv4_tcp(subject, load, 1, flags::ACK, 3, payload)
    }

    fn word(bytes: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(*bytes[at..].first_chunk().expect("a word"))
    }

    /// Kind and whole of each block.
    fn blocks(mut bytes: &[u8]) -> Vec<(u32, &[u8])> {
        let mut blocks = Vec::new();
        while !bytes.is_empty() {
            let length = word(bytes, 4) as usize;
            assert_eq!(length % 4, 0);
            assert_eq!(word(bytes, length - 4) as usize, length, "both lengths are the same");
            blocks.push((word(bytes, 0), &bytes[..length]));
            bytes = &bytes[length..];
        }
        blocks
    }

    fn holds(block: &[u8], text: &str) -> bool {
        String::from_utf8_lossy(block).contains(text)
    }

    const FATES: [(Fate, &str); 4] =
        [(Fate::Accepted, ""), (Fate::HeldBack, "held back"), (Fate::Lost, "lost"), (Fate::QueueFull, "queue full")];

    #[test]
    fn a_file_has_its_blocks() {
        let instant = 1_700_000_000_123_456_789_u64;
        let mut capture = Capture::new(Vec::new(), &config()).expect("memory takes all");
        for (payload, (fate, _)) in FATES.into_iter().enumerate() {
            capture.packet(Heading::Up, instant, &packet(payload), fate).expect("memory takes all");
        }
        let bytes = capture.finish().expect("memory takes all");
        let blocks = blocks(&bytes);
        let kinds: Vec<u32> = blocks.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [SECTION_HEADER, INTERFACE, INTERFACE, 6, 6, 6, 6]);
        assert!(holds(blocks[0].1, "a processor") && holds(blocks[0].1, "Linux") && holds(blocks[0].1, "pushlab"));
        assert!(holds(blocks[1].1, "subject-to-load") && holds(blocks[2].1, "load-to-subject"));
        for (payload, (_, block)) in blocks[3..].iter().enumerate() {
            assert_eq!(word(block, 8), 1, "the interface");
            let found = u64::from(word(block, 12)) << 32 | u64::from(word(block, 16));
            assert_eq!(found, instant);
            assert_eq!((word(block, 20), word(block, 24)), (52 + payload as u32, 52 + payload as u32));
            assert_eq!(block[28..28 + 52 + payload], packet(payload));
            let comment = FATES[payload].1;
            assert!(holds(block, comment));
            assert_eq!(block.len() == 32 + (52 + payload).next_multiple_of(4), comment.is_empty());
        }
    }

    #[test]
    fn packets_are_cut_and_the_file_ends_at_its_limit() {
        let config = CaptureConfig { snap_bytes: 60, max_bytes: 700, ..config() };
        let mut capture = Capture::new(Vec::new(), &config).expect("memory takes all");
        for payload in [1000, 1000, 1000, 1000, 1000, 1000, 0] {
            capture.packet(Heading::Down, 1, &packet(payload), Fate::Accepted).expect("memory takes all");
        }
        let left_out = capture.left_out();
        let bytes = capture.finish().expect("memory takes all");
        assert!(bytes.len() <= 700, "{}", bytes.len());
        let blocks = blocks(&bytes);
        assert_eq!(blocks.len() as u64 - 3 + left_out, 7);
        assert!(left_out >= 2, "nothing follows what was left out");
        assert_eq!((word(blocks[3].1, 20), word(blocks[3].1, 24)), (60, 1052));
    }

    #[test]
    fn a_writer_that_fails_is_an_error() {
        let mut room = [0_u8; 10];
        let error = Capture::new(room.as_mut_slice(), &config()).expect_err("10 bytes are no room");
        assert!(matches!(error, CaptureError::Write(_)), "{error}");
    }
}
