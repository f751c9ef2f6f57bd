//! Lists of records as columns, and back: what the store keeps of a series.
//!
//! A record's fields become columns, those of nested records with a dot (`tcp.established`). A field that is absent
//! or null is missing in its row, so that a missing nested record is one whose columns are all missing.

use pushlab_store::{Column, SeriesRow, Values};
use serde::Serialize;
use serde::de::{DeserializeOwned, Error as _};
use serde_json::{Error, Map, Number, Value};

/// A series of records.
pub fn to_series<T: Serialize>(name: &str, records: &[T]) -> Result<SeriesRow, Error> {
    let mut columns: Vec<(String, Vec<Option<Number>>)> = Vec::new();
    for (row, record) in records.iter().enumerate() {
        let mut fields = Vec::new();
        flatten("", &serde_json::to_value(record)?, &mut fields)?;
        for (field, number) in fields {
            let at = columns.iter().position(|(name, _)| *name == field).unwrap_or_else(|| {
                columns.push((field, Vec::new()));
                columns.len() - 1
            });
            let column = &mut columns[at].1;
            column.resize(row, None);
            column.push(Some(number));
        }
    }
    let column = |(name, mut numbers): (String, Vec<Option<Number>>)| {
        numbers.resize(records.len(), None);
        Column { name, values: values(&numbers) }
    };
    Ok(SeriesRow { name: name.to_owned(), columns: columns.into_iter().map(column).collect() })
}

fn flatten(prefix: &str, value: &Value, fields: &mut Vec<(String, Number)>) -> Result<(), Error> {
    match value {
        Value::Null => Ok(()),
        Value::Number(number) => {
            fields.push((prefix.to_owned(), number.clone()));
            Ok(())
        }
        Value::Object(object) => object.iter().try_for_each(|(name, value)| {
            let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
            flatten(&path, value, fields)
        }),
        other => Err(Error::custom(format!("{prefix} is {other}, which is no number"))),
    }
}

fn values(numbers: &[Option<Number>]) -> Values {
    let whole = |number: &Option<Number>| number.as_ref().is_none_or(|n| n.as_i64().is_some());
    if numbers.iter().all(whole) {
        return Values::Integers(numbers.iter().map(|n| n.as_ref()?.as_i64()).collect());
    }
    Values::Numbers(numbers.iter().map(|n| n.as_ref()?.as_f64()).collect())
}

/// The records of a series.
pub fn from_series<T: DeserializeOwned>(series: &SeriesRow) -> Result<Vec<T>, Error> {
    let rows = series.columns.iter().map(|column| column.values.len()).max().unwrap_or(0);
    (0..rows)
        .map(|row| {
            let mut record = Map::new();
            for column in &series.columns {
                let number = match &column.values {
                    Values::Integers(values) => values.get(row).copied().flatten().map(Number::from),
                    Values::Numbers(values) => values.get(row).copied().flatten().and_then(Number::from_f64),
                };
                if let Some(number) = number {
                    insert(&mut record, &column.name, Value::Number(number));
                }
            }
            serde_json::from_value(Value::Object(record))
        })
        .collect()
}

fn insert(record: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => drop(record.insert(path.to_owned(), value)),
        Some((name, rest)) => {
            let nested = record.entry(name).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(nested) = nested {
                insert(nested, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_probe::{Sample, TcpStates};

    #[test]
    fn nested_and_missing_fields_come_back() {
        let tcp = TcpStates { established: 3, ..TcpStates::default() };
        let samples = vec![
            Sample { t_ns: 1, cpu_ns: 5, ..Sample::default() },
            Sample { t_ns: 2, cpu_ns: 7, pss_bytes: Some(9), tcp: Some(tcp), ..Sample::default() },
            Sample { t_ns: 3, cpu_ns: 8, ..Sample::default() },
        ];
        let series = to_series("subject", &samples).unwrap();
        assert!(series.columns.iter().any(|column| column.name == "tcp.established"));
        assert_eq!(from_series::<Sample>(&series).unwrap(), samples);
        assert_eq!(from_series::<Sample>(&to_series::<Sample>("subject", &[]).unwrap()).unwrap(), []);
    }
}
