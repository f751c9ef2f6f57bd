//! For programs: the report as it is, whose shape is in `schema/report.schema.json`.

use pushlab_analysis::report::model::Report;

/// The report on one line.
pub fn text(report: &Report) -> String {
    serde_json::to_string(report).expect("the keys of its maps are text, so that it always serialises")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::hostile;

    #[test]
    fn what_is_written_is_read_back() {
        let text = text(&hostile());
        assert_eq!(text.lines().count(), 1);
        let read: Report = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), serde_json::to_value(hostile()).unwrap());
    }
}
