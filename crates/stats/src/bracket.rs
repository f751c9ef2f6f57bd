//! The largest value that passes: doubled until it fails, then narrowed down between the two.

/// The search ends when failing and passing values differ by no more than this share.
pub const TOLERANCE: f64 = 0.05;

/// Where the largest value lies that passes, as far as it is known; what was found where it does, and why a larger one fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bracket<T, E> {
    from: u32,
    max: u32,
    /// The largest that passed.
    pub met: Option<(u32, T)>,
    /// The smallest that failed.
    pub limit: Option<(u32, E)>,
}

impl<T, E> Bracket<T, E> {
    /// Nothing is known yet; `from` is tried first, and nothing above `max`.
    pub const fn new(from: u32, max: u32) -> Self {
        Self { from, max, met: None, limit: None }
    }

    /// The value to be tried next; `None` when it is known well enough.
    pub fn next(&self) -> Option<u32> {
        let low = self.met.as_ref().map_or(0, |(value, _)| *value);
        let value = match &self.limit {
            None if low == 0 => self.from,
            None if low >= self.max => return None,
            None => low.saturating_mul(2).min(self.max),
            Some((high, _)) if f64::from(high - low) <= TOLERANCE * f64::from(*high) || high - low <= 1 => return None,
            Some((high, _)) => low.midpoint(*high),
        };
        (value > 0).then_some(value)
    }

    /// What came of the value that was to be tried.
    pub fn tried(&mut self, value: u32, outcome: Result<T, E>) {
        match outcome {
            Ok(found) => self.met = Some((value, found)),
            Err(why) => self.limit = Some((value, why)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search_for(largest: u32, from: u32, max: u32) -> (Option<u32>, Option<u32>, u32) {
        let mut bracket = Bracket::new(from, max);
        let mut tries = 0;
        while let Some(value) = bracket.next() {
            tries += 1;
            bracket.tried(value, if value <= largest { Ok(()) } else { Err(()) });
        }
        (bracket.met.map(|met| met.0), bracket.limit.map(|limit| limit.0), tries)
    }

    #[test]
    fn the_bracket_holds_the_largest_and_is_narrow() {
        for largest in [1, 7, 100, 999, 12_345, 60_000] {
            let (met, limit, tries) = search_for(largest, 10, 100_000);
            let (low, high) = (met.unwrap_or(0), limit.unwrap());
            assert!(low <= largest && largest < high, "{largest}: {low} to {high}");
            assert!(f64::from(high - low) <= TOLERANCE * f64::from(high) || high - low == 1, "{largest}");
            assert!(tries < 25, "{largest}: {tries}");
        }
    }

    #[test]
    fn the_largest_that_may_be_tried_is_the_end() {
        assert_eq!(search_for(u32::MAX, 10, 1000), (Some(1000), None, 8));
        let (met, limit, _) = search_for(0, 8, 1000);
        assert_eq!((met, limit), (None, Some(1)), "narrowed down to one");
    }
}
