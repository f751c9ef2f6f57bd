//! The tidy table as CSV (RFC 4180, lines end in LF).

use super::{COLUMNS, ExportError, Selection, Units, each_figure, text_of};
use crate::store::Store;
use std::borrow::Cow;
use std::io::{self, Write};

/// Writes the selected figures of the campaigns as CSV with a header line, and returns the number of rows. Values are
/// written with as many digits as give the same `f64` back. Text that a spreadsheet would compute gets a leading `'`.
///
/// # Errors
/// [`crate::StoreError::NotFound`] for a campaign that is not there; those of the store and of `out`.
pub fn csv(
    store: &Store,
    campaigns: &[i64],
    selection: &Selection,
    units: Units<'_>,
    out: &mut dyn Write,
) -> Result<u64, ExportError> {
    let mut table = ::csv::Writer::from_writer(out);
    table.write_record(COLUMNS).map_err(io::Error::from)?;
    let rows = store.read(|database| {
        each_figure(database, campaigns, selection, |row| {
            let number = |number: Option<u32>| number.map_or_else(String::new, |number| number.to_string());
            let fields: [&str; COLUMNS.len()] = [
                &guarded(&row.cell.experiment),
                &guarded(&row.cell.subject),
                &row.cell.transport,
                &guarded(&row.cell.policy),
                &guarded(row.cell.variant.as_deref().unwrap_or_default()),
                &guarded(row.cell.network.as_deref().unwrap_or_default()),
                &row.cell.clients.to_string(),
                &number(row.cell.deliveries_per_s),
                &number(row.cell.payload_bytes),
                &row.repeat.to_string(),
                &guarded(&row.metric),
                &guarded(row.unit(units)),
                &text_of(row.value),
                row.bound.map_or("", |bound| bound.name()),
                row.counts.name(),
            ];
            Ok(table.write_record(fields).map_err(io::Error::from)?)
        })
    })?;
    table.flush()?;
    Ok(rows)
}

/// Whether a spreadsheet takes a text for a formula, or would without its leading `'`.
fn is_formula(text: &str) -> bool {
    text.trim_start_matches('\'').starts_with(['=', '+', '-', '@', '\t', '\r'])
}

/// A text guarded so that a spreadsheet shows it and computes nothing.
fn guarded(text: &str) -> Cow<'_, str> {
    if is_formula(text) { format!("'{text}").into() } else { text.into() }
}

/// The text that was guarded.
pub(crate) fn unguarded(cell: &str) -> &str {
    cell.strip_prefix('\'').filter(|text| is_formula(text)).unwrap_or(cell)
}
