//! What garbage collections come to: in a span of time, and in each second of a run.

use crate::runtime_log::{Collection, CollectionKind};

const SECOND_NS: u64 = 1_000_000_000;

/// What the collections that were over in a span come to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Paused {
    /// Collections per second, whatever they collected; pauses of one that goes on beside the program are none.
    pub collections_per_s: f64,
    /// Those of the whole heap, per second.
    pub full_per_s: f64,
    /// Share of the span in which the program stood still, per cent. Of a pause that began before it, all counts.
    pub percent: f64,
    /// Longest pause, ms; `None` where there was none.
    pub longest_ms: Option<f64>,
}

impl Paused {
    /// Of a span's collections; `None` if it is empty.
    pub fn of(collections: &[Collection], (start_ns, end_ns): (u64, u64)) -> Option<Self> {
        let inside = || collections.iter().filter(|one| (start_ns..=end_ns).contains(&one.t_ns));
        let length_ns = end_ns.checked_sub(start_ns).filter(|length| *length > 0)? as f64;
        let per_second = |count: usize| count as f64 * SECOND_NS as f64 / length_ns;
        let stopped_ns: f64 = inside().map(|one| one.pause_ns as f64 + one.steps_ns as f64).sum();
        Some(Self {
            collections_per_s: per_second(inside().filter(|one| one.kind != CollectionKind::Part).count()),
            full_per_s: per_second(inside().filter(|one| one.kind == CollectionKind::Full).count()),
            percent: stopped_ns * 100.0 / length_ns,
            longest_ms: inside().map(|one| one.pause_ns).max().map(|ns| ns as f64 / 1e6),
        })
    }
}

/// The seconds of a run, of which each has a value in a column.
#[derive(Debug, Clone, Copy)]
pub struct Seconds {
    /// When the first begins, monotonic clock, ns.
    pub origin: u64,
    /// How many there are.
    pub count: usize,
}

impl Seconds {
    /// The second in which an instant lies, if it is one of these.
    fn at(&self, t_ns: u64) -> Option<usize> {
        let second = usize::try_from(t_ns.checked_sub(self.origin)? / SECOND_NS).ok()?;
        (second < self.count).then_some(second)
    }

    /// The highest of these times, each an instant and a length in ns, in each second, ms.
    pub fn highest_ms(&self, times: impl Iterator<Item = (u64, u64)>) -> Vec<Option<f64>> {
        let mut column: Vec<Option<f64>> = vec![None; self.count];
        for (t_ns, length_ns) in times {
            if let Some(second) = self.at(t_ns) {
                let ms = length_ns as f64 / 1e6;
                column[second] = Some(column[second].map_or(ms, |highest| highest.max(ms)));
            }
        }
        column
    }

    /// The last of these values, each at an instant, of each second.
    pub fn last(&self, values: impl Iterator<Item = (u64, f64)>) -> Vec<Option<f64>> {
        let mut column = vec![None; self.count];
        for (t_ns, value) in values {
            if let Some(second) = self.at(t_ns) {
                column[second] = Some(value);
            }
        }
        column
    }

    /// How long the subject stood still in each second, ms. A pause lies where it was; of the steps before it is not known
    /// when they were, so they count where it ended.
    pub fn stopped_ms(&self, collections: Option<&[Collection]>) -> Vec<Option<f64>> {
        let Some(collections) = collections else { return vec![None; self.count] };
        let mut column = vec![0.0; self.count];
        for one in collections {
            if let Some(second) = self.at(one.t_ns) {
                column[second] += one.steps_ns as f64 / 1e6;
            }
            let mut end_ns = one.t_ns;
            let begin_ns = end_ns.saturating_sub(one.pause_ns).max(self.origin);
            while end_ns > begin_ns {
                // The part of it that lies in the second in which its last nanosecond does.
                let second_ns = (end_ns - 1 - self.origin) / SECOND_NS * SECOND_NS + self.origin;
                let from_ns = second_ns.max(begin_ns);
                if let Some(second) = self.at(from_ns) {
                    column[second] += (end_ns - from_ns) as f64 / 1e6;
                }
                end_ns = from_ns;
            }
        }
        column.into_iter().map(Some).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_pause_lies_in_the_seconds_in_which_it_was() {
        let columns = Seconds { origin: 10_000 * MS, count: 4 };
        let pause = |ms: u64, pause_ms: u64, steps_ms: u64| Collection {
            t_ns: ms * MS,
            pause_ns: pause_ms * MS,
            steps_ns: steps_ms * MS,
            kind: CollectionKind::Full,
        };
        assert_eq!(columns.stopped_ms(None), [None; 4]);
        let own = [pause(9_000, 50, 7), pause(10_100, 300, 0), pause(10_500, 20, 5), pause(13_300, 1_400, 1)];
        let stopped = columns.stopped_ms(Some(&own));
        assert_eq!(stopped, [Some(125.0), Some(100.0), Some(1_000.0), Some(301.0)]);
        let longest = columns.highest_ms(own.iter().map(|one| (one.t_ns, one.pause_ns)));
        assert_eq!(longest, [Some(300.0), None, None, Some(1_400.0)]);
        let told = columns.last(
            [(9_000, 1.0), (10_000, 2.0), (10_999, 3.0), (12_000, 4.0), (14_000, 5.0)]
                .map(|(ms, of)| (ms * MS, of))
                .into_iter(),
        );
        assert_eq!(told, [Some(3.0), None, Some(4.0), None]);
        assert_eq!(columns.stopped_ms(Some(&[pause(14_500, 700, 9)])), [Some(0.0), Some(0.0), Some(0.0), Some(200.0)]);
    }
}
