//! The rows of the database and the values they stand for. Callers own the transactions.

use crate::error::StoreError;
use crate::model::{
    Attempt, Bound, Campaign, CampaignRow, Cell, Column, Counts, Kind, MetricValue, NewCampaign, Outcome, PhaseRow,
    Run, SeriesRow,
};
use crate::series;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use pushlab_stats::{Histogram, Warning};
use rusqlite::types::FromSql;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row, params};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::path::Path;

/// A connection, inside a transaction or not, and the path for errors.
pub(crate) struct Database<'a> {
    pub connection: &'a Connection,
    pub path: &'a Path,
}

const EXPERIMENT_ROWS: &str = "
    SELECT e.id, e.name, e.kind, e.created_at, e.is_complete, e.planned, e.note, count(r.id),
           count(r.id) FILTER (WHERE r.counts = 'yes'),
           count(r.id) FILTER (WHERE r.counts = 'void'),
           count(r.id) FILTER (WHERE r.counts = 'failed')
    FROM experiments e LEFT JOIN runs r ON r.experiment_id = e.id
    WHERE ?1 IS NULL OR e.id = ?1
    GROUP BY e.id ORDER BY e.id";

const RUN: &str = "
    SELECT r.id, r.place, r.repeat, r.seed, r.started_at, r.took_ms, r.attempts, r.failure, r.failure_phase,
           r.document, c.experiment, c.subject, c.transport, c.policy, c.variant, c.network, c.clients,
           c.deliveries_per_s, c.payload_bytes
    FROM runs r JOIN cells c ON c.id = r.cell_id
    WHERE r.experiment_id = ?1 AND r.place = ?2";

impl Database<'_> {
    pub fn sqlite(&self, source: rusqlite::Error) -> StoreError {
        StoreError::of_sqlite(self.path, source)
    }

    fn unreadable(&self, what: &str, why: impl Display) -> StoreError {
        StoreError::Unreadable { path: self.path.to_owned(), what: format!("{what} ({why})") }
    }

    fn statement(&self, sql: &str) -> Result<CachedStatement<'_>, StoreError> {
        self.connection.prepare_cached(sql).map_err(|source| self.sqlite(source))
    }

    fn execute(&self, sql: &str, values: impl Params) -> Result<usize, StoreError> {
        self.statement(sql)?.execute(values).map_err(|source| self.sqlite(source))
    }

    fn one<T: FromSql>(&self, sql: &str, values: impl Params) -> Result<Option<T>, StoreError> {
        let found = self.statement(sql)?.query_row(values, |row| row.get(0)).optional();
        found.map_err(|source| self.sqlite(source))
    }

    /// Every row that `sql` gives, as `read` understands it.
    pub fn all<T>(
        &self,
        sql: &str,
        values: impl Params,
        mut read: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut statement = self.statement(sql)?;
        let mut rows = statement.query(values).map_err(|source| self.sqlite(source))?;
        let mut read_all = Vec::new();
        while let Some(row) = rows.next().map_err(|source| self.sqlite(source))? {
            read_all.push(read(row)?);
        }
        Ok(read_all)
    }

    pub fn get<T: FromSql>(&self, row: &Row<'_>, index: usize) -> Result<T, StoreError> {
        row.get(index).map_err(|source| self.sqlite(source))
    }

    /// A column of text that `parse` understands.
    fn parsed<T>(
        &self,
        row: &Row<'_>,
        index: usize,
        what: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, StoreError> {
        let text: String = self.get(row, index)?;
        parse(&text).ok_or_else(|| self.unreadable(what, format_args!("`{text}` is unknown")))
    }

    fn json(&self, row: &Row<'_>, index: usize, what: &str) -> Result<serde_json::Value, StoreError> {
        serde_json::from_str(&self.get::<String>(row, index)?).map_err(|why| self.unreadable(what, why))
    }

    pub fn campaigns(&self) -> Result<Vec<CampaignRow>, StoreError> {
        self.rows(None)
    }

    /// The lines of all campaigns, or of one.
    fn rows(&self, id: Option<i64>) -> Result<Vec<CampaignRow>, StoreError> {
        self.all(EXPERIMENT_ROWS, [id], |row| {
            Ok(CampaignRow {
                id: self.get(row, 0)?,
                name: self.get(row, 1)?,
                kind: self.parsed(row, 2, "the kind of a campaign", Kind::from_name)?,
                created_at: self.get(row, 3)?,
                is_complete: self.get(row, 4)?,
                planned: self.get(row, 5)?,
                note: self.get(row, 6)?,
                done: self.get(row, 7)?,
                valid: self.get(row, 8)?,
                void: self.get(row, 9)?,
                failed: self.get(row, 10)?,
            })
        })
    }

    pub fn campaign(&self, id: i64) -> Result<Campaign, StoreError> {
        let row = self.rows(Some(id))?.pop().ok_or_else(|| not_found(id))?;
        let what = format!("result {id}");
        let rest = self.all("SELECT seed, header FROM experiments WHERE id = ?1", [id], |row| {
            Ok((self.parsed(row, 0, &what, |text| text.parse().ok())?, self.json(row, 1, &what)?))
        })?;
        let (seed, header) = rest.into_iter().next().ok_or_else(|| not_found(id))?;
        let facts = "SELECT name, value FROM facts WHERE experiment_id = ?1 ORDER BY place";
        let facts = self.all(facts, [id], |row| Ok((self.get(row, 0)?, self.get(row, 1)?)))?;
        Ok(Campaign { row, seed, facts, header })
    }

    pub fn insert_campaign(&self, new: &NewCampaign) -> Result<i64, StoreError> {
        new.check()?;
        let values = params![
            new.name,
            new.kind.name(),
            new.created_at,
            new.planned,
            new.seed.to_string(),
            new.header.to_string()
        ];
        let sql = "INSERT INTO experiments (name, kind, created_at, planned, seed, header)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        self.execute(sql, values)?;
        let id = self.connection.last_insert_rowid();
        for (place, (name, value)) in new.facts.iter().enumerate() {
            let sql = "INSERT INTO facts (experiment_id, place, name, value) VALUES (?1, ?2, ?3, ?4)";
            self.execute(sql, params![id, place as i64, name, value])?;
        }
        Ok(id)
    }

    pub fn set_complete(&self, id: i64) -> Result<(), StoreError> {
        found(id, self.execute("UPDATE experiments SET is_complete = 1 WHERE id = ?1", [id])?)
    }

    pub fn set_header(&self, id: i64, header: &serde_json::Value, planned: u32) -> Result<(), StoreError> {
        let header = header.to_string();
        let changed = self
            .execute("UPDATE experiments SET header = ?2, planned = ?3 WHERE id = ?1", params![id, header, planned])?;
        found(id, changed)
    }

    /// An empty note is none.
    pub fn annotate(&self, id: i64, note: &str) -> Result<(), StoreError> {
        found(id, self.execute("UPDATE experiments SET note = nullif(?2, '') WHERE id = ?1", params![id, note])?)
    }

    pub fn remove(&self, id: i64) -> Result<(), StoreError> {
        found(id, self.execute("DELETE FROM experiments WHERE id = ?1", [id])?)
    }

    /// Takes free pages from the end of the file, and then the log into it, so that both shrink.
    pub fn give_space_back(&self) -> Result<(), StoreError> {
        // A row for each page: the statement must be read to its end.
        self.all("PRAGMA incremental_vacuum", [], |_| Ok(()))?;
        // Readers may be using the log still; it shrinks when the last of them is done.
        self.all("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        Ok(())
    }

    pub fn places(&self, campaign: i64) -> Result<BTreeSet<u32>, StoreError> {
        self.must_exist(campaign)?;
        let places = self.all("SELECT place FROM runs WHERE experiment_id = ?1", [campaign], |row| self.get(row, 0))?;
        Ok(places.into_iter().collect())
    }

    fn must_exist(&self, campaign: i64) -> Result<(), StoreError> {
        let found = self.one::<i64>("SELECT id FROM experiments WHERE id = ?1", [campaign])?;
        found.map(|_| ()).ok_or_else(|| not_found(campaign))
    }

    pub fn insert_run(&self, campaign: i64, run: &Run) -> Result<i64, StoreError> {
        run.check()?;
        self.must_exist(campaign)?;
        let taken = "SELECT id FROM runs WHERE experiment_id = ?1 AND place = ?2";
        if self.one::<i64>(taken, params![campaign, run.place])?.is_some() {
            return Err(StoreError::Taken { campaign, place: run.place });
        }
        let cell = self.cell_id(campaign, &run.cell)?;
        let (failure, failure_phase) = match &run.outcome {
            Outcome::Completed => (None, None),
            Outcome::Failed { reason, phase } => (Some(reason), phase.as_ref()),
        };
        let sql =
            "INSERT INTO runs (experiment_id, place, cell_id, repeat, seed, started_at, took_ms, attempts, counts,
                                     failure, failure_phase, document)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
        let values = params![
            campaign,
            run.place,
            cell,
            run.repeat,
            run.seed.to_string(),
            run.started_at,
            integer(run.took_ms),
            run.attempts,
            run.counting().name(),
            failure,
            failure_phase,
            run.document.to_string(),
        ];
        self.execute(sql, values)?;
        let id = self.connection.last_insert_rowid();
        self.insert_numbers(id, run)?;
        self.insert_blobs(id, run)?;
        Ok(id)
    }

    fn cell_id(&self, campaign: i64, cell: &Cell) -> Result<i64, StoreError> {
        let Cell {
            experiment: name,
            subject,
            transport,
            policy,
            variant,
            network,
            clients,
            deliveries_per_s: rate,
            payload_bytes: size,
        } = cell;
        let values = params![campaign, name, subject, transport, policy, variant, network, clients, rate, size];
        let find = "SELECT id FROM cells WHERE experiment_id = ?1 AND experiment = ?2 AND subject = ?3
                    AND transport = ?4 AND policy = ?5 AND ifnull(variant, '') = ifnull(?6, '')
                    AND ifnull(network, '') = ifnull(?7, '') AND clients = ?8
                    AND ifnull(deliveries_per_s, -1) = ifnull(?9, -1) AND ifnull(payload_bytes, -1) = ifnull(?10, -1)";
        if let Some(id) = self.one(find, values)? {
            return Ok(id);
        }
        let insert = "INSERT INTO cells (experiment_id, experiment, subject, transport, policy, variant, network,
                                         clients, deliveries_per_s, payload_bytes)
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
        self.execute(insert, values)?;
        Ok(self.connection.last_insert_rowid())
    }

    fn insert_numbers(&self, id: i64, run: &Run) -> Result<(), StoreError> {
        for (place, attempt) in run.earlier.iter().enumerate() {
            let Attempt { started_at, took_ms, reason, detail, figures } = attempt;
            let figures = serde_json::json!(figures).to_string();
            let sql = "INSERT INTO attempts (run_id, place, started_at, took_ms, reason, detail, figures)
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
            self.execute(sql, params![id, place as i64, started_at, integer(*took_ms), reason, detail, figures])?;
        }
        for (place, warning) in run.warnings.iter().enumerate() {
            let sql = "INSERT INTO doubts (run_id, place, code, detail) VALUES (?1, ?2, ?3, ?4)";
            self.execute(sql, params![id, place as i64, warning.code.kind().name, warning.detail])?;
        }
        for (place, phase) in run.phases.iter().enumerate() {
            let sql = "INSERT INTO phases (run_id, place, name, start_ns, end_ns) VALUES (?1, ?2, ?3, ?4, ?5)";
            let (start, end) = (integer(phase.start_ns), integer(phase.end_ns));
            self.execute(sql, params![id, place as i64, phase.name, start, end])?;
        }
        for (metric, figure) in &run.figures {
            let sql = "INSERT INTO figures (run_id, metric, value, bound, unit) VALUES (?1, ?2, ?3, ?4, ?5)";
            self.execute(sql, params![id, metric, figure.value, figure.bound.map(Bound::name), figure.unit])?;
        }
        for (name, value) in &run.counts {
            let sql = "INSERT INTO counts (run_id, name, value) VALUES (?1, ?2, ?3)";
            self.execute(sql, params![id, name, integer(*value)])?;
        }
        Ok(())
    }

    fn insert_blobs(&self, id: i64, run: &Run) -> Result<(), StoreError> {
        for (name, histogram) in &run.histograms {
            let invalid = |why: &dyn Display| StoreError::Invalid { what: format!("histogram {name}: {why}") };
            let text = histogram.to_base64().map_err(|why| invalid(&why))?;
            let data = BASE64.decode(text).map_err(|why| invalid(&why))?;
            self.execute("INSERT INTO histograms (run_id, name, data) VALUES (?1, ?2, ?3)", params![id, name, data])?;
        }
        for (place, series) in run.series.iter().enumerate() {
            let names: Vec<&str> = series.columns.iter().map(|column| column.name.as_str()).collect();
            let rows = series.columns.first().map_or(0, |column| column.values.len());
            let data = series::encode(series.columns.iter().map(|column| &column.values), rows);
            let sql = "INSERT INTO series (run_id, place, name, columns, rows, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            let names = serde_json::Value::from(names).to_string();
            self.execute(sql, params![id, place as i64, series.name, names, rows as i64, data])?;
        }
        Ok(())
    }

    pub fn run(&self, campaign: i64, place: u32) -> Result<Run, StoreError> {
        let what = format!("run {place} of result {campaign}");
        let what = what.as_str();
        let found = self.all(RUN, params![campaign, place], |row| {
            let id: i64 = self.get(row, 0)?;
            let outcome = match self.get(row, 7)? {
                None => Outcome::Completed,
                Some(reason) => Outcome::Failed { reason, phase: self.get(row, 8)? },
            };
            Ok(Run {
                place: self.get(row, 1)?,
                repeat: self.get(row, 2)?,
                seed: self.parsed(row, 3, what, |text| text.parse().ok())?,
                started_at: self.get(row, 4)?,
                took_ms: self.count(row, 5, what)?,
                attempts: self.get(row, 6)?,
                earlier: self.attempts(id, what)?,
                outcome,
                document: self.json(row, 9, what)?,
                cell: self.cell(row, 10)?,
                warnings: self.warnings(id, what)?,
                phases: self.phases(id, what)?,
                figures: self.figures(id, what)?,
                counts: self.counts(id, what)?,
                histograms: self.histograms(id, what)?,
                series: self.series(id, what)?,
            })
        })?;
        let missing = || StoreError::NotFound { reference: format!("{campaign}, run {place}"), near: Vec::new() };
        found.into_iter().next().ok_or_else(missing)
    }

    pub fn cells(&self, campaign: i64) -> Result<Vec<Cell>, StoreError> {
        let sql = "SELECT experiment, subject, transport, policy, variant, network, clients, deliveries_per_s,
                          payload_bytes
                   FROM cells WHERE experiment_id = ?1 ORDER BY id";
        self.all(sql, [campaign], |row| self.cell(row, 0))
    }

    /// The cell whose columns begin at `first`, in the order of [`Cell`].
    pub fn cell(&self, row: &Row<'_>, first: usize) -> Result<Cell, StoreError> {
        Ok(Cell {
            experiment: self.get(row, first)?,
            subject: self.get(row, first + 1)?,
            transport: self.get(row, first + 2)?,
            policy: self.get(row, first + 3)?,
            variant: self.get(row, first + 4)?,
            network: self.get(row, first + 5)?,
            clients: self.get(row, first + 6)?,
            deliveries_per_s: self.get(row, first + 7)?,
            payload_bytes: self.get(row, first + 8)?,
        })
    }

    /// A column that holds no negative number.
    fn count(&self, row: &Row<'_>, index: usize, what: &str) -> Result<u64, StoreError> {
        u64::try_from(self.get::<i64>(row, index)?).map_err(|why| self.unreadable(what, why))
    }

    /// The bound in a column that may be empty.
    pub fn bound(&self, row: &Row<'_>, index: usize, what: &str) -> Result<Option<Bound>, StoreError> {
        let text: Option<String> = self.get(row, index)?;
        let Some(text) = text else { return Ok(None) };
        let bound = Bound::from_name(&text);
        bound.map(Some).ok_or_else(|| self.unreadable(what, format_args!("bound `{text}` is unknown")))
    }

    /// Whether the figures count, from a column.
    pub fn counting(&self, row: &Row<'_>, index: usize, what: &str) -> Result<Counts, StoreError> {
        self.parsed(row, index, what, Counts::from_name)
    }

    fn warnings(&self, id: i64, what: &str) -> Result<Vec<Warning>, StoreError> {
        self.all("SELECT code, detail FROM doubts WHERE run_id = ?1 ORDER BY place", [id], |row| {
            let code: String = self.get(row, 0)?;
            let code = serde_json::from_value(code.into()).map_err(|why| self.unreadable(what, why))?;
            Ok(Warning { code, detail: self.get(row, 1)? })
        })
    }

    fn attempts(&self, id: i64, what: &str) -> Result<Vec<Attempt>, StoreError> {
        let sql = "SELECT started_at, took_ms, reason, detail, figures FROM attempts WHERE run_id = ?1 ORDER BY place";
        self.all(sql, [id], |row| {
            let figures = serde_json::from_value(self.json(row, 4, what)?).map_err(|why| self.unreadable(what, why))?;
            let took_ms = self.count(row, 1, what)?;
            let (reason, detail) = (self.get(row, 2)?, self.get(row, 3)?);
            Ok(Attempt { started_at: self.get(row, 0)?, took_ms, reason, detail, figures })
        })
    }

    fn phases(&self, id: i64, what: &str) -> Result<Vec<PhaseRow>, StoreError> {
        self.all("SELECT name, start_ns, end_ns FROM phases WHERE run_id = ?1 ORDER BY place", [id], |row| {
            let (start_ns, end_ns) = (self.count(row, 1, what)?, self.count(row, 2, what)?);
            Ok(PhaseRow { name: self.get(row, 0)?, start_ns, end_ns })
        })
    }

    fn figures(&self, id: i64, what: &str) -> Result<BTreeMap<String, MetricValue>, StoreError> {
        let figures = self.all("SELECT metric, value, bound, unit FROM figures WHERE run_id = ?1", [id], |row| {
            let (value, bound) = (self.get(row, 1)?, self.bound(row, 2, what)?);
            Ok((self.get(row, 0)?, MetricValue { value, bound, unit: self.get(row, 3)? }))
        })?;
        Ok(figures.into_iter().collect())
    }

    fn counts(&self, id: i64, what: &str) -> Result<BTreeMap<String, u64>, StoreError> {
        let counts = self.all("SELECT name, value FROM counts WHERE run_id = ?1", [id], |row| {
            Ok((self.get(row, 0)?, self.count(row, 1, what)?))
        })?;
        Ok(counts.into_iter().collect())
    }

    fn histograms(&self, id: i64, what: &str) -> Result<BTreeMap<String, Histogram>, StoreError> {
        let histograms = self.all("SELECT name, data FROM histograms WHERE run_id = ?1", [id], |row| {
            let data: Vec<u8> = self.get(row, 1)?;
            let histogram = Histogram::from_base64(&BASE64.encode(data)).map_err(|why| self.unreadable(what, why))?;
            Ok((self.get(row, 0)?, histogram))
        })?;
        Ok(histograms.into_iter().collect())
    }

    fn series(&self, id: i64, what: &str) -> Result<Vec<SeriesRow>, StoreError> {
        self.all("SELECT name, columns, data FROM series WHERE run_id = ?1 ORDER BY place", [id], |row| {
            let name: String = self.get(row, 0)?;
            let names: Vec<String> =
                serde_json::from_value(self.json(row, 1, what)?).map_err(|why| self.unreadable(what, why))?;
            let data: Vec<u8> = self.get(row, 2)?;
            let values = series::decode(&data, names.len());
            let values = values.map_err(|why| self.unreadable(what, format_args!("series {name}: {why}")))?;
            let columns = names.into_iter().zip(values).map(|(name, values)| Column { name, values }).collect();
            Ok(SeriesRow { name, columns })
        })
    }
}

/// A number that [`Run::check`] found to fit.
fn integer(value: u64) -> i64 {
    i64::try_from(value).expect("checked before anything is written: every count and time is below 2^63")
}

/// Whether a statement about one campaign met it.
fn found(id: i64, changed: usize) -> Result<(), StoreError> {
    if changed == 0 { Err(not_found(id)) } else { Ok(()) }
}

fn not_found(id: i64) -> StoreError {
    StoreError::NotFound { reference: id.to_string(), near: Vec::new() }
}
