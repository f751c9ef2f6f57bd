//! The experiments that come with the program.

use crate::experiment::{Experiment, ExperimentError};
use std::path::Path;

macro_rules! presets {
    ($($name:literal),* $(,)?) => {
        /// Name and text of every preset.
        pub const PRESETS: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../experiments/", $name, ".toml")))),*];
    };
}

presets! {
    "tangen-broadcast",
    "tangen-chat",
    "johannessen-load",
    "johannessen-idle",
    "johannessen-directions",
    "cometd-load",
    "cometd-idle",
    "polling-study-1",
    "polling-study-2",
    "polling-study-3",
    "payload-by-transport",
    "bigestans-chat",
    "bigestans-pilot",
    "transports-by-network",
    "nagle",
    "browser-limit",
    "browser-versus-native",
    "tls-cost",
    "peers-fan-out",
    "peers-half-load",
    "peers-idle",
    "platforms",
    "anomaly-stress",
    "anomaly-queues",
    "polling-study-collection",
    "overload",
}

/// Experiments that are run together, their runs interleaved.
#[derive(Debug, Clone, Copy)]
pub struct Suite {
    /// As `pushlab run` takes it.
    pub name: &'static str,
    /// One line for people.
    pub title: &'static str,
    /// Its presets.
    pub presets: &'static [&'static str],
    /// The profile in which they run when no other is asked for, if not in their full form.
    pub profile: Option<&'static str>,
}

/// Every suite.
pub const SUITES: &[Suite] = &[
    Suite {
        name: "transports",
        title: "Six transports under broadcast and chat",
        presets: &["tangen-broadcast", "tangen-chat"],
        profile: Some("compare"),
    },
    Suite {
        name: "peers",
        title: "Everybody's servers: one workload, one client, one clock",
        presets: &["peers-fan-out", "peers-half-load", "peers-idle"],
        profile: None,
    },
];

/// The title of a suite; of anything else its name.
pub fn suite_title(name: &str) -> &str {
    SUITES.iter().find(|suite| suite.name == name).map_or(name, |suite| suite.title)
}

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
        known: known().join(", "),
        source,
    })?;
    Ok(Experiment::parse(&text, profile, name)?)
}

/// The experiments of a suite, a preset or a file, and what to call their campaign.
pub fn load_all(name: &str, profile: Option<&str>) -> Result<(String, Vec<Experiment>), LoadError> {
    if let Some(suite) = SUITES.iter().find(|suite| suite.name == name) {
        let experiments: Result<Vec<Experiment>, LoadError> =
            suite.presets.iter().map(|preset| load(preset, profile.or(suite.profile))).collect();
        return Ok((campaign_name(name, profile), experiments?));
    }
    let experiment = load(name, profile)?;
    Ok((campaign_name(&experiment.name, profile), vec![experiment]))
}

fn campaign_name(name: &str, profile: Option<&str>) -> String {
    profile.map_or_else(|| name.to_owned(), |profile| format!("{name}-{profile}"))
}

/// Names of all suites and presets.
pub fn known() -> Vec<&'static str> {
    SUITES.iter().map(|suite| suite.name).chain(PRESETS.iter().map(|(name, _)| *name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubts::WARM_UP_SEEN_MS;
    use crate::subjects::manifest::Platform;
    use crate::subjects::named::Named;
    use pushlab_workload::scenario::Scenario;

    /// A server of Java is measured again where its latency fell over the whole phase; that must be seen.
    #[test]
    fn load_phases_of_java_servers_are_long_enough_to_show_a_warm_up() {
        let is_java = |name: &String| Named::parse(name).unwrap().platform() == Some(Platform::Java);
        let whole = PRESETS.iter().map(|(name, _)| load(name, None).unwrap());
        let with_java: Vec<Experiment> = whole
            .filter(|experiment| experiment.scenario != Scenario::Idle && experiment.subjects.iter().any(is_java))
            .collect();
        assert!(with_java.len() >= 4, "{}", with_java.len());
        for experiment in with_java {
            assert!(experiment.phases.load_ms >= WARM_UP_SEEN_MS, "{}", experiment.name);
        }
    }

    #[test]
    fn every_preset_is_whole_in_every_profile() {
        for &(name, text) in PRESETS {
            assert_eq!(load(name, None).unwrap().name, name);
            let profiles = Experiment::profiles(text);
            assert!(profiles.contains(&"quick".to_owned()), "{name} has no quick profile");
            for profile in profiles {
                load(name, Some(&profile)).unwrap();
            }
        }
        for suite in SUITES {
            assert_eq!(load_all(suite.name, None).unwrap().1.len(), suite.presets.len());
        }
    }
}
