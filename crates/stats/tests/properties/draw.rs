//! Figures of known distributions.

use fastrand::Rng;

/// Normal deviate by Box and Muller.
pub fn normal(rng: &mut Rng) -> f64 {
    (-2.0 * (1.0 - rng.f64()).ln()).sqrt() * (2.0 * std::f64::consts::PI * rng.f64()).cos()
}

/// How the figures of runs scatter around their level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    /// Normal, with this standard deviation as a share of the level.
    Normal(f64),
    /// The exponential of a normal deviate with this standard deviation.
    LogNormal(f64),
    /// Exponential.
    Exponential,
    /// Normal as above, but one in twenty is two to three times as large.
    Outliers(f64),
}

impl Shape {
    /// A figure of level 1.
    pub fn draw(self, rng: &mut Rng) -> f64 {
        match self {
            Self::Normal(spread) => 1.0 + spread * normal(rng),
            Self::LogNormal(sigma) => (sigma * normal(rng)).exp(),
            Self::Exponential => -(1.0 - rng.f64()).ln(),
            Self::Outliers(spread) => {
                let stray = if rng.f64() < 0.05 { 2.0 + rng.f64() } else { 1.0 };
                stray * (1.0 + spread * normal(rng))
            }
        }
    }

    /// Its mean.
    pub fn mean(self) -> f64 {
        match self {
            Self::Normal(_) | Self::Exponential => 1.0,
            Self::LogNormal(sigma) => (sigma * sigma / 2.0).exp(),
            Self::Outliers(_) => 0.95 + 0.05 * 2.5,
        }
    }

    /// `n` figures around `level`.
    pub fn runs(self, rng: &mut Rng, n: usize, level: f64) -> Vec<f64> {
        (0..n).map(|_| level * self.draw(rng)).collect()
    }
}

/// A series around 1 of first-order autoregression: each value keeps `carry` of the last one's deviation.
/// `spread` is its standard deviation; `level` turns the place in the window, 0 to 1, into the level there.
pub fn series(rng: &mut Rng, n: usize, carry: f64, spread: f64, level: impl Fn(f64) -> f64) -> Vec<f64> {
    let mut state = normal(rng);
    let fresh = (1.0 - carry * carry).sqrt();
    (0..n)
        .map(|i| {
            state = carry * state + fresh * normal(rng);
            100.0 * (level(i as f64 / n as f64) + spread * state)
        })
        .collect()
}

/// Share of `trials` for which `event` is true.
pub fn share(trials: u32, event: impl FnMut(u32) -> bool) -> f64 {
    let mut event = event;
    f64::from((0..trials).map(|trial| u32::from(event(trial))).sum::<u32>()) / f64::from(trials)
}
