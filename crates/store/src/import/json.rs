//! What [`crate::export::json`] wrote.

use super::ImportError;
use crate::export::{JSON_FORMAT, JSON_VERSION};
use crate::model::{Kind, NewCampaign, Run};
use crate::store::Store;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::io::{self, Read};

/// Only what tells whether the rest can be understood.
#[derive(Deserialize)]
struct Label {
    format: String,
    version: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document<'a> {
    #[serde(rename = "format")]
    _format: String,
    #[serde(rename = "version")]
    _version: u32,
    #[serde(borrow)]
    experiments: Vec<Entry<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry<'a> {
    experiment: NewCampaign,
    is_complete: bool,
    note: Option<String>,
    // Read one by one: the histograms of all runs at once would take hundreds of MiB.
    #[serde(borrow)]
    runs: Vec<&'a RawValue>,
}

/// Adds every campaign of an export to the store, under new numbers, and returns those. All else is as it was
/// exported, but that measured campaigns are [`Kind::Imported`] here: this store's lab does not resume them.
///
/// # Errors
/// [`ImportError::Line`] for text that is no such export; those of reading and of the store.
pub fn json(store: &mut Store, mut input: impl Read) -> Result<Vec<i64>, ImportError> {
    let mut text = String::new();
    input.read_to_string(&mut text).map_err(|source| match source.kind() {
        io::ErrorKind::InvalidData => ImportError::Line { line: 1, what: "it is not text in UTF-8".to_owned() },
        _ => ImportError::Read(source),
    })?;
    // Editors on Windows put one there.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let label: Label = serde_json::from_str(text).map_err(|error| {
        let what = format!("it is no export of Pushlab in JSON ({error})");
        ImportError::Line { line: error.line() as u64, what }
    })?;
    if label.format != JSON_FORMAT || label.version != JSON_VERSION {
        let Label { format, version } = label;
        let what = format!("it is `{format}` version {version}, and this Pushlab reads `{JSON_FORMAT}` {JSON_VERSION}");
        return Err(ImportError::Line { line: 1, what });
    }
    let document: Document<'_> = serde_json::from_str(text)
        .map_err(|error| ImportError::Line { line: error.line() as u64, what: error.to_string() })?;
    store.write(|database| {
        let mut ids = Vec::new();
        for mut entry in document.experiments {
            if entry.experiment.kind == Kind::Measured {
                entry.experiment.kind = Kind::Imported;
            }
            let id = database.insert_campaign(&entry.experiment)?;
            if entry.is_complete {
                database.set_complete(id)?;
            }
            database.annotate(id, entry.note.as_deref().unwrap_or_default())?;
            for raw in entry.runs {
                let run: Run = serde_json::from_str(raw.get()).map_err(|error| {
                    let line = line_of(text, raw.get()) + error.line() as u64 - 1;
                    ImportError::Line { line, what: error.to_string() }
                })?;
                database.insert_run(id, &run)?;
            }
            ids.push(id);
        }
        Ok(ids)
    })
}

/// The line on which `part`, a slice of `text`, begins.
fn line_of(text: &str, part: &str) -> u64 {
    let start = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    let before = text.as_bytes().get(..start).unwrap_or_default();
    1 + before.iter().filter(|byte| **byte == b'\n').count() as u64
}
