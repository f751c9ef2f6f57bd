//! What bytes are for, counted as they pass. The borders are [`ByteUses`]'s.
//!
//! A message costs one addition here and one where its data is handed on: framing is never looked at, it is what
//! remains.

use crate::result::ByteUses;
use std::ops::AddAssign;

/// Bytes of both directions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// What sockets brought.
    pub down: WayTally,
    /// What was given to sockets.
    pub up: WayTally,
}

/// What TLS adds to the bytes of a connection: ciphertext less plaintext.
///
/// A difference of two counts can be negative for a while: plaintext that waits for the handshake is counted when it
/// is handed over, and a record that came in two reads with the second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TlsBytes {
    /// On the way in.
    pub read: i64,
    /// On the way out.
    pub written: i64,
}

/// Bytes of one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WayTally {
    /// All of them; whoever owns the socket counts them.
    pub all: u64,
    /// Heads of requests and responses, as they are sent: with HTTP/2, compressed.
    pub heads: u64,
    /// Heads of HTTP/2's frames, and those frames that carry no message.
    pub frames: u64,
    /// What the transport carries: texts of WebSockets, lines, data of events, bodies.
    pub texts: u64,
    /// Of those, data of publications and echoes; whoever gets the data counts it.
    pub payload: u64,
}

impl WayTally {
    /// What the bytes since an earlier count were for. They add up to all of them: where a message's first bytes
    /// came before the earlier count, so that its parts are more than what came since, the parts give way.
    pub fn uses_since(&self, earlier: &Self) -> ByteUses {
        let all = self.all - earlier.all;
        let heads = (self.heads - earlier.heads).min(all);
        let http2_frames = (self.frames - earlier.frames).min(all - heads);
        let rest = all - heads - http2_frames;
        let payload = (self.payload - earlier.payload).min(rest);
        let texts = (self.texts - earlier.texts).min(rest);
        let dialect = texts.saturating_sub(payload);
        ByteUses { payload, dialect, framing: rest - payload - dialect, heads, http2_frames, tls: 0 }
    }
}

impl AddAssign for WayTally {
    fn add_assign(&mut self, more: Self) {
        self.all += more.all;
        self.heads += more.heads;
        self.frames += more.frames;
        self.texts += more.texts;
        self.payload += more.payload;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn way(all: u64, heads: u64, texts: u64, payload: u64) -> WayTally {
        WayTally { all, heads, frames: 0, texts, payload }
    }

    proptest! {
        #[test]
        fn uses_add_up_whatever_was_noted(before in 0u64..99, more in prop::array::uniform5(0u64..99)) {
            let earlier = way(before, before / 2, before / 3, before / 4);
            let [all, heads, texts, payload, frames] = more;
            let later = way(before + all, before / 2 + heads, before / 3 + texts, before / 4 + payload);
            let later = WayTally { frames, ..later };
            prop_assert_eq!(later.uses_since(&earlier).total(), all);
        }
    }

    #[test]
    fn what_remains_is_framing() {
        let uses = WayTally { frames: 40, ..way(1_100, 330, 620, 512) }.uses_since(&way(100, 30, 20, 12));
        let expected = ByteUses { payload: 500, dialect: 100, framing: 60, heads: 300, http2_frames: 40, tls: 0 };
        assert_eq!(uses, expected);
        let uses = way(60, 0, 100, 80).uses_since(&WayTally::default());
        assert_eq!(uses, ByteUses { payload: 60, ..ByteUses::default() }, "its beginning came before");
    }
}
