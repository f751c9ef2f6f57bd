//! What Johannessen 2014 says of frameworks themselves: scores, which are his opinion, and sizes of client code.

use serde::Serialize;
use std::collections::BTreeMap;

const FILE: &str = include_str!("../../../experiments/published/johannessen-2014-frameworks.csv");

/// What his scores are for, in the order of the file.
pub const CRITERIA: [&str; 9] = [
    "documentation",
    "simplicity",
    "maintainability",
    "browser_support",
    "maturity",
    "latency",
    "network",
    "memory",
    "processor",
];

/// What he says of one framework.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Published {
    /// As subjects are named.
    #[serde(skip)]
    pub framework: &'static str,
    /// A score from 1 to 10 for each of [`CRITERIA`] that he judged it by.
    pub scores: BTreeMap<&'static str, u32>,
    /// Client code that a page of 2014 loaded, bytes.
    pub client_bytes: Option<u32>,
}

/// What he says of the framework of this name.
pub fn find(framework: &str) -> Option<Published> {
    let row = |line: &'static str| {
        let mut cells = line.split(',');
        let framework = cells.next()?;
        let numbers: Vec<Option<u32>> = cells.map(|cell| cell.parse().ok()).collect();
        let (client_bytes, scores) = numbers.split_last()?;
        let scores = CRITERIA.into_iter().zip(scores).filter_map(|(name, score)| Some((name, (*score)?))).collect();
        Some(Published { framework, scores, client_bytes: *client_bytes })
    };
    FILE.lines().skip(1).filter_map(row).find(|published| published.framework == framework)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_these_columns_and_numbers() {
        let heading = FILE.lines().next().unwrap();
        assert_eq!(heading, format!("framework,{},client_bytes", CRITERIA.join(",")));
        for line in FILE.lines().skip(1) {
            let cells: Vec<&str> = line.split(',').collect();
            assert_eq!(cells.len(), CRITERIA.len() + 2, "{line}");
            assert!(cells[1..].iter().all(|cell| cell.is_empty() || cell.parse::<u32>().is_ok()), "{line}");
        }
    }

    #[test]
    fn what_he_did_not_score_has_no_score() {
        let sockjs = find("sockjs").unwrap();
        assert_eq!(
            (sockjs.scores.get("documentation"), sockjs.scores["latency"], sockjs.client_bytes),
            (None, 5, None)
        );
        assert_eq!(find("socketio").unwrap().client_bytes, Some(32_384));
        assert_eq!(find("faye"), None);
    }
}
