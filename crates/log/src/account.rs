//! One account for the memory that a server keeps for its peers.

use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

/// Bytes kept because peers sent or asked for something, each counted once: publications while anything refers to them,
/// and what [charges](Charge) stand for.
#[derive(Debug, Default)]
pub struct Account {
    // Threads may add and take away in another order than things happened: for an instant a sum may be below zero.
    total: AtomicIsize,
    history: AtomicIsize,
}

impl Account {
    /// All of them.
    pub fn total(&self) -> usize {
        self.total.load(Relaxed).max(0) as usize
    }

    /// Those of publications in history, which has its own limit.
    pub fn history(&self) -> usize {
        self.history.load(Relaxed).max(0) as usize
    }

    /// All the others.
    pub fn beside_history(&self) -> usize {
        // The two are not read at the same instant.
        self.total().saturating_sub(self.history())
    }

    /// Something changed from one size to another.
    pub fn change(&self, before: usize, after: usize) {
        if before != after {
            self.total.fetch_add(after as isize - before as isize, Relaxed);
        }
    }

    pub(crate) fn change_history(&self, before: usize, after: usize) {
        self.history.fetch_add(after as isize - before as isize, Relaxed);
    }
}

/// Bytes that count as kept until this is dropped.
#[derive(Debug)]
pub struct Charge {
    account: Arc<Account>,
    bytes: usize,
}

impl Charge {
    /// Counts so many.
    pub fn new(account: Arc<Account>, bytes: usize) -> Self {
        account.change(0, bytes);
        Self { account, bytes }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.account.change(self.bytes, 0);
    }
}
