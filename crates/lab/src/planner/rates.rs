//! Rates that follow from what was measured before in the same campaign.

use pushlab_analysis::report::RunValues;
use pushlab_experiment::Experiment;
use pushlab_experiment::cell::Cell;
use pushlab_experiment::traffic;
use pushlab_wire::transport::Transport;
use std::collections::BTreeMap;

/// What each subject delivered over each transport in each experiment of a campaign, per second, by repeat: what follows
/// from it is of the same block, so that a rate is the same share of what the server could do then, whatever the machine
/// did since. A run that the instrument voids says well enough what a share is taken of: the rate that follows is shown, and
/// a run without one would pass for a failure of the server.
#[derive(Debug, Default)]
pub struct Rates(BTreeMap<(String, String, Transport, u32), f64>);

impl Rates {
    /// What was measured so far, in whatever order.
    pub fn of(so_far: &[RunValues]) -> Self {
        let mut rates = Self::default();
        so_far.iter().for_each(|run| rates.note(run));
        rates
    }

    fn note(&mut self, run: &RunValues) {
        let delivered = run.figures.get("delivered").filter(|delivered| **delivered > 0.0);
        if let (None, Some(delivered)) = (&run.failure, delivered) {
            self.0.insert(key(&run.cell.experiment, &run.cell, run.repeat), *delivered);
        }
    }

    /// The experiment as it is for a repeat of a cell, with the rate that follows from what was measured.
    ///
    /// # Errors
    /// As a sentence: nothing was measured that it could follow from.
    pub fn apply(&self, mut experiment: Experiment, cell: &Cell, repeat: u32) -> Result<Experiment, String> {
        let Some(wanted) = &experiment.capacity_share else { return Ok(experiment) };
        let Some(capacity) = self.0.get(&key(&wanted.of, cell, repeat)) else {
            return Err(format!(
                "no run of {} in repeat {repeat} came to its end that says how much {} delivers over {}",
                wanted.of, cell.subject, cell.transport
            ));
        };
        let most = wanted.at_most.unwrap_or(u32::MAX).max(1);
        let rate = (capacity * wanted.share).round().clamp(1.0, f64::from(most)) as u32;
        experiment.scenario = traffic::with_deliveries_per_s(experiment.scenario.clone(), cell.clients, rate);
        Ok(experiment)
    }
}

fn key(experiment: &str, cell: &Cell, repeat: u32) -> (String, String, Transport, u32) {
    (experiment.to_owned(), cell.subject.clone(), cell.transport, repeat)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments;
    use pushlab_experiment::CapacityShare;
    use pushlab_stats::{Warning, WarningCode};
    use pushlab_workload::scenario::Scenario;

    #[test]
    fn the_rate_is_a_share_of_what_the_same_repeat_measured() {
        let mut experiment = experiments::load("tangen-chat", None).unwrap();
        experiment.capacity_share = Some(CapacityShare { of: "full".to_owned(), share: 0.5, at_most: None });
        let mut cell = experiment.cells().remove(0);
        cell.clients = 10;
        let error = Rates::default().apply(experiment.clone(), &cell, 1).unwrap_err();
        assert!(error.contains("no run of full in repeat 1"), "{error}");
        let other = Cell { transport: Transport::Polling, ..cell.clone() };
        let measured = |cell: &Cell, repeat, delivered, failure| {
            let cell = Cell { experiment: "full".to_owned(), ..cell.clone() };
            let figures = [("delivered".to_owned(), delivered)].into();
            RunValues { failure, figures, repeat, ..RunValues::planned(cell) }
        };
        let void = vec![Warning::new(WarningCode::LongTurns, "14 ms")];
        let rates = Rates::of(&[
            RunValues { warnings: void, ..measured(&cell, 2, 5_000.0, None) },
            measured(&cell, 1, 1_000.0, None),
            measured(&cell, 3, 9.0, Some("dead".to_owned())),
            measured(&other, 1, 7.0, None),
        ]);
        // 500 deliveries a second to 10 clients are 50 publications of 10 publishers: one each in 200 ms.
        for (repeat, expected_ms) in [(1, 200), (2, 40)] {
            let own = rates.apply(experiment.clone(), &cell, repeat).unwrap();
            let Scenario::Chat { interval_ms, .. } = own.scenario else { panic!("{:?}", own.scenario) };
            assert_eq!(interval_ms, expected_ms, "repeat {repeat}");
        }
        assert!(rates.apply(experiment.clone(), &cell, 3).is_err(), "another repeat's is of another time");
        experiment.capacity_share = Some(CapacityShare { of: "full".to_owned(), share: 0.5, at_most: Some(100) });
        let own = rates.apply(experiment, &cell, 1).unwrap();
        assert!(matches!(own.scenario, Scenario::Chat { interval_ms: 1_000, .. }), "{:?}", own.scenario);
    }
}
