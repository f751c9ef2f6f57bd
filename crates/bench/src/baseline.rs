//! What our server is compared with, side by side in one repeat.

use std::path::{Path, PathBuf};

/// Ends the name of a ratio to another build.
pub const AGAINST: &str = "-against";
/// Ends the name of a figure of another build.
pub const OTHER: &str = "-other";

/// The other side of a comparison.
#[derive(Debug, Clone)]
pub enum Baseline {
    /// A raw-socket program.
    Limit,
    /// The server of another build, by the path of its `pushlab-bench`.
    Other(PathBuf),
}

impl Baseline {
    /// What it is called.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Limit => "limit",
            Self::Other(_) => "other",
        }
    }

    /// The program of the other build, if it is one.
    pub fn program(&self) -> Option<&Path> {
        match self {
            Self::Limit => None,
            Self::Other(program) => Some(program),
        }
    }

    /// Whether a figure is measured beside it.
    pub fn has(&self, figure: &str) -> bool {
        let is_of_two_builds = figure.ends_with(AGAINST) || figure.ends_with(OTHER);
        match self {
            Self::Limit => !is_of_two_builds,
            Self::Other(_) => is_of_two_builds || figure.starts_with("memory/") && !figure.contains("http2"),
        }
    }

    /// What both sides spent on the same work, as a ratio. The limit's says how near we are to it, 1 at best; another
    /// build's how much more we cost, so above 1 we got slower.
    pub fn ratio(&self, baseline: f64, ours: f64) -> f64 {
        match self {
            Self::Limit => baseline / ours,
            Self::Other(_) => ours / baseline,
        }
    }

    /// That ratio, for the reader.
    pub fn ratio_in_words(&self) -> &'static str {
        match self {
            Self::Limit => "limit / ours",
            Self::Other(_) => "ours / the other build's",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_below_1_beside_the_limit_and_above_1_beside_a_faster_build() {
        let other = Baseline::Other("pushlab-bench".into());
        let (baseline_us, ours_us) = (4.0, 5.0);
        assert_eq!(Baseline::Limit.ratio(baseline_us, ours_us), 0.8);
        assert_eq!(other.ratio(baseline_us, ours_us), 1.25);
    }
}
