//! Rates that follow from what was measured before in the same campaign.

use pushlab_analysis::report::RunValues;
use pushlab_experiment::Experiment;
use pushlab_experiment::cell::Cell;
use pushlab_experiment::traffic;
use pushlab_wire::transport::Transport;
use std::collections::BTreeMap;

/// What each subject delivered over each transport in each experiment of a campaign, per second: in its first run that
/// counts, so that all repeats that follow from it have the same rate.
#[derive(Debug, Default)]
pub struct Rates(BTreeMap<(String, String, Transport), f64>);

impl Rates {
    /// What was measured so far, in whatever order.
    pub fn of(so_far: &[RunValues]) -> Self {
        let mut rates = Self::default();
        let mut runs: Vec<&RunValues> = so_far.iter().collect();
        runs.sort_by_key(|run| run.repeat);
        runs.into_iter().for_each(|run| rates.note(run));
        rates
    }

    fn note(&mut self, run: &RunValues) {
        let delivered = run.figures.get("delivered").filter(|delivered| **delivered > 0.0);
        if let (true, Some(delivered)) = (run.counts(), delivered) {
            self.0.entry(key(&run.cell.experiment, &run.cell)).or_insert(*delivered);
        }
    }

    /// The experiment as it is for a cell, with the rate that follows from what was measured.
    ///
    /// # Errors
    /// As a sentence: nothing was measured that it could follow from.
    pub fn apply(&self, mut experiment: Experiment, cell: &Cell) -> Result<Experiment, String> {
        let Some(wanted) = &experiment.capacity_share else { return Ok(experiment) };
        let Some(capacity) = self.0.get(&key(&wanted.of, cell)) else {
            return Err(format!(
                "no run of {} counts that says how much {} delivers over {}",
                wanted.of, cell.subject, cell.transport
            ));
        };
        let most = wanted.at_most.unwrap_or(u32::MAX).max(1);
        let rate = (capacity * wanted.share).round().clamp(1.0, f64::from(most)) as u32;
        experiment.scenario = traffic::with_deliveries_per_s(experiment.scenario.clone(), cell.clients, rate);
        Ok(experiment)
    }
}

fn key(experiment: &str, cell: &Cell) -> (String, String, Transport) {
    (experiment.to_owned(), cell.subject.clone(), cell.transport)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments;
    use pushlab_experiment::CapacityShare;
    use pushlab_workload::scenario::Scenario;

    #[test]
    fn the_rate_is_a_share_of_the_first_that_counts() {
        let mut experiment = experiments::load("tangen-chat", None).unwrap();
        experiment.capacity_share = Some(CapacityShare { of: "full".to_owned(), share: 0.5, at_most: None });
        let mut cell = experiment.cells().remove(0);
        cell.clients = 10;
        let mut rates = Rates::default();
        let error = rates.apply(experiment.clone(), &cell).unwrap_err();
        assert!(error.contains("no run of full counts"), "{error}");
        let other = Cell { transport: Transport::Polling, ..cell.clone() };
        for (cell, delivered, failure) in
            [(&cell, 9.0, Some("dead".to_owned())), (&cell, 1_000.0, None), (&cell, 3_000.0, None), (&other, 7.0, None)]
        {
            let cell = Cell { experiment: "full".to_owned(), ..cell.clone() };
            let figures = [("delivered".to_owned(), delivered)].into();
            rates.note(&RunValues { failure, figures, ..RunValues::planned(cell) });
        }
        let own = rates.apply(experiment.clone(), &cell).unwrap();
        // 500 deliveries a second to 10 clients are 50 publications of 10 publishers: one each in 200 ms.
        let Scenario::Chat { interval_ms, .. } = own.scenario else { panic!("{:?}", own.scenario) };
        assert_eq!(interval_ms, 200);
        experiment.capacity_share = Some(CapacityShare { of: "full".to_owned(), share: 0.5, at_most: Some(100) });
        let own = rates.apply(experiment, &cell).unwrap();
        assert!(matches!(own.scenario, Scenario::Chat { interval_ms: 1_000, .. }), "{:?}", own.scenario);
    }
}
