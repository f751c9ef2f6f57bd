//! The folder in which a campaign keeps its results: a header, and a file for each run as soon as it ends.

use crate::experiment::Experiment;
use crate::pinning::Pinning;
use crate::record::RunRecord;
use pushlab_probe::machine::MachineFacts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const HEADER_FILE: &str = "campaign.json";
/// The report's data; the last file to be written.
pub const REPORT_FILE: &str = "report.json";
const RUNS_FOLDER: &str = "runs";
const LOCK_FILE: &str = "lock";

/// What a campaign is, written before its first run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Header {
    /// `compare`, or the experiment's name.
    pub name: String,
    /// The experiments with their profile applied.
    pub experiments: Vec<Experiment>,
    /// Seed of the order and of every run.
    pub seed: u64,
    /// What was typed.
    pub command: Vec<String>,
    /// Version of the program.
    pub version: String,
    /// When it began, RFC 3339, UTC.
    pub created_at: String,
    /// Cores of the subject and of the load.
    pub subject_cores: Vec<usize>,
    /// See `subject_cores`.
    pub load_cores: Vec<usize>,
    /// The machine.
    pub machine: MachineFacts,
}

/// Why results cannot be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The disk is full, the folder is not ours, and so on.
    #[error(
        "cannot write {}: {source}; what was written before is kept, and the same command goes on from there once \
         there is room and permission, or choose another folder with --out", .path.display()
    )]
    Write {
        /// What was to be written.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Missing or not readable.
    #[error("cannot read {}: {source}", .path.display())]
    Read {
        /// What was to be read.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Not what this program wrote.
    #[error("{} is not a result of this program ({source}); move it away", .path.display())]
    Format {
        /// Which file.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
    /// Two labs at once.
    #[error("another pushlab works in {} right now; wait for it, or start anew with --fresh", .folder.display())]
    Busy {
        /// The folder.
        folder: PathBuf,
    },
}

/// A campaign's folder. While it exists no other lab writes there.
pub struct Results {
    folder: PathBuf,
    _lock: Option<File>,
}

impl Header {
    /// The header of a campaign that begins now.
    pub fn new(name: &str, experiments: Vec<Experiment>, seed: u64, command: Vec<String>, pinning: &Pinning) -> Self {
        Self {
            name: name.to_owned(),
            experiments,
            seed,
            command,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            created_at: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            subject_cores: pinning.subject.clone(),
            load_cores: pinning.load.clone(),
            machine: MachineFacts::read(Duration::ZERO),
        }
    }
}

impl Results {
    /// Makes a folder of its own below `parent`, named after the campaign and the time.
    pub fn create(parent: &Path, header: &Header) -> Result<Self, ResultsError> {
        let stamp: String = header.created_at.chars().filter(char::is_ascii_digit).take(14).collect();
        let mut folder = parent.join(format!("{}-{stamp}", header.name));
        for attempt in 2.. {
            let made = fs::create_dir_all(parent).and_then(|()| fs::create_dir(&folder));
            match made {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && attempt < 100 => {
                    folder = parent.join(format!("{}-{stamp}-{attempt}", header.name));
                }
                other => {
                    other.map_err(|source| ResultsError::Write { path: folder.clone(), source })?;
                    break;
                }
            }
        }
        let runs = folder.join(RUNS_FOLDER);
        fs::create_dir(&runs).map_err(|source| ResultsError::Write { path: runs, source })?;
        let results = Self { _lock: Some(lock(&folder)?), folder };
        results.write_json(&results.folder.join(HEADER_FILE), header)?;
        Ok(results)
    }

    /// The folder of an earlier campaign, to read.
    pub fn open(folder: &Path) -> Result<(Self, Header), ResultsError> {
        let header = read_json(&folder.join(HEADER_FILE))?;
        Ok((Self { folder: folder.to_owned(), _lock: None }, header))
    }

    /// The latest campaign of the same name, experiments and seed that lacks runs, ready to go on.
    pub fn find_unfinished(
        parent: &Path,
        name: &str,
        experiments: &[Experiment],
        seed: Option<u64>,
    ) -> Result<Option<(Self, Header)>, ResultsError> {
        for folder in Self::list(parent).into_iter().rev() {
            let Ok((results, header)) = Self::open(&folder) else { continue };
            let is_same = header.name == name && header.experiments == experiments;
            if !is_same || seed.is_some_and(|seed| seed != header.seed) {
                continue;
            }
            let planned: usize = header.experiments.iter().map(Experiment::runs).sum();
            // A campaign whose report could not be written has something left to do, too.
            if results.done()?.len() < planned || !results.folder.join(REPORT_FILE).is_file() {
                let lock = Some(lock(&folder)?);
                return Ok(Some((Self { folder, _lock: lock }, header)));
            }
            return Ok(None);
        }
        Ok(None)
    }

    /// Folders of campaigns below `parent`, oldest first.
    pub fn list(parent: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(parent).into_iter().flatten().flatten();
        let mut folders: Vec<PathBuf> = entries.map(|e| e.path()).filter(|p| p.join(HEADER_FILE).is_file()).collect();
        folders.sort_by_key(|folder| fs::metadata(folder.join(HEADER_FILE)).and_then(|m| m.modified()).ok());
        folders
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where runs and the logs of their subjects are.
    pub fn runs_folder(&self) -> PathBuf {
        self.folder.join(RUNS_FOLDER)
    }

    /// Places in the order of the runs that have a record.
    pub fn done(&self) -> Result<BTreeSet<u32>, ResultsError> {
        let numbers = self.record_files()?;
        Ok(numbers.iter().filter_map(|p| p.file_stem()?.to_str()?.parse().ok()).collect())
    }

    /// Every record, in order.
    pub fn records(&self) -> Result<Vec<RunRecord>, ResultsError> {
        let mut files = self.record_files()?;
        files.sort();
        files.iter().map(|path| read_json(path)).collect()
    }

    /// Keeps a record: it is there whole, or not at all.
    pub fn write(&self, record: &RunRecord) -> Result<(), ResultsError> {
        self.write_json(&self.runs_folder().join(format!("{:05}.json", record.planned.order)), record)
    }

    /// Keeps a file beside the records, such as the report.
    pub fn write_file(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, ResultsError> {
        let path = self.folder.join(name);
        write_whole(&path, bytes)?;
        Ok(path)
    }

    fn record_files(&self) -> Result<Vec<PathBuf>, ResultsError> {
        let folder = self.runs_folder();
        let entries = fs::read_dir(&folder).map_err(|source| ResultsError::Read { path: folder, source })?;
        Ok(entries.flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "json")).collect())
    }

    fn write_json(&self, path: &Path, value: &impl Serialize) -> Result<(), ResultsError> {
        let bytes = serde_json::to_vec(value)
            .map_err(|e| ResultsError::Write { path: path.to_owned(), source: io::Error::other(e) })?;
        write_whole(path, &bytes)
    }
}

/// Writes beside, synchronises, then renames: after a crash or on a full disk the old state is still there.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), ResultsError> {
    let beside = path.with_extension("part");
    let written = File::create(&beside).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.and_then(|()| fs::rename(&beside, path)).map_err(|source| {
        // Its space may be what the next attempt needs.
        let _ = fs::remove_file(&beside);
        ResultsError::Write { path: path.to_owned(), source }
    })
}

fn read_json<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T, ResultsError> {
    let bytes = fs::read(path).map_err(|source| ResultsError::Read { path: path.to_owned(), source })?;
    serde_json::from_slice(&bytes).map_err(|source| ResultsError::Format { path: path.to_owned(), source })
}

fn lock(folder: &Path) -> Result<File, ResultsError> {
    let path = folder.join(LOCK_FILE);
    let file = File::create(&path).map_err(|source| ResultsError::Write { path, source })?;
    file.try_lock().map_err(|_| ResultsError::Busy { folder: folder.to_owned() })?;
    Ok(file)
}
