//! Keys of experiment files that have another name now. The old ones are read for one version more.

use toml::{Table, Value};

/// The table that holds the key (none: the file's own), the old name and the new.
const RENAMED: [(Option<&str>, &str, &str); 2] =
    [(None, "handicap_us", "injected_delay_us"), (Some("generator_limits"), "loop_lag_p99_ms_max", "turn_p99_ms_max")];

/// Gives old keys of a file, or of one of its profiles, their new names; says which.
pub fn modernise(file: &mut Table) -> Vec<String> {
    let mut notes = Vec::new();
    for (within, old, new) in RENAMED {
        let table = match within {
            None => Some(&mut *file),
            Some(name) => file.get_mut(name).and_then(Value::as_table_mut),
        };
        let Some(table) = table else { continue };
        if let Some(value) = table.remove(old) {
            table.entry(new).or_insert(value);
            let place = within.map_or_else(String::new, |name| format!("{name}."));
            notes.push(format!("{place}{old} is now called {place}{new}; the next version removes the old name"));
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_keys_get_their_new_names_and_a_note() {
        let mut file: Table = "handicap_us = 5\ngenerator_limits = { loop_lag_p99_ms_max = 3 }".parse().unwrap();
        let notes = modernise(&mut file);
        assert_eq!(file, "injected_delay_us = 5\ngenerator_limits = { turn_p99_ms_max = 3 }".parse().unwrap());
        assert_eq!(notes.len(), 2);
        assert!(
            notes[1].starts_with("generator_limits.loop_lag_p99_ms_max is now called generator_limits.turn_p99_ms_max")
        );
        assert!(modernise(&mut file).is_empty());
    }
}
