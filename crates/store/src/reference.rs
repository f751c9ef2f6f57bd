//! How people name campaigns.

use crate::error::StoreError;
use crate::model::CampaignRow;

const NEAR_MAX: usize = 3;

/// Finds what [`crate::Store::find`] describes among all rows, newest last.
pub(crate) fn find(rows: &[CampaignRow], reference: &str) -> Result<CampaignRow, StoreError> {
    let by_number = reference.parse().ok().and_then(|id: i64| rows.iter().find(|row| row.id == id));
    // A name that looks like a reference is still a name.
    let by_name = || rows.iter().rev().find(|row| row.name == reference);
    if let Some(row) = by_number.or_else(by_name) {
        return Ok(row.clone());
    }
    let (name, back) = parse(reference);
    let mut newest_first = rows.iter().rev().filter(|row| row.name == name);
    if let Some(row) = newest_first.clone().nth(back) {
        return Ok(row.clone());
    }
    let oldest = newest_first.by_ref().count().checked_sub(1);
    let near = match oldest {
        Some(0) => vec![name.to_owned()],
        Some(oldest) => vec![format!("{name}~{oldest}")],
        None => near(rows, name),
    };
    Err(StoreError::NotFound { reference: reference.to_owned(), near })
}

/// Finds what [`crate::Store::find_all`] describes.
pub(crate) fn find_all<R: AsRef<str>>(rows: &[CampaignRow], references: &[R]) -> Result<Vec<CampaignRow>, StoreError> {
    let mut found: Vec<CampaignRow> = Vec::new();
    for reference in references {
        let row = find(rows, reference.as_ref())?;
        if let Some(place) = found.iter().position(|other| other.id == row.id) {
            let [reference, before] = [reference, &references[place]].map(|reference| reference.as_ref().to_owned());
            return Err(StoreError::Twice { reference, before, id: row.id });
        }
        found.push(row);
    }
    Ok(found)
}

/// The name and how many campaigns of that name to go back.
fn parse(reference: &str) -> (&str, usize) {
    if let Some(name) = reference.strip_suffix("@previous") {
        return (name, 1);
    }
    let back = reference.rsplit_once('~').and_then(|(name, back)| Some((name, back.parse().ok()?)));
    back.unwrap_or((reference, 0))
}

/// Names that are spelt alike or contain what was typed, best first.
fn near(rows: &[CampaignRow], typed: &str) -> Vec<String> {
    let typed = typed.to_lowercase();
    let mut names: Vec<(usize, &str)> = Vec::new();
    for name in rows.iter().map(|row| row.name.as_str()) {
        let lower = name.to_lowercase();
        let contains = !typed.is_empty() && (lower.contains(&typed) || typed.contains(&lower));
        let distance = if contains { 1 } else { distance(&typed, &lower) };
        if distance <= (typed.chars().count() / 3).max(2) && !names.iter().any(|(_, other)| *other == name) {
            names.push((distance, name));
        }
    }
    names.sort_unstable();
    names.into_iter().take(NEAR_MAX).map(|(_, name)| name.to_owned()).collect()
}

/// Letters to insert, remove or replace to make one text of the other (Levenshtein).
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Kind;

    fn rows(names: &[&str]) -> Vec<CampaignRow> {
        let row = |(index, name): (usize, &&str)| CampaignRow {
            id: index as i64 + 1,
            name: (*name).to_owned(),
            kind: Kind::Measured,
            created_at: "2024-05-01T12:00:00Z".to_owned(),
            is_complete: false,
            planned: 0,
            done: 0,
            valid: 0,
            void: 0,
            failed: 0,
            note: None,
        };
        names.iter().enumerate().map(row).collect()
    }

    #[test]
    fn references_are_numbers_names_and_steps_back() {
        let rows = rows(&["compare", "chat", "compare", "7", "odd~1", "compare"]);
        let id = |reference: &str| find(&rows, reference).map(|row| row.id).ok();
        assert_eq!(id("2"), Some(2));
        assert_eq!(id("compare"), Some(6));
        assert_eq!(id("compare~0"), Some(6));
        assert_eq!(id("compare@previous"), Some(3));
        assert_eq!(id("compare~2"), Some(1));
        assert_eq!(id("compare~3"), None);
        assert_eq!(id("7"), Some(4), "a name of digits, where no number is meant");
        assert_eq!(id("odd~1"), Some(5));
        assert_eq!(id("compare~x"), None);
        assert_eq!(id(""), None);
    }

    #[test]
    fn a_campaign_is_meant_once_whatever_it_is_called() {
        let rows = rows(&["compare", "chat", "compare"]);
        let ids = |references: &[&str]| {
            find_all(&rows, references).map(|found| found.iter().map(|row| row.id).collect::<Vec<_>>())
        };
        assert_eq!(ids(&["compare", "chat", "compare~1"]).unwrap(), [3, 2, 1]);
        for twice in [["chat", "chat"], ["compare", "3"], ["compare@previous", "1"]] {
            let error = ids(&twice).unwrap_err();
            assert!(matches!(error, StoreError::Twice { .. }) && error.to_string().contains("named twice"), "{error}");
        }
        assert!(matches!(ids(&["chat", "other"]), Err(StoreError::NotFound { .. })));
    }

    #[test]
    fn what_is_not_found_is_answered_with_what_looks_alike() {
        let rows = rows(&["tangen-chat", "tangen-broadcast", "overload", "tangen-chat"]);
        let near = |reference: &str| match find(&rows, reference) {
            Err(StoreError::NotFound { near, .. }) => near,
            other => panic!("{other:?}"),
        };
        assert_eq!(near("tangen-chta"), ["tangen-chat"]);
        assert_eq!(near("Tangen"), ["tangen-broadcast", "tangen-chat"]);
        assert_eq!(near("overlaod~4"), ["overload"]);
        assert_eq!(near("tangen-chat~2"), ["tangen-chat~1"]);
        assert_eq!(near("overload~1"), ["overload"]);
        assert!(near("99").is_empty());
        assert!(find(&rows, "99").unwrap_err().to_string().contains("pushlab runs"));
    }

    #[test]
    fn distances_are_those_of_levenshtein() {
        for (from, to, edits) in [("", "", 0), ("abc", "", 3), ("kitten", "sitting", 3), ("flaw", "lawn", 2)] {
            assert_eq!((distance(from, to), distance(to, from)), (edits, edits), "{from} {to}");
        }
    }
}
