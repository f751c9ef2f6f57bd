//! The largest load that meets a goal: doubled until it fails, then narrowed down between the two. And what happens below
//! it and above: at multiples of it.

use super::{Done, Planned, Planner, numbered};
use crate::checks::check_plans;
use pushlab_analysis::header::SearchHeader;
use pushlab_analysis::report::RunValues;
use pushlab_bus::Seats;
use pushlab_experiment::assertion::{Assertion, Claim, Figure, Relation, Side};
use pushlab_experiment::cell::{Cell, Sweep};
use pushlab_experiment::subject::name_of;
use pushlab_experiment::{Experiment, Written};
use pushlab_probe::machine::Room;
use pushlab_record::PlannedRun;
use pushlab_record::measure::is_withheld;
use pushlab_wire::transport::Transport;
use std::fmt;

/// Where the largest load lies that meets the goal, with what the goal compares there, and why a larger one fails.
type Bracket = pushlab_stats::Bracket<f64, Limit>;
/// The largest multiple of a capacity.
const MAX_SHARE: f64 = 10.0;

/// What to search for.
#[derive(Debug, Clone)]
pub struct Search {
    /// The load, of which one axis is searched: each subject for itself, over each transport that the goal names, or all.
    pub experiment: Experiment,
    /// What must hold: a metric below or above a number.
    pub goal: Assertion,
    /// The axis.
    pub over: Sweep,
    /// The first load tried.
    pub from: u32,
    /// The largest load tried.
    pub max: u32,
    /// Multiples of what is found for each, at which it is then measured.
    pub shares: Vec<f64>,
}

/// A subject over a transport.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Searched {
    /// The subject, as the experiment's file names it.
    subject: String,
    transport: Transport,
}

impl Searched {
    fn is_of(&self, cell: &Cell) -> bool {
        cell.subject == name_of(&self.subject) && cell.transport == self.transport
    }
}

impl fmt::Display for Searched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match name_of(&self.subject) {
            "pushlab" => f.write_str(self.transport.name()),
            other => write!(f, "{other} · {}", self.transport.name()),
        }
    }
}

/// What was found for a subject over a transport.
#[derive(Debug, Clone, PartialEq)]
pub struct Capacity {
    /// Which.
    pub of: Searched,
    /// The largest load that met the goal, and what the goal compares there: the metric's mean times its factor.
    pub met: Option<(u32, f64)>,
    /// The smallest load that did not, and why.
    pub limit: Option<(u32, Limit)>,
    /// The load that is to be tried next; `None` where the search has ended.
    pub next: Option<u32>,
    /// The shares of what was found. Empty before the search has ended, and where it is not the subject that sets the limit.
    pub shares: Vec<Share>,
}

/// A multiple of what was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// How many times it is.
    pub times: f64,
    /// The load.
    pub load: u32,
    /// Whether it was measured by now, or why it fails.
    pub is_measured: Result<bool, String>,
}

impl Capacity {
    /// The largest load that the subject bears; `None` where something else ended the search.
    fn of_subject(&self) -> Option<u32> {
        let is_subject = matches!(self.limit, Some((_, Limit::Goal(_) | Limit::Loss(_))));
        self.met.filter(|_| is_subject && self.next.is_none()).map(|(load, _)| load)
    }
}

/// Why a load is too large.
#[derive(Debug, Clone, PartialEq)]
pub enum Limit {
    /// The goal was missed: what it compares.
    Goal(f64),
    /// Deliveries were lost.
    Loss(u64),
    /// The runs were void, or the figure withheld: the generator, not the subject, is at its end.
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
    /// A part of the goal that a search cannot use.
    #[error("goal {goal}: a search cannot use {what}")]
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
    /// No subject has an endpoint for any of the transports.
    #[error("goal {goal}: no transport that it asks for is offered by {subjects}")]
    NotOffered {
        /// The goal.
        goal: String,
        /// The experiment's subjects.
        subjects: String,
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
    /// A share that is none.
    #[error("--shares {0}: a share is a number above 0 and at most {MAX_SHARE}, e.g. --shares 0.5,0.9,1.2,2")]
    Share(f64),
    /// The range is empty.
    #[error("--from {0} and --max {1}: --from must be at least 1 and less than --max")]
    Range(u32, u32),
}

impl Search {
    /// What a campaign's header says of it.
    pub fn header(&self) -> SearchHeader {
        let Self { experiment, goal, over, from, max, shares } = self.clone();
        SearchHeader { experiment, goal: goal.to_string(), over, from, max, shares }
    }

    /// What is searched, each for itself.
    fn searched(&self) -> Result<Vec<Searched>, SearchError> {
        let transports = self.transports()?;
        let all =
            self.experiment.subjects.iter().flat_map(|subject| {
                transports.iter().map(|&transport| Searched { subject: subject.clone(), transport })
            });
        let offered: Vec<Searched> = all.filter(|one| !self.at(one, &[self.from]).cells().is_empty()).collect();
        if offered.is_empty() {
            let Self { goal, experiment, .. } = self;
            return Err(SearchError::NotOffered { goal: goal.to_string(), subjects: experiment.subjects.join(", ") });
        }
        Ok(offered)
    }

    /// The transports of the experiment that the goal names, or all.
    fn transports(&self) -> Result<Vec<Transport>, SearchError> {
        let all = &self.experiment.transports;
        let is_variant = |word: &&String| self.experiment.variants.iter().any(|variant| variant.name == **word);
        let is_network = |word: &&String| self.experiment.networks.contains(word);
        let words: Vec<_> = self.goal.left.words.iter().filter(|w| !is_variant(w) && !is_network(w)).collect();
        let named: Vec<Transport> =
            all.iter().filter(|t| words.iter().any(|word| *word == t.name())).copied().collect();
        if let Some(word) = words.iter().find(|word| Transport::from_name(word).is_none()) {
            let what = format!("{word:?}: the words may name transports, variants and networks only");
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
        // What is searched is found where it is, and not where the variant would be measured.
        for variant in &mut own.variants {
            variant.clients.clear();
            variant.deliveries_per_s.clear();
            variant.payload_bytes.clear();
        }
        Ok(own)
    }

    /// The experiment at these loads of one subject over one transport.
    fn at(&self, one: &Searched, loads: &[u32]) -> Experiment {
        let mut experiment = self.experiment.clone();
        let own: &mut Written = &mut experiment;
        own.subjects = vec![one.subject.clone()];
        own.transports = vec![one.transport];
        own.axis = Some(self.over);
        for others in [&mut own.clients, &mut own.deliveries_per_s, &mut own.payload_bytes] {
            *others = others.iter().copied().max().into_iter().collect();
        }
        // Loads of their own are no comparison.
        (own.expect, own.card, own.tables) = Default::default();
        own.policies.truncate(1);
        match self.over {
            Sweep::Clients => own.clients = loads.to_vec(),
            Sweep::DeliveriesPerS => own.deliveries_per_s = loads.to_vec(),
            Sweep::PayloadBytes => own.payload_bytes = loads.to_vec(),
        }
        experiment
    }
}

/// Searches every subject over every transport for itself, all of them in turn, then measures each at its shares.
///
/// Every block has one load of each that is still searched, as often as the experiment repeats: a drift of the
/// machine hits all alike. What was found so far follows from the runs alone, so that a search that was interrupted goes
/// on where it was.
pub struct CapacitySearch {
    search: Search,
    relation: Relation,
    limit: f64,
    searched: Vec<Searched>,
    seed: u64,
    seats: Seats,
    room: Option<Room>,
}

/// How far a search is.
struct State {
    /// Of each that is searched.
    brackets: Vec<Bracket>,
    /// Loads tried of each.
    loads: Vec<Vec<u32>>,
    /// Every run that was planned.
    runs: Vec<PlannedRun>,
    /// Those of the last block, in which some are not done.
    left: Vec<PlannedRun>,
}

impl CapacitySearch {
    /// Looks a search over, for workers that have so much, and so much room if they are on this machine.
    ///
    /// # Errors
    /// See [`SearchError`].
    pub fn new(search: &Search, seats: Seats, room: Option<Room>, seed: u64) -> Result<Self, SearchError> {
        let goal = &search.goal;
        let Claim::Compares(relation @ (Relation::Less | Relation::Greater), Side::Number(limit)) = goal.claim else {
            return Err(SearchError::Goal(goal.to_string()));
        };
        let is_plain = goal.left.figure == Figure::Value && goal.left.over.is_none() && goal.left.experiment.is_none();
        let what = match goal {
            _ if goal.at.is_some() || goal.under.is_some() => "`at` or `under`: it sets the load itself",
            _ if goal.in_every_run => "`in every run`: it goes by means",
            _ if !is_plain => "anything but a metric of this experiment",
            _ => "",
        };
        if !what.is_empty() {
            return Err(SearchError::NotMinded { goal: goal.to_string(), what: what.to_owned() });
        }
        if search.from == 0 || search.from >= search.max {
            return Err(SearchError::Range(search.from, search.max));
        }
        if let Some(share) = search.shares.iter().find(|share| !(**share > 0.0 && **share <= MAX_SHARE)) {
            return Err(SearchError::Share(*share));
        }
        let search = Search { experiment: search.narrowed()?, ..search.clone() };
        let searched = search.searched()?;
        Ok(Self { search, relation, limit, searched, seed, seats, room })
    }

    /// What was found for each, as far as the search has come.
    pub fn found(&self, so_far: &[RunValues]) -> Vec<Capacity> {
        self.found_in(&self.replay(so_far).brackets, &Done::of(so_far))
    }

    fn found_in(&self, brackets: &[Bracket], done: &Done<'_>) -> Vec<Capacity> {
        let has_ended = brackets.iter().all(|bracket| bracket.next().is_none());
        let found = |(of, bracket): (&Searched, &Bracket)| {
            let Bracket { met, limit, .. } = bracket.clone();
            let mut found = Capacity { of: of.clone(), met, limit, next: bracket.next(), shares: Vec::new() };
            if let (Some(capacity), true) = (found.of_subject(), has_ended) {
                let shares = self.search.shares.iter();
                found.shares = shares.map(|times| self.share(of, capacity, *times, done)).collect();
            }
            found
        };
        self.searched.iter().zip(brackets).map(found).collect()
    }

    fn share(&self, of: &Searched, capacity: u32, times: f64, done: &Done<'_>) -> Share {
        let load = (f64::from(capacity) * times).round().max(1.0) as u32;
        let own = self.search.at(of, &[load]);
        let is_measured = self.check(&own).and_then(|()| {
            let mut runs = repeated(&own).map(|(cell, repeat)| done.at(&cell, repeat));
            // One that failed tells, and else one that is not there.
            runs.try_fold(true, |are_there, run| match run {
                None => Ok(false),
                Some(run) => run.failure.clone().map_or(Ok(are_there), Err),
            })
        });
        Share { times, load, is_measured }
    }

    /// Goes through the blocks up to the first that is not done.
    fn replay(&self, so_far: &[RunValues]) -> State {
        let done = Done::of(so_far);
        let mut random = fastrand::Rng::with_seed(self.seed);
        let bracket = || Bracket::new(self.search.from, self.search.max);
        let mut state = State {
            brackets: self.searched.iter().map(|_| bracket()).collect(),
            loads: vec![Vec::new(); self.searched.len()],
            runs: Vec::new(),
            left: Vec::new(),
        };
        loop {
            let next: Vec<Option<u32>> = state.brackets.iter().map(Bracket::next).collect();
            let is_search = next.iter().any(Option::is_some);
            let mut cells =
                if is_search { self.next_cells(&mut state, &next) } else { self.share_cells(&mut state, &done) };
            if cells.is_empty() && !is_search {
                return state;
            }
            random.shuffle(&mut cells);
            let block = numbered(cells, state.runs.len() as u32 + 1, &mut random);
            state.runs.extend(block.iter().cloned());
            state.left = block.iter().filter(|run| done.find(run).is_none()).cloned().collect();
            if !state.left.is_empty() {
                return state;
            }
            for (index, one) in self.searched.iter().enumerate() {
                let own = block.iter().filter(|run| one.is_of(&run.cell));
                let figures: Vec<&RunValues> = own.filter_map(|run| done.find(run)).collect();
                if let (Some(load), false) = (next[index], figures.is_empty()) {
                    state.brackets[index].tried(load, self.judge(&figures));
                }
            }
        }
    }

    /// The next load of each that is still searched; one that cannot be run is its limit.
    fn next_cells(&self, state: &mut State, next: &[Option<u32>]) -> Vec<(Cell, u32)> {
        let mut cells = Vec::new();
        for (index, (one, load)) in self.searched.iter().zip(next).enumerate() {
            let Some(load) = *load else { continue };
            let own = self.search.at(one, &[load]);
            if let Err(reason) = self.check(&own) {
                state.brackets[index].tried(load, Err(Limit::Failed(reason)));
                continue;
            }
            state.loads[index].push(load);
            cells.extend(repeated(&own));
        }
        cells
    }

    /// The shares of what was found that have not been tried as loads.
    fn share_cells(&self, state: &mut State, done: &Done<'_>) -> Vec<(Cell, u32)> {
        let mut cells = Vec::new();
        for (capacity, tried) in self.found_in(&state.brackets, done).iter().zip(&mut state.loads) {
            for Share { load, .. } in &capacity.shares {
                let own = self.search.at(&capacity.of, &[*load]);
                if !tried.contains(load) && self.check(&own).is_ok() {
                    tried.push(*load);
                    cells.extend(repeated(&own));
                }
            }
        }
        cells
    }

    /// Whether a load can be run at all.
    fn check(&self, experiment: &Experiment) -> Result<(), String> {
        experiment.check("this load").map_err(|error| error.to_string())?;
        check_plans(std::slice::from_ref(experiment), self.seats, self.room).map_err(|error| error.to_string())
    }

    fn judge(&self, runs: &[&RunValues]) -> Result<f64, Limit> {
        if let Some(reason) = runs.iter().find_map(|run| run.failure.clone()) {
            return Err(Limit::Failed(reason));
        }
        let counting: Vec<&&RunValues> = runs.iter().filter(|run| run.counts()).collect();
        let term = &self.search.goal.left;
        let values: Vec<f64> = counting.iter().filter_map(|run| run.figures.get(term.metric.name).copied()).collect();
        let withheld = counting.iter().filter(|run| is_withheld(term.metric.name, &run.warnings)).count();
        if (counting.len() - withheld) * 2 <= runs.len() {
            return Err(Limit::Generator);
        }
        let lost: u64 = counting.iter().filter_map(|run| run.wrong[0]).sum();
        if lost > 0 && counting.iter().any(|run| run.has_not_reached(term.metric.name)) {
            return Err(Limit::Loss(lost));
        }
        let Some(mean) = pushlab_stats::mean(&values) else { return Err(Limit::NotMeasured(term.metric.name)) };
        let mean = mean * term.factor;
        let is_met = match self.relation {
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

impl Planner for CapacitySearch {
    fn block(&self, so_far: &[RunValues]) -> Option<Vec<Planned>> {
        let planned = |run: PlannedRun| {
            let load = self.search.over.of(&run.cell).unwrap_or(self.search.from);
            let one = self.searched.iter().find(|one| one.is_of(&run.cell))?;
            let experiment = self.search.at(one, &[load]).at(&run.cell);
            Some(Planned { run, experiment: Ok(experiment), side: None })
        };
        let left = self.replay(so_far).left;
        (!left.is_empty()).then(|| left.into_iter().filter_map(planned).collect())
    }

    fn known(&self, so_far: &[RunValues]) -> Vec<PlannedRun> {
        self.replay(so_far).runs
    }

    /// One for each that is searched: their loads differ, and each is whole.
    fn experiments(&self, so_far: &[RunValues]) -> Vec<Experiment> {
        let loads = self.replay(so_far).loads;
        let of = |(one, loads): (&Searched, Vec<u32>)| {
            let mut loads = loads;
            loads.sort_unstable();
            self.search.at(one, &loads)
        };
        self.searched.iter().zip(loads).filter(|(_, loads)| !loads.is_empty()).map(of).collect()
    }
}

/// Every cell of an experiment as often as it repeats, with the number of the repeat.
fn repeated(experiment: &Experiment) -> impl Iterator<Item = (Cell, u32)> {
    let repeats = 1..=experiment.repeats;
    experiment.cells().into_iter().flat_map(move |cell| repeats.clone().map(move |repeat| (cell.clone(), repeat)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEATS: Seats = Seats { cores: 1, descriptors: 20_000 };

    fn search(goal: &str, change: impl FnOnce(&mut Experiment)) -> Search {
        let mut experiment = crate::experiments::load("tangen-chat", None).unwrap();
        experiment.subjects.truncate(1);
        change(&mut experiment);
        Search {
            experiment,
            goal: Assertion::parse(goal).unwrap(),
            over: Sweep::Clients,
            from: 10,
            max: 2_000,
            shares: Vec::new(),
        }
    }

    #[test]
    fn a_goal_names_one_of_several_networks() {
        let networks = |goal: &str| search(goal, |e| e.networks = vec!["lan-100".to_owned(), "4g".to_owned()]);
        let named = networks("p99(websocket, 4g) < 50 ms");
        assert_eq!(named.narrowed().unwrap().networks, ["4g"]);
        assert_eq!(named.transports().unwrap(), [Transport::WebSocket]);
        let error = networks("p99(websocket) < 50 ms").narrowed().unwrap_err().to_string();
        assert!(error.contains("has the networks lan-100, 4g; name one"), "{error}");
        let error = networks("p99(websocket, 3g) < 50 ms").transports().unwrap_err().to_string();
        assert!(error.contains("\"3g\""), "{error}");
    }

    /// What a server measures that holds so many clients over each transport.
    fn measured(run: &PlannedRun, capacity: impl Fn(Transport) -> u32) -> RunValues {
        let p99 = if run.cell.clients <= capacity(run.cell.transport) { 10.0 } else { 90.0 };
        let figures = [("latency_p99".to_owned(), p99)].into();
        RunValues { repeat: run.repeat, figures, ..RunValues::planned(run.cell.clone()) }
    }

    fn capacity(transport: Transport) -> u32 {
        match transport {
            Transport::WebSocket => 700,
            Transport::Sse => 61,
            _ => 5_000,
        }
    }

    /// Runs of each block, up to so many runs.
    fn carry_out(planner: &CapacitySearch, so_far: &mut Vec<RunValues>, most: usize) -> Vec<Vec<PlannedRun>> {
        let mut blocks = Vec::new();
        while let Some(block) = planner.block(so_far) {
            let left = most - so_far.len();
            let runs: Vec<PlannedRun> = block.into_iter().map(|planned| planned.run).take(left).collect();
            so_far.extend(runs.iter().map(|run| measured(run, capacity)));
            blocks.push(runs);
            if so_far.len() == most {
                break;
            }
        }
        blocks
    }

    fn planner() -> CapacitySearch {
        let transports = vec![Transport::WebSocket, Transport::Sse, Transport::LongPolling];
        let search =
            search("p99() < 50 ms", |experiment| (experiment.transports, experiment.repeats) = (transports, 2));
        CapacitySearch::new(&search, SEATS, None, 5).unwrap()
    }

    #[test]
    fn every_block_has_one_load_of_each_transport_that_is_searched() {
        let planner = planner();
        let mut so_far = Vec::new();
        let blocks = carry_out(&planner, &mut so_far, usize::MAX);
        assert_eq!(blocks[0].len(), 6);
        assert!(blocks[0].iter().all(|run| run.cell.clients == 10));
        for block in &blocks {
            for one in &planner.searched {
                let own: Vec<u32> =
                    block.iter().filter(|run| one.is_of(&run.cell)).map(|run| run.cell.clients).collect();
                assert!(own.is_empty() || own.len() == 2 && own[0] == own[1], "{own:?}");
            }
        }
        assert!(blocks.iter().any(|block| block.windows(2).any(|two| two[0].cell.transport != two[1].cell.transport)));
        let met: Vec<Option<u32>> =
            planner.found(&so_far).iter().map(|found| found.met.map(|(load, _)| load)).collect();
        assert!((650..=700).contains(&met[0].unwrap()) && met[1] == Some(60), "{met:?}");
        assert_eq!(met[2], Some(2_000), "as many as were asked for");
        let orders: Vec<u32> = planner.known(&so_far).iter().map(|run| run.order).collect();
        assert!(orders.iter().copied().eq(1..=so_far.len() as u32));
        let tried: usize = planner.experiments(&so_far).iter().map(|experiment| experiment.runs()).sum();
        assert_eq!(tried, so_far.len(), "a report finds every run");
    }

    #[test]
    fn a_search_that_was_interrupted_goes_on_where_it_was() {
        let planner = || {
            let mut planner = planner();
            planner.search.shares = vec![0.5, 2.0];
            planner
        };
        let (mut whole, mut so_far) = (Vec::new(), Vec::new());
        carry_out(&planner(), &mut whole, usize::MAX);
        for _ in 0..whole.len() {
            // Another process each time, one run further.
            let most = so_far.len() + 1;
            carry_out(&planner(), &mut so_far, most);
        }
        let cells = |runs: &[RunValues]| runs.iter().map(|run| (run.cell.clone(), run.repeat)).collect::<Vec<_>>();
        assert_eq!(cells(&so_far), cells(&whole));
        assert!(planner().block(&so_far).is_none());
    }

    #[test]
    fn every_subject_is_searched_over_what_it_offers() {
        let searched = |goal: &str, subjects: &[&str]| {
            let mut experiment = crate::experiments::load("peers-even-rate", Some("quick")).unwrap();
            experiment.subjects = subjects.iter().map(|name| (*name).to_owned()).collect();
            let search = Search { experiment, over: Sweep::DeliveriesPerS, ..search(goal, |_| ()) };
            let planner = CapacitySearch::new(&search, SEATS, None, 5).map_err(|error| error.to_string())?;
            Ok::<_, String>(planner.found(&[]).iter().map(|found| found.of.to_string()).collect::<Vec<_>>())
        };
        let all = ["pushlab", "bun", "mercure"];
        assert_eq!(searched("p99(websocket) < 50 ms", &all).unwrap(), ["websocket", "bun · websocket"]);
        assert_eq!(searched("p99(sse) < 50 ms", &all).unwrap(), ["sse", "bun · sse", "mercure · sse"]);
        let error = searched("p99(http-streaming) < 50 ms", &all[1..]).unwrap_err();
        assert!(error.ends_with("no transport that it asks for is offered by bun, mercure"), "{error}");
    }

    /// Once all are found, each transport is measured at its own shares; not where something else was the limit.
    #[test]
    fn shares_of_what_was_found_come_last() {
        let mut planner = planner();
        planner.search.shares = vec![0.5, 1.0, 2.0];
        let mut so_far = Vec::new();
        let blocks = carry_out(&planner, &mut so_far, usize::MAX);
        let found = planner.found(&so_far);
        let loads = |transport: Transport| -> Vec<u32> {
            let own = found.iter().find(|capacity| capacity.of.transport == transport).unwrap();
            assert!(own.shares.iter().all(|share| share.is_measured == Ok(true)));
            own.shares.iter().map(|share| share.load).collect()
        };
        let capacity = found[0].met.unwrap().0;
        assert_eq!(loads(Transport::WebSocket), [capacity.div_ceil(2), capacity, 2 * capacity]);
        assert_eq!(loads(Transport::Sse), [30, 60, 120]);
        assert_eq!(loads(Transport::LongPolling), [] as [u32; 0], "it bears all that was asked for");
        let last = blocks.last().unwrap();
        let of = |transport| last.iter().filter(move |run| run.cell.transport == transport);
        let at = |transport| of(transport).map(|run| run.cell.clients).collect::<std::collections::BTreeSet<u32>>();
        assert_eq!(at(Transport::Sse), [30, 120].into(), "60 was tried in the search");
        assert_eq!(of(Transport::Sse).count(), 4, "twice each, as the experiment repeats");
        assert_eq!(at(Transport::LongPolling), [].into());
        let (searched, of_shares) = so_far.split_at(so_far.len() - last.len());
        let pending = planner.found(searched).remove(0).shares;
        let is_measured = |shares: &[Share]| shares.iter().map(|share| share.is_measured.clone()).collect::<Vec<_>>();
        assert_eq!(is_measured(&pending), [Ok(false), Ok(true), Ok(false)], "the search has tried it once");
        for repeat in [1, 2] {
            let own = of_shares.iter().filter(|run| run.repeat == repeat);
            let half: Vec<RunValues> = searched.iter().chain(own).cloned().collect();
            assert_eq!(is_measured(&planner.found(&half)[0].shares), is_measured(&pending), "repeat {repeat} alone");
        }
        let dead = |run: &RunValues| RunValues { failure: Some("dead".to_owned()), ..run.clone() };
        let failed: Vec<RunValues> = searched.iter().cloned().chain(of_shares.iter().map(dead)).collect();
        let dead = || Err("dead".to_owned());
        assert_eq!(is_measured(&planner.found(&failed)[0].shares), [dead(), Ok(true), dead()]);
        let before = planner.found(&searched[..searched.len() - 1]);
        assert!(before.iter().all(|capacity| capacity.shares.is_empty()), "the search goes on");
        let tried: usize = planner.experiments(&so_far).iter().map(|experiment| experiment.runs()).sum();
        assert_eq!(tried, so_far.len(), "a report finds every run");
        planner.search.shares = vec![0.5, 900.0];
        let refused = planner.found(&so_far).remove(0).shares.remove(1);
        assert!(refused.is_measured.unwrap_err().contains("max_tracked_pairs"));
        for share in [0.0, -1.0, 11.0, f64::NAN] {
            let search = Search { shares: vec![share], ..search("p99() < 50 ms", |_| ()) };
            let error = CapacitySearch::new(&search, SEATS, None, 1).err().unwrap().to_string();
            assert!(error.contains("a share is a number above 0"), "{error}");
        }
    }

    #[test]
    fn a_load_that_cannot_be_run_is_the_limit() {
        let mut search = search("p99(websocket) < 50 ms", |_| ());
        (search.from, search.max) = (4_000, 900_000);
        let planner = CapacitySearch::new(&search, SEATS, None, 1).unwrap();
        let mut so_far = Vec::new();
        while let Some(block) = planner.block(&so_far) {
            so_far.extend(block.iter().map(|planned| measured(&planned.run, |_| u32::MAX)));
        }
        let found = planner.found(&so_far).remove(0);
        // A chat of more has more pairs than can be checked.
        let Some((high, Limit::Failed(why))) = found.limit else { panic!("{found:?}") };
        assert!(high > 4_096 && why.contains("max_tracked_pairs") && found.met.is_some(), "{why}");
    }
}
