//! Refused tokens: how many, why, and where the latest came from.

use crate::token::TokenError;
use core::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// What was refused. The event loops share it.
#[derive(Debug, Default)]
pub struct Refusals {
    counts: [AtomicU64; TokenError::ALL.len()],
    untold: Mutex<Option<Untold>>,
}

/// Refusals not yet reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Untold {
    /// How many.
    pub count: u64,
    /// Where the latest came from, if known.
    pub address: Option<IpAddr>,
    /// Why it was refused.
    pub cause: TokenError,
}

impl Refusals {
    /// Counts one more.
    pub fn add(&self, cause: TokenError, address: Option<IpAddr>) {
        self.counts[cause as usize].fetch_add(1, Ordering::Relaxed);
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        let count = untold.map_or(0, |before| before.count) + 1;
        *untold = Some(Untold { count, address, cause });
    }

    /// How many there were for each cause.
    pub fn by_cause(&self) -> impl Iterator<Item = (&'static str, u64)> {
        TokenError::ALL
            .into_iter()
            .zip(&self.counts)
            .map(|(cause, count)| (cause.name(), count.load(Ordering::Relaxed)))
    }

    /// The refusals since the last call, if any.
    pub fn take_untold(&self) -> Option<Untold> {
        self.untold.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_counted_by_cause_and_told_once() {
        let refusals = Refusals::default();
        assert_eq!((refusals.take_untold(), refusals.by_cause().map(|(_, count)| count).sum::<u64>()), (None, 0));
        let address = Some([192, 0, 2, 1].into());
        for (cause, address) in
            [(TokenError::Expired, None), (TokenError::BadTicket, None), (TokenError::Expired, address)]
        {
            refusals.add(cause, address);
        }
        assert_eq!(refusals.take_untold(), Some(Untold { count: 3, address, cause: TokenError::Expired }));
        assert_eq!(refusals.take_untold(), None);
        let counted: Vec<_> = refusals.by_cause().filter(|(_, count)| *count > 0).collect();
        assert_eq!(counted, [("expired", 2), ("bad-ticket", 1)]);
        for (at, cause) in TokenError::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, at, "{cause:?}");
        }
    }
}
