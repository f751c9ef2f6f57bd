//! Frames (RFC 9113, sections 4 and 6).

/// What a client says first (RFC 9113, section 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The head of a frame, bytes.
pub const HEAD_BYTES: usize = 9;
/// The largest frame that we take, and that any peer takes, without its head, bytes.
pub const MAX_FRAME_BYTES: usize = 16_384;
/// The largest window, and the largest number of a stream.
pub const MAX: u32 = (1 << 31) - 1;

/// Types of frames.
pub(crate) mod kind {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PUSH_PROMISE: u8 = 5;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

/// Flags of frames.
pub(crate) mod flag {
    pub const END_STREAM: u8 = 1;
    pub const ACK: u8 = 1;
    pub const END_HEADERS: u8 = 4;
    pub const PADDED: u8 = 8;
    pub const PRIORITY: u8 = 32;
}

/// Why a stream or a connection ends (RFC 9113, section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// All is well.
    NoError,
    /// The peer broke the protocol.
    Protocol,
    /// We failed.
    Internal,
    /// More came than the window had room for.
    FlowControl,
    /// Settings were not acknowledged.
    SettingsTimeout,
    /// Something came on a stream that had ended.
    StreamClosed,
    /// A frame has a size that its type does not have.
    FrameSize,
    /// The stream was not looked at: it may be tried again.
    RefusedStream,
    /// Nobody wants it any more.
    Cancel,
    /// Compressed fields cannot be read.
    Compression,
    /// The connection that a CONNECT had opened was reset.
    Connect,
    /// The peer causes too much load.
    EnhanceYourCalm,
    /// TLS does not meet the requirements of HTTP/2.
    InadequateSecurity,
    /// HTTP/1.1 is needed.
    Http11Required,
    /// One that the standard does not know.
    Other(u32),
}

const CODES: [(Code, &str); 14] = [
    (Code::NoError, "NO_ERROR"),
    (Code::Protocol, "PROTOCOL_ERROR"),
    (Code::Internal, "INTERNAL_ERROR"),
    (Code::FlowControl, "FLOW_CONTROL_ERROR"),
    (Code::SettingsTimeout, "SETTINGS_TIMEOUT"),
    (Code::StreamClosed, "STREAM_CLOSED"),
    (Code::FrameSize, "FRAME_SIZE_ERROR"),
    (Code::RefusedStream, "REFUSED_STREAM"),
    (Code::Cancel, "CANCEL"),
    (Code::Compression, "COMPRESSION_ERROR"),
    (Code::Connect, "CONNECT_ERROR"),
    (Code::EnhanceYourCalm, "ENHANCE_YOUR_CALM"),
    (Code::InadequateSecurity, "INADEQUATE_SECURITY"),
    (Code::Http11Required, "HTTP_1_1_REQUIRED"),
];

impl Code {
    /// From its number.
    pub fn from_number(number: u32) -> Self {
        CODES.get(number as usize).map_or(Self::Other(number), |&(code, _)| code)
    }

    /// Its number.
    pub fn number(self) -> u32 {
        match self {
            Self::Other(number) => number,
            known => CODES.iter().position(|&(code, _)| code == known).map_or(0, |at| at as u32),
        }
    }

    /// Its name in the standard.
    pub fn name(self) -> &'static str {
        CODES.iter().find(|&&(code, _)| code == self).map_or("an unknown code", |&(_, name)| name)
    }
}

/// The head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub size: usize,
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
}

impl Head {
    /// Reads one; `None` if it is not all there.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let &[a, b, c, kind, flags, ref stream @ ..] = bytes.first_chunk::<HEAD_BYTES>()?;
        let size = u32::from_be_bytes([0, a, b, c]) as usize;
        Some(Self { size, kind, flags, stream: u32::from_be_bytes(*stream) & MAX })
    }

    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Appends it.
    pub fn encode(self, out: &mut Vec<u8>) {
        let [_, a, b, c] = (self.size as u32).to_be_bytes();
        let [d, e, f, g] = self.stream.to_be_bytes();
        out.extend_from_slice(&[a, b, c, self.kind, self.flags, d, e, f, g]);
    }
}

/// Appends a frame.
pub(crate) fn encode(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    Head { size: payload.len(), kind, flags, stream }.encode(out);
    out.extend_from_slice(payload);
}

/// A 31-bit number, behind a reserved bit that is ignored.
pub(crate) fn number_at(payload: &[u8], at: usize) -> u32 {
    payload.get(at..at + 4).map_or(0, |bytes| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) & MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_come_back() {
        let head = Head { size: 0x01_02_03, kind: 7, flags: 9, stream: 0x7f_ff_00_01 };
        let mut bytes = Vec::new();
        head.encode(&mut bytes);
        assert_eq!(bytes, [1, 2, 3, 7, 9, 0x7f, 0xff, 0, 1]);
        assert_eq!((Head::read(&bytes), Head::read(&bytes[..8])), (Some(head), None));
        // The first bit of the stream's number is reserved.
        bytes[5] = 0xff;
        assert_eq!(Head::read(&bytes), Some(head));
    }

    #[test]
    fn codes_have_their_numbers() {
        for number in 0..20 {
            assert_eq!(Code::from_number(number).number(), number);
        }
        assert_eq!((Code::EnhanceYourCalm.number(), Code::Http11Required.number()), (11, 13));
        assert_eq!(Code::from_number(14), Code::Other(14));
    }
}
