//! Random loss on the medium: independent, or in bursts after Gilbert and Elliott.

use fastrand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How packets are lost on the medium, after they have used its rate. In TOML: `loss.independent.probability = 0.01`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Loss {
    /// Each packet is lost with the same probability, whatever befell the one before it.
    Independent {
        /// 0 to 1.
        probability: f64,
    },
    /// Two states, good and bad. For each packet the state may change first, then the packet is lost with the
    /// probability of the state. It begins in the good one. A stay in the bad state lasts `1 / p_bad_to_good`
    /// packets on average; the share of packets that meet it is `p_good_to_bad / (p_good_to_bad + p_bad_to_good)`.
    /// Elliott, Estimates of Error Rates for Codes on Burst-Noise Channels, Bell System Technical Journal 42, 1963.
    Bursty {
        /// Probability that the state turns bad at a packet, 0 to 1.
        p_good_to_bad: f64,
        /// Probability that the state turns good at a packet, above 0, to 1.
        p_bad_to_good: f64,
        /// Probability of loss in the good state, 0 to 1.
        loss_good: f64,
        /// Probability of loss in the bad state, 0 to 1.
        loss_bad: f64,
    },
}

impl Loss {
    /// The share of packets lost in the long run, 0 to 1.
    pub fn share(&self) -> f64 {
        match *self {
            Self::Independent { probability } => probability,
            Self::Bursty { p_good_to_bad, p_bad_to_good, loss_good, loss_bad } => {
                let bad = p_good_to_bad / (p_good_to_bad + p_bad_to_good);
                loss_good * (1.0 - bad) + loss_bad * bad
            }
        }
    }
}

/// Decides for one packet after another.
#[derive(Debug, Clone)]
pub(crate) struct LossState {
    loss: Option<Loss>,
    bad: bool,
}

impl LossState {
    pub(crate) fn new(loss: Option<Loss>) -> Self {
        Self { loss, bad: false }
    }

    /// Whether the next packet is lost.
    pub(crate) fn next_lost(&mut self, random: &mut Rng) -> bool {
        let probability = match self.loss {
            None => return false,
            Some(Loss::Independent { probability }) => probability,
            Some(Loss::Bursty { p_good_to_bad, p_bad_to_good, loss_good, loss_bad }) => {
                let turn = if self.bad { p_bad_to_good } else { p_good_to_bad };
                self.bad ^= random.f64() < turn;
                if self.bad { loss_bad } else { loss_good }
            }
        };
        random.f64() < probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKETS: usize = 200_000;

    fn fates(loss: Loss, seed: u64) -> Vec<bool> {
        let mut random = Rng::with_seed(seed);
        let mut state = LossState::new(Some(loss));
        (0..PACKETS).map(|_| state.next_lost(&mut random)).collect()
    }

    fn share(fates: &[bool]) -> f64 {
        fates.iter().filter(|&&lost| lost).count() as f64 / fates.len() as f64
    }

    #[test]
    fn independent_loss_has_its_frequency() {
        for (seed, probability) in [(1, 0.001), (2, 0.01), (3, 0.2), (4, 0.5), (5, 0.0), (6, 1.0)] {
            let found = share(&fates(Loss::Independent { probability }, seed));
            // Five standard deviations of a binomial share.
            let bound = 5.0 * (probability * (1.0 - probability) / PACKETS as f64).sqrt();
            assert!((found - probability).abs() <= bound, "seed {seed}: {found} for {probability}");
        }
    }

    #[test]
    fn independent_losses_do_not_cluster() {
        let fates = fates(Loss::Independent { probability: 0.1 }, 7);
        let pairs = fates.windows(2).filter(|pair| pair[0] && pair[1]).count() as f64 / PACKETS as f64;
        assert!((pairs - 0.01).abs() < 0.002, "{pairs}");
    }

    #[test]
    fn bursts_have_their_length_and_share() {
        for (seed, p_good_to_bad, p_bad_to_good) in [(1, 0.01, 0.25), (2, 0.002, 0.1), (3, 0.05, 0.5)] {
            let loss = Loss::Bursty { p_good_to_bad, p_bad_to_good, loss_good: 0.0, loss_bad: 1.0 };
            let fates = fates(loss, seed);
            let lost = fates.iter().filter(|&&lost| lost).count() as f64;
            let bursts = fates.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
            let mean = 1.0 / p_bad_to_good;
            // A geometric length has standard deviation sqrt(1 - p) / p.
            let bound = 5.0 * (1.0 - p_bad_to_good).sqrt() * mean / bursts.sqrt();
            assert!((lost / bursts - mean).abs() < bound, "seed {seed}: {} for {mean}", lost / bursts);
            assert!((share(&fates) / loss.share() - 1.0).abs() < 0.15, "seed {seed}: {}", share(&fates));
        }
    }
}
