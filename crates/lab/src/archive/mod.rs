//! Campaigns in the store: begun, gone on with, read back for reports.

mod convert;
mod figures;
mod summary;
mod table;

pub use figures::BROWSER;
pub use summary::{ResultState, ResultSummary, summaries};

use crate::header::known_subjects;
use crate::wall_clock;
use convert::{figures_of, from_store, to_store};
use pushlab_analysis::header::Header;
use pushlab_analysis::report::{ResultRuns, RunValues, published_seconds};
use pushlab_experiment::metric;
use pushlab_experiment::studies::{STUDIES, Study};
use pushlab_experiment::{MAX_RUNS, Written};
use pushlab_record::RunRecord;
use pushlab_store::{self as store, Kind, MeasuringLock, NewCampaign, Store, StoreError, import};
use pushlab_subjects::named::offer;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Why results cannot be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// See there.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Something stored that this program did not write.
    #[error("{what} of result {id} cannot be read ({source}): it was written by another version of this program")]
    Foreign {
        /// The campaign's number.
        id: i64,
        /// Which part.
        what: String,
        /// Where and why.
        source: serde_json::Error,
    },
    /// A record that cannot be written, which is a fault of ours.
    #[error("the record of run {place} cannot be stored: {source}")]
    Record {
        /// Its place in the order.
        place: u32,
        /// Where and why.
        source: serde_json::Error,
    },
    /// A study's numbers.
    #[error("{file}: {source}")]
    Import {
        /// Which file.
        file: String,
        /// Where and why.
        source: import::ImportError,
    },
}

/// One campaign in the store, while it is carried out: no other lab measures with this store meanwhile.
pub struct Archive {
    store: Store,
    id: i64,
    _lock: MeasuringLock,
}

impl Archive {
    /// Begins a campaign.
    pub fn begin(mut store: Store, header: &Header) -> Result<Self, ArchiveError> {
        let mut lock = store.lock_for_measuring()?;
        let header_json = serde_json::to_value(header).map_err(|source| ArchiveError::Record { place: 0, source })?;
        let id = store.create_campaign(&NewCampaign {
            name: header.name.clone(),
            kind: Kind::Measured,
            created_at: header.created_at.clone(),
            header: header_json,
            seed: header.seed,
            planned: header.planned() as u32,
            facts: header.facts(),
        })?;
        // Without its number a list shows it as interrupted until its end.
        let _ = lock.name(id);
        Ok(Self { store, id, _lock: lock })
    }

    /// Goes on with a campaign.
    pub fn resume(store: Store, id: i64) -> Result<Self, ArchiveError> {
        let mut lock = store.lock_for_measuring()?;
        // As above.
        let _ = lock.name(id);
        Ok(Self { store, id, _lock: lock })
    }

    /// The campaign's number in the store.
    pub fn id(&self) -> i64 {
        self.id
    }

    /// The runs that are there, read back.
    pub fn runs(&self) -> Result<Vec<RunValues>, ArchiveError> {
        Ok(read(&self.store, self.id, "")?.runs)
    }

    /// Keeps a record: it is there whole, or not at all.
    pub fn write(&mut self, record: &RunRecord) -> Result<(), ArchiveError> {
        let run = to_store(record).map_err(|source| ArchiveError::Record { place: record.planned.order, source })?;
        self.store.add_run(self.id, &run)?;
        Ok(())
    }

    /// Replaces what was planned: a search learns its matrix as it goes.
    pub fn replan(&mut self, header: &Header) -> Result<(), ArchiveError> {
        let json = serde_json::to_value(header).map_err(|source| ArchiveError::Record { place: 0, source })?;
        Ok(self.store.set_header(self.id, &json, header.planned() as u32)?)
    }

    /// Takes the campaign out of the store again.
    pub fn remove(mut self) -> Result<(), ArchiveError> {
        Ok(self.store.remove(self.id)?)
    }

    /// Says that every planned run has a record.
    pub fn complete(&mut self) -> Result<(), ArchiveError> {
        Ok(self.store.set_complete(self.id)?)
    }
}

/// The latest campaign of the same name, seed and build of this program of which that is said, if it is not complete:
/// runs of two builds under one header would pass for one.
pub fn find_unfinished(
    store: &Store,
    name: &str,
    seed: Option<u64>,
    build: Option<u64>,
    is_same: impl Fn(&Header) -> bool,
) -> Result<Option<(i64, Header)>, ArchiveError> {
    for row in store.campaigns()?.into_iter().rev().filter(|row| row.kind == Kind::Measured && row.name == name) {
        // One that another version wrote is not ours to go on with.
        let Ok(header) = header(store, row.id) else { continue };
        if header.build != build || !is_same(&header) || seed.is_some_and(|seed| seed != header.seed) {
            continue;
        }
        return Ok((!row.is_complete).then_some((row.id, header)));
    }
    Ok(None)
}

/// The header of a stored campaign.
pub fn header(store: &Store, id: i64) -> Result<Header, ArchiveError> {
    let experiment = store.campaign(id)?;
    if experiment.row.kind == Kind::Published || experiment.header.is_null() {
        return header_of_values(store, experiment);
    }
    let foreign = |source| ArchiveError::Foreign { id, what: "the header".to_owned(), source };
    let header = believed(serde_json::from_value(experiment.header).map_err(foreign)?);
    if header.planned() > MAX_RUNS {
        return Err(foreign(serde::de::Error::custom(format!("it plans {} runs, over {MAX_RUNS}", header.planned()))));
    }
    Ok(header)
}

/// A header that was stored; of a subject that is not known any more anything is believed.
fn believed(header: Header<Written>) -> Header {
    header.believe(&offer)
}

/// A header for runs that came as bare figures: their own matrix.
fn header_of_values(store: &Store, experiment: store::Campaign) -> Result<Header, ArchiveError> {
    let row = &experiment.row;
    let foreign = |source| ArchiveError::Foreign { id: row.id, what: "a cell".to_owned(), source };
    let mut runs = Vec::new();
    for place in store.run_places(row.id)? {
        runs.push(figures_of(store.run(row.id, place)?).map_err(foreign)?);
    }
    let mut names: Vec<&str> = runs.iter().map(|run| run.cell.experiment.as_str()).collect();
    names.dedup();
    names.sort_unstable();
    names.dedup();
    let experiments =
        names.iter().map(|name| figures::experiment_of(name, &runs, row.kind == Kind::Published)).collect();
    Ok(Header {
        name: row.name.clone(),
        experiments,
        search: None,
        seed: 1,
        command: Vec::new(),
        version: String::new(),
        created_at: row.created_at.clone(),
        subject_cores: Vec::new(),
        load_cores: Vec::new(),
        prober_core: None,
        versions: BTreeMap::new(),
        runtimes: experiment.facts.iter().cloned().collect(),
        left_out: Vec::new(),
        machine: None,
        fleet: Vec::new(),
        agents: Vec::new(),
        build: None,
    })
}

/// Everything that a report needs of a stored campaign. Runs are read one after the other, because one with its
/// histograms takes megabytes, and its figures few kilobytes.
pub fn read(store: &Store, id: i64, tag: &str) -> Result<ResultRuns, ArchiveError> {
    let foreign = |place: u32| move |source| ArchiveError::Foreign { id, what: format!("run {place}"), source };
    let header = header(store, id)?;
    let mut runs = Vec::new();
    for place in store.run_places(id)? {
        let run = store.run(id, place)?;
        let is_whole = run.document.get("plan").is_some();
        let values = if is_whole { from_store(run).map(|record| RunValues::of(&record)) } else { figures_of(run) };
        runs.push(values.map_err(foreign(place))?);
    }
    Ok(ResultRuns { tag: tag.to_owned(), known: known_subjects(&header.experiments), header, runs })
}

/// What a study printed.
pub fn published(study: &Study) -> Result<Vec<RunValues>, ArchiveError> {
    let name = format!("the numbers of {}", study.id);
    let files: Result<Vec<_>, _> = study.csv.iter().map(|csv| bare(study.id, &name, csv)).collect();
    let mut runs: Vec<RunValues> = files?.into_iter().flatten().collect();
    if let Some(seconds) = study.seconds {
        published_seconds::add(seconds, &mut runs);
    }
    Ok(runs)
}

/// The bare figures of a CSV file, as of a result of this name; `file` is its own.
///
/// # Errors
/// Says what is wrong with it.
pub fn bare(name: &str, file: &str, csv: &str) -> Result<Vec<RunValues>, ArchiveError> {
    let parsed = import::read_runs(&values_header(name), &metric::unit, csv.as_bytes())
        .map_err(|source| ArchiveError::Import { file: file.to_owned(), source })?;
    let runs: Result<Vec<RunValues>, _> = parsed.into_iter().map(figures_of).collect();
    runs.map_err(|source| ArchiveError::Foreign { id: 0, what: file.to_owned(), source })
}

/// What an experiment of bare figures is called.
pub fn values_header(name: &str) -> NewCampaign {
    NewCampaign {
        name: name.to_owned(),
        kind: if STUDIES.iter().any(|study| name.starts_with(study.id)) { Kind::Published } else { Kind::Imported },
        created_at: wall_clock::now(),
        seed: 0,
        planned: 0,
        facts: Vec::new(),
        header: serde_json::Value::Null,
    }
}

/// Opens a store, the user's own by default.
pub fn open(path: Option<&Path>) -> Result<Store, ArchiveError> {
    Ok(Store::open(&path_of(path)?)?)
}

/// Opens a store that is only to be read, the user's own by default; one that may not be written, too.
pub fn open_to_read(path: Option<&Path>) -> Result<Store, ArchiveError> {
    Ok(Store::open_as_allowed(&path_of(path)?)?)
}

fn path_of(path: Option<&Path>) -> Result<PathBuf, StoreError> {
    path.map_or_else(Store::default_path, |path| Ok(path.to_owned()))
}
