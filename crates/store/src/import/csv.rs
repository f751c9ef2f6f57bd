//! Figures in the layout of [`crate::export::csv`].

use super::ImportError;
use crate::export::{COLUMNS, Units, unguarded};
use crate::model::{Bound, Cell, Counts, MetricValue, NewCampaign, Outcome, Run, check_name, unknown_transport};
use crate::store::Store;
use csv::StringRecord;
use pushlab_wire::transport::Transport;
use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::str::FromStr;

/// Adds a campaign whose runs have the figures of a table, and returns its number. The table has a header with
/// the columns [`COLUMNS`], in any order; without `network`, as older exports are, nothing has one. Rows of the same cell and repeat are one run; runs come in the order in
/// which the table first names them. `campaign.planned` is replaced by their number, and they all start at
/// `campaign.created_at`. The campaign is complete.
///
/// `units` tells the unit of each metric it knows, and a row must have that one; a metric it does not know (an empty
/// unit) keeps the row's.
///
/// # Errors
/// [`ImportError::Line`] for a missing or unknown column, a value that is none, or a figure that is there twice. A
/// void run is refused too: the table does not say what voids it, the JSON export does.
pub fn csv(store: &mut Store, campaign: &NewCampaign, units: Units<'_>, input: impl Read) -> Result<i64, ImportError> {
    let runs = read_runs(campaign, units, input)?;
    Ok(store.add_complete(campaign, &runs)?)
}

/// The runs of such a table, without a store: see [`csv`].
///
/// # Errors
/// As [`csv`].
pub fn read_runs(campaign: &NewCampaign, units: Units<'_>, input: impl Read) -> Result<Vec<Run>, ImportError> {
    let mut table = csv::ReaderBuilder::new().from_reader(input);
    let header = table.headers().map_err(of_csv)?.clone();
    let columns = Columns::find(&header).map_err(|what| ImportError::Line { line: 1, what })?;
    let mut runs: Vec<Run> = Vec::new();
    let mut known: HashMap<(Cell, u32), usize> = HashMap::new();
    let mut lines: HashMap<(usize, String), u64> = HashMap::new();
    for record in table.records() {
        let record = record.map_err(of_csv)?;
        let line = record.position().map_or(0, |position| position.line());
        let at = |what| ImportError::Line { line, what };
        let row = Row::read(&Fields { columns: &columns, record: &record }, units).map_err(at)?;
        let index = *known.entry((row.cell.clone(), row.repeat)).or_insert_with(|| {
            runs.push(run_of(campaign, &row, runs.len()));
            runs.len() - 1
        });
        let run = &mut runs[index];
        if run.counting() != row.counts {
            return Err(at(format!("`counts` is {}, but {} in an earlier row of the run", row.counts, run.counting())));
        }
        if let Some(first) = lines.insert((index, row.metric.clone()), line) {
            return Err(at(format!("{} of this cell and repeat is on line {first} already", row.metric)));
        }
        run.figures.insert(row.metric, row.figure);
    }
    if runs.is_empty() {
        return Err(ImportError::Line { line: 1, what: "no row follows the header".to_owned() });
    }
    Ok(runs)
}

fn run_of(campaign: &NewCampaign, row: &Row, before: usize) -> Run {
    let outcome = match row.counts {
        Counts::Failed => Outcome::Failed { reason: "failed where it was measured".to_owned(), phase: None },
        Counts::Yes | Counts::Void => Outcome::Completed,
    };
    Run {
        place: u32::try_from(before + 1).unwrap_or(u32::MAX),
        cell: row.cell.clone(),
        repeat: row.repeat,
        seed: 0,
        started_at: campaign.created_at.clone(),
        took_ms: 0,
        attempts: 1,
        earlier: Vec::new(),
        outcome,
        warnings: Vec::new(),
        phases: Vec::new(),
        figures: BTreeMap::new(),
        counts: BTreeMap::new(),
        histograms: BTreeMap::new(),
        series: Vec::new(),
        document: serde_json::Value::Null,
    }
}

/// The column that older exports lack.
const MAY_BE_MISSING: &str = "network";

/// Where each of [`COLUMNS`] is in the table; `None` for one that is not there and need not be.
struct Columns([Option<usize>; COLUMNS.len()]);

impl Columns {
    fn find(header: &StringRecord) -> Result<Self, String> {
        let layout = || format!("the columns are {}", COLUMNS.join(","));
        if let Some(unknown) = header.iter().find(|name| !COLUMNS.contains(name)) {
            return Err(format!("column `{unknown}` is unknown; {}", layout()));
        }
        let mut places = [None; COLUMNS.len()];
        for (name, place) in COLUMNS.iter().zip(&mut places) {
            let mut found = header.iter().enumerate().filter(|(_, other)| other == name);
            *place = found.next().map(|(at, _)| at);
            if place.is_none() && *name != MAY_BE_MISSING {
                return Err(format!("column `{name}` is missing; {}", layout()));
            }
            if found.next().is_some() {
                return Err(format!("column `{name}` is there twice"));
            }
        }
        Ok(Self(places))
    }
}

struct Fields<'a> {
    columns: &'a Columns,
    record: &'a StringRecord,
}

impl<'a> Fields<'a> {
    fn text(&self, name: &str) -> &'a str {
        let index = COLUMNS.iter().position(|column| *column == name).expect("only names of COLUMNS are asked for");
        self.columns.0[index].map_or("", |place| &self.record[place])
    }

    fn number<T: FromStr>(&self, name: &str) -> Result<T, String> {
        let text = self.text(name);
        text.parse().map_err(|_| format!("`{name}` is `{text}`, which is no number of that column"))
    }

    fn number_or_nothing<T: FromStr>(&self, name: &str) -> Result<Option<T>, String> {
        if self.text(name).is_empty() { Ok(None) } else { self.number(name).map(Some) }
    }
}

/// A row of the table.
struct Row {
    cell: Cell,
    repeat: u32,
    metric: String,
    figure: MetricValue,
    counts: Counts,
}

impl Row {
    fn read(fields: &Fields<'_>, units: Units<'_>) -> Result<Self, String> {
        let named = |name: &str| {
            let text = unguarded(fields.text(name));
            check_name(name, text).map(|()| text.to_owned())
        };
        let transport = fields.text("transport").to_owned();
        if Transport::from_name(&transport).is_none() {
            return Err(unknown_transport(&transport));
        }
        let cell = Cell {
            experiment: named("experiment")?,
            subject: named("subject")?,
            transport,
            policy: if fields.text("policy").is_empty() { String::new() } else { named("policy")? },
            variant: if fields.text("variant").is_empty() { None } else { Some(named("variant")?) },
            network: if fields.text("network").is_empty() { None } else { Some(named("network")?) },
            clients: fields.number("clients")?,
            deliveries_per_s: fields.number_or_nothing("deliveries_per_s")?,
            payload_bytes: fields.number_or_nothing("payload_bytes")?,
        };
        let repeat = fields.number("repeat")?;
        if repeat == 0 {
            return Err("`repeat` is 0; repeats count from 1".to_owned());
        }
        let metric = named("metric")?;
        let value: f64 = fields.number("value")?;
        if !value.is_finite() {
            return Err(format!("`value` is {value}; leave out the row of what was not measured"));
        }
        let bound = match fields.text("bound") {
            "" => None,
            text => Some(Bound::from_name(text).ok_or_else(|| {
                let known = Bound::ALL.map(Bound::name).join(", ");
                format!("`bound` is `{text}`; it is empty or one of {known}")
            })?),
        };
        let unit = unit(&metric, unguarded(fields.text("unit")), units(&metric))?;
        let counts = counts(fields.text("counts"))?;
        Ok(Self { cell, repeat, metric, figure: MetricValue { value, bound, unit }, counts })
    }
}

fn unit(metric: &str, text: &str, known: &str) -> Result<Option<String>, String> {
    if !known.is_empty() && text != known {
        return Err(format!("`unit` of {metric} is `{text}`, and Pushlab has it in `{known}`; convert the values"));
    }
    if text.is_empty() || text == known {
        return Ok(None);
    }
    check_name("unit", text)?;
    Ok(Some(text.to_owned()))
}

fn counts(text: &str) -> Result<Counts, String> {
    match Counts::from_name(text) {
        Some(Counts::Void) => {
            Err("the run is void, and this table does not say why; export it as JSON, or without void runs".to_owned())
        }
        Some(counts) => Ok(counts),
        None => Err(format!("`counts` is `{text}`; it is yes, void or failed")),
    }
}

fn of_csv(error: csv::Error) -> ImportError {
    let line = error.position().map_or(1, |position| position.line());
    let what = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("it has {len} fields, and the header has {expected_len}")
        }
        csv::ErrorKind::Utf8 { .. } => "it is not text in UTF-8".to_owned(),
        _ => error.to_string(),
    };
    match error.into_kind() {
        csv::ErrorKind::Io(source) => ImportError::Read(source),
        _ => ImportError::Line { line, what },
    }
}
