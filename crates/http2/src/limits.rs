//! What a peer may make us hold, or do for nothing.

use std::time::Duration;

/// The limits of one side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Streams that the peer has open at the same time.
    pub max_streams: u32,
    /// A head, bytes: the size of the list as RFC 9113, section 6.5.2 counts it. Of a larger one the rest is left out.
    pub max_head_bytes: u32,
    /// CONTINUATION frames of one head.
    pub max_continuations: u32,
    /// What the peer may send on a stream before it is told that this was used, bytes.
    pub stream_window: u32,
    /// The same on all streams together, bytes; at least 65,535.
    pub connection_window: u32,
    /// Bytes in the output above which no stream may add any.
    pub max_output_bytes: usize,
    /// Bytes in the output, answers to the peer's control frames among them, that end the connection: a peer that asks
    /// and does not read.
    pub max_unread_bytes: usize,
    /// Streams that the peer resets, or on which it breaks the protocol.
    pub resets: Rate,
    /// SETTINGS, PING and PRIORITY frames, empty DATA frames, and frames of unknown type.
    pub idle_frames: Rate,
}

/// How often something may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// At once.
    pub burst: u32,
    /// Then, in a second.
    pub per_second: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_streams: 100,
            max_head_bytes: 16 * 1024,
            max_continuations: 8,
            stream_window: 65_535,
            connection_window: 1 << 20,
            max_output_bytes: 64 * 1024,
            max_unread_bytes: 256 * 1024,
            resets: Rate { burst: 200, per_second: 50 },
            idle_frames: Rate { burst: 200, per_second: 50 },
        }
    }
}

/// How much of a [`Rate`] is left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowance {
    left: u32,
    /// Up to when it was filled again.
    filled: Duration,
}

impl Allowance {
    pub(crate) fn new(rate: Rate) -> Self {
        Self { left: rate.burst, filled: Duration::ZERO }
    }

    /// Takes one; says whether there was one.
    pub(crate) fn take(&mut self, rate: Rate, now: Duration) -> bool {
        if self.left < rate.burst {
            let came = now.saturating_sub(self.filled).as_millis() * u128::from(rate.per_second) / 1000;
            if came > 0 {
                self.left = rate.burst.min(self.left.saturating_add(u32::try_from(came).unwrap_or(u32::MAX)));
                self.filled = now;
            }
        } else {
            self.filled = now;
        }
        let has_one = self.left > 0;
        self.left = self.left.saturating_sub(1);
        has_one
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowance_comes_back_with_time() {
        let rate = Rate { burst: 3, per_second: 2 };
        let mut allowance = Allowance::new(rate);
        let mut takes = |at_ms: u64| allowance.take(rate, Duration::from_millis(at_ms));
        assert_eq!([5_000, 5_001, 5_002, 5_003, 5_400].map(&mut takes), [true, true, true, false, false]);
        assert_eq!([5_600, 5_601, 60_000].map(&mut takes), [true, false, true]);
        assert_eq!([60_001, 60_002, 60_003].map(&mut takes), [true, true, false]);
    }
}
