//! When the phases begin and end, as the loop looks at it.

const NEVER: u64 = u64::MAX;

/// Instants that the loop compares with again and again; far in the future until they are known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Marks {
    pub idle_ns: u64,
    pub warm_up_ns: u64,
    pub load_ns: u64,
    pub load_end_ns: u64,
    pub after_ns: u64,
    pub end_ns: u64,
}

impl Marks {
    /// Nothing is known.
    pub const UNKNOWN: Self =
        Self { idle_ns: NEVER, warm_up_ns: NEVER, load_ns: NEVER, load_end_ns: NEVER, after_ns: NEVER, end_ns: NEVER };

    /// Whether an instant is of the load phase.
    pub fn is_load(&self, now: u64) -> bool {
        (self.load_ns..self.load_end_ns).contains(&now)
    }
}
