//! What a back end does and what becomes of it.

use pushlab_os::clock::CpuClock;
use pushlab_stats::histogram::Histogram;
use pushlab_workload::busy::BusiestSecond;
use pushlab_workload::pacing::Pacing;
use pushlab_workload::payload::Form;
use std::sync::{Condvar, Mutex};

/// Most connections at once, subjects and controllers.
pub const MAX_PEERS: usize = 64;

/// What a back end announces, and what it publishes when a controller says `go`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Announcement {
    /// Time between two publications, µs; where a feed's pacing changes, at the factor 1.
    pub interval_us: u64,
    /// Publications in all.
    pub count: u64,
    /// What they look like.
    pub form: Form,
}

/// One feed.
#[derive(Debug, Clone, PartialEq)]
pub struct Feed {
    /// When each publication is due; one publisher.
    pub pacing: Pacing,
    /// The first publication that counts in the report.
    pub count_from: u64,
    /// Where the report's seconds begin, ns.
    pub origin_ns: u64,
}

/// What became of a feed. Publications before [`Feed::count_from`] are left out, but for `seconds`.
#[derive(Debug, Clone, Default)]
pub struct FeedReport {
    /// Publications that were to be sent.
    pub scheduled: u64,
    /// Handed to the sockets of all subjects that were connected.
    pub published: u64,
    /// Of these, after the schedule's end.
    pub published_after: u64,
    /// The rest.
    pub unsent: u64,
    /// Intended instant to the write, for each publication and subject.
    pub lateness: Histogram,
    /// Publications in each second from [`Feed::origin_ns`] on.
    pub seconds: Vec<u64>,
    /// Subjects whose connection broke.
    pub cuts: u64,
    /// The busiest second of the back end's thread, from [`Feed::count_from`] on.
    pub busiest: Option<BusiestSecond>,
}

/// What the thread and its owner share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub status: Mutex<Status>,
    pub changed: Condvar,
}

/// What other threads may look at.
#[derive(Debug, Default)]
pub(super) struct Status {
    pub subjects: usize,
    pub published: u64,
    pub reports: Vec<FeedReport>,
    pub cpu: Option<CpuClock>,
}

/// What the thread is told.
pub(super) enum Command {
    Begin(Feed),
    Stop,
}
