//! The lines that pass between all bounds: a convex polygon in the plane of what a line may be.

/// A difference of two clocks now, ns, and by how much it grows, ns a second.
pub type Corner = (f64, f64);

/// A polygon, cut by half-planes; empty when nothing is possible.
#[derive(Debug, Clone)]
pub struct Region {
    corners: Vec<Corner>,
    spare: Vec<Corner>,
}

impl Region {
    /// All differences and drifts up to these, ns and ns a second.
    pub fn up_to(difference_max: f64, drift_max: f64) -> Self {
        let (a, b) = (difference_max, drift_max);
        Self { corners: vec![(-a, -b), (a, -b), (a, b), (-a, b)], spare: Vec::new() }
    }

    /// Keeps what was not above `most` some time ago, s.
    pub fn was_at_most(&mut self, most: f64, ago: f64) {
        self.cut(|(difference, drift)| difference - drift * ago - most);
    }

    /// Keeps what was not below `least` some time ago, s.
    pub fn was_at_least(&mut self, least: f64, ago: f64) {
        self.cut(|(difference, drift)| least - difference + drift * ago);
    }

    /// Cuts away where a function is positive (Sutherland and Hodgman, 1974).
    fn cut(&mut self, beyond: impl Fn(Corner) -> f64) {
        if self.corners.iter().all(|corner| beyond(*corner) <= 0.0) {
            return;
        }
        self.spare.clear();
        let next = self.corners.iter().cycle().skip(1);
        for (&one, &other) in self.corners.iter().zip(next) {
            let (by_one, by_other) = (beyond(one), beyond(other));
            if by_one <= 0.0 {
                self.spare.push(one);
            }
            if by_one * by_other < 0.0 {
                let part = by_one / (by_one - by_other);
                self.spare.push((one.0 + part * (other.0 - one.0), one.1 + part * (other.1 - one.1)));
            }
        }
        std::mem::swap(&mut self.corners, &mut self.spare);
    }

    /// Least and largest difference so long after now, s; `None` when nothing is possible.
    pub fn differences(&self, after: f64) -> Option<(f64, f64)> {
        self.range(|(difference, drift)| difference + drift * after)
    }

    /// Least and largest drift, ns a second.
    pub fn drifts(&self) -> Option<(f64, f64)> {
        self.range(|(_, drift)| drift)
    }

    fn range(&self, of: impl Fn(Corner) -> f64) -> Option<(f64, f64)> {
        let values = || self.corners.iter().map(|corner| of(*corner));
        Some((values().reduce(f64::min)?, values().reduce(f64::max)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_lies_between_all_bounds() {
        let rounded = |range: Option<(f64, f64)>| range.map(|(least, most)| (least.round(), most.round()));
        let mut region = Region::up_to(1e9, 500.0);
        region.was_at_most(10.0, 0.0);
        region.was_at_least(-10.0, 0.0);
        assert_eq!(rounded(region.differences(0.0)), Some((-10.0, 10.0)));
        assert_eq!(rounded(region.differences(1.0)), Some((-510.0, 510.0)));
        // A second ago it lay between 80 and 100: so it has fallen by 70 to 110.
        region.was_at_most(100.0, 1.0);
        region.was_at_least(80.0, 1.0);
        assert_eq!(rounded(region.drifts()), Some((-110.0, -70.0)));
        assert_eq!(rounded(region.differences(-1.0)), Some((80.0, 100.0)));
        assert_eq!(rounded(region.differences(1.0)), Some((-120.0, -60.0)));
        region.was_at_most(79.0, 1.0);
        assert_eq!((region.differences(0.0), region.drifts()), (None, None));
        region.was_at_least(0.0, 0.0);
        assert_eq!(region.drifts(), None, "nothing stays nothing");
    }
}
