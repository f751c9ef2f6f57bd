//! The tidy table as Parquet.

use super::{ExportError, Selection, TidyRow, Units, each_figure};
use crate::store::Store;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::io::Write;
use std::sync::Arc;

/// Rows held in memory at once, about 300 bytes each: 20 MB.
const MAX_GROUP_ROWS: usize = 1 << 16;

/// The columns of [`super::COLUMNS`] with their types. What is unknown is null, `policy` alone is empty instead.
const SCHEMA: &str = "message figures {
    REQUIRED BINARY experiment (STRING);
    REQUIRED BINARY subject (STRING);
    REQUIRED BINARY transport (STRING);
    REQUIRED BINARY policy (STRING);
    OPTIONAL BINARY variant (STRING);
    OPTIONAL BINARY network (STRING);
    REQUIRED INT32 clients (INTEGER(32, false));
    OPTIONAL INT32 deliveries_per_s (INTEGER(32, false));
    OPTIONAL INT32 payload_bytes (INTEGER(32, false));
    REQUIRED INT32 repeat (INTEGER(32, false));
    REQUIRED BINARY metric (STRING);
    REQUIRED BINARY unit (STRING);
    REQUIRED DOUBLE value;
    OPTIONAL BINARY bound (STRING);
    REQUIRED BINARY counts (STRING);
}";

/// Writes the selected figures of the campaigns as a Parquet file, not compressed, texts as dictionaries. Returns
/// the number of rows.
///
/// # Errors
/// [`crate::StoreError::NotFound`] for a campaign that is not there; those of the store and of `out`.
pub fn parquet(
    store: &Store,
    campaigns: &[i64],
    selection: &Selection,
    units: Units<'_>,
    out: impl Write + Send,
) -> Result<u64, ExportError> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let created_by = concat!("pushlab ", env!("CARGO_PKG_VERSION")).to_owned();
    let properties = Arc::new(WriterProperties::builder().set_created_by(created_by).build());
    let mut file = SerializedFileWriter::new(out, schema, properties)?;
    let mut group = Vec::new();
    let rows = store.read(|database| {
        each_figure(database, campaigns, selection, |row| {
            group.push(row);
            if group.len() == MAX_GROUP_ROWS {
                write_group(&mut file, &group, units)?;
                group.clear();
            }
            Ok(())
        })
    })?;
    if !group.is_empty() {
        write_group(&mut file, &group, units)?;
    }
    file.close()?;
    Ok(rows)
}

fn write_group<W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    rows: &[TidyRow],
    units: Units<'_>,
) -> Result<(), ExportError> {
    let mut group = file.next_row_group()?;
    texts(&mut group, rows, |row| Some(&row.cell.experiment))?;
    texts(&mut group, rows, |row| Some(&row.cell.subject))?;
    texts(&mut group, rows, |row| Some(&row.cell.transport))?;
    texts(&mut group, rows, |row| Some(&row.cell.policy))?;
    texts(&mut group, rows, |row| row.cell.variant.as_deref())?;
    texts(&mut group, rows, |row| row.cell.network.as_deref())?;
    whole(&mut group, rows, |row| Some(row.cell.clients))?;
    whole(&mut group, rows, |row| row.cell.deliveries_per_s)?;
    whole(&mut group, rows, |row| row.cell.payload_bytes)?;
    whole(&mut group, rows, |row| Some(row.repeat))?;
    texts(&mut group, rows, |row| Some(&row.metric))?;
    texts(&mut group, rows, |row| Some(row.unit(units)))?;
    column::<DoubleType, _>(&mut group, rows, |row| Some(row.value))?;
    texts(&mut group, rows, |row| row.bound.map(|bound| bound.name()))?;
    texts(&mut group, rows, |row| Some(row.counts.name()))?;
    group.close()?;
    Ok(())
}

fn texts<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[TidyRow],
    text: impl for<'a> Fn(&'a TidyRow) -> Option<&'a str>,
) -> Result<(), ExportError> {
    column::<ByteArrayType, _>(group, rows, |row| text(row).map(ByteArray::from))
}

fn whole<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[TidyRow],
    number: impl Fn(&TidyRow) -> Option<u32>,
) -> Result<(), ExportError> {
    // The format keeps numbers without sign in the same bits.
    column::<Int32Type, _>(group, rows, |row| number(row).map(u32::cast_signed))
}

fn column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[TidyRow],
    value: impl Fn(&TidyRow) -> Option<T::T>,
) -> Result<(), ExportError> {
    let mut column = group.next_column()?.expect("each column of the schema is written once");
    let values: Vec<Option<T::T>> = rows.iter().map(value).collect();
    // A definition level says whether there is a value; columns that cannot be null take none and ignore them.
    let is_there: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    column.typed::<T>().write_batch(&values, Some(&is_there), None)?;
    Ok(column.close()?)
}
