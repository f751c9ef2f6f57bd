//! What a delivered message costs on the wire, as a table that can be drawn.

use super::samples::{SeriesRuns, figure};
use pushlab_experiment::cell::Sweep;
use pushlab_report::{Column, DataCell, DataTable, Estimate, Origin, Stack, StackPart};

/// Parts from the inside of a message outwards: stable name, heading, metric.
const PARTS: [(&str, &str, &str); 11] = [
    ("payload", "Payload", "bytes_payload"),
    ("dialect", "Dialect", "bytes_dialect"),
    ("framing", "Framing", "bytes_framing"),
    ("http_heads", "HTTP heads", "bytes_http_heads"),
    ("http2_frames", "HTTP/2 frames", "bytes_http2_frames"),
    ("tls", "TLS", "bytes_tls"),
    ("tcp_ip_headers", "TCP/IP headers", "bytes_tcp_ip_headers"),
    ("acknowledgements", "Acks", "bytes_acknowledgements"),
    ("connections", "Connections", "bytes_connections"),
    ("retransmissions", "Resent", "bytes_retransmissions"),
    ("unaccounted", "Unaccounted", "bytes_unaccounted"),
];
/// Wholes, the better one first.
const WHOLES: [(&str, &str); 2] = [("On the link", "bytes_link"), ("Sum", "bytes_sum")];

/// One row of the table.
struct Row {
    label: String,
    place: String,
    parts: Vec<Option<Estimate>>,
    wholes: Vec<Option<Estimate>>,
}

/// The parts of every cell in which they were counted, and their sum beside what the link carried.
pub fn bytes_per_message(sweep: Sweep, series: &[SeriesRuns<'_>], seed: u64) -> Option<DataTable> {
    let mut rows = Vec::new();
    for own in series.iter().filter(|s| s.origin == Origin::Measured) {
        for (&x, runs) in &own.cells {
            let of = |metric: &str| figure(runs, metric, seed);
            if of("bytes_sum").is_some() {
                rows.push(Row {
                    label: own.label.clone(),
                    place: sweep.place(x),
                    parts: PARTS.iter().map(|(_, _, metric)| of(metric)).collect(),
                    wholes: WHOLES.iter().map(|(_, metric)| of(metric)).collect(),
                });
            }
        }
    }
    (!rows.is_empty()).then(|| table(&rows))
}

/// Columns that no row has are left out: without TLS and without a link there is nothing to say of them.
fn table(rows: &[Row]) -> DataTable {
    let has_part = |at: usize| rows.iter().any(|row| row.parts[at].is_some());
    let has_whole = |at: usize| rows.iter().any(|row| row.wholes[at].is_some());
    let parts: Vec<usize> = (0..PARTS.len()).filter(|&at| has_part(at)).collect();
    let wholes: Vec<usize> = (0..WHOLES.len()).filter(|&at| has_whole(at)).collect();
    let is_grouped = rows.iter().any(|row| row.place != rows[0].place);
    let mut columns: Vec<Column> = vec![Column::new("Series", "")];
    columns.extend(is_grouped.then(|| Column::new("At", "")));
    let first_part = columns.len();
    columns.extend(parts.iter().map(|&at| Column::new(PARTS[at].1, "B")));
    let first_whole = columns.len();
    columns.extend(wholes.iter().map(|&at| Column::new(WHOLES[at].0, "B")));
    let cells = |row: &Row| -> Vec<DataCell> {
        let place = is_grouped.then(|| DataCell::text(row.place.clone()));
        let figures = parts.iter().map(|&at| row.parts[at]).chain(wholes.iter().map(|&at| row.wholes[at]));
        std::iter::once(DataCell::text(row.label.clone())).chain(place).chain(figures.map(DataCell::figure)).collect()
    };
    let part =
        |(index, &at): (usize, &usize)| StackPart { name: PARTS[at].0.to_owned(), column: (first_part + index) as u32 };
    DataTable {
        title: "What a delivered message costs on the wire".to_owned(),
        note: note(has_whole(0)),
        rows: rows.iter().map(cells).collect(),
        stack: Some(Stack {
            group: is_grouped.then_some(1),
            parts: parts.iter().enumerate().map(part).collect(),
            wholes: (first_whole..columns.len()).map(|at| at as u32).collect(),
        }),
        columns,
    }
}

fn note(has_link: bool) -> String {
    let seen = "Bytes of the clients' connections over deliveries, both ways together, while the load lasts and what it \
                sent is under way. The dialect's part is what it puts around the payload, and messages of its own; \
                framing is the transport's.";
    let beyond = if has_link {
        " Below the sockets the link counted packets: headers of those that carry data, acknowledgements, opening and \
         closing of connections, data sent again. What it carried beyond the sum of the parts is unaccounted for."
    } else {
        " Headers of packets, acknowledgements and what was sent again are not in it: they are counted over an \
         emulated link alone."
    };
    format!("{seen}{beyond}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;
    use crate::report::run_values::RunValues;
    use crate::report::samples::{self, Source};

    fn table_of(runs: &[RunValues]) -> Option<DataTable> {
        let experiment = presets::load("payload-by-transport", None).unwrap();
        let series = samples::series(&experiment, &[Source { origin: Origin::Measured, tag: "", runs }]);
        bytes_per_message(experiment.sweep(), &series, 1)
    }

    fn runs(cells: usize, figures: &[(&str, f64)]) -> Vec<RunValues> {
        let experiment = presets::load("payload-by-transport", None).unwrap();
        let figures: Vec<(String, f64)> = figures.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let run = |cell| RunValues { figures: figures.iter().cloned().collect(), ..RunValues::planned(cell) };
        experiment.cells().into_iter().take(cells).map(run).collect()
    }

    #[test]
    fn only_what_was_counted_has_a_column() {
        assert_eq!(table_of(&runs(2, &[("cpu", 1.0)])), None);
        let seen = [("bytes_payload", 30.0), ("bytes_dialect", 9.0), ("bytes_sum", 39.0)];
        let table = table_of(&runs(1, &seen)).unwrap();
        let titles = |table: &DataTable| table.columns.iter().map(|c| c.title.clone()).collect::<Vec<_>>();
        assert_eq!(titles(&table), ["Series", "Payload", "Dialect", "Sum"]);
        let stack = table.stack.unwrap();
        assert_eq!((stack.group, stack.parts[1].column, stack.wholes), (None, 2, vec![3]));
        let linked = [&seen[..], &[("bytes_unaccounted", -1.0), ("bytes_link", 38.0)]].concat();
        let mut both = runs(2, &linked);
        both[1].figures.remove("bytes_link");
        let table = table_of(&both).unwrap();
        assert_eq!(titles(&table), ["Series", "At", "Payload", "Dialect", "Unaccounted", "On the link", "Sum"]);
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()));
        assert_eq!(table.rows[1][5], DataCell::Nothing(()));
        let DataCell::Estimate(unaccounted) = table.rows[0][4] else { panic!("{:?}", table.rows[0]) };
        assert_eq!((unaccounted.value, unaccounted.low), (-1.0, -1.0));
        let stack = table.stack.unwrap();
        assert_eq!((stack.group, stack.parts[2].name.as_str(), stack.wholes), (Some(1), "unaccounted", vec![5, 6]));
    }
}
