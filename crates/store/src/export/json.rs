//! Whole campaigns as JSON, which [`crate::import::json`] reads back.

use super::ExportError;
use crate::model::NewCampaign;
use crate::store::Store;
use serde::Serialize;
use std::io::{self, Write};

/// What `format` says in an export.
pub const JSON_FORMAT: &str = "pushlab-results";
/// What `version` says; raised when a field changes its meaning.
pub const JSON_VERSION: u32 = 1;

/// Writes the campaigns with everything they have, and returns the number of runs. One JSON document:
/// `{"format", "version", "experiments": [{"experiment", "is_complete", "note", "runs": [{…}]}]}`, each run on a line
/// of its own.
///
/// # Errors
/// [`crate::StoreError::NotFound`] for a campaign that is not there; those of the store and of `out`.
pub fn json(store: &Store, campaigns: &[i64], out: &mut dyn Write) -> Result<u64, ExportError> {
    store.read(|database| {
        let mut runs = 0;
        write!(out, "{{\"format\":\"{JSON_FORMAT}\",\"version\":{JSON_VERSION},\"experiments\":[")?;
        for (index, &id) in campaigns.iter().enumerate() {
            let campaign = database.campaign(id)?;
            let row = campaign.row;
            let new = NewCampaign {
                name: row.name,
                kind: row.kind,
                created_at: row.created_at,
                seed: campaign.seed,
                planned: row.planned,
                facts: campaign.facts,
                header: campaign.header,
            };
            write!(out, "{}\n{{\"experiment\":", if index == 0 { "" } else { "," })?;
            put(out, &new)?;
            write!(out, ",\"is_complete\":{},\"note\":", row.is_complete)?;
            put(out, &row.note)?;
            write!(out, ",\"runs\":[")?;
            for (index, place) in database.places(id)?.into_iter().enumerate() {
                writeln!(out, "{}", if index == 0 { "" } else { "," })?;
                put(out, &database.run(id, place)?)?;
                runs += 1;
            }
            write!(out, "]}}")?;
        }
        writeln!(out, "\n]}}")?;
        out.flush()?;
        Ok(runs)
    })
}

fn put(out: &mut dyn Write, value: &impl Serialize) -> Result<(), ExportError> {
    Ok(serde_json::to_writer(out, value).map_err(io::Error::from)?)
}
