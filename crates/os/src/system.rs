//! Units in which the kernel counts.

/// Bytes of a page of memory.
pub fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// Ticks a second in `/proc/PID/stat`: 100 on all common architectures.
pub fn ticks_per_second() -> u64 {
    rustix::param::clock_ticks_per_second()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_plausible() {
        assert!(page_bytes().is_power_of_two() && page_bytes() >= 4096);
        assert!((1..=1_000_000_000).contains(&ticks_per_second()));
    }
}
