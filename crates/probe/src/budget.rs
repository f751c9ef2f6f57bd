//! Readers that may take only a share of the time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long a reader that failed is left alone, ns: what failed is mostly a permission, which does not change.
const RETRY_NS: u64 = 1_000_000_000;

/// The parts of a probe whose cost is told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reader {
    /// CPU, resident memory, threads and loopback: runs at every sample.
    Processes,
    /// Looking for new descendants; only when something was forked on the machine.
    Tree,
    /// Open descriptors.
    Descriptors,
    /// Context switches of every thread.
    Switches,
    /// Proportional memory.
    Pss,
    /// TCP sockets.
    Tcp,
}

/// What a reader has cost so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReaderCost {
    /// Which.
    pub reader: Reader,
    /// Times it ran.
    pub reads: u64,
    /// Mean wall time of one run, ns.
    pub cost_mean_ns: u64,
    /// Least time between two runs at present, ns; 0 means at every sample.
    pub period_ns: u64,
    /// Why it last failed; `None` when it last worked.
    pub failure: Option<String>,
}

/// A reader's clockwork: due again no sooner than its last cost divided by its share of the time.
///
/// The last cost counts, not the mean: then no history can make the reader exceed its share. One slow reading (it
/// was preempted, say) buys a longer pause, and nothing else.
#[derive(Debug)]
pub(crate) struct Budget {
    reader: Reader,
    /// Share of wall time, 0 to 1; `None` runs whenever asked.
    share: Option<f64>,
    period_min_ns: u64,
    period_ns: u64,
    due_ns: u64,
    reads: u64,
    cost_ns: u64,
    failure: Option<String>,
}

impl Budget {
    pub(crate) fn new(reader: Reader, share: Option<f64>, period_min_ns: u64) -> Self {
        let (period_ns, due_ns) = (period_min_ns, 0);
        Self { reader, share, period_min_ns, period_ns, due_ns, reads: 0, cost_ns: 0, failure: None }
    }

    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.due_ns
    }

    /// Books a reading that began at `now_ns` and took `cost_ns`.
    pub(crate) fn spent(&mut self, now_ns: u64, cost_ns: u64, failure: Option<String>) {
        let earned = match self.share {
            Some(share) if share > 0.0 => (cost_ns as f64 / share) as u64,
            Some(_) => u64::MAX,
            None => 0,
        };
        self.period_ns = self.period_min_ns.max(earned);
        if failure.is_some() {
            self.period_ns = self.period_ns.max(RETRY_NS);
        }
        self.due_ns = now_ns.saturating_add(self.period_ns);
        self.reads += 1;
        self.cost_ns = self.cost_ns.saturating_add(cost_ns);
        self.failure = failure;
    }

    pub(crate) fn cost(&self) -> ReaderCost {
        ReaderCost {
            reader: self.reader,
            reads: self.reads,
            cost_mean_ns: self.cost_ns / self.reads.max(1),
            period_ns: self.period_ns,
            failure: self.failure.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_more_than_its_share() {
        let mut budget = Budget::new(Reader::Tcp, Some(0.02), 100_000_000);
        let (mut spent, mut now) = (0u64, 0u64);
        let costs = [10_000, 50_000_000, 1_000, 3_000_000, 900_000_000];
        let mut reads = 0;
        while reads < 500 {
            if budget.is_due(now) {
                let cost = costs[reads % costs.len()];
                budget.spent(now, cost, None);
                spent += cost;
                reads += 1;
            }
            now += 50_000_000;
        }
        // Every reading is followed by the pause that pays for it, so the whole is within the share as well.
        let end = budget.due_ns;
        assert!(spent as f64 <= 0.02 * end as f64 + 1.0, "{spent} of {end}");
        assert_eq!(budget.cost().reads, 500);
    }

    #[test]
    fn a_cheap_reader_runs_at_every_sample_and_a_failed_one_rests() {
        let mut budget = Budget::new(Reader::Descriptors, Some(0.02), 0);
        budget.spent(0, 20_000, None);
        assert!(budget.is_due(50_000_000));
        budget.spent(50_000_000, 20_000, Some("denied".into()));
        assert!(!budget.is_due(100_000_000));
        assert!(budget.is_due(50_000_000 + RETRY_NS));
        assert_eq!(budget.cost().failure.as_deref(), Some("denied"));
    }

    #[test]
    fn no_share_runs_once_and_unlimited_runs_always() {
        let mut none = Budget::new(Reader::Pss, Some(0.0), 0);
        none.spent(0, 1, None);
        assert!(!none.is_due(u64::MAX - 1));
        let mut free = Budget::new(Reader::Processes, None, 0);
        free.spent(7, 1_000_000, None);
        assert!(free.is_due(7));
    }
}
