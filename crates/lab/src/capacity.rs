//! The largest load that meets a goal: doubled until it fails, then narrowed down between the two.

use crate::archive::Archive;
use crate::campaign::{CampaignError, Ended, Observer, Start, check_plans, execute_until_valid, order, workplace};
use crate::header;
use crate::pinning::Pinning;
use crate::run::Workplace;
use pushlab_analysis::header::Header;
use pushlab_analysis::record::PlannedRun;
use pushlab_analysis::report::RunFigures;
use pushlab_experiment::cell::Sweep;
use pushlab_experiment::statement::{Relation, Side, Statement};
use pushlab_experiment::{Experiment, Written};
use pushlab_os::affinity::pin_to;
use pushlab_store::Store;
use pushlab_wire::transport::Transport;

/// The search ends when failing and passing loads differ by no more than this share.
pub const TOLERANCE: f64 = 0.05;

/// What to search for.
#[derive(Debug, Clone)]
pub struct Search {
    /// The load, of which one axis is searched; every transport that the goal names, or all, for itself.
    pub experiment: Experiment,
    /// What must hold: a metric below or above a number.
    pub goal: Statement,
    /// The axis.
    pub over: Sweep,
    /// The first load tried.
    pub from: u32,
    /// The largest load tried.
    pub max: u32,
}

/// What was found for one transport.
#[derive(Debug, Clone, PartialEq)]
pub struct Capacity {
    /// Which.
    pub transport: Transport,
    /// The largest load that met the goal, and what the goal compares there: the metric's mean times its factor.
    pub met: Option<(u32, f64)>,
    /// The smallest load that did not, and why.
    pub limit: Option<(u32, Limit)>,
}

/// Why a load is too large.
#[derive(Debug, Clone, PartialEq)]
pub enum Limit {
    /// The goal was missed: what it compares.
    Goal(f64),
    /// Deliveries were lost.
    Loss(u64),
    /// The runs were void: the generator, not the subject, is at its end.
    Generator,
    /// The runs failed, or the load cannot be run.
    Failed(String),
    /// The runs count, and have no such figure.
    NotMeasured(&'static str),
}

/// A goal or an axis that cannot be searched.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The goal compares with no number.
    #[error("goal {0}: a goal compares a metric with a number, like `p99(websocket) < 50 ms`")]
    Goal(String),
    /// A part of the goal that a search cannot mind.
    #[error("goal {goal}: a search cannot mind {what}")]
    NotMinded {
        /// The goal.
        goal: String,
        /// Which part.
        what: String,
    },
    /// The goal names no transport of the experiment.
    #[error("goal {goal}: {experiment} measures {known}")]
    NoTransport {
        /// The goal.
        goal: String,
        /// The experiment.
        experiment: String,
        /// Its transports.
        known: String,
    },
    /// The experiment has several variants or networks, and the goal names none of them.
    #[error("goal {goal}: {experiment} has the {what} {known}; name one in the parentheses")]
    NotNamed {
        /// The goal.
        goal: String,
        /// The experiment.
        experiment: String,
        /// `variants` or `networks`.
        what: &'static str,
        /// Those that it has.
        known: String,
    },
    /// The range is empty.
    #[error("the search goes from {from} to {max}: the first must be at least 1 and below the second")]
    Range {
        /// The first load.
        from: u32,
        /// The last.
        max: u32,
    },
    /// See there.
    #[error(transparent)]
    Campaign(#[from] CampaignError),
}

impl From<crate::archive::ArchiveError> for SearchError {
    fn from(error: crate::archive::ArchiveError) -> Self {
        Self::Campaign(error.into())
    }
}

impl Search {
    /// The transports to search, each for itself.
    fn transports(&self) -> Result<Vec<Transport>, SearchError> {
        let all = &self.experiment.transports;
        let is_variant = |word: &&String| self.experiment.variants.iter().any(|variant| variant.name == **word);
        let is_network = |word: &&String| self.experiment.networks.contains(word);
        let words = self.goal.left.words.iter().filter(|word| !is_variant(word) && !is_network(word));
        let words: Vec<&String> = words.collect();
        let named: Vec<Transport> =
            all.iter().filter(|t| words.iter().any(|word| *word == t.name())).copied().collect();
        if let Some(word) = words.iter().find(|word| Transport::from_name(word).is_none()) {
            let what = format!("{word:?}: it searches transports, variants and networks");
            return Err(SearchError::NotMinded { goal: self.goal.to_string(), what });
        }
        if words.is_empty() {
            return Ok(all.clone());
        }
        if named.is_empty() {
            return Err(SearchError::NoTransport {
                goal: self.goal.to_string(),
                experiment: self.experiment.name.clone(),
                known: all.iter().map(|t| t.name()).collect::<Vec<_>>().join(", "),
            });
        }
        Ok(named)
    }

    /// Of variants or networks the one that the goal names; `None` where there are none.
    fn named<T: Clone>(
        &self,
        what: &'static str,
        all: &[T],
        name: impl Fn(&T) -> &String,
    ) -> Result<Option<T>, SearchError> {
        match all {
            [] => Ok(None),
            [one] => Ok(Some(one.clone())),
            many => {
                let named = many.iter().find(|one| self.goal.left.words.contains(name(one)));
                named.cloned().map(Some).ok_or_else(|| SearchError::NotNamed {
                    goal: self.goal.to_string(),
                    experiment: self.experiment.name.clone(),
                    what,
                    known: many.iter().map(|one| name(one).as_str()).collect::<Vec<_>>().join(", "),
                })
            }
        }
    }

    /// The experiment with the variant and the network that the goal names.
    fn narrowed(&self) -> Result<Experiment, SearchError> {
        let variants = self.named("variants", &self.experiment.variants, |variant| &variant.name)?;
        let networks = self.named("networks", &self.experiment.networks, |network| network)?;
        let mut own = self.experiment.clone();
        own.variants = variants.into_iter().collect();
        own.networks = networks.into_iter().collect();
        Ok(own)
    }

    /// The experiment at these loads of one transport.
    fn at(&self, transports: &[Transport], loads: &[u32]) -> Experiment {
        let mut experiment = self.experiment.clone();
        let own: &mut Written = &mut experiment;
        own.transports = transports.to_vec();
        own.axis = Some(self.over);
        for others in [&mut own.clients, &mut own.deliveries_per_s, &mut own.payload_bytes] {
            *others = others.iter().copied().max().into_iter().collect();
        }
        own.expect.clear();
        own.policies.truncate(1);
        own.subjects.truncate(1);
        match self.over {
            Sweep::Clients => own.clients = loads.to_vec(),
            Sweep::DeliveriesPerS => own.deliveries_per_s = loads.to_vec(),
            Sweep::PayloadBytes => own.payload_bytes = loads.to_vec(),
        }
        experiment
    }
}

/// A search that goes on: its runs are stored as they end, as an experiment of their own.
struct Going<'a> {
    search: &'a Search,
    limit: f64,
    archive: Archive,
    header: Header,
    place: Workplace,
    pinning: Pinning,
    observer: &'a mut dyn Observer,
    runs: u32,
    /// Loads of the transport that is searched now.
    loads: Vec<u32>,
}

/// Searches every transport. Returns what was found, the number in the store, and whether the search came to its
/// end.
pub fn search(
    search: &Search,
    store: Store,
    start: Start,
    observer: &mut dyn Observer,
) -> Result<(Vec<Capacity>, i64, Ended), SearchError> {
    let Side::Number(limit) = search.goal.right else { return Err(SearchError::Goal(search.goal.to_string())) };
    if matches!(search.goal.relation, Relation::About(_)) {
        return Err(SearchError::Goal(search.goal.to_string()));
    }
    if search.goal.at.is_some() || search.goal.under.is_some() {
        let what = "`at` or `under`: the load is what it looks for".to_owned();
        return Err(SearchError::NotMinded { goal: search.goal.to_string(), what });
    }
    if search.from == 0 || search.from >= search.max {
        return Err(SearchError::Range { from: search.from, max: search.max });
    }
    let transports = search.transports()?;
    let search = &Search { experiment: search.narrowed()?, ..search.clone() };
    let pinning = Pinning::of_this_machine();
    let seed = start.seed.unwrap_or_else(|| fastrand::u64(..1 << 48));
    let header = header::begin(&start.name, vec![search.experiment.clone()], seed, start.command, &pinning);
    // What is run of it is learnt on the way.
    let header = Header { experiments: Vec::new(), ..header };
    let archive = Archive::begin(store, &header)?;
    let place = workplace(pinning.clone(), &start.out, start.captures, &header, archive.id())?;
    // Away from the subject's core; where that is not allowed the doubt about shared cores says so.
    let _ = pin_to(&place.pinning.load);
    let mut going = Going { search, limit, archive, header, place, pinning, observer, runs: 0, loads: Vec::new() };
    let mut found = Vec::new();
    for transport in transports {
        going.loads.clear();
        going.header.experiments.push(search.at(&[transport], &[]));
        let mut error = None;
        let bracket = bracket(search.from, search.max, |load| match going.attempt(transport, load) {
            Ok(outcome) => outcome,
            Err(failed) => {
                error = Some(failed);
                None
            }
        });
        if let Some(error) = error {
            return Err(error);
        }
        let Some((met, limit)) = bracket else { return Ok((found, going.archive.id(), Ended::Interrupted)) };
        found.push(Capacity { transport, met, limit });
    }
    going.archive.complete()?;
    Ok((found, going.archive.id(), Ended::Complete))
}

impl Going<'_> {
    /// Tries one load; `None` when interrupted.
    fn attempt(&mut self, transport: Transport, load: u32) -> Result<Option<Result<f64, Limit>>, SearchError> {
        let own = self.search.at(&[transport], &[load]);
        if let Err(error) = own.check("this load") {
            return Ok(Some(Err(Limit::Failed(error.to_string()))));
        }
        if let Err(error) = check_plans(std::slice::from_ref(&own), &self.pinning) {
            return Ok(Some(Err(Limit::Failed(error.to_string()))));
        }
        self.loads.push(load);
        self.loads.sort_unstable();
        // One experiment for each transport: their loads differ, and each is whole.
        if let Some(last) = self.header.experiments.last_mut() {
            *last = self.search.at(&[transport], &self.loads);
        }
        self.archive.replan(&self.header)?;
        let planned: Vec<PlannedRun> = order(std::slice::from_ref(&own), self.header.seed ^ u64::from(self.runs));
        self.observer.begin(&planned, 0, self.archive.id());
        let mut figures = Vec::new();
        for mut run in planned {
            self.runs += 1;
            run.order = self.runs;
            self.observer.run(&run);
            let Some(record) = execute_until_valid(&run, &own.at(&run.cell), &self.place, self.observer) else {
                return Ok(None);
            };
            self.archive.write(&record)?;
            self.observer.recorded(&record);
            figures.push(RunFigures::of(&record));
        }
        Ok(Some(self.judge(&figures)))
    }

    fn judge(&self, runs: &[RunFigures]) -> Result<f64, Limit> {
        if let Some(reason) = runs.iter().find_map(|run| run.failure.clone()) {
            return Err(Limit::Failed(reason));
        }
        let counting: Vec<&RunFigures> = runs.iter().filter(|run| run.counts()).collect();
        let term = &self.search.goal.left;
        let values: Vec<f64> = counting.iter().filter_map(|run| run.figures.get(term.metric.name).copied()).collect();
        if counting.len() * 2 <= runs.len() {
            return Err(Limit::Generator);
        }
        let Some(mean) = pushlab_stats::mean(&values) else { return Err(Limit::NotMeasured(term.metric.name)) };
        let mean = mean * term.factor;
        let lost: u64 = counting.iter().map(|run| run.wrong[0]).sum();
        let is_met = match self.search.goal.relation {
            Relation::Less => mean < self.limit,
            _ => mean > self.limit,
        };
        match (is_met, lost) {
            (false, _) => Err(Limit::Goal(mean)),
            (true, 1..) => Err(Limit::Loss(lost)),
            (true, 0) => Ok(mean),
        }
    }
}

type Bracket<L> = (Option<(u32, f64)>, Option<(u32, L)>);

/// The largest load that passes and the smallest that does not, between `from` and `max`; `None` when a trial was
/// interrupted.
fn bracket<L>(from: u32, max: u32, mut attempt: impl FnMut(u32) -> Option<Result<f64, L>>) -> Option<Bracket<L>> {
    let (mut met, mut limit) = (None, None);
    let mut load = from;
    loop {
        match attempt(load)? {
            Ok(value) => met = Some((load, value)),
            Err(why) => limit = Some((load, why)),
        }
        let low = met.as_ref().map_or(0, |(load, _)| *load);
        let next = match &limit {
            None if low >= max => break,
            None => low.saturating_mul(2).min(max),
            Some((high, _)) if f64::from(high - low) <= TOLERANCE * f64::from(*high) || high - low <= 1 => break,
            Some((high, _)) => low.midpoint(*high),
        };
        if next == 0 {
            break;
        }
        load = next;
    }
    Some((met, limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search_for(capacity: u32, from: u32, max: u32) -> (Bracket<()>, u32) {
        let mut tries = 0;
        let found = bracket(from, max, |load| {
            tries += 1;
            Some(if load <= capacity { Ok(f64::from(load)) } else { Err(()) })
        });
        (found.unwrap(), tries)
    }

    #[test]
    fn a_goal_names_one_of_several_networks() {
        let mut experiment = crate::experiments::load("tangen-chat", None).unwrap();
        experiment.networks = vec!["lan-100".to_owned(), "4g".to_owned()];
        let search = |goal: &str| Search {
            experiment: experiment.clone(),
            goal: Statement::parse(goal).unwrap(),
            over: Sweep::Clients,
            from: 1,
            max: 2,
        };
        let named = search("p99(websocket, 4g) < 50 ms");
        assert_eq!(named.narrowed().unwrap().networks, ["4g"]);
        assert_eq!(named.transports().unwrap(), [Transport::WebSocket]);
        let error = search("p99(websocket) < 50 ms").narrowed().unwrap_err().to_string();
        assert!(error.contains("has the networks lan-100, 4g; name one"), "{error}");
        let error = search("p99(websocket, 3g) < 50 ms").transports().unwrap_err().to_string();
        assert!(error.contains("\"3g\""), "{error}");
    }

    #[test]
    fn the_bracket_holds_the_capacity_and_is_narrow() {
        for capacity in [1, 7, 100, 999, 12_345, 60_000] {
            let ((met, limit), tries) = search_for(capacity, 10, 100_000);
            let low = met.map_or(0, |(load, _)| load);
            let (high, ()) = limit.unwrap();
            assert!(low <= capacity && capacity < high, "{capacity}: {low} to {high}");
            assert!(f64::from(high - low) <= TOLERANCE * f64::from(high) || high - low == 1, "{capacity}");
            assert!(tries < 25, "{capacity}: {tries}");
        }
    }

    #[test]
    fn the_largest_load_is_the_end() {
        let ((met, limit), _) = search_for(u32::MAX, 10, 1000);
        assert_eq!((met.map(|m| m.0), limit), (Some(1000), None));
        let ((met, limit), _) = search_for(0, 8, 1000);
        assert_eq!((met, limit.map(|l| l.0)), (None, Some(1)), "narrowed down to one");
        assert!(bracket::<()>(1, 9, |_| None).is_none(), "interrupted");
    }
}
