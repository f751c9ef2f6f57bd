//! The store: campaigns by number and by name, and transactions around everything that changes it.

use crate::database::Database;
use crate::error::StoreError;
use crate::lock::{self, Measuring, MeasuringLock};
use crate::model::{Campaign, CampaignRow, Cell, NewCampaign, Run};
use crate::{open, reference};
use rusqlite::{Connection, TransactionBehavior};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A results database, one SQLite file. Any number of processes may have it open; writers wait for each other.
///
/// Every change is one transaction that is on the disk when the call returns: after a crash or on a full disk it
/// is there whole or not at all, and nothing stored before is lost.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
    is_read_only: bool,
}

impl Store {
    /// Where results belong: `$XDG_DATA_HOME/pushlab/results.db`, by default below `~/.local/share`.
    ///
    /// # Errors
    /// [`StoreError::NoHome`].
    pub fn default_path() -> Result<PathBuf, StoreError> {
        open::default_path()
    }

    /// Opens the database at `path` for reading and writing. Makes it and its folders if they are missing, and
    /// brings an older format to the newest.
    ///
    /// # Errors
    /// [`StoreError::NotOurs`], [`StoreError::Newer`], [`StoreError::ReadOnly`]: the file was not touched. Those of
    /// the disk.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { connection: open::open(path)?, path: path.to_owned(), is_read_only: false })
    }

    /// Opens the database at `path` only for reading: nothing is created, brought to another format or written.
    ///
    /// # Errors
    /// [`StoreError::NotOurs`], [`StoreError::Newer`], [`StoreError::Older`]; those of the disk, also where there is no
    /// file.
    pub fn open_to_read(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { connection: open::open_to_read(path)?, path: path.to_owned(), is_read_only: true })
    }

    /// Opens the database at `path` as [`Store::open`] does or, where that is there and may not be written, only for
    /// reading.
    ///
    /// # Errors
    /// Those of [`Store::open`].
    pub fn open_as_allowed(path: &Path) -> Result<Self, StoreError> {
        match Self::open(path) {
            Err(why @ StoreError::ReadOnly { .. }) => Self::open_to_read(path).map_err(|_| why),
            opened => opened,
        }
    }

    /// Whether it was opened only for reading.
    pub fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps other processes from measuring into this store until the lock is dropped or this process ends. Reading
    /// and exporting stay possible.
    ///
    /// # Errors
    /// [`StoreError::Measuring`] names the process that has it.
    pub fn lock_for_measuring(&self) -> Result<MeasuringLock, StoreError> {
        MeasuringLock::take(&self.one_path())
    }

    /// What another process, or this one, measures into this store right now; `None` too where that process is
    /// another user's.
    pub fn measuring(&self) -> Option<Measuring> {
        lock::measuring(&self.one_path())
    }

    /// One lock for one file, by whatever link it was named.
    fn one_path(&self) -> PathBuf {
        self.path.canonicalize().unwrap_or_else(|_| self.path.clone())
    }

    /// Begins a campaign and returns its number.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a name or instant that is none; those of the disk.
    pub fn create_campaign(&mut self, new: &NewCampaign) -> Result<i64, StoreError> {
        self.write(|database| database.insert_campaign(new))
    }

    /// Every campaign, newest last.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn campaigns(&self) -> Result<Vec<CampaignRow>, StoreError> {
        self.database().campaigns()
    }

    /// The campaign that a person means: its number, its name (the latest of it), `NAME~2` (two before the
    /// latest), or `NAME@previous` (`NAME~1`).
    ///
    /// # Errors
    /// [`StoreError::NotFound`] with names that look alike.
    pub fn find(&self, reference: &str) -> Result<CampaignRow, StoreError> {
        reference::find(&self.campaigns()?, reference)
    }

    /// The campaigns that a person means, each of them once: see [`Store::find`].
    ///
    /// # Errors
    /// [`StoreError::NotFound`] with names that look alike, [`StoreError::Twice`].
    pub fn find_all<R: AsRef<str>>(&self, references: &[R]) -> Result<Vec<CampaignRow>, StoreError> {
        reference::find_all(&self.campaigns()?, references)
    }

    /// A campaign without its runs.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub fn campaign(&self, id: i64) -> Result<Campaign, StoreError> {
        self.read(|database| database.campaign(id))
    }

    /// Adds a run, whole or not at all, and returns its row's number. It is on the disk when this returns.
    ///
    /// # Errors
    /// [`StoreError::Taken`] if the campaign has a run of that place, [`StoreError::Invalid`] for what could not
    /// be stored without loss, [`StoreError::NotFound`] without such a campaign; those of the disk.
    pub fn add_run(&mut self, campaign: i64, run: &Run) -> Result<i64, StoreError> {
        self.write(|database| database.insert_run(campaign, run))
    }

    /// Every run of a campaign in the planned order, with all that was measured. Each histogram takes 216 KiB of
    /// memory; [`Store::run`] reads one run at a time.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Unreadable`]; those of the disk.
    pub fn runs(&self, campaign: i64) -> Result<Vec<Run>, StoreError> {
        self.read(|database| database.places(campaign)?.iter().map(|&place| database.run(campaign, place)).collect())
    }

    /// The run of that place.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Unreadable`]; those of the disk.
    pub fn run(&self, campaign: i64, place: u32) -> Result<Run, StoreError> {
        self.read(|database| database.run(campaign, place))
    }

    /// The distinct cells of a campaign's runs, in the order in which they came.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn cells(&self, campaign: i64) -> Result<Vec<Cell>, StoreError> {
        self.database().cells(campaign)
    }

    /// Adds a campaign that is complete with these runs, and returns its number; `campaign.planned` is replaced
    /// by theirs.
    ///
    /// # Errors
    /// Those of [`Store::create_campaign`] and [`Store::add_run`], and then nothing was added.
    pub fn add_complete(&mut self, campaign: &NewCampaign, runs: &[Run]) -> Result<i64, StoreError> {
        let planned = u32::try_from(runs.len()).unwrap_or(u32::MAX);
        let campaign = NewCampaign { planned, ..campaign.clone() };
        self.write(|database| {
            let id = database.insert_campaign(&campaign)?;
            for run in runs {
                database.insert_run(id, run)?;
            }
            database.set_complete(id)?;
            Ok(id)
        })
    }

    /// Which places of the planned order have a run.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub fn run_places(&self, campaign: i64) -> Result<BTreeSet<u32>, StoreError> {
        self.database().places(campaign)
    }

    /// Says that nothing is left to do for a campaign.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; those of the disk.
    pub fn set_complete(&mut self, id: i64) -> Result<(), StoreError> {
        self.write(|database| database.set_complete(id))
    }

    /// Replaces a campaign's header and number of planned runs: a search learns its matrix as it goes.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; those of the disk.
    pub fn set_header(&mut self, id: i64, header: &serde_json::Value, planned: u32) -> Result<(), StoreError> {
        self.write(|database| database.set_header(id, header, planned))
    }

    /// Gives a campaign a note in place of the one it has; an empty one removes it.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; those of the disk.
    pub fn annotate(&mut self, id: i64, note: &str) -> Result<(), StoreError> {
        self.write(|database| database.annotate(id, note))
    }

    /// Removes a campaign with its runs and gives their space back to the disk, as far as other processes and the
    /// disk let it; what it cannot give back now is used for later runs, or goes with the next removal.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; those of the disk, and then the campaign is still there. Removal needs some room
    /// itself, for its log: on a disk without any it ends with [`StoreError::Full`].
    pub fn remove(&mut self, id: i64) -> Result<(), StoreError> {
        self.write(|database| database.remove(id))?;
        // The campaign is gone whether or not the file shrinks: an error would say otherwise.
        let _ = self.database().give_space_back();
        Ok(())
    }

    /// Does something that changes the database, whole or not at all.
    pub(crate) fn write<T, E: From<StoreError>>(
        &mut self,
        change: impl FnOnce(&Database<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let path = self.path.as_path();
        let sqlite = |source| StoreError::of_sqlite(path, source);
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sqlite)?;
        let done = change(&Database { connection: &transaction, path })?;
        transaction.commit().map_err(sqlite)?;
        Ok(done)
    }

    /// Reads as the database is at one moment, whatever others write meanwhile.
    pub(crate) fn read<T, E: From<StoreError>>(
        &self,
        read: impl FnOnce(&Database<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        // Not nested: no caller holds another transaction, because those that write take the store by `&mut`.
        let transaction = self.connection.unchecked_transaction();
        let transaction = transaction.map_err(|source| StoreError::of_sqlite(&self.path, source))?;
        read(&Database { connection: &transaction, path: &self.path })
    }

    fn database(&self) -> Database<'_> {
        Database { connection: &self.connection, path: &self.path }
    }
}
