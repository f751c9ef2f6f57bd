//! The experiments that come with the program.

use crate::experiment::{Experiment, ExperimentError};
use std::path::Path;

/// Name and text of every preset.
pub const PRESETS: [(&str, &str); 3] = [
    ("tangen-broadcast", include_str!("../../../experiments/tangen-broadcast.toml")),
    ("tangen-chat", include_str!("../../../experiments/tangen-chat.toml")),
    ("overload", include_str!("../../../experiments/overload.toml")),
];

/// Presets that `pushlab compare` runs, each in its profile `compare`.
pub const COMPARED: [&str; 2] = ["tangen-broadcast", "tangen-chat"];

/// Why an experiment cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Neither a preset nor a file.
    #[error("{name:?} is neither a preset ({known}) nor a file that can be read: {source}")]
    NotFound {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
        /// Why the file could not be read.
        source: std::io::Error,
    },
    /// It was found and is wrong.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
}

/// A preset by name, or a TOML file by path.
pub fn load(name: &str, profile: Option<&str>) -> Result<Experiment, LoadError> {
    if let Some((_, text)) = PRESETS.iter().find(|(preset, _)| *preset == name) {
        return Ok(Experiment::parse(text, profile, name)?);
    }
    let text = std::fs::read_to_string(Path::new(name)).map_err(|source| LoadError::NotFound {
        name: name.to_owned(),
        known: PRESETS.map(|(preset, _)| preset).join(", "),
        source,
    })?;
    Ok(Experiment::parse(&text, profile, name)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_whole_in_every_profile() {
        for (name, text) in PRESETS {
            assert_eq!(load(name, None).unwrap().name, name);
            let table: toml::Table = text.parse().unwrap();
            let profiles = table.get("profile").and_then(toml::Value::as_table).cloned().unwrap_or_default();
            assert!(profiles.contains_key("quick"), "{name} has no quick profile");
            for profile in profiles.keys() {
                load(name, Some(profile)).unwrap();
            }
        }
        for name in COMPARED {
            load(name, Some("compare")).unwrap();
        }
    }
}
