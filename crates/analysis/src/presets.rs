//! Experiments for tests, of whose subjects anything is believed, and results of them.

use crate::header::Header;
use crate::report::{ResultRuns, RunValues};
use pushlab_experiment::cell::Cell;
use pushlab_experiment::{Experiment, ExperimentError, Written, presets};
use pushlab_probe::machine::MachineFacts;
use pushlab_record::{Outcome, PlannedRun, RunRecord};
use pushlab_workload::result::LoadResult;
use std::collections::BTreeMap;

pub fn load(name: &str, profile: Option<&str>) -> Result<Experiment, ExperimentError> {
    let written = Written::read(presets::text(name).expect("a preset"), profile, name)?;
    Ok(Experiment::believe(written, &|_| Ok(None)))
}

/// A run that came to its end and measured nothing.
pub fn blank(cell: Cell) -> RunRecord {
    let planned = PlannedRun { order: 1, cell, repeat: 1, seed: 1 };
    RunRecord { result: Some(LoadResult::default()), ..RunRecord::ended(planned, Outcome::Completed) }
}

/// A result that was measured, of these runs.
pub fn result(experiments: Vec<Experiment>, runs: Vec<RunValues>) -> ResultRuns {
    let header = Header {
        name: "result".to_owned(),
        experiments,
        search: None,
        seed: 7,
        command: vec!["pushlab".to_owned(), "run".to_owned()],
        version: "1.2.3".to_owned(),
        created_at: "2026-01-31T12:00:00Z".to_owned(),
        subject_cores: vec![0],
        load_cores: vec![1],
        prober_core: None,
        build: None,
        versions: BTreeMap::new(),
        runtimes: BTreeMap::new(),
        left_out: Vec::new(),
        machine: Some(MachineFacts::default()),
        fleet: Vec::new(),
        agents: Vec::new(),
    };
    ResultRuns { tag: String::new(), header, known: BTreeMap::new(), runs }
}

mod tests {
    use super::*;
    use pushlab_experiment::Expect;
    use pushlab_experiment::assertion::Assertion;
    use pushlab_experiment::cell::Sweep;
    use pushlab_experiment::traffic::{is_closed_loop, publications_per_s, with_deliveries_per_s};
    use pushlab_record::measure::{Times, quantile_of};
    use pushlab_stats::Quantile;
    use pushlab_workload::scenario::Scenario;
    use std::collections::BTreeSet;

    /// Somewhere a figure is to stand.
    struct Place {
        metric: String,
        /// What the series must be called by.
        words: Vec<String>,
        /// Where on the axis; anywhere by default.
        at: Option<u32>,
    }

    /// Every preset in every form: as it is and with each of its profiles.
    fn forms() -> Vec<(String, Experiment)> {
        let of = |(name, text): &(&'static str, &'static str)| {
            let profiles = Written::profiles(text).into_iter().map(Some);
            let form = |profile: Option<String>| {
                let experiment = load(name, profile.as_deref()).unwrap();
                (profile.map_or((*name).to_owned(), |profile| format!("{name} --profile {profile}")), experiment)
            };
            std::iter::once(None).chain(profiles).map(form).collect::<Vec<_>>()
        };
        presets::PRESETS.iter().flat_map(of).collect()
    }

    /// Where an experiment shows a quantile: a line of a chart and of the table somewhere, a card and an assertion where
    /// they look.
    fn places(experiment: &Experiment) -> Vec<Place> {
        let shown: BTreeSet<String> = experiment.charts().into_iter().chain(experiment.columns.clone()).collect();
        let lowest = experiment.cells().iter().filter_map(|cell| experiment.sweep().of(cell)).min();
        let card = experiment.card.iter().map(|row| Place {
            metric: row.metric.clone(),
            words: row.words.clone(),
            at: row.at.or(lowest),
        });
        let terms = experiment.expect.iter().map(|one| Assertion::parse(&one.that).unwrap()).flat_map(|one| {
            let place = |term: &pushlab_experiment::assertion::Term| {
                let (metric, words) = (term.metric.name.to_owned(), term.words.clone());
                Place { metric, words, at: one.at.map(|at| at as u32) }
            };
            one.terms().filter(|term| term.experiment.is_none()).map(place).collect::<Vec<_>>()
        });
        let shown = shown.into_iter().map(|metric| Place { metric, words: Vec::new(), at: None });
        shown.chain(card).chain(terms).filter(|place| quantile_of(&place.metric).is_some()).collect()
    }

    /// Independent measurements that all runs of a cell make together; `None` where its scenario has no such times.
    fn planned(experiment: &Experiment, cell: &Cell, times: Times) -> Option<u64> {
        let own = experiment.at(cell);
        let repeats = u64::from(own.repeats);
        let pings = |phase_ms: u64| {
            let prober = own.prober.as_ref()?;
            if prober.closed_loop {
                // What follows its answers has no plan: see below.
                return Some(Quantile::MEDIAN.independent_min());
            }
            let pings = (phase_ms * repeats) as f64 / prober.interval_ms as f64;
            // They leave at random instants: it may be three standard deviations fewer.
            Some((pings - 3.0 * pings.sqrt()).max(0.0) as u64)
        };
        match times {
            Times::ResponseIdle => return pings(own.phases.idle_ms),
            Times::Response => return pings(own.phases.load_ms),
            Times::Back | Times::CaughtUp => {
                let is_storm = matches!(own.scenario, Scenario::Storm { .. });
                return is_storm.then(|| u64::from(cell.clients) * repeats);
            }
            Times::Deliveries | Times::First | Times::Last | Times::Own | Times::SameNode | Times::CrossNode => {}
        }
        let mut scenario = own.scenario.clone();
        if let Some(rate) = own.capacity_share.as_ref().and_then(|share| share.at_most) {
            scenario = with_deliveries_per_s(scenario, cell.clients, rate);
        }
        // What follows its own deliveries has no plan: a median of it is there, and no more is promised.
        let in_closed_loop = is_closed_loop(&scenario).then(|| Quantile::MEDIAN.independent_min());
        let in_a_run = |rate: f64| (rate * own.phases.load_ms as f64 / 1e3 + 1e-9) as u64;
        publications_per_s(&scenario, cell.clients).map(|rate| in_a_run(rate) * repeats).or(in_closed_loop)
    }

    /// What a cell is called by in assertions and on cards.
    fn words(cell: &Cell) -> BTreeSet<String> {
        let swept = Sweep::ALL.into_iter().filter_map(|sweep| Some(sweep.place(sweep.of(cell)?)));
        let named = [&cell.variant, &cell.network].into_iter().flatten().cloned();
        let always = [cell.subject.as_str(), cell.transport.name(), cell.policy.name()].map(str::to_owned);
        always.into_iter().chain(named).chain(swept).collect()
    }

    /// What an experiment would show and plans too little for: metric, series, how much it is.
    fn too_few(experiment: &Experiment) -> Vec<String> {
        let (cells, sweep) = (experiment.cells(), experiment.sweep());
        let series = |cell: &Cell| -> BTreeSet<String> {
            let place = sweep.of(cell).map(|value| sweep.place(value));
            words(cell).into_iter().filter(|word| Some(word) != place.as_ref()).collect()
        };
        let mut found = BTreeSet::new();
        for place in places(experiment) {
            let (times, quantile) = quantile_of(&place.metric).unwrap();
            let is_meant = |cell: &&Cell| {
                let is_there = place.at.is_none_or(|at| sweep.of(cell) == Some(at));
                is_there && place.words.iter().all(|word| words(cell).contains(word))
            };
            let mut most: BTreeMap<BTreeSet<String>, u64> = BTreeMap::new();
            for cell in cells.iter().filter(is_meant) {
                if let Some(planned) = planned(experiment, cell, times) {
                    let known = most.entry(series(cell)).or_default();
                    *known = planned.max(*known);
                }
            }
            let short = most.into_iter().filter(|(_, planned)| *planned < quantile.independent_min());
            found.extend(short.map(|(words, planned)| format!("{} of {words:?}: {planned}", place.metric)));
        }
        found.into_iter().collect()
    }

    #[test]
    fn every_quantile_that_a_preset_shows_is_planned_to_have_enough_measurements_in_every_form() {
        // Rows of that card are being made.
        let is_checked = |form: &str| !form.starts_with("transports-") || form.starts_with("transports-by-network");
        let short: Vec<String> = forms()
            .iter()
            .filter(|(form, _)| is_checked(form))
            .flat_map(|(form, experiment)| too_few(experiment).into_iter().map(move |what| format!("{form}: {what}")))
            .collect();
        assert!(short.is_empty(), "longer loads, more repeats, or no such column:\n{}", short.join("\n"));
    }

    #[test]
    fn a_load_that_is_too_short_for_a_column_a_card_or_an_assertion_is_found() {
        let mut short = load("any-server", Some("quick")).unwrap();
        short.phases.load_ms = 1500;
        short.transports.truncate(1);
        let told = too_few(&short);
        assert!(told.iter().any(|what| what.starts_with("latency_p99 of") && what.ends_with(": 225")), "{told:?}");
        (short.charts, short.columns) = (vec!["cpu".to_owned()], Vec::new());
        assert_eq!(too_few(&short).len(), 1, "the card's row");
        short.card.clear();
        assert!(too_few(&short).is_empty(), "{:?}", too_few(&short));

        let mut asserted = load("cometd-load", Some("websocket")).unwrap();
        assert!(too_few(&asserted).is_empty());
        asserted.phases.load_ms = 20_000;
        asserted.subjects.truncate(1);
        (asserted.charts, asserted.columns) = (vec!["cpu".to_owned()], Vec::new());
        let that = "latency_p99(19000 clients) < 300 at 20000".to_owned();
        asserted.expect = vec![Expect { that, finding: String::new(), source: String::new() }];
        let told = too_few(&asserted);
        assert!(told.len() == 1 && told[0].contains("19000 clients") && told[0].ends_with(": 630"), "{told:?}");
        let mut closed = load("platforms", None).unwrap();
        closed.columns.push("latency_p99".to_owned());
        assert!(!too_few(&closed).is_empty(), "a closed loop plans no number of publications");
    }
}
