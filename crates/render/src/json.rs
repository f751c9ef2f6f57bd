//! For programs: the report as it is, whose shape is in `schema/report.schema.json`.

use pushlab_report::Report;

/// The report on one line.
pub fn text(report: &Report) -> String {
    serde_json::to_string(report).expect("the keys of its maps are text, so that it always serialises")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{hostile, limited};

    #[test]
    fn what_is_written_is_read_back() {
        let text = text(&hostile());
        assert_eq!(text.lines().count(), 1);
        let read: Report = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), serde_json::to_value(hostile()).unwrap());
    }

    #[test]
    fn a_lower_bound_and_who_failed_are_fields() {
        let report: serde_json::Value = serde_json::from_str(&text(&limited())).unwrap();
        let ranking = &report["experiments"][0]["rankings"][0];
        assert_eq!(ranking["places"][1]["figure"]["bound"], "min", "{ranking}");
        assert!(ranking["places"][0]["figure"].get("bound").is_none(), "{ranking}");
        assert_eq!(
            ranking["unplaced"],
            serde_json::json!([{"key": "pushlab/polling//close", "label": "polling", "why": "failed", "detail": "it died"}])
        );
    }
}
